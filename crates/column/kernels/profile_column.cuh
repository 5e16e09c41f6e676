// What the passes of profile.cuh over a column's vectors tell together. Needs profile.cuh.

// Purpose: what vectors tell together: bounds of the column, its first and last vector with a valid row, descents from
// one vector to the next. Inputs: bounds and ends of all vectors. Outputs: totals. Mapping: a thread a vector,
// grid-stride by warps. Bytes: 32 a vector.
struct ProfileColumnParams {
    const uint64_t* bounds;
    const uint64_t* ends;
    uint64_t vectors;
    uint64_t* totals;
};

WC_KERNEL(profile_column, ProfileColumnParams, 256, 1) {
    uint64_t low = ~0ull, high = 0, first = ~0ull, last = 0, descents = 0;
    const WcShare share(1);
    for (uint64_t vector = share.first_thread(); vector < p.vectors; vector += share.threads()) {
        const uint64_t vector_low = p.bounds[2 * vector], vector_high = p.bounds[2 * vector + 1];
        if (vector_low > vector_high) continue;
        low = vector_low < low ? vector_low : low;
        high = vector_high > high ? vector_high : high;
        first = vector < first ? vector : first;
        last = vector > last ? vector : last;
        uint64_t before = vector;
        while (before > 0 && p.bounds[2 * before - 2] > p.bounds[2 * before - 1]) --before;
        descents += before > 0 && p.ends[2 * vector] < p.ends[2 * before - 1];
    }
    low = wc_warp_min(low);
    high = wc_warp_max(high);
    first = wc_warp_min(first);
    last = wc_warp_max(last);
    descents = wc_warp_sum(descents);
    if (wc_lane() != 0 || low > high) return;
    wc_min(p.totals + WC_TOTAL_LOW, low);
    wc_max(p.totals + WC_TOTAL_HIGH, high);
    wc_min(p.totals + WC_TOTAL_FIRST, first);
    wc_max(p.totals + WC_TOTAL_LAST, last);
    wc_add(p.totals + WC_TOTAL_DESCENTS, descents);
}
