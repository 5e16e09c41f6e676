// Sample sort of candidates, for results longer than TOPK_SMALL: splitters, counts by bucket, scatter, sort of each
// bucket. Candidates are told apart by row where ranks are equal, so no distribution makes buckets uneven.
//
// 1.34 million candidates of uniform f32 with rows of 32 bits on an H200 (2026-11-23): lists 7 µs, splitters 9, counts
// 36, scatter 28, sort of buckets 66. One block that sorts 8,192 samples took 114 µs in place of the first two (16
// predicted), bitonic sort of buckets 107. Top-k of 2^29 keys, k = 2^20: 0.66 ms, of which the filter takes 0.50.
#pragma once

// A candidate in one place.
struct alignas(sizeof(TopKRank) == 16 ? 16 : 8) TopKPair {
    TopKRank rank;
    TopKRow row;

    // Whether it comes before another one. Four bytes each are compared as one word: two instructions.
    WC_INLINE bool before(const TopKPair& other) const {
        if (sizeof(TopKRank) == 4 && sizeof(TopKRow) == 4) {
            return ((uint64_t)rank << 32 | (uint64_t)other.row) > ((uint64_t)other.rank << 32 | (uint64_t)row);
        }
        return topk_before(rank, row, other.rank, other.row);
    }
};

struct TopKSortParams {
    const TopKState* state;
    const TopKRank* ranks;
    const TopKRow* rows;
    uint64_t above_max, equal_max, k;
    // A power of two, at most 2,048.
    uint64_t buckets;
    // Sorted lists of TOPK_LIST samples each, from which the splitters are drawn; all samples are a multiple of
    // `buckets`.
    TopKPair* lists;
    // `buckets`, the last not used.
    TopKPair* splitters;
    // [buckets] zeroed, then their sizes; [buckets + 1] where they begin; [grid of topk_count][buckets].
    uint32_t *sizes, *starts, *bases;
    // Bucket of each candidate.
    uint16_t* bucket_of;
    // Candidates by bucket.
    TopKPair* sorted;
    TopKKey* keys_out;
    TopKRow* rows_out;
    // Candidates of a bucket that fit in the shared memory of topk_sort_buckets.
    uint64_t bucket_max;
};

// Candidates for wc_sort_network.
struct TopKPairs {
    TopKPair* pairs;
    WC_INLINE void order(uint32_t i, uint32_t j) const {
        const TopKPair first = pairs[i], second = pairs[j];
        if (!second.before(first)) return;
        pairs[i] = second;
        pairs[j] = first;
    }
};

// Samples of a list, and threads of the block that sorts it.
#define TOPK_LIST 256u
// Lanes that look up one sample in all lists.
#define TOPK_SPLIT_LANES 8u
// Candidates that a thread has in flight.
#define TOPK_AT_ONCE 4u

// Purpose: sorted lists of samples at hashed places, each from all over the candidates.
// Mapping: a list a block; a thread counts the samples before its own. Shared memory: the list.
WC_KERNEL(topk_lists, TopKSortParams, TOPK_LIST, 4) {
    TopKPair* pairs = (TopKPair*)wc_shared();
    const TopKCandidates all = topk_candidates(p.state, p.ranks, p.rows, p.above_max, p.equal_max);
    const uint64_t samples = (uint64_t)gridDim.x * TOPK_LIST, i = threadIdx.x * (uint64_t)gridDim.x + blockIdx.x;
    for (uint64_t bucket = i; bucket < p.buckets; bucket += samples) p.sizes[bucket] = 0;
    if (all.count == 0) return;
    const uint64_t first = i * all.count / samples, next = (i + 1) * all.count / samples;
    const uint64_t at = all.at(first + ((uint64_t)topk_mix((uint32_t)i) * (next - first) >> 32));
    const TopKPair own = {all.ranks[at], all.rows[at]};
    pairs[threadIdx.x] = own;
    __syncthreads();
    // A candidate is drawn twice where there are fewer than samples.
    uint32_t place = 0;
#pragma unroll 8
    for (uint32_t j = 0; j < TOPK_LIST; ++j) {
        place += pairs[j].before(own) || (j < threadIdx.x && !own.before(pairs[j]));
    }
    p.lists[(uint64_t)blockIdx.x * TOPK_LIST + place] = own;
}

