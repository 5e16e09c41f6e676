// Columns of floats that were decimals (ALP): vectors and single values. The layout is drawn in
// crates/column/src/format/alp.rs.

// Integers of a segment, with patches of their own or without.
template <int W, bool OWN, bool PATCHES> struct WcAlpIntegers : WcPatched<int64_t, W, OWN> {
    WC_INLINE WcAlpIntegers(const char* buffer, uint32_t rows, uint64_t reference)
        : WcPatched<int64_t, W, OWN>(buffer, rows, reference, 16) {}
};
template <int W, bool OWN> struct WcAlpIntegers<W, OWN, false> : WcPackedView<int64_t, W, OWN> {
    WC_INLINE WcAlpIntegers(const char* buffer, uint32_t rows, uint64_t reference)
        : WcPackedView<int64_t, W, OWN>(buffer + 16, rows, reference) {}
};

// Bits of an exception as a float.
WC_DEVICE float wc_alp_float(uint32_t bits) { return __uint_as_float(bits); }
WC_DEVICE double wc_alp_float(uint64_t bits) { return __longlong_as_double((int64_t)bits); }

template <typename T, int W, bool OWN, bool PATCHES> struct WcAlp {
    typedef typename WcPackedSum<sizeof(T)>::Type Bits;
    WcAlpIntegers<W, OWN, PATCHES> integers;
    WcPatches<Bits> exceptions;
    double factor, inverse;

    WC_INLINE WcAlp(const char* segment, uint32_t rows, uint64_t reference, double factor, double inverse)
        : integers(segment, rows, reference),
          exceptions(segment, 16 + (wc_load_cached((const uint64_t*)segment) + 7) / 8 * 8, (rows + 1023) / 1024),
          factor(factor), inverse(inverse) {}

    // Both products are rounded, in this order.
    WC_INLINE T value(int64_t integer) const { return (T)__dmul_rn(__dmul_rn((double)integer, factor), inverse); }

    template <int SLOTS> struct Step {
        typename WcAlpIntegers<W, OWN, PATCHES>::template Step<SLOTS> integers;
        typename WcPatches<Bits>::template Step<SLOTS> exceptions;
    };

    template <int SLOTS> WC_INLINE void fetch(Step<SLOTS>& step, uint32_t base, uint32_t lane) const {
        integers.fetch(step.integers, base, lane);
        exceptions.fetch(step.exceptions, base);
    }

    template <int SLOTS>
    WC_INLINE void decode(T (&target)[SLOTS], const Step<SLOTS>& step, uint32_t base, uint32_t lane) const {
        int64_t whole[SLOTS];
        integers.decode(whole, step.integers, base, lane);
#pragma unroll
        for (int slot = 0; slot < SLOTS; ++slot) target[slot] = value(whole[slot]);
        exceptions.each(step.exceptions, lane, [&](int slot, Bits bits) { target[slot] = wc_alp_float(bits); });
    }

    WC_INLINE T get(uint32_t row) const {
        Bits bits;
        return exceptions.get(row, &bits) ? wc_alp_float(bits) : value(integers.get(row));
    }
};
