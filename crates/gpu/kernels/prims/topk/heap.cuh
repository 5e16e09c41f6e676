// The best k of each thread, in a heap in shared memory or a list in registers (paper 003, 4.3.1, 4.4.1, appendix A).
#pragma once

// Loads that a thread has in flight.
#define TOPK_HEAP_BATCH 8u

struct TopKHeapParams {
    const TopKKey* keys;
    uint64_t count;
    TopKState* state;
    TopKRank* ranks;
    TopKRow* rows;
    uint64_t room;
    // Length of the result.
    uint64_t k;
};

// The selection takes the wanted ones of all threads' candidates. The last block calls it, with one thread.
WC_DEVICE void topk_start_selection(const TopKHeapParams& p) {
    TopKState* state = p.state;
    const TopKRank all = (TopKRank)~(TopKRank)0;
    topk_store_rank(state->outer_low, 0);
    topk_store_rank(state->outer_high, all);
    topk_store_rank(state->low, 0);
    topk_store_rank(state->high, all);
    state->shift = sizeof(TopKRank) * 8 - min(TOPK_DIGIT_BITS, (uint32_t)sizeof(TopKRank) * 8);
    state->rank = p.k;
    state->settled = 0;
    state->source = 1;
    state->source_count = state->pooled;
    state->target = 0;
    state->exact = 1;
    state->pooled = 0;
    state->ticket = 0;
}

// Shows a body the keys of the calling thread: every gridDim * blockDim-th, `first` on, in batches whose loads are in
// flight together. `step` counts the keys of the thread.
template <typename Body> WC_DEVICE void topk_walk_thread(const TopKHeapParams& p, uint64_t from, Body& body) {
    const uint64_t threads = (uint64_t)gridDim.x * blockDim.x;
    const uint64_t own = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t step = from;
    for (; (step + TOPK_HEAP_BATCH - 1) * threads + own < p.count; step += TOPK_HEAP_BATCH) {
        TopKKey keys[TOPK_HEAP_BATCH];
#pragma unroll
        for (uint32_t j = 0; j < TOPK_HEAP_BATCH; ++j) keys[j] = p.keys[(step + j) * threads + own];
        // Not unrolled: the body is long. The next key moves to the place that is read.
#pragma unroll 1
        for (uint32_t j = 0; j < TOPK_HEAP_BATCH; ++j) {
            body.take(topk_rank(keys[0]), (uint32_t)(step + j));
#pragma unroll
            for (uint32_t i = 0; i + 1 < TOPK_HEAP_BATCH; ++i) keys[i] = keys[i + 1];
        }
    }
    for (; step * threads + own < p.count; ++step) {
        body.take(topk_rank(p.keys[step * threads + own]), (uint32_t)step);
    }
}

#if TOPK_HEAP_SHARED

// A heap whose root is its worst candidate, of equal ranks that of the last step. Slot i of thread t lies at
// i * blockDim + t: a thread has a bank to itself.
struct TopKHeap {
    TopKRank* ranks;
    uint32_t* steps;
    uint32_t held;

    WC_INLINE void put(uint32_t slot, TopKRank rank, uint32_t step) {
        ranks[slot * blockDim.x] = rank;
        steps[slot * blockDim.x] = step;
    }
    WC_INLINE bool is_worse(uint32_t slot, TopKRank rank, uint32_t step) const {
        const TopKRank other = ranks[slot * blockDim.x];
        return other < rank || (other == rank && steps[slot * blockDim.x] > step);
    }
    WC_INLINE void move(uint32_t to, uint32_t from) { put(to, ranks[from * blockDim.x], steps[from * blockDim.x]); }
    WC_INLINE void take(TopKRank rank, uint32_t step) {
        if (held < TOPK_HEAP_K) {
            uint32_t slot = held++;
            // No step of the heap comes after this one, so of equal ranks this one is the worst.
            while (slot > 0 && ranks[(slot - 1) / 2 * blockDim.x] >= rank) {
                move(slot, (slot - 1) / 2);
                slot = (slot - 1) / 2;
            }
            put(slot, rank, step);
            return;
        }
        if (rank <= ranks[0]) return;
        uint32_t slot = 0;
        for (;;) {
            uint32_t child = 2 * slot + 1;
            if (child >= TOPK_HEAP_K) break;
            const uint32_t first = child * blockDim.x;
            if (child + 1 < TOPK_HEAP_K && is_worse(child + 1, ranks[first], steps[first])) ++child;
            if (!is_worse(child, rank, step)) break;
            move(slot, child);
            slot = child;
        }
        put(slot, rank, step);
    }
};

