// The k - 1 aggregations of one scan: sums by the prefixes of the dimensions.
//
// Input: an array (array.cuh). A code of a cell is 1 + the first dimension in which it differs from the cell in front,
// 1 for the first cell: a cell begins a group of the prefix of n dimensions if its code is at most n.
// wc_scheme_cell_codes compares keys of neighbours; wc_scheme_block_codes then sets the code of the first cell of each
// filled block: it begins a group of a prefix if no cell lies between the first block of that prefix and its own. The
// primitive `select` gives the heads of groups. wc_scheme_sums adds items by groups: cells to groups of k - 1
// dimensions, then groups of n + 1 dimensions to groups of n, so that cells are read once.
// Mapping: a thread a cell or block; `width` threads a group, a power of two, or the block of threads where it is more
// than 32. Doubles are added in the same order in every run. Bytes: 8 a cell for its value, its key and 2 for codes; 17
// and coordinates a group.
// Source: Wang, Sparse Array Representations and Some Selected Array Operations on GPUs, chapter 4, whose scan is
// sequential.

struct SumsParams {
    WcArray array;
    uint8_t* codes;             // of items
    const uint32_t* positions;  // first cell of each item, or null where items are cells
    const uint64_t* sums;       // of items
    uint64_t items;
    const uint32_t* heads;      // first item of each group
    uint64_t groups;
    uint64_t width;
    uint8_t* codes_out;         // of groups
    uint32_t* positions_out;
    uint64_t* sums_out;
    uint32_t* coordinates;
    uint64_t length;            // dimensions of the group-by
};

WC_KERNEL(wc_scheme_cell_codes, SumsParams, 256, 4) {
    const uint32_t split = (uint32_t)p.array.split;
    for (uint64_t at = wc_first(); at < p.array.cells; at += wc_stride()) {
        uint32_t changed = 0;
        if (at > 0) {
            const WC_KEY difference = p.array.keys[at] ^ p.array.keys[at - 1];
            changed = (uint32_t)p.array.dimensions - 1;
            while (changed > split && wc_shifted(difference, p.array.shifts[changed - 1]) != 0) --changed;
        }
        p.codes[at] = (uint8_t)(1 + changed);
    }
}

WC_KERNEL(wc_scheme_block_codes, SumsParams, 256, 4) {
    for (uint64_t block = wc_first(); block < p.array.blocks; block += wc_stride()) {
        uint64_t begin, end;
        wc_block(p.array, block, &begin, &end);
        if (begin == end) continue;
        // The cell begins a group of all leading dimensions; `first` is the first block of the prefix.
        uint32_t code = (uint32_t)p.array.split;
        uint64_t first = block, places = 1;
        while (code > 1) {
            uint32_t coordinate;
            wc_divided(first / places, p.array.sizes[code - 1], &coordinate);
            first -= coordinate * places;
            if (wc_cells_before(p.array, first) != begin) break;
            places *= p.array.sizes[code - 1];
            --code;
        }
        p.codes[begin] = (uint8_t)(code == 0 ? 1 : code);
    }
}

// Stores a group whose sum is known.
WC_DEVICE void wc_store_group(const SumsParams& p, uint64_t group, WC_VALUE sum) {
    const uint32_t head = p.heads[group];
    memcpy(p.sums_out + group, &sum, sizeof sum);
    p.codes_out[group] = p.codes[head];
    p.positions_out[group] = p.positions == nullptr ? head : p.positions[head];
}

// Sum of the items of a group at `first`, `first` + `step`, ….
WC_DEVICE WC_VALUE wc_part_sum(const SumsParams& p, uint64_t group, uint64_t first, uint64_t step) {
    const uint64_t end = group + 1 < p.groups ? p.heads[group + 1] : p.items;
    const WC_VALUE* const items = (const WC_VALUE*)p.sums;
    WC_VALUE sum = 0;
    for (uint64_t item = p.heads[group] + first; item < end; item += step) sum += items[item];
    return sum;
}

WC_KERNEL(wc_scheme_sums, SumsParams, 256, 4) {
    const uint32_t width = (uint32_t)p.width, part = wc_lane() & (width - 1), groups = 32 / width;
    // All lanes of a warp go through the same rounds.
    const uint64_t step = wc_stride() / 32 * groups;
    for (uint64_t base = wc_first() / 32 * groups; base < p.groups; base += step) {
        const uint64_t group = base + wc_lane() / width;
        WC_VALUE sum = group < p.groups ? wc_part_sum(p, group, part, width) : (WC_VALUE)0;
        for (uint32_t distance = width / 2; distance > 0; distance /= 2) {
            sum += __shfl_xor_sync(WC_FULL_MASK, sum, (int)distance);
        }
        if (part == 0 && group < p.groups) wc_store_group(p, group, sum);
    }
}

WC_KERNEL(wc_scheme_block_sums, SumsParams, 256, 4) {
    WC_VALUE* const parts = (WC_VALUE*)wc_shared();
    for (uint64_t group = blockIdx.x; group < p.groups; group += gridDim.x) {
        const WC_VALUE own = wc_warp_sum(wc_part_sum(p, group, threadIdx.x, blockDim.x));
        wc_leave(parts, own);
        __syncthreads();
        if (wc_warp() == 0) {
            const WC_VALUE sum = wc_warp_sum(wc_left(parts));
            if (wc_lane() == 0) wc_store_group(p, group, sum);
        }
        __syncthreads();
    }
}

WC_KERNEL(wc_scheme_coordinates, SumsParams, 256, 4) {
    for (uint64_t group = wc_first(); group < p.groups; group += wc_stride()) {
        const uint64_t position = p.positions_out[group];
        const uint64_t block = p.array.split == 0 ? 0 : wc_block_of(p.array, position);
        wc_decode(p.array, block, position, p.length, p.coordinates + group * p.length);
    }
}
