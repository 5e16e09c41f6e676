// Decoupled look-back: what all tiles before one's own sum up to, in one pass over the input.
//
// Source: Merrill and Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back (NVIDIA, 2016), section 4.
// A block draws its tile by ticket, so that all tiles before it have begun. It announces the state of its own tile,
// adds up the states of tiles before it until one of them knows the state of all tiles up to it, and announces the same
// of its own. A warp looks at 32 tiles at once.
//
// Scratch memory, all zeros before a launch: 64 bytes whose first word is the ticket counter, then a descriptor for
// each tile. A descriptor has State::WORDS words of 64 bits: 62 bits of the state and, in the highest two, what they
// mean. Every word says it, so words need no order among each other, and no fence is needed: a descriptor counts once
// all of its words mean the same.
//
// A State has: WORDS; none(); join(earlier, later), associative; pack into words below 2^62; unpack; and
// join_lanes(state, last), called by a warp whose lane i holds the state of the i-th last tile: the join of lanes
// last to 0, in every lane. Lanes behind `last` hold none(), those before it states of single tiles.
#pragma once

#define WC_SCRATCH_HEAD 64
#define WC_STATE_BITS 62
#define WC_STATE_MASK ((1ull << WC_STATE_BITS) - 1)
#define WC_TILE_EMPTY 0u   // nothing is known
#define WC_TILE_ALONE 1u   // the state of the tile alone
#define WC_TILE_UP_TO 2u   // the state of all tiles up to it

// The next tile; one lane of a block asks.
WC_DEVICE uint32_t wc_draw_tile(char* scratch) { return wc_count((uint32_t*)scratch); }

// The words of a descriptor, which other blocks write meanwhile; two by one access: a reader that sees one of them
// without the other has to ask again.
WC_DEVICE void wc_store_words(uint64_t* descriptor, const uint64_t (&words)[2]) {
    wc_store_pair_relaxed(descriptor, words);
}
template <int WORDS> WC_DEVICE void wc_store_words(uint64_t* descriptor, const uint64_t (&words)[WORDS]) {
#pragma unroll
    for (int i = 0; i < WORDS; ++i) wc_store_relaxed(descriptor + i, words[i]);
}
WC_DEVICE void wc_load_words(const uint64_t* descriptor, uint64_t (&words)[2]) {
    wc_load_pair_relaxed(descriptor, words);
}
template <int WORDS> WC_DEVICE void wc_load_words(const uint64_t* descriptor, uint64_t (&words)[WORDS]) {
#pragma unroll
    for (int i = 0; i < WORDS; ++i) words[i] = wc_load_relaxed(descriptor + i);
}

template <typename State>
WC_DEVICE void wc_announce(char* scratch, uint64_t tile, const State& state, uint32_t meaning) {
    uint64_t words[State::WORDS];
    state.pack(words);
    uint64_t* descriptor = (uint64_t*)(scratch + WC_SCRATCH_HEAD) + tile * State::WORDS;
#pragma unroll
    for (int i = 0; i < State::WORDS; ++i) words[i] |= (uint64_t)meaning << WC_STATE_BITS;
    wc_store_words(descriptor, words);
}

// Announces the state of a tile alone; one lane calls it, before the warp looks back.
template <typename State> WC_DEVICE void wc_announce_tile(char* scratch, uint64_t tile, const State& own) {
    wc_announce(scratch, tile, own, tile == 0 ? WC_TILE_UP_TO : WC_TILE_ALONE);
}

// What the words of a descriptor mean.
WC_DEVICE uint32_t wc_meaning(const uint64_t* words) { return (uint32_t)(words[0] >> WC_STATE_BITS); }

// The words of a descriptor; empty ones if they do not yet mean the same.
template <typename State>
WC_DEVICE void wc_look_at(const char* scratch, uint64_t tile, uint64_t (&words)[State::WORDS]) {
    const uint64_t* descriptor = (const uint64_t*)(scratch + WC_SCRATCH_HEAD) + tile * State::WORDS;
    wc_load_words(descriptor, words);
#pragma unroll
    for (int i = 1; i < State::WORDS; ++i) {
        if (words[i] >> WC_STATE_BITS != words[0] >> WC_STATE_BITS) words[0] = 0;
    }
}

// The sum over all lanes, in every lane. Integers add up by pieces of 27 bits, whose sums have 32.
template <typename S> WC_DEVICE S wc_lanes_total(S value) {
    S sum = 0;
#pragma unroll
    for (uint32_t shift = 0; shift < sizeof(S) * 8; shift += 27) {
        sum += (S)__reduce_add_sync(WC_FULL_MASK, (uint32_t)(value >> shift) & 0x7ffffffu) << shift;
    }
    return sum;
}
WC_DEVICE uint32_t wc_lanes_total(uint32_t value) { return __reduce_add_sync(WC_FULL_MASK, value); }
WC_DEVICE double wc_lanes_total(double value) { return wc_warp_sum(value); }

