// Scan by key: each output is the join (monoid.cuh) of the inputs of its run up to its own (inclusive) or before its
// own (exclusive). A run is of neighbours with one key, by ordered bits (keys.cuh); the first of a run is its head.
//
// Input: n keys of WC_KEY, n items of WC_IN. Output: n of Result; may be the items where both have one type. Scratch:
// lookback.cuh with states of two words. Mapping: as of scan.cuh; whether an item is a head comes from its key and the
// one before it, which a lane reads again for its first item of a row. Shared memory: the ticket, what is open before
// the tile, and a part and a word a warp. Registers: parts of a lane, and keys until heads are known. Bytes: keys and
// items once, results once. Numerics: as of scan.cuh.
// Source: Sengupta et al., Scan Primitives for GPU Computing (2007), for segmented scans by flags; Merrill and Garland
// 2016 for the look-back.

typedef WcSegment<Part> ScanState;

struct ScanKeyedParams {
    const WC_KEY* keys;
    const WC_IN* in;
    Result* out;
    char* scratch;
    uint64_t n;
    uint64_t aligned;
};

struct ScanKeyedShared {
    uint64_t tile;
    uint64_t before;  // bits of the part that is open before the tile
    uint64_t parts[WC_THREADS / 32];
    uint32_t headed[WC_THREADS / 32];
};

WC_KERNEL(wc_scan_keyed, ScanKeyedParams, WC_THREADS, WC_BLOCKS) {
    ScanKeyedShared& shared = *(ScanKeyedShared*)wc_shared();
    const uint32_t PART_ITEMS = 32 * WC_VEC * WC_ROWS, TILE_ITEMS = PART_ITEMS * (WC_THREADS / 32);
    if (threadIdx.x == 0) shared.tile = wc_draw_tile(p.scratch);
    __syncthreads();
    const uint64_t tile = shared.tile;
    const uint32_t warp = wc_warp(), lane = wc_lane();
    const uint64_t from = tile * TILE_ITEMS + warp * PART_ITEMS;

    // Heads of a lane's rows, a bit an item.
    uint32_t heads[WC_ROWS];
    {
        WC_KEY keys[WC_ROWS][WC_VEC];
        wc_load_part<WC_VEC, WC_ROWS>(keys, p.keys, from, p.n, p.aligned != 0, (WC_KEY)0);
#pragma unroll
        for (int j = 0; j < WC_ROWS; ++j) {
            const uint64_t first = from + (j * 32 + lane) * WC_VEC;
            WC_KEY last = keys[j][0];
            heads[j] = first == 0 ? 1u : 0u;
            if (first != 0 && first < p.n) last = p.keys[first - 1];
#pragma unroll
            for (int k = 0; k < WC_VEC; ++k) {
                if (WcKey<WC_KEY>::to_bits(keys[j][k]) != WcKey<WC_KEY>::to_bits(last)) heads[j] |= 1u << k;
                last = keys[j][k];
            }
        }
    }
    WC_IN items[WC_ROWS][WC_VEC];
    wc_load_part<WC_VEC, WC_ROWS>(items, p.in, from, p.n, p.aligned != 0, (WC_IN)0);
    // Joins in each lane's part of a row since its last head, then what reaches the lane from lanes and rows before it.
    Part parts[WC_ROWS][WC_VEC], reaching[WC_ROWS], total = wc_nothing();
    uint32_t open = 0, headed = 0;  // rows of the lane that no head of the warp lies in front of; heads so far
#pragma unroll
    for (int j = 0; j < WC_ROWS; ++j) {
        parts[j][0] = wc_part(items[j][0]);
#pragma unroll
        for (int k = 1; k < WC_VEC; ++k) {
            const Part own = wc_part(items[j][k]);
            parts[j][k] = heads[j] >> k & 1u ? own : wc_join(parts[j][k - 1], own);
        }
        const uint32_t marked = __ballot_sync(WC_FULL_MASK, heads[j] != 0), below = marked & ((1u << lane) - 1);
        const Part up_to = wc_lanes_join_since(parts[j][WC_VEC - 1], marked);
        const Part from_below = wc_from_below(up_to, wc_nothing()), row = __shfl_sync(WC_FULL_MASK, up_to, 31);
        reaching[j] = below != 0 ? from_below : wc_join(total, from_below);
        if ((below | headed) == 0) open |= 1u << j;
        total = marked != 0 ? row : wc_join(total, row);
        headed |= marked;
    }
    if (lane == 0) {
        shared.parts[warp] = wc_sum_bits(total);
        shared.headed[warp] = headed;
    }
    __syncthreads();
    ScanState own = ScanState::none(), warps = ScanState::none();
#pragma unroll
    for (uint32_t w = 0; w < WC_THREADS / 32; ++w) {
        if (w == warp) warps = own;
        const ScanState part = {shared.headed[w] != 0 ? 1ull : 0ull, WcSumOf<Part>::bits(shared.parts[w])};
        own = ScanState::join(own, part);
    }
    if (warp == 0) {
        if (lane == 0) wc_announce_tile(p.scratch, tile, own);
        const ScanState before = wc_look_back(p.scratch, tile, own);
        if (lane == 0) shared.before = wc_sum_bits(before.sum);
    }
    __syncthreads();
    const Part base = warps.ended ? warps.sum : wc_join(WcSumOf<Part>::bits(shared.before), warps.sum);

#pragma unroll
    for (int j = 0; j < WC_ROWS; ++j) {
        const Part reach = open >> j & 1u ? wc_join(base, reaching[j]) : reaching[j];
        Result out[WC_VEC];
#pragma unroll
        for (int k = 0; k < WC_VEC; ++k) {
#ifdef WC_EXCLUSIVE
            // Up to the item before; nothing for a head.
            const bool is_head = (heads[j] >> k & 1u) != 0, has_head = (heads[j] & ((1u << k) - 1)) != 0;
            const Part before = k == 0 ? wc_nothing() : parts[j][k == 0 ? 0 : k - 1];
            out[k] = wc_result(is_head ? wc_nothing() : has_head ? before : wc_join(reach, before));
#else
            const bool has_head = (heads[j] & ((2u << k) - 1)) != 0;
            out[k] = wc_result(has_head ? parts[j][k] : wc_join(reach, parts[j][k]));
#endif
        }
        wc_store_row<WC_VEC>(p.out, from + j * 32 * WC_VEC + lane * WC_VEC, p.n, p.aligned != 0, out);
    }
}