// Purpose: splitters of equal parts of the candidates: samples whose place among all is a multiple of a part.
// Mapping: TOPK_SPLIT_LANES lanes a sample, which search its place in every so manieth list. Shared memory: none, lists
// are in the L1 cache after the first steps.
WC_KERNEL(topk_split, TopKSortParams, 256, 4) {
    const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x, sample = thread / TOPK_SPLIT_LANES;
    const uint32_t lists = gridDim.x * (blockDim.x / TOPK_SPLIT_LANES) / TOPK_LIST;
    const uint32_t every = lists * TOPK_LIST / (uint32_t)p.buckets;
    const TopKPair own = p.lists[sample];
    uint32_t place = 0;
    for (uint32_t list = thread % TOPK_SPLIT_LANES; list < lists; list += TOPK_SPLIT_LANES) {
        const TopKPair* pairs = p.lists + list * TOPK_LIST;
        // Of equal samples those of the first lists come first.
        const uint32_t own_list = sample / TOPK_LIST;
        uint32_t before = 0;
        if (list == own_list) {
            before = sample % TOPK_LIST;
        } else {
            for (uint32_t step = TOPK_LIST / 2; step > 0; step /= 2) {
                const TopKPair other = pairs[before + step - 1];
                if (list < own_list ? !own.before(other) : other.before(own)) before += step;
            }
            const TopKPair last = pairs[before];
            before += list < own_list ? !own.before(last) : last.before(own);
        }
        place += before;
    }
#pragma unroll
    for (uint32_t step = 1; step < TOPK_SPLIT_LANES; step *= 2) {
        place += __shfl_xor_sync(WC_FULL_MASK, place, (int)step);
    }
    if (thread % TOPK_SPLIT_LANES == 0 && place % every == 0 && place > 0) p.splitters[place / every - 1] = own;
}

// The candidates of the calling block: equal parts.
WC_DEVICE uint64_t topk_part(uint64_t count, uint64_t block) { return block * count / gridDim.x; }

// Purpose: the bucket of each candidate, and where the candidates of each block begin within each bucket.
// Mapping: a part of the candidates a block; the scatter below has the same grid. Shared memory: splitters, counters.
WC_KERNEL(topk_count, TopKSortParams, 1024, 1) {
    const uint32_t buckets = (uint32_t)p.buckets;
    TopKPair* splitters = (TopKPair*)wc_shared();
    uint32_t* sizes = (uint32_t*)(splitters + buckets);
    const TopKCandidates all = topk_candidates(p.state, p.ranks, p.rows, p.above_max, p.equal_max);
    for (uint32_t i = threadIdx.x; i < buckets; i += blockDim.x) {
        sizes[i] = 0;
        if (i + 1 < buckets) splitters[i] = p.splitters[i];
    }
    __syncthreads();
    const uint64_t end = topk_part(all.count, blockIdx.x + 1);
    uint64_t base = topk_part(all.count, blockIdx.x) + threadIdx.x;
    for (; base < end; base += TOPK_AT_ONCE * blockDim.x) {
        TopKPair own[TOPK_AT_ONCE];
        uint32_t bucket[TOPK_AT_ONCE];
#pragma unroll
        for (uint32_t j = 0; j < TOPK_AT_ONCE; ++j) {
            const uint64_t at = all.at(min(base + j * blockDim.x, end - 1));
            own[j] = {all.ranks[at], all.rows[at]};
            bucket[j] = 0;
        }
        // Splitters that come before the candidate.
        for (uint32_t step = buckets / 2; step > 0; step /= 2) {
#pragma unroll
            for (uint32_t j = 0; j < TOPK_AT_ONCE; ++j) {
                if (splitters[bucket[j] + step - 1].before(own[j])) bucket[j] += step;
            }
        }
#pragma unroll
        for (uint32_t j = 0; j < TOPK_AT_ONCE; ++j) {
            const uint64_t i = base + j * blockDim.x;
            if (i >= end) continue;
            p.bucket_of[i] = (uint16_t)bucket[j];
            atomicAdd(sizes + bucket[j], 1u);
        }
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < buckets; i += blockDim.x) {
        uint32_t begin = 0;
        if (sizes[i] > 0) begin = wc_fetch_add(p.sizes + i, sizes[i]);
        p.bases[(uint64_t)blockIdx.x * buckets + i] = begin;
    }
}

// Purpose: candidates by bucket; those of buckets behind the k-th place stay out.
// Mapping: as topk_count, and each block scans the sizes for itself. Shared memory: cursors, counters.
WC_KERNEL(topk_scatter, TopKSortParams, 1024, 1) {
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
    uint64_t base = topk_part(all.count, blockIdx.x) + threadIdx.x;
    for (; base < end; base += TOPK_AT_ONCE * blockDim.x) {
        TopKPair own[TOPK_AT_ONCE];
        uint32_t bucket[TOPK_AT_ONCE];
#pragma unroll
        for (uint32_t j = 0; j < TOPK_AT_ONCE; ++j) {
            const uint64_t i = min(base + j * blockDim.x, end - 1), at = all.at(i);
            own[j] = {all.ranks[at], all.rows[at]};
            bucket[j] = p.bucket_of[i];
        }
#pragma unroll
        for (uint32_t j = 0; j < TOPK_AT_ONCE; ++j) {
            // No wanted bucket gets to the cursor of others: there are fewer than 2^31 candidates.
            if (base + j * blockDim.x >= end || cursors[bucket[j]] == ~0u) continue;
            const uint32_t at = atomicAdd(cursors + bucket[j], 1u);
            p.sorted[at] = own[j];
        }
    }
}

// Threads of a block that sorts a bucket, pairs of a thread that are next to each other, and how often it has as many.
#define TOPK_BUCKET_THREADS 256u
#define TOPK_BUCKET_ITEMS 4u
#define TOPK_BUCKET_TURNS 4u

