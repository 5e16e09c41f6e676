// What all top-k kernels share: ranks of keys, the state of a run, candidate lists, the walk over the keys.
//
// The launcher defines TOPK_KEY (type of keys), TOPK_ROW (type of row ids), TOPK_SMALLEST (0 or 1) and the tuning.
// The *rank* of a key is its ordered bits, complemented where the smallest keys are asked for: the kernels below look
// for the largest ranks. Equal ranks are ordered by row, the smallest first.
#pragma once

#define TOPK_DIGIT_BITS 11u

typedef TOPK_KEY TopKKey;
typedef TOPK_ROW TopKRow;
typedef WcKey<TopKKey>::Bits TopKRank;

// Counters that kernels find zeroed, and what one kernel tells the next. The launcher knows its size.
struct TopKState {
    // Candidates better than the threshold, and equal to it, also those that found no room.
    uint64_t above, equal;
    // 0: the candidates of the filter stand; 1: selection passes narrow down; 2: they are done.
    uint64_t exact;
    // Blocks that are done with the kernel at hand.
    uint64_t ticket;
    // Ranks, low word first. All ranks of the source lie in `outer`; those within `low..=high` are undecided.
    uint64_t threshold[2], outer_low[2], outer_high[2], low[2], high[2];
    // Undecided candidates that belong to the result.
    uint64_t rank;
    // Distance of the digit at hand from the lowest bit of `rank - low`.
    uint64_t shift;
    // 1: all undecided ranks are equal, or all of them belong to the result.
    uint64_t settled;
    // Where undecided rows are read: 0 the input, 1 and 2 the pools; how many there are; the pool to write, or 0.
    uint64_t source, source_count, target;
    // Candidates written to that pool.
    uint64_t pooled;
    // 1: the rows of the threshold's rank are looked for in order.
    uint64_t tied;
};

WC_DEVICE TopKRank topk_load_rank(const uint64_t* words) {
    if (sizeof(TopKRank) == 16) return (TopKRank)((uint128_t)words[1] << 64 | words[0]);
    return (TopKRank)words[0];
}
WC_DEVICE void topk_store_rank(uint64_t* words, TopKRank rank) {
    words[0] = (uint64_t)rank;
    words[1] = sizeof(TopKRank) == 16 ? (uint64_t)((uint128_t)rank >> 64) : 0;
}

WC_DEVICE TopKRank topk_rank(TopKKey key) {
    const TopKRank bits = WcKey<TopKKey>::to_bits(key);
    return TOPK_SMALLEST ? (TopKRank)~bits : bits;
}
WC_DEVICE TopKKey topk_key(TopKRank rank) { return WcKey<TopKKey>::from_bits(TOPK_SMALLEST ? (TopKRank)~rank : rank); }

// Whether a candidate comes before another one.
WC_DEVICE bool topk_before(TopKRank rank, TopKRow row, TopKRank other_rank, TopKRow other_row) {
    return rank > other_rank || (rank == other_rank && row < other_row);
}

template <typename V> WC_DEVICE V topk_least(V a, V b) { return b < a ? b : a; }
template <typename V> WC_DEVICE V topk_greatest(V a, V b) { return a < b ? b : a; }

// Bits that a value needs.
template <typename V> WC_DEVICE uint32_t topk_bit_length(V value) {
    const uint64_t high = sizeof(V) == 16 ? (uint64_t)((uint128_t)value >> 64) : 0;
    if (high != 0) return 128 - (uint32_t)__clzll((int64_t)high);
    return 64 - (uint32_t)__clzll((int64_t)(uint64_t)value);
}

// A comparison of keys with a threshold that lets all keys of its rank or above pass, and hardly others: one
// instruction a key instead of the eight that the rank of a float takes. Which keys pass is decided by ranks.
struct TopKGate {
    TopKKey bound;
    // Keys equal to the bound stay outside; all keys pass; none passes.
    bool strict, all, none;
};

#define TOPK_FLOAT ((TopKKey)0.5 != (TopKKey)0)
// Bits of infinity and of the NaN in the order of keys; those of negative infinity are the complement of the former.
#define TOPK_INFINITY (sizeof(TopKRank) == 4 ? (TopKRank)0xff800000u : (TopKRank)0xfff0000000000000ull)
#define TOPK_NAN (sizeof(TopKRank) == 4 ? (TopKRank)0xffc00000u : (TopKRank)0xfff8000000000000ull)

// The gate for ranks of `threshold` and above.
WC_DEVICE TopKGate topk_gate(TopKRank threshold) {
    TopKGate gate = {topk_key(threshold), false, false, false};
    if (TOPK_FLOAT) {
        const TopKRank bits = TOPK_SMALLEST ? (TopKRank)~threshold : threshold;
        const TopKKey infinity = WcKey<TopKKey>::from_bits(TOPK_INFINITY);
        if (TOPK_SMALLEST) {
            if (bits >= TOPK_NAN) {
                gate.all = true;
            } else if (bits >= TOPK_INFINITY) {
                gate.bound = infinity;
            } else if (bits < (TopKRank)~TOPK_INFINITY) {
                gate.none = true;
            }
        } else if (bits > TOPK_INFINITY) {
            // All that is not below or equal to infinity is NaN.
            gate.bound = infinity;
            gate.strict = true;
        } else if (bits < (TopKRank)~TOPK_INFINITY) {
            gate.all = true;
        }
    }
    return gate;
}

