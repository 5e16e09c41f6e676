// Aggregation of rows into runs by positions: step 5 of positions.cuh, in the paper's four variants (section IV D).
//
// WC_VARIANT 1, direct atomics: a thread a row, an atomic addition each. 2, chunked atomics: a thread a chunk, an
// atomic addition a row. 3, private variable: a thread a chunk, sums in registers, an atomic addition a run of the
// chunk. 4, private array: a thread a chunk, sums of its runs in WC_PRIVATE_ROWS slots of local memory; the first and
// the last run are added by atomics, since chunks beside may have them too, and those between are stored.
// Inputs: positions, or partial sums and offsets; keys; values of WC_IN. Outputs: key, count (WC_COUNT) and sum
// (WC_SUM) of each run, counts and sums zero before; the number of runs. What lies at `capacity` and behind is counted
// and not written. Bytes: positions and values read, keys at heads of runs read, runs added up in the L2 cache.
// Numerics: integers wrap; doubles are added in an order that differs from run to run.
// Adapted: the paper keeps a position a slot of the private array, which is that of the first slot plus the slot's
// number; runs also get their keys; values are summed up as rows are counted. In the one-kernel form a block waits by
// look-back for the blocks before it, where the paper proposes a barrier over the grid, and partial sums stay in shared
// memory: sizeof(OrderedBlock), 4 bytes a chunk, and 2 bytes a row with a word of padding a chunk.
#pragma once

// What rows add up to.
struct OrderedTally {
#ifdef WC_COUNT
    uint32_t rows;
#endif
#ifdef WC_SUM
    WC_SUM sum;
#endif

    WC_INLINE void add(const OrderedTally& other) {
#ifdef WC_COUNT
        rows += other.rows;
#endif
#ifdef WC_SUM
        sum += other.sum;
#endif
    }
    // Adds to the run at `at`; others may add to it at the same time.
    WC_INLINE void add_to(const OrderedFusedParams& p, uint32_t at) const {
        if (at >= p.capacity) return;
#ifdef WC_COUNT
        wc_add(p.counts + at, (WC_COUNT)rows);
#endif
#ifdef WC_SUM
        wc_add(p.sums + at, sum);
#endif
    }
    // Is the run at `at`, which none else adds to.
    WC_INLINE void store(const OrderedFusedParams& p, uint32_t at) const {
        if (at >= p.capacity) return;
#ifdef WC_COUNT
        p.counts[at] = (WC_COUNT)rows;
#endif
#ifdef WC_SUM
        p.sums[at] = sum;
#endif
    }
};

WC_DEVICE void ordered_key(const OrderedFusedParams& p, uint32_t at, uint64_t row) {
    if (at < p.capacity) p.keys_out[at] = p.keys[row];
}

// Words of rows, and what is added to them: positions (5 and 3 kernels), partial sums of a chunk and its offset (2
// kernels), or the same of a tile in shared memory (1 kernel). A row is a head if its word is not the one before it.
#if WC_FUSION == 1
struct OrderedWords {
    const uint16_t* words;
    const uint32_t* offsets;
    uint64_t first;  // the tile's first row
    uint64_t chunk_log;

    // Two more words a chunk put the chunks of a warp's lanes into different banks.
    static WC_INLINE uint32_t slot(uint32_t at, uint64_t chunk_log) { return at + 2 * (at >> chunk_log); }

    WC_INLINE uint32_t word(uint64_t row) const { return words[slot((uint32_t)(row - first), chunk_log)]; }
    WC_INLINE uint32_t before(uint64_t row) const {
        return (row & ((1ull << chunk_log) - 1)) == 0 ? 0u : word(row - 1);
    }
    WC_INLINE uint32_t offset(uint64_t row) const { return offsets[(row - first) >> chunk_log]; }
    WC_INLINE void load(uint32_t (&own)[WC_STEP], uint64_t row, uint32_t rows) const {
#pragma unroll
        for (uint32_t k = 0; k < WC_STEP; ++k) own[k] = k < rows ? word(row + k) : 0u;
    }
};
#else
struct OrderedWords {
    const uint32_t* words;
    const uint32_t* offsets;
    uint64_t chunk_log;

    WC_INLINE uint32_t word(uint64_t row) const { return words[row]; }
#if WC_FUSION == 2
    WC_INLINE uint32_t before(uint64_t row) const {
        return (row & ((1ull << chunk_log) - 1)) == 0 ? 0u : word(row - 1);
    }
    WC_INLINE uint32_t offset(uint64_t row) const { return offsets[row >> chunk_log]; }
#else
    WC_INLINE uint32_t before(uint64_t row) const { return row == 0 ? 0u : word(row - 1); }
    WC_INLINE uint32_t offset(uint64_t) const { return 0; }
#endif
    WC_INLINE void load(uint32_t (&own)[WC_STEP], uint64_t row, uint32_t rows) const {
        ordered_load(own, words + row, rows, true);
    }
};
#endif

