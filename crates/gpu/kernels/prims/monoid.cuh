// What items are joined to: their sum, their number, the least or the largest of them. The host's side of this file is
// crates/gpu/src/prims/monoid.rs.
//
// An item of WC_IN becomes a `Part` (wc_part); parts are joined (wc_join: associative and commutative, doubles up to
// rounding), wc_nothing() joins with any part to that part, and a part becomes a `Result` (wc_result). Parts of sums
// and counts are the sums; those of the least and the largest are ordered bits (keys.cuh): one NaN, the largest, one
// zero.
#pragma once

#if defined(WC_LEAST) || defined(WC_LARGEST)
// Parts of bytes have 32 bits, which lanes exchange at once.
template <typename Bits> struct WcWide { typedef Bits Type; };
template <> struct WcWide<uint8_t> { typedef uint32_t Type; };
typedef WcKey<WC_IN>::Bits PartBits;
typedef WcWide<PartBits>::Type Part;
typedef WC_IN Result;
WC_DEVICE Part wc_part(WC_IN item) { return WcKey<WC_IN>::to_bits(item); }
WC_DEVICE Result wc_result(Part part) { return WcKey<WC_IN>::from_bits((PartBits)part); }
#ifdef WC_LEAST
// The bits of the largest key.
template <typename T> struct WcNothing { static WC_INLINE Part part() { return (PartBits)~(PartBits)0; } };
template <> struct WcNothing<float> { static WC_INLINE Part part() { return (Part)0xffc00000u; } };
template <> struct WcNothing<double> { static WC_INLINE Part part() { return (Part)0xfff8000000000000ull; } };
WC_DEVICE Part wc_join(Part a, Part b) { return b < a ? b : a; }
WC_DEVICE uint32_t wc_lanes_join(uint32_t part) { return __reduce_min_sync(WC_FULL_MASK, part); }
#else
// The bits of the least key.
template <typename T> struct WcNothing { static WC_INLINE Part part() { return 0; } };
template <> struct WcNothing<float> { static WC_INLINE Part part() { return (Part)0x007fffffu; } };
template <> struct WcNothing<double> { static WC_INLINE Part part() { return (Part)0x000fffffffffffffull; } };
WC_DEVICE Part wc_join(Part a, Part b) { return b > a ? b : a; }
WC_DEVICE uint32_t wc_lanes_join(uint32_t part) { return __reduce_max_sync(WC_FULL_MASK, part); }
#endif
WC_DEVICE Part wc_nothing() { return WcNothing<WC_IN>::part(); }

// The join over all lanes, in every lane.
template <typename P> WC_DEVICE P wc_lanes_join(P part) {
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) part = wc_join(part, __shfl_xor_sync(WC_FULL_MASK, part, step));
    return part;
}
// The join over the lanes up to one's own, from the last marked lane on, that one's own part counting whole.
template <typename P> WC_DEVICE P wc_lanes_join_since(P part, uint32_t marks) {
    const uint32_t lane = wc_lane(), up_to = marks & (0xffffffffu >> (31 - lane));
    const uint32_t reach = up_to == 0 ? lane : lane - (31 - (uint32_t)__clz((int)up_to));
#pragma unroll
    for (uint32_t step = 1; step < 32; step *= 2) {
        const P other = __shfl_up_sync(WC_FULL_MASK, part, step);
        if (step <= reach) part = wc_join(other, part);
    }
    return part;
}
// The join over the lanes up to one's own.
template <typename P> WC_DEVICE P wc_lanes_join_up_to(P part) { return wc_lanes_join_since(part, 0u); }
// The join over the few parts of a block's warps, in every lane.
template <typename P> WC_DEVICE P wc_warps_join(P part) { return wc_lanes_join(part); }
#else
typedef WC_SUM Part;
typedef WC_SUM Result;
WC_DEVICE Part wc_part(WC_IN item) { return WC_WIDEN(item); }
WC_DEVICE Result wc_result(Part part) { return part; }
WC_DEVICE Part wc_join(Part a, Part b) { return a + b; }
WC_DEVICE Part wc_nothing() { return (Part)0; }
WC_DEVICE Part wc_lanes_join(Part part) { return wc_lanes_total(part); }
WC_DEVICE Part wc_lanes_join_since(Part part, uint32_t marks) { return wc_lanes_sum_since(part, marks); }
WC_DEVICE Part wc_lanes_join_up_to(Part part) { return wc_lanes_sum(part); }
WC_DEVICE Part wc_warps_join(Part part) { return wc_warp_sum(part); }
#endif

// A state of look-back: a part of 4 or 8 bytes; one word where it has 4, else two.
template <typename P> struct WcPart {
    static const int WORDS = sizeof(P) <= 4 ? 1 : 2;
    P part;

    static WC_INLINE WcPart none() { return WcPart{wc_nothing()}; }
    static WC_INLINE WcPart join(const WcPart& earlier, const WcPart& later) {
        return WcPart{wc_join(earlier.part, later.part)};
    }
    static WC_INLINE WcPart join_lanes(const WcPart& state, uint32_t) { return WcPart{wc_lanes_join(state.part)}; }
    WC_INLINE void pack(uint64_t (&words)[WORDS]) const {
        words[0] = wc_sum_bits(part) & WC_STATE_MASK;
        if (WORDS == 2) words[WORDS - 1] = wc_sum_bits(part) >> WC_STATE_BITS;
    }
    static WC_INLINE WcPart unpack(const uint64_t (&words)[WORDS]) {
        return WcPart{WcSumOf<P>::bits(WORDS == 2 ? words[0] | words[WORDS - 1] << WC_STATE_BITS : words[0])};
    }
};

// A state of look-back over segments: whether one ended, and the part from its end on, or of all.
template <typename P> struct WcSegment {
    static const int WORDS = 2;
    uint64_t ended;
    P sum;

    static WC_INLINE WcSegment none() { return WcSegment{0, wc_nothing()}; }
    static WC_INLINE WcSegment join(const WcSegment& earlier, const WcSegment& later) {
        return WcSegment{earlier.ended | later.ended, later.ended ? later.sum : wc_join(earlier.sum, later.sum)};
    }
    static WC_INLINE WcSegment join_lanes(const WcSegment& state, uint32_t last) {
        const uint32_t nearest = wc_nearest(state.ended != 0, last);
        const P sum = wc_lanes_join(wc_lane() <= nearest ? state.sum : wc_nothing());
        return WcSegment{__any_sync(WC_FULL_MASK, state.ended != 0) ? 1ull : 0ull, sum};
    }
    WC_INLINE void pack(uint64_t (&words)[WORDS]) const {
        words[0] = wc_sum_bits(sum) & WC_STATE_MASK;
        words[1] = wc_sum_bits(sum) >> WC_STATE_BITS | ended << 2;
    }
    static WC_INLINE WcSegment unpack(const uint64_t (&words)[WORDS]) {
        return WcSegment{words[1] >> 2, WcSumOf<P>::bits(words[0] | words[1] << WC_STATE_BITS)};
    }
};
