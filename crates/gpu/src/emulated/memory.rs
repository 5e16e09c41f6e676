//! Memory of the emulated device: every buffer lies between two guards, and its content is poison until it is written.
//!
//! An *allocation* is a block of the pool, rounded up to a size class; a *buffer* is the part of it in use. The guard
//! behind a buffer begins at its end, not at that of its size class. Guards are checked after each launch and at each
//! synchronisation, and so are the *redzones* declared within a buffer, which uploads, fills and copies may only cover
//! as a whole. A block on the pool's free list holds poison; a write to it is found when its next buffer begins. A
//! finding of a call that returns no error is reported by the next check.

use std::alloc::{Layout, handle_alloc_error};
use std::collections::BTreeMap;
use std::ops::Range;

use libloading::os::unix::Library;
use parking_lot::Mutex;

use crate::error::{GpuError, Result};

/// Alignment of allocations in bytes.
const ALIGNMENT: usize = 256;
/// Unused bytes before and after an allocation.
const GUARD_BYTES: usize = 512;
/// Limit of guarded bytes behind a buffer: size classes of large buffers leave up to 2 MiB there.
const TAIL_BYTES_MAX: usize = 1024;
/// Content of guards, of fresh memory and of blocks on the free list.
const GUARD: u8 = 0xfd;
const FRESH: u8 = 0xcb;
const RETURNED: u8 = 0xdd;

/// Guard bytes to compare with.
const GUARDS: [u8; TAIL_BYTES_MAX] = [GUARD; TAIL_BYTES_MAX];

pub(super) struct Memory {
    total: u64,
    state: Mutex<State>,
    sanitizer: Option<Sanitizer>,
}

#[derive(Default)]
struct State {
    used: u64,
    allocations: BTreeMap<u64, Allocation>,
    /// The first finding of a call that returns no error.
    finding: Option<String>,
}

#[derive(Default)]
struct Allocation {
    capacity: usize,
    /// Bytes of the buffer; none while the allocation is on the pool's free list.
    buffer: Option<usize>,
    purpose: String,
    /// Unused ranges of the buffer, in bytes from its start.
    redzones: Vec<Range<usize>>,
}

/// Interface of the address sanitizer.
struct Sanitizer {
    poison: unsafe extern "C" fn(*const u8, usize),
    unpoison: unsafe extern "C" fn(*const u8, usize),
}

impl Memory {
    pub(super) fn new(total: u64, sanitize: bool) -> Memory {
        let sanitizer = if sanitize { Sanitizer::find() } else { None };
        Memory { total, state: Mutex::default(), sanitizer }
    }

    pub(super) fn free_bytes(&self) -> u64 {
        self.total - self.state.lock().used
    }

    pub(super) fn allocate(&self, bytes: usize) -> Result<u64> {
        let mut state = self.state.lock();
        let free = self.total - state.used;
        if bytes as u64 > free {
            let operation = "an allocation on the emulated device".to_string();
            return Err(GpuError::OutOfMemory { operation, wanted: bytes as u64, free, budget: self.total });
        }
        // SAFETY: the layout's size is not zero, as guards belong to it.
        let base = unsafe { std::alloc::alloc(layout(bytes)) };
        if base.is_null() {
            handle_alloc_error(layout(bytes));
        }
        // SAFETY: the allocation has `bytes` and two guards.
        let address = unsafe {
            base.write_bytes(GUARD, GUARD_BYTES);
            base.add(GUARD_BYTES).write_bytes(RETURNED, bytes);
            base.add(GUARD_BYTES + bytes).write_bytes(GUARD, GUARD_BYTES);
            base.add(GUARD_BYTES)
        };
        state.used += bytes as u64;
        let allocation = Allocation { capacity: bytes, ..Allocation::default() };
        state.allocations.insert(address as u64, allocation);
        Ok(address as u64)
    }

    pub(super) fn free(&self, address: u64) {
        let mut state = self.state.lock();
        let Some(allocation) = state.allocations.remove(&address) else { return };
        state.used -= allocation.capacity as u64;
        state.report(allocation.written_after_return(address));
        let base = (address as usize - GUARD_BYTES) as *mut u8;
        let layout = layout(allocation.capacity);
        self.unpoison(base as usize, layout.size());
        // SAFETY: `base` came from `alloc` with this layout, and the entry was just removed: it is freed once.
        unsafe { std::alloc::dealloc(base, layout) };
    }

    /// A buffer of `bytes` begins at this allocation's start.
    pub(super) fn begin_buffer(&self, address: u64, bytes: usize, purpose: &str) {
        let mut state = self.state.lock();
        let Some(allocation) = state.allocations.get_mut(&address) else { return };
        let finding = allocation.written_after_return(address);
        allocation.buffer = Some(bytes);
        allocation.purpose = purpose.to_string();
        let tail = allocation.tail_bytes();
        let start = address as *mut u8;
        // SAFETY: buffer and tail lie within the allocation and its guard, and no handle of the buffer exists yet.
        unsafe {
            start.write_bytes(FRESH, bytes);
            start.add(bytes).write_bytes(GUARD, tail);
        }
        self.poison(address as usize - GUARD_BYTES, GUARD_BYTES);
        self.poison(address as usize + bytes, tail);
        state.report(finding);
    }

