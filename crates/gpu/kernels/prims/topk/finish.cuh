// From candidates to the result: the best k in order.
#pragma once

// Complemented rows of the candidates of one rank: the smallest row is the largest value.
struct TopKTiedRows {
    TopKCandidates candidates;
    TopKRank rank;
    WC_INLINE bool get(uint64_t i, TopKRow& value) const {
        const uint64_t at = candidates.at(i);
        value = (TopKRow)~candidates.rows[at];
        return candidates.ranks[at] == rank;
    }
};

struct TopKFinishParams {
    const TopKState* state;
    const TopKRank* ranks;
    const TopKRow* rows;
    uint64_t above_max, equal_max;
    // Length of the result, at most TOPK_SMALL, and at most the number of candidates.
    uint64_t k;
    TopKKey* keys_out;
    TopKRow* rows_out;
    // Candidates whose ranks fit in shared memory.
    uint64_t staged_max;
};

#define TOPK_SMALL 2048u

// Purpose: the best k of the candidates in order, k small.
// Mapping: one block of 1,024 threads: a cut by rank between the least and the greatest, a cut by row among ties, a
// sort in shared memory.
// Shared memory: TOPK_SMALL ranks and rows, 4.2 KB of counters, ranks of staged_max candidates. Bytes moved: candidates
// once from L2, or three to five times if they are more.
// Numerics: exact; candidates of one rank are taken by row, the smallest first.
WC_KERNEL(topk_finish, TopKFinishParams, 1024, 1) {
    TopKRank* ranks = (TopKRank*)wc_shared();
    TopKRow* rows = (TopKRow*)(ranks + TOPK_SMALL);
    TopKRank* staged = (TopKRank*)(rows + TOPK_SMALL);
    uint32_t* words = (uint32_t*)(staged + p.staged_max);
    uint32_t* taken = words + TOPK_CUT_WORDS;
    const TopKCandidates all = topk_candidates(p.state, p.ranks, p.rows, p.above_max, p.equal_max);
    TopKCut<TopKRank> cut = {0, 0, false};
    TopKCut<TopKRow> row_cut = {0, 0, false};
    if (threadIdx.x == 0) *taken = 0;
    // Ranks, where they are read from: shared memory or the list of candidates.
    TopKCandidates candidates = all;
    if (all.count > p.k) {
        if (all.count <= p.staged_max) {
            candidates.ranks = staged;
            candidates.above = all.count;
        }
        TopKExtent extent = {(TopKRank)~(TopKRank)0, 0};
#pragma unroll 8
        for (uint64_t i = threadIdx.x; i < all.count; i += blockDim.x) {
            const TopKRank rank = all.ranks[all.at(i)];
            extent.rank(rank);
            if (candidates.ranks == staged) staged[i] = rank;
        }
        topk_block_extent(extent, ranks);
        cut = topk_cut(candidates, all.count, (uint32_t)p.k, extent.low, extent.high, words);
        if (cut.tied) {
            __syncthreads();
            const TopKTiedRows tied = {all, cut.low};
            row_cut = topk_cut(tied, all.count, cut.ties, (TopKRow)0, (TopKRow)~(TopKRow)0, words);
        }
    }
    __syncthreads();
    for (uint64_t base = wc_warp() * 32; base < all.count; base += 4 * blockDim.x) {
        // Four loads in flight; rows are loaded where they are needed.
        TopKRank own[4];
#pragma unroll
        for (uint32_t j = 0; j < 4; ++j) {
            const uint64_t i = base + j * blockDim.x + wc_lane();
            own[j] = i < all.count ? candidates.ranks[candidates.at(i)] : (TopKRank)0;
        }
#pragma unroll
        for (uint32_t j = 0; j < 4; ++j) {
            const uint64_t i = base + j * blockDim.x + wc_lane();
            const bool reaches = i < all.count && own[j] >= cut.low;
            const uint32_t reaching = __ballot_sync(WC_FULL_MASK, reaches);
            if (reaching == 0) continue;
            const TopKRow row = reaches ? all.rows[all.at(i)] : (TopKRow)0;
            const bool takes = reaches && (own[j] > cut.low || !cut.tied || (TopKRow)~row >= row_cut.low);
            const uint32_t at = topk_place(taken, takes);
            if (takes) {
                ranks[at] = own[j];
                rows[at] = row;
            }
        }
    }
    __syncthreads();
    wc_sort_network(TopKColumns{ranks, rows}, (uint32_t)p.k);
    for (uint32_t i = threadIdx.x; i < p.k; i += blockDim.x) {
        p.keys_out[i] = topk_key(ranks[i]);
        p.rows_out[i] = rows[i];
    }
}
