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

// The hash table of a thread, and the memory of its warp for preaggregation.
struct SourceTable {
    uint64_t* slots;
    uint32_t shift;
    uint64_t mask;
    uint64_t* warp_room;

    // `room` has 33 words a warp if preaggregation is in shared memory.
    // Warps of the grid count from `first_warp`.
    WC_INLINE SourceTable(const SourceParams& p, char*& room, uint64_t first_warp) {
        const uint64_t warp = first_warp + ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
        slots = p.slots + ((warp + wc_lane()) % p.functions << (p.log + 1));
        shift = 64 - (uint32_t)p.log;
        mask = (1ull << p.log) - 1;
        warp_room = nullptr;
#if WC_PREAGGREGATION == 1
        warp_room = (uint64_t*)room + 33 * wc_warp();
        room += 33ull * 8 * (blockDim.x / 32);
#else
        (void)room;
#endif
    }

    WC_INLINE void add(uint64_t rank, uint64_t value) const {
        uint64_t at = rank * WC_HASH_FACTOR >> shift;
        for (;; at = (at + 1) & mask) {
            uint64_t held = wc_load_relaxed(slots + 2 * at);
            if (held == 0) held = wc_compare_swap(slots + 2 * at, (uint64_t)0, rank + 1);
            if (held == 0 || held == rank + 1) break;
        }
#if WC_COUNTED
        value = 1;
#endif
        wc_add(slots + 2 * at + 1, value);
    }
};

// Adds the values of active lanes to their targets; all lanes of a warp call it. `targets` is the number of targets of
// the lane's cell, which strided preaggregation takes from lane 0.
WC_DEVICE void wc_source_add(const SourceTable& table, bool active, uint64_t rank, uint64_t value, uint32_t targets) {
    const uint32_t lane = wc_lane();
    (void)targets;
#if WC_PREAGGREGATION == 1 || WC_PREAGGREGATION == 2
    // The first lane that has a target left.
    const uint32_t all = __ballot_sync(WC_FULL_MASK, active);
    if (all == 0) return;
    const uint32_t first = (uint32_t)__ffs((int)all) - 1;
#endif
#if WC_PREAGGREGATION == 1
    uint64_t* const room = table.warp_room;
    if (lane == first) room[32] = rank;
    __syncwarp();
    const bool joins = active && room[32] == rank;
    room[lane] = joins ? value : 0;
    __syncwarp();
    for (uint32_t step = 16; step > 0; step >>= 1) {
        if (lane < step) room[lane] += room[lane + step];
        __syncwarp();
    }
    if (lane == first) value = room[0];
    // The next call writes to the room again.
    __syncwarp();
    active = lane == first || (active && !joins);
#elif WC_PREAGGREGATION == 2
    const uint64_t compared = __shfl_sync(WC_FULL_MASK, rank, (int)first);
    const bool joins = active && compared == rank;
    if (__popc(__ballot_sync(WC_FULL_MASK, joins)) > 1) {
        const uint64_t sum = wc_warp_sum(joins ? value : (uint64_t)0);
        if (lane == first) value = sum;
        active = lane == first || (active && !joins);
    }
#elif WC_PREAGGREGATION == 3
    const uint32_t stride = __shfl_sync(WC_FULL_MASK, active ? targets : 0u, 0);
    if (stride > 0 && stride < 32) {
        const uint32_t compared = lane % stride;
        const uint64_t other = __shfl_sync(WC_FULL_MASK, rank, (int)compared);
        const uint32_t there = __ballot_sync(WC_FULL_MASK, active);
        const bool joins = active && (there >> compared & 1u) != 0 && other == rank;
        const uint32_t joined = __ballot_sync(WC_FULL_MASK, joins);
        uint64_t sum = value;
        for (uint32_t step = stride; step < 32; step += stride) {
            const uint64_t above = __shfl_down_sync(WC_FULL_MASK, value, step);
            if (lane + step < 32 && (joined >> (lane + step) & 1u) != 0) sum += above;
        }
        if (lane < stride) value = sum;
        active = active && (lane < stride || !joins);
    }
#elif WC_PREAGGREGATION == 4
    // Halves the lanes of each target until one is left, as in a tree.
    const uint32_t equal = __match_any_sync(WC_FULL_MASK, active ? rank : ~(uint64_t)0);
    uint32_t above = equal & (0xfffffffeu << lane);
    const uint32_t below = (uint32_t)__popc(equal & ((1u << lane) - 1u));
    uint32_t place = below;
    while (__any_sync(WC_FULL_MASK, above != 0)) {
        const uint32_t next = (uint32_t)__ffs((int)above);
        const uint64_t other = __shfl_sync(WC_FULL_MASK, value, (int)(next == 0 ? lane : next - 1));
        if (next != 0) value += other;
        above &= __ballot_sync(WC_FULL_MASK, (place & 1u) == 0);
        place >>= 1;
    }
    active = active && below == 0;
#endif
    if (active) table.add(rank, value);
}

