// Purpose: the rows of each key of a join table whose keys come several times, side by side. A build counts the rows
// of each entry and leaves, by number of the row, its entry and how many rows of it came before; `place_matches` gives
// each entry its places, `order_matches` writes each row's number to its place. Mapping: one thread an entry, or a row,
// grid-stride; one atomic a warp. Bytes: counts and places of all entries once, 12 bytes a row. `total` is zeroed
// beforehand.
struct PlaceMatchesParams { const uint32_t* counts; uint32_t* firsts; uint32_t* total; uint64_t entries; };

WC_KERNEL(place_matches, PlaceMatchesParams, 256, 1) {
    wc_wait_previous();
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    const uint64_t whole = (p.entries + 31) / 32 * 32;
    for (uint64_t entry = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; entry < whole; entry += step) {
        const uint32_t count = entry < p.entries ? p.counts[entry] : 0;
        uint32_t all, first = 0;
        const uint32_t before = wc_warp_prefix(count, &all);
        if (all == 0) continue;
        if (wc_lane() == 0) first = wc_fetch_add(p.total, all);
        first = __shfl_sync(WC_FULL_MASK, first, 0) + before;
        if (count != 0) p.firsts[entry] = first;
    }
}

struct OrderMatchesParams {
    const uint32_t* entries; const uint32_t* ranks; const uint32_t* firsts; uint32_t* order; uint64_t rows;
};

WC_KERNEL(order_matches, OrderMatchesParams, 256, 1) {
    wc_wait_previous();
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t row = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; row < p.rows; row += step) {
        const uint32_t entry = p.entries[row];
        if (entry != 0) p.order[p.firsts[entry - 1] + p.ranks[row]] = (uint32_t)row;
    }
}
