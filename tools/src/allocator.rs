//! Memory allocator of the binary: mimalloc, which needs fewer instructions per request than the allocator of the
//! system, and returns memory after a burst of connections or uploads.
//!
//! Non-goals: memory limits; each component bounds its own use.

#![allow(
    unsafe_code,
    reason = "no crate offers mimalloc's plain allocation or its options behind a safe function"
)]

use std::alloc::{GlobalAlloc, Layout};
use std::env;

use libmimalloc_sys::{mi_malloc, mi_option_set, mi_option_t, mi_realloc, mi_zalloc};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Alignment of every block in bytes: a free block contains a pointer.
const BLOCK_ALIGN: usize = align_of::<*const u8>();

/// Mimalloc, by its plain functions where the alignment of every block suffices. The crate `mimalloc` always calls
/// those for an alignment, which take a longer path, and mostly allocate more than the size.
struct Allocator;

// SAFETY: each function passes its arguments on to mimalloc, whose memory may be freed and reallocated by either kind
// of its functions. Plain functions are only called for an alignment that all blocks have.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match layout.align() <= BLOCK_ALIGN {
            // SAFETY: any size is valid.
            true => unsafe { mi_malloc(layout.size()) }.cast(),
            // SAFETY: the caller guarantees what the same function requires.
            false => unsafe { MiMalloc.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match layout.align() <= BLOCK_ALIGN {
            // SAFETY: any size is valid.
            true => unsafe { mi_zalloc(layout.size()) }.cast(),
            // SAFETY: the caller guarantees what the same function requires.
            false => unsafe { MiMalloc.alloc_zeroed(layout) },
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller guarantees what the same function requires.
        unsafe { MiMalloc.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match layout.align() <= BLOCK_ALIGN {
            // SAFETY: the caller guarantees that the block is of this allocator.
            true => unsafe { mi_realloc(block.cast(), size) }.cast(),
            // SAFETY: the caller guarantees what the same function requires.
            false => unsafe { MiMalloc.realloc(block, layout, size) },
        }
    }
}

/// Value of `mi_option_purge_delay` in `mimalloc.h`, in milliseconds. The crate version is pinned because of it.
const PURGE_DELAY: mi_option_t = 15;
const PURGE_DELAY_ENV: &str = "MIMALLOC_PURGE_DELAY";

/// Makes mimalloc return a page to the system as soon as it is unused, unless the environment overrides it.
///
/// With a delay, a page is returned when its thread next allocates, so an idle thread retains its pages. Must be
/// called before other threads are started.
pub(crate) fn return_freed_pages_immediately() {
    if env::var_os(PURGE_DELAY_ENV).is_none() {
        // SAFETY: the option exists in this version, and no other thread can read it concurrently.
        unsafe { mi_option_set(PURGE_DELAY, 0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_have_their_alignment() {
        let mut blocks = Vec::new();
        for align in [1, 2, 4, 8, 16, 64, 4_096] {
            for size in (1..300).chain([1_000, 1_025, 5_000, 70_001, 3 << 20]) {
                let layout = Layout::from_size_align(size, align).unwrap();
                // SAFETY: the size is not zero.
                let block = unsafe { Allocator.alloc(layout) };
                assert!(block.addr().is_multiple_of(align), "{layout:?}");
                blocks.push((block, layout));
            }
        }
        for (block, layout) in blocks {
            // SAFETY: the block has this layout.
            let grown = unsafe { Allocator.realloc(block, layout, layout.size() * 2) };
            assert!(grown.addr().is_multiple_of(layout.align()), "{layout:?}");
            let layout = Layout::from_size_align(layout.size() * 2, layout.align()).unwrap();
            // SAFETY: the block has this layout now.
            unsafe { Allocator.dealloc(grown, layout) };
        }
    }
}
