//! Memory of the emulated device: every buffer between two guards, content poisoned until it is written.
//!
//! An *allocation* is what the pool asks for, rounded up to a size class; a *buffer* is the part of it that is lent to
//! a user. The guard behind a buffer begins at its last byte, not at that of its size class. Guards are looked at after
//! each launch and at each synchronisation, and so are the *redzones* that a user names within his buffer, which
//! uploads, fills and copies may only cover as a whole; a block on the pool's free list holds poison, and a write to it
//! is found when it is lent again. What is found while a buffer is dropped is reported by the next look.

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ops::Range;

use libloading::os::unix::Library;
use parking_lot::Mutex;

use crate::error::{GpuError, Result};

/// Alignment of allocations in bytes.
const ALIGNMENT: usize = 256;
/// Unused bytes before and after an allocation.
const GUARD_BYTES: usize = 512;
/// Most bytes behind a buffer that are watched: size classes of large buffers leave up to 2 MiB there.
const TAIL_BYTES_MAX: usize = 1024;
/// What guards, fresh memory and returned memory hold.
const GUARD: u8 = 0xfd;
const FRESH: u8 = 0xcb;
const RETURNED: u8 = 0xdd;

/// A run of guard bytes to compare with.
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
    /// What was found with no caller to tell.
    finding: Option<String>,
}

struct Allocation {
    capacity: usize,
    /// Bytes of the buffer, none while the allocation is on the pool's free list.
    lent: Option<usize>,
    purpose: String,
    /// Unused ranges of the buffer, in bytes from its start.
    redzones: Vec<Range<usize>>,
}

