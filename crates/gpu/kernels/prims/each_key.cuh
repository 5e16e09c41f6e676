// A loop of several blocks over all elements of a slice, by loads of 16 bytes, several in flight.
#pragma once

// Calls `each` with the bits of every element, in no order; the calling block is `block` of `blocks`. Block 0, of 16
// threads at least, has the elements in front of the first multiple of 16 bytes and behind the last.
template <typename Bits, typename Each>
WC_DEVICE void wc_each_key(const Bits* keys, uint64_t rows, uint32_t block, uint32_t blocks, Each each) {
    constexpr uint32_t EACH = 16 / sizeof(Bits), LOADS = 4;
    const uint64_t start = (16 - (uint64_t)keys % 16) % 16 / sizeof(Bits);
    const uint64_t head = start < rows ? start : rows, vectors = (rows - head) / EACH;
    const Bits* aligned = keys + head;
    const uint64_t step = (uint64_t)blockDim.x * LOADS;
    for (uint64_t base = block * step; base < vectors; base += blocks * step) {
        int4 loaded[LOADS];
#pragma unroll
        for (uint32_t k = 0; k < LOADS; ++k) {
            const uint64_t at = base + k * blockDim.x + threadIdx.x;
            if (at < vectors) loaded[k] = wc_load16_stream(aligned + at * EACH);
        }
#pragma unroll
        for (uint32_t k = 0; k < LOADS; ++k) {
            if (base + k * blockDim.x + threadIdx.x >= vectors) continue;
            Bits found[EACH];
            memcpy(found, &loaded[k], 16);
#pragma unroll
            for (uint32_t i = 0; i < EACH; ++i) each(found[i]);
        }
    }
    if (block > 0) return;
    if (threadIdx.x < head) each(keys[threadIdx.x]);
    const uint64_t tail = head + vectors * EACH;
    if (tail + threadIdx.x < rows) each(keys[tail + threadIdx.x]);
}

// The same by all blocks of the grid.
template <typename Bits, typename Each> WC_DEVICE void wc_each_key(const Bits* keys, uint64_t rows, Each each) {
    wc_each_key(keys, rows, blockIdx.x, gridDim.x, each);
}
