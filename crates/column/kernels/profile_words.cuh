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

// A vector of which the first `rows` rows are there, four values a lane at a time. Keys are words here: in the order of
// the values, with the bit of `flip` turned.
WC_DEVICE WcEnds wc_profile_words(
    WcProfile& seen, const WC_PROFILE_WORD* values, WC_PROFILE_WORD flip, uint32_t rows, uint32_t lane
) {
    typedef WC_PROFILE_WORD Word;
    const Word at_end = values[rows - 1] ^ flip;
    values += 4 * lane;
    Word low = ~(Word)0, high = 0, first = 0, last = 0;
#pragma unroll 4
    for (uint32_t quad = 0; quad < 8; ++quad) {
        const WcQuad<Word> four(values + 128 * quad);
        // Rows that are there, from the lane's first one on. Before each of them all lanes have theirs.
        const int left = (int)rows - (int)(128 * quad + 4 * lane);
        // The key before the lane's: the first lane's is the last lane's of the quad before.
        const Word own = four.at[3] ^ flip;
        Word before = __shfl_sync(WC_FULL_MASK, lane == 31 ? last : own, (int)((lane + 31) % 32));
        const bool is_first = quad == 0 && lane == 0;
        if (is_first) first = four.at[0] ^ flip;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const Word key = i < left ? four.at[i] ^ flip : before;
            low = i < left && key < low ? key : low;
            high = i < left && key > high ? key : high;
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
    low = (Word)wc_warp_min(low);
    high = (Word)wc_warp_max(high);
#pragma unroll 4
    for (uint32_t quad = 0; quad < 8; ++quad) {
        const WcQuad<Word> four(values + 128 * quad);
        const int left = (int)rows - (int)(128 * quad + 4 * lane);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            seen.count_width(WcQuad<Word>::bits(i < left ? (four.at[i] ^ flip) - low : 0), lane);
        }
    }
    seen.valid += (rows + 31 - lane) / 32;
    return WcEnds{low, high, first, at_end};
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
