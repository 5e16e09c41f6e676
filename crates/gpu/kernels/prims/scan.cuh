// Scan: each output is the join (monoid.cuh: sum, number, least or largest) of all inputs up to its own (inclusive) or
// before its own (exclusive), the first of these the result of nothing.
//
// Input: n items of WC_IN. Output: n of Result; may be the input itself where both have one type. Scratch:
// lookback.cuh. Mapping: a block a tile by ticket, rows of 16 bytes a lane (tile.cuh). Shared memory: the ticket, the
// prefix of the tile and a sum a warp. Registers: the sums of a lane, 128 bytes at the default tuning. Bytes: each item
// read once, each sum written once, 16 to 32 bytes of descriptors a tile. Numerics: integers wrap; sums of doubles are
// added in an order that differs from run to run, so the last bits of their results may.
// Source: Merrill and Garland 2016 for the look-back; lanes scan by shuffles (Sengupta et al., Scan Primitives for GPU
// Computing, 2007, in the form of Hillis and Steele).

typedef WcPart<Part> ScanState;

struct ScanParams {
    const WC_IN* in;
    Result* out;
    char* scratch;
    uint64_t n;
    uint64_t aligned;
    uint64_t ahead;  // distance in tiles of the one that is brought to the L2 cache
};

struct ScanShared {
    uint64_t tile;
    Part before;
    Part warps[WC_THREADS / 32];
};

WC_KERNEL(wc_scan, ScanParams, WC_THREADS, WC_BLOCKS) {
    ScanShared& shared = *(ScanShared*)wc_shared();
    const uint32_t PART_ITEMS = 32 * WC_VEC * WC_ROWS, TILE_ITEMS = PART_ITEMS * (WC_THREADS / 32);
    if (threadIdx.x == 0) shared.tile = wc_draw_tile(p.scratch);
    __syncthreads();
    const uint64_t tile = shared.tile;
    const uint32_t warp = wc_warp(), lane = wc_lane();
    const uint64_t from = tile * TILE_ITEMS + warp * PART_ITEMS;

    WC_IN items[WC_ROWS][WC_VEC];
    wc_load_part<WC_VEC, WC_ROWS>(items, p.in, from, p.n, p.aligned != 0, (WC_IN)0);
    wc_prefetch_part<PART_ITEMS>(p.in, from + p.ahead * TILE_ITEMS, p.n, p.aligned != 0);
    // Joins in each lane's part of a row, then over the lanes of a row, then over rows.
    Part sums[WC_ROWS][WC_VEC], lanes[WC_ROWS], total = wc_nothing();
#pragma unroll
    for (int j = 0; j < WC_ROWS; ++j) {
        sums[j][0] = wc_part(items[j][0]);
#pragma unroll
        for (int k = 1; k < WC_VEC; ++k) sums[j][k] = wc_join(sums[j][k - 1], wc_part(items[j][k]));
        lanes[j] = wc_lanes_join_up_to(sums[j][WC_VEC - 1]);
    }
#pragma unroll
    for (int j = 0; j < WC_ROWS; ++j) {
        const Part row = __shfl_sync(WC_FULL_MASK, lanes[j], 31);
        lanes[j] = wc_join(total, wc_from_below(lanes[j], wc_nothing()));
        total = wc_join(total, row);
    }
    if (lane == 0) shared.warps[warp] = total;
    __syncthreads();

    const Part warp_sum = lane < WC_THREADS / 32 ? shared.warps[lane] : wc_nothing();
    if (warp == 0) {
        const ScanState own = {wc_warps_join(warp_sum)};
        if (lane == 0) wc_announce_tile(p.scratch, tile, own);
        const ScanState before = wc_look_back(p.scratch, tile, own, 500);
        if (lane == 0) shared.before = before.part;
    }
    Part before = wc_warps_join(lane < warp ? warp_sum : wc_nothing());
    __syncthreads();
    before = wc_join(shared.before, before);

#pragma unroll
    for (int j = 0; j < WC_ROWS; ++j) {
        const Part base = wc_join(before, lanes[j]);
        Result out[WC_VEC];
#pragma unroll
        for (int k = 0; k < WC_VEC; ++k) {
#ifdef WC_EXCLUSIVE
            out[k] = wc_result(k == 0 ? base : wc_join(base, sums[j][k == 0 ? 0 : k - 1]));
#else
            out[k] = wc_result(wc_join(base, sums[j][k]));
#endif
        }
        wc_store_row<WC_VEC>(p.out, from + j * 32 * WC_VEC + lane * WC_VEC, p.n, p.aligned != 0, out);
    }
}
