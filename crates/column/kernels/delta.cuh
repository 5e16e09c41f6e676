// Delta columns: vectors and single values. The layout is drawn in crates/column/src/format/delta.rs. Strings of
// quads lie as offsets of packed.cuh do, so that a lane has one quad of each half of a group of 256.

// A vector's head.
template <typename Sum> struct WcDeltaHead { Sum base, near, far, least; };

WC_DEVICE WcDeltaHead<uint32_t> wc_delta_head(const uint32_t* heads, uint32_t vector) {
    const uint4 head = wc_load_cached((const uint4*)heads + vector);
    return WcDeltaHead<uint32_t>{head.x, head.y, head.z, head.w};
}
WC_DEVICE WcDeltaHead<uint64_t> wc_delta_head(const uint64_t* heads, uint32_t vector) {
    const uint64_t* const head = heads + 4 * (uint64_t)vector;
    return WcDeltaHead<uint64_t>{
        wc_load_cached(head), wc_load_cached(head + 1), wc_load_cached(head + 2), wc_load_cached(head + 3)};
}

// A word as a number with a sign.
WC_DEVICE int64_t wc_delta_number(uint32_t word) { return (int32_t)word; }
WC_DEVICE int64_t wc_delta_number(uint64_t word) { return (int64_t)word; }

// W bits a row, D bits the offset of a difference.
template <typename T, int W, int D> struct WcDelta {
    typedef typename WcPackedSum<sizeof(T)>::Type Sum;
    // Bits of a distance.
    static const int SUM_BITS = 8 * sizeof(Sum), H = 4 * W - 3 * D < SUM_BITS ? 4 * W - 3 * D : SUM_BITS;
    const char* groups;
    const Sum* heads;
    uint32_t rows;

    WC_INLINE WcDelta(const char* segment, uint32_t rows)
        : groups(segment), heads((const Sum*)(segment + (uint64_t)((rows + 1023) / 1024) * (128 * W))), rows(rows) {}

    template <int SLOTS> struct Step {
        WcPacked<W, SLOTS> strings;
        WcDeltaHead<Sum> head;
    };

    template <int SLOTS> WC_INLINE void fetch(Step<SLOTS>& step, uint32_t base, uint32_t lane) const {
        step.strings.load(groups, base, lane);
        step.head = wc_delta_head(heads, base / 1024);
    }

    template <int SLOTS>
    WC_INLINE void decode(T (&target)[SLOTS], const Step<SLOTS>& step, uint32_t base, uint32_t lane) const {
        const Sum least = step.head.least;
        Sum line = step.head.base + lane * step.head.near + base / 128 % 8 * step.head.far;
#pragma unroll
        for (int quad = 0; quad < SLOTS / 4; ++quad, line += step.head.far) {
            const typename WcPacked<W, SLOTS>::String string = step.strings.string(quad / 2);
            const int at = quad % 2 * 4 * W;
            Sum value = line + (Sum)wc_packed_bits<H>(string, at);
            target[4 * quad] = (T)value;
#pragma unroll
            for (int i = 0; i < 3; ++i) {
                value += (Sum)wc_packed_bits<D>(string, at + H + i * D) + least;
                target[4 * quad + 1 + i] = (T)value;
            }
        }
        if (rows - base < 32 * SLOTS) {
            // Behind the last row there is anything; what is looked up by a value has to be one that there is.
            const T known = (T)__shfl_sync(WC_FULL_MASK, (Sum)target[0], 0);
#pragma unroll
            for (int slot = 0; slot < SLOTS; ++slot) {
                target[slot] = base + wc_slot_row(slot, lane) < rows ? target[slot] : known;
            }
        }
    }

    // What the line, the widest distance and the widest differences allow: all numbers where that is more than words
    // hold, since values are then anything modulo 2^32 or 2^64. Distances and offsets have at most 32 bits here.
    WC_INLINE WcBounds bounds(uint32_t vector) const {
        const WcDeltaHead<Sum> head = wc_delta_head(heads, vector);
        const int64_t near = wc_delta_number(head.near), far = wc_delta_number(head.far);
        const int64_t least = wc_delta_number(head.least), most = least + (int64_t)((1ull << D) - 1);
        const bool is_unsigned = sizeof(T) == 4 && (T)-1 > (T)0;
        const int64_t base = is_unsigned ? (int64_t)head.base : wc_delta_number(head.base);
        // Far enough from the ends that what is added below stays inside.
        const int64_t some = 1ll << 48, end = 1ll << 62;
        const bool is_steep = near < -some || near > some || far < -some || far > some || least < -some || least > some;
        if (is_steep || base < -end || base > end) return WcBounds{-0x7fffffffffffffffll - 1, 0x7fffffffffffffffll};
        const int64_t across = 31 * near, down = 7 * far;
        WcBounds all;
        all.low = base + (across < 0 ? across : 0) + (down < 0 ? down : 0) + (least < 0 ? 3 * least : 0);
        all.high = base + (across > 0 ? across : 0) + (down > 0 ? down : 0) + (most > 0 ? 3 * most : 0);
        all.high += (int64_t)((1ull << H) - 1);
        const int64_t first = is_unsigned ? 0 : -0x80000000ll, last = is_unsigned ? 0xffffffffll : 0x7fffffffll;
        if (sizeof(Sum) == 4 && (all.low < first || all.high > last)) {
            return WcBounds{-0x7fffffffffffffffll - 1, 0x7fffffffffffffffll};
        }
        return all;
    }

    WC_INLINE T get(uint32_t row) const {
        const WcDeltaHead<Sum> head = wc_delta_head(heads, row / 1024);
        const char* const group = groups + (uint64_t)(row / 256) * (32 * W);
        const uint32_t lane = row % 128 / 4, at = row % 256 / 128 * 4 * W;
        Sum value = head.base + lane * head.near + row % 1024 / 128 * head.far;
        value += (Sum)wc_packed_bits_of<W, H, (H > 1)>(group, lane, at);
#pragma unroll
        for (uint32_t i = 0; i < 3; ++i) {
            // Offsets that the value does not reach are the first one again: all are on their way together.
            const bool reaches = i < row % 4;
            const Sum offset = (Sum)wc_packed_bits_of<W, D, (D > 1)>(group, lane, at + H + (reaches ? i * D : 0));
            value += reaches ? offset + head.least : 0;
        }
        return (T)value;
    }
};