    /// The buffer at this address ends.
    pub(super) fn end_buffer(&self, address: u64) {
        let mut state = self.state.lock();
        let Some(allocation) = state.allocations.get_mut(&address) else { return };
        allocation.guards(address).for_each(|(first, bytes)| self.unpoison(first, bytes));
        let finding = allocation.damage(address);
        (allocation.buffer, allocation.redzones) = (None, Vec::new());
        // SAFETY: the range is that of the allocation, and no handle of its buffer is left.
        unsafe { (address as *mut u8).write_bytes(RETURNED, allocation.capacity) };
        state.report(finding);
    }

    /// Declares the unused ranges of a buffer, in bytes from `address`; they replace earlier ones.
    pub(super) fn set_redzones(&self, address: u64, redzones: &[Range<usize>]) {
        let mut state = self.state.lock();
        let Some((start, allocation)) = state.allocations.range_mut(..=address).next_back() else { return };
        let offset = (address - start) as usize;
        let bytes = allocation.buffer.unwrap_or_default();
        for range in std::mem::take(&mut allocation.redzones) {
            self.unpoison(*start as usize + range.start, range.len());
        }
        for range in redzones.iter().map(|range| range.start + offset..range.end + offset) {
            assert!(range.end <= bytes, "a redzone lies in its buffer");
            let first = (*start as usize + range.start) as *mut u8;
            // SAFETY: the range lies in a live buffer, whose owner declares it unused.
            unsafe { first.write_bytes(GUARD, range.len()) };
            self.poison(first as usize, range.len());
            allocation.redzones.push(range);
        }
    }

    /// Writes the first byte of a redzone in each buffer that has one, as a defective kernel does.
    pub(super) fn damage_redzones(&self) {
        for (start, allocation) in &self.state.lock().allocations {
            if let Some(range) = allocation.redzones.iter().find(|range| !range.is_empty()) {
                // SAFETY: a redzone lies in a live buffer, and nothing but this module may write to it.
                unsafe { ((*start as usize + range.start) as *mut u8).write(0) };
            }
        }
    }

    /// True if the address lies in an allocation or in its guards.
    pub(super) fn holds(&self, address: u64) -> bool {
        let state = self.state.lock();
        let Some((start, allocation)) =
            state.allocations.range(..=address.saturating_add(GUARD_BYTES as u64)).next_back()
        else {
            return false;
        };
        address < start + (allocation.capacity + GUARD_BYTES) as u64
    }

    /// Runs `operation`, which reads a range, if the range lies within one buffer.
    pub(super) fn read(&self, what: &str, address: u64, bytes: usize, operation: impl FnOnce()) -> Result<()> {
        self.access(what, address, bytes, false, operation)
    }

    /// Runs `operation`, which writes a range, if the range lies within one buffer.
    pub(super) fn write(&self, what: &str, address: u64, bytes: usize, operation: impl FnOnce()) -> Result<()> {
        self.access(what, address, bytes, true, operation)
    }

    fn access(&self, what: &str, address: u64, bytes: usize, writes: bool, operation: impl FnOnce()) -> Result<()> {
        let state = self.state.lock();
        let (start, allocation) = state
            .allocations
            .range(..=address)
            .next_back()
            .ok_or_else(|| GpuError::Emulator(format!("{what} at an address below all buffers")))?;
        let offset = (address - start) as usize;
        let lent = allocation.buffer.unwrap_or_default();
        let place = || format!("{what} of {bytes} bytes at byte {offset} of the buffer '{}'", allocation.purpose);
        if offset.checked_add(bytes).is_none_or(|end| end > lent) {
            return Err(GpuError::Emulator(format!("{} of {lent} bytes", place())));
        }
        let touched = |range: &&Range<usize>| range.start < offset + bytes && offset < range.end;
        let covered: Vec<&Range<usize>> = allocation.redzones.iter().filter(touched).collect();
        if let Some(range) = covered.iter().find(|range| range.start < offset || range.end > offset + bytes) {
            return Err(GpuError::Emulator(format!("{} touches the redzone at {range:?}", place())));
        }
        let ranges: Vec<(*mut u8, usize)> =
            covered.iter().map(|range| ((*start as usize + range.start) as *mut u8, range.len())).collect();
        // Under the lock no buffer ends, no other stream copies or fills, no host writes a word, and no check compares
        // the covered redzones before they hold guard bytes again.
        ranges.iter().for_each(|(first, bytes)| self.unpoison(*first as usize, *bytes));
        operation();
        for (first, bytes) in ranges {
            if writes {
                // SAFETY: a redzone lies in a live buffer, and nothing but this module may write to it.
                unsafe { first.write_bytes(GUARD, bytes) };
            }
            self.poison(first as usize, bytes);
        }
        Ok(())
    }

