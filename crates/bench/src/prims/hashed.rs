//! Inputs from a counter-based hash, made on the device.

use warpcube_gpu::prims::{DeviceSlice, Element};
use warpcube_gpu::{Device, DeviceBuffer, GpuError, Kernel, LaunchShape, Params, Program, Stream};

use super::keyed::KEYED;

/// Threads of a block of the kernels below, which walk over their rows.
const BLOCK: u32 = 256;

/// The kernels: numbers of 32 bits, floats in [0, 1), and heads of runs that a row begins with the probability
/// `threshold / 2^32`, each by the hash of seed and row (the finaliser of splitmix64); heads of runs whose lengths are
/// those of `threshold` values by Zipf's law with the exponent 1, the most frequent first.
const TEXT: &str = "struct HashedParams { void* out; uint64_t n; uint64_t seed; uint64_t threshold; };

WC_KERNEL(hashed_u32, HashedParams, 256, 1) {
    for (uint64_t row = wc_first(); row < p.n; row += wc_stride()) {
        ((uint32_t*)p.out)[row] = (uint32_t)wc_hash(p.seed, row);
    }
}
WC_KERNEL(hashed_f32, HashedParams, 256, 1) {
    for (uint64_t row = wc_first(); row < p.n; row += wc_stride()) {
        ((float*)p.out)[row] = (float)(wc_hash(p.seed, row) >> 40) * (1.0f / 16777216.0f);
    }
}
WC_KERNEL(hashed_heads, HashedParams, 256, 1) {
    for (uint64_t row = wc_first(); row < p.n; row += wc_stride()) {
        ((uint32_t*)p.out)[row] = row == 0 || wc_hash(p.seed, row) >> 32 < p.threshold ? 1u : 0u;
    }
}
// Value k ends where the sum of 1, 1/2, …, 1/k, about log(k), has its share of the rows.
WC_DEVICE uint64_t wc_zipf(double rate, uint64_t row) { return (uint64_t)exp(rate * (double)row); }
WC_KERNEL(hashed_zipf, HashedParams, 256, 1) {
    const double rate = log((double)p.threshold) / (double)p.n;
    for (uint64_t row = wc_first(); row < p.n; row += wc_stride()) {
        ((uint32_t*)p.out)[row] = row == 0 || wc_zipf(rate, row) != wc_zipf(rate, row - 1) ? 1u : 0u;
    }
}
";

/// Room for so many elements.
pub(super) fn room(device: &Device, element: Element, len: u64) -> Result<DeviceSlice, GpuError> {
    let bytes = len as usize * element.bytes();
    DeviceSlice::new(&device.buffer(bytes, "a benchmark")?, 0, element, len)
}

/// Scratch memory.
pub(super) fn scratch(device: &Device, bytes: usize) -> Result<DeviceBuffer, GpuError> {
    device.buffer(bytes, "scratch memory of a benchmark")
}

/// One kernel of a program.
pub(super) fn kernel(device: &Device, name: &str, text: &str) -> Result<Kernel, GpuError> {
    device.compile(&Program::new(name, text))?.kernel(name)
}

/// A launch of blocks that walk over all rows.
pub(super) fn walk(device: &Device) -> LaunchShape {
    LaunchShape { grid: device.info().multiprocessors * 8, block: BLOCK, shared_bytes: 0 }
}

/// Random numbers of 32 bits.
pub(super) fn numbers(device: &Device, stream: &mut Stream, n: u64, seed: u64) -> Result<DeviceSlice, GpuError> {
    fill(device, stream, "hashed_u32", Element::U32, [n, seed, 0])
}

/// Random floats in [0, 1).
pub(super) fn floats(device: &Device, stream: &mut Stream, n: u64, seed: u64) -> Result<DeviceSlice, GpuError> {
    fill(device, stream, "hashed_f32", Element::F32, [n, seed, 0])
}

/// Ones where a run begins, of about so many runs, and zeros.
pub(super) fn heads(device: &Device, stream: &mut Stream, n: u64, runs: u64) -> Result<DeviceSlice, GpuError> {
    let threshold = ((u128::from(runs) << 32) / u128::from(n)) as u64;
    fill(device, stream, "hashed_heads", Element::U32, [n, runs, threshold])
}

/// Ones where a run begins, of so many runs with lengths by Zipf's law, and zeros.
pub(super) fn zipf_heads(device: &Device, stream: &mut Stream, n: u64, runs: u64) -> Result<DeviceSlice, GpuError> {
    fill(device, stream, "hashed_zipf", Element::U32, [n, 0, runs])
}

fn fill(
    device: &Device,
    stream: &mut Stream,
    name: &str,
    element: Element,
    [n, seed, threshold]: [u64; 3],
) -> Result<DeviceSlice, GpuError> {
    let module = device.compile(&Program::new("hashed", [KEYED, TEXT].concat()))?;
    let out = room(device, element, n)?;
    let params = Params::new().slice(&out).u64(n).u64(seed).u64(threshold);
    stream.launch(&module.kernel(name)?, walk(device), &params)?;
    stream.synchronize()?;
    Ok(out)
}

/// The bytes of elements `from .. from + len` of a slice, on the host.
pub(super) fn taken<const N: usize>(
    stream: &mut Stream,
    slice: &DeviceSlice,
    from: u64,
    len: u64,
) -> Result<Vec<[u8; N]>, GpuError> {
    let part = slice.part(from, len)?;
    let mut bytes = vec![0u8; len as usize * N];
    stream.download(part.buffer(), part.offset(), &mut bytes)?;
    Ok(bytes.as_chunks::<N>().0.to_vec())
}

/// A word of 8 bytes.
pub(super) fn word(stream: &mut Stream, slice: &DeviceSlice, at: u64) -> Result<u64, GpuError> {
    Ok(u64::from_le_bytes(taken::<8>(stream, slice, at, 1)?[0]))
}