// Narrows the gate of a key's own rank: keys equal to it stay outside. All keys pass gates of floats alone.
WC_DEVICE void topk_close(TopKGate& gate) {
    if (gate.all) {
        gate.all = false;
        gate.bound = WcKey<TopKKey>::from_bits(TOPK_INFINITY);
    } else if (gate.strict) {
        gate.none = true;
    } else {
        gate.strict = true;
    }
}

template <bool STRICT> WC_DEVICE bool topk_passes(TopKKey key, TopKKey bound) {
    if (TOPK_SMALLEST) return STRICT ? key < bound : key <= bound;
    return STRICT ? !(key <= bound) : !(key < bound);
}
WC_DEVICE bool topk_passes(const TopKGate& gate, TopKKey key) {
    const bool passes = gate.strict ? topk_passes<true>(key, gate.bound) : topk_passes<false>(key, gate.bound);
    return (passes || gate.all) && !gate.none;
}

// Where candidates are appended; `room` of them.
struct TopKTarget {
    TopKRank* ranks;
    TopKRow* rows;
    uint64_t* count;
    uint64_t room;
};

// Candidates of a warp on their way to a target, 64 slots in shared memory: a warp asks for places in the target once
// in 32 candidates. `held` is the same in all lanes.
struct TopKQueue {
    TopKRank* ranks;
    TopKRow* rows;
    uint32_t held;
};

#define TOPK_QUEUE_SLOTS 64u
#define TOPK_QUEUE_BYTES (TOPK_QUEUE_SLOTS * (uint32_t)(sizeof(TopKRank) + sizeof(TopKRow)))

// The calling warp's queue in `arena`, which has TOPK_QUEUE_BYTES for each warp of the block.
WC_DEVICE TopKQueue topk_queue(char* arena) {
    TopKRank* ranks = (TopKRank*)arena + wc_warp() * TOPK_QUEUE_SLOTS;
    TopKRow* rows = (TopKRow*)(arena + blockDim.x / 32 * TOPK_QUEUE_SLOTS * sizeof(TopKRank));
    return {ranks, rows + wc_warp() * TOPK_QUEUE_SLOTS, 0};
}

// Writes up to 32 candidates of the queue to the target; whether its room is used up. All lanes call.
WC_DEVICE bool topk_flush(TopKQueue& queue, const TopKTarget& target) {
    const uint32_t count = min(queue.held, 32u), first = queue.held - count, lane = wc_lane();
    uint64_t base = 0;
    if (lane == 0) base = wc_fetch_add(target.count, (uint64_t)count);
    base = __shfl_sync(WC_FULL_MASK, base, 0);
    if (lane < count && base + lane < target.room) {
        target.ranks[base + lane] = queue.ranks[first + lane];
        target.rows[base + lane] = queue.rows[first + lane];
    }
    queue.held = first;
    __syncwarp();
    return base + count >= target.room;
}

// The next place in a list of the block, whose length is `taken` in shared memory, for each lane that `take`s one. All
// lanes call.
WC_DEVICE uint32_t topk_place(uint32_t* taken, bool take) {
    const uint32_t takers = __ballot_sync(WC_FULL_MASK, take);
    uint32_t first = 0;
    if (wc_lane() == 0 && takers != 0) first = atomicAdd(taken, (uint32_t)__popc(takers));
    first = __shfl_sync(WC_FULL_MASK, first, 0);
    return first + (uint32_t)__popc(takers & ((1u << wc_lane()) - 1u));
}

// Appends the candidates of the lanes that `take` theirs; whether the room is known to be used up. All lanes call.
WC_DEVICE bool topk_append(TopKQueue& queue, const TopKTarget& target, bool take, TopKRank rank, TopKRow row) {
    const uint32_t takers = __ballot_sync(WC_FULL_MASK, take);
    if (takers == 0) return false;
    if (take) {
        const uint32_t slot = queue.held + (uint32_t)__popc(takers & ((1u << wc_lane()) - 1u));
        queue.ranks[slot] = rank;
        queue.rows[slot] = row;
    }
    queue.held += (uint32_t)__popc(takers);
    __syncwarp();
    return queue.held >= 32 && topk_flush(queue, target);
}

// Appends candidates without a queue. All lanes call.
WC_DEVICE void topk_append_at_once(const TopKTarget& target, bool take, TopKRank rank, TopKRow row) {
    const uint32_t takers = __ballot_sync(WC_FULL_MASK, take);
    if (takers == 0) return;
    const int leader = __ffs((int)takers) - 1;
    uint64_t base = 0;
    if ((int)wc_lane() == leader) base = wc_fetch_add(target.count, (uint64_t)__popc(takers));
    base = __shfl_sync(WC_FULL_MASK, base, leader);
    const uint64_t at = base + (uint64_t)__popc(takers & ((1u << wc_lane()) - 1u));
    if (take && at < target.room) {
        target.ranks[at] = rank;
        target.rows[at] = row;
    }
}

