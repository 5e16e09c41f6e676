// Tiles: the items that a block works on at once, and how they lie in its threads.
//
// A tile has blockDim.x / 32 parts, one a warp; a part has ROWS rows of 32 * VEC items. Item k of a lane's row j lies
// at part + j * 32 * VEC + lane * VEC + k, so that a warp loads a row by one instruction of 16 bytes a lane where an
// item has 16 / VEC bytes, and the order of items is that of (warp, row, lane, k).
#pragma once

// Words that are loaded and stored by one instruction.
template <int BYTES> struct WcWord;
template <> struct WcWord<1> { typedef uint8_t Type; };
template <> struct WcWord<2> { typedef unsigned short Type; };
template <> struct WcWord<4> { typedef uint32_t Type; };
template <> struct WcWord<8> { typedef uint2 Type; };
template <> struct WcWord<16> { typedef int4 Type; };

// COUNT items that follow each other, at an address aligned to 16 bytes or to their size where that is less.
template <int COUNT, typename T> WC_DEVICE void wc_load_items(T (&items)[COUNT], const T* address) {
    const int BYTES = COUNT * (int)sizeof(T), STEP = BYTES < 16 ? BYTES : 16;
    typedef typename WcWord<STEP>::Type Word;
    Word words[BYTES / STEP];
#pragma unroll
    for (int i = 0; i < BYTES / STEP; ++i) words[i] = wc_load_stream((const Word*)address + i);
    memcpy(items, words, BYTES);
}
template <int COUNT, typename T> WC_DEVICE void wc_store_items(T* address, const T (&items)[COUNT]) {
    const int BYTES = COUNT * (int)sizeof(T), STEP = BYTES < 16 ? BYTES : 16;
    typedef typename WcWord<STEP>::Type Word;
    Word words[BYTES / STEP];
    memcpy(words, items, BYTES);
#pragma unroll
    for (int i = 0; i < BYTES / STEP; ++i) wc_store_stream((Word*)address + i, words[i]);
}

// Loads a warp's part of a tile, which begins at item `from`; items at `end` and behind become `missing`. Without
// `aligned` (the first item lies at a multiple of a lane's bytes of a row, 16 at most) items are loaded one by one.
template <int VEC, int ROWS, typename T>
WC_DEVICE void wc_load_part(T (&items)[ROWS][VEC], const T* in, uint64_t from, uint64_t end, bool aligned, T missing) {
    const uint64_t first = from + wc_lane() * VEC;
    if (aligned && from + 32 * VEC * ROWS <= end) {
#pragma unroll
        for (int j = 0; j < ROWS; ++j) wc_load_items<VEC>(items[j], in + first + j * 32 * VEC);
    } else {
#pragma unroll
        for (int j = 0; j < ROWS; ++j) {
#pragma unroll
            for (int k = 0; k < VEC; ++k) {
                const uint64_t at = first + j * 32 * VEC + k;
                T one[1] = {missing};
                if (at < end) wc_load_items<1>(one, in + at);
                items[j][k] = one[0];
            }
        }
    }
}

// Asks for a warp's part of a later tile, which begins at item `from`, to be brought to the L2 cache: the multiples of
// 16 bytes that lie in it.
template <int ITEMS, typename T>
WC_DEVICE void wc_prefetch_part(const T* in, uint64_t from, uint64_t end, bool aligned) {
    if (!aligned || wc_lane() != 0 || from + ITEMS > end) return;
    const uint64_t at = (uint64_t)(in + from), first = (at + 15) & ~15ull;
    const uint32_t bytes = (ITEMS * (uint32_t)sizeof(T) - (uint32_t)(first - at)) & ~15u;
    if (bytes != 0) wc_prefetch((const char*)first, bytes);
}

