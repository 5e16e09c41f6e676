// Kernels that add relevant cells to all their targets. Text in front is source_tables.cuh; WC_EXPANSION and
// WC_LAUNCHES choose the kernels.
//
// Source: Meinke, 4.2 (a thread a cell), 4.3 (upper-bound search in prefix sums, children).

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

// Adds targets `first`, `first` + `step`, … of a child, a thread each; `ends` are those of its parent, in shared
// memory.
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