// Sums of the block's values up to each thread's; `parts` has a word a warp. All threads call it.
WC_DEVICE uint64_t wc_source_sums(uint64_t value, uint64_t* parts) {
    uint64_t sum = wc_warp_inclusive_sum(value);
    if (wc_lane() == 31) parts[wc_warp()] = sum;
    __syncthreads();
    for (uint32_t warp = 0; warp < wc_warp(); ++warp) sum += parts[warp];
    __syncthreads();
    return sum;
}

// The cell that target `number` belongs to: the first one whose end lies above it.
WC_DEVICE uint32_t wc_source_owner(const uint64_t* ends, uint32_t cells, uint64_t number) {
    uint32_t from = 0;
    for (uint32_t length = cells; length > 0;) {
        const uint32_t half = length / 2;
        if (ends[from + half] <= number) {
            from += half + 1;
            length -= half + 1;
        } else {
            length = half;
        }
    }
    return from;
}

#if WC_EXPANSION == 0

// A lane has a cell and adds it to one target after the other; a moving grid of warps.
WC_KERNEL(wc_source_thread, SourceParams, WC_SOURCE_THREADS, 1) {
    char* room = wc_shared();
    const SourceMap map = wc_source_map(p, room);
    const SourceTable table(p, room, 0);
    const uint32_t count = *p.count, lanes = gridDim.x * blockDim.x;
    for (uint64_t from = blockIdx.x * blockDim.x + threadIdx.x - wc_lane(); from < count; from += lanes) {
        SourceCell cell;
        cell.targets = 0;
        if (from + wc_lane() < count) cell = wc_source_cell(p, map, (uint32_t)from + wc_lane());
        for (uint32_t number = 0; __any_sync(WC_FULL_MASK, number < cell.targets); ++number) {
            const bool active = number < cell.targets;
            uint64_t rank = 0, value = 0;
            if (active) {
                rank = cell.rank;
                value = cell.value;
                wc_source_target(p, map, cell.key, number, rank, value);
            }
            wc_source_add(table, active, rank, value, cell.targets);
        }
    }
}

#elif WC_EXPANSION == 1

struct SourceTile {
    uint64_t ends[WC_SOURCE_THREADS], ranks[WC_SOURCE_THREADS], values[WC_SOURCE_THREADS];
    CubeKey keys[WC_SOURCE_THREADS];
    uint64_t parts[WC_SOURCE_THREADS / 32];
};

