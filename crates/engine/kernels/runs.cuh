// Preaggregation of runs: the rows that a warp has left of a step lie in shared memory with their keys and values, the
// runs of equal keys among them are found, and each is added up by one lane, or by all where there are few, and entered
// into the sink's table.
//
// Rows lie there as slots of lanes: word 36 * (slot % 4) + lane of each 128 rows. Neither a slot of all lanes nor 32
// neighbouring rows meet in a bank.

// The key of a row that is left out: no packed key has all bits.
template <typename Key> WC_DEVICE Key wc_no_key() { return (Key)~(Key)0; }
#define WC_RUN_WORDS 144
// Runs of a step up to which all lanes add up each: they are longer than a warp then.
#define WC_LONG_RUNS 8

WC_DEVICE uint32_t wc_run_at(uint32_t slot, uint32_t lane) {
    return slot / 4u * WC_RUN_WORDS + slot % 4u * 36u + lane;
}
WC_DEVICE uint32_t wc_run_row(uint32_t row) {
    return row / 128u * WC_RUN_WORDS + row % 4u * 36u + row % 128u / 4u;
}

// Leaves out the rows of this lane that are not entered later.
template <int SLOTS, typename Key> WC_DEVICE void wc_clear_runs(Key* keys, uint32_t lane) {
#pragma unroll
    for (int slot = 0; slot < SLOTS; ++slot) keys[wc_run_at(slot, lane)] = wc_no_key<Key>();
}

// Finds the runs of a step: how many there are, and in `starts` the first row of each, then the number of rows. Rows
// that are left out belong to the run before them and do not end it. All lanes come here together, and have to come
// together again before they change keys or starts.
template <int SLOTS, typename Key>
WC_DEVICE uint32_t wc_find_runs(const Key* keys, uint16_t* starts, uint32_t lane) {
    __syncwarp(WC_FULL_MASK);
    const Key none = wc_no_key<Key>();
    const uint32_t below = (1u << lane) - 1;
    uint32_t runs = 0;
    Key last = none;
#pragma unroll
    for (int some = 0; some < SLOTS; ++some) {
        const Key key = keys[wc_run_row(32 * some + lane)];
        const uint32_t left = __ballot_sync(WC_FULL_MASK, key != none);
        const uint32_t before = left & below;
        Key previous = __shfl_sync(WC_FULL_MASK, key, before != 0 ? 31 - __clz(before) : 0);
        if (before == 0) previous = last;
        const bool is_first = key != none && key != previous;
        const uint32_t first = __ballot_sync(WC_FULL_MASK, is_first);
        if (is_first) starts[runs + __popc(first & below)] = (uint16_t)(32 * some + lane);
        runs += __popc(first);
        const Key latest = __shfl_sync(WC_FULL_MASK, key, left != 0 ? 31 - __clz(left) : 0);
        if (left != 0) last = latest;
    }
    if (lane == 0) starts[runs] = (uint16_t)(32 * SLOTS);
    __syncwarp(WC_FULL_MASK);
    return runs;
}

// The slots of this lane whose rows are in runs that were not entered: those of the lanes that `failed`, from run
// `next` on, a run a lane, or one for all lanes `together`, and the runs behind.
template <int SLOTS, typename Key>
WC_DEVICE uint32_t wc_runs_left(const Key* keys, const uint16_t* starts, uint32_t runs, uint32_t next, bool together,
                                uint32_t failed, uint32_t lane) {
    const uint32_t tried = together ? 1 : 32, of_run = together ? failed >> next : failed;
    uint32_t left = 0;
    for (int slot = 0; slot < SLOTS; ++slot) {
        if (keys[wc_run_at(slot, lane)] == wc_no_key<Key>()) continue;
        const uint32_t row = wc_slot_row(slot, lane);
        uint32_t run = 0;
        while (run + 1 < runs && starts[run + 1] <= row) ++run;
        const bool is_left = run >= next + tried || (run >= next && (of_run >> (run - next) & 1u));
        left |= (uint32_t)is_left << slot;
    }
    return left;
}

// Places of new groups. A warp draws ROWS at a time, more than a step needs, and uses them up: those of a step are the
// rest of one draw and the first ones of the next.
template <int ROWS> struct WcPlaces {
    uint64_t next = 0, first = 0, second = 0;
    uint32_t left = 0, of_first = 0;

    // Takes fewer than ROWS places. All lanes come here together.
    WC_INLINE void take(uint64_t* counter, uint32_t count, uint32_t lane) {
        first = next;
        of_first = count < left ? count : left;
        if (count <= left) {
            next += count;
            left -= count;
            return;
        }
        uint64_t drawn = 0;
        if (lane == 0) drawn = wc_fetch_add(counter, (uint64_t)ROWS);
        second = __shfl_sync(WC_FULL_MASK, drawn, 0);
        next = second + (count - left);
        left = ROWS - (count - left);
    }
    WC_INLINE uint64_t at(uint32_t group) const {
        return group < of_first ? first + group : second + (group - of_first);
    }
};