/// Calls by which the address sanitizer is told what may not be touched.
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
        let full = || GpuError::OutOfMemory {
            operation: "an allocation on the emulated device".into(),
            wanted: bytes as u64,
            free,
            budget: self.total,
        };
        if bytes as u64 > free {
            return Err(full());
        }
        // SAFETY: the layout's size is not zero, as guards belong to it.
        let base = unsafe { std::alloc::alloc(layout(bytes)) };
        if base.is_null() {
            return Err(full());
        }
        // SAFETY: the allocation has `bytes` and two guards.
        let address = unsafe {
            base.write_bytes(GUARD, GUARD_BYTES);
            base.add(GUARD_BYTES).write_bytes(RETURNED, bytes);
            base.add(GUARD_BYTES + bytes).write_bytes(GUARD, GUARD_BYTES);
            base.add(GUARD_BYTES)
        };
        state.used += bytes as u64;
        state.allocations.insert(
            address as u64,
            Allocation { capacity: bytes, lent: None, purpose: String::new(), redzones: Vec::new() },
        );
        Ok(address as u64)
    }

    pub(super) fn free(&self, address: u64) {
        let mut state = self.state.lock();
        let Some(allocation) = state.allocations.remove(&address) else { return };
        state.used -= allocation.capacity as u64;
        if let Some(finding) = allocation.written_after_return(address) {
            state.finding.get_or_insert(finding);
        }
        let base = (address as usize - GUARD_BYTES) as *mut u8;
        let layout = layout(allocation.capacity);
        self.permit(base, layout.size());
        // SAFETY: `base` came from `alloc` with this layout, and the entry was just removed: it is freed once.
        unsafe { std::alloc::dealloc(base, layout) };
    }

    /// A buffer of `bytes` begins at this allocation's start.
    pub(super) fn lend(&self, address: u64, bytes: usize, purpose: &str) {
        let mut state = self.state.lock();
        let Some(allocation) = state.allocations.get_mut(&address) else { return };
        let finding = allocation.written_after_return(address);
        allocation.lent = Some(bytes);
        allocation.purpose = purpose.to_string();
        let tail = allocation.tail_bytes();
        let start = address as *mut u8;
        // SAFETY: buffer and tail lie within the allocation and its guard, and no handle of the buffer exists yet.
        unsafe {
            start.write_bytes(FRESH, bytes);
            start.add(bytes).write_bytes(GUARD, tail);
        }
        self.forbid((address as usize - GUARD_BYTES) as *const u8, GUARD_BYTES);
        self.forbid((address as usize + bytes) as *const u8, tail);
        if let Some(finding) = finding {
            state.finding.get_or_insert(finding);
        }
    }

    /// The buffer at this address is gone.
    pub(super) fn take_back(&self, address: u64) {
        let mut state = self.state.lock();
        let Some(allocation) = state.allocations.get_mut(&address) else { return };
        let bytes = allocation.lent.unwrap_or_default();
        self.permit((address as usize - GUARD_BYTES) as *const u8, GUARD_BYTES);
        self.permit((address as usize + bytes) as *const u8, allocation.tail_bytes());
        let finding = allocation.damage(address);
        for range in std::mem::take(&mut allocation.redzones) {
            self.permit((address as usize + range.start) as *const u8, range.len());
        }
        allocation.lent = None;
        // SAFETY: the range is that of the allocation, of which no handle is left.
        unsafe { (address as *mut u8).write_bytes(RETURNED, allocation.capacity) };
        if let Some(finding) = finding {
            state.finding.get_or_insert(finding);
        }
    }

    /// Ranges of a buffer that are unused from now on, in bytes from `address`; they take the place of others.
    pub(super) fn set_redzones(&self, address: u64, redzones: &[Range<usize>]) {
        let mut state = self.state.lock();
        let Some((start, allocation)) = state.allocations.range_mut(..=address).next_back() else { return };
        let offset = (address - start) as usize;
        let lent = allocation.lent.unwrap_or_default();
        for range in std::mem::take(&mut allocation.redzones) {
            self.permit((*start as usize + range.start) as *const u8, range.len());
        }
        for range in redzones.iter().map(|range| range.start + offset..range.end + offset) {
            assert!(range.end <= lent, "a redzone lies in its buffer");
            let first = (*start as usize + range.start) as *mut u8;
            // SAFETY: the range lies in a live buffer whose owner gives it up.
            unsafe { first.write_bytes(GUARD, range.len()) };
            self.forbid(first, range.len());
            allocation.redzones.push(range);
        }
    }

    /// Writes the first byte of a redzone in each buffer that has one, as a kernel that leaves its zone does.
    pub(super) fn damage_redzones(&self) {
        for (start, allocation) in &self.state.lock().allocations {
            if let Some(range) = allocation.redzones.iter().find(|range| !range.is_empty()) {
                // SAFETY: a redzone lies in a live buffer, and nothing but this module may write to it.
                unsafe { ((*start as usize + range.start) as *mut u8).write(0) };
            }
        }
    }

    /// Whether there is an allocation at this address, or right before or behind it.
    pub(super) fn holds(&self, address: u64) -> bool {
        let state = self.state.lock();
        let Some((start, allocation)) =
            state.allocations.range(..=address.saturating_add(GUARD_BYTES as u64)).next_back()
        else {
            return false;
        };
        address < start + (allocation.capacity + GUARD_BYTES) as u64
    }

    /// Lets `operation` read a range, which has to lie within one buffer.
    pub(super) fn read(&self, what: &str, address: u64, bytes: usize, operation: impl FnOnce()) -> Result<()> {
        self.access(what, address, bytes, false, operation)
    }

    /// Lets `operation` write a range, which has to lie within one buffer.
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
        let lent = allocation.lent.unwrap_or_default();
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
        if ranges.is_empty() {
            drop(state);
            operation();
            return Ok(());
        }
        // Guards are not compared before those that the operation covers hold their content again.
        ranges.iter().for_each(|(first, bytes)| self.permit(*first, *bytes));
        operation();
        for (first, bytes) in ranges {
            if writes {
                // SAFETY: a redzone lies in a live buffer, and nothing but this module may write to it.
                unsafe { first.write_bytes(GUARD, bytes) };
            }
            self.forbid(first, bytes);
        }
        Ok(())
    }

    /// Looks at the guards of all buffers and mends them; `after` names what has just run.
    pub(super) fn check_guards(&self, after: &str) -> Result<()> {
        let mut state = self.state.lock();
        let mut finding = state.finding.take();
        if self.sanitizer.is_none() {
            for (address, allocation) in state.allocations.iter().filter(|(_, allocation)| allocation.lent.is_some()) {
                if let Some(damage) = allocation.damage(*address) {
                    allocation.mend(*address);
                    finding.get_or_insert(damage);
                }
            }
        }
        finding.map_or(Ok(()), |finding| Err(GpuError::Emulator(format!("{finding}; found after {after}"))))
    }

    fn forbid(&self, start: *const u8, bytes: usize) {
        if let Some(sanitizer) = &self.sanitizer {
            // SAFETY: the range is a guard of a live allocation, which nothing reads while it is forbidden.
            unsafe { (sanitizer.poison)(start, bytes) };
        }
    }

    fn permit(&self, start: *const u8, bytes: usize) {
        if let Some(sanitizer) = &self.sanitizer {
            // SAFETY: the range belongs to a live allocation.
            unsafe { (sanitizer.unpoison)(start, bytes) };
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let addresses: Vec<u64> = self.state.lock().allocations.keys().copied().collect();
        addresses.into_iter().for_each(|address| self.free(address));
    }
}

