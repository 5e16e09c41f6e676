// Where rows lie in a warp, loads of plain columns and of validity, and what views of encoded columns have in common.
//
// Row map: a warp works on steps of SLOTS * 32 rows; slot k of a lane is row 128 * (k / 4) + 4 * lane + k % 4 of the
// step, so that a lane loads four neighbouring rows at once (16 bytes of a 4-byte column).

WC_DEVICE uint32_t wc_slot_row(uint32_t slot, uint32_t lane) { return 128u * (slot / 4u) + 4u * lane + slot % 4u; }

template <typename T> struct WcQuad;
template <> struct WcQuad<int8_t> { typedef uint32_t Word; };
template <> struct WcQuad<uint8_t> { typedef uint32_t Word; };
template <> struct WcQuad<int16_t> { typedef uint2 Word; };
template <> struct WcQuad<uint16_t> { typedef uint2 Word; };
template <> struct WcQuad<int32_t> { typedef uint4 Word; };
template <> struct WcQuad<uint32_t> { typedef uint4 Word; };
template <> struct WcQuad<float> { typedef uint4 Word; };

// Four neighbouring values, as wide as the hardware loads them; `source` is aligned to four values.
template <typename T> struct WcLoadQuad {
    static WC_INLINE void load(T* target, const T* source) {
        typedef typename WcQuad<T>::Word Word;
        union { Word word; T values[4]; } quad;
        quad.word = wc_load_stream((const Word*)source);
        for (int i = 0; i < 4; ++i) target[i] = quad.values[i];
    }
};
template <typename T> struct WcLoadQuadWide {
    static WC_INLINE void load(T* target, const T* source) {
        union { uint4 word; T values[2]; } low, high;
        low.word = wc_load_stream((const uint4*)source);
        high.word = wc_load_stream((const uint4*)source + 1);
        target[0] = low.values[0];
        target[1] = low.values[1];
        target[2] = high.values[0];
        target[3] = high.values[1];
    }
};
template <> struct WcLoadQuad<int64_t> : WcLoadQuadWide<int64_t> {};
template <> struct WcLoadQuad<uint64_t> : WcLoadQuadWide<uint64_t> {};
template <> struct WcLoadQuad<double> : WcLoadQuadWide<double> {};

// The lane's values of one step of a plain column; `source` points at the step's first row.
template <int SLOTS, typename T> WC_DEVICE void wc_load_slots(T (&target)[SLOTS], const T* source, uint32_t lane) {
#pragma unroll
    for (int group = 0; group < SLOTS / 4; ++group) {
        WcLoadQuad<T>::load(target + 4 * group, source + 128 * group + 4 * lane);
    }
}

// The same where each value lies STRIDE values behind the one before.
template <int SLOTS, int STRIDE, typename T>
WC_DEVICE void wc_load_apart(T (&target)[SLOTS], const T* source, uint32_t lane) {
#pragma unroll
    for (int slot = 0; slot < SLOTS; ++slot) {
        target[slot] = wc_load_cached(source + (128u * (slot / 4) + 4 * lane + slot % 4) * STRIDE);
    }
}

// The lane's validity bits of one step, bit k for slot k; all ones where the segment has no nulls.
template <int SLOTS> WC_DEVICE uint32_t wc_load_valid(const uint32_t* words, uint32_t first_row, uint32_t lane) {
    if (words == nullptr) return 0xffffffffu;
    uint32_t bits = 0;
#pragma unroll
    for (int group = 0; group < SLOTS / 4; ++group) {
        uint32_t word = wc_load_cached(words + (first_row + 128 * group) / 32 + lane / 8);
        bits |= (word >> (4 * (lane % 8)) & 15u) << (4 * group);
    }
    return bits;
}

WC_DEVICE bool wc_row_valid(const uint32_t* words, uint32_t row) {
    return words == nullptr || (wc_load_cached(words + row / 32) >> (row % 32) & 1u);
}

// Four neighbouring values, as wide as the hardware stores them; `target` is aligned to four values.
template <typename T> struct WcStoreQuad {
    static WC_INLINE void store(T* target, const T* source) {
        union { typename WcQuad<T>::Word word; T values[4]; } quad;
        for (int i = 0; i < 4; ++i) quad.values[i] = source[i];
        wc_store_stream((typename WcQuad<T>::Word*)target, quad.word);
    }
};
template <typename T> struct WcStoreQuadWide {
    static WC_INLINE void store(T* target, const T* source) {
        union { uint4 word; T values[2]; } low, high;
        low.values[0] = source[0];
        low.values[1] = source[1];
        high.values[0] = source[2];
        high.values[1] = source[3];
        wc_store_stream((uint4*)target, low.word);
        wc_store_stream((uint4*)target + 1, high.word);
    }
};
template <> struct WcStoreQuad<int64_t> : WcStoreQuadWide<int64_t> {};
template <> struct WcStoreQuad<uint64_t> : WcStoreQuadWide<uint64_t> {};
template <> struct WcStoreQuad<double> : WcStoreQuadWide<double> {};

// The other way round: the lane's values of one step, to where its first row lies in memory.
template <int SLOTS, typename T> WC_DEVICE void wc_store_slots(T* target, const T (&source)[SLOTS], uint32_t lane) {
#pragma unroll
    for (int group = 0; group < SLOTS / 4; ++group) {
        WcStoreQuad<T>::store(target + 128 * group + 4 * lane, source + 4 * group);
    }
}

// A view reads the segments of an encoded column. `fetch` asks for what a step of a warp takes, as far as that is known
// without waiting for memory; `decode` makes the lane's values of it; `get` is one row's. This is the part of those
// views whose steps have nothing to ask for early.
struct WcLateView {
    template <int SLOTS> struct Step {};
    template <int SLOTS> WC_INLINE void fetch(Step<SLOTS>&, uint32_t, uint32_t) const {}
};

// The lane's values of one step of an encoded column.
template <int SLOTS, typename View, typename T>
WC_DEVICE void wc_view_load(const View& view, T (&target)[SLOTS], uint32_t base, uint32_t lane) {
    typename View::template Step<SLOTS> step;
    view.fetch(step, base, lane);
    view.decode(target, step, base, lane);
}

// A plain segment.
template <typename T> struct WcPlain {
    const T* values;

    WC_INLINE WcPlain(const char* segment, uint32_t) : values((const T*)segment) {}

    template <int SLOTS> struct Step { T values[SLOTS]; };

    template <int SLOTS> WC_INLINE void fetch(Step<SLOTS>& step, uint32_t base, uint32_t lane) const {
        wc_load_slots<SLOTS>(step.values, values + base, lane);
    }

    template <int SLOTS>
    WC_INLINE void decode(T (&target)[SLOTS], const Step<SLOTS>& step, uint32_t, uint32_t) const {
#pragma unroll
        for (int slot = 0; slot < SLOTS; ++slot) target[slot] = step.values[slot];
    }

    WC_INLINE T get(uint32_t row) const { return wc_load_cached(values + row); }
};
