// A sparse array in a storage scheme: keys within blocks, pointers from blocks to cells.
//
// Text in front defines WC_KEY (uint32_t, uint64_t or unsigned __int128), WC_POINTERS and WC_VALUE (uint64_t, which may
// wrap, or double). `split` dimensions lead; a block is one tuple of them and has its row-major number. The other
// dimensions are the bit fields of a key, the last one lowest. Keys ascend within a block. WC_POINTERS is
//   0  none: there is one block (BESS);
//   1  `starts` has an entry for every block and one for the end (xCRS, hybrid);
//   2  `starts` has an entry for every filled block and one for the end; the rank of a block is that of its bit in
//      `words`, which are of the WAH code with one group of 31 blocks each; `counts` has the ones in front of a word
//      (BxCRS).
// Source: Wang, Sparse Array Representations and Some Selected Array Operations on GPUs, chapters 2 and 3.

#define WC_DIMENSIONS_MAX 32

struct WcArray {
    const WC_KEY* keys;
    const uint64_t* values;  // bits of the values
    const uint64_t* starts;
    const uint32_t* words;
    const uint64_t* counts;
    uint64_t cells, blocks, filled, dimensions, split;
    uint64_t sizes[WC_DIMENSIONS_MAX];
    uint64_t shifts[WC_DIMENSIONS_MAX], bits[WC_DIMENSIONS_MAX];  // of the dimensions from `split` on
};

WC_DEVICE uint64_t wc_first() { return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; }
WC_DEVICE uint64_t wc_stride() { return (uint64_t)gridDim.x * blockDim.x; }

// The key shifted right; a shift by all of its bits gives 0.
WC_DEVICE WC_KEY wc_shifted(WC_KEY key, uint64_t shift) {
    return shift >= sizeof(WC_KEY) * 8 ? (WC_KEY)0 : (WC_KEY)(key >> (uint32_t)shift);
}

// Coordinate of a dimension from `split` on.
WC_DEVICE uint32_t wc_field(const WcArray& array, WC_KEY key, uint32_t dimension) {
    const uint32_t mask = (uint32_t)((1ull << array.bits[dimension]) - 1);
    return (uint32_t)wc_shifted(key, array.shifts[dimension]) & mask;
}

// The bits of a coordinate of such a dimension.
WC_DEVICE WC_KEY wc_placed(const WcArray& array, uint32_t coordinate, uint32_t dimension) {
    return array.bits[dimension] == 0 ? (WC_KEY)0 : (WC_KEY)((WC_KEY)coordinate << (uint32_t)array.shifts[dimension]);
}

// Quotient by a size; the remainder is written. Divisions of 32 bits take a fifth of the instructions.
WC_DEVICE uint64_t wc_divided(uint64_t number, uint64_t size, uint32_t* rest) {
    if (((number | size) >> 32) == 0) {
        *rest = (uint32_t)number % (uint32_t)size;
        return (uint32_t)number / (uint32_t)size;
    }
    *rest = (uint32_t)(number % size);
    return number / size;
}

// Number of the entries in front of the first that is above `bound`; entries ascend.
template <typename T> WC_DEVICE uint64_t wc_upper_bound(const T* entries, uint64_t count, uint64_t bound) {
    uint64_t low = 0, high = count;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if ((uint64_t)wc_load_cached(entries + middle) <= bound) low = middle + 1;
        else high = middle;
    }
    return low;
}

// First position in low..high whose key is not below `key` (`above`: that is above `key`).
WC_DEVICE uint64_t wc_key_bound(const WcArray& array, uint64_t low, uint64_t high, WC_KEY key, bool above) {
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        const WC_KEY found = array.keys[middle];
        if (found < key || (above && found == key)) low = middle + 1;
        else high = middle;
    }
    return low;
}

#if WC_POINTERS == 2
// Bits of a word, block 0 of its group in bit 30.
WC_DEVICE uint32_t wc_literal(uint32_t word) {
    if ((word & 0x80000000u) == 0) return word;
    return (word & 0x40000000u) != 0 ? 0x7fffffffu : 0u;
}
// Filled blocks before a block, and whether it is filled.
WC_DEVICE uint64_t wc_rank(const WcArray& array, uint64_t block, bool* is_filled) {
    const uint64_t index = block / 31;
    const uint32_t mask = 0x40000000u >> (uint32_t)(block - index * 31);
    const uint32_t word = wc_literal(wc_load_cached(array.words + index));
    *is_filled = (word & mask) != 0;
    return wc_load_cached(array.counts + index) + (uint32_t)__popc(word & ~(mask | (mask - 1)));
}
#endif

// Cells in front of a block.
WC_DEVICE uint64_t wc_cells_before(const WcArray& array, uint64_t block) {
#if WC_POINTERS == 0
    return block == 0 ? 0 : array.cells;
#elif WC_POINTERS == 1
    return wc_load_cached(array.starts + block);
#else
    bool is_filled;
    return block >= array.blocks ? array.cells : wc_load_cached(array.starts + wc_rank(array, block, &is_filled));
#endif
}

// Positions of the cells of a block: begin and end.
WC_DEVICE void wc_block(const WcArray& array, uint64_t block, uint64_t* begin, uint64_t* end) {
#if WC_POINTERS == 0
    *begin = 0;
    *end = array.cells;
#elif WC_POINTERS == 1
    *begin = wc_load_cached(array.starts + block);
    *end = wc_load_cached(array.starts + block + 1);
#else
    bool is_filled;
    const uint64_t rank = wc_rank(array, block, &is_filled);
    *begin = *end = 0;
    if (is_filled) {
        *begin = wc_load_cached(array.starts + rank);
        *end = wc_load_cached(array.starts + rank + 1);
    }
#endif
}

// The block of a cell.
WC_DEVICE uint64_t wc_block_of(const WcArray& array, uint64_t position) {
#if WC_POINTERS == 0
    return 0;
#elif WC_POINTERS == 1
    return wc_upper_bound(array.starts, array.blocks + 1, position) - 1;
#else
    const uint64_t rank = wc_upper_bound(array.starts, array.filled + 1, position) - 1;
    const uint64_t index = wc_upper_bound(array.counts, (array.blocks + 30) / 31, rank) - 1;
    uint32_t word = wc_literal(wc_load_cached(array.words + index));
    for (uint64_t ones = wc_load_cached(array.counts + index); ones < rank; ++ones) {
        word &= ~(0x80000000u >> (uint32_t)__clz((int)word));
    }
    return index * 31 + (uint32_t)__clz((int)word) - 1;
#endif
}

// Writes the coordinates of the first `dimensions` dimensions of a cell; `block` is the cell's.
WC_DEVICE void wc_decode(
    const WcArray& array, uint64_t block, uint64_t position, uint64_t dimensions, uint32_t* tuple) {
    for (uint32_t d = (uint32_t)array.split; d-- > 0;) {
        uint32_t coordinate;
        block = wc_divided(block, array.sizes[d], &coordinate);
        if (d < dimensions) tuple[d] = coordinate;
    }
    if (dimensions <= array.split) return;
    const WC_KEY key = array.keys[position];
    for (uint32_t d = (uint32_t)array.split; d < dimensions; ++d) tuple[d] = wc_field(array, key, d);
}