    /// Checks the guards of all buffers and restores them; `after` names the last operation.
    pub(super) fn check_guards(&self, after: &str) -> Result<()> {
        let mut state = self.state.lock();
        let mut finding = state.finding.take();
        if self.sanitizer.is_none() {
            for (address, allocation) in state.allocations.iter().filter(|(_, allocation)| allocation.buffer.is_some())
            {
                if let Some(damage) = allocation.damage(*address) {
                    allocation.restore(*address);
                    finding.get_or_insert(damage);
                }
            }
        }
        finding.map_or(Ok(()), |finding| Err(GpuError::Emulator(format!("{finding}; found after {after}"))))
    }

    fn poison(&self, start: usize, bytes: usize) {
        if let Some(sanitizer) = &self.sanitizer {
            // SAFETY: the range is a guard of a live allocation; no code reads it while it is poisoned.
            unsafe { (sanitizer.poison)(start as *const u8, bytes) };
        }
    }

    fn unpoison(&self, start: usize, bytes: usize) {
        if let Some(sanitizer) = &self.sanitizer {
            // SAFETY: the range belongs to a live allocation.
            unsafe { (sanitizer.unpoison)(start as *const u8, bytes) };
        }
    }
}

impl State {
    /// Keeps the first finding for the next check.
    fn report(&mut self, finding: Option<String>) {
        self.finding = self.finding.take().or(finding);
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let addresses: Vec<u64> = self.state.lock().allocations.keys().copied().collect();
        addresses.into_iter().for_each(|address| self.free(address));
    }
}

impl Allocation {
    /// Guarded bytes behind the buffer.
    fn tail_bytes(&self) -> usize {
        (self.capacity - self.buffer.unwrap_or_default() + GUARD_BYTES).min(TAIL_BYTES_MAX)
    }

    /// Guards and redzones of the buffer, addresses and bytes.
    fn guards(&self, address: u64) -> impl Iterator<Item = (usize, usize)> {
        let (start, end) = (address as usize, address as usize + self.buffer.unwrap_or_default());
        let redzones = self.redzones.iter().map(move |range| (start + range.start, range.len()));
        [(end, self.tail_bytes()), (start - GUARD_BYTES, GUARD_BYTES)].into_iter().chain(redzones)
    }

    /// The first write to a guard or a redzone of the buffer, if there is one.
    fn damage(&self, address: u64) -> Option<String> {
        let bytes = self.buffer?;
        self.guards(address).find_map(|(first, length)| {
            // SAFETY: guards and buffer lie within one live allocation; only a defective kernel writes to guards, and
            // any value read is a finding then.
            let content = unsafe { std::slice::from_raw_parts(first as *const u8, length) };
            if content.chunks(GUARDS.len()).all(|chunk| *chunk == GUARDS[..chunk.len()]) {
                return None;
            }
            let byte = (first + content.iter().position(|byte| *byte != GUARD)?) as i64 - address as i64;
            let redzone = self.redzones.iter().find(|range| byte >= 0 && range.contains(&(byte as usize)));
            let place = redzone.map_or(String::new(), |range| format!(", in the redzone at {range:?}"));
            Some(format!("byte {byte} of the buffer '{}' of {bytes} bytes was written{place}", self.purpose))
        })
    }

    /// Writes guards and redzones again.
    fn restore(&self, address: u64) {
        for (first, bytes) in self.guards(address) {
            // SAFETY: as for `damage`; nothing but this module may write to guards.
            unsafe { (first as *mut u8).write_bytes(GUARD, bytes) };
        }
    }

    /// A write to a block on the pool's free list, if there is one among its first bytes.
    fn written_after_return(&self, address: u64) -> Option<String> {
        if self.buffer.is_some() {
            return None;
        }
        let bytes = self.capacity.min(TAIL_BYTES_MAX);
        // SAFETY: the range lies within a live allocation that no buffer holds.
        let content = unsafe { std::slice::from_raw_parts(address as *const u8, bytes) };
        let position = content.iter().position(|byte| *byte != RETURNED)?;
        Some(format!("byte {position} of the buffer '{}' was written after its last handle was dropped", self.purpose))
    }
}

impl Sanitizer {
    /// The address sanitizer of this process, if one is loaded.
    fn find() -> Option<Sanitizer> {
        let process = Library::this();
        // SAFETY: the sanitizer's interface has these names and signatures, and is never unloaded.
        unsafe {
            Some(Sanitizer {
                poison: *process.get(c"__asan_poison_memory_region").ok()?,
                unpoison: *process.get(c"__asan_unpoison_memory_region").ok()?,
            })
        }
    }
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes + 2 * GUARD_BYTES, ALIGNMENT).expect("an allocation is far below isize::MAX")
}
