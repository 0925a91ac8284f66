# Builds libaom without SIMD, in a quarter of the time: what is tested is its binding. Set as CMAKE_TOOLCHAIN_FILE.
set(AOM_TARGET_CPU generic)
