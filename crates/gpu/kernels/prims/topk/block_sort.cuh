// From few keys to the result, by one block.
#pragma once

struct TopKBlockSortParams {
    const TopKKey* keys;
    uint64_t n;
    // Places in shared memory, a multiple of 16.
    uint64_t places;
    // Length of the result, at most n.
    uint64_t k;
    // 1: keys of the smallest rank stand for nothing.
    uint64_t skips_smallest;
    TopKKey* keys_out;
    TopKRow* rows_out;
};

// Purpose: the best k of few keys in order.
// Mapping: one block of 1,024 threads: ranks and rows to shared memory, without those that stand for nothing, and a
// sort there.
// Shared memory: `places` ranks and rows, and a word. Bytes moved: keys and result once.
// Numerics: exact; equal ranks are in the order of rows.
WC_KERNEL(topk_block_sort, TopKBlockSortParams, 1024, 1) {
    TopKRank* ranks = (TopKRank*)wc_shared();
    TopKRow* rows = (TopKRow*)(ranks + p.places);
    uint32_t* taken = (uint32_t*)(rows + p.places);
    if (threadIdx.x == 0) *taken = 0;
    __syncthreads();
    for (uint64_t base = wc_warp() * 32; base < p.n; base += blockDim.x) {
        const uint64_t row = base + wc_lane();
        const TopKRank rank = row < p.n ? topk_rank(p.keys[row]) : (TopKRank)0;
        const bool takes = row < p.n && (p.skips_smallest == 0 || rank != 0);
        const uint32_t at = topk_place(taken, takes);
        if (takes) {
            ranks[at] = rank;
            rows[at] = (TopKRow)row;
        }
    }
    __syncthreads();
    const uint32_t count = *taken;
    wc_sort_network(TopKColumns{ranks, rows}, count);
    for (uint32_t i = threadIdx.x; i < min((uint64_t)count, p.k); i += blockDim.x) {
        p.keys_out[i] = topk_key(ranks[i]);
        p.rows_out[i] = rows[i];
    }
}
