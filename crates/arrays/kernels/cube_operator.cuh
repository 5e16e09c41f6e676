// The CUBE operator: keys in another order of their dimensions, which groups begin at a sorted key, and the iceberg.
//
// Text in front is array.cuh. wc_cube_reorder: a key of the output is the fields of a key of the input, the first one
// highest (fields have 1 to 32 bits). wc_cube_codes: the code of a key is the number of levels of which it begins a
// group; level l leaves out the lowest `belows[l]` bits, which ascend, so that a key begins groups of the first `code`
// levels. Mapping: a thread a key. Bytes: each key read and written once; read once and a byte written. Source: Wang,
// Sparse Array Representations and Some Selected Array Operations on GPUs, section 5.4.1, which computes the groups on
// the host.

struct CubeReorderParams {
    const WC_KEY* keys;
    WC_KEY* out;
    uint64_t n, fields;
    uint64_t shifts[WC_DIMENSIONS_MAX], bits[WC_DIMENSIONS_MAX];
};

WC_KERNEL(wc_cube_reorder, CubeReorderParams, 256, 4) {
    for (uint64_t at = wc_first(); at < p.n; at += wc_stride()) {
        const WC_KEY key = p.keys[at];
        WC_KEY out = 0;
        for (uint64_t field = 0; field < p.fields; ++field) {
            const uint32_t mask = (uint32_t)((1ull << p.bits[field]) - 1);
            out = (WC_KEY)(out << (uint32_t)p.bits[field]) | ((uint32_t)wc_shifted(key, p.shifts[field]) & mask);
        }
        p.out[at] = out;
    }
}

struct CubeCodesParams {
    const WC_KEY* keys;
    uint8_t* codes;
    uint64_t n, levels;
    uint64_t belows[WC_DIMENSIONS_MAX];
};

WC_KERNEL(wc_cube_codes, CubeCodesParams, 256, 4) {
    for (uint64_t at = wc_first(); at < p.n; at += wc_stride()) {
        uint64_t code = p.levels;
        if (at > 0) {
            const WC_KEY difference = p.keys[at] ^ p.keys[at - 1];
            code = 0;
            while (code < p.levels && wc_shifted(difference, p.belows[code]) != 0) ++code;
        }
        p.codes[at] = (uint8_t)code;
    }
}

struct CubeRefineParams {
    const WC_KEY* keys;
    const uint32_t* items;   // cells by place, or null where they are in their order
    const uint32_t* groups;  // the group of each place, or null where there is one
    WC_KEY* out;
    uint64_t n, shift, bits;
};

// A group and the coordinate of one more dimension, for each cell of the group.
WC_KERNEL(wc_cube_refine, CubeRefineParams, 256, 4) {
    const uint32_t mask = (uint32_t)((1ull << p.bits) - 1);
    for (uint64_t at = wc_first(); at < p.n; at += wc_stride()) {
        const WC_KEY key = p.keys[p.items == nullptr ? at : p.items[at]];
        const WC_KEY group = p.groups == nullptr ? 0 : p.groups[at];
        p.out[at] = (WC_KEY)(group << (uint32_t)p.bits) | ((uint32_t)wc_shifted(key, p.shift) & mask);
    }
}

struct CubeEnoughParams {
    const uint32_t* groups;  // from 1 on
    const uint64_t* counts;
    uint8_t* flags;
    uint64_t n, minimum;
};

// Whether the group of each place has enough rows.
WC_KERNEL(wc_cube_enough, CubeEnoughParams, 256, 4) {
    for (uint64_t at = wc_first(); at < p.n; at += wc_stride()) {
        p.flags[at] = p.counts[p.groups[at] - 1] >= p.minimum ? 1 : 0;
    }
}
