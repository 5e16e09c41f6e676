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
// A State has: WORDS; none(); join(earlier, later), associative; pack into words below 2^62; unpack.
#pragma once

#define WC_SCRATCH_HEAD 64
#define WC_STATE_BITS 62
#define WC_STATE_MASK ((1ull << WC_STATE_BITS) - 1)
#define WC_TILE_EMPTY 0u   // nothing is known
#define WC_TILE_ALONE 1u   // the state of the tile alone
#define WC_TILE_UP_TO 2u   // the state of all tiles up to it

// The next tile; one lane of a block asks.
WC_DEVICE uint32_t wc_draw_tile(char* scratch) { return wc_count((uint32_t*)scratch); }

template <typename State>
WC_DEVICE void wc_announce(char* scratch, uint64_t tile, const State& state, uint32_t meaning) {
    uint64_t words[State::WORDS];
    state.pack(words);
    uint64_t* descriptor = (uint64_t*)(scratch + WC_SCRATCH_HEAD) + tile * State::WORDS;
#pragma unroll
    for (int i = 0; i < State::WORDS; ++i) {
        wc_store_relaxed(descriptor + i, words[i] | (uint64_t)meaning << WC_STATE_BITS);
    }
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
#pragma unroll
    for (int i = 0; i < State::WORDS; ++i) words[i] = wc_load_relaxed(descriptor + i);
#pragma unroll
    for (int i = 1; i < State::WORDS; ++i) {
        if (words[i] >> WC_STATE_BITS != words[0] >> WC_STATE_BITS) words[0] = 0;
    }
}

template <typename State> WC_DEVICE State wc_state_from(const State& state, uint32_t lane) {
    uint64_t words[State::WORDS];
    state.pack(words);
#pragma unroll
    for (int i = 0; i < State::WORDS; ++i) words[i] = __shfl_sync(WC_FULL_MASK, words[i], (int)lane);
    return State::unpack(words);
}

// The state of all tiles before `tile`, in every lane; then announces that of all tiles up to it. A whole warp of
// the block calls it, after one lane has announced the tile. It asks for the descriptors of 32 tiles at once: with more
// in flight the kernels are slower. Sums of 2^28 u32 in 16 runs on an H200 (2026-11-23): 0.692 ms, for 64 tiles 0.691,
// 128 tiles 0.743, 256 tiles 0.813; 0.873 where each lane joins four neighbours by itself. Scans: 0.598, 0.601, 0.610,
// 0.664 and 0.643 ms.
template <typename State> WC_DEVICE State wc_look_back(char* scratch, uint64_t tile, const State& own) {
    if (tile == 0) return State::none();
    const uint32_t lane = wc_lane();
    State before = State::none();
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
        State all = lane <= last ? State::unpack(words) : State::none();
#pragma unroll
        for (uint32_t step = 1; step < 32; step *= 2) {
            const State earlier = wc_state_from(all, lane + step < 32 ? lane + step : lane);
            if (lane + step < 32) all = State::join(earlier, all);
        }
        before = State::join(wc_state_from(all, 0), before);
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
    WC_INLINE void pack(uint64_t (&words)[WORDS]) const { words[0] = count; }
    static WC_INLINE WcCount unpack(const uint64_t (&words)[WORDS]) { return WcCount{words[0]}; }
};

// The bits of a sum of 4 or 8 bytes, and back.
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

// A sum that wraps, or of doubles; one word where it has 4 bytes, else two.
template <typename S> struct WcSum {
    static const int WORDS = sizeof(S) <= 4 ? 1 : 2;
    S sum;

    static WC_INLINE WcSum none() { return WcSum{(S)0}; }
    static WC_INLINE WcSum join(const WcSum& earlier, const WcSum& later) { return WcSum{earlier.sum + later.sum}; }
    WC_INLINE void pack(uint64_t (&words)[WORDS]) const {
        words[0] = wc_sum_bits(sum) & WC_STATE_MASK;
        if (WORDS == 2) words[WORDS - 1] = wc_sum_bits(sum) >> WC_STATE_BITS;
    }
    static WC_INLINE WcSum unpack(const uint64_t (&words)[WORDS]) {
        return WcSum{WcSumOf<S>::bits(WORDS == 2 ? words[0] | words[WORDS - 1] << WC_STATE_BITS : words[0])};
    }
};
