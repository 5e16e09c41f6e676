// Updates: where the sorted rows of a batch go between the leaves of a tree, and what stays of it.
//
// `descend` looks a row up from the root, by halves among the children of a node, up to the first level that lacks its
// key: the leaves in front of it are those in front of the next greater node. `place_new` and `place_old` merge both
// orders. Mapping: a thread a row or leaf.
// Source: algorithm 2 of the paper.

struct ExpandParams {
    WcTree tree;
    uint64_t level;
    uint32_t* columns;
    uint64_t stride;
    uint64_t slots[WC_LEVELS_MAX];  // the column of a level's keys; all ones where they are not wanted
};

// The keys of a level's nodes from there up to the root.
WC_KERNEL(wc_htree_expand, ExpandParams, 256, 4) {
    const uint64_t count = p.tree.starts[p.level + 1] - p.tree.starts[p.level];
    for (uint64_t at = wc_first(); at < count; at += wc_stride()) {
        uint64_t node = at;
        for (uint64_t level = p.level; level > 0; --level) {
            const uint64_t place = p.tree.starts[level] + node;
            if (p.slots[level] != ~0ull) p.columns[p.slots[level] * p.stride + at] = p.tree.keys[place];
            node = p.tree.parents[place];
        }
    }
}

struct PlaceParams {
    WcTree tree;
    const uint32_t* columns;  // of the batch
    uint64_t stride, rows, old;
    const uint32_t* sorted;   // rows of the batch in order
    uint32_t* places;         // leaves in front of each of them
    uint32_t* order;          // of leaves and rows
};

WC_KERNEL(wc_htree_descend, PlaceParams, 256, 4) {
    const WcTree& tree = p.tree;
    for (uint64_t at = wc_first(); at < p.rows; at += wc_stride()) {
        const uint32_t row = p.sorted[at];
        uint64_t node = 0, level = 0;
        bool is_found = true;
        while (is_found && level + 1 < tree.levels) {
            const uint64_t above = tree.starts[level] + node;
            const uint64_t first = tree.leftmost[above], end = first + tree.children[above];
            const uint32_t key = p.columns[level * p.stride + row];
            ++level;
            const uint32_t* keys = tree.keys + tree.starts[level];
            node = wc_lower_bound(keys, first, end, key);
            is_found = node < end && keys[node] == key;
        }
        // The first leaf below the node; behind the last node of a level there is none.
        if (node >= tree.starts[level + 1] - tree.starts[level]) node = p.old;
        else
            for (; level + 1 < tree.levels; ++level) node = tree.leftmost[tree.starts[level] + node];
        p.places[at] = (uint32_t)node;
    }
}

WC_KERNEL(wc_htree_place_new, PlaceParams, 256, 4) {
    for (uint64_t at = wc_first(); at < p.rows; at += wc_stride()) {
        p.order[p.places[at] + at] = (uint32_t)(p.old + p.sorted[at]);
    }
}

WC_KERNEL(wc_htree_place_old, PlaceParams, 256, 4) {
    for (uint64_t leaf = wc_first(); leaf < p.old; leaf += wc_stride()) {
        const uint64_t in_front = wc_lower_bound(p.places, 0, p.rows, (uint32_t)leaf + 1);
        p.order[leaf + in_front] = (uint32_t)leaf;
    }
}
