// From candidates to the result: the best k in order.
#pragma once

// The candidates of a run: `above` from 0 on, `equal` ones from above_max on.
struct TopKCandidates {
    const TopKRank* ranks;
    const TopKRow* rows;
    uint64_t above, above_max, count;

    WC_INLINE uint64_t at(uint64_t i) const { return i < above ? i : above_max + (i - above); }
    WC_INLINE bool get(uint64_t i, TopKRank& rank) const {
        rank = ranks[at(i)];
        return true;
    }
};

WC_DEVICE TopKCandidates topk_candidates(
    const TopKState* state, const TopKRank* ranks, const TopKRow* rows, uint64_t above_max, uint64_t equal_max) {
    const uint64_t above = min(state->above, above_max), equal = min(state->equal, equal_max);
    return {ranks, rows, above, above_max, above + equal};
}

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
};

#define TOPK_SMALL 2048u

// Purpose: the best k of the candidates in order, k small.
// Mapping: one block of 1,024 threads: a cut by rank, a cut by row among ties, a sort in shared memory.
// Shared memory: TOPK_SMALL ranks and rows, 4.2 KB of counters. Bytes moved: candidates two to four times, from L2.
// Numerics: exact; candidates of one rank are taken by row, the smallest first.
WC_KERNEL(topk_finish, TopKFinishParams, 1024, 1) {
    TopKRank* ranks = (TopKRank*)wc_shared();
    TopKRow* rows = (TopKRow*)(ranks + TOPK_SMALL);
    uint32_t* words = (uint32_t*)(rows + TOPK_SMALL);
    uint32_t* taken = words + TOPK_CUT_WORDS;
    const TopKCandidates all = topk_candidates(p.state, p.ranks, p.rows, p.above_max, p.equal_max);
    TopKCut<TopKRank> cut = {0, 0, false};
    TopKCut<TopKRow> row_cut = {0, 0, false};
    if (threadIdx.x == 0) *taken = 0;
    if (all.count > p.k) {
        cut = topk_cut(all, all.count, (uint32_t)p.k, (TopKRank)0, (TopKRank)~(TopKRank)0, words);
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
            own[j] = i < all.count ? all.ranks[all.at(i)] : (TopKRank)0;
        }
#pragma unroll
        for (uint32_t j = 0; j < 4; ++j) {
            const uint64_t i = base + j * blockDim.x + wc_lane();
            const bool reaches = i < all.count && own[j] >= cut.low;
            const uint32_t reaching = __ballot_sync(WC_FULL_MASK, reaches);
            if (reaching == 0) continue;
            const TopKRow row = reaches ? all.rows[all.at(i)] : (TopKRow)0;
            const bool takes = reaches && (own[j] > cut.low || !cut.tied || (TopKRow)~row >= row_cut.low);
            const uint32_t takers = __ballot_sync(WC_FULL_MASK, takes);
            uint32_t first = 0;
            if (wc_lane() == 0 && takers != 0) first = atomicAdd(taken, (uint32_t)__popc(takers));
            first = __shfl_sync(WC_FULL_MASK, first, 0);
            if (takes) {
                const uint32_t at = first + (uint32_t)__popc(takers & ((1u << wc_lane()) - 1u));
                ranks[at] = own[j];
                rows[at] = row;
            }
        }
    }
    __syncthreads();
    topk_sort(ranks, rows, (uint32_t)p.k);
    for (uint32_t i = threadIdx.x; i < p.k; i += blockDim.x) {
        p.keys_out[i] = topk_key(ranks[i]);
        p.rows_out[i] = rows[i];
    }
}

// Sample sort for k above TOPK_SMALL: splitters, counts by bucket, scatter, sort of each bucket. Candidates are told
// apart by row where ranks are equal, so no distribution makes buckets uneven.
struct TopKSortParams {
    const TopKState* state;
    const TopKRank* ranks;
    const TopKRow* rows;
    uint64_t above_max, equal_max, k;
    // A power of two, at most 2,048.
    uint64_t buckets;
    // Candidates that the splitters are drawn from, a multiple of `buckets`.
    uint64_t samples;
    // `buckets` each, the last not used.
    TopKRank* splitter_ranks;
    TopKRow* splitter_rows;
    // [buckets] zeroed, then their sizes; [buckets + 1] where they begin; [grid of topk_count][buckets].
    uint32_t *sizes, *starts, *bases;
    // Bucket of each candidate.
    uint16_t* bucket_of;
    // Candidates by bucket.
    TopKRank* sorted_ranks;
    TopKRow* sorted_rows;
    TopKKey* keys_out;
    TopKRow* rows_out;
    // Candidates of a bucket that fit in the shared memory of topk_sort_buckets.
    uint64_t bucket_max;
};

// Purpose: splitters of equal parts of the candidates. Mapping: one block of 1,024 threads sorts samples at hashed
// places. Shared memory: the samples.
WC_KERNEL(topk_split, TopKSortParams, 1024, 1) {
    TopKRank* ranks = (TopKRank*)wc_shared();
    TopKRow* rows = (TopKRow*)(ranks + p.samples);
    const TopKCandidates all = topk_candidates(p.state, p.ranks, p.rows, p.above_max, p.equal_max);
    for (uint64_t i = threadIdx.x; i < p.samples; i += blockDim.x) {
        const uint64_t first = i * all.count / p.samples, next = (i + 1) * all.count / p.samples;
        const uint64_t at = all.at(first + ((uint64_t)topk_mix((uint32_t)i) * (next - first) >> 32));
        ranks[i] = all.ranks[at];
        rows[i] = all.rows[at];
    }
    for (uint64_t i = threadIdx.x; i < p.buckets; i += blockDim.x) p.sizes[i] = 0;
    __syncthreads();
    topk_sort(ranks, rows, (uint32_t)p.samples);
    const uint64_t every = p.samples / p.buckets;
    for (uint64_t i = threadIdx.x; i + 1 < p.buckets; i += blockDim.x) {
        p.splitter_ranks[i] = ranks[(i + 1) * every];
        p.splitter_rows[i] = rows[(i + 1) * every];
    }
}