// A block counts the targets of its cells; then its threads take them in turn.
WC_KERNEL(wc_source_balanced, SourceParams, WC_SOURCE_THREADS, 1) {
    char* room = wc_shared();
    SourceTile& tile = *(SourceTile*)room;
    room += sizeof(SourceTile);
    const SourceMap map = wc_source_map(p, room);
    const SourceTable table(p, room, 0);
    const uint32_t count = *p.count;
    for (uint64_t from = (uint64_t)blockIdx.x * blockDim.x; from < count; from += (uint64_t)gridDim.x * blockDim.x) {
        SourceCell cell;
        cell.targets = 0;
        if (from + threadIdx.x < count) {
            cell = wc_source_cell(p, map, (uint32_t)from + threadIdx.x);
            tile.ranks[threadIdx.x] = cell.rank;
            tile.values[threadIdx.x] = cell.value;
            tile.keys[threadIdx.x] = cell.key;
        }
        tile.ends[threadIdx.x] = wc_source_sums(cell.targets, tile.parts);
        __syncthreads();
        const uint64_t all = tile.ends[WC_SOURCE_THREADS - 1];
        for (uint64_t target = threadIdx.x; target - wc_lane() < all; target += blockDim.x) {
            const bool active = target < all;
            uint64_t rank = 0, value = 0, begin = 0, end = 0;
            if (active) {
                const uint32_t owner = wc_source_owner(tile.ends, WC_SOURCE_THREADS, target);
                begin = owner == 0 ? 0 : tile.ends[owner - 1];
                end = tile.ends[owner];
                rank = tile.ranks[owner];
                value = tile.values[owner];
                wc_source_target(p, map, tile.keys[owner], (uint32_t)(target - begin), rank, value);
            }
            wc_source_add(table, active, rank, value, (uint32_t)(end - begin));
        }
        __syncthreads();
    }
}

#else

// Counts the targets of a parent's cells, up to each cell; gives the count up to the thread's.
WC_DEVICE uint64_t wc_source_count(const SourceParams& p) {
    char* room = wc_shared();
    uint64_t* const parts = (uint64_t*)room;
    room += 8 * (WC_PARENT_THREADS / 32);
    const SourceMap map = wc_source_map(p, room);
    const uint64_t number = (p.first_parent + blockIdx.x) * WC_PARENT_THREADS + threadIdx.x;
    uint64_t targets = 0;
    if (number < *p.count) targets = wc_source_cell(p, map, (uint32_t)number).targets;
    const uint64_t end = wc_source_sums(targets, parts);
    p.ends[(uint64_t)blockIdx.x * WC_PARENT_THREADS + threadIdx.x] = end;
    return end;
}

// Adds targets `first`, `first` + `step`, … of a child, a thread each; `ends` are those of its parent, in shared memory.
WC_DEVICE void wc_source_child(const SourceParams& p, const SourceMap& map, const SourceTable& table,
                               const uint64_t* ends, uint64_t child, uint64_t first, uint64_t step) {
    const uint64_t all = ends[WC_PARENT_THREADS - 1];
    for (uint64_t target = first; target - wc_lane() < all; target += step) {
        const bool active = target < all;
        uint64_t rank = 0, value = 0, begin = 0, end = 0;
        if (active) {
            const uint32_t owner = wc_source_owner(ends, WC_PARENT_THREADS, target);
            begin = owner == 0 ? 0 : ends[owner - 1];
            end = ends[owner];
            const uint64_t number = (p.first_parent + child) * WC_PARENT_THREADS + owner;
            const SourceCell cell = wc_source_cell(p, map, (uint32_t)number);
            rank = cell.rank;
            value = cell.value;
            wc_source_target(p, map, cell.key, (uint32_t)(target - begin), rank, value);
        }
        wc_source_add(table, active, rank, value, (uint32_t)(end - begin));
    }
}

#if WC_LAUNCHES

struct ChildParams {
    const SourceParams* source;
    uint64_t child;
};

// A child: of as many blocks as its targets fill, or of one block that walks over them.
WC_KERNEL(wc_source_child_launched, ChildParams, WC_CHILD_THREADS, 1) {
    const SourceParams& source = *p.source;
    char* room = wc_shared();
    uint64_t* const ends = (uint64_t*)room;
    room += 8 * WC_PARENT_THREADS;
    const SourceMap map = wc_source_map(source, room);
    const SourceTable table(source, room, (source.first_parent + p.child) * (WC_CHILD_THREADS / 32));
    if (threadIdx.x < WC_PARENT_THREADS) ends[threadIdx.x] = source.ends[p.child * WC_PARENT_THREADS + threadIdx.x];
    __syncthreads();
    const uint64_t first = (uint64_t)blockIdx.x * WC_CHILD_THREADS + threadIdx.x;
    wc_source_child(source, map, table, ends, p.child, first, (uint64_t)gridDim.x * WC_CHILD_THREADS);
}