#if WC_VARIANT == 1
WC_DEVICE void ordered_row(const OrderedFusedParams& p, const OrderedWords& words, uint64_t row) {
    const uint32_t word = words.word(row), at = words.offset(row) + word;
    if (row == 0 || word != words.before(row)) ordered_key(p, at, row);
    OrderedTally tally;
#ifdef WC_COUNT
    tally.rows = 1;
#endif
#ifdef WC_SUM
    tally.sum = WC_WIDEN(p.values[row]);
#endif
    tally.add_to(p, at);
    if (row + 1 == p.n) *p.runs = (uint64_t)at + 1;
}
#else
// Shows the rows of a chunk to `body`: the position of the row's run, and what the row counts for.
template <typename Body>
WC_DEVICE void ordered_each_row(
    const OrderedFusedParams& p, const OrderedWords& words, const OrderedChunk& chunk, Body& body) {
    const uint32_t offset = words.offset(chunk.first);
    uint32_t before = words.before(chunk.first);
    for (uint64_t row = chunk.first; row < chunk.end; row += WC_STEP) {
        const uint32_t rows = ordered_rows(row, chunk.end);
        uint32_t own[WC_STEP];
        words.load(own, row, rows);
#ifdef WC_SUM
        WC_IN values[WC_STEP];
        ordered_load(values, p.values + row, rows, p.aligned != 0);
#endif
#pragma unroll
        for (uint32_t k = 0; k < WC_STEP; ++k) {
            if (k >= rows) break;
            OrderedTally tally;
#ifdef WC_COUNT
            tally.rows = 1;
#endif
#ifdef WC_SUM
            tally.sum = WC_WIDEN(values[k]);
#endif
            if (own[k] != before || row + k == 0) ordered_key(p, offset + own[k], row + k);
            before = own[k];
            body.row(p, offset + own[k], tally);
        }
    }
    body.end(p);
    if (chunk.end == p.n) *p.runs = (uint64_t)offset + before + 1;
}

#if WC_VARIANT == 2
struct OrderedBody {
    WC_INLINE void row(const OrderedFusedParams& p, uint32_t at, const OrderedTally& tally) { tally.add_to(p, at); }
    WC_INLINE void end(const OrderedFusedParams&) {}
};
#elif WC_VARIANT == 3
struct OrderedBody {
    OrderedTally open;  // of the run at open_at
    uint32_t open_at;
    bool any;

    WC_INLINE OrderedBody() : open_at(0), any(false) {}
    WC_INLINE void row(const OrderedFusedParams& p, uint32_t at, const OrderedTally& tally) {
        if (any && at == open_at) {
            open.add(tally);
            return;
        }
        if (any) open.add_to(p, open_at);
        open = tally;
        open_at = at;
        any = true;
    }
    WC_INLINE void end(const OrderedFusedParams& p) { open.add_to(p, open_at); }
};
#else
struct OrderedBody {
    OrderedTally runs[WC_PRIVATE_ROWS];
    uint32_t first, count;

    WC_INLINE OrderedBody() : first(0), count(0) {}
    WC_INLINE void row(const OrderedFusedParams& p, uint32_t at, const OrderedTally& tally) {
        if (count == 0) first = at;
        if (at - first < count) {
            runs[at - first].add(tally);
        } else {
            runs[count++] = tally;
        }
    }
    WC_INLINE void end(const OrderedFusedParams& p) {
        runs[0].add_to(p, first);
        for (uint32_t i = 1; i + 1 < count; ++i) runs[i].store(p, first + i);
        if (count > 1) runs[count - 1].add_to(p, first + count - 1);
    }
};
#endif

WC_DEVICE void ordered_aggregate_chunk(
    const OrderedFusedParams& p, const OrderedWords& words, const OrderedChunk& chunk) {
    if (chunk.first >= chunk.end) return;
    OrderedBody body;
    ordered_each_row(p, words, chunk, body);
}
#endif

#if WC_FUSION == 1
// Steps 1 to 5. Blocks draw their tiles by tickets. Bytes: keys and values read once.
WC_KERNEL(ordered_one, OrderedFusedParams, WC_THREADS_MAX, 1) {
    OrderedBlock& shared = *(OrderedBlock*)wc_shared();
    uint32_t* offsets = (uint32_t*)(wc_shared() + sizeof(OrderedBlock));
    uint16_t* partial = (uint16_t*)(offsets + p.local);
    ordered_draw(shared, p.scratch);
    const uint64_t first = shared.tile * p.local << p.chunk_log;
    const OrderedChunk chunk = ordered_chunk(p, shared.tile);
    const auto keep = [&](uint64_t row, const uint32_t (&sums)[WC_STEP], uint32_t rows) {
#pragma unroll
        for (uint32_t k = 0; k < WC_STEP; ++k) {
            const uint32_t at = (uint32_t)(row - first) + k;
            if (k < rows) partial[OrderedWords::slot(at, p.chunk_log)] = (uint16_t)sums[k];
        }
    };
    const uint32_t sum = ordered_partial_sums(p, chunk, keep);
    const uint32_t offset = ordered_offset(shared, p.scratch, sum);
    if (threadIdx.x < p.local) offsets[threadIdx.x] = offset;
    __syncthreads();
    const OrderedWords words = {partial, offsets, first, p.chunk_log};
#if WC_VARIANT == 1
    const uint64_t end = min(first + (p.local << p.chunk_log), p.n);
    if (threadIdx.x >= p.local) return;
    for (uint64_t row = first + threadIdx.x; row < end; row += p.local) ordered_row(p, words, row);
#else
    ordered_aggregate_chunk(p, words, chunk);
#endif
}
#else
// Step 5, and 4 where two kernels do all. A thread a row or a chunk, as the variant has it.
WC_KERNEL(ordered_aggregate, OrderedFusedParams, WC_THREADS_MAX, 1) {
    const OrderedWords words = {p.positions, p.offsets, p.chunk_log};
#if WC_VARIANT == 1
    const uint64_t row = blockIdx.x * p.local + threadIdx.x;
    if (threadIdx.x < p.local && row < p.n) ordered_row(p, words, row);
#else
    ordered_aggregate_chunk(p, words, ordered_chunk(p, blockIdx.x));
#endif
}
#endif
