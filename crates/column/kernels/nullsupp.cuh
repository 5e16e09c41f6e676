// Columns under null suppression: NSF and NSV, vectors and single values. The layouts are drawn in
// crates/column/src/format/nsf.rs and nsv.rs.

// Integers of some bytes.
template <int BYTES, bool IS_SIGNED> struct WcNarrow;
template <> struct WcNarrow<1, false> { typedef uint8_t Type; };
template <> struct WcNarrow<1, true> { typedef int8_t Type; };
template <> struct WcNarrow<2, false> { typedef uint16_t Type; };
template <> struct WcNarrow<2, true> { typedef int16_t Type; };
template <> struct WcNarrow<4, false> { typedef uint32_t Type; };
template <> struct WcNarrow<4, true> { typedef int32_t Type; };
template <> struct WcNarrow<8, false> { typedef uint64_t Type; };
template <> struct WcNarrow<8, true> { typedef int64_t Type; };

// Values of the same number of bytes each: loaded like plain columns of that width, then extended.
template <typename T, int BYTES> struct WcNsf {
    typedef typename WcNarrow<BYTES, ((T)-1 < (T)0)>::Type Narrow;
    WcPlain<Narrow> narrow;

    WC_INLINE WcNsf(const char* segment, uint32_t rows) : narrow(segment, rows) {}

    template <int SLOTS> struct Step : WcPlain<Narrow>::template Step<SLOTS> {};

    template <int SLOTS> WC_INLINE void fetch(Step<SLOTS>& step, uint32_t base, uint32_t lane) const {
        narrow.template fetch<SLOTS>(step, base, lane);
    }

    template <int SLOTS>
    WC_INLINE void decode(T (&target)[SLOTS], const Step<SLOTS>& step, uint32_t, uint32_t) const {
#pragma unroll
        for (int slot = 0; slot < SLOTS; ++slot) target[slot] = (T)step.values[slot];
    }

    WC_INLINE T get(uint32_t row) const { return (T)narrow.get(row); }
};

// Sum of the 2-bit digits of a word.
WC_DEVICE uint32_t wc_nsv_digits(uint32_t word) { return __popc(word & 0x55555555u) + 2 * __popc(word & 0xaaaaaaaau); }

// Values of 1 to 4 bytes. A value begins where those before it in its vector end: a warp adds up their lengths. The
// byte of lengths at row / 4 has those of a lane's four rows.
template <typename T> struct WcNsv : WcLateView {
    typedef typename WcPackedSum<sizeof(T)>::Type Sum;
    const char* lengths;
    const uint32_t* starts;
    const char* data;
    Sum reference;

    WC_INLINE WcNsv(const char* segment, uint32_t rows, uint64_t reference)
        : lengths(segment), reference((Sum)reference) {
        const uint32_t vectors = (rows + 1023) / 1024;
        starts = (const uint32_t*)(segment + (uint64_t)vectors * 256);
        data = (const char*)(starts + vectors + 1);
    }

    template <int SLOTS>
    WC_INLINE void decode(T (&target)[SLOTS], const Step<SLOTS>&, uint32_t base, uint32_t lane) const {
        // Bytes of the rows of this vector before the step, less one each: 16 rows a word, 48 words at most.
        const uint32_t words = base % 1024 / 16;
        const uint32_t* const before = (const uint32_t*)(lengths + base / 1024 * 256);
        uint32_t digits = lane < words ? wc_nsv_digits(wc_load_cached(before + lane)) : 0;
        if (lane + 32 < words) digits += wc_nsv_digits(wc_load_cached(before + lane + 32));
        if (words != 0) digits = wc_warp_sum(digits);
        uint32_t at = wc_load_cached(starts + base / 1024) + base % 1024 + digits;
#pragma unroll
        for (int half = 0; half < SLOTS / 4; ++half) {
            const uint32_t own = wc_load_stream((const uint8_t*)lengths + (base + 128 * half) / 4 + lane);
            const uint32_t count = wc_nsv_digits(own) + 4, end = wc_warp_inclusive_sum(count);
            uint32_t here = at + end - count;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const uint32_t length = (own >> 2 * i & 3u) + 1;
                target[4 * half + i] = value(here, length);
                here += length;
            }
            at += __shfl_sync(WC_FULL_MASK, end, 31);
        }
    }

    WC_INLINE T get(uint32_t row) const {
        const char* const words = lengths + row / 1024 * 256;
        uint32_t at = wc_load_cached(starts + row / 1024) + row % 1024;
        for (uint32_t four = 0; four < row % 1024 / 64; ++four) {
            const uint4 quad = wc_load_cached((const uint4*)words + four);
            at += wc_nsv_digits(quad.x) + wc_nsv_digits(quad.y) + wc_nsv_digits(quad.z) + wc_nsv_digits(quad.w);
        }
        for (uint32_t word = row % 1024 / 64 * 4; word < row % 1024 / 16; ++word) {
            at += wc_nsv_digits(wc_load_cached((const uint32_t*)words + word));
        }
        const uint32_t own = wc_load_cached((const uint32_t*)words + row % 1024 / 16), digit = row % 16;
        at += wc_nsv_digits(own & ((1u << 2 * digit) - 1u));
        return value(at, (own >> 2 * digit & 3u) + 1);
    }

    // The value of `length` bytes from byte `at` of the data on: they begin anywhere in a word and may end in the next.
    WC_INLINE T value(uint32_t at, uint32_t length) const {
        const uint32_t* const words = (const uint32_t*)data + at / 4;
        const uint32_t shift = at % 4 * 8;
        uint64_t bits = wc_load_cached(words);
        if (shift + 8 * length > 32) bits |= (uint64_t)wc_load_cached(words + 1) << 32;
        return (T)(reference + (Sum)((uint32_t)(bits >> shift) & 0xffffffffu >> (32 - 8 * length)));
    }
};
