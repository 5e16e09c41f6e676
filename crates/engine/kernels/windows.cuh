// What kernels of windows call.

// The number of the part, from 1, of a row of so many rows in so many parts: the first parts have a row more than the
// others where these do not divide the rows.
WC_DEVICE uint64_t wc_tile(uint64_t row, uint64_t rows, uint64_t parts) {
    const uint64_t each = rows / parts, longer = rows % parts, before = longer * (each + 1);
    return row < before ? row / (each + 1) + 1 : longer + (row - before) / each + 1;
}

// A place no lower than the first and no higher than the last one.
WC_DEVICE int64_t wc_between(int64_t place, int64_t first, int64_t last) {
    return place < first ? first : place > last ? last : place;
}

// The largest of the leaves of a segment tree from one on to before another one; zero for none.
WC_DEVICE uint64_t wc_largest(const uint64_t* nodes, uint64_t leaves, int64_t low, int64_t high) {
    uint64_t largest = 0;
    uint64_t left = (uint64_t)low + leaves, right = (uint64_t)high + leaves;
    for (; left < right; left >>= 1, right >>= 1) {
        if (left & 1) {
            const uint64_t node = nodes[left++];
            largest = node > largest ? node : largest;
        }
        if (right & 1) {
            const uint64_t node = nodes[--right];
            largest = node > largest ? node : largest;
        }
    }
    return largest;
}

// The first place from one on to before an end at which a test holds, which holds from some place on; the end if it
// holds at none. All lanes of a warp come here together: they test 32 places at once, whose distance grows until one
// of them is behind the first, and shrinks between its neighbours.
template <typename Test> WC_DEVICE uint64_t wc_search_from(uint64_t place, uint64_t end, Test is_behind) {
    for (uint64_t distance = 1;;) {
        const uint64_t probe = place + (wc_lane() + 1) * distance - 1;
        const uint32_t found = __ballot_sync(WC_FULL_MASK, probe >= end || is_behind(probe));
        if (found == 0) {
            place += 32 * distance;
            distance *= 32;
            continue;
        }
        place += (__ffs(found) - 1) * distance;
        if (distance == 1) return place < end ? place : end;
        distance /= 32;
    }
}

// Rows of a span: adjacent rows of a warp, whole tiles of at most 128 rows. Few rows are shared out among all warps.
WC_DEVICE uint64_t wc_window_span(uint64_t rows, uint64_t warps) {
    const uint64_t each = (rows + warps - 1) / warps;
    return each < 4096 ? (each + 127) / 128 * 128 : 4096;
}

// The runs of rows that agree, in sorted rows: for each row of a tile the first row of its run, and the row behind its
// last one, below 2^32. A warp goes through the tiles of a span; a lane has every 32nd row of a tile. Bytes: what tells
// whether neighbours agree, once. A run that begins before the span or ends behind the tile is searched, its end once.
template <uint32_t SLOTS> struct WcRuns {
    uint32_t firsts[SLOTS], ends[SLOTS];
    uint64_t first = 0;  // of the run of the row before the tile; at first of the tile's first row
    uint64_t end = 0;    // of the run of the last row of a former tile

    template <typename Same> WC_INLINE void begin(uint64_t row, Same same) {
        first = row - wc_search_from(0, row, [&](uint64_t before) { return !same(row - 1 - before, row); });
    }

    // Goes on to the tile of this row. What is not asked for is not computed.
    template <bool ASKS_FIRST, bool ASKS_END, typename Same>
    WC_INLINE void tile(uint64_t row, uint64_t rows, Same same) {
        uint32_t heads[SLOTS];
#pragma unroll
        for (uint32_t slot = 0; slot < SLOTS; ++slot) {
            const uint64_t i = row + 32 * slot + wc_lane();
            heads[slot] = __ballot_sync(WC_FULL_MASK, i == 0 || i >= rows || !same(i - 1, i));
        }
        if constexpr (ASKS_FIRST) {
            const uint32_t up_to_lane = WC_FULL_MASK >> (31 - wc_lane());
#pragma unroll
            for (uint32_t slot = 0; slot < SLOTS; ++slot) {
                const uint64_t last = row + 32 * slot + 31;
                const uint32_t before = heads[slot] & up_to_lane;
                firsts[slot] = (uint32_t)(before != 0 ? last - __clz(before) : first);
                if (heads[slot] != 0) first = last - __clz(heads[slot]);
            }
        }
        if constexpr (ASKS_END) {
            const uint64_t behind = row + 32 * SLOTS;
            if (end < behind) end = wc_search_from(behind, rows, [&](uint64_t at) { return !same(behind - 1, at); });
            const uint32_t behind_lane = ~(WC_FULL_MASK >> (31 - wc_lane()));
            uint64_t next = end;
#pragma unroll
            for (uint32_t slot = SLOTS; slot-- > 0;) {
                const uint64_t begin = row + 32 * slot;
                const uint32_t above = heads[slot] & behind_lane;
                ends[slot] = (uint32_t)(above != 0 ? begin + __ffs(above) - 1 : next);
                if (heads[slot] != 0) next = begin + __ffs(heads[slot]) - 1;
            }
        }
    }
};
