//! Memory of one device: a budget that statements reserve from, and free lists of blocks by size class.
//!
//! The pool keeps two ledgers. *Reservations*: a statement reserves all that it will need in one step, a resident
//! column keeps its reservation, and their sum never exceeds the budget. *Blocks*: allocations of the driver, live in a
//! buffer or cached in a free list. Buffers are covered by reservations made before them, so a warm statement allocates
//! nothing from the driver. An allocation that would exceed the budget frees cached blocks first. A background thread
//! frees surplus blocks and page-locked host memory, because the driver waits for the device while it frees memory.
//! Small blocks of host memory are cached too, up to a limit: locking pages takes longer than most short statements.
//! Live blocks exceed the budget only where no reservation covers them, or where work in flight outlives their
//! reservation.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::backend::Backend;
use crate::error::{GpuError, Result};

/// Smallest size class in bytes.
const CLASS_BYTES_MIN: usize = 512;
/// Steps between two powers of two: a block wastes at most a sixteenth of its bytes.
const CLASSES_PER_POWER: usize = 16;
/// Largest step between two size classes.
const CLASS_STEP_MAX: usize = 2 << 20;

/// Smallest and largest size of host memory that is cached, both powers of two.
const HOST_BYTES_MIN: usize = 4 << 10;
const HOST_BYTES_MAX: usize = 8 << 20;
/// Bytes of host memory in the cache at most.
const HOST_CACHED_MAX: usize = 64 << 20;

/// Budget, reservations and blocks of one device.
#[derive(Debug)]
pub struct MemoryPool {
    state: Mutex<PoolState>,
    changed: Condvar,
}

/// An address and the bytes allocated there.
type Block = (u64, usize);

#[derive(Debug, Default)]
struct PoolState {
    usage: PoolUsage,
    free: HashMap<usize, Vec<u64>>,
    /// Cached blocks that the background thread frees unless a buffer takes them before.
    surplus: Vec<Block>,
    /// Page-locked host memory that the background thread frees.
    host: Vec<Block>,
    /// Cached page-locked host memory, and its bytes.
    host_free: Vec<Block>,
    host_cached: usize,
    /// True while the background thread frees memory.
    is_reclaiming: bool,
}

impl PoolState {
    /// Removes a cached block, to be freed: a surplus one, or else the largest.
    fn take_largest(&mut self) -> Option<Block> {
        let block = self.surplus.pop().or_else(|| {
            let cached = self.free.iter().filter(|(_, addresses)| !addresses.is_empty());
            let class = cached.map(|(class, _)| *class).max()?;
            Some((self.free.get_mut(&class)?.pop()?, class))
        })?;
        self.usage.cached -= block.1 as u64;
        Some(block)
    }

    /// True if memory is to be freed and no background thread frees it yet; from then on one does.
    fn starts_reclaiming(&mut self) -> bool {
        let is_empty = self.surplus.is_empty() && self.host.is_empty();
        !is_empty && !std::mem::replace(&mut self.is_reclaiming, true)
    }
}

/// Usage of the pool at a moment, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolUsage {
    /// Limit of the sum of reservations.
    pub budget: u64,
    /// Sum of the reservations.
    pub reserved: u64,
    /// Highest sum of reservations so far.
    pub reserved_peak: u64,
    /// Blocks of live buffers.
    pub live: u64,
    /// Blocks in free lists.
    pub cached: u64,
    /// Highest sum of live and cached blocks so far, all allocated by the driver.
    pub held_peak: u64,
    /// Number of allocations by the driver so far.
    pub driver_allocations: u64,
}

impl MemoryPool {
    pub(crate) fn new(budget: u64) -> MemoryPool {
        let usage = PoolUsage { budget, ..PoolUsage::default() };
        MemoryPool { state: Mutex::new(PoolState { usage, ..PoolState::default() }), changed: Condvar::new() }
    }

    /// Usage now.
    pub fn usage(&self) -> PoolUsage {
        self.state.lock().usage
    }

    /// Reserves `bytes`, or none if the budget has no room for all of them.
    pub fn try_reserve(self: &Arc<Self>, bytes: u64) -> Option<Reservation> {
        let usage = &mut self.state.lock().usage;
        if usage.reserved.saturating_add(bytes) > usage.budget {
            return None;
        }
        usage.reserved += bytes;
        usage.reserved_peak = usage.reserved_peak.max(usage.reserved);
        Some(Reservation { pool: self.clone(), bytes })
    }

