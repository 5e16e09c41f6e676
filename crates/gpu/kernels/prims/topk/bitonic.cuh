// Bitonic Top-K (paper 003, 4.3.2 and 4.4.3): sorted runs of K, merged in pairs to the better half, rebuilt, again.
//
// The launcher defines TOPK_LEVEL (0 to 7, as BitonicLevel), TOPK_K (a power of two), TOPK_X (keys a thread, a power
// of two), TOPK_LOG_X and TOPK_TILE_THREADS. A tile is TOPK_TILE_THREADS * TOPK_X candidates, at least TOPK_K * TOPK_X.
// Runs alternate: the better candidates come first in those at even multiples of TOPK_K, last in the others. Places
// behind the end hold the worst candidate: rank 0 and the largest row.
#pragma once

#define TOPK_FUSED 2
#define TOPK_COMBINED 3
#define TOPK_SORTED_FIRST 4
#define TOPK_PADDED 5
#define TOPK_PERMUTED 6
#define TOPK_REASSIGNED 7
#define TOPK_TILE (TOPK_TILE_THREADS * TOPK_X)

struct TopKBitonicParams {
    // Candidates: keys, which count from row 0; or ranks and rows.
    const TopKKey* keys;
    const TopKRank* ranks;
    const TopKRow* rows;
    uint64_t count;
    TopKRank* ranks_out;
    TopKRow* rows_out;
    // Of one step: the distance, and the length of what it sorts.
    uint64_t distance, length;
    // Of the last kernel.
    uint64_t k;
    TopKKey* keys_out;
};

struct TopKItem {
    TopKRank rank;
    TopKRow row;
};

WC_DEVICE TopKItem topk_item(const TopKBitonicParams& p, uint64_t i) {
    if (i >= p.count) return {0, (TopKRow)~(TopKRow)0};
    if (p.keys != nullptr) return {topk_rank(p.keys[i]), (TopKRow)i};
    return {p.ranks[i], p.rows[i]};
}

// Puts the better of two candidates first, or last.
WC_DEVICE void topk_exchange(TopKItem& a, TopKItem& b, bool better_first) {
    if (topk_before(b.rank, b.row, a.rank, a.row) == better_first) {
        const TopKItem item = a;
        a = b;
        b = item;
    }
}

// A tile in shared memory.
struct TopKTile {
    TopKRank* ranks;
    TopKRow* rows;

    // Padding of one slot in 32 keeps threads with neighbouring chunks in different banks; turned chunks need none.
    static WC_INLINE uint32_t place(uint32_t i) { return TOPK_LEVEL == TOPK_PADDED ? i + (i >> 5) : i; }
    WC_INLINE TopKItem get(uint32_t i) const { return {ranks[place(i)], rows[place(i)]}; }
    WC_INLINE void put(uint32_t i, const TopKItem& item) const {
        ranks[place(i)] = item.rank;
        rows[place(i)] = item.row;
    }
};

WC_DEVICE TopKTile topk_tile() {
    TopKRank* ranks = (TopKRank*)wc_shared();
    return {ranks, (TopKRow*)(ranks + TOPK_TILE + (TOPK_LEVEL == TOPK_PADDED ? TOPK_TILE / 32 : 0))};
}

// By how much a thread turns its chunk of 2^log_chunk candidates, each 2^log_apart from the next: it takes candidate
// j ^ turn when others take theirs. Chunks that begin at the same of the 32 banks turn differently,
// so all accesses of a warp go to different banks, whatever the distance.
WC_DEVICE uint32_t topk_turn(uint32_t group, uint32_t log_apart, uint32_t log_chunk) {
    if (TOPK_LEVEL < TOPK_PERMUTED) return 0;
    // Chunks beside each other in the banks.
    const uint32_t beside = log_apart + log_chunk < 5 ? 5 - log_apart - log_chunk : 0;
    return group >> log_apart >> beside & ((1u << log_chunk) - 1);
}

