// Rows that match several entries: all lanes of a warp share out the matches of its 32 rows.

// The place of a row that goes on without a match.
#define WC_NO_MATCH 0xffffffffu
// Matches that a warp takes before it asks again whether the run is lost; with fewer it does not ask.
#define WC_MATCHES_ASKED 65536u

// The word of `control` that counts matches.
#define WC_MATCHES_WORD 15

// Counts the matches that all lanes have handed on; an overflow where there are more than `most`.
WC_DEVICE void wc_count_matches(uint64_t* control, uint64_t matches, uint64_t most) {
    const uint64_t all = wc_warp_sum(matches);
    if (wc_lane() == 0 && wc_fetch_add(control + WC_MATCHES_WORD, all) + all > most) wc_raise(control, WC_OVERFLOW);
}

// Calls `take(owner, place, valid)` for all lanes together until each match of each lane's row was some lane's:
// `owner` is the lane whose row it is, `place` one of the `count` places from that lane's `first` on. Lanes without a
// match left are not `valid`. A row without any match that goes on has one at WC_NO_MATCH. Where the run is lost, what
// is left of many matches is not taken. Ends where `take` tells all lanes to, and tells so.
template <typename Take>
WC_DEVICE bool wc_each_match(const uint64_t* control, uint32_t first, uint32_t count, Take take) {
    const uint32_t lane = wc_lane();
    uint64_t end = count;
    for (uint32_t distance = 1; distance < 32; distance *= 2) {
        const uint64_t below = __shfl_up_sync(WC_FULL_MASK, end, distance);
        if (lane >= distance) end += below;
    }
    const uint64_t all = __shfl_sync(WC_FULL_MASK, end, 31), begin = end - count;
    for (uint64_t base = 0; base < all; base += 32) {
        const bool asks = all >= WC_MATCHES_ASKED && base % WC_MATCHES_ASKED == 0;
        if (asks && __any_sync(WC_FULL_MASK, lane == 0 && wc_is_lost(control))) break;
        const uint64_t match = base + lane;
        // The last lane whose matches begin at or before this one.
        uint32_t owner = 0;
        for (uint32_t step = 16; step > 0; step /= 2) {
            const uint64_t other = __shfl_sync(WC_FULL_MASK, begin, owner + step);
            if (other <= match) owner += step;
        }
        const uint32_t from = __shfl_sync(WC_FULL_MASK, first, owner);
        const uint64_t past = match - __shfl_sync(WC_FULL_MASK, begin, owner);
        if (take(owner, from + (uint32_t)past, match < all)) return true;
        __syncwarp(WC_FULL_MASK);
    }
    return false;
}