// Copies the parameters to where children read them: those of a launch from a kernel end at 4 KiB.
WC_KERNEL(wc_source_copy, SourceParams, WC_SOURCE_THREADS, 1) {
    const uint64_t* const from = (const uint64_t*)&p;
    for (uint32_t word = threadIdx.x; word < sizeof(SourceParams) / 8; word += blockDim.x) {
        ((uint64_t*)p.copy)[word] = from[word];
    }
}

// A parent, which launches its child. A batch has as many parents as launches may be pending.
WC_KERNEL(wc_source_launching_parent, SourceParams, WC_PARENT_THREADS, 1) {
    const uint64_t end = wc_source_count(p);
    __syncthreads();
    if (threadIdx.x == WC_PARENT_THREADS - 1 && end > 0) {
        ChildParams child;
        child.source = p.copy;
        child.child = blockIdx.x;
        const uint64_t blocks = WC_EXPANSION == 2 ? (end + WC_CHILD_THREADS - 1) / WC_CHILD_THREADS : 1;
        wc_source_child_launched<<<(uint32_t)blocks, WC_CHILD_THREADS, (uint32_t)p.child_shared_bytes>>>(child);
        // A child that is not launched would be missing from the sums.
        if (cudaGetLastError() != cudaSuccess) __trap();
    }
}

#else

// A parent whose child the host launches.
WC_KERNEL(wc_source_parent, SourceParams, WC_PARENT_THREADS, 1) {
    const uint64_t end = wc_source_count(p);
    if (threadIdx.x == WC_PARENT_THREADS - 1) p.blocks[blockIdx.x] = (end + WC_CHILD_THREADS - 1) / WC_CHILD_THREADS;
}

// The blocks of all children before each one; one block, two children a thread.
WC_KERNEL(wc_source_children, SourceParams, WC_CHILD_THREADS, 1) {
    uint64_t* const parts = (uint64_t*)wc_shared();
    const uint64_t one = 2 * threadIdx.x < p.parents ? p.blocks[2 * threadIdx.x] : 0;
    const uint64_t other = 2 * threadIdx.x + 1 < p.parents ? p.blocks[2 * threadIdx.x + 1] : 0;
    const uint64_t up_to = wc_source_sums(one + other, parts);
    p.blocks[2 * threadIdx.x] = up_to - other - one;
    p.blocks[2 * threadIdx.x + 1] = up_to - other;
    if (threadIdx.x == WC_CHILD_THREADS - 1) p.blocks[WC_BATCH_CHILDREN] = up_to;
}

// The children of a batch of parents, launched by the host. Blocks walk over the blocks of children of many blocks, or
// over children of one block.
WC_KERNEL(wc_source_child_grid, SourceParams, WC_CHILD_THREADS, 1) {
    char* room = wc_shared();
    uint64_t* const ends = (uint64_t*)room;
    room += 8 * WC_PARENT_THREADS;
    const SourceMap map = wc_source_map(p, room);
    const SourceTable table(p, room, 0);
    const uint64_t all = WC_EXPANSION == 2 ? p.blocks[WC_BATCH_CHILDREN] : p.parents;
    for (uint64_t block = blockIdx.x; block < all; block += gridDim.x) {
        uint64_t child = block, first = threadIdx.x, step = WC_CHILD_THREADS;
        if (WC_EXPANSION == 2) {
            child = wc_source_owner(p.blocks + 1, WC_BATCH_CHILDREN, block);
            first += (block - p.blocks[child]) * WC_CHILD_THREADS;
            step = ~0ull >> 1;
        }
        if (threadIdx.x < WC_PARENT_THREADS) ends[threadIdx.x] = p.ends[child * WC_PARENT_THREADS + threadIdx.x];
        __syncthreads();
        wc_source_child(p, map, table, ends, child, first, step);
        __syncthreads();
    }
}

#endif

#endif
