// Hash tables of the source-based algorithm, and what a warp does before it adds. Text in front is source.cuh.
//
// Source: Meinke, 4.2.1 (first lane, shared memory), 4.3.4 (strided), 5.4.1 (shuffles); lanes of equal targets by match
// instructions: a tree over the lanes of each target.

// The hash table of a thread, and the memory of its warp for preaggregation.
struct SourceTable {
    uint64_t* slots;
    uint32_t shift;
    uint64_t mask;
    uint64_t* warp_room;

    // `room` has 33 words a warp if preaggregation is in shared memory.
    // Warps of the grid count from `first_warp`.
    WC_INLINE SourceTable(const SourceParams& p, char*& room, uint64_t first_warp) {
        const uint64_t warp = first_warp + ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
        slots = p.slots + ((warp + wc_lane()) % p.functions << (p.log + 1));
        shift = 64 - (uint32_t)p.log;
        mask = (1ull << p.log) - 1;
        warp_room = nullptr;
#if WC_PREAGGREGATION == 1
        warp_room = (uint64_t*)room + 33 * wc_warp();
        room += 33ull * 8 * (blockDim.x / 32);
#else
        (void)room;
#endif
    }

    WC_INLINE void add(uint64_t rank, uint64_t value) const {
        uint64_t at = rank * WC_HASH_FACTOR >> shift;
        for (;; at = (at + 1) & mask) {
            uint64_t held = wc_load_relaxed(slots + 2 * at);
            if (held == 0) held = wc_compare_swap(slots + 2 * at, (uint64_t)0, rank + 1);
            if (held == 0 || held == rank + 1) break;
        }
#if WC_COUNTED
        value = 1;
#endif
        wc_add(slots + 2 * at + 1, value);
    }
};

// Adds the values of active lanes to their targets; all lanes of a warp call it. `targets` is the number of targets of
// the lane's cell, which strided preaggregation takes from lane 0.
WC_DEVICE void wc_source_add(const SourceTable& table, bool active, uint64_t rank, uint64_t value, uint32_t targets) {
    const uint32_t lane = wc_lane();
    (void)targets;
#if WC_PREAGGREGATION == 1 || WC_PREAGGREGATION == 2
    // The first lane that has a target left.
    const uint32_t all = __ballot_sync(WC_FULL_MASK, active);
    if (all == 0) return;
    const uint32_t first = (uint32_t)__ffs((int)all) - 1;
#endif
#if WC_PREAGGREGATION == 1
    uint64_t* const room = table.warp_room;
    if (lane == first) room[32] = rank;
    __syncwarp();
    const bool joins = active && room[32] == rank;
    room[lane] = joins ? value : 0;
    __syncwarp();
    for (uint32_t step = 16; step > 0; step >>= 1) {
        if (lane < step) room[lane] += room[lane + step];
        __syncwarp();
    }
    if (lane == first) value = room[0];
    // The next call writes to the room again.
    __syncwarp();
    active = lane == first || (active && !joins);
#elif WC_PREAGGREGATION == 2
    const uint64_t compared = __shfl_sync(WC_FULL_MASK, rank, (int)first);
    const bool joins = active && compared == rank;
    if (__popc(__ballot_sync(WC_FULL_MASK, joins)) > 1) {
        const uint64_t sum = wc_warp_sum(joins ? value : (uint64_t)0);
        if (lane == first) value = sum;
        active = lane == first || (active && !joins);
    }
#elif WC_PREAGGREGATION == 3
    const uint32_t stride = __shfl_sync(WC_FULL_MASK, active ? targets : 0u, 0);
    if (stride > 0 && stride < 32) {
        const uint32_t compared = lane % stride;
        const uint64_t other = __shfl_sync(WC_FULL_MASK, rank, (int)compared);
        const uint32_t there = __ballot_sync(WC_FULL_MASK, active);
        const bool joins = active && (there >> compared & 1u) != 0 && other == rank;
        const uint32_t joined = __ballot_sync(WC_FULL_MASK, joins);
        uint64_t sum = value;
        for (uint32_t step = stride; step < 32; step += stride) {
            const uint64_t above = __shfl_down_sync(WC_FULL_MASK, value, step);
            if (lane + step < 32 && (joined >> (lane + step) & 1u) != 0) sum += above;
        }
        if (lane < stride) value = sum;
        active = active && (lane < stride || !joins);
    }
#elif WC_PREAGGREGATION == 4
    // Halves the lanes of each target until one is left, as in a tree.
    const uint32_t equal = __match_any_sync(WC_FULL_MASK, active ? rank : ~(uint64_t)0);
    uint32_t above = equal & (0xfffffffeu << lane);
    const uint32_t below = (uint32_t)__popc(equal & ((1u << lane) - 1u));
    uint32_t place = below;
    while (__any_sync(WC_FULL_MASK, above != 0)) {
        const uint32_t next = (uint32_t)__ffs((int)above);
        const uint64_t other = __shfl_sync(WC_FULL_MASK, value, (int)(next == 0 ? lane : next - 1));
        if (next != 0) value += other;
        above &= __ballot_sync(WC_FULL_MASK, (place & 1u) == 0);
        place >>= 1;
    }
    active = active && below == 0;
#endif
    if (active) table.add(rank, value);
}
