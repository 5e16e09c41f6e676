// Building: sorted rows become nodes of all levels.
//
// A row heads a node of each level from the first on in which it differs from the row before it; its number there is
// the number of heads up to it, less one. A warp has tiles of rows: `heads` finds the first difference of each row and
// counts heads by level and tile; an exclusive scan of these counts, level after level, gives the number of the first
// node of each tile among all nodes; `emit` numbers the heads of a tile by ballots and writes nodes. `links` counts
// children and makes the keys by which nodes are sorted to side links, `sides` and `headers` make header tables of
// them. Bytes: the rows' keys about twice, once in random order; 28 a node and 8 a measure and node.
// Source: algorithm 1 of the paper, whose segmented sort a level is one sort of whole tuples here: where tuples lie in
// the order of their paths, every level is sorted.

// Rows of a tile: steps of a row a lane.
constexpr uint32_t WC_STEPS = 8, WC_TILE = WC_STEPS * 32;

struct CheckParams {
    const uint32_t* columns;
    uint64_t stride, rows, dimensions;
    uint64_t* bad;  // the least row * 32 + column with a value past its cardinality
    uint64_t cardinalities[WC_LEVELS_MAX];
};

WC_KERNEL(wc_htree_check, CheckParams, 256, 4) {
    for (uint64_t d = 0; d < p.dimensions; ++d) {
        const uint64_t cardinality = p.cardinalities[d];
        for (uint64_t row = wc_first(); row < p.rows; row += wc_stride()) {
            if (p.columns[d * p.stride + row] >= cardinality) wc_min(p.bad, row * 32 + d);
        }
    }
}

struct HeadsParams {
    WcRows rows;
    const uint32_t* order;
    uint64_t count, levels, tiles;
    uint8_t* differs;   // the first level in which a row differs from the one before it; `levels` if there is none
    uint32_t* counts;   // heads by level and tile
};

WC_KERNEL(wc_htree_heads, HeadsParams, 256, 4) {
    const uint32_t levels = (uint32_t)p.levels;
    for (uint64_t tile = wc_first() / 32; tile < p.tiles; tile += wc_stride() / 32) {
        // Heads of the level that is the lane's number.
        uint32_t own = 0;
        for (uint32_t step = 0; step < WC_STEPS; ++step) {
            const uint64_t at = tile * WC_TILE + step * 32 + wc_lane();
            uint32_t differs = levels;
            if (at < p.count) {
                differs = 0;
                if (at > 0) {
                    const uint32_t row = p.order[at], before = p.order[at - 1];
                    do ++differs;
                    while (differs < levels && wc_key(p.rows, differs, row) == wc_key(p.rows, differs, before));
                }
                p.differs[at] = (uint8_t)differs;
            }
            for (uint32_t level = 0; level < levels; ++level) {
                const uint32_t heads = (uint32_t)__popc(__ballot_sync(WC_FULL_MASK, differs <= level));
                if (wc_lane() == level) own += heads;
            }
        }
        if (wc_lane() < levels) p.counts[wc_lane() * p.tiles + tile] = own;
    }
}

struct StartsParams {
    const uint64_t* ranks;  // the scan of `counts`
    uint64_t levels, tiles;
    uint64_t* starts;       // of all levels, and the number of nodes
};

WC_KERNEL(wc_htree_starts, StartsParams, 256, 4) {
    const uint64_t level = wc_first();
    if (level <= p.levels) p.starts[level] = p.ranks[level * p.tiles];
}

struct EmitParams {
    WcRows rows;
    const uint32_t* order;
    uint64_t count, levels, tiles;
    const uint8_t* differs;
    const uint64_t* ranks;
    uint32_t* keys;
    uint32_t* parents;
    uint32_t* leftmost;
    uint64_t* offsets;  // of level l at starts[l] + l: first children, and their number; rows below the leaves
    uint64_t starts[WC_LEVELS_MAX + 1];
};

WC_KERNEL(wc_htree_emit, EmitParams, 256, 4) {
    const uint32_t levels = (uint32_t)p.levels, lane = wc_lane();
    for (uint64_t tile = wc_first() / 32; tile < p.tiles; tile += wc_stride() / 32) {
        // Nodes in front of the step, of the level that is the lane's number.
        uint32_t own = 0;
        if (lane < levels) own = (uint32_t)(p.ranks[lane * p.tiles + tile] - p.starts[lane]);
        for (uint32_t step = 0; step < WC_STEPS; ++step) {
            const uint64_t at = tile * WC_TILE + step * 32 + lane;
            const bool is_row = at < p.count, is_last = at + 1 == p.count;
            const uint32_t differs = is_row ? p.differs[at] : levels;
            const uint32_t row = is_row ? p.order[at] : 0;
            uint32_t above = 0;
            for (uint32_t level = 0; level < levels; ++level) {
                const uint32_t heads = __ballot_sync(WC_FULL_MASK, differs <= level);
                const uint32_t before = __shfl_sync(WC_FULL_MASK, own, (int)level);
                const uint32_t up_to_own = 0xffffffffu >> (31 - lane);
                const uint32_t node = before + (uint32_t)__popc(heads & up_to_own) - 1;
                const uint64_t place = p.starts[level] + node;
                if (differs <= level) {
                    p.keys[place] = level == 0 ? 0 : wc_key(p.rows, level, row);
                    p.parents[place] = above;
                    if (level + 1 == levels) {
                        p.leftmost[place] = 0;
                        p.offsets[place + level] = at;
                    }
                }
                if (level > 0) {
                    // The row is the first of the node above, and so is this node its first child.
                    const uint64_t place_above = p.starts[level - 1] + above;
                    if (differs < level) {
                        p.leftmost[place_above] = node;
                        p.offsets[place_above + level - 1] = node;
                    }
                    if (is_last) p.offsets[place_above + level] = node + 1;
                }
                if (is_last && level + 1 == levels) p.offsets[place + level + 1] = p.count;
                above = node;
                if (lane == level) own += (uint32_t)__popc(heads);
            }
        }
    }
}