impl Allocation {
    /// Watched bytes behind the buffer.
    fn tail_bytes(&self) -> usize {
        (self.capacity - self.lent.unwrap_or_default() + GUARD_BYTES).min(TAIL_BYTES_MAX)
    }

    /// What was written next to the buffer, if anything was.
    fn damage(&self, address: u64) -> Option<String> {
        let lent = self.lent?;
        // SAFETY: guards and buffer lie within one live allocation; only a defective kernel writes to guards, and then
        // any value read is a finding.
        let (before, after) = unsafe {
            let before = std::slice::from_raw_parts((address as usize - GUARD_BYTES) as *const u8, GUARD_BYTES);
            (before, std::slice::from_raw_parts((address as usize + lent) as *const u8, self.tail_bytes()))
        };
        let name = format_args!("the buffer '{}' of {lent} bytes", self.purpose).to_string();
        if after != &GUARDS[..after.len()] {
            let distance = after.iter().position(|byte| *byte != GUARD).unwrap_or_default();
            return Some(format!("byte {} of {name} was written", lent + distance));
        }
        if before != &GUARDS[..before.len()] {
            let distance = GUARD_BYTES - before.iter().rposition(|byte| *byte != GUARD).unwrap_or_default();
            return Some(format!("byte -{distance} of {name} was written"));
        }
        self.redzones.iter().find_map(|range| {
            // SAFETY: as above.
            let redzone =
                unsafe { std::slice::from_raw_parts((address as usize + range.start) as *const u8, range.len()) };
            let distance = redzone.iter().position(|byte| *byte != GUARD)?;
            Some(format!("byte {} of {name} was written, in the redzone at {range:?}", range.start + distance))
        })
    }

    /// Writes both guards anew.
    fn mend(&self, address: u64) {
        let lent = self.lent.unwrap_or_default();
        // SAFETY: as for `damage`; nothing but this module may write to guards.
        unsafe {
            ((address as usize - GUARD_BYTES) as *mut u8).write_bytes(GUARD, GUARD_BYTES);
            ((address as usize + lent) as *mut u8).write_bytes(GUARD, self.tail_bytes());
            for range in &self.redzones {
                ((address as usize + range.start) as *mut u8).write_bytes(GUARD, range.len());
            }
        }
    }

    /// What was written to memory on the pool's free list, if anything was. Only its first bytes are looked at.
    fn written_after_return(&self, address: u64) -> Option<String> {
        if self.lent.is_some() {
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
    /// The address sanitizer of this process, if it was started with one.
    fn find() -> Option<Sanitizer> {
        let process = Library::this();
        // SAFETY: the sanitizer's interface gives these names these signatures, and what is part of the process from
        // its start is not unloaded.
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
