// Runs of a vector, row after row.

// The rows of a vector at which runs begin, step after step.
struct WcRuns {
    WcFilled filled;
    uint64_t last;    // key of the row before the next step
    uint64_t before;  // key of the row before this lane's

    WC_INLINE WcRuns(const WcSource& s, uint64_t vector, uint32_t lane) : filled(s, vector, lane), last(0) {}

    // Lanes whose rows begin a run; `key` becomes this lane's.
    WC_INLINE uint32_t next(const WcSource& s, uint32_t step, uint32_t lane, uint64_t& key) {
        key = filled.next(s, step, lane);
        const uint64_t neighbour = __shfl_up_sync(WC_FULL_MASK, key, 1);
        before = lane == 0 ? last : neighbour;
        last = __shfl_sync(WC_FULL_MASK, key, 31);
        return __ballot_sync(WC_FULL_MASK, key != before || (step == 0 && lane == 0));
    }
};
