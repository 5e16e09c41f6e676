// Where rows lie in a warp, and loads of plain columns.
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
