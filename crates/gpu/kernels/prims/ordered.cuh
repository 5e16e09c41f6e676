// Ordered aggregation: one pass over keys whose equal ones are neighbours gives each run's key, its number of rows
// (WC_COUNT) and the sum of a value column over it (WC_SUM).
//
// Input: n keys of WC_KEY; n values of WC_IN. Output: the key, count and sum of each run in the order of rows, and the
// number of runs. What lies at `capacity` and behind is counted and not written. Scratch: lookback.cuh, with states of
// OrderedState::WORDS words. Mapping: a block a tile by ticket, rows of 16 bytes a lane (tile.cuh). A key that differs
// from the one before it is a head; a head closes the run before it. A tile's state is the number of its heads, the row
// of the last one, and the sum of values from there on; its first head closes a run that began in a tile before.
// Shared memory: key, row and sum of the heads of a tile. Registers: a lane's keys and values. Bytes: keys and values
// read once, 32 bytes of each part of a tile twice; runs written once. Numerics: keys are equal if their bits by
// keys.cuh are; integers wrap; doubles are added in an order that differs from run to run where a run of keys has
// several tiles.
// Source: the paper "Code fusion of prefix sum with ordered aggregation" (mapping, prefix sum, offsets, aggregation),
// fused to one kernel by decoupled look-back; segmented scans of lanes after Sengupta et al. 2007.

typedef WcKey<WC_KEY>::Bits KeyBits;

struct OrderedState {
    uint64_t heads;
    uint64_t last;  // row of the last head, if there is one
#ifdef WC_SUM
    WC_SUM sum;     // of the rows from there on, or of all
#endif

    static WC_INLINE OrderedState none() {
        OrderedState state;
        state.heads = state.last = 0;
#ifdef WC_SUM
        state.sum = (WC_SUM)0;
#endif
        return state;
    }
    static WC_INLINE OrderedState join(const OrderedState& earlier, const OrderedState& later) {
        OrderedState state;
        state.heads = earlier.heads + later.heads;
        state.last = later.heads != 0 ? later.last : earlier.last;
#ifdef WC_SUM
        state.sum = later.heads != 0 ? later.sum : earlier.sum + later.sum;
#endif
        return state;
    }
// The words: heads below 2^60 and the two highest bits of the sum; the row; the other bits of the sum.
#if defined(WC_COUNT) && defined(WC_SUM)
    static const int WORDS = 3;
#elif defined(WC_COUNT) || defined(WC_SUM)
    static const int WORDS = 2;
#else
    static const int WORDS = 1;
#endif
    WC_INLINE void pack(uint64_t (&words)[WORDS]) const {
        words[0] = heads;
#ifdef WC_COUNT
        words[1] = last;
#endif
#ifdef WC_SUM
        const uint64_t bits = wc_sum_bits(sum);
        words[0] |= bits >> WC_STATE_BITS << 60;
        words[WORDS - 1] = bits & WC_STATE_MASK;
#endif
    }
    static WC_INLINE OrderedState unpack(const uint64_t (&words)[WORDS]) {
        OrderedState state = none();
        state.heads = words[0] & (1ull << 60) - 1;
#ifdef WC_COUNT
        state.last = words[1];
#endif
#ifdef WC_SUM
        state.sum = WcSumOf<WC_SUM>::bits(words[0] >> 60 << WC_STATE_BITS | words[WORDS - 1]);
#endif
        return state;
    }
};

struct OrderedParams {
    const WC_KEY* keys;
    WC_KEY* keys_out;
    uint64_t* runs;
    uint64_t capacity;
    char* scratch;
    uint64_t n;
    uint64_t aligned;
#ifdef WC_COUNT
    WC_COUNT* counts;
#endif
#ifdef WC_SUM
    const WC_IN* values;
    WC_SUM* sums;
#endif
};

#define WC_WARPS (WC_THREADS / 32)
#define WC_PART_ITEMS (32 * WC_VEC * WC_ROWS)
#define WC_TILE_ITEMS (WC_PART_ITEMS * WC_WARPS)

struct alignas(16) OrderedShared {
    uint64_t tile;
    uint64_t before[4];  // state of the tiles before: heads, row, bits of the sum
    uint64_t sums[WC_WARPS];
    uint32_t heads[WC_WARPS];
    uint32_t lasts[WC_WARPS];  // the row of the last head in the part, plus one
};

// The bits that lane - 1 gives; lane 0 gets what lane 31 gives.
WC_DEVICE uint64_t wc_rotate(uint64_t bits) { return __shfl_sync(WC_FULL_MASK, bits, (int)(wc_lane() + 31) & 31); }
WC_DEVICE uint32_t wc_rotate(uint32_t bits) { return __shfl_sync(WC_FULL_MASK, bits, (int)(wc_lane() + 31) & 31); }
WC_DEVICE uint8_t wc_rotate(uint8_t bits) { return (uint8_t)wc_rotate((uint32_t)bits); }
WC_DEVICE uint128_t wc_rotate(uint128_t bits) {
    return (uint128_t)wc_rotate((uint64_t)(bits >> 64)) << 64 | wc_rotate((uint64_t)bits);
}

