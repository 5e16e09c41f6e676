// Columns in blocks (GPU-FOR, GPU-DFOR): vectors and single values. The layouts are drawn in
// crates/column/src/format/blocks.rs, gpu_for.rs and gpu_dfor.rs.
//
// A block has 128 rows, a step's half group: lane i owns rows 4 * i to 4 * i + 3 of it, all of miniblock i / 8.

// The blocks of a segment, whose sums are words of 4 or 8 bytes.
template <typename Sum> struct WcBlocks {
    static const int WORDS = sizeof(Sum) / 4;
    const uint32_t* starts;
    const uint32_t* data;

    WC_INLINE WcBlocks(const char* segment, uint32_t rows) : starts((const uint32_t*)segment + 4) {
        data = starts + 8 * ((rows + 1023) / 1024) + 1;
    }

    // A word of the data of 4 or 8 bytes, the low half first.
    WC_INLINE Sum word(uint32_t at) const {
        if (WORDS == 1) return wc_load_cached(data + at);
        return (Sum)((uint64_t)wc_load_cached(data + at + 1) << 32 | wc_load_cached(data + at));
    }

    // Where miniblock `number` of a block begins whose widths stand at word `at`; `width` is its own.
    static WC_INLINE uint32_t miniblock(uint32_t at, uint32_t number, uint32_t widths, uint32_t* width) {
        *width = widths >> 8 * number & 255u;
        // The widths below, in the upper bytes; the product adds them up in the highest one.
        const uint32_t below = number == 0 ? 0 : widths << 8 * (4 - number);
        return at + 1 + (below * 0x01010101u >> 24);
    }

    // Offset number `row` of a miniblock that begins at word `at`: three words may be read from anywhere in it.
    WC_INLINE Sum offset(uint32_t at, uint32_t width, uint32_t row) const {
        const uint32_t bit = row * width, shift = bit % 32;
        const uint32_t* const words = data + at + bit / 32;
        const uint64_t pair = (uint64_t)wc_load_cached(words + 1) << 32 | wc_load_cached(words);
        if (WORDS == 1) return (Sum)((uint32_t)(pair >> shift) & (uint32_t)((1ull << width) - 1));
        uint64_t bits = pair >> shift;
        if (shift + width > 64) bits |= (uint64_t)wc_load_cached(words + 2) << (64 - shift);
        return (Sum)(width == 64 ? bits : bits & ((1ull << width % 64) - 1));
    }

    // A lane's four offsets of the block that begins at word `head`, and the block's reference.
    WC_INLINE Sum quad(Sum (&offsets)[4], uint32_t head, uint32_t lane) const {
        uint32_t width;
        const uint32_t widths = wc_load_cached(data + head + WORDS);
        const uint32_t at = miniblock(head + WORDS, lane / 8, widths, &width);
        if (width <= 16) {
            // All four have at most 64 bits.
            const uint32_t bit = 4 * (lane % 8) * width, shift = bit % 32;
            const uint32_t* const words = data + at + bit / 32;
            uint64_t bits = ((uint64_t)wc_load_cached(words + 1) << 32 | wc_load_cached(words)) >> shift;
            if (shift + 4 * width > 64) bits |= (uint64_t)wc_load_cached(words + 2) << (64 - shift);
#pragma unroll
            for (int i = 0; i < 4; ++i) offsets[i] = (uint32_t)(bits >> i * width) & ((1u << width) - 1u);
        } else {
#pragma unroll
            for (int i = 0; i < 4; ++i) offsets[i] = offset(at, width, 4 * (lane % 8) + i);
        }
        return word(head);
    }

    // Where the blocks of a step begin.
    template <int SLOTS> struct Step { uint32_t heads[SLOTS / 4]; };

    template <int SLOTS> WC_INLINE void fetch(Step<SLOTS>& step, uint32_t base) const {
#pragma unroll
        for (int half = 0; half < SLOTS / 4; ++half) step.heads[half] = wc_load_cached(starts + base / 128 + half);
    }
};

