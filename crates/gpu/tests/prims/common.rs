//! What tests of primitives share: lengths, inputs, shapes of tiles.

use bytemuck::Pod;
use warpcube_gpu::prims::{DeviceSlice, Element, TileTuning};
use warpcube_gpu::{Device, DeviceBuffer, EmulatorOptions, GpuError};

use crate::emulated_support::{BUDGET, Rig};

/// Small tiles: many of them fit into a short test.
pub const SMALL: TileTuning = TileTuning { threads: 64, rows: 2, blocks: 1 };

/// Lengths around a warp, a vector and a tile, and several tiles.
pub fn lengths(tile: u64) -> Vec<usize> {
    let edges = [1, 32, 1024, tile].into_iter().flat_map(|edge| [edge - 1, edge, edge + 1]);
    let mut lengths: Vec<usize> = edges.chain([3 * tile, 3 * tile + 17]).map(|length| length as usize).collect();
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

/// Numbers that look random and are the same in every run.
pub fn noise(seed: u64) -> impl Iterator<Item = u64> {
    let mix = |mut x: u64| {
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    };
    (1u64..).map(move |i| mix(seed.wrapping_add(i).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// A device whose blocks have 99 KB of shared memory.
pub fn small_device() -> Rig {
    let options = EmulatorOptions { shared_memory_per_block: 99 << 10, ..EmulatorOptions::default() };
    let device = Device::emulated(options, BUDGET).unwrap();
    let stream = device.stream().unwrap();
    Rig { device, stream }
}

/// Values as a slice of the device.
pub fn given<T: Pod>(rig: &mut Rig, element: Element, values: &[T]) -> DeviceSlice {
    assert_eq!(element.bytes(), size_of::<T>());
    let buffer = rig.upload(values);
    DeviceSlice::new(&buffer, 0, element, values.len() as u64).unwrap()
}

/// What an output holds before a launch: values in reverse order with all bits flipped, which pass for no result.
pub fn spoilt<T: Pod>(rig: &mut Rig, values: &[T]) -> DeviceBuffer {
    rig.upload(&spoil(values))
}

/// Values in reverse order, all bits flipped.
pub fn spoil<T: Pod>(values: &[T]) -> Vec<T> {
    let mut values: Vec<T> = values.iter().rev().copied().collect();
    bytemuck::cast_slice_mut::<T, u8>(&mut values).iter_mut().for_each(|byte| *byte = !*byte);
    values
}

/// Room for so many elements.
pub fn room(rig: &Rig, element: Element, len: usize) -> DeviceSlice {
    let buffer = rig.device.buffer(len * element.bytes(), "room").unwrap();
    DeviceSlice::new(&buffer, 0, element, len as u64).unwrap()
}

pub fn scratch(rig: &Rig, bytes: usize) -> DeviceBuffer {
    rig.device.buffer(bytes, "scratch").unwrap()
}

/// The values of a slice.
pub fn taken<T: Pod>(rig: &mut Rig, slice: &DeviceSlice) -> Vec<T> {
    assert_eq!(slice.element().bytes(), size_of::<T>());
    let mut values = vec![T::zeroed(); slice.len() as usize];
    rig.stream.download(slice.buffer(), slice.offset(), bytemuck::cast_slice_mut(&mut values)).unwrap();
    values
}

/// A refusal with sizes or types in its words.
pub fn assert_refused(result: Result<(), GpuError>, words: &[&str]) {
    let Err(GpuError::Contract(message)) = result else { panic!("not refused: {result:?}") };
    assert!(words.iter().all(|word| message.contains(word)), "{message}: without one of {words:?}");
}
