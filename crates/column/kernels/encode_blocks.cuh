// GPU-FOR and GPU-DFOR segments; blocks.rs, gpu_for.rs and gpu_dfor.rs in crates/column/src/format draw them.

// A block of 128 rows: a row of each of its four miniblocks.
struct WcBlock {
    uint64_t offsets[4];
    uint32_t widths[4];
    uint64_t reference;  // a word
    uint64_t first;      // word of the block's first row
};

// A vector's blocks one after the other; the offsets of GPU-DFOR are those of differences to the row before.
struct WcBlocks {
    WcFilled filled;
    uint64_t last;  // word of the row before

    WC_INLINE WcBlocks(const WcSource& s, uint64_t vector, uint32_t lane) : filled(s, vector, lane), last(0) {}

    WC_INLINE WcBlock next(const WcSource& s, uint32_t number, uint32_t lane, bool differences) {
        const uint64_t mask = wc_word_mask(s), sign = 1ull << 63;
        WcBlock block;
        uint64_t least = ~0ull;
        block.first = 0;
#pragma unroll
        for (uint32_t part = 0; part < 4; ++part) {
            const uint64_t key = filled.next(s, 4 * number + part, lane);
            const uint64_t word = (key ^ s.flip) & mask;
            uint64_t order = key;
            block.offsets[part] = word;
            if (differences) {
                const uint64_t neighbour = __shfl_up_sync(WC_FULL_MASK, word, 1);
                if (part == 0) block.first = __shfl_sync(WC_FULL_MASK, word, 0);
                // A tile of four blocks begins with a difference of 0.
                const bool begins = part == 0 && number % 4 == 0;
                const uint64_t before = lane != 0 ? neighbour : begins ? word : last;
                last = __shfl_sync(WC_FULL_MASK, word, 31);
                const uint64_t difference = (word - before) & mask;
                block.offsets[part] = difference;
                order = (s.width == 8 ? difference : (uint64_t)(int64_t)(int32_t)(uint32_t)difference) ^ sign;
            }
            least = order < least ? order : least;
        }
        block.reference = (wc_warp_min(least) ^ (differences ? sign : s.flip)) & mask;
#pragma unroll
        for (uint32_t part = 0; part < 4; ++part) {
            block.offsets[part] = (block.offsets[part] - block.reference) & mask;
            block.widths[part] = wc_warp_bits(block.offsets[part]);
        }
        return block;
    }
};

// Purpose: words of each block, what stands before a tile left out. Outputs: counts u32 [8 * vectors]. Mapping: a warp
// a vector, grid-stride. Bytes: the values once.
struct BlockCountParams {
    WcSource source;
    uint64_t differences;
    uint32_t* counts;
};

WC_ENCODER(count_blocks, BlockCountParams, 3) {
    const uint32_t lane = wc_lane();
    for (uint64_t vector = share.first(); vector < wc_vectors(p.source); vector += share.warps()) {
        WcBlocks blocks(p.source, vector, lane);
        for (uint32_t number = 0; number < 8; ++number) {
            const WcBlock block = blocks.next(p.source, number, lane, p.differences != 0);
            const uint32_t words = block.widths[0] + block.widths[1] + block.widths[2] + block.widths[3];
            if (lane == 0) p.counts[8 * vector + number] = wc_word_words(p.source) + 1 + words;
        }
    }
}

// Writes a word of a segment as one or two of 32 bits.
WC_DEVICE void wc_put_word(const WcSource& s, uint32_t* to, uint64_t word) {
    to[0] = (uint32_t)word;
    if (s.width == 8) to[1] = (uint32_t)(word >> 32);
}

// Purpose: a GPU-FOR or GPU-DFOR segment. Inputs: sums u32 [8 * vectors + 1] over the counts of blocks. Outputs:
// header, starts, data, three zero words. Mapping: a warp a vector, grid-stride; shared memory 256 bytes a warp.
// Bytes: the values once, the segment once.
struct BlockParams {
    WcSource source;
    uint64_t differences;
    const uint32_t* sums;
    uint32_t* out;
};

WC_ENCODER(write_blocks, BlockParams, 3) {
    uint64_t* const slots = (uint64_t*)wc_shared() + 32 * wc_warp();
    const uint32_t lane = wc_lane(), word_words = wc_word_words(p.source);
    const uint64_t blocks = 8 * wc_vectors(p.source);
    // Words before tiles come on top of the sums.
    const uint32_t tile_words = p.differences != 0 ? word_words : 0;
    uint32_t* const starts = p.out + 4;
    uint32_t* const data = starts + blocks + 1;
    if (share.begins()) {
        const uint32_t end = p.sums[blocks] + tile_words * (uint32_t)(blocks / 4);
        p.out[0] = 128;
        p.out[1] = 4;
        p.out[2] = (uint32_t)p.source.rows;
        p.out[3] = 32 * word_words;
        starts[blocks] = end;
        for (uint32_t tail = 0; tail < 3; ++tail) data[end + tail] = 0;
    }
    for (uint64_t vector = share.first(); vector < blocks / 8; vector += share.warps()) {
        WcBlocks walk(p.source, vector, lane);
        for (uint32_t number = 0; number < 8; ++number) {
            const WcBlock block = walk.next(p.source, number, lane, p.differences != 0);
            const uint64_t position = 8 * vector + number;
            const uint32_t start = p.sums[position] + tile_words * (uint32_t)(position / 4 + 1);
            uint32_t at = start + word_words + 1;
            if (lane == 0) {
                starts[position] = start;
                if (tile_words != 0 && number % 4 == 0) wc_put_word(p.source, data + start - tile_words, block.first);
                wc_put_word(p.source, data + start, block.reference);
                data[at - 1] =
                    block.widths[0] | block.widths[1] << 8 | block.widths[2] << 16 | block.widths[3] << 24;
            }
#pragma unroll
            for (uint32_t part = 0; part < 4; ++part) {
                __syncwarp();
                slots[lane] = block.offsets[part];
                __syncwarp();
                const uint32_t width = block.widths[part];
                // A lane gathers the offsets that overlap its word.
                for (uint32_t word = lane; word < width; word += 32) {
                    const uint32_t bit = 32 * word;
                    uint64_t string = 0;
                    for (uint32_t slot = bit / width; slot < 32 && slot * width < bit + 32; ++slot) {
                        const uint32_t place = slot * width;
                        string |= place >= bit ? slots[slot] << (place - bit) : slots[slot] >> (bit - place);
                    }
                    data[at + word] = (uint32_t)string;
                }
                at += width;
            }
        }
    }
}
