// Positions of runs by prefix sums: the kernels of ordered aggregation before the aggregation itself.
//
// A row whose key differs from the one before it is mapped to 1, all others and row 0 to 0. The inclusive prefix sum of
// these flags is the position of the row's run among all runs:
//
//     keys       a a b | b b c | c d d      chunks of three rows
//     flags      0 0 1 | 0 0 1 | 0 1 0      1 mapping
//     partial    0 0 1 | 0 0 1 | 0 1 1      2 partial prefix sums, a chunk a thread
//     offsets    0     | 1     | 2          3 prefix sums of the chunks' last partial sums
//     positions  0 0 1 | 1 1 2 | 2 3 3      4 offset addition
//     counts     2 3 2 2                    5 aggregation (aggregate.cuh)
//
// Source: the paper "Code fusion of prefix sum with ordered aggregation" (Saxena et al.), section IV. WC_FUSION is how
// many kernels do these five steps: 5 (one each), 3 (1 to 3, 4, 5), 2 (1 to 3, 4 and 5) or 1.
// Adapted for inputs beyond the paper's 2^15 rows: the paper adds each chunk's sum to the offsets of all chunks to its
// right by atomics, which is quadratic in chunks; here a block scans the sums of its chunks and looks back for those of
// the blocks before it (lookback.cuh). Flags, partial sums and positions are one array, rewritten in place.
// Inputs: n keys of WC_KEY. Outputs: `positions`, n words: flags, partial sums or positions, as far as the kernel goes;
// `offsets`, a word a chunk. Mapping: a thread a row, or a thread a chunk of adjacent rows; a block has p.local of
// them, and at least a warp of threads. Shared memory: OrderedBlock. Registers: WC_STEP rows a thread. Numerics: exact,
// positions have 32 bits.
#pragma once

typedef WcKey<WC_KEY>::Bits KeyBits;

struct OrderedFusedParams {
    const WC_KEY* keys;
    WC_KEY* keys_out;
    uint64_t* runs;
    uint64_t capacity;   // runs that the shortest output has room for
    uint64_t n;
    uint64_t chunk_log;  // a chunk has 2^chunk_log rows
    uint64_t local;      // threads of a block that have rows
    uint64_t aligned;    // WC_STEP keys or values are loaded at once
    uint32_t* positions;
    uint32_t* offsets;
    char* scratch;       // lookback.cuh
#ifdef WC_COUNT
    WC_COUNT* counts;
#endif
#ifdef WC_SUM
    const WC_IN* values;
    WC_SUM* sums;
#endif
};

#define WC_THREADS_MAX 1024
// Rows that a thread loads at once.
#define WC_STEP 4

struct alignas(16) OrderedBlock {
    uint64_t tile;
    uint64_t before;
    uint32_t warps[WC_THREADS_MAX / 32];
};

// The rows of a thread; none for threads behind the last chunk or behind p.local.
struct OrderedChunk {
    uint64_t index, first, end;
};
WC_DEVICE OrderedChunk ordered_chunk(const OrderedFusedParams& p, uint64_t block) {
    const uint64_t index = block * p.local + threadIdx.x;
    const uint64_t first = threadIdx.x < p.local ? min(index << p.chunk_log, p.n) : p.n;
    return {index, first, min(first + (1ull << p.chunk_log), p.n)};
}

// The first `rows` of WC_STEP items.
template <typename T> WC_DEVICE void ordered_load(T (&items)[WC_STEP], const T* address, uint32_t rows, bool aligned) {
    const int BYTES = WC_STEP * (int)sizeof(T), WORD = BYTES < 16 ? BYTES : 16;
    typedef typename WcWord<WORD>::Type Word;
    if (aligned && rows == WC_STEP) {
        Word words[BYTES / WORD];
#pragma unroll
        for (int i = 0; i < BYTES / WORD; ++i) words[i] = ((const Word*)address)[i];
        memcpy(items, words, BYTES);
    } else {
#pragma unroll
        for (uint32_t k = 0; k < WC_STEP; ++k) items[k] = k < rows ? address[k] : (T)0;
    }
}
WC_DEVICE void ordered_store(uint32_t* address, const uint32_t (&words)[WC_STEP], uint32_t rows) {
    if (rows == WC_STEP) {
        *(int4*)address = make_int4((int)words[0], (int)words[1], (int)words[2], (int)words[3]);
    } else {
#pragma unroll
        for (uint32_t k = 0; k < WC_STEP; ++k) {
            if (k < rows) address[k] = words[k];
        }
    }
}
WC_DEVICE uint32_t ordered_rows(uint64_t row, uint64_t end) { return (uint32_t)min(end - row, (uint64_t)WC_STEP); }

// Mapping and partial prefix sums of a chunk; `store` takes the sums up to each row of a step. The sum of the chunk.
template <typename Store>
WC_DEVICE uint32_t ordered_partial_sums(const OrderedFusedParams& p, const OrderedChunk& chunk, const Store& store) {
    if (chunk.first >= chunk.end) return 0;
    KeyBits before = WcKey<WC_KEY>::to_bits(p.keys[chunk.first == 0 ? 0 : chunk.first - 1]);
    uint32_t heads = 0;
    for (uint64_t row = chunk.first; row < chunk.end; row += WC_STEP) {
        const uint32_t rows = ordered_rows(row, chunk.end);
        WC_KEY keys[WC_STEP];
        uint32_t sums[WC_STEP];
        ordered_load(keys, p.keys + row, rows, p.aligned != 0);
#pragma unroll
        for (uint32_t k = 0; k < WC_STEP; ++k) {
            const KeyBits bits = WcKey<WC_KEY>::to_bits(keys[k]);
            if (k < rows && bits != before) heads++;
            before = bits;
            sums[k] = heads;
        }
        store(row, sums, rows);
    }
    return heads;
}

