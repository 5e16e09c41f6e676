// What kernels of a top-k call, beside the ordered bits of crates/gpu/kernels/prims/keys.cuh. A rank is a row's keys
// and its number (crates/engine/src/plan/topk_rank.rs); zero stands for no row.

// Beside those of scan.cuh and fixed.cuh: there was no room for all candidates.
enum WcTopKFlag { WC_CANDIDATES_FULL = 16 };

// Appends a rank to the candidates, of which there is room for so many; where it is used up the run is lost.
template <typename R>
WC_DEVICE void wc_append_rank(R* ranks, uint64_t* count, uint64_t room, uint32_t* flags, R rank) {
    const uint64_t at = wc_fetch_add(count, (uint64_t)1);
    if (at < room) {
        ranks[at] = rank;
    } else {
        atomicOr(flags, (uint32_t)WC_CANDIDATES_FULL);
    }
}

// The same of ranks with tails.
WC_DEVICE void wc_append_rank(unsigned __int128* ranks, unsigned __int128* tails, uint64_t* count, uint64_t room,
                              uint32_t* flags, unsigned __int128 rank, unsigned __int128 tail) {
    const uint64_t at = wc_fetch_add(count, (uint64_t)1);
    if (at < room) {
        ranks[at] = rank;
        tails[at] = tail;
    } else {
        atomicOr(flags, (uint32_t)WC_CANDIDATES_FULL);
    }
}

// The chunk of a row of the table: the last one that begins at the row or before it.
WC_DEVICE uint32_t wc_chunk_of_row(const uint64_t* first_rows, uint32_t chunks, uint64_t row) {
    uint32_t low = 0, high = chunks;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (wc_load_cached(first_rows + middle) <= row) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

// A value that so many buckets of a partition reach (crates/engine/src/plan/partition_bounds.rs); zero if fewer have a
// row.
WC_DEVICE uint64_t wc_partition_bound(const uint64_t* buckets, uint64_t count, uint64_t rows) {
    uint64_t bound = 0;
    for (uint64_t i = 0; i < count; ++i) {
        const uint64_t value = buckets[i];
        if (value <= bound) continue;
        uint64_t reach = 0;
        for (uint64_t j = 0; j < count; ++j) reach += buckets[j] >= value;
        if (reach >= rows) bound = value;
    }
    return bound;
}

// The row of a sample: rows are drawn independently, whatever order the table is in.
WC_DEVICE uint64_t wc_sampled_row(uint64_t seed, uint64_t sample, uint64_t rows) {
    return __umul64hi(wc_hash(seed + sample * 0x9e3779b97f4a7c15ULL), rows);
}

// Ranks to be sorted, the largest first. They are distinct.
template <typename R> struct WcRanks {
    R* ranks;
    WC_INLINE void order(uint32_t i, uint32_t j) const {
        const R first = ranks[i], second = ranks[j];
        if (first > second) return;
        ranks[i] = second;
        ranks[j] = first;
    }
};

// Brings ranks to shared memory in order. All threads of the block call, and none uses that memory any more.
template <typename R> WC_DEVICE void wc_sorted_ranks(R* ranks, const R* candidates, uint32_t count) {
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) ranks[i] = candidates[i];
    __syncthreads();
    wc_sort_network(WcRanks<R>{ranks}, count);
}
