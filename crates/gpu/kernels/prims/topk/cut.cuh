// The cut through a set of values at a rank, and the extent of values: steps of one block.
#pragma once

// The cut through a set of values below which none belongs to the `rank` largest.
template <typename V> struct TopKCut {
    // Larger values belong to them, and `ties` of those equal to it; all of those unless `tied`.
    V low;
    uint32_t ties;
    bool tied;
};

// Bins of a cut; as many threads call.
#define TOPK_CUT_BINS 1024u
// Words of shared memory that a cut takes.
#define TOPK_CUT_WORDS (TOPK_CUT_BINS + 32u + 4u)

// Finds the cut at `rank`, at least 1 and at most the number of values. `items.get(i, value)` gives value i < count, or
// false if there is none; all values lie within `low..=high`. The block of 1,024 threads counts values by their
// leading digits, goes on with the bin that holds the rank, and ends when a bin is a single value or is wanted whole:
// two rounds for random 32-bit values, one for equal ones.
template <typename V, typename Items>
WC_DEVICE TopKCut<V> topk_cut(const Items& items, uint64_t count, uint32_t rank, V low, V high, uint32_t* words) {
    uint32_t *bins = words, *parts = bins + TOPK_CUT_BINS, *found = parts + 32;
    for (;;) {
        const uint32_t length = topk_bit_length((V)(high - low)), shift = length > 10 ? length - 10 : 0;
        bins[threadIdx.x] = 0;
        __syncthreads();
        for (uint64_t base = wc_warp() * 32; base < count; base += 4 * blockDim.x) {
            // Four loads in flight.
            V values[4];
            bool valid[4];
#pragma unroll
            for (uint32_t j = 0; j < 4; ++j) {
                const uint64_t i = base + j * blockDim.x + wc_lane();
                values[j] = 0;
                valid[j] = i < count && items.get(i, values[j]);
            }
#pragma unroll
            for (uint32_t j = 0; j < 4; ++j) {
                const bool inside = valid[j] && values[j] >= low && values[j] <= high;
                topk_bin(bins, inside, inside ? (uint32_t)((V)(values[j] - low) >> shift) : 0);
            }
        }
        __syncthreads();
        const uint32_t bin = TOPK_CUT_BINS - 1 - threadIdx.x, own = bins[bin];
        const uint32_t upto = topk_block_inclusive_sum(own, parts);
        if (upto >= rank && upto - own < rank) {
            found[0] = bin;
            found[1] = upto - own;
            found[2] = own;
        }
        __syncthreads();
        rank -= found[1];
        low = (V)(low + ((V)found[0] << shift));
        const V mask = (V)(((V)1 << shift) - 1);
        if ((V)(high - low) > mask) high = (V)(low + mask);
        const uint32_t held = found[2];
        if (shift == 0 || held == rank) return {low, rank, held > rank};
        __syncthreads();
    }
}

// Values in an array.
struct TopKValues {
    const TopKRank* values;
    WC_INLINE bool get(uint64_t i, TopKRank& value) const {
        value = values[i];
        return true;
    }
};

// What the pass for the extent does with keys.
struct TopKExtent {
    TopKRank low, high;
    WC_INLINE bool done() const { return false; }
    WC_INLINE void rank(TopKRank rank) {
        low = topk_least(low, rank);
        high = topk_greatest(high, rank);
    }
    WC_INLINE void single(bool valid, TopKKey key, uint64_t) {
        if (valid) rank(topk_rank(key));
    }
    WC_INLINE void chunk(const TopKKey (&own)[TOPK_OWN], uint64_t) {
#pragma unroll
        for (uint32_t j = 0; j < TOPK_OWN; ++j) rank(topk_rank(own[j]));
    }
};

// The extent of the values of all threads of the block, in thread 0.
WC_DEVICE void topk_block_extent(TopKExtent& extent, TopKRank* shared) {
    shared[threadIdx.x] = extent.low;
    shared[blockDim.x + threadIdx.x] = extent.high;
    for (uint32_t step = blockDim.x / 2; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step) {
            shared[threadIdx.x] = topk_least(shared[threadIdx.x], shared[threadIdx.x + step]);
            TopKRank* high = shared + blockDim.x + threadIdx.x;
            *high = topk_greatest(*high, high[step]);
        }
    }
    __syncthreads();
    extent = {shared[0], shared[blockDim.x]};
}