// The S distances `distance`, `distance` / 2, ... at once: a thread has 2^S candidates, each `distance` >> (S - 1) from
// the next, in registers.
template <uint32_t S>
WC_DEVICE void topk_steps(const TopKTile& tile, uint32_t count, uint32_t distance, uint32_t length) {
    const uint32_t apart = distance >> (S - 1), log_apart = topk_bit_length(apart) - 1;
    for (uint32_t group = threadIdx.x; group < count >> S; group += blockDim.x) {
        const uint32_t low = group & (apart - 1), base = (group - low << S) + low;
        const uint32_t turn = topk_turn(group, log_apart, S);
        const bool better_first = (base & length) == 0;
        TopKItem own[1u << S];
#pragma unroll
        for (uint32_t j = 0; j < 1u << S; ++j) own[j] = tile.get(base + (j ^ turn) * apart);
#pragma unroll
        for (uint32_t m = 1u << (S - 1); m > 0; m /= 2) {
#pragma unroll
            for (uint32_t j = 0; j < 1u << S; ++j) {
                if ((j & m) == 0) topk_exchange(own[j], own[j | m], better_first == ((turn & m) == 0));
            }
        }
#pragma unroll
        for (uint32_t j = 0; j < 1u << S; ++j) tile.put(base + (j ^ turn) * apart, own[j]);
    }
    __syncthreads();
}

// All distances from `distance` down: sorts bitonic sequences of `length` = 2 * `distance`. `most` distances at once.
WC_DEVICE void topk_rebuild(const TopKTile& tile, uint32_t count, uint32_t distance, uint32_t length, uint32_t most) {
    // What does not fill a group of `most` comes first, so the last group has neighbours.
    while (distance > 0) {
        const uint32_t left = topk_bit_length(distance), steps = left % most != 0 ? left % most : most;
        switch (steps) {
            case 1: topk_steps<1>(tile, count, distance, length); break;
            case 2: topk_steps<2>(tile, count, distance, length); break;
            case 3: topk_steps<3>(tile, count, distance, length); break;
            default: topk_steps<4>(tile, count, distance, length); break;
        }
        distance >>= steps;
    }
}

// Loads the block's tile and, where it holds keys, sorts its runs.
WC_DEVICE void topk_load_tile(const TopKBitonicParams& p, const TopKTile& tile, bool sorts) {
    const uint64_t first = (uint64_t)blockIdx.x * TOPK_TILE;
    const uint32_t most = TOPK_LEVEL >= TOPK_COMBINED ? TOPK_LOG_X : 1;
    uint32_t sorted = 1;
    if (sorts && TOPK_LEVEL >= TOPK_SORTED_FIRST) {
        // A thread's neighbours, sorted in registers.
        const bool wide = TOPK_X * sizeof(TopKKey) >= 16 && ((uint64_t)p.keys & 15) == 0;
        sorted = min(TOPK_X, TOPK_K);
        const uint32_t base = threadIdx.x * TOPK_X;
        TopKItem own[TOPK_X];
        if (wide && first + TOPK_TILE <= p.count) {
            __align__(16) TopKKey keys[TOPK_X];
#pragma unroll
            for (uint32_t v = 0; v < TOPK_X * sizeof(TopKKey) / 16; ++v) {
                ((int4*)keys)[v] = wc_load16_stream((const char*)(p.keys + first + base) + v * 16);
            }
#pragma unroll
            for (uint32_t j = 0; j < TOPK_X; ++j) own[j] = {topk_rank(keys[j]), (TopKRow)(first + base + j)};
        } else {
#pragma unroll
            for (uint32_t j = 0; j < TOPK_X; ++j) own[j] = topk_item(p, first + base + j);
        }
#pragma unroll
        for (uint32_t length = 2; length <= min(TOPK_X, TOPK_K); length *= 2) {
#pragma unroll
            for (uint32_t m = length / 2; m > 0; m /= 2) {
#pragma unroll
                for (uint32_t j = 0; j < TOPK_X; ++j) {
                    if ((j & m) == 0) topk_exchange(own[j], own[j | m], ((base + j) & length) == 0);
                }
            }
        }
        const uint32_t turn = topk_turn(threadIdx.x, 0, TOPK_LOG_X);
        if (TOPK_LEVEL >= TOPK_PERMUTED) {
            // Candidate j ^ turn comes to register j, a bit of the turn at a time.
#pragma unroll
            for (uint32_t m = 1; m < TOPK_X; m *= 2) {
#pragma unroll
                for (uint32_t j = 0; j < TOPK_X; ++j) {
                    if ((j & m) != 0) continue;
                    const TopKItem low = own[j], high = own[j | m];
                    own[j] = turn & m ? high : low;
                    own[j | m] = turn & m ? low : high;
                }
            }
        }
#pragma unroll
        for (uint32_t j = 0; j < TOPK_X; ++j) tile.put(base + (j ^ turn), own[j]);
    } else {
        for (uint32_t i = threadIdx.x; i < TOPK_TILE; i += blockDim.x) tile.put(i, topk_item(p, first + i));
    }
    __syncthreads();
    if (!sorts) return;
    for (uint32_t length = 2 * sorted; length <= TOPK_K; length *= 2) {
        topk_rebuild(tile, TOPK_TILE, length / 2, length, most);
    }
}