// Purpose: the best k keys that each thread saw, as candidates of a selection.
// Inputs: keys[count]; outputs: ranks and rows of k a thread or fewer in any order, the state for topk_select.
// Mapping: a thread every gridDim * blockDim-th key. Shared memory: k ranks and steps a thread; few threads run beside
// each other for k of 32 and more, and the bandwidth of memory is out of reach then.
// Bytes moved: the keys once; candidates. Numerics: exact; of equal ranks those of the first rows stay.
WC_KERNEL(topk_heap_shared, TopKHeapParams, TOPK_HEAP_THREADS, 1) {
    TopKRank* ranks = (TopKRank*)wc_shared();
    uint32_t* steps = (uint32_t*)(ranks + TOPK_HEAP_K * blockDim.x);
    uint32_t* word = steps + TOPK_HEAP_K * blockDim.x;
    TopKHeap heap = {ranks + threadIdx.x, steps + threadIdx.x, 0};
    topk_walk_thread(p, 0, heap);
    const uint64_t threads = (uint64_t)gridDim.x * blockDim.x;
    const uint64_t own = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const TopKTarget target = {p.ranks, p.rows, &p.state->pooled, p.room};
    __syncwarp();
    for (uint32_t i = 0; i < TOPK_HEAP_K; ++i) {
        const bool held = i < heap.held;
        const uint64_t row = held ? heap.steps[i * blockDim.x] * threads + own : 0;
        topk_append_at_once(target, held, held ? heap.ranks[i * blockDim.x] : (TopKRank)0, (TopKRow)row);
    }
    if (wc_is_last_block(&p.state->ticket, gridDim.x, word) && threadIdx.x == 0) topk_start_selection(p);
}

#else

// The best keys in no order, with the least of them known. All slots have constant places, so they can be registers.
struct TopKRegisters {
    TopKRank ranks[TOPK_HEAP_K];
    uint32_t steps[TOPK_HEAP_K];
    TopKRank least;
    uint32_t least_slot;

    WC_INLINE void find_least() {
        // Of equal ranks the last step is the worst.
        uint32_t last = steps[0];
        least = ranks[0];
        least_slot = 0;
#pragma unroll
        for (uint32_t j = 1; j < TOPK_HEAP_K; ++j) {
            if (ranks[j] < least || (ranks[j] == least && steps[j] > last)) {
                least = ranks[j];
                last = steps[j];
                least_slot = j;
            }
        }
    }
    WC_INLINE void take(TopKRank rank, uint32_t step) {
        if (rank <= least) return;
#pragma unroll
        for (uint32_t j = 0; j < TOPK_HEAP_K; ++j) {
            if (j == least_slot) {
                ranks[j] = rank;
                steps[j] = step;
            }
        }
        find_least();
    }
};

// Purpose, inputs, outputs, mapping: as topk_heap_shared. Registers: two words a slot for 32-bit keys; from k of some
// 64 on the compiler puts them in local memory.
WC_KERNEL(topk_heap_registers, TopKHeapParams, TOPK_HEAP_THREADS, 1) {
    const uint64_t threads = (uint64_t)gridDim.x * blockDim.x;
    const uint64_t own = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    // Keys of the thread.
    const uint64_t mine = own < p.count ? (p.count - own - 1) / threads + 1 : 0;
    TopKRegisters list;
#pragma unroll
    for (uint32_t j = 0; j < TOPK_HEAP_K; ++j) {
        list.ranks[j] = j < mine ? topk_rank(p.keys[j * threads + own]) : (TopKRank)0;
        list.steps[j] = j;
    }
    list.find_least();
    topk_walk_thread(p, TOPK_HEAP_K, list);
    const TopKTarget target = {p.ranks, p.rows, &p.state->pooled, p.room};
    __syncwarp();
#pragma unroll
    for (uint32_t j = 0; j < TOPK_HEAP_K; ++j) {
        const uint64_t row = list.steps[j] * threads + own;
        topk_append_at_once(target, j < mine, list.ranks[j], (TopKRow)row);
    }
    uint32_t* word = (uint32_t*)wc_shared();
    if (wc_is_last_block(&p.state->ticket, gridDim.x, word) && threadIdx.x == 0) topk_start_selection(p);
}

#endif
