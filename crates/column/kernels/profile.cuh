// What one pass over a column tells: profile.rs in crates/column/src/encoding counts the same on the CPU. Needs
// encode.cuh and encode_walk.cuh.

// Registers of the sketch of distinct values.
#define WC_REGISTERS 4096
// Widths of offsets: 0 to 64.
#define WC_WIDTHS 65
// Segments of a launch, and most vectors of one.
#define WC_PROFILE_SEGMENTS 64
#define WC_SEGMENT_VECTORS 1024

// Totals of a column, u64 each.
#define WC_TOTAL_VALID 0
#define WC_TOTAL_RUNS 1
#define WC_TOTAL_DESCENTS 2
#define WC_TOTAL_LOW 3
#define WC_TOTAL_HIGH 4
#define WC_TOTAL_FIRST 5
#define WC_TOTAL_LAST 6
#define WC_TOTAL_WIDTHS 7

// Takes a value's bits into the sketch: two rounds of multiplying and folding, then HyperLogLog. A register of rank r
// holds the r lowest bits: a value of a higher rank has none of them.
WC_DEVICE void wc_sketch(uint32_t* registers, uint64_t bits) {
    uint64_t mixed = (uint64_t)(uint32_t)bits * 0xbf58476d1ce4e5b9ull + (bits >> 32) * 0xd6e8feb86659fd93ull;
    mixed = (mixed ^ mixed >> 32) * 0x94d049bb133111ebull;
    const uint32_t high = (uint32_t)(mixed >> 32), low = (uint32_t)mixed ^ high;
    uint32_t* const entry = registers + high / (0x100000000ull / WC_REGISTERS);
    // Registers only grow: an old value costs an atomic more.
    if ((low & *entry) == 0) atomicMax(entry, (low | 1u << 31) ^ ((low | 1u << 31) - 1));
}

// What a lane has seen of vectors, and where its block counts.
struct WcProfile {
    uint32_t* widths;     // in shared memory, u32 [WC_WIDTHS][32]: a column for each lane, so that lanes do not meet
    uint32_t* registers;  // in shared memory, u32 [WC_REGISTERS]
    uint64_t valid, runs, descents;

    WC_INLINE void count_width(uint32_t width, uint32_t lane) { wc_add(widths + 32 * width + lane, 1u); }
};

// Smallest and largest key of a vector, those of its first and its last row.
struct WcEnds { uint64_t low, high, first, last; };

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

