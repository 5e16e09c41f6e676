//! Memory of one device: a budget that statements reserve from, and free lists that make allocation cheap.
//!
//! It has two ledgers. *Reservations* are promises: a statement reserves all it will need in one step, cached columns
//! hold a reservation for as long as they are resident, and the sum of promises never exceeds the budget.
//! *Allocations* are facts: blocks in use or waiting in a free list by size class. Because allocations are covered by
//! reservations made before, a warm statement allocates nothing from the driver. Blocks that wait go back to the driver
//! before one more is allocated beyond the budget; those that are surplus go back from a thread that nothing waits for,
//! since the driver waits for the device while it frees memory. Blocks in use exceed the budget only as far as no
//! reservation covers them, or work in flight keeps them for longer than theirs was kept; the driver refuses what the
//! device lacks.

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

/// Budget, promises and blocks of one device.
#[derive(Debug)]
pub struct MemoryPool {
    state: Mutex<PoolState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct PoolState {
    budget: u64,
    reserved: u64,
    reserved_peak: u64,
    live: u64,
    live_peak: u64,
    cached: u64,
    held_peak: u64,
    driver_allocations: u64,
    free: HashMap<usize, Vec<u64>>,
    /// Free blocks, with their size classes, that go back to the driver unless they are taken before.
    surplus: Vec<(u64, usize)>,
    /// Whether a thread gives them back.
    is_reclaiming: bool,
}

impl PoolState {
    /// Takes a block to give it back to the driver: one that is surplus, or else the largest free one.
    fn take_largest(&mut self) -> Option<(u64, usize)> {
        let block = self.surplus.pop().or_else(|| {
            let waiting = self.free.iter().filter(|(_, addresses)| !addresses.is_empty());
            let class = waiting.map(|(class, _)| *class).max()?;
            Some((self.free.get_mut(&class)?.pop()?, class))
        })?;
        self.cached -= block.1 as u64;
        Some(block)
    }
}

/// What the pool holds at a moment, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolUsage {
    /// The most that may be promised.
    pub budget: u64,
    /// Promised to statements and resident columns.
    pub reserved: u64,
    /// Most that was promised at once.
    pub reserved_peak: u64,
    /// In buffers that are alive.
    pub live: u64,
    /// Most that was alive at once.
    pub live_peak: u64,
    /// In free lists.
    pub cached: u64,
    /// Most that was alive or in free lists at once: what the driver had given.
    pub held_peak: u64,
    /// Allocations asked of the driver so far.
    pub driver_allocations: u64,
}

impl MemoryPool {
    pub(crate) fn new(budget: u64) -> MemoryPool {
        MemoryPool { state: Mutex::new(PoolState { budget, ..PoolState::default() }), changed: Condvar::new() }
    }

    /// What the pool holds now.
    pub fn usage(&self) -> PoolUsage {
        let state = self.state.lock();
        PoolUsage {
            budget: state.budget,
            reserved: state.reserved,
            reserved_peak: state.reserved_peak,
            live: state.live,
            live_peak: state.live_peak,
            cached: state.cached,
            held_peak: state.held_peak,
            driver_allocations: state.driver_allocations,
        }
    }

    /// Sets the budget; promises already made stand.
    pub fn set_budget(&self, bytes: u64) {
        self.state.lock().budget = bytes;
        self.changed.notify_all();
    }

    /// Promises `bytes`, or nothing if the budget has no room for all of them.
    pub fn try_reserve(self: &Arc<Self>, bytes: u64) -> Option<Reservation> {
        let mut state = self.state.lock();
        if state.reserved.saturating_add(bytes) > state.budget {
            return None;
        }
        state.reserved += bytes;
        state.reserved_peak = state.reserved_peak.max(state.reserved);
        Some(Reservation { pool: self.clone(), bytes })
    }

    /// Bytes that could be promised now.
    pub fn available(&self) -> u64 {
        let state = self.state.lock();
        state.budget.saturating_sub(state.reserved)
    }

    /// Waits until some promise was given back or `timeout` has passed. Callers hold no reservation meanwhile.
    pub fn wait_for_release(&self, timeout: Duration) {
        let mut state = self.state.lock();
        self.changed.wait_for(&mut state, timeout);
    }

    /// Takes a block of the size class of `bytes` from the free list or the driver.
    pub(crate) fn allocate(&self, backend: &dyn Backend, bytes: usize, purpose: &str) -> Result<(u64, usize)> {
        let class = size_class(bytes);
        if let Some(address) = self.take_cached(class) {
            return Ok((address, class));
        }
        self.make_room(backend, class, purpose)?;
        let allocated = match backend.allocate(class) {
            Err(GpuError::OutOfMemory { .. }) => {
                self.trim(backend);
                backend.allocate(class).map_err(|error| self.explain(error, class, purpose))
            }
            other => other,
        };
        let mut state = self.state.lock();
        match allocated {
            Ok(address) => {
                state.driver_allocations += 1;
                Ok((address, class))
            }
            Err(error) => {
                state.live -= class as u64;
                Err(error)
            }
        }
    }