// Stores a row of a part, whose first item of this lane is `at`.
template <int VEC, typename T>
WC_DEVICE void wc_store_row(T* out, uint64_t at, uint64_t end, bool aligned, const T (&items)[VEC]) {
    if (aligned && at + VEC <= end) {
        wc_store_items<VEC>(out + at, items);
    } else {
#pragma unroll
        for (int k = 0; k < VEC; ++k) {
            const T one[1] = {items[k]};
            if (at + k < end) wc_store_items<1>(out + at + k, one);
        }
    }
}

// Sum over the lanes up to one's own.
WC_DEVICE uint32_t wc_lanes_sum(uint32_t value) { return wc_warp_inclusive_sum(value); }
template <typename S> WC_DEVICE S wc_lanes_sum(S value) {
#pragma unroll
    for (uint32_t step = 1; step < 32; step *= 2) {
        const S other = __shfl_up_sync(WC_FULL_MASK, value, step);
        if (wc_lane() >= step) value += other;
    }
    return value;
}
// The value of the lane below; `first` in lane 0.
template <typename S> WC_DEVICE S wc_from_below(S value, S first) {
    const S other = __shfl_up_sync(WC_FULL_MASK, value, 1);
    return wc_lane() == 0 ? first : other;
}

// Ranks of marked items in a warp's part. Bit j * VEC + k of `marks` is item k of row j. Counts of several rows are
// summed over lanes in one word: 8 bits hold those of a row of 128 items, 16 bits those of a row of 512.
template <int VEC, int ROWS> struct WcRanks {
    static const int BITS = VEC <= 4 ? 8 : 16, ROWS_A_WORD = 32 / BITS;
    uint32_t before[ROWS];  // marked items of the part before the lane's first of this row
    uint32_t total;         // marked items of the part

    static WC_INLINE uint32_t row(uint32_t marks, int j) {
        return marks >> (j * VEC) & (uint32_t)((1ull << VEC) - 1);
    }

    WC_INLINE explicit WcRanks(uint32_t marks) {
        static_assert(VEC * ROWS <= 32 && VEC <= 16, "marks of a lane fill one word");
        total = 0;
#pragma unroll
        for (int first = 0; first < ROWS; first += ROWS_A_WORD) {
            uint32_t own = 0;
#pragma unroll
            for (int i = 0; i < ROWS_A_WORD; ++i) {
                if (first + i < ROWS) own |= (uint32_t)__popc(row(marks, first + i)) << (i * BITS);
            }
            const uint32_t up_to = wc_warp_inclusive_sum(own), all = __shfl_sync(WC_FULL_MASK, up_to, 31);
#pragma unroll
            for (int i = 0; i < ROWS_A_WORD; ++i) {
                if (first + i < ROWS) {
                    before[first + i] = total + ((up_to - own) >> (i * BITS) & ((1u << BITS) - 1));
                    total += all >> (i * BITS) & ((1u << BITS) - 1);
                }
            }
        }
    }
};

// Sums over the lanes up to one's own from the last marked lane on, that one's own value counting whole; of several
// rows, a word of marks each, whose steps are on their way together.
template <int ROWS, typename T> WC_DEVICE void wc_lanes_sums_since(T (&sums)[ROWS], const uint32_t (&marks)[ROWS]) {
    const uint32_t lane = wc_lane();
    uint32_t reach[ROWS];
#pragma unroll
    for (int j = 0; j < ROWS; ++j) {
        const uint32_t up_to = marks[j] & (0xffffffffu >> (31 - lane));
        reach[j] = up_to == 0 ? lane : lane - (31 - (uint32_t)__clz((int)up_to));
    }
#pragma unroll
    for (uint32_t step = 1; step < 32; step *= 2) {
#pragma unroll
        for (int j = 0; j < ROWS; ++j) {
            const T other = __shfl_up_sync(WC_FULL_MASK, sums[j], step);
            if (step <= reach[j]) sums[j] += other;
        }
    }
}
template <typename T> WC_DEVICE T wc_lanes_sum_since(T sum, uint32_t marks) {
    T sums[1] = {sum};
    const uint32_t rows[1] = {marks};
    wc_lanes_sums_since(sums, rows);
    return sums[0];
}