// Writes the pairs of places first..first + TOPK_BUCKET_ITEMS of the merger of two neighbouring sorted runs to
// `merged`. A run has `run` pairs, a power of two; at `count` and behind there is nothing.
WC_DEVICE void topk_merge(const TopKPair* pairs, uint32_t count, uint32_t run, uint32_t first,
                          TopKPair (&merged)[TOPK_BUCKET_ITEMS]) {
    const uint32_t begin = first & ~(2 * run - 1), middle = min(begin + run, count), end = min(begin + 2 * run, count);
    const uint32_t rows = first - begin, lefts = middle - begin, rights = end - middle;
    uint32_t low = rows > rights ? rows - rights : 0, high = min(rows, lefts);
    while (low < high) {
        const uint32_t at = (low + high) / 2;
        if (pairs[middle + rows - 1 - at].before(pairs[begin + at])) {
            high = at;
        } else {
            low = at + 1;
        }
    }
    uint32_t a = begin + low, b = middle + rows - low;
    TopKPair left = pairs[min(a, count - 1)], right = pairs[min(b, count - 1)];
#pragma unroll
    for (uint32_t i = 0; i < TOPK_BUCKET_ITEMS; ++i) {
        const bool takes_left = b >= end || (a < middle && left.before(right));
        merged[i] = takes_left ? left : right;
        const uint32_t next = takes_left ? ++a : ++b;
        const TopKPair loaded = pairs[min(next, count - 1)];
        if (takes_left) {
            left = loaded;
        } else {
            right = loaded;
        }
    }
}

// Sorts pairs in shared memory, TOPK_BUCKET_THREADS * TOPK_BUCKET_ITEMS * TOPK_BUCKET_TURNS at most. All threads of the
// block call; barriers around are the caller's. Source: merge path, see merge.cuh.
WC_DEVICE void topk_merge_sort(TopKPair* pairs, uint32_t count) {
    const uint32_t own = threadIdx.x * TOPK_BUCKET_ITEMS, turn = TOPK_BUCKET_THREADS * TOPK_BUCKET_ITEMS;
    for (uint32_t run = 1; run < count; run *= 2) {
        TopKPair merged[TOPK_BUCKET_TURNS][TOPK_BUCKET_ITEMS];
#pragma unroll
        for (uint32_t t = 0; t < TOPK_BUCKET_TURNS; ++t) {
            const uint32_t first = own + t * turn;
            if (first >= count) break;
            if (run == 1) {
                // Runs of a thread's own pairs: an exchange sort whose places behind the end hold the last pair.
#pragma unroll
                for (uint32_t i = 0; i < TOPK_BUCKET_ITEMS; ++i) merged[t][i] = pairs[min(first + i, count - 1)];
#pragma unroll
                for (uint32_t i = 0; i < TOPK_BUCKET_ITEMS; ++i) {
#pragma unroll
                    for (uint32_t j = i % 2; j + 1 < TOPK_BUCKET_ITEMS; j += 2) {
                        const TopKPair left = merged[t][j], right = merged[t][j + 1];
                        const bool swaps = first + j + 1 < count && right.before(left);
                        merged[t][j] = swaps ? right : left;
                        merged[t][j + 1] = swaps ? left : right;
                    }
                }
            } else {
                topk_merge(pairs, count, run, first, merged[t]);
            }
        }
        __syncthreads();
#pragma unroll
        for (uint32_t t = 0; t < TOPK_BUCKET_TURNS; ++t) {
#pragma unroll
            for (uint32_t i = 0; i < TOPK_BUCKET_ITEMS; ++i) {
                const uint32_t at = own + t * turn + i;
                if (at < count) pairs[at] = merged[t][i];
            }
        }
        if (run == 1) run = TOPK_BUCKET_ITEMS / 2;
        __syncthreads();
    }
}

// Purpose: the result from the buckets. Mapping: a bucket a block. Shared memory: bucket_max candidates; larger
// buckets, which random splitters make unlikely, are sorted where they lie.
WC_KERNEL(topk_sort_buckets, TopKSortParams, TOPK_BUCKET_THREADS, 4) {
    const uint64_t start = p.starts[blockIdx.x], size = p.starts[blockIdx.x + 1] - start;
    if (start >= p.k) return;
    TopKPair* pairs = p.sorted + start;
    if (size <= p.bucket_max) {
        pairs = (TopKPair*)wc_shared();
        for (uint64_t i = threadIdx.x; i < size; i += blockDim.x) pairs[i] = p.sorted[start + i];
        __syncthreads();
        topk_merge_sort(pairs, (uint32_t)size);
    } else {
        wc_sort_network(TopKPairs{pairs}, (uint32_t)size);
    }
    const uint64_t end = min(size, p.k - start);
    for (uint64_t i = threadIdx.x; i < end; i += blockDim.x) {
        p.keys_out[start + i] = topk_key(pairs[i].rank);
        p.rows_out[start + i] = pairs[i].row;
    }
}