    fn take_cached(&self, class: usize) -> Option<u64> {
        let mut state = self.state.lock();
        let free = state.free.get_mut(&class).and_then(Vec::pop);
        let surplus = |state: &mut PoolState| {
            let place = state.surplus.iter().position(|(_, other)| *other == class)?;
            Some(state.surplus.swap_remove(place).0)
        };
        let address = free.or_else(|| surplus(&mut state))?;
        state.cached -= class as u64;
        state.live += class as u64;
        state.live_peak = state.live_peak.max(state.live);
        Some(address)
    }

    /// Counts another `class` bytes as alive, and gives free blocks back to the driver, the largest first, until all
    /// stay within the budget or none is left. A block that is larger than the budget, and than all that was promised
    /// under another one, can never fit and is refused.
    fn make_room(&self, backend: &dyn Backend, class: usize, purpose: &str) -> Result<()> {
        let mut blocks = Vec::new();
        {
            let mut state = self.state.lock();
            let most = state.budget.max(state.reserved);
            if class as u64 > most {
                let (free, budget) = (most.saturating_sub(state.live), state.budget);
                return Err(GpuError::OutOfMemory {
                    operation: purpose.to_string(),
                    wanted: class as u64,
                    free,
                    budget,
                });
            }
            state.live += class as u64;
            while state.cached > 0 && state.live + state.cached > state.budget {
                let Some(block) = state.take_largest() else { break };
                blocks.push(block);
            }
            state.live_peak = state.live_peak.max(state.live);
            state.held_peak = state.held_peak.max(state.live + state.cached);
        }
        for (address, class) in blocks {
            // SAFETY: as for `trim`.
            unsafe { backend.free(address, class) };
        }
        Ok(())
    }

    fn explain(&self, error: GpuError, class: usize, purpose: &str) -> GpuError {
        match error {
            GpuError::OutOfMemory { free, .. } => {
                let budget = self.usage().budget;
                GpuError::OutOfMemory { operation: purpose.to_string(), wanted: class as u64, free, budget }
            }
            other => other,
        }
    }

    /// Puts a block on its free list.
    pub(crate) fn release(&self, address: u64, class: usize) {
        let mut state = self.state.lock();
        state.live -= class as u64;
        state.cached += class as u64;
        state.free.entry(class).or_default().push(address);
    }

    /// Makes the free blocks of one size class surplus; whether [`MemoryPool::reclaim`] is to be called for them.
    pub(crate) fn discard(&self, class: usize) -> bool {
        let mut state = self.state.lock();
        let blocks = state.free.remove(&class).unwrap_or_default();
        state.surplus.extend(blocks.into_iter().map(|address| (address, class)));
        !state.surplus.is_empty() && !std::mem::replace(&mut state.is_reclaiming, true)
    }

    /// Gives surplus blocks back to the driver.
    pub(crate) fn reclaim(&self, backend: &dyn Backend) {
        let next = || {
            let mut state = self.state.lock();
            let is_surplus = !state.surplus.is_empty();
            state.is_reclaiming = is_surplus;
            self.changed.notify_all();
            is_surplus.then(|| state.take_largest()).flatten()
        };
        while let Some((address, class)) = next() {
            // SAFETY: as for `trim`.
            unsafe { backend.free(address, class) };
        }
    }

    /// Gives all free blocks back to the driver, and waits for those that another thread gives back.
    pub(crate) fn trim(&self, backend: &dyn Backend) {
        let blocks: Vec<(u64, usize)> = {
            let mut state = self.state.lock();
            std::iter::from_fn(|| state.take_largest()).collect()
        };
        for (address, class) in blocks {
            // SAFETY: blocks that are free or surplus were allocated with their class size, are in no buffer, and
            // streams keep buffers alive until the work on them is done.
            unsafe { backend.free(address, class) };
        }
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| state.is_reclaiming);
    }
}

/// A promise of device memory, given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    pool: Arc<MemoryPool>,
    bytes: u64,
}

impl Reservation {
    /// Bytes promised.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes `bytes` (at most all) off this promise into one of its own, for example for a column that stays.
    pub fn split(&mut self, bytes: u64) -> Reservation {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Reservation { pool: self.pool.clone(), bytes }
    }

    /// Gives back all but `bytes` of the promise.
    pub fn shrink_to(&mut self, bytes: u64) {
        drop(self.split(self.bytes.saturating_sub(bytes)));
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.pool.state.lock().reserved -= self.bytes;
            self.pool.changed.notify_all();
        }
    }
}

/// The size a block of `bytes` is rounded up to.
pub fn size_class(bytes: usize) -> usize {
    let bytes = bytes.max(CLASS_BYTES_MIN);
    let step = bytes.next_power_of_two() / 2 / CLASSES_PER_POWER;
    bytes.next_multiple_of(step.clamp(CLASS_BYTES_MIN, CLASS_STEP_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises_never_exceed_the_budget_and_come_back() {
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
