// Selection passes: radix select and bucket select, and the exact way when a filter's candidates do not do.
#pragma once

#define TOPK_BINS (1u << TOPK_DIGIT_BITS)

struct TopKSelectParams {
    const TopKKey* keys;
    uint64_t count;
    TopKState* state;
    // [TOPK_BINS], zeroed.
    uint64_t* bins;
    TopKRank* ranks;
    TopKRow* rows;
    uint64_t above_max, equal_max;
    // Two pools of undecided candidates, one behind the other.
    TopKRank* pool_ranks;
    TopKRow* pool_rows;
    uint64_t pool_max;
    uint64_t k;
    // Of the first pass: 0 narrows down if the filter's candidates do not do; 1 all keys; 2 the range in the state.
    uint64_t start;
    uint64_t first;
};

// Range and source of a pass.
struct TopKRange {
    TopKRank outer_low, outer_high, low, high;
    uint64_t rank, source, source_count, target;
    uint32_t shift;
    bool settled;
};

WC_DEVICE TopKRange topk_range(const TopKSelectParams& p) {
    const TopKState* state = p.state;
    const TopKRank all = (TopKRank)~(TopKRank)0;
    const uint32_t shift = (uint32_t)sizeof(TopKRank) * 8 - min(TOPK_DIGIT_BITS, (uint32_t)sizeof(TopKRank) * 8);
    if (p.first && p.start != 2) return {0, all, 0, all, p.k, 0, p.count, 0, shift, false};
    return {topk_load_rank(state->outer_low), topk_load_rank(state->outer_high), topk_load_rank(state->low),
            topk_load_rank(state->high), state->rank, state->source, state->source_count, state->target,
            (uint32_t)state->shift, state->settled != 0};
}

// What a pass does with keys.
struct TopKNarrow {
    TopKRange range;
    TopKQueue above_queue, pool_queue;
    TopKTarget above, equal, pool;
    uint32_t* bins;
    bool closed;

    WC_INLINE bool done() const { return false; }
    WC_INLINE void rank(bool valid, TopKRank rank, uint64_t row) {
        const bool inside = valid && rank >= range.low && rank <= range.outer_high;
        if (!__any_sync(WC_FULL_MASK, inside)) return;
        const bool within = inside && rank <= range.high;
        topk_append(above_queue, above, inside && !within, rank, (TopKRow)row);
        if (range.settled) {
            if (!closed) closed = topk_append(pool_queue, equal, within, rank, (TopKRow)row);
            return;
        }
        if (range.target != 0) topk_append(pool_queue, pool, within, rank, (TopKRow)row);
        topk_bin(bins, within, within ? (uint32_t)((TopKRank)(rank - range.low) >> range.shift) : 0);
    }
    WC_INLINE void single(bool valid, TopKKey key, uint64_t row) { rank(valid, topk_rank(key), row); }
    WC_INLINE void chunk(const TopKKey (&own)[TOPK_OWN], uint64_t first) {
#pragma unroll
        for (uint32_t j = 0; j < TOPK_OWN; ++j) rank(true, topk_rank(own[j]), first + topk_slot(j));
    }
};

// The last block of a pass takes the bin with the wanted rank as the range of the next one.
WC_DEVICE void topk_narrow(const TopKSelectParams& p, const TopKRange& range, uint64_t* parts) {
    TopKState* state = p.state;
    if (range.settled) {
        if (threadIdx.x == 0) {
            state->exact = 2;
            state->ticket = 0;
        }
        return;
    }
    // Threads take bins from the largest down, some each.
    const uint32_t some = TOPK_BINS / blockDim.x;
    const uint32_t top = TOPK_BINS - 1 - threadIdx.x * some;
    uint64_t own = 0;
    for (uint32_t b = 0; b < some; ++b) own += __ldcg(p.bins + top - b);
    const uint64_t larger = topk_block_inclusive_sum(own, parts) - own;
    if (larger < range.rank && larger + own >= range.rank) {
        uint64_t rank = range.rank - larger, size = 0;
        uint32_t bin = top + 1;
        do {
            rank -= size;
            --bin;
            size = __ldcg(p.bins + bin);
        } while (size < rank);
        const TopKRank low = (TopKRank)(range.low + ((TopKRank)bin << range.shift));
        const TopKRank mask = (TopKRank)(((TopKRank)1 << range.shift) - 1);
        const TopKRank high = (TopKRank)(range.high - low) > mask ? (TopKRank)(low + mask) : range.high;
        topk_store_rank(state->outer_low, range.low);
        topk_store_rank(state->outer_high, range.high);
        topk_store_rank(state->low, low);
        topk_store_rank(state->high, high);
        topk_store_rank(state->threshold, low);
        if (p.first) state->above = state->equal = 0;
        state->exact = 1;
        state->rank = rank;
        const uint32_t length = topk_bit_length((TopKRank)(high - low));
        state->shift = length > TOPK_DIGIT_BITS ? length - TOPK_DIGIT_BITS : 0;
        const bool settled = range.shift == 0 || size == rank;
        state->settled = settled;
        const uint64_t source = range.target != 0 ? range.target : range.source;
        const uint64_t count = range.target != 0 ? state->pooled : range.source_count;
        state->source = source;
        state->source_count = count;
        // Undecided candidates are written where there is room, and where a later pass reads less for it.
        state->target = !settled && size <= p.pool_max && size <= count / 2 ? (source == 1 ? 2 : 1) : 0;
        state->pooled = 0;
        state->ticket = 0;
    }
    __syncthreads();
    for (uint32_t b = 0; b < some; ++b) p.bins[top - b] = 0;
}

