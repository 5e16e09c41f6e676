// The first rows among those of the threshold's rank, where a filter keeps any of them.
#pragma once

struct TopKTieParams {
    const TopKKey* keys;
    uint64_t count;
    TopKState* state;
    TopKRank* ranks;
    TopKRow* rows;
    uint64_t above_max, equal_max, k;
    // [ranges + 1], zeroed: rows of the rank by range; at the end the sum over the ranges counted so far.
    uint64_t* counts;
    // Ranges that the rows are divided into, and rows of each.
    uint64_t ranges, range_rows;
};

// Whether rows of the threshold's rank belong to the result, and not all of them are among the candidates.
WC_DEVICE bool topk_is_tied(const TopKTieParams& p) {
    return p.state->equal >= p.equal_max && p.state->above < p.k;
}

// Purpose: rows of the threshold's rank by range, of as many ranges from the first on as hold enough.
// Mapping: a block takes one range after the other by ticket, so all ranges counted before lie before its own: once
// they hold enough rows, the block is done. Bytes moved: the keys once at most.
WC_KERNEL(topk_tie_count, TopKTieParams, 256, 4) {
    if (!topk_is_tied(p)) return;
    uint64_t* words = (uint64_t*)wc_shared();
    const TopKRank threshold = topk_load_rank(p.state->threshold);
    const uint64_t wanted = p.k - p.state->above;
    uint64_t* sum = p.counts + p.ranges;
    if (blockIdx.x == 0 && threadIdx.x == 0) p.state->tied = 1;
    for (;;) {
        if (threadIdx.x == 0) {
            const bool enough = wc_load_acquire(sum) >= wanted;
            words[0] = enough ? p.ranges : wc_fetch_add(&p.state->ticket, (uint64_t)1);
        }
        __syncthreads();
        const uint64_t range = words[0];
        if (range >= p.ranges) return;
        const uint64_t begin = min(range * p.range_rows, p.count), end = min(begin + p.range_rows, p.count);
        uint64_t equal = 0;
#pragma unroll 8
        for (uint64_t row = begin + threadIdx.x; row < end; row += blockDim.x) {
            equal += topk_rank(p.keys[row]) == threshold;
        }
        equal = wc_warp_sum(equal);
        wc_leave(words + 1, equal);
        __syncthreads();
        if (threadIdx.x < 32) {
            equal = wc_warp_sum(wc_left(words + 1));
            if (threadIdx.x == 0) {
                p.counts[range] = equal;
                if (equal > 0) wc_add(sum, equal);
            }
        }
        __syncthreads();
    }
}

// Purpose: the wanted rows in place of the equal candidates.
// Mapping: ranges by block; a range's rows in order, a row a thread. Bytes moved: ranges that hold wanted rows.
WC_KERNEL(topk_tie_take, TopKTieParams, 256, 4) {
    if (p.state->tied == 0) return;
    uint64_t* parts = (uint64_t*)wc_shared();
    uint32_t* small_parts = (uint32_t*)(parts + 33);
    const TopKRank threshold = topk_load_rank(p.state->threshold);
    const uint64_t wanted = p.k - p.state->above;
    for (uint64_t range = blockIdx.x; range < p.ranges; range += gridDim.x) {
        if (p.counts[range] == 0) continue;
        uint64_t before = 0;
        for (uint64_t i = threadIdx.x; i < range; i += blockDim.x) before += p.counts[i];
        before = topk_block_inclusive_sum(before, parts);
        if (threadIdx.x == blockDim.x - 1) parts[32] = before;
        __syncthreads();
        before = parts[32];
        __syncthreads();
        const uint64_t begin = min(range * p.range_rows, p.count), end = min(begin + p.range_rows, p.count);
        for (uint64_t first = begin; first < end && before < wanted; first += blockDim.x) {
            const uint64_t row = first + threadIdx.x;
            const uint32_t equal = row < end && topk_rank(p.keys[row]) == threshold;
            const uint32_t upto = topk_block_inclusive_sum(equal, small_parts);
            const uint64_t at = before + upto - 1;
            if (equal && at < wanted) {
                p.ranks[p.above_max + at] = threshold;
                p.rows[p.above_max + at] = (TopKRow)row;
                if (at + 1 == wanted) p.state->equal = wanted;
            }
            if (threadIdx.x == blockDim.x - 1) parts[32] = upto;
            __syncthreads();
            before += parts[32];
            __syncthreads();
        }
    }
}