// The candidates of the calling block: equal parts.
WC_DEVICE uint64_t topk_part(uint64_t count, uint64_t block) { return block * count / gridDim.x; }

// Purpose: the bucket of each candidate, and where the candidates of each block begin within each bucket.
// Mapping: a part of the candidates a block; the scatter below has the same grid. Shared memory: splitters, counters.
WC_KERNEL(topk_count, TopKSortParams, 512, 2) {
    const uint32_t buckets = (uint32_t)p.buckets;
    TopKRank* ranks = (TopKRank*)wc_shared();
    TopKRow* rows = (TopKRow*)(ranks + buckets);
    uint32_t* sizes = (uint32_t*)(rows + buckets);
    const TopKCandidates all = topk_candidates(p.state, p.ranks, p.rows, p.above_max, p.equal_max);
    for (uint32_t i = threadIdx.x; i < buckets; i += blockDim.x) {
        sizes[i] = 0;
        if (i + 1 < buckets) {
            ranks[i] = p.splitter_ranks[i];
            rows[i] = p.splitter_rows[i];
        }
    }
    __syncthreads();
    const uint64_t end = topk_part(all.count, blockIdx.x + 1);
    for (uint64_t i = topk_part(all.count, blockIdx.x) + threadIdx.x; i < end; i += blockDim.x) {
        const TopKRank rank = all.ranks[all.at(i)];
        const TopKRow row = all.rows[all.at(i)];
        // Splitters that come before the candidate.
        uint32_t bucket = 0;
        for (uint32_t step = buckets / 2; step > 0; step /= 2) {
            const uint32_t at = bucket + step - 1;
            if (topk_before(ranks[at], rows[at], rank, row)) bucket += step;
        }
        p.bucket_of[i] = (uint16_t)bucket;
        atomicAdd(sizes + bucket, 1u);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < buckets; i += blockDim.x) {
        uint32_t base = 0;
        if (sizes[i] > 0) base = wc_fetch_add(p.sizes + i, sizes[i]);
        p.bases[(uint64_t)blockIdx.x * buckets + i] = base;
    }
}

// Purpose: candidates by bucket; those of buckets behind the k-th place stay out.
// Mapping: as topk_count, and each block scans the sizes for itself. Shared memory: cursors, counters.
WC_KERNEL(topk_scatter, TopKSortParams, 512, 2) {
    const uint32_t buckets = (uint32_t)p.buckets;
    uint32_t* parts = (uint32_t*)wc_shared();
    uint32_t* cursors = parts + 32;
    const TopKCandidates all = topk_candidates(p.state, p.ranks, p.rows, p.above_max, p.equal_max);
    uint32_t before = 0;
    for (uint32_t first = 0; first < buckets; first += blockDim.x) {
        const uint32_t i = first + threadIdx.x;
        const uint32_t size = i < buckets ? p.sizes[i] : 0;
        const uint32_t upto = before + topk_block_inclusive_sum(size, parts), start = upto - size;
        if (i < buckets) {
            // A bucket that is not wanted has no cursor.
            cursors[i] = start < p.k ? start + p.bases[(uint64_t)blockIdx.x * buckets + i] : ~0u;
            if (blockIdx.x == 0) p.starts[i] = start;
            if (blockIdx.x == 0 && i + 1 == buckets) p.starts[buckets] = upto;
        }
        if (threadIdx.x == blockDim.x - 1) parts[0] = upto;
        __syncthreads();
        before = parts[0];
        __syncthreads();
    }
    const uint64_t end = topk_part(all.count, blockIdx.x + 1);
    for (uint64_t i = topk_part(all.count, blockIdx.x) + threadIdx.x; i < end; i += blockDim.x) {
        const uint32_t bucket = p.bucket_of[i];
        // No wanted bucket gets so far: there are fewer than 2^31 candidates.
        if (cursors[bucket] == ~0u) continue;
        const uint32_t at = atomicAdd(cursors + bucket, 1u);
        p.sorted_ranks[at] = all.ranks[all.at(i)];
        p.sorted_rows[at] = all.rows[all.at(i)];
    }
}

// Purpose: the result from the buckets. Mapping: a bucket a block. Shared memory: bucket_max candidates; larger
// buckets, which random splitters make unlikely, are sorted where they lie.
WC_KERNEL(topk_sort_buckets, TopKSortParams, 256, 4) {
    const uint64_t start = p.starts[blockIdx.x], size = p.starts[blockIdx.x + 1] - start;
    if (start >= p.k) return;
    TopKRank* ranks = p.sorted_ranks + start;
    TopKRow* rows = p.sorted_rows + start;
    if (size <= p.bucket_max) {
        ranks = (TopKRank*)wc_shared();
        rows = (TopKRow*)(ranks + p.bucket_max);
        for (uint64_t i = threadIdx.x; i < size; i += blockDim.x) {
            ranks[i] = p.sorted_ranks[start + i];
            rows[i] = p.sorted_rows[start + i];
        }
        __syncthreads();
    }
    topk_sort(ranks, rows, (uint32_t)size);
    const uint64_t end = min(size, p.k - start);
    for (uint64_t i = threadIdx.x; i < end; i += blockDim.x) {
        p.keys_out[start + i] = topk_key(ranks[i]);
        p.rows_out[start + i] = rows[i];
    }
}