// Purpose: one digit of a selection (paper 003, 4.2.2 and 4.4.2): counts the undecided rows by digit, writes those that
// the digit before decided to the result, and those that it left undecided to a pool if they are few.
// Inputs: keys[count] or a pool, the range in the state. Outputs: as topk_filter's at the end, pools and range before.
// Mapping: a warp a chunk, persistent blocks; the last block scans the counters.
// Shared memory: TOPK_BINS counters, two queues a warp. Bytes moved: the source once; decided rows.
// Numerics: exact; of equal ranks any rows are taken. A range whose ranks are all equal, or all wanted, ends the
// selection, one pass after.
WC_KERNEL(topk_select, TopKSelectParams, TOPK_SELECT_THREADS, TOPK_SELECT_BLOCKS) {
    const TopKState* state = p.state;
    if (!p.first) {
        if (state->exact != 1) return;
    } else if (p.start == 0) {
        // The filter's candidates do: at least k, all that are above the threshold among them.
        if (state->above <= p.above_max && min(state->equal, p.equal_max) + state->above >= p.k) return;
    }
    uint32_t* bins = (uint32_t*)wc_shared();
    uint64_t* parts = (uint64_t*)(bins + TOPK_BINS);
    char* queues = (char*)(parts + 32);
    const TopKRange range = topk_range(p);
    const uint64_t pool = range.target == 2 ? p.pool_max : 0;
    const TopKTarget above = {p.ranks, p.rows, &p.state->above, p.above_max};
    const TopKTarget equal = {p.ranks + p.above_max, p.rows + p.above_max, &p.state->equal, p.equal_max};
    const TopKTarget undecided = {p.pool_ranks + pool, p.pool_rows + pool, &p.state->pooled, p.pool_max};
    const TopKQueue queue = topk_queue(queues);
    const TopKQueue pool_queue = topk_queue(queues + blockDim.x / 32 * TOPK_QUEUE_BYTES);
    TopKNarrow narrow = {range, queue, pool_queue, above, equal, undecided, bins, false};
    for (uint32_t i = threadIdx.x; i < TOPK_BINS; i += blockDim.x) bins[i] = 0;
    __syncthreads();
    if (range.source == 0) {
        topk_walk(p.keys, p.count, narrow);
    } else {
        const uint64_t from = range.source == 2 ? p.pool_max : 0;
        const uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
        for (uint64_t base = (uint64_t)blockIdx.x * blockDim.x + wc_warp() * 32; base < range.source_count;
             base += stride) {
            const uint64_t i = base + wc_lane();
            const bool valid = i < range.source_count;
            narrow.rank(valid, valid ? p.pool_ranks[from + i] : (TopKRank)0, valid ? p.pool_rows[from + i] : 0);
        }
    }
    if (narrow.above_queue.held > 0) topk_flush(narrow.above_queue, above);
    if (narrow.pool_queue.held > 0) topk_flush(narrow.pool_queue, range.settled ? equal : undecided);
    __syncthreads();
    if (!range.settled) {
        for (uint32_t i = threadIdx.x; i < TOPK_BINS; i += blockDim.x) {
            if (bins[i] > 0) wc_add(p.bins + i, (uint64_t)bins[i]);
        }
    }
    if (wc_is_last_block(&p.state->ticket, gridDim.x, bins)) topk_narrow(p, range, parts);
}

struct TopKExtentParams {
    const TopKKey* keys;
    uint64_t count;
    TopKState* state;
    // [grid][2]
    TopKRank* extents;
    uint64_t k;
};

// Purpose: bucket select's first step (paper 003, 4.2.2): least and greatest rank; buckets divide the ranks between
// them. For k = 1 the greatest is the threshold.
// Mapping: a warp a chunk, persistent blocks; the last block joins them. Shared memory: two ranks a thread.
WC_KERNEL(topk_extent, TopKExtentParams, TOPK_SELECT_THREADS, TOPK_SELECT_BLOCKS) {
    TopKRank* shared = (TopKRank*)wc_shared();
    uint32_t* word = (uint32_t*)(shared + 2 * blockDim.x);
    TopKExtent extent = {(TopKRank)~(TopKRank)0, 0};
    topk_walk(p.keys, p.count, extent);
    topk_block_extent(extent, shared);
    if (threadIdx.x == 0) {
        p.extents[2 * (uint64_t)blockIdx.x] = extent.low;
        p.extents[2 * (uint64_t)blockIdx.x + 1] = extent.high;
    }
    if (!wc_is_last_block(&p.state->ticket, gridDim.x, word)) return;
    for (uint32_t i = threadIdx.x; i < gridDim.x; i += blockDim.x) {
        // A block without keys leaves an empty extent: the greatest rank as the least.
        extent.low = topk_least(extent.low, p.extents[2 * (uint64_t)i]);
        extent.high = topk_greatest(extent.high, p.extents[2 * (uint64_t)i + 1]);
    }
    __syncthreads();
    topk_block_extent(extent, shared);
    if (threadIdx.x > 0) return;
    TopKState* state = p.state;
    const TopKRank low = p.k == 1 ? extent.high : extent.low;
    topk_store_rank(state->outer_low, extent.low);
    topk_store_rank(state->outer_high, extent.high);
    topk_store_rank(state->low, low);
    topk_store_rank(state->high, extent.high);
    topk_store_rank(state->threshold, low);
    const uint32_t length = topk_bit_length((TopKRank)(extent.high - low));
    state->shift = length > TOPK_DIGIT_BITS ? length - TOPK_DIGIT_BITS : 0;
    state->settled = low == extent.high;
    state->rank = p.k;
    state->source = state->target = 0;
    state->source_count = p.count;
    state->exact = 1;
    state->ticket = 0;
}
