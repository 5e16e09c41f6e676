// What all kernels that encode share: plain segments as they are read, filled vectors.
//
// Values of 1, 2, 4 or 8 bytes enter as keys: 64-bit integers in the order of the values, whatever their sign. A value
// is its key with the bits of `flip` turned; a word is the low 32 bits of that for values of up to 4 bytes, else all.
// A warp takes a vector of 1,024 rows in 32 steps of 32 rows: the rows of a step share one validity word.

// A plain segment. Values are padded to whole vectors; `validity` is null where all rows are valid; `flip` is 1 << 63
// for signed values, else 0.
struct WcSource {
    const void* values;
    const uint32_t* validity;
    uint64_t rows, width, flip;
};

WC_DEVICE uint64_t wc_vectors(const WcSource& s) { return (s.rows + 1023) / 1024; }
WC_DEVICE uint64_t wc_word_mask(const WcSource& s) { return s.width == 8 ? ~0ull : 0xffffffffull; }
// Words of 32 bits in a word.
WC_DEVICE uint32_t wc_word_words(const WcSource& s) { return s.width == 8 ? 2 : 1; }

// Segments of a launch: one of them alone would leave most of a device idle, and a launch takes as long as it.
#define WC_SEGMENTS 16

// Parameters of a launch: those of its segments.
template <typename P> struct WcBatch {
    P segments[WC_SEGMENTS];
    uint64_t count;
};

// A block's share of a launch: its segment, its number among the segment's blocks, and how many those are.
struct WcShare {
    uint32_t segment, block, blocks;

    WC_INLINE WcShare(uint64_t segments) {
        blocks = gridDim.x / (uint32_t)segments;
        segment = blockIdx.x / blocks;
        block = blockIdx.x % blocks;
    }

    // The first vector, or whatever a warp takes at a time, and how many warps the segment has.
    WC_INLINE uint64_t first() const { return (uint64_t)block * (blockDim.x / 32) + wc_warp(); }
    WC_INLINE uint64_t warps() const { return (uint64_t)blocks * (blockDim.x / 32); }
    // The same for a thread.
    WC_INLINE uint64_t first_thread() const { return (uint64_t)block * blockDim.x + threadIdx.x; }
    WC_INLINE uint64_t threads() const { return (uint64_t)blocks * blockDim.x; }
    WC_INLINE bool begins() const { return block == 0 && threadIdx.x == 0; }
};

// A kernel over a batch of segments: its body sees the parameters `p` of the block's segment and the block's `share`.
// The grid is a multiple of the number of segments; registers allow so many blocks a multiprocessor.
#define WC_ENCODER(name, Params, blocks) \
    WC_DEVICE void name##_segment(const Params p, const WcShare share); \
    WC_KERNEL(name, WcBatch<Params>, 256, blocks) { \
        const WcShare share(p.count); \
        name##_segment(p.segments[share.segment], share); \
    } \
    WC_DEVICE void name##_segment(const Params p, const WcShare share)

WC_DEVICE uint64_t wc_key(const WcSource& s, uint64_t row) {
    if (s.width == 4) {
        const uint32_t value = ((const uint32_t*)s.values)[row];
        return s.flip != 0 ? (uint64_t)(int64_t)(int32_t)value ^ s.flip : value;
    }
    if (s.width == 8) return ((const uint64_t*)s.values)[row] ^ s.flip;
    if (s.width == 2) {
        const uint16_t value = ((const uint16_t*)s.values)[row];
        return s.flip != 0 ? (uint64_t)(int64_t)(int16_t)value ^ s.flip : value;
    }
    const uint8_t value = ((const uint8_t*)s.values)[row];
    return s.flip != 0 ? (uint64_t)(int64_t)(int8_t)value ^ s.flip : value;
}

WC_DEVICE bool wc_valid(const WcSource& s, uint64_t row) {
    return row < s.rows && (s.validity == nullptr || (s.validity[row / 32] >> (row % 32) & 1u));
}

// Validity of the 32 rows from `row` on, a multiple of 32; padding is null.
WC_DEVICE uint32_t wc_valid_word(const WcSource& s, uint64_t row) {
    if (row >= s.rows) return 0;
    const uint32_t word = s.validity == nullptr ? WC_FULL_MASK : s.validity[row / 32];
    const uint64_t left = s.rows - row;
    return left >= 32 ? word : word & ((1u << left) - 1u);
}

