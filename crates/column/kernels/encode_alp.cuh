// The integers of ALP columns; alp.rs in crates/column/src/format says what they are.

// What scales values: powers of ten and their inverses.
struct WcScale {
    double exponent_power, factor_inverse, factor_power, exponent_inverse;
};

// A double as an integer as Rust converts it: saturating, NaN as 0.
WC_DEVICE int64_t wc_to_integer(double value) {
    if (value >= 9223372036854775808.0) return 0x7fffffffffffffffll;
    if (value < -9223372036854775808.0) return -0x7fffffffffffffffll - 1;
    return value == value ? (int64_t)value : 0;
}

// Whether decoding the integer gives the bits back.
WC_DEVICE bool wc_alp_integer(const WcScale& scale, uint64_t bits, bool is_wide, int64_t& integer) {
    // Added and subtracted again it rounds numbers of less than 2^51 to integers.
    const double rounding = 6755399441055744.0;
    const double value = is_wide ? __longlong_as_double((int64_t)bits) : (double)__uint_as_float((uint32_t)bits);
    const double scaled = value * scale.exponent_power * scale.factor_inverse;
    integer = wc_to_integer((scaled + rounding) - rounding);
    const double back = (double)integer * scale.factor_power * scale.exponent_inverse;
    return is_wide ? (uint64_t)__double_as_longlong(back) == bits : __float_as_uint((float)back) == (uint32_t)bits;
}

// Purpose: integers of floats. Inputs: a plain segment of floats. Outputs: integers i64 [vectors * 1024], exceptions
// repeating the integer before them in their group of 256 rows, those at its front the first there is, or 0; marks u32
// [32 * vectors] of valid exceptions, counts u32 [4 * vectors] of them. Mapping: a warp a group, grid-stride. Bytes:
// the values once, 8 a row, an eighth a row.
struct AlpParams {
    WcSource source;
    WcScale scale;
    int64_t* integers;
    uint32_t* marks;
    uint32_t* counts;
};

WC_ENCODER(alp_integers, AlpParams, 3) {
    const uint32_t lane = wc_lane();
    const uint64_t groups = 4 * wc_vectors(p.source);
    for (uint64_t group = share.first(); group < groups; group += share.warps()) {
        int64_t integers[8], carry = 0;
        uint32_t exact[8], count = 0;
        bool found = false;
#pragma unroll
        for (uint32_t step = 0; step < 8; ++step) {
            const uint64_t bits = wc_key(p.source, 256 * group + 32 * step + lane);
            const bool is_exact = wc_alp_integer(p.scale, bits, p.source.width == 8, integers[step]);
            exact[step] = __ballot_sync(WC_FULL_MASK, is_exact);
            if (!found && exact[step] != 0) {
                carry = __shfl_sync(WC_FULL_MASK, integers[step], __ffs((int)exact[step]) - 1);
                found = true;
            }
        }
#pragma unroll
        for (uint32_t step = 0; step < 8; ++step) {
            const uint32_t before = exact[step] & (wc_lanes_before(lane) | 1u << lane);
            const int64_t known = __shfl_sync(WC_FULL_MASK, integers[step], before == 0 ? 0 : 31 - __clz((int)before));
            const int64_t integer = before == 0 ? carry : known;
            carry = __shfl_sync(WC_FULL_MASK, integer, 31);
            p.integers[256 * group + 32 * step + lane] = integer;
            const uint32_t mark = ~exact[step] & wc_valid_word(p.source, 256 * group + 32 * step);
            if (lane == 0) p.marks[8 * group + step] = mark;
            count += __popc(mark);
        }
        if (lane == 0) p.counts[group] = count;
    }
}

// Purpose: what stands before the packed integers of a segment. Outputs: their length u64, eight zeros; the bytes that
// round it up to a multiple of 8. Mapping: one thread.
struct AlpHeadParams {
    uint64_t length;
    char* out;
};

WC_ENCODER(alp_head, AlpHeadParams, 3) {
    if (!share.begins()) return;
    ((uint64_t*)p.out)[0] = p.length;
    ((uint64_t*)p.out)[1] = 0;
    for (uint64_t at = 16 + p.length; at % 8 != 0; ++at) p.out[at] = 0;
}
