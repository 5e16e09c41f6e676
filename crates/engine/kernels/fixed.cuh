// Exact sums of doubles: each value as up to three 32-bit limbs of a fixed-point number, which are added as integers.
//
// Purpose: a sum that has the same bits whatever the order of rows, lanes and blocks (FloatSum is the plain-Rust side).
// Numerics: limb i counts in units of 2^(32 i - 1074), so that every finite double is whole; a cell takes signed limbs
// modulo 2^64 and holds 2^30 rows. A sum keeps `limbs` cells from limb `first_limb` on; a value with bits outside of
// them raises WC_SUM_WINDOW, and the host runs the fragment again with cells for all limbs. What is not finite has no
// limbs and goes into a word of its own: +infinity counts 1, -infinity 2^32, NaN both.
// Source: superaccumulators (Kulisch, Computer Arithmetic and Validity; Neal, arXiv 1505.05571).

// A flag beside those of WcFlag.
#define WC_SUM_WINDOW 4u

struct WcFixed {
    // Magnitudes of three neighbouring limbs, and the cell of the first.
    uint32_t parts[3];
    int32_t first;
    bool negative;
    // Whether all bits lie in the window.
    bool fits;
    uint64_t infinite;
};

WC_DEVICE WcFixed wc_fixed(double value, int64_t first_limb, int32_t limbs) {
    const uint64_t bits = (uint64_t)__double_as_longlong(value);
    const int32_t exponent = (int32_t)(bits >> 52 & 0x7ff);
    const uint64_t fraction = bits & 0xfffffffffffffULL;
    WcFixed fixed;
    fixed.negative = bits >> 63 != 0;
    fixed.infinite = 0;
    uint64_t mantissa = exponent == 0 ? fraction : fraction | 1ULL << 52;
    if (exponent == 0x7ff) {
        fixed.infinite = fraction != 0 ? 0x100000001ULL : fixed.negative ? 0x100000000ULL : 1;
        mantissa = 0;
    }
    int32_t position = (exponent == 0 ? 1 : exponent) - 1 - 32 * (int32_t)first_limb;
    uint64_t lost = 0;
    if (position < 0) {
        const int32_t below = -position < 63 ? -position : 63;
        lost = mantissa & ((1ULL << below) - 1);
        mantissa >>= below;
        position = 0;
    }
    const uint32_t shift = (uint32_t)position % 32;
    const uint64_t low = mantissa << shift;
    fixed.parts[0] = (uint32_t)low;
    fixed.parts[1] = (uint32_t)(low >> 32);
    fixed.parts[2] = shift == 0 ? 0 : (uint32_t)(mantissa >> (64 - shift));
    fixed.first = position / 32;
    fixed.fits = lost == 0;
#pragma unroll
    for (int32_t part = 0; part < 3; ++part) fixed.fits &= fixed.parts[part] == 0 || fixed.first + part < limbs;
    return fixed;
}

WC_DEVICE uint32_t wc_fixed_part(const WcFixed& fixed, int32_t limb) {
    const int32_t part = limb - fixed.first;
    return part == 0 ? fixed.parts[0] : part == 1 ? fixed.parts[1] : part == 2 ? fixed.parts[2] : 0;
}

// What a value adds to a limb's cell.
WC_DEVICE uint64_t wc_fixed_limb(const WcFixed& fixed, int32_t limb) {
    const uint64_t part = wc_fixed_part(fixed, limb);
    return fixed.negative ? 0 - part : part;
}

// Adds a value to a sum with cells for all limbs, `places` cells apart in global memory: one atomic a part that is not
// zero.
WC_DEVICE void wc_fixed_add(uint64_t* cells, uint64_t places, const WcFixed& fixed) {
#pragma unroll
    for (int32_t part = 0; part < 3; ++part) {
        const uint64_t value = fixed.parts[part];
        if (value != 0) wc_add(cells + (fixed.first + part) * places, fixed.negative ? 0 - value : value);
    }
}

// A sum, rounded once to nearest, ties to even, from its `count` limbs, of which the first is limb `first`; what was
// not finite decides. `limbs` has one more place, for the carry, and is changed.
WC_DEVICE double wc_fixed_value(int64_t* limbs, int32_t count, int32_t first, uint64_t infinite) {
    if (infinite != 0) {
        const bool up = (infinite & 0xffffffffULL) != 0, down = infinite >> 32 != 0;
        return __longlong_as_double(up && down ? 0x7ff8000000000000LL
                                               : (int64_t)(up ? 0x7ff0000000000000ULL : 0xfff0000000000000ULL));
    }
    bool negative = false;
    for (int32_t turn = 0; turn < 2; ++turn) {
        int64_t carried = 0;
        for (int32_t limb = 0; limb < count; ++limb) {
            const int64_t whole = limbs[limb] + carried;
            limbs[limb] = whole & 0xffffffffLL;
            carried = whole >> 32;
        }
        limbs[count] += carried;
        if (turn == 1 || limbs[count] >= 0) break;
        negative = true;
        for (int32_t limb = 0; limb <= count; ++limb) limbs[limb] = -limbs[limb];
    }
    int32_t last = count;
    while (last >= 0 && limbs[last] == 0) --last;
    if (last < 0) return 0.0;
    // Bits of the sum in units of 2^-1074, from which a double takes the leading 53.
    const int32_t bits = (first + last) * 32 + 32 - __clz((uint32_t)limbs[last]);
    const int32_t shift = bits < 53 ? 0 : bits - 53;
    if (shift >= 2046) return __longlong_as_double((int64_t)(negative ? 0xfff0000000000000ULL : 0x7ff0000000000000ULL));
    uint64_t mantissa = 0;
    bool half = false, below = false;
    for (int32_t limb = 0; limb <= last; ++limb) {
        const uint64_t value = (uint64_t)limbs[limb];
        const int32_t at = (first + limb) * 32 - shift;
        if (at >= 0) {
            mantissa |= value << at;
        } else if (at > -32) {
            mantissa |= value >> -at;
            half = (value >> (-at - 1) & 1) != 0;
            below |= (value & ((1ULL << (-at - 1)) - 1)) != 0;
        } else {
            half = at == -32 && value >> 31 != 0;
            below |= (at == -32 ? value & 0x7fffffffULL : value) != 0;
        }
    }
    // The leading one counts into the exponent, and so does a carry out of the mantissa, up to infinity.
    const bool is_up = half && (below || (mantissa & 1) != 0);
    const uint64_t magnitude = ((uint64_t)shift << 52) + mantissa + (is_up ? 1 : 0);
    return __longlong_as_double((int64_t)(negative ? magnitude | 1ULL << 63 : magnitude));
}