    /// Bytes that can be reserved now.
    pub fn available(&self) -> u64 {
        let usage = self.usage();
        usage.budget.saturating_sub(usage.reserved)
    }

    /// Waits until a reservation is dropped or `timeout` has passed. The caller holds no reservation meanwhile.
    pub fn wait_for_release(&self, timeout: Duration) {
        let mut state = self.state.lock();
        self.changed.wait_for(&mut state, timeout);
    }

    /// Takes a block of the size class of `bytes` from the free list or the driver; its address and size class.
    pub(crate) fn allocate(&self, backend: &dyn Backend, bytes: usize, purpose: &str) -> Result<Block> {
        let class = size_class(bytes);
        if let Some(address) = self.take_cached(class) {
            return Ok((address, class));
        }
        self.make_room(backend, class, purpose)?;
        let allocated = match backend.allocate(class) {
            Err(GpuError::OutOfMemory { .. }) => {
                self.trim(backend);
                backend.allocate(class).map_err(|error| match error {
                    GpuError::OutOfMemory { free, wanted, .. } => {
                        let (operation, budget) = (purpose.to_string(), self.usage().budget);
                        GpuError::OutOfMemory { operation, wanted, free, budget }
                    }
                    other => other,
                })
            }
            other => other,
        };
        let usage = &mut self.state.lock().usage;
        match &allocated {
            Ok(_) => usage.driver_allocations += 1,
            Err(_) => usage.live -= class as u64,
        }
        allocated.map(|address| (address, class))
    }

    fn take_cached(&self, class: usize) -> Option<u64> {
        let mut state = self.state.lock();
        let free = state.free.get_mut(&class).and_then(Vec::pop);
        let address = free.or_else(|| {
            let place = state.surplus.iter().position(|(_, other)| *other == class)?;
            Some(state.surplus.swap_remove(place).0)
        })?;
        state.usage.cached -= class as u64;
        state.usage.live += class as u64;
        Some(address)
    }

    /// Counts another `class` bytes as live, and frees cached blocks, the largest first, until all blocks fit the
    /// budget or none is cached.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`] for a block larger than the budget and than the sum of reservations, which an earlier,
    /// larger budget allowed.
    fn make_room(&self, backend: &dyn Backend, class: usize, purpose: &str) -> Result<()> {
        let mut blocks = Vec::new();
        let (operation, wanted) = (purpose.to_string(), class as u64);
        {
            let mut state = self.state.lock();
            let PoolUsage { budget, reserved, live, .. } = state.usage;
            let most = budget.max(reserved);
            if wanted > most {
                return Err(GpuError::OutOfMemory { operation, wanted, free: most.saturating_sub(live), budget });
            }
            state.usage.live += wanted;
            while state.usage.live + state.usage.cached > budget
                && let Some(block) = state.take_largest()
            {
                blocks.push(block);
            }
            state.usage.held_peak = state.usage.held_peak.max(state.usage.live + state.usage.cached);
        }
        free_all(backend, blocks);
        Ok(())
    }

    /// Puts a block on its free list.
    pub(crate) fn release(&self, (address, class): Block) {
        let mut state = self.state.lock();
        state.usage.live -= class as u64;
        state.usage.cached += class as u64;
        state.free.entry(class).or_default().push(address);
    }

    /// Makes the cached blocks of one size class surplus. True if the caller starts [`MemoryPool::reclaim`].
    #[must_use]
    pub(crate) fn discard(&self, class: usize) -> bool {
        let mut state = self.state.lock();
        let blocks = state.free.remove(&class).unwrap_or_default();
        state.surplus.extend(blocks.into_iter().map(|address| (address, class)));
        state.starts_reclaiming()
    }

    /// Takes page-locked host memory for `bytes` from the cache or the driver; its address and size. Its content is
    /// undefined.
    pub(crate) fn allocate_host(&self, backend: &dyn Backend, bytes: usize) -> Result<Block> {
        let size = host_size(bytes);
        {
            let mut state = self.state.lock();
            if let Some(place) = state.host_free.iter().position(|(_, cached)| *cached == size) {
                state.host_cached -= size;
                return Ok(state.host_free.swap_remove(place));
            }
        }
        Ok((backend.allocate_host(size)?, size))
    }

