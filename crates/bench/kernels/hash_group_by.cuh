// Hash aggregation: the sum of values of each key, in any order of keys.
//
// Input: n keys and values of 32 bits. Output: keys, sums, and the number of groups; groups past `capacity` are counted
// and not written. A table in device memory, all zeros before, has slots of 16 bytes: a word with the key and a bit
// that says so, and the sum; a power of two of them, linear probing. `lost` grows where a key finds no slot.
// Two ways to it. From rows: rows of a warp with one key are added up first, then one lane adds to the table. From
// private tables: a block sums into a table in shared memory, with several sums of a key where there is room, a lane
// each in turn, and adds its groups to the table at the end; what its table does not hold goes past it.
// Mapping: blocks walk over the rows, a lane has VEC * ROWS at once. Shared memory: the private table. Bytes: keys and
// values once; a sector of the table is read and one added to for each row that is not added up before. Numerics: sums
// wrap at 2^64.
// Source: Ye, Ross, Vesdapunt: Scalable Aggregation on Multicore Processors (2011), independent and shared tables;
// sums of lanes with one key after Westphal, Voting and Shuffling to Optimize Atomic Operations (NVIDIA, 2015).

struct GroupParams {
    const uint32_t* keys;
    const uint32_t* values;
    uint64_t n;
    uint64_t aligned;
    KeySlots slots;       // of the table in device memory
    uint64_t* table;
    uint64_t* lost;       // above 0 if any row found no slot (a group of a private table counts once); zero before
    uint64_t shared_log;  // private tables: slots are 2^shared_log
    uint64_t columns;     // private tables: sums of a key, a power of two up to 32
};

constexpr uint64_t GROUP_TAKEN = 1ull << 32;
typedef uint32_t GroupRows[WC_ROWS][WC_VEC];
template <typename Each> WC_DEVICE void group_each(const GroupParams& p, Each each) {
    wc_each_pair<WC_ROWS>(p.keys, p.values, p.n, p.aligned != 0, each);
}

// Adds to the sum of a key, whose first slot is `at` and held `held` before.
WC_DEVICE void group_add(const GroupParams& p, uint32_t key, uint64_t at, uint64_t held, uint64_t value,
                         uint64_t rows) {
    const uint64_t own = GROUP_TAKEN | key;
    for (uint64_t step = 0;;) {
        if (held == 0) held = wc_compare_swap(p.table + at * 2, 0, own);
        if (held == 0 || held == own) {
            wc_add(p.table + at * 2 + 1, value);
            return;
        }
        if (++step > p.slots.mask) break;
        at = (at + 1) & p.slots.mask;
        held = wc_load_relaxed(p.table + at * 2);
    }
    wc_add(p.lost, rows);
}
WC_DEVICE void group_add(const GroupParams& p, uint32_t key, uint64_t value, uint64_t rows) {
    const uint64_t at = wc_home(p.slots, key);
    group_add(p, key, at, wc_load_relaxed(p.table + at * 2), value, rows);
}

// The sum of the values of lanes with one's own key, in the first of these lanes, and zero rows in the others. A lane
// adds what the next lane with its key has, in rounds in which every other one of them is done.
WC_DEVICE uint64_t group_lanes(uint32_t key, uint64_t sum, bool is_row, uint32_t& rows) {
    const uint32_t there = __ballot_sync(WC_FULL_MASK, is_row);
    const uint32_t same = __match_any_sync(WC_FULL_MASK, key) & there, below = (1u << wc_lane()) - 1;
    uint32_t rank = __popc(same & below);
    uint32_t later = is_row ? same & ~below & ~(1u << wc_lane()) : 0u;
    rows = is_row && rank == 0 ? __popc(same) : 0u;
    while (__any_sync(WC_FULL_MASK, later != 0)) {
        const int next = __ffs((int)later);
        const uint64_t other = __shfl_sync(WC_FULL_MASK, sum, next == 0 ? 0 : next - 1);
        if (next != 0) sum += other;
        later &= __ballot_sync(WC_FULL_MASK, (rank & 1u) == 0);
        rank >>= 1;
    }
    return sum;
}

WC_KERNEL(hash_group_by_rows, GroupParams, WC_THREADS, WC_BLOCKS) {
    constexpr int ITEMS = WC_ROWS * WC_VEC;
    group_each(p, [&](GroupRows& keys, GroupRows& values, uint32_t there) {
        // All first slots are asked for before one of them is looked at.
        uint64_t held[ITEMS];
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const uint64_t at = wc_home(p.slots, keys[i / WC_VEC][i % WC_VEC]);
            held[i] = wc_load_relaxed(p.table + at * 2);
        }
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const uint32_t key = keys[i / WC_VEC][i % WC_VEC];
            uint32_t rows;
            const uint64_t sum = group_lanes(key, values[i / WC_VEC][i % WC_VEC], there >> i & 1u, rows);
            if (rows != 0) group_add(p, key, wc_home(p.slots, key), held[i], sum, rows);
        }
    });
}