// Offset computation: the sum of all chunks before a thread's own. All threads of the block call; the tile was drawn.
WC_DEVICE uint32_t ordered_offset(OrderedBlock& shared, char* scratch, uint32_t sum) {
    const uint32_t warp = wc_warp(), lane = wc_lane();
    const uint32_t up_to = wc_warp_inclusive_sum(sum);
    if (lane == 31) shared.warps[warp] = up_to;
    __syncthreads();
    const uint32_t warp_sum = wc_left(shared.warps), warps_up_to = wc_warp_inclusive_sum(warp_sum);
    if (warp == 0) {
        const WcCount own = {__shfl_sync(WC_FULL_MASK, warps_up_to, 31)};
        if (lane == 0) wc_announce_tile(scratch, shared.tile, own);
        const WcCount before = wc_look_back(scratch, shared.tile, own);
        if (lane == 0) shared.before = before.count;
    }
    const uint32_t warps_before = __shfl_sync(WC_FULL_MASK, warps_up_to - warp_sum, (int)warp);
    __syncthreads();
    return (uint32_t)shared.before + warps_before + up_to - sum;
}
WC_DEVICE void ordered_draw(OrderedBlock& shared, char* scratch) {
    if (threadIdx.x == 0) shared.tile = wc_draw_tile(scratch);
    __syncthreads();
}

#if WC_FUSION == 5
// Step 1. A thread a row. Bytes: keys read, flags written.
WC_KERNEL(ordered_map, OrderedFusedParams, WC_THREADS_MAX, 1) {
    const uint64_t row = blockIdx.x * p.local + threadIdx.x;
    if (threadIdx.x >= p.local || row >= p.n) return;
    const KeyBits before = WcKey<WC_KEY>::to_bits(p.keys[row == 0 ? 0 : row - 1]);
    p.positions[row] = WcKey<WC_KEY>::to_bits(p.keys[row]) != before ? 1u : 0u;
}

// Step 2. A thread a chunk. Bytes: flags read, partial sums written.
WC_KERNEL(ordered_partial, OrderedFusedParams, WC_THREADS_MAX, 1) {
    const OrderedChunk chunk = ordered_chunk(p, blockIdx.x);
    uint32_t sum = 0;
    for (uint64_t row = chunk.first; row < chunk.end; row += WC_STEP) {
        const uint32_t rows = ordered_rows(row, chunk.end);
        uint32_t words[WC_STEP];
        ordered_load(words, p.positions + row, rows, true);
#pragma unroll
        for (uint32_t k = 0; k < WC_STEP; ++k) words[k] = sum += words[k];
        ordered_store(p.positions + row, words, rows);
    }
}

// Step 3. A thread a chunk. Bytes: the last partial sum of each chunk read, offsets written.
WC_KERNEL(ordered_offsets, OrderedFusedParams, WC_THREADS_MAX, 1) {
    OrderedBlock& shared = *(OrderedBlock*)wc_shared();
    ordered_draw(shared, p.scratch);
    const OrderedChunk chunk = ordered_chunk(p, shared.tile);
    const bool any = chunk.first < chunk.end;
    const uint32_t offset = ordered_offset(shared, p.scratch, any ? p.positions[chunk.end - 1] : 0u);
    if (any) p.offsets[chunk.index] = offset;
}
#elif WC_FUSION >= 2
// Steps 1 to 3. A thread a chunk. Bytes: keys read, partial sums and offsets written.
WC_KERNEL(ordered_partial_offsets, OrderedFusedParams, WC_THREADS_MAX, 1) {
    OrderedBlock& shared = *(OrderedBlock*)wc_shared();
    ordered_draw(shared, p.scratch);
    const OrderedChunk chunk = ordered_chunk(p, shared.tile);
    const auto keep = [&](uint64_t row, const uint32_t (&sums)[WC_STEP], uint32_t rows) {
        ordered_store(p.positions + row, sums, rows);
    };
    const uint32_t sum = ordered_partial_sums(p, chunk, keep);
    const uint32_t offset = ordered_offset(shared, p.scratch, sum);
    if (chunk.first < chunk.end) p.offsets[chunk.index] = offset;
}
#endif

#if WC_FUSION >= 3
// Step 4. A thread a chunk. Bytes: partial sums read, positions written.
WC_KERNEL(ordered_add, OrderedFusedParams, WC_THREADS_MAX, 1) {
    const OrderedChunk chunk = ordered_chunk(p, blockIdx.x);
    if (chunk.first >= chunk.end) return;
    const uint32_t offset = p.offsets[chunk.index];
    for (uint64_t row = chunk.first; row < chunk.end; row += WC_STEP) {
        const uint32_t rows = ordered_rows(row, chunk.end);
        uint32_t words[WC_STEP];
        ordered_load(words, p.positions + row, rows, true);
#pragma unroll
        for (uint32_t k = 0; k < WC_STEP; ++k) words[k] += offset;
        ordered_store(p.positions + row, words, rows);
    }
}
#endif