struct LinksParams {
    const uint64_t* offsets;
    const uint32_t* keys;
    uint64_t nodes, levels, key_bits;
    uint32_t* children;
    WC_SIDE* sorted;  // level and key of each node
    uint64_t starts[WC_LEVELS_MAX + 1];
};

WC_KERNEL(wc_htree_links, LinksParams, 256, 4) {
    for (uint64_t node = wc_first(); node < p.nodes; node += wc_stride()) {
        const uint32_t level = wc_level(p.starts, p.levels, node);
        const uint64_t at = node + level;
        p.children[node] = level + 1 == p.levels ? 0 : (uint32_t)(p.offsets[at + 1] - p.offsets[at]);
        p.sorted[node] = (WC_SIDE)((WC_SIDE)level << p.key_bits) | (WC_SIDE)p.keys[node];
    }
}

struct SidesParams {
    const WC_SIDE* sorted;
    uint64_t nodes, levels;
    uint32_t* side_links;  // numbers among all nodes, which become those within the level
    uint8_t* flags;        // 1 for the first node of a key
    uint64_t starts[WC_LEVELS_MAX + 1];
};

WC_KERNEL(wc_htree_sides, SidesParams, 256, 4) {
    for (uint64_t at = wc_first(); at < p.nodes; at += wc_stride()) {
        p.side_links[at] -= (uint32_t)p.starts[wc_level(p.starts, p.levels, at)];
        p.flags[at] = at == 0 || p.sorted[at] != p.sorted[at - 1] ? 1 : 0;
    }
}

struct HeadersParams {
    const WC_SIDE* sorted;
    const uint64_t* offsets;  // where keys begin, and the number of nodes
    const uint64_t* count;
    uint64_t levels, key_bits;
    uint32_t* header_keys;
    uint32_t* header_first;
    uint32_t* header_counts;
    uint64_t* headers;  // the first entry of each level
    uint64_t starts[WC_LEVELS_MAX + 1];
};

WC_KERNEL(wc_htree_headers, HeadersParams, 256, 4) {
    const uint64_t count = *p.count;
    if (wc_first() == 0) p.headers[p.levels] = count;
    for (uint64_t entry = wc_first(); entry < count; entry += wc_stride()) {
        const uint64_t place = p.offsets[entry];
        const WC_SIDE key = p.sorted[place];
        const uint32_t level = wc_level(p.starts, p.levels, place);
        p.header_keys[entry] = (uint32_t)(key - ((WC_SIDE)level << p.key_bits));
        p.header_first[entry] = (uint32_t)(place - p.starts[level]);
        p.header_counts[entry] = (uint32_t)(p.offsets[entry + 1] - place);
        if (place == p.starts[level]) p.headers[level] = entry;
    }
}

struct StatesParams {
    const uint32_t* order;
    uint64_t count, old, old_stride;
    const int64_t* old_measures;  // of the old rows, a column a measure
    const int64_t* values[8];     // of the new rows by measure; null for the number of tuples
    int64_t* states;              // a column a measure
};

// The rows' parts of all measures, in order.
WC_KERNEL(wc_htree_states, StatesParams, 256, 4) {
    for (uint64_t at = wc_first(); at < p.count; at += wc_stride()) {
        const uint32_t row = p.order[at];
        for (uint32_t m = 0; m < WC_MEASURES; ++m) {
            int64_t state = 1;
            if (row < p.old) state = p.old_measures[m * p.old_stride + row];
            else if (p.values[m] != nullptr) state = p.values[m][row - p.old];
            p.states[m * p.count + at] = state;
        }
    }
}

struct SumsParams {
    const uint64_t* offsets;
    uint64_t segments;
    const int64_t* items;
    uint64_t number;     // of the measure
    uint64_t* overflow;  // the least number of a measure of which a sum leaves 64 bits
};

// Marks sums of segments that leave 64 bits. A warp has a segment: it adds the halves of items apart.
WC_KERNEL(wc_htree_sums, SumsParams, 256, 4) {
    for (uint64_t segment = wc_first() / 32; segment < p.segments; segment += wc_stride() / 32) {
        uint64_t low = 0, high = 0;
        for (uint64_t at = p.offsets[segment] + wc_lane(); at < p.offsets[segment + 1]; at += 32) {
            low += (uint64_t)p.items[at] & 0xffffffffull;
            high += (uint64_t)(p.items[at] >> 32);
        }
        low = wc_warp_sum(low);
        high = wc_warp_sum(high) + (low >> 32);
        const int64_t upper = (int64_t)high;
        if (wc_lane() == 0 && (upper < -0x80000000ll || upper > 0x7fffffffll)) wc_min(p.overflow, p.number);
    }
}
