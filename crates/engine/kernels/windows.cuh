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