// Whether all rows of a vector are valid.
WC_DEVICE bool wc_is_whole(const WcSource& s, uint64_t vector) {
    return s.validity == nullptr && (vector + 1) * 1024 <= s.rows;
}
// Whether they are values of 4 bytes besides: such are read 16 bytes a lane.
WC_DEVICE bool wc_is_quads(const WcSource& s, uint64_t vector) { return s.width == 4 && wc_is_whole(s, vector); }
// Rows 4 * lane to 4 * lane + 3 of the 128 rows from `row` on.
WC_DEVICE uint4 wc_quad(const WcSource& s, uint64_t row, uint32_t lane) {
    return ((const uint4*)((const uint32_t*)s.values + row))[lane];
}

// The low `width` bytes of a value at an index.
WC_DEVICE void wc_store(void* to, uint64_t index, uint64_t value, uint64_t width) {
    if (width == 4) ((uint32_t*)to)[index] = (uint32_t)value;
    else if (width == 8) ((uint64_t*)to)[index] = value;
    else if (width == 2) ((uint16_t*)to)[index] = (uint16_t)value;
    else ((uint8_t*)to)[index] = (uint8_t)value;
}

WC_DEVICE uint64_t wc_warp_min(uint64_t value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        const uint64_t other = __shfl_xor_sync(WC_FULL_MASK, value, distance);
        value = other < value ? other : value;
    }
    return value;
}
WC_DEVICE uint64_t wc_warp_max(uint64_t value) { return ~wc_warp_min(~value); }

// Bits up to the highest one set in any lane.
WC_DEVICE uint32_t wc_warp_bits(uint64_t value) {
    const uint32_t high = __reduce_or_sync(WC_FULL_MASK, (uint32_t)(value >> 32));
    const uint32_t low = __reduce_or_sync(WC_FULL_MASK, (uint32_t)value);
    return high != 0 ? 64 - __clz((int)high) : 32 - __clz((int)low);
}

// Lanes before one's own.
WC_DEVICE uint32_t wc_lanes_before(uint32_t lane) { return (1u << lane) - 1u; }

// The values of a vector, step after step. Null slots and padding repeat the valid value before them, those at the
// front the first valid one; all are zero where none is valid.
struct WcFilled {
    uint64_t first;  // row of the vector
    uint64_t carry;  // key of the row before the next step
    bool whole;      // no row is null
    bool any;        // some row is valid

    WC_INLINE WcFilled(const WcSource& s, uint64_t vector, uint32_t lane) {
        first = vector * 1024;
        whole = wc_is_whole(s, vector);
        any = true;
        carry = s.flip;
        if (whole) return;
        const uint32_t word = wc_valid_word(s, first + 32 * lane);
        const uint32_t found = __ballot_sync(WC_FULL_MASK, word != 0);
        any = found != 0;
        if (!any) return;
        const uint32_t step = __ffs((int)found) - 1;
        const uint32_t valid = __shfl_sync(WC_FULL_MASK, word, (int)step);
        carry = wc_key(s, first + 32 * step + (__ffs((int)valid) - 1));
    }

    // The key of this lane's row in the next step; `step` counts from 0.
    WC_INLINE uint64_t next(const WcSource& s, uint32_t step, uint32_t lane) {
        const uint64_t row = first + 32 * step;
        if (whole) return wc_key(s, row + lane);
        const uint32_t valid = wc_valid_word(s, row);
        const uint64_t key = valid >> lane & 1u ? wc_key(s, row + lane) : 0;
        const uint32_t before = valid & (wc_lanes_before(lane) | 1u << lane);
        const uint64_t known = __shfl_sync(WC_FULL_MASK, key, before == 0 ? 0 : 31 - __clz((int)before));
        const uint64_t filled = before == 0 ? carry : known;
        carry = __shfl_sync(WC_FULL_MASK, filled, 31);
        return filled;
    }
};

// Copies `count` starts to where they belong in a segment.
WC_DEVICE void wc_copy_starts(const WcShare& share, uint32_t* to, const uint32_t* starts, uint64_t count) {
    for (uint64_t at = share.first_thread(); at < count; at += share.threads()) to[at] = starts[at];
}