// Adds one to a bin of shared memory for each valid lane; once where all valid lanes have the same. All lanes call.
WC_DEVICE void topk_bin(uint32_t* bins, bool valid, uint32_t bin) {
    const uint32_t those = __ballot_sync(WC_FULL_MASK, valid);
    if (those == 0) return;
    const int leader = __ffs((int)those) - 1;
    const uint32_t first = __shfl_sync(WC_FULL_MASK, bin, leader);
    if (__ballot_sync(WC_FULL_MASK, valid && bin == first) == those) {
        if ((int)wc_lane() == leader) atomicAdd(bins + first, (uint32_t)__popc(those));
    } else if (valid) {
        atomicAdd(bins + bin, 1u);
    }
}

// Sum over the threads of the block up to one's own; `parts` has 32 elements. All threads call.
template <typename T> WC_DEVICE T topk_block_inclusive_sum(T value, T* parts) {
    T sum = wc_warp_inclusive_sum(value);
    if (wc_lane() == 31) parts[wc_warp()] = sum;
    __syncthreads();
    const T before = wc_warp_inclusive_sum(wc_left(parts));
    const T base = __shfl_sync(WC_FULL_MASK, before, (int)((wc_warp() + 31) & 31u));
    if (wc_warp() > 0) sum += base;
    __syncthreads();
    return sum;
}

// Candidates in two arrays, to be sorted by rank, the largest first, and by row.
struct TopKColumns {
    TopKRank* ranks;
    TopKRow* rows;
    WC_INLINE void order(uint32_t i, uint32_t j) const {
        if (!topk_before(ranks[j], rows[j], ranks[i], rows[i])) return;
        const TopKRank rank = ranks[i];
        const TopKRow row = rows[i];
        ranks[i] = ranks[j];
        rows[i] = rows[j];
        ranks[j] = rank;
        rows[j] = row;
    }
};

// Shows a body all keys, warp by warp: chunks of TOPK_VECTORS 16-byte loads a lane, which are all in flight at once,
// then the keys before and behind them one by one. Slot j of a lane's chunk is row `first + topk_slot(j)`.
#define TOPK_SLOTS_16 (16u / (uint32_t)sizeof(TopKKey))
#define TOPK_OWN (TOPK_VECTORS * TOPK_SLOTS_16)
#define TOPK_CHUNK (32u * TOPK_OWN)
WC_DEVICE uint32_t topk_slot(uint32_t j) { return j / TOPK_SLOTS_16 * 32 * TOPK_SLOTS_16 + j % TOPK_SLOTS_16; }

template <typename Body> WC_DEVICE void topk_walk(const TopKKey* keys, uint64_t count, Body& body) {
    const uint32_t lane = wc_lane();
    const uint64_t warps = (uint64_t)gridDim.x * (blockDim.x / 32);
    const uint64_t warp = (uint64_t)blockIdx.x * (blockDim.x / 32) + wc_warp();
    const uint64_t head = min((uint64_t)((16 - ((uint64_t)keys & 15)) & 15) / sizeof(TopKKey), count);
    const uint64_t chunks = (count - head) / TOPK_CHUNK;
    // Slots of the next chunk are loaded before those of this one are looked at.
    __align__(16) TopKKey next[TOPK_OWN];
    const auto load = [&](uint64_t chunk) {
        const uint64_t first = head + chunk * TOPK_CHUNK + lane * TOPK_SLOTS_16;
#pragma unroll
        for (uint32_t v = 0; v < TOPK_VECTORS; ++v) {
            ((int4*)next)[v] = wc_load16_stream(keys + first + v * 32 * TOPK_SLOTS_16);
        }
    };
    if (warp < chunks) load(warp);
    for (uint64_t chunk = warp; chunk < chunks && !body.done(); chunk += warps) {
        __align__(16) TopKKey own[TOPK_OWN];
#pragma unroll
        for (uint32_t j = 0; j < TOPK_OWN; ++j) own[j] = next[j];
        if (chunk + warps < chunks) load(chunk + warps);
        body.chunk(own, head + chunk * TOPK_CHUNK + lane * TOPK_SLOTS_16);
    }
    // Fewer than a chunk and a vector; each warp takes at most a few groups of 32.
    const uint64_t behind = head + chunks * TOPK_CHUNK, loose = head + (count - behind);
    for (uint64_t group = warp; group * 32 < loose; group += warps) {
        const uint64_t at = group * 32 + lane, row = at < head ? at : behind + (at - head);
        const bool valid = at < loose;
        body.single(valid, valid ? keys[row] : (TopKKey)0, valid ? row : 0);
    }
}

// A number that looks random.
WC_DEVICE uint32_t topk_mix(uint32_t x) {
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}
