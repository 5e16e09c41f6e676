// What contraction multiplies by weights: commutative monoids on which weights act.
//
// WC_MONOID names that of a program: CubeNarrow, CubeWide, CubePrecise or CubeGreatest. The plain-Rust reference of
// each is in aggregate/monoid.rs.
#pragma once

// Sums of 64 bits under whole weights; the host has proven that they hold.
struct CubeNarrow {
    typedef int64_t Weight;
    uint64_t sum;

    static WC_INLINE CubeNarrow none() { return {0}; }
    WC_INLINE void add(const CubeNarrow& other, int64_t weight) { sum += (uint64_t)weight * other.sum; }
};

// Sums of 128 bits under whole weights, the low word first; the host has proven that they hold.
struct __align__(16) CubeWide {
    typedef int64_t Weight;
    uint64_t low, high;

    static WC_INLINE CubeWide none() { return {0, 0}; }
    WC_INLINE void add(const CubeWide& other, int64_t weight) {
        unsigned __int128 sum = (unsigned __int128)high << 64 | low;
        sum += ((unsigned __int128)other.high << 64 | other.low) * (unsigned __int128)(__int128)weight;
        low = (uint64_t)sum;
        high = (uint64_t)(sum >> 64);
    }
};

// Sums as unevaluated pairs of doubles, under any weights. Source and bounds: facts/precise.rs.
struct __align__(16) CubePrecise {
    typedef double Weight;
    double high, low;

    static WC_INLINE CubePrecise none() { return {0.0, 0.0}; }
    // The sum of two doubles and its rounding error; the first is not smaller in magnitude.
    static WC_INLINE CubePrecise ordered_sum(double a, double b) {
        const double sum = a + b;
        return {sum, b - (sum - a)};
    }
    // The same of any two doubles.
    static WC_INLINE CubePrecise sum_of(double a, double b) {
        const double sum = a + b, of_b = sum - a;
        return {sum, (a - (sum - of_b)) + (b - of_b)};
    }
    WC_INLINE CubePrecise plus(const CubePrecise& other) const {
        const CubePrecise of_high = sum_of(high, other.high), of_low = sum_of(low, other.low);
        const CubePrecise sum = ordered_sum(of_high.high, of_high.low + of_low.high);
        return ordered_sum(sum.high, of_low.low + sum.low);
    }
    WC_INLINE CubePrecise times(double factor) const {
        if (factor == 1.0) return *this;
        const double product = high * factor;
        return ordered_sum(product, fma(low, factor, fma(high, factor, -product)));
    }
    WC_INLINE void add(const CubePrecise& other, double weight) { *this = plus(other.times(weight)); }
};

// The greatest word of members; weights do not count.
struct CubeGreatest {
    typedef int64_t Weight;
    uint64_t greatest;

    static WC_INLINE CubeGreatest none() { return {0}; }
    WC_INLINE void add(const CubeGreatest& other, int64_t weight) {
        (void)weight;
        if (other.greatest > greatest) greatest = other.greatest;
    }
};