    /// Puts page-locked host memory that no buffer owns into the cache, or on the list to be freed. True as for
    /// [`MemoryPool::discard`].
    #[must_use]
    pub(crate) fn discard_host(&self, block: Block) -> bool {
        let mut state = self.state.lock();
        match block.1 <= HOST_BYTES_MAX && state.host_cached + block.1 <= HOST_CACHED_MAX {
            true => {
                state.host_cached += block.1;
                state.host_free.push(block);
            }
            false => state.host.push(block),
        }
        state.starts_reclaiming()
    }

    /// Frees surplus blocks and discarded host memory.
    pub(crate) fn reclaim(&self, backend: &dyn Backend) {
        let next = || {
            let mut state = self.state.lock();
            let host = state.host.pop();
            let block = if state.surplus.is_empty() { None } else { state.take_largest() };
            state.is_reclaiming = host.or(block).is_some();
            self.changed.notify_all();
            state.is_reclaiming.then_some((host, block))
        };
        while let Some((host, block)) = next() {
            free_all_host(backend, host);
            free_all(backend, block);
        }
    }

    /// Frees all cached blocks and cached host memory, and waits for a background thread that frees memory.
    pub(crate) fn trim(&self, backend: &dyn Backend) {
        let blocks: Vec<Block> = {
            let mut state = self.state.lock();
            std::iter::from_fn(|| state.take_largest()).collect()
        };
        free_all(backend, blocks);
        let host = {
            let mut state = self.state.lock();
            state.host_cached = 0;
            std::mem::take(&mut state.host_free)
        };
        free_all_host(backend, host);
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| state.is_reclaiming);
    }
}

/// Frees blocks that [`PoolState::take_largest`] removed.
fn free_all(backend: &dyn Backend, blocks: impl IntoIterator<Item = Block>) {
    for (address, class) in blocks {
        // SAFETY: a cached block was allocated with its size class and is in no buffer; streams keep buffers until the
        // work on them is done.
        unsafe { backend.free(address, class) };
    }
}

/// Frees host memory that no buffer owns.
fn free_all_host(backend: &dyn Backend, blocks: impl IntoIterator<Item = Block>) {
    for (address, bytes) in blocks {
        // SAFETY: `HostBuffer` gives its own allocation back once, with its size; streams keep host buffers until the
        // copies are done.
        unsafe { backend.free_host(address, bytes) };
    }
}

/// Bytes that are allocated for `bytes` of host memory.
fn host_size(bytes: usize) -> usize {
    if bytes > HOST_BYTES_MAX { bytes } else { bytes.max(HOST_BYTES_MIN).next_power_of_two() }
}

/// A share of the budget, released when dropped.
#[derive(Debug)]
pub struct Reservation {
    pool: Arc<MemoryPool>,
    bytes: u64,
}

impl Reservation {
    /// Bytes reserved.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Moves `bytes`, at most all, into a reservation of their own, for example for a column that stays resident.
    pub fn split(&mut self, bytes: u64) -> Reservation {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Reservation { pool: self.pool.clone(), bytes }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.pool.state.lock().usage.reserved -= self.bytes;
            self.pool.changed.notify_all();
        }
    }
}

/// The size class of `bytes`, in bytes.
pub fn size_class(bytes: usize) -> usize {
    let bytes = bytes.max(CLASS_BYTES_MIN);
    let step = bytes.next_power_of_two() / 2 / CLASSES_PER_POWER;
    bytes.next_multiple_of(step.clamp(CLASS_BYTES_MIN, CLASS_STEP_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_never_exceed_the_budget_and_are_released() {
        let pool = Arc::new(MemoryPool::new(100));
        let mut first = pool.try_reserve(70).unwrap();
        assert!(pool.try_reserve(31).is_none());
        let kept = first.split(50);
        drop(first);
        assert_eq!(pool.usage().reserved, 50);
        let second = pool.try_reserve(50).unwrap();
        assert_eq!(pool.available(), 0);
        drop((kept, second));
        assert_eq!(pool.usage().reserved, 0);
        assert_eq!(pool.usage().reserved_peak, 100);
    }

    #[test]
    fn size_classes_hold_their_bytes_and_waste_at_most_a_sixteenth() {
        for bytes in (1..200_000_000).step_by(9_973) {
            let class = size_class(bytes);
            assert!(class >= bytes && class.is_multiple_of(CLASS_BYTES_MIN), "{bytes} -> {class}");
            assert!(class - bytes <= (bytes / CLASSES_PER_POWER).max(CLASS_BYTES_MIN), "{bytes} -> {class}");
            assert_eq!(size_class(class), class);
        }
    }
}
