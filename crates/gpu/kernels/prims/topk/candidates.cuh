// The candidates that a run ends with.
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