// Values less the smallest of their block.
template <typename T> struct WcGpuFor {
    typedef typename WcPackedSum<sizeof(T)>::Type Sum;
    WcBlocks<Sum> blocks;

    WC_INLINE WcGpuFor(const char* segment, uint32_t rows) : blocks(segment, rows) {}

    template <int SLOTS> struct Step { typename WcBlocks<Sum>::template Step<SLOTS> blocks; };

    template <int SLOTS> WC_INLINE void fetch(Step<SLOTS>& step, uint32_t base, uint32_t) const {
        blocks.fetch(step.blocks, base);
    }

    template <int SLOTS>
    WC_INLINE void decode(T (&target)[SLOTS], const Step<SLOTS>& step, uint32_t, uint32_t lane) const {
#pragma unroll
        for (int half = 0; half < SLOTS / 4; ++half) {
            Sum offsets[4];
            const Sum reference = blocks.quad(offsets, step.blocks.heads[half], lane);
#pragma unroll
            for (int i = 0; i < 4; ++i) target[4 * half + i] = (T)(reference + offsets[i]);
        }
    }

    WC_INLINE T get(uint32_t row) const {
        const uint32_t head = wc_load_cached(blocks.starts + row / 128), widths_at = head + blocks.WORDS;
        uint32_t width;
        const uint32_t widths = wc_load_cached(blocks.data + widths_at);
        const uint32_t at = blocks.miniblock(widths_at, row % 128 / 32, widths, &width);
        return (T)(blocks.word(head) + blocks.offset(at, width, row % 32));
    }
};

// Differences within tiles of four blocks, 512 rows.
template <typename T> struct WcGpuDfor {
    typedef typename WcPackedSum<sizeof(T)>::Type Sum;
    WcBlocks<Sum> blocks;

    WC_INLINE WcGpuDfor(const char* segment, uint32_t rows) : blocks(segment, rows) {}

    // The value that stands before the first block of a tile, which begins at word `head`.
    WC_INLINE Sum first(uint32_t head) const { return blocks.word(head - blocks.WORDS); }

    template <int SLOTS> struct Step { typename WcBlocks<Sum>::template Step<SLOTS> blocks; };

    template <int SLOTS> WC_INLINE void fetch(Step<SLOTS>& step, uint32_t base, uint32_t) const {
        blocks.fetch(step.blocks, base);
    }

    template <int SLOTS>
    WC_INLINE void decode(T (&target)[SLOTS], const Step<SLOTS>& step, uint32_t base, uint32_t lane) const {
        const uint32_t* const heads = step.blocks.heads;
        const uint32_t* const tile = blocks.starts + base / 512 * 4;
        const bool second = SLOTS < 16 && base % 512 != 0;
        Sum before = first(second ? wc_load_cached(tile) : heads[0]);
        // A step of half a tile may be its second half: differences of the first one count too.
        if (second) {
            Sum sum = 0, offsets[4];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                sum += 4 * blocks.quad(offsets, wc_load_cached(tile + half), lane);
                sum += offsets[0] + offsets[1] + offsets[2] + offsets[3];
            }
            before += wc_warp_sum(sum);
        }
#pragma unroll
        for (int half = 0; half < SLOTS / 4; ++half) {
            Sum sums[4];
            const Sum reference = blocks.quad(sums, heads[half], lane);
            if (half != 0 && half % 4 == 0) before = first(heads[half]);
            sums[0] += reference;
#pragma unroll
            for (int i = 1; i < 4; ++i) sums[i] += sums[i - 1] + reference;
            const Sum end = wc_warp_inclusive_sum(sums[3]);
            const Sum here = before + end - sums[3];
#pragma unroll
            for (int i = 0; i < 4; ++i) target[4 * half + i] = (T)(here + sums[i]);
            before += __shfl_sync(WC_FULL_MASK, end, 31);
        }
    }

    // One lane adds up the differences of its tile up to the row.
    WC_INLINE T get(uint32_t row) const {
        Sum sum = first(wc_load_cached(blocks.starts + row / 512 * 4));
        for (uint32_t block = row / 512 * 4; block <= row / 128; ++block) {
            const uint32_t head = wc_load_cached(blocks.starts + block), widths_at = head + blocks.WORDS;
            const uint32_t widths = wc_load_cached(blocks.data + widths_at);
            const uint32_t count = block == row / 128 ? row % 128 + 1 : 128;
            sum += count * blocks.word(head);
            for (uint32_t number = 0; 32 * number < count; ++number) {
                uint32_t width;
                const uint32_t at = blocks.miniblock(widths_at, number, widths, &width);
                const uint32_t end = count - 32 * number < 32 ? count - 32 * number : 32;
                for (uint32_t i = 0; i < end && width != 0; ++i) sum += blocks.offset(at, width, i);
            }
        }
        return (T)sum;
    }
};
