// Threshold from a sample, and the pass over the keys that keeps what it lets through.
#pragma once

struct TopKSampleParams {
    const TopKKey* keys;
    uint64_t count;
    TopKState* state;
    TopKRank* kept;
    // Samples that a block leaves for the last one, and the rank of the threshold among all.
    uint64_t keep, rank;
};

// Purpose: a threshold with `rank` of all samples at or above it.
// Inputs: keys[count], count at least the number of samples; output: state->threshold. kept[grid * keep] is scratch.
// Mapping: 2,048 samples a block of 1,024 threads. Sample i is a row of the i-th of equal parts of the input, at a
// hashed place: as even as stride sampling, without its weakness for periods. The parts of a block lie gridDim apart:
// each block has its share of the best samples of sorted keys too. With neighbouring parts one block had them all and
// left `keep` of them; top-k of 2^29 sorted f32, k = 2^20, took 5.2 ms on an H200 (2026-11-23) instead of 0.63. Each
// block leaves its best `keep` samples; the last block finds the threshold among them.
// Shared memory: 2,048 ranks, 4.2 KB of counters. Bytes moved: a sector of 32 a sample.
// Numerics: exact; less than the true rank only if one block has more than `keep` of the best, which lowers the
// threshold a little and is harmless.
WC_KERNEL(topk_sample, TopKSampleParams, 1024, 1) {
    TopKRank* ranks = (TopKRank*)wc_shared();
    uint32_t* words = (uint32_t*)(ranks + 2048);
    uint32_t* word = words + TOPK_CUT_WORDS;
    const uint64_t samples = (uint64_t)gridDim.x * 2048;
#pragma unroll
    for (uint32_t j = 0; j < 2; ++j) {
        const uint32_t slot = j * 1024 + threadIdx.x;
        const uint64_t i = (uint64_t)slot * gridDim.x + blockIdx.x;
        // Below 2^36 rows and 2^18 samples no product overflows.
        const uint64_t first = i * p.count / samples, next = (i + 1) * p.count / samples;
        const uint64_t row = first + ((uint64_t)topk_mix((uint32_t)i) * (next - first) >> 32);
        ranks[slot] = topk_rank(p.keys[row]);
    }
    if (threadIdx.x == 0) *word = 0;
    __syncthreads();
    const TopKRank all = (TopKRank)~(TopKRank)0;
    const TopKCut<TopKRank> cut = topk_cut(TopKValues{ranks}, 2048, (uint32_t)p.keep, (TopKRank)0, all, words);
    uint32_t* ties = words;
    __syncthreads();
    if (threadIdx.x == 0) *ties = 0;
    __syncthreads();
#pragma unroll
    for (uint32_t j = 0; j < 2; ++j) {
        const TopKRank rank = ranks[j * 1024 + threadIdx.x];
        // A cut that is not tied is wanted whole: its bin may hold ranks above `low`.
        bool keeps = rank >= cut.low;
        if (keeps && cut.tied && rank == cut.low) keeps = atomicAdd(ties, 1u) < cut.ties;
        if (keeps) p.kept[blockIdx.x * p.keep + atomicAdd(word, 1u)] = rank;
    }
    if (!wc_is_last_block(&p.state->ticket, gridDim.x, words)) return;
    __syncthreads();
    const TopKCut<TopKRank> last =
        topk_cut(TopKValues{p.kept}, gridDim.x * p.keep, (uint32_t)p.rank, (TopKRank)0, all, words);
    if (threadIdx.x == 0) {
        topk_store_rank(p.state->threshold, last.low);
        p.state->ticket = 0;
    }
}

struct TopKFilterParams {
    const TopKKey* keys;
    uint64_t count;
    TopKState* state;
    TopKRank* ranks;
    TopKRow* rows;
    uint64_t above_max, equal_max;
};

// What the filter does with keys.
struct TopKFilter {
    TopKRank threshold;
    TopKGate gate;
    TopKQueue above_queue, equal_queue;
    TopKTarget above, equal;

    WC_INLINE bool done() const { return gate.none; }
    WC_INLINE void slot(bool valid, TopKKey key, uint64_t row) {
        const bool passes = valid && topk_passes(gate, key);
        if (!__any_sync(WC_FULL_MASK, passes)) return;
        const TopKRank rank = topk_rank(key);
        topk_append(above_queue, above, passes && rank > threshold, rank, (TopKRow)row);
        if (topk_append(equal_queue, equal, passes && rank == threshold, rank, (TopKRow)row)) topk_close(gate);
    }
    WC_INLINE void single(bool valid, TopKKey key, uint64_t row) { slot(valid, key, row); }

    WC_INLINE void chunk(const TopKKey (&own)[TOPK_OWN], uint64_t first) {
        bool any = gate.all;
        if (gate.strict) {
#pragma unroll
            for (uint32_t j = 0; j < TOPK_OWN; ++j) any |= topk_passes<true>(own[j], gate.bound);
        } else {
#pragma unroll
            for (uint32_t j = 0; j < TOPK_OWN; ++j) any |= topk_passes<false>(own[j], gate.bound);
        }
        if (!__any_sync(WC_FULL_MASK, any)) return;
        // One copy of the code below for all slots: sixteen of them, 89 KB, do not fit into the instruction cache.
        static_assert(TOPK_OWN <= 64, "a bit of a word a slot");
        uint64_t marks = 0;
#pragma unroll
        for (uint32_t j = 0; j < TOPK_OWN; ++j) marks |= (topk_passes(gate, own[j]) ? 1ull : 0ull) << j;
        while (__any_sync(WC_FULL_MASK, marks != 0)) {
            const uint32_t at = (uint32_t)__ffsll((int64_t)marks) - 1;
            TopKKey key = own[0];
#pragma unroll
            for (uint32_t j = 1; j < TOPK_OWN; ++j) key = at == j ? own[j] : key;
            slot(marks != 0, key, first + topk_slot(at));
            marks &= marks - 1;
        }
    }
};

// Purpose: the rows at or above the threshold.
// Inputs: keys[count], state->threshold. Outputs: ranks and rows of those above it in 0..above_max in any order, of
// those equal to it in above_max..above_max + equal_max, any of them if there are more; state->above and ->equal, which
// count those without room too (ties only until their room is used up).
// Mapping: a warp a chunk of TOPK_VECTORS 16-byte loads a lane, persistent blocks, no barrier.
// Shared memory: two queues of 64 candidates a warp. Registers: two chunks, 32 of 32 bits at four vectors.
// Bytes moved: the keys once; candidates. Operations: a comparison a key, some fifteen for each that passes.
// Numerics: exact, by ranks. Source: none of the papers.
WC_KERNEL(topk_filter, TopKFilterParams, TOPK_THREADS, TOPK_BLOCKS) {
    const TopKRank threshold = topk_load_rank(p.state->threshold);
    const TopKTarget above = {p.ranks, p.rows, &p.state->above, p.above_max};
    const TopKTarget equal = {p.ranks + p.above_max, p.rows + p.above_max, &p.state->equal, p.equal_max};
    const TopKQueue above_queue = topk_queue(wc_shared());
    const TopKQueue equal_queue = topk_queue(wc_shared() + blockDim.x / 32 * TOPK_QUEUE_BYTES);
    TopKFilter filter = {threshold, topk_gate(threshold), above_queue, equal_queue, above, equal};
    topk_walk(p.keys, p.count, filter);
    if (filter.above_queue.held > 0) topk_flush(filter.above_queue, above);
    if (filter.equal_queue.held > 0) topk_flush(filter.equal_queue, equal);
}