// Keeps the better half of each pair of runs: `count` candidates before, bitonic runs of TOPK_K after.
WC_DEVICE void topk_merge(const TopKTile& tile, uint32_t count) {
    TopKItem own[TOPK_X / 2];
#pragma unroll
    for (uint32_t j = 0; j < TOPK_X / 2; ++j) {
        const uint32_t i = j * blockDim.x + threadIdx.x;
        if (i < count / 2) {
            const uint32_t from = (i & ~(TOPK_K - 1)) * 2 + (i & (TOPK_K - 1));
            TopKItem other = tile.get(from + TOPK_K);
            own[j] = tile.get(from);
            topk_exchange(own[j], other, true);
        }
    }
    __syncthreads();
#pragma unroll
    for (uint32_t j = 0; j < TOPK_X / 2; ++j) {
        const uint32_t i = j * blockDim.x + threadIdx.x;
        if (i < count / 2) tile.put(i, own[j]);
    }
    __syncthreads();
}

// Writes the first candidates of a tile, `count` a block.
WC_DEVICE void topk_store_tile(const TopKBitonicParams& p, const TopKTile& tile, uint32_t count) {
    const uint64_t first = (uint64_t)blockIdx.x * count;
    for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
        const TopKItem item = tile.get(i);
        p.ranks_out[first + i] = item.rank;
        p.rows_out[first + i] = item.row;
    }
}

// Merges, with rebuilds between, until a TOPK_X-th of the tile is left.
WC_DEVICE void topk_reduce_tile(const TopKTile& tile, bool rebuilds) {
#pragma unroll 1
    for (uint32_t merges = 0; merges < TOPK_LOG_X; ++merges) {
        // Unless threads are reassigned, each has fewer candidates after a merge and so fewer distances at once.
        const uint32_t left = TOPK_LEVEL >= TOPK_REASSIGNED ? TOPK_LOG_X : TOPK_LOG_X - merges;
        const uint32_t most = TOPK_LEVEL >= TOPK_COMBINED ? left : 1, count = TOPK_TILE >> merges;
        if (rebuilds || merges > 0) topk_rebuild(tile, count, TOPK_K / 2, TOPK_K, most);
        topk_merge(tile, count);
    }
}

// Purpose: sorts keys to runs, merges to a TOPK_X-th: bitonic runs of TOPK_K.
// Inputs: keys[count]; outputs: grid * TOPK_TILE_THREADS candidates.
// Mapping: a tile a block. Shared memory: the tile. Bytes moved: the keys once, a TOPK_X-th of the candidates.
// Numerics: exact, by rank and row, so the result is determined. Source: SortReducer of paper 003, 4.4.3.
WC_KERNEL(topk_sort_reduce, TopKBitonicParams, TOPK_TILE_THREADS, 1) {
    const TopKTile tile = topk_tile();
    topk_load_tile(p, tile, true);
    topk_reduce_tile(tile, false);
    topk_store_tile(p, tile, TOPK_TILE_THREADS);
}