// A vector of values of 4 or 8 bytes, none of them null, four a lane at a time. Keys are words here: in the order of
// the values, with the bit of `flip` turned.
template <typename Word>
WC_DEVICE WcEnds wc_profile_whole(WcProfile& seen, const Word* values, Word flip, uint32_t lane) {
    values += 4 * lane;
    Word low = ~(Word)0, high = 0, first = 0, last = 0;
#pragma unroll 4
    for (uint32_t quad = 0; quad < 8; ++quad) {
        const WcQuad<Word> four(values + 128 * quad);
        // The key before the lane's: the first lane's is the last lane's of the quad before.
        const Word own = four.at[3] ^ flip;
        Word before = __shfl_sync(WC_FULL_MASK, lane == 31 ? last : own, (int)((lane + 31) % 32));
        const bool is_first = quad == 0 && lane == 0;
        if (is_first) first = four.at[0] ^ flip;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const Word key = four.at[i] ^ flip;
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
    low = (Word)wc_warp_min(low);
    high = (Word)wc_warp_max(high);
#pragma unroll 4
    for (uint32_t quad = 0; quad < 8; ++quad) {
        const WcQuad<Word> four(values + 128 * quad);
#pragma unroll
        for (int i = 0; i < 4; ++i) seen.count_width(WcQuad<Word>::bits((four.at[i] ^ flip) - low), lane);
    }
    seen.valid += 32;
    return WcEnds{low, high, first, last};
}

// Any other vector.
WC_DEVICE WcEnds wc_profile_any(WcProfile& seen, const WcSource& source, uint64_t vector, uint32_t lane) {
    const uint64_t mask = wc_word_mask(source);
    const uint64_t value_mask = source.width == 8 ? ~0ull : (1ull << (8 * source.width)) - 1;
    WcRuns walk(source, vector, lane);
    WcEnds ends{~0ull, 0, 0, 0};
#pragma unroll 2
    for (uint32_t step = 0; step < 32; ++step) {
        uint64_t key;
        const bool begins = walk.next(source, step, lane, key) >> lane & 1u;
        seen.runs += begins;
        if (!walk.filled.any) continue;
        ends.low = key < ends.low ? key : ends.low;
        ends.high = key > ends.high ? key : ends.high;
        if (step == 0) ends.first = key;
        ends.last = key;
        seen.descents += key < walk.before;
        if (begins) wc_sketch(seen.registers, (key ^ source.flip) & value_mask);
    }
    ends.low = wc_warp_min(ends.low);
    ends.high = wc_warp_max(ends.high);
    seen.valid += __popc(wc_valid_word(source, vector * 1024 + 32 * lane));
#pragma unroll 2
    for (uint32_t step = 0; step < 32; ++step) {
        const uint64_t row = vector * 1024 + 32 * step + lane;
        const uint64_t offset = wc_valid(source, row) ? (wc_key(source, row) - ends.low) & mask : 0;
        seen.count_width(WcQuad<uint64_t>::bits(offset), lane);
    }
    return ends;
}

// Purpose: profile of some segments, added to the column's. Inputs: segments, and of each the number that its first
// vector has in the column, all ones behind the last; `end`, the number behind the last vector. Outputs: bounds u64
// [vectors][2], smallest and largest key, all ones and 0 without a valid row; ends u64 [vectors][2], keys of the first
// and the last valid row; totals; registers u32 [WC_REGISTERS]. Mapping: a warp a vector, grid-stride; shared memory
// WC_WIDTHS * 128 + WC_REGISTERS * 4 bytes. Bytes: the values once, and once more from the caches.
struct ProfileParams {
    WcSource sources[WC_PROFILE_SEGMENTS];
    uint64_t firsts[WC_PROFILE_SEGMENTS];
    uint64_t end;
    uint64_t* bounds;
    uint64_t* ends;
    uint64_t* totals;
    uint32_t* registers;
};

WC_KERNEL(profile_vectors, ProfileParams, 256, 4) {
    uint32_t* const widths = (uint32_t*)wc_shared();
    WcProfile seen{widths, widths + WC_WIDTHS * 32, 0, 0, 0};
    const uint32_t lane = wc_lane();
    for (uint32_t at = threadIdx.x; at < WC_WIDTHS * 32 + WC_REGISTERS; at += blockDim.x) widths[at] = 0;
    __syncthreads();
    const WcShare share(1);
    for (uint64_t number = p.firsts[0] + share.first(); number < p.end; number += share.warps()) {
        // No segment has more vectors than that.
        uint32_t segment = (uint32_t)((number - p.firsts[0]) / WC_SEGMENT_VECTORS);
        while (segment + 1 < WC_PROFILE_SEGMENTS && p.firsts[segment + 1] <= number) ++segment;
        const WcSource source = p.sources[segment];
        const uint64_t vector = number - p.firsts[segment];
        const bool whole = wc_is_whole(source, vector);
        WcEnds ends;
        if (whole && source.width == 4) {
            const uint32_t flip = (uint32_t)(source.flip >> 32);
            ends = wc_profile_whole<uint32_t>(seen, (const uint32_t*)source.values + 1024 * vector, flip, lane);
            // Keys of 64 bits: values with their sign.
            const uint64_t above = source.flip != 0 ? 0x7fffffff80000000ull : 0;
            ends.low += above, ends.high += above, ends.first += above, ends.last += above;
        } else if (whole && source.width == 8) {
            ends = wc_profile_whole<uint64_t>(seen, (const uint64_t*)source.values + 1024 * vector, source.flip, lane);
        } else {
            ends = wc_profile_any(seen, source, vector, lane);
        }
        if (lane == 0) {
            p.bounds[2 * number] = ends.low;
            p.bounds[2 * number + 1] = ends.high;
            p.ends[2 * number] = ends.first;
        }
        if (lane == 31) p.ends[2 * number + 1] = ends.last;
    }
    const uint64_t valid = wc_warp_sum(seen.valid), runs = wc_warp_sum(seen.runs);
    const uint64_t descents = wc_warp_sum(seen.descents);
    if (lane == 0) {
        wc_add(p.totals + WC_TOTAL_VALID, valid);
        wc_add(p.totals + WC_TOTAL_RUNS, runs);
        wc_add(p.totals + WC_TOTAL_DESCENTS, descents);
    }
    __syncthreads();
    for (uint32_t width = wc_warp(); width < WC_WIDTHS; width += blockDim.x / 32) {
        const uint32_t count = wc_warp_sum(widths[32 * width + lane]);
        if (lane == 0 && count != 0) wc_add(p.totals + WC_TOTAL_WIDTHS + width, (uint64_t)count);
    }
    for (uint32_t at = threadIdx.x; at < WC_REGISTERS; at += blockDim.x) {
        const uint32_t own = seen.registers[at];
        if (own > p.registers[at]) atomicMax(p.registers + at, own);
    }
}

// Purpose: what vectors tell together: bounds of the column, its first and last vector with a valid row, descents from
// one vector to the next. Inputs: bounds and ends of all vectors. Outputs: totals. Mapping: a thread a vector,
// grid-stride by warps. Bytes: 32 a vector.
struct ProfileColumnParams {
    const uint64_t* bounds;
    const uint64_t* ends;
    uint64_t vectors;
    uint64_t* totals;
};

WC_KERNEL(profile_column, ProfileColumnParams, 256, 1) {
    uint64_t low = ~0ull, high = 0, first = ~0ull, last = 0, descents = 0;
    const WcShare share(1);
    for (uint64_t vector = share.first_thread(); vector < p.vectors; vector += share.threads()) {
        const uint64_t vector_low = p.bounds[2 * vector], vector_high = p.bounds[2 * vector + 1];
        if (vector_low > vector_high) continue;
        low = vector_low < low ? vector_low : low;
        high = vector_high > high ? vector_high : high;
        first = vector < first ? vector : first;
        last = vector > last ? vector : last;
        uint64_t before = vector;
        while (before > 0 && p.bounds[2 * before - 2] > p.bounds[2 * before - 1]) --before;
        descents += before > 0 && p.ends[2 * vector] < p.ends[2 * before - 1];
    }
    low = wc_warp_min(low);
    high = wc_warp_max(high);
    first = wc_warp_min(first);
    last = wc_warp_max(last);
    descents = wc_warp_sum(descents);
    if (wc_lane() != 0 || low > high) return;
    wc_min(p.totals + WC_TOTAL_LOW, low);
    wc_max(p.totals + WC_TOTAL_HIGH, high);
    wc_min(p.totals + WC_TOTAL_FIRST, first);
    wc_max(p.totals + WC_TOTAL_LAST, last);
    wc_add(p.totals + WC_TOTAL_DESCENTS, descents);
}
