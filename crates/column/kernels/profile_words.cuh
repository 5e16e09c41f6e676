// The pass over segments without NULLs (see profile.cuh), of values of 4 or 8 bytes: those of WC_PROFILE_WORD.
// Needs profile.cuh.

// Four values side by side.
template <typename Word> struct WcQuad;
template <> struct WcQuad<uint32_t> {
    uint32_t at[4];
    WC_INLINE WcQuad(const uint32_t* values) {
        const uint4 all = *(const uint4*)values;
        at[0] = all.x, at[1] = all.y, at[2] = all.z, at[3] = all.w;
    }
    static WC_INLINE uint32_t bits(uint32_t offset) { return 32 - __clz((int)offset); }
};
template <> struct WcQuad<uint64_t> {
    uint64_t at[4];
    WC_INLINE WcQuad(const uint64_t* values) {
        const uint4 front = ((const uint4*)values)[0], back = ((const uint4*)values)[1];
        at[0] = (uint64_t)front.y << 32 | front.x, at[1] = (uint64_t)front.w << 32 | front.z;
        at[2] = (uint64_t)back.y << 32 | back.x, at[3] = (uint64_t)back.w << 32 | back.z;
    }
    static WC_INLINE uint32_t bits(uint64_t offset) { return 64 - __clzll((long long)offset); }
};

// Keys so far, in words: in the order of the values, with the bit of `flip` turned.
struct WcKeys {
    WC_PROFILE_WORD low, high, first, last;  // `last` of the lane's quad before

    // Four rows a lane, of which the first `left` are there. All lanes before one with a row have all theirs.
    WC_INLINE void take(
        WcProfile& seen, const WcQuad<WC_PROFILE_WORD>& four, WC_PROFILE_WORD flip, bool begins, uint32_t lane, int left
    ) {
        // The key before the lane's: the first lane's is the last lane's of the quad before.
        const WC_PROFILE_WORD own = four.at[3] ^ flip;
        WC_PROFILE_WORD before = __shfl_sync(WC_FULL_MASK, lane == 31 ? last : own, (int)((lane + 31) % 32));
        const bool is_first = begins && lane == 0;
        if (is_first) first = four.at[0] ^ flip;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const WC_PROFILE_WORD key = four.at[i] ^ flip;
            if (i >= left) break;
            low = key < low ? key : low;
            high = key > high ? key : high;
            // Before the first row there is 0, which no key is below.
            seen.descents += key < before;
            if (key != before || (is_first && i == 0)) {
                seen.runs += 1;
                wc_sketch(seen.registers, four.at[i]);
            }
            before = key;
        }
        last = own;
    }
};

// A vector of which the first `rows` rows are there, four values a lane at a time.
WC_DEVICE WcEnds wc_profile_words(
    WcProfile& seen, const WC_PROFILE_WORD* values, WC_PROFILE_WORD flip, uint32_t rows, uint32_t lane
) {
    typedef WC_PROFILE_WORD Word;
    const Word at_end = values[rows - 1] ^ flip;
    values += 4 * lane;
    // Quads of which all lanes have all rows, and the lane's rows of the one behind.
    const uint32_t whole = rows / 128;
    const int left = (int)(rows % 128) - 4 * (int)lane;
    WcKeys keys{~(Word)0, 0, 0, 0};
#pragma unroll 1
    for (uint32_t half = 0; half < 2; ++half) {
        const WcQuad<Word> fours[4] = {values + 512 * half, values + 512 * half + 128, values + 512 * half + 256,
                                       values + 512 * half + 384};
#pragma unroll
        for (uint32_t quad = 0; quad < 4; ++quad) {
            if (4 * half + quad < whole) keys.take(seen, fours[quad], flip, half + quad == 0, lane, 4);
        }
    }
    if (rows % 128 != 0) keys.take(seen, values + 128 * whole, flip, whole == 0, lane, left);
    const Word low = (Word)wc_warp_min(keys.low), high = (Word)wc_warp_max(keys.high);
#pragma unroll 4
    for (uint32_t quad = 0; quad < 8; ++quad) {
        const WcQuad<Word> four(values + 128 * quad);
        const int there = quad < whole ? 4 : quad == whole ? left : 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            seen.count_width(WcQuad<Word>::bits(i < there ? (four.at[i] ^ flip) - low : 0), lane);
        }
    }
    seen.valid += (rows + 31 - lane) / 32;
    return WcEnds{low, high, keys.first, at_end};
}

// Purpose: the pass. Parameters, outputs and mapping: profile.cuh. Bytes: the values once, and once more from the
// caches.
WC_KERNEL(profile_words, ProfileParams, 256, 4) {
    typedef WC_PROFILE_WORD Word;
    wc_profile_vectors(p, [](WcProfile& seen, const WcSource& source, uint64_t vector, uint32_t lane) {
        const uint64_t left = source.rows - 1024 * vector;
        const uint32_t rows = left < 1024 ? (uint32_t)left : 1024;
        const Word flip = (Word)(source.flip >> (64 - 8 * sizeof(Word)));
        WcEnds ends = wc_profile_words(seen, (const Word*)source.values + 1024 * vector, flip, rows, lane);
        // Keys of 64 bits: values with their sign.
        const uint64_t above = sizeof(Word) == 4 && source.flip != 0 ? 0x7fffffff80000000ull : 0;
        ends.low += above, ends.high += above, ends.first += above, ends.last += above;
        return ends;
    });
}