// The sum over lanes `last` to 0 of counts that have 32 bits in all lanes but `last`.
WC_DEVICE uint64_t wc_lanes_count(uint64_t count, uint32_t last) {
    const uint64_t far = __shfl_sync(WC_FULL_MASK, count, (int)last);
    return far + __reduce_add_sync(WC_FULL_MASK, wc_lane() < last ? (uint32_t)count : 0u);
}

// The first of lanes 0 to `last` that is marked, or `last`: lanes behind it hold what a later tile has cut off.
WC_DEVICE uint32_t wc_nearest(bool marked, uint32_t last) {
    const uint32_t lanes = __ballot_sync(WC_FULL_MASK, marked && wc_lane() <= last);
    return lanes == 0 ? last : (uint32_t)__ffs((int)lanes) - 1;
}

// Sleeps for about so many nanoseconds, 0 for not at all.
WC_DEVICE void wc_sleep(uint32_t nanoseconds) {
#ifndef WARPCUBE_EMULATED
    if (nanoseconds != 0) __nanosleep(nanoseconds);
#endif
}

// The state of all tiles before `tile`, in every lane; then announces that of all tiles up to it. A whole warp of
// the block calls it, after one lane has announced the tile. It asks for the descriptors of 32 tiles at once: with more
// in flight the kernels are slower (2026-11-23, H200: sums of 2^28 u32 in 16 runs 0.692 ms, for 128 tiles 0.743).
//
// Lines of descriptors that all resident blocks ask for again and again answer slowly, and what they ask for has mostly
// not been announced yet. So a block sleeps for `wait` nanoseconds before it looks. On an H100 (2026-11-25), without
// sleep, with 500 and 1,000 ns: stable selection of a tenth of 2^29 f32 0.961, 0.861, 0.840 ms; sums of 2^28 u32 in 16
// runs 0.793, 0.768, 0.752; scan of 2^28 u32 0.759, 0.753, 0.751. Past about 2,000 ns tiles take longer for it.
template <typename State>
WC_DEVICE State wc_look_back(char* scratch, uint64_t tile, const State& own, uint32_t wait = 0) {
    if (tile == 0) return State::none();
    const uint32_t lane = wc_lane();
    State before = State::none();
    wc_sleep(wait);
    // Lane i looks at tile end - 1 - i.
    for (uint64_t end = tile;;) {
        uint64_t words[State::WORDS];
        State::none().pack(words);
        words[0] |= (uint64_t)WC_TILE_UP_TO << WC_STATE_BITS;
        if (lane < end) wc_look_at<State>(scratch, end - 1 - lane, words);
        const uint32_t meaning = wc_meaning(words);
        const uint32_t known = __ballot_sync(WC_FULL_MASK, meaning == WC_TILE_UP_TO);
        const uint32_t empty = __ballot_sync(WC_FULL_MASK, meaning == WC_TILE_EMPTY);
        // Lanes in front of the first that knows all before it.
        const uint32_t needed = known == 0 ? WC_FULL_MASK : (known & (0u - known)) - 1;
        if ((empty & needed) != 0) {
            wc_backoff();
            continue;
        }
        const uint32_t last = known == 0 ? 31u : (uint32_t)__ffs((int)known) - 1;
#pragma unroll
        for (int i = 0; i < State::WORDS; ++i) words[i] &= WC_STATE_MASK;
        const State tiles = State::join_lanes(lane <= last ? State::unpack(words) : State::none(), last);
        before = State::join(tiles, before);
        if (known != 0) break;
        end -= 32;
    }
    if (lane == 0) wc_announce(scratch, tile, State::join(before, own), WC_TILE_UP_TO);
    return before;
}

// A count below 2^62.
struct WcCount {
    static const int WORDS = 1;
    uint64_t count;

    static WC_INLINE WcCount none() { return WcCount{0}; }
    static WC_INLINE WcCount join(const WcCount& earlier, const WcCount& later) {
        return WcCount{earlier.count + later.count};
    }
    static WC_INLINE WcCount join_lanes(const WcCount& state, uint32_t last) {
        return WcCount{wc_lanes_count(state.count, last)};
    }
    WC_INLINE void pack(uint64_t (&words)[WORDS]) const { words[0] = count; }
    static WC_INLINE WcCount unpack(const uint64_t (&words)[WORDS]) { return WcCount{words[0]}; }
};

// The bits of a sum, or of a part of another kind, of 4 or 8 bytes, and back.
WC_DEVICE uint64_t wc_sum_bits(uint32_t sum) { return sum; }
WC_DEVICE uint64_t wc_sum_bits(uint64_t sum) { return sum; }
WC_DEVICE uint64_t wc_sum_bits(double sum) { return (uint64_t)__double_as_longlong(sum); }
template <typename S> struct WcSumOf;
template <> struct WcSumOf<uint32_t> {
    static WC_INLINE uint32_t bits(uint64_t bits) { return (uint32_t)bits; }
};
template <> struct WcSumOf<uint64_t> {
    static WC_INLINE uint64_t bits(uint64_t bits) { return bits; }
};
template <> struct WcSumOf<double> {
    static WC_INLINE double bits(uint64_t bits) { return __longlong_as_double((int64_t)bits); }
};