// Purpose: the same for candidates in bitonic runs. Source: BitonicReducer of paper 003, 4.4.3.
WC_KERNEL(topk_reduce, TopKBitonicParams, TOPK_TILE_THREADS, 1) {
    const TopKTile tile = topk_tile();
    topk_load_tile(p, tile, false);
    topk_reduce_tile(tile, true);
    topk_store_tile(p, tile, TOPK_TILE_THREADS);
}

// Purpose: the operators local sort and rebuild by themselves, a tile a block: all distances in shared memory.
WC_KERNEL(topk_sort_runs, TopKBitonicParams, TOPK_TILE_THREADS, 1) {
    const TopKTile tile = topk_tile();
    topk_load_tile(p, tile, true);
    topk_store_tile(p, tile, TOPK_TILE);
}
WC_KERNEL(topk_rebuild_runs, TopKBitonicParams, TOPK_TILE_THREADS, 1) {
    const TopKTile tile = topk_tile();
    topk_load_tile(p, tile, false);
    topk_rebuild(tile, TOPK_TILE, TOPK_K / 2, TOPK_K, 1);
    topk_store_tile(p, tile, TOPK_TILE);
}

// Purpose: ranks and rows of keys, for steps in device memory. Mapping: a key a thread.
WC_KERNEL(topk_load_items, TopKBitonicParams, 256, 4) {
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.length;
         i += (uint64_t)gridDim.x * blockDim.x) {
        const TopKItem item = topk_item(p, i);
        p.ranks_out[i] = item.rank;
        p.rows_out[i] = item.row;
    }
}

// Purpose: one distance in device memory. Mapping: a pair a thread; `count` is a multiple of twice the distance.
WC_KERNEL(topk_step, TopKBitonicParams, 256, 4) {
    for (uint64_t pair = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; pair < p.count / 2;
         pair += (uint64_t)gridDim.x * blockDim.x) {
        const uint64_t low = pair & (p.distance - 1), i = (pair - low) * 2 + low, j = i + p.distance;
        TopKItem a = {p.ranks_out[i], p.rows_out[i]}, b = {p.ranks_out[j], p.rows_out[j]};
        topk_exchange(a, b, (i & p.length) == 0);
        p.ranks_out[i] = a.rank;
        p.rows_out[i] = a.row;
        p.ranks_out[j] = b.rank;
        p.rows_out[j] = b.row;
    }
}

// Purpose: the operator merge in device memory. Mapping: a pair a thread; places behind the end are the worst.
WC_KERNEL(topk_merge_runs, TopKBitonicParams, 256, 4) {
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.length;
         i += (uint64_t)gridDim.x * blockDim.x) {
        const uint64_t from = (i & ~(uint64_t)(TOPK_K - 1)) * 2 + (i & (TOPK_K - 1));
        TopKItem a = topk_item(p, from), b = topk_item(p, from + TOPK_K);
        topk_exchange(a, b, true);
        p.ranks_out[i] = a.rank;
        p.rows_out[i] = a.row;
    }
}

// Purpose: the result from the last candidates, at most 2,048. Mapping: one block. Shared memory: the candidates.
WC_KERNEL(topk_sort_last, TopKBitonicParams, 1024, 1) {
    TopKRank* ranks = (TopKRank*)wc_shared();
    TopKRow* rows = (TopKRow*)(ranks + 2048);
    for (uint32_t i = threadIdx.x; i < p.count; i += blockDim.x) {
        ranks[i] = p.ranks[i];
        rows[i] = p.rows[i];
    }
    __syncthreads();
    wc_sort_network(TopKColumns{ranks, rows}, (uint32_t)p.count);
    for (uint32_t i = threadIdx.x; i < p.k; i += blockDim.x) {
        p.keys_out[i] = topk_key(ranks[i]);
        p.rows_out[i] = rows[i];
    }
}
