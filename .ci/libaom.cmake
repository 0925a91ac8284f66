# Builds libaom in a quarter of the time, without SIMD and less optimised: what is tested is its binding. Set as
# CMAKE_TOOLCHAIN_FILE.
set(AOM_TARGET_CPU generic)
add_compile_options(-O1)
