// Packed columns: loads, single values. The layout is drawn in crates/column/src/format/packed.rs.
//
// A vector has 1,024 rows in four groups of 256; lane i of a warp owns rows 128 * (k / 4) + 4 * i + k % 4, k = 0 ..
// 7, of a group. Their offsets, W bits each, follow each other in W bytes, the lane string, which lies in planes of
// 16, 8, 4, 2 and 1 bytes a lane: every load is as wide as it can be and a warp's lanes read neighbouring bytes. A
// value is its offset plus a reference, of the vector or of the column, modulo the width of its type.

// Words of a lane string, the last one perhaps in part; at least one, so that arrays have a length.
template <int W> struct WcPackedWords { static const int COUNT = W == 0 ? 1 : (W + 3) / 4; };

// The 32-bit type that offsets and references of narrow types are added in, or the 64-bit one.
template <int BYTES> struct WcPackedSum { typedef uint32_t Type; };
template <> struct WcPackedSum<8> { typedef uint64_t Type; };

// BITS bits of a lane string from `bit` on, whose words Words gives by their number; constants once loops are unrolled.
template <int BITS, typename Words> WC_DEVICE uint32_t wc_packed_bits32(const Words& words, int bit) {
    if (BITS == 0) return 0;
    const int word = bit / 32, shift = bit % 32;
    uint32_t bits = words[word] >> shift;
    if (shift + BITS > 32) bits = (uint32_t)(((uint64_t)words[word + 1] << 32 | words[word]) >> shift);
    return BITS >= 32 ? bits : bits & ((1u << BITS % 32) - 1u);
}
template <int BITS, typename Words> WC_DEVICE uint64_t wc_packed_bits64(const Words& words, int bit) {
    const int word = bit / 32, shift = bit % 32;
    const uint64_t low = (uint64_t)words[word + 1] << 32 | words[word];
    uint64_t bits = low >> shift;
    if (shift + BITS > 64) bits |= (uint64_t)words[word + 2] << (64 - shift) % 64;
    return BITS >= 64 ? bits : bits & ((1ull << BITS % 64) - 1ull);
}
template <int BITS, typename Words> WC_DEVICE uint64_t wc_packed_bits(const Words& words, int bit) {
    return BITS <= 32 ? wc_packed_bits32<BITS>(words, bit) : wc_packed_bits64<BITS>(words, bit);
}

// Offset number k of a lane string.
template <int W, typename Words> WC_DEVICE uint32_t wc_packed_offset32(const Words& words, int k) {
    return wc_packed_bits32<W>(words, k * W);
}
template <int W, typename Words> WC_DEVICE uint64_t wc_packed_offset64(const Words& words, int k) {
    return wc_packed_bits<W>(words, k * W);
}

// Offset number k of a lane string at the top of a word, whatever lies below it; W from 1 to 31.
template <int W, typename Words> WC_DEVICE uint32_t wc_packed_top(const Words& words, int k) {
    const int bit = k * W, word = bit / 32, end = bit % 32 + W;
    if (end <= 32) return words[word] << (32 - end) % 32;
    return (uint32_t)(((uint64_t)words[word + 1] << 32 | words[word]) >> (end - 32) % 32);
}

// Values that a vector may hold, or the most there are where nothing bounds them. References of 64 bits lie between
// -2^62 and 2^62 where they are asked for.
struct WcBounds { int64_t low, high; };
template <int W, typename T> WC_DEVICE WcBounds wc_bounds(T reference) {
    return WcBounds{(int64_t)reference, (int64_t)reference + (int64_t)((1ull << W) - 1)};
}