constexpr uint32_t GROUP_EMPTY = ~0u, GROUP_STEPS_MAX = 64;

WC_KERNEL(hash_group_by_private, GroupParams, WC_SHARED_THREADS, 1) {
    const uint32_t slots = 1u << p.shared_log, columns = (uint32_t)p.columns;
    // Keys, then sums by their low and their high halves: a sum of 64 bits has no atomic of shared memory.
    volatile uint32_t* held_keys = (volatile uint32_t*)wc_shared();
    uint32_t* table_keys = (uint32_t*)wc_shared();
    uint32_t* low = table_keys + slots;
    uint32_t* high = low + slots * columns;
    for (uint32_t at = threadIdx.x; at < slots; at += blockDim.x) table_keys[at] = GROUP_EMPTY;
    for (uint32_t at = threadIdx.x; at < slots * columns * 2; at += blockDim.x) low[at] = 0;
    __syncthreads();
    const uint32_t column = wc_lane() & (columns - 1), shift = 32 - (uint32_t)p.shared_log;
    group_each(p, [&](GroupRows& keys, GroupRows& values, uint32_t there) {
#pragma unroll
        for (int i = 0; i < WC_ROWS * WC_VEC; ++i) {
            const uint32_t key = keys[i / WC_VEC][i % WC_VEC], value = values[i / WC_VEC][i % WC_VEC];
            // The mark of an empty slot is a key too, which goes to the table in device memory.
            const bool is_row = there >> i & 1u, may_be_held = is_row && key != GROUP_EMPTY;
            uint32_t at = key * (uint32_t)p.slots.factor >> shift, steps = may_be_held ? GROUP_STEPS_MAX : 0;
            bool is_held = false;
            while (steps != 0) {
                uint32_t held = held_keys[at];
                if (held == GROUP_EMPTY) held = atomicCAS(table_keys + at, GROUP_EMPTY, key);
                is_held = held == GROUP_EMPTY || held == key;
                steps = is_held ? 0 : steps - 1;
                if (!is_held) at = (at + 1) & (slots - 1);
            }
            __syncwarp();
            if (is_held) {
                const uint32_t cell = at * columns + column, before = atomicAdd(low + cell, value);
                if (before + value < before) atomicAdd(high + cell, 1u);
            } else if (is_row) {
                group_add(p, key, value, 1);
            }
            __syncwarp();
        }
    });
    __syncthreads();
    for (uint32_t at = threadIdx.x; at < slots; at += blockDim.x) {
        if (table_keys[at] == GROUP_EMPTY) continue;
        uint64_t sum = 0;
        for (uint32_t k = 0; k < columns; ++k) {
            const uint32_t cell = at * columns + ((k + at) & (columns - 1));
            sum += (uint64_t)high[cell] << 32 | low[cell];
        }
        group_add(p, table_keys[at], sum, 1);
    }
}

struct GroupOutParams {
    const uint64_t* table;
    uint64_t slots;
    uint32_t* keys;
    uint64_t* sums;
    uint64_t capacity;
    uint64_t* groups;  // zero before
};

// Writes the groups of a table; a block takes places for those of its slots at once.
WC_KERNEL(hash_group_by_out, GroupOutParams, WC_OUT_THREADS, 1) {
    uint32_t* parts = (uint32_t*)wc_shared();
    uint64_t* first = (uint64_t*)(parts + 32);
    constexpr uint32_t EACH = 8;
    const uint64_t from = (uint64_t)blockIdx.x * blockDim.x * EACH;
    ulonglong2 slots[EACH];
    uint32_t marks[EACH], before = 0;
#pragma unroll
    for (uint32_t i = 0; i < EACH; ++i) {
        const uint64_t at = from + i * blockDim.x + threadIdx.x;
        slots[i].x = 0;
        if (at < p.slots) {
            const int4 words = wc_load16_stream(p.table + at * 2);
            memcpy(&slots[i], &words, 16);
        }
    }
    uint32_t count = 0;
#pragma unroll
    for (uint32_t i = 0; i < EACH; ++i) {
        marks[i] = __ballot_sync(WC_FULL_MASK, slots[i].x != 0);
        count += __popc(marks[i]);
    }
    if (wc_lane() == 0) parts[wc_warp()] = count;
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t all = 0;
        for (uint32_t warp = 0; warp < blockDim.x / 32; ++warp) all += parts[warp];
        *first = all == 0 ? 0 : wc_fetch_add(p.groups, (uint64_t)all);
    }
    for (uint32_t warp = 0; warp < wc_warp(); ++warp) before += parts[warp];
    __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < EACH; ++i) {
        const uint64_t place = *first + before + __popc(marks[i] & ((1u << wc_lane()) - 1));
        if (slots[i].x != 0 && place < p.capacity) {
            p.keys[place] = (uint32_t)slots[i].x;
            p.sums[place] = slots[i].y;
        }
        before += __popc(marks[i]);
    }
}
