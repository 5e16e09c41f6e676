// An H-tree in device memory: levels of arrays, the root's first.
//
// Text in front defines WC_MEASURES and WC_OPERATIONS, a number a measure (0 sum, 1 least, 2 largest), and WC_SIDE.
// Nodes are numbered within their level; those of level l lie at starts[l] .. starts[l + 1] of all arrays, the measures
// of node i of all nodes at measures[m * nodes + i]. Header entries of level l lie at headers[l] .. headers[l + 1].
// Source: Wang and Yu, Parallel H-Tree Based Data Cubing on Graphics Processors, section 4.

// Levels, the root's included; a lane of a warp each.
#define WC_LEVELS_MAX 32

struct WcTree {
    const uint32_t* keys;
    const uint32_t* parents;
    const uint32_t* leftmost;
    const uint32_t* children;
    const uint32_t* side_links;
    const uint32_t* header_keys;
    const uint32_t* header_first;
    const uint32_t* header_counts;
    const int64_t* measures;
    uint64_t nodes, levels;
    uint64_t starts[WC_LEVELS_MAX + 1];
    uint64_t headers[WC_LEVELS_MAX + 1];
};

// Rows that a tree is made of: the keys of `old` nodes of a tree, then tuples. A column a level below the root.
struct WcRows {
    const uint32_t* old_columns;
    uint64_t old_stride, old;
    const uint32_t* new_columns;
    uint64_t new_stride;
};

constexpr uint32_t WC_OPERATION[] = {WC_OPERATIONS};

WC_DEVICE uint64_t wc_first() { return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; }
WC_DEVICE uint64_t wc_stride() { return (uint64_t)gridDim.x * blockDim.x; }

WC_DEVICE uint32_t wc_key(const WcRows& rows, uint64_t level, uint32_t row) {
    const uint64_t column = level - 1;
    return row < rows.old ? rows.old_columns[column * rows.old_stride + row]
                          : rows.new_columns[column * rows.new_stride + (row - rows.old)];
}

// First place in low .. high whose key is not below `key`; keys ascend there.
WC_DEVICE uint64_t wc_lower_bound(const uint32_t* keys, uint64_t low, uint64_t high, uint32_t key) {
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (keys[middle] < key) low = middle + 1;
        else high = middle;
    }
    return low;
}

// The level of a place among all nodes.
WC_DEVICE uint32_t wc_level(const uint64_t* starts, uint64_t levels, uint64_t place) {
    uint32_t level = 0;
    while (level + 1 < levels && starts[level + 1] <= place) ++level;
    return level;
}

WC_DEVICE int64_t wc_nothing(uint32_t operation) {
    return operation == 0 ? 0 : operation == 1 ? (int64_t)0x7fffffffffffffffll : (int64_t)0x8000000000000000ull;
}