// A lane's strings of SLOTS / 8 groups.
template <int W, int SLOTS> struct WcPacked {
    static const int WORDS = WcPackedWords<W>::COUNT;
    // The last byte of a string that ends with three is kept apart until it is used: to put it in its place would be to
    // wait for it.
    static const int PIECES = WORDS + ((W & 3) == 3);
    uint32_t words[SLOTS / 8][PIECES];

    // Loads the groups from `row` on, a multiple of 256. Values of single rows may be read AGAIN soon.
    template <bool AGAIN = false> WC_INLINE void load(const char* column, uint32_t row, uint32_t lane) {
        const char* group = column + (uint64_t)row / 8 * W;
#pragma unroll
        for (int g = 0; g < SLOTS / 8; ++g, group += 32 * W) load_group<AGAIN>(words[g], group, lane);
    }

    template <typename T, bool AGAIN> static WC_INLINE T load_piece(const char* group, uint32_t lane) {
        return AGAIN ? wc_load_again((const T*)group + lane) : wc_load_stream((const T*)group + lane);
    }

    template <bool AGAIN> static WC_INLINE void load_group(uint32_t* string, const char* group, uint32_t lane) {
        if (W == 0) string[0] = 0;
#pragma unroll
        for (int piece = 0; piece < W / 16; ++piece, group += 512) {
            const uint4 quad = load_piece<uint4, AGAIN>(group, lane);
            string[4 * piece] = quad.x;
            string[4 * piece + 1] = quad.y;
            string[4 * piece + 2] = quad.z;
            string[4 * piece + 3] = quad.w;
        }
        const int rest = W / 16 * 4;
        if (W & 8) {
            const uint2 pair = load_piece<uint2, AGAIN>(group, lane);
            string[rest] = pair.x;
            string[rest + 1] = pair.y;
            group += 256;
        }
        if (W & 4) {
            string[rest + (W & 8) / 4] = load_piece<uint32_t, AGAIN>(group, lane);
            group += 128;
        }
        if (W & 2) {
            string[WORDS - 1] = load_piece<uint16_t, AGAIN>(group, lane);
            group += 64;
        }
        if (W & 1) string[PIECES - 1] = load_piece<uint8_t, AGAIN>(group, lane);
    }

    // The words of the lane string of a group.
    struct String {
        const uint32_t* pieces;
        WC_INLINE uint32_t operator[](int at) const {
            return PIECES > WORDS && at == WORDS - 1 ? pieces[at] | pieces[PIECES - 1] << 16 : pieces[at];
        }
    };
    WC_INLINE String string(int group) const { return String{words[group]}; }

    // The offset in a slot, to be compared with constants shifted as far.
    WC_INLINE uint32_t top(int slot) const { return wc_packed_top<W>(string(slot / 8), slot % 8); }

    // The value in a slot.
    template <typename T> WC_INLINE T value(int slot, typename WcPackedSum<sizeof(T)>::Type reference) const {
        const String whole = string(slot / 8);
        if (sizeof(T) == 8) return (T)(reference + wc_packed_offset64<W>(whole, slot % 8));
        return (T)(reference + wc_packed_offset32<W>(whole, slot % 8));
    }
};

// Word `at` of a lane string in memory, with anything above the string's end. Where it lies is computed without
// branches, so that all words of a value are on their way together.
template <int W> WC_DEVICE uint32_t wc_packed_word(const char* group, uint32_t lane, uint32_t at) {
    const uint32_t quads = W / 16 * 4, pairs = quads + (W & 8 ? 2 : 0), singles = pairs + (W & 4 ? 1 : 0);
    uint32_t byte = 512 * (at / 4) + 16 * lane + 4 * (at % 4);
    if (W & 8) byte = at >= quads ? 128 * quads + 8 * lane + 4 * (at - quads) : byte;
    if (W & 4) byte = at >= pairs ? 128 * pairs + 4 * lane : byte;
    if (W % 4 == 0) return wc_load_cached((const uint32_t*)(group + byte));
    // The last word is a part of one that other lanes share, or of two.
    const bool is_last = at >= singles;
    const uint32_t twos = 128 * singles + 2 * lane, ones = 128 * singles + (W & 2 ? 64 : 0) + lane;
    const uint32_t part = W & 2 ? twos : ones;
    byte = is_last ? part & ~3u : byte;
    uint32_t word = wc_load_cached((const uint32_t*)(group + byte)) >> (is_last ? part % 4 * 8 : 0);
    if ((W & 3) == 3) {
        const uint32_t top = wc_load_cached((const uint8_t*)group + ones);
        word = is_last ? (word & 0xffffu) | top << 16 : word;
    }
    return word;
}

// BITS bits from `bit` on of a lane string in memory. STRADDLES tells whether they may lie in more words than they
// need.
template <int W, int BITS, bool STRADDLES>
WC_DEVICE uint64_t wc_packed_bits_of(const char* group, uint32_t lane, uint32_t bit) {
    if (BITS == 0) return 0;
    const uint32_t at = bit / 32, shift = bit % 32;
    // Words that the bits do not reach are the first one again: what comes of it is cut off.
    uint64_t bits = wc_packed_word<W>(group, lane, at);
    if (STRADDLES) bits |= (uint64_t)wc_packed_word<W>(group, lane, shift + BITS > 32 ? at + 1 : at) << 32;
    bits >>= shift;
    if (BITS > 32 && W < 64) {
        const bool reaches = shift + BITS > 64;
        const uint64_t third = wc_packed_word<W>(group, lane, reaches ? at + 2 : at);
        bits |= reaches ? third << (64 - shift) % 64 : 0;
    }
    return BITS < 64 ? bits & ((1ull << BITS % 64) - 1ull) : bits;
}

// The value of one row.
template <int W, typename T>
WC_DEVICE T wc_packed_get(const char* column, uint32_t row, typename WcPackedSum<sizeof(T)>::Type reference) {
    if (W == 0) return (T)reference;
    const char* group = column + (uint64_t)(row / 256) * (32 * W);
    const uint32_t lane = row % 128 / 4, slot = row % 256 / 128 * 4 + row % 4;
    const uint64_t offset = wc_packed_bits_of<W, W, (32 % (W == 0 ? 1 : W) != 0)>(group, lane, slot * W);
    return (T)(reference + (typename WcPackedSum<sizeof(T)>::Type)offset);
}
