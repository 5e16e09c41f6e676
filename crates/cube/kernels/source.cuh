// The source-based algorithm: every relevant cell adds its value to all its targets, in hash tables.
//
// Text in front is resident_keys.cuh and defines WC_WEIGHTS and WC_COUNTED (1 or 0; counted tables add up 1 for each
// addition, not values), WC_MAP_PLACE (0 parameters, which are constant memory; 1 shared memory; 2 global memory),
// WC_MAP_WORD (uint16_t or uint32_t), WC_MAP_LONGS (words of 64 bits of a map in parameters), WC_PREAGGREGATION (0
// none, 1 first lane in shared memory, 2 first lane by shuffle, 3 strided, 4 match), WC_EXPANSION (0 a thread a cell, 1
// in-block balancing, 2 children of many blocks, 3 children of one block) and WC_LAUNCHES (1 if parents launch
// children, 0 if the host does).
//
// Input: numbers of relevant facts (prefilter.cuh); the aggregation map: for each dimension a word a base element
// and one more, the entries where its targets begin and end; then the targets of all entries, then their weights.
// Dimensions before `singles` have one target a base element at most.
// Output: `functions` hash tables of 2^log slots: the target's rank plus 1, or 0, and its sum. Linear probing; tables
// hold all targets of the area at most half full. Lane l of warp w uses table (w + l) mod `functions`.
// Then wc_source_merge adds the tables up by rank: the compaction of duplicates.
// Mapping: see the kernels. Numerics: words wrap; the host has proven that sums hold.
// Source: Meinke, 4.2 and 4.3; multiply-shift hashing (Dietzfelbinger et al. 1997).

#define WC_HASH_FACTOR 0x9e3779b97f4a7c15ull
// Threads of a block with cells, of a parent, of a child; children of a batch of parents.
#define WC_SOURCE_THREADS 256
#define WC_PARENT_THREADS 768
#define WC_CHILD_THREADS 1024
#define WC_BATCH_CHILDREN 2048

struct SourceParams {
    CubeKeys keys;
    const uint64_t* values;
    const uint32_t* cells;
    const uint32_t* count;  // relevant facts
    uint64_t* slots;
    uint64_t functions, log;
    uint64_t singles, targets_at, weights_at, map_words;
    uint64_t* ends;    // targets of the cells of each parent up to each, WC_PARENT_THREADS a parent
    uint64_t* blocks;  // blocks of the children before each, and of all
    uint64_t first_parent, parents;
    SourceParams* copy;         // of these parameters, for children that parents launch
    uint64_t child_shared_bytes;
    CubeShape shape;  // in the order of the map
    uint64_t rows_at[32], strides[32];
#if WC_MAP_PLACE == 0
    uint64_t map[WC_MAP_LONGS];
#else
    const uint64_t* map;
#endif
};

// The aggregation map where it lies.
struct SourceMap {
    const WC_MAP_WORD* words;

    WC_INLINE uint32_t operator[](uint64_t at) const {
#if WC_MAP_PLACE == 2
        return wc_load_cached(words + at);
#else
        return words[at];
#endif
    }
    // 2 or 4 bytes, with their sign.
    WC_INLINE int64_t weight(uint64_t at) const {
        const uint32_t word = (*this)[at];
        return sizeof(WC_MAP_WORD) == 2 ? (int64_t)(int16_t)word : (int64_t)(int32_t)word;
    }
};

// Puts the map at the beginning of `room` if it lies there, and moves `room` behind it; all threads call it.
WC_DEVICE SourceMap wc_source_map(const SourceParams& p, char*& room) {
    SourceMap map;
#if WC_MAP_PLACE == 1
    uint64_t* const own = (uint64_t*)room;
    const uint32_t longs = (uint32_t)((p.map_words * sizeof(WC_MAP_WORD) + 7) / 8);
    for (uint32_t word = threadIdx.x; word < longs; word += blockDim.x) own[word] = p.map[word];
    __syncthreads();
    map.words = (const WC_MAP_WORD*)room;
    room += 8ull * longs;
#else
    map.words = (const WC_MAP_WORD*)p.map;
#endif
    return map;
}

// A relevant cell: its rank and value by the dimensions of one target, and the number of its targets.
struct SourceCell {
    CubeKey key;
    uint64_t rank, value;
    uint32_t targets;
};

WC_DEVICE SourceCell wc_source_cell(const SourceParams& p, const SourceMap& map, uint32_t number) {
    const uint32_t fact = wc_load_cached(p.cells + number);
    SourceCell cell;
    cell.key = wc_key_of(p.keys, fact);
    cell.value = wc_value_of(p.values, fact);
    cell.rank = 0;
    cell.targets = 1;
    for (uint32_t dimension = 0; dimension < p.shape.dimensions; ++dimension) {
        const uint64_t row = p.rows_at[dimension] + p.shape.coordinate(cell.key, dimension);
        const uint32_t entry = map[row];
        if (dimension < p.singles) {
            cell.rank += map[p.targets_at + entry] * p.strides[dimension];
#if WC_WEIGHTS
            cell.value *= (uint64_t)map.weight(p.weights_at + entry);
#endif
        } else {
            cell.targets *= map[row + 1] - entry;
        }
    }
    return cell;
}

// Rank and value of a cell's target `number`, which counts through the lists of its dimensions like a clock.
WC_DEVICE void wc_source_target(const SourceParams& p, const SourceMap& map, CubeKey key, uint32_t number,
                                uint64_t& rank, uint64_t& value) {
    for (uint32_t dimension = (uint32_t)p.shape.dimensions; dimension-- > p.singles;) {
        const uint64_t row = p.rows_at[dimension] + p.shape.coordinate(key, dimension);
        uint32_t entry = map[row];
        if (dimension > p.singles) {
            const uint32_t length = map[row + 1] - entry, rest = number / length;
            entry += number - rest * length;
            number = rest;
        } else {
            entry += number;
        }
        rank += map[p.targets_at + entry] * p.strides[dimension];
#if WC_WEIGHTS
        value *= (uint64_t)map.weight(p.weights_at + entry);
#endif
    }
}