WC_KERNEL(wc_ordered, OrderedParams, WC_THREADS, WC_BLOCKS) {
    OrderedShared& shared = *(OrderedShared*)wc_shared();
    char* room = wc_shared() + sizeof(OrderedShared);
    WC_KEY* staged_keys = (WC_KEY*)room;
    room += sizeof(WC_KEY) * WC_TILE_ITEMS;
#ifdef WC_SUM
    WC_SUM* staged_sums = (WC_SUM*)room;
    room += sizeof(WC_SUM) * WC_TILE_ITEMS;
#endif
#ifdef WC_COUNT
    uint16_t* staged_rows = (uint16_t*)room;
    static_assert(WC_TILE_ITEMS <= 65536, "rows of a tile have 16 bits");
#endif
    if (threadIdx.x == 0) shared.tile = wc_draw_tile(p.scratch);
    __syncthreads();
    const uint64_t tile = shared.tile;
    const uint32_t warp = wc_warp(), lane = wc_lane();
    const uint64_t tile_row = tile * WC_TILE_ITEMS, from = tile_row + warp * WC_PART_ITEMS;
    const bool aligned = p.aligned != 0;

    WC_KEY keys[WC_ROWS][WC_VEC];
    wc_load_part<WC_VEC, WC_ROWS>(keys, p.keys, from, p.n, aligned, (WC_KEY)0);
#ifdef WC_SUM
    WC_IN values[WC_ROWS][WC_VEC];
    wc_load_part<WC_VEC, WC_ROWS>(values, p.values, from, p.n, aligned, (WC_IN)0);
#endif
    KeyBits above = 0;
    if (lane == 0 && from > 0 && from < p.n) above = WcKey<WC_KEY>::to_bits(p.keys[from - 1]);

    // Heads, a bit each.
    uint32_t marks = 0;
#pragma unroll
    for (int j = 0; j < WC_ROWS; ++j) {
        // Lane 31 gives the last key of the row before, which lane 0 takes.
        const WC_KEY last = lane == 31 && j > 0 ? keys[j == 0 ? 0 : j - 1][WC_VEC - 1] : keys[j][WC_VEC - 1];
        KeyBits before = wc_rotate(WcKey<WC_KEY>::to_bits(last));
        if (j == 0 && lane == 0) before = above;
#pragma unroll
        for (int k = 0; k < WC_VEC; ++k) {
            const KeyBits bits = WcKey<WC_KEY>::to_bits(keys[j][k]);
            marks |= (bits != before ? 1u : 0u) << (j * WC_VEC + k);
            before = bits;
        }
    }
    if (from == 0 && lane == 0) marks |= 1u;
    if (from + WC_PART_ITEMS > p.n) {
#pragma unroll
        for (int i = 0; i < WC_ROWS * WC_VEC; ++i) {
            const uint64_t row = from + (i / WC_VEC) * 32 * WC_VEC + lane * WC_VEC + i % WC_VEC;
            if (row >= p.n) marks &= ~(1u << i);
        }
    }
    const WcRanks<WC_VEC, WC_ROWS> ranks(marks);

#ifdef WC_COUNT
    const uint32_t highest = marks == 0 ? 0 : 31 - (uint32_t)__clz((int)marks);
    const uint32_t last_row = (highest / WC_VEC * 32 + lane) * WC_VEC + highest % WC_VEC;
    const uint32_t part_last = __reduce_max_sync(WC_FULL_MASK, marks == 0 ? 0u : last_row + 1);
    if (lane == 0) shared.lasts[warp] = part_last;
#endif
#ifdef WC_SUM
    // The sum that reaches a lane's first item of a row from the last head before it in the part, or from its begin.
    WC_SUM reaching[WC_ROWS], open = (WC_SUM)0;
#pragma unroll
    for (int j = 0; j < WC_ROWS; ++j) {
        WC_SUM sum = (WC_SUM)0;
#pragma unroll
        for (int k = 0; k < WC_VEC; ++k) {
            const WC_SUM value = WC_WIDEN(values[j][k]);
            sum = marks >> (j * WC_VEC + k) & 1u ? value : sum + value;
        }
        const uint32_t heads = __ballot_sync(WC_FULL_MASK, WcRanks<WC_VEC, WC_ROWS>::row(marks, j) != 0);
        sum = wc_lanes_sum_since(sum, heads);
        const WC_SUM row = __shfl_sync(WC_FULL_MASK, sum, 31);
        reaching[j] = wc_from_below(sum, (WC_SUM)0);
        if ((heads & ((1u << lane) - 1)) == 0) reaching[j] += open;
        open = heads == 0 ? open + row : row;
    }
    if (lane == 0) shared.sums[warp] = wc_sum_bits(open);
#endif
    if (lane == 0) shared.heads[warp] = ranks.total;
    __syncthreads();

    // What the parts before one's own leave open, and the state of the tile.
    uint32_t total = 0, warp_first = 0, tile_last = 0;
#ifdef WC_SUM
    WC_SUM carried = (WC_SUM)0, warp_carried = (WC_SUM)0;
#endif
#pragma unroll
    for (uint32_t w = 0; w < WC_WARPS; ++w) {
        const uint32_t heads = shared.heads[w];
        if (w == warp) warp_first = total;
        total += heads;
#ifdef WC_COUNT
        if (heads != 0) tile_last = w * WC_PART_ITEMS + shared.lasts[w] - 1;
#endif
#ifdef WC_SUM
        if (w == warp) warp_carried = carried;
        const WC_SUM sum = WcSumOf<WC_SUM>::bits(shared.sums[w]);
        carried = heads != 0 ? sum : carried + sum;
#endif
    }
    OrderedState own = OrderedState::none();
    own.heads = total;
    own.last = tile_row + tile_last;
#ifdef WC_SUM
    own.sum = carried;
#endif
    if (threadIdx.x == 0) wc_announce_tile(p.scratch, tile, own);

    if (marks != 0) {
#pragma unroll
        for (int j = 0; j < WC_ROWS; ++j) {
            if (WcRanks<WC_VEC, WC_ROWS>::row(marks, j) == 0) continue;
            uint32_t rank = warp_first + ranks.before[j];
#ifdef WC_SUM
            WC_SUM running = reaching[j];
            if (ranks.before[j] == 0) running += warp_carried;
#endif
#pragma unroll
            for (int k = 0; k < WC_VEC; ++k) {
                if (marks >> (j * WC_VEC + k) & 1u) {
                    staged_keys[rank] = keys[j][k];
#ifdef WC_COUNT
                    staged_rows[rank] = (uint16_t)(warp * WC_PART_ITEMS + (j * 32 + lane) * WC_VEC + k);
#endif
#ifdef WC_SUM
                    staged_sums[rank] = running;
                    running = (WC_SUM)0;
#endif
                    rank++;
                }
#ifdef WC_SUM
                running += WC_WIDEN(values[j][k]);
#endif
            }
        }
    }
    if (warp == 0) {
        const OrderedState before = wc_look_back(p.scratch, tile, own);
        if (lane == 0) {
            shared.before[0] = before.heads;
            shared.before[1] = before.last;
#ifdef WC_SUM
            shared.before[2] = wc_sum_bits(before.sum);
#endif
        }
    }
    __syncthreads();

    // Head i of the tile is run before + i, and closes the run before that one.
    const uint64_t before = shared.before[0];
    const uint32_t shift = (uint32_t)before & 31u;
    for (uint32_t i = threadIdx.x; i < total + shift; i += WC_THREADS) {
        const uint64_t run = before - shift + i;
        if (i >= shift && run < p.capacity) p.keys_out[run] = staged_keys[i - shift];
    }
#if defined(WC_COUNT) || defined(WC_SUM)
    const uint32_t close_shift = (uint32_t)(before + 31) & 31u;
    for (uint32_t i = threadIdx.x; i < total + close_shift; i += WC_THREADS) {
        if (i < close_shift) continue;
        const uint32_t head = i - close_shift;
        const uint64_t run = before + head - 1;
        if (before + head == 0 || run >= p.capacity) continue;
#ifdef WC_COUNT
        const uint64_t begin = head == 0 ? shared.before[1] : tile_row + staged_rows[head == 0 ? 0 : head - 1];
        p.counts[run] = (WC_COUNT)(tile_row + staged_rows[head] - begin);
#endif
#ifdef WC_SUM
        WC_SUM sum = staged_sums[head];
        if (head == 0) sum = WcSumOf<WC_SUM>::bits(shared.before[2]) + sum;
        p.sums[run] = sum;
#endif
    }
#endif
    if (tile == gridDim.x - 1 && threadIdx.x == 0) {
        const uint64_t runs = before + total;
        *p.runs = runs;
#ifdef WC_COUNT
        if (runs <= p.capacity) p.counts[runs - 1] = (WC_COUNT)(p.n - (total == 0 ? shared.before[1] : own.last));
#endif
#ifdef WC_SUM
        const WC_SUM sum = total == 0 ? WcSumOf<WC_SUM>::bits(shared.before[2]) + own.sum : own.sum;
        if (runs <= p.capacity) p.sums[runs - 1] = sum;
#endif
    }
}
