// Histogram: how many keys fall into each bin.
//
// Text in front defines WC_HISTOGRAM_KEY, WC_HISTOGRAM_THREADS and WC_HISTOGRAM_BLOCKS.
// Inputs: keys; for `bounds` kernels `bins` + 1 ascending keys, where bin b has the keys from bound b to below bound
// b + 1; for `codes` kernels bin b has the keys whose bits, shifted right by `shift`, are `first` + b. Keys in no bin
// are not counted. Output: a count of 64 bits a bin, zero before. Mapping: a grid of resident blocks over vectors of 16
// bytes. Shared memory: `columns` counters a bin, of which a lane uses one, and bounds where they fit; without columns
// counts go to memory, one a warp and bin. Bytes: keys once, 8 a bin and block.
// Source: 003 (Shanbhag), 3.6, the histogram phase of radix partitioning; columns as in radix_sort.cuh.
#pragma once

typedef WC_HISTOGRAM_KEY HistogramKey;
typedef WcKey<HistogramKey>::Bits HistogramBits;

struct HistogramParams {
    const HistogramBits* keys;
    uint64_t rows;
    uint64_t* counts;
    uint64_t bins;
    uint64_t columns;      // a power of two up to 32, or 0
    uint64_t shift;        // of codes
    uint64_t first, high;  // of codes, the low and the high word, which is 0 for keys of up to 8 bytes
    const HistogramBits* bounds;
    uint64_t shared_bounds;  // 1: bounds fit into shared memory, behind the counters
};

constexpr uint64_t HISTOGRAM_NONE = ~0ull;

// Unsigned integers that hold codes.
template <uint32_t BYTES> struct HistogramCode { typedef uint64_t Type; };
template <> struct HistogramCode<16> { typedef uint128_t Type; };

WC_DEVICE HistogramBits histogram_bits(HistogramBits raw) {
    HistogramKey key;
    memcpy(&key, &raw, sizeof key);
    return WcKey<HistogramKey>::to_bits(key);
}

// Counts all keys by the bin that `bin_of` gives.
template <typename BinOf> WC_DEVICE void histogram_count(const HistogramParams& p, BinOf bin_of) {
    uint32_t* cells = (uint32_t*)wc_shared();
    const uint32_t columns = (uint32_t)p.columns, words = (uint32_t)p.bins * columns;
    if (columns == 0) {
        wc_each_key(p.keys, p.rows, [&](HistogramBits raw) {
            const uint64_t bin = bin_of(raw);
            if (bin == HISTOGRAM_NONE) return;
            const uint32_t active = __activemask(), same = __match_any_sync(active, bin);
            if (wc_lane() == __ffs((int)same) - 1) wc_add(p.counts + bin, (uint64_t)__popc(same));
        });
        return;
    }
    for (uint32_t at = threadIdx.x; at < words; at += blockDim.x) cells[at] = 0;
    __syncthreads();
    uint32_t* own = cells + (wc_lane() & (columns - 1));
    wc_each_key(p.keys, p.rows, [&](HistogramBits raw) {
        const uint64_t bin = bin_of(raw);
        if (bin != HISTOGRAM_NONE) atomicAdd(own + (uint32_t)bin * columns, 1u);
    });
    __syncthreads();
    for (uint32_t bin = threadIdx.x; bin < p.bins; bin += blockDim.x) {
        uint64_t sum = 0;
        for (uint32_t k = 0; k < columns; ++k) sum += cells[bin * columns + ((k + bin) & (columns - 1))];
        if (sum != 0) wc_add(p.counts + bin, sum);
    }
}

WC_KERNEL(histogram_codes, HistogramParams, WC_HISTOGRAM_THREADS, WC_HISTOGRAM_BLOCKS) {
    typedef HistogramCode<sizeof(HistogramBits)>::Type Code;
    const Code first = (Code)((uint128_t)p.high << 64 | p.first);
    histogram_count(p, [&](HistogramBits raw) {
        const Code code = (Code)(histogram_bits(raw) >> p.shift);
        return code >= first && code - first < p.bins ? (uint64_t)(code - first) : HISTOGRAM_NONE;
    });
}

WC_KERNEL(histogram_bounds, HistogramParams, WC_HISTOGRAM_THREADS, WC_HISTOGRAM_BLOCKS) {
    const HistogramBits* bounds = p.bounds;
    if (p.shared_bounds) {
        const uint64_t before = (p.bins * p.columns * 4 + 15) / 16 * 16;
        HistogramBits* copy = (HistogramBits*)(wc_shared() + before);
        for (uint64_t at = threadIdx.x; at <= p.bins; at += blockDim.x) copy[at] = p.bounds[at];
        __syncthreads();
        bounds = copy;
    }
    histogram_count(p, [&](HistogramBits raw) {
        const HistogramBits bits = histogram_bits(raw);
        // The number of bounds that are not above the key.
        uint64_t low = 0, high = p.bins + 1;
        while (low < high) {
            const uint64_t middle = (low + high) / 2;
            if (histogram_bits(bounds[middle]) <= bits) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low == 0 || low > p.bins ? HISTOGRAM_NONE : low - 1;
    });
}
