// Reduce: the sum, the number, the least or the largest of all items (monoid.cuh).
//
// Input: n items of WC_IN. Output: one Result. Scratch: a counter of 64 bytes,
// zero before a launch, then a partial result a block, of WORDS words. Mapping: as many blocks as are resident, each at
// every gridDim.x-th tile; the last block that is done joins the partial results in the order of blocks. Shared memory:
// WORDS words a warp and a flag. Registers: a lane's items, 128 bytes at the default tuning. Bytes: each item once.
// Numerics: integers wrap; doubles are added in an order that depends on n, on the grid and on whether the input is
// aligned, so runs over one slice on one device agree. Floats compare by their bits (keys.cuh): one NaN, the largest.

// Words of a part.
constexpr int WORDS = sizeof(Part) > 8 ? 2 : 1;
#if defined(WC_LEAST) || defined(WC_LARGEST)
WC_DEVICE void wc_part_words(Part part, uint64_t (&words)[WORDS]) {
    words[0] = (uint64_t)part;
    if (WORDS == 2) words[WORDS - 1] = (uint64_t)((uint128_t)part >> 64);
}
WC_DEVICE Part wc_part_of(const uint64_t (&words)[WORDS]) {
    return WORDS == 2 ? (Part)((uint128_t)words[WORDS - 1] << 64 | words[0]) : (Part)words[0];
}
#else
WC_DEVICE void wc_part_words(Part part, uint64_t (&words)[WORDS]) { words[0] = wc_sum_bits(part); }
WC_DEVICE Part wc_part_of(const uint64_t (&words)[WORDS]) { return WcSumOf<Part>::bits(words[0]); }
#endif

struct ReduceParams {
    const WC_IN* in;
    Result* out;
    char* scratch;
    uint64_t n;
    uint64_t aligned;
};

struct ReduceShared {
    uint64_t is_last;
    uint64_t warps[WC_THREADS / 32][WORDS];
};

// The part of the lane whose number differs by `step`.
WC_DEVICE Part wc_part_across(Part part, int step) {
    uint64_t words[WORDS];
    wc_part_words(part, words);
#pragma unroll
    for (int i = 0; i < WORDS; ++i) words[i] = __shfl_xor_sync(WC_FULL_MASK, words[i], step);
    return wc_part_of(words);
}

// The result of the block, in thread 0.
WC_DEVICE Part wc_block_join(ReduceShared& shared, Part part) {
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) part = wc_join(part, wc_part_across(part, step));
    if (wc_lane() == 0) wc_part_words(part, shared.warps[wc_warp()]);
    __syncthreads();
    part = wc_nothing();
    if (threadIdx.x == 0) {
        for (int warp = 0; warp < WC_THREADS / 32; ++warp) part = wc_join(part, wc_part_of(shared.warps[warp]));
    }
    return part;
}

WC_KERNEL(wc_reduce, ReduceParams, WC_THREADS, WC_BLOCKS) {
    ReduceShared& shared = *(ReduceShared*)wc_shared();
    uint64_t* parts = (uint64_t*)(p.scratch + WC_SCRATCH_HEAD);
    const uint64_t PART_ITEMS = 32 * WC_VEC * WC_ROWS, TILE_ITEMS = PART_ITEMS * (WC_THREADS / 32);
    Part part = wc_nothing();
    uint64_t from = blockIdx.x * TILE_ITEMS + wc_warp() * PART_ITEMS;
    for (; p.aligned != 0 && from + PART_ITEMS <= p.n; from += gridDim.x * TILE_ITEMS) {
        WC_IN items[WC_ROWS][WC_VEC];
#pragma unroll
        for (int j = 0; j < WC_ROWS; ++j) {
            wc_load_items<WC_VEC>(items[j], p.in + from + j * 32 * WC_VEC + wc_lane() * WC_VEC);
        }
#pragma unroll
        for (int j = 0; j < WC_ROWS; ++j) {
#pragma unroll
            for (int k = 0; k < WC_VEC; ++k) part = wc_join(part, wc_part(items[j][k]));
        }
    }
    for (; from < p.n; from += gridDim.x * TILE_ITEMS) {
        const uint64_t end = min(from + PART_ITEMS, p.n);
        for (uint64_t at = from + wc_lane(); at < end; at += 32) part = wc_join(part, wc_part(p.in[at]));
    }
    part = wc_block_join(shared, part);
    if (threadIdx.x == 0) {
        uint64_t words[WORDS];
        wc_part_words(part, words);
        for (int i = 0; i < WORDS; ++i) wc_store_relaxed(parts + blockIdx.x * WORDS + i, words[i]);
        __threadfence();
        shared.is_last = wc_count((uint32_t*)p.scratch) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (shared.is_last == 0) return;
    part = wc_nothing();
    for (uint32_t at = threadIdx.x; at < gridDim.x; at += WC_THREADS) {
        uint64_t words[WORDS];
        for (int i = 0; i < WORDS; ++i) words[i] = wc_load_relaxed(parts + at * WORDS + i);
        part = wc_join(part, wc_part_of(words));
    }
    part = wc_block_join(shared, part);
    if (threadIdx.x == 0) *p.out = wc_result(part);
}
