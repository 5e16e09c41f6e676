// A loop of several blocks over all elements of a slice, by loads of 16 bytes, several in flight.
#pragma once

// Calls `each` with the bits of every element and of the one before it, in no order; the first one is before itself.
// The calling block is `block` of `blocks`. Block 0, of 16 threads at least, has the elements in front of the first
// multiple of 16 bytes and behind the last.
template <typename Bits, typename Each>
WC_DEVICE void wc_each_pair(const Bits* keys, uint64_t rows, uint32_t block, uint32_t blocks, Each each) {
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
            const uint64_t at = base + k * blockDim.x + threadIdx.x;
            if (at >= vectors) continue;
            Bits found[EACH];
            memcpy(found, &loaded[k], 16);
            const uint64_t first = head + at * EACH;
            each(found[0], keys[first > 0 ? first - 1 : 0]);
#pragma unroll
            for (uint32_t i = 1; i < EACH; ++i) each(found[i], found[i - 1]);
        }
    }
    if (block > 0) return;
    if (threadIdx.x < head) each(keys[threadIdx.x], keys[threadIdx.x > 0 ? threadIdx.x - 1 : 0]);
    const uint64_t last = head + vectors * EACH + threadIdx.x;
    if (last < rows) each(keys[last], keys[last > 0 ? last - 1 : 0]);
}

// The same without the element before.
template <typename Bits, typename Each>
WC_DEVICE void wc_each_key(const Bits* keys, uint64_t rows, uint32_t block, uint32_t blocks, Each each) {
    wc_each_pair(keys, rows, block, blocks, [&](Bits key, Bits) { each(key); });
}

// The same by all blocks of the grid.
template <typename Bits, typename Each> WC_DEVICE void wc_each_key(const Bits* keys, uint64_t rows, Each each) {
    wc_each_key(keys, rows, blockIdx.x, gridDim.x, each);
}
