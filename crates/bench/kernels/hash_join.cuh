// Hash join: the sum of A.v + B.v over the pairs of rows with A.k = B.k, and the number of pairs; keys of A are unique.
//
// Input: keys and values of 32 bits of both sides, and a range that has all keys of A. Two forms of table. Linear
// probing: pairs of slots of 8 bytes, the relative key low and the value high, a power of two of them, all ones where
// empty (the range leaves out one key at least, so no relative key is all ones); a key goes to the first empty slot
// from its pair on. Half of the slots being empty, nine of ten keys are in their own pair, which one load of 16 bytes
// brings. Direct address: a value for each key of the range, and a bit that says whether there is one; if there is one
// for each, bits are not asked for.
// Mapping: blocks walk over the rows, a lane has several at once and asks for all their slots before it looks at one;
// what does not end there goes on row by row. Shared memory: sums of warps; a whole table, where it fits. Registers:
// rows of a lane, their slots. Bytes: keys and values once; a sector of 32 bytes of the table for each probe, from
// shared memory, the L2 cache or device memory. Numerics: values are unsigned; sums wrap at 2^64.
// Source: Shanbhag's thesis, 3.6.3 (query Q4); linear probing as Knuth 3, 6.4.

struct JoinBuildParams {
    const uint32_t* keys;
    const uint32_t* values;
    uint64_t n;
    KeySlots slots;
    uint64_t* table;   // slots, or values
    uint32_t* bits;    // direct address: a bit a key
    uint64_t* status;  // rows whose key was there already, and rows outside of the range; zero before
};

struct JoinProbeParams {
    const uint32_t* keys;
    const uint32_t* values;
    uint64_t n;
    uint64_t aligned;
    KeySlots slots;
    const uint64_t* table;
    const uint32_t* bits;
    const uint64_t* status;  // direct address: of the build
    uint64_t rows;           // of the build
    uint64_t table_words;    // words of 16 bytes: of the table, values and bits together
    uint64_t* out;           // sum and pairs; zero before
};

constexpr uint64_t JOIN_EMPTY = ~0ull;

WC_DEVICE void join_report(uint64_t* status, uint64_t found, uint64_t outside) {
    if (found != 0) wc_add(status, found);
    if (outside != 0) wc_add(status + 1, outside);
}

WC_KERNEL(hash_join_build_linear, JoinBuildParams, 256, 4) {
    uint64_t found = 0, outside = 0;
    const uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t row = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; row < p.n; row += stride) {
        const uint32_t relative = wc_relative(p.slots, wc_load_stream(p.keys + row));
        if (relative > (uint32_t)p.slots.width) {
            ++outside;
            continue;
        }
        const uint64_t slot = (uint64_t)wc_load_stream(p.values + row) << 32 | relative;
        const uint64_t last = p.slots.mask * 2 + 1;
        for (uint64_t at = (uint64_t)wc_home(p.slots, relative) * 2;; at = (at + 1) & last) {
            const uint64_t held = wc_compare_swap(p.table + at, JOIN_EMPTY, slot);
            if (held == JOIN_EMPTY) break;
            if ((uint32_t)held == relative) {
                ++found;
                break;
            }
        }
    }
    join_report(p.status, found, outside);
}

WC_KERNEL(hash_join_build_direct, JoinBuildParams, 256, 4) {
    uint64_t found = 0, outside = 0;
    const uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t row = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; row < p.n; row += stride) {
        const uint32_t relative = wc_relative(p.slots, wc_load_stream(p.keys + row)), bit = 1u << relative % 32;
        if (relative > (uint32_t)p.slots.width) {
            ++outside;
        } else if (wc_fetch_or(p.bits + relative / 32, bit) & bit) {
            ++found;
        } else {
            ((uint32_t*)p.table)[relative] = wc_load_stream(p.values + row);
        }
    }
    join_report(p.status, found, outside);
}

// Adds the sums of all threads to the output; `parts` has two words a warp.
WC_DEVICE void join_finish(uint64_t* out, uint64_t sum, uint64_t pairs, uint64_t* parts) {
    sum = wc_warp_sum(sum);
    pairs = wc_warp_sum(pairs);
    __syncthreads();
    wc_leave(parts, sum);
    wc_leave(parts + 32, pairs);
    __syncthreads();
    if (wc_warp() != 0) return;
    sum = wc_warp_sum(wc_left(parts));
    pairs = wc_warp_sum(wc_left(parts + 32));
    if (wc_lane() == 0 && pairs != 0) {
        wc_add(out, sum);
        wc_add(out + 1, pairs);
    }
}

// The block's copy of the table, in shared memory behind the words of `join_finish`.
constexpr uint32_t JOIN_PARTS_BYTES = 64 * 8;
WC_DEVICE char* join_copy(const uint64_t* table, uint64_t words, uint32_t queue_words) {
    int4* copy = (int4*)(wc_shared() + JOIN_PARTS_BYTES + queue_words * 4);
    for (uint64_t at = threadIdx.x; at < words; at += blockDim.x) copy[at] = wc_load_cached((const int4*)table + at);
    __syncthreads();
    return (char*)copy;
}

template <bool SHARED, typename T> WC_DEVICE T join_load(const T* address) {
    return SHARED ? *address : wc_load_cached(address);
}

// Whether a probe ends at a pair of slots: at its key, or at an empty slot, the second of which is taken last.
WC_DEVICE bool join_look(const uint4& slots, uint32_t key, uint32_t value, bool is_row, uint64_t& sum,
                         uint32_t& pairs) {
    const bool is_first = slots.x == key, is_second = slots.z == key, is_pair = is_row && (is_first || is_second);
    sum += is_pair ? (uint64_t)value + (is_first ? slots.y : slots.w) : 0ull;
    pairs += is_pair ? 1 : 0;
    return is_first || is_second || slots.z == (uint32_t)JOIN_EMPTY;
}

// Rows of a lane: a pair of slots takes four registers.
constexpr int LINEAR_ROWS = 1, LINEAR_ITEMS = LINEAR_ROWS * WC_VEC;
typedef uint32_t LinearRows[LINEAR_ROWS][WC_VEC];

// Makes keys relative and asks for the pair of slots at which each begins, also of a key that no row has.
template <bool SHARED>
WC_DEVICE void join_ask(const KeySlots& shape, const uint4* table, LinearRows& keys, uint32_t (&at)[LINEAR_ITEMS],
                        uint4 (&slots)[LINEAR_ITEMS]) {
#pragma unroll
    for (int i = 0; i < LINEAR_ITEMS; ++i) {
        uint32_t& key = keys[i / WC_VEC][i % WC_VEC];
        key = wc_relative(shape, key);
        at[i] = wc_home(shape, key);
        slots[i] = join_load<SHARED>(table + at[i]);
    }
}

// The rows of a warp whose probe goes on behind its first pair: keys, values, and the pair that was looked at last.
// Collected rows are probed 32 at a time, a lane each; without the queue the longest probe of a warp's rows costs each
// of its lanes as many steps.
constexpr uint32_t QUEUE_ROWS = 32 + 32 * LINEAR_ITEMS;
struct JoinQueue {
    uint32_t* rows;    // keys, values, places
    uint32_t waiting;  // the same in all lanes

    // Appends the rows of the lanes with `is_open`.
    WC_INLINE void put(bool is_open, uint32_t key, uint32_t value, uint32_t place) {
        const uint32_t open = __ballot_sync(WC_FULL_MASK, is_open);
        if (is_open) {
            uint32_t* row = rows + waiting + __popc(open & ((1u << wc_lane()) - 1));
            row[0] = key;
            row[QUEUE_ROWS] = value;
            row[2 * QUEUE_ROWS] = place;
        }
        waiting += __popc(open);
    }
};

// Probes a table that is copied to shared memory.
WC_DEVICE void join_probe_queued(const JoinProbeParams& p) {
    const uint32_t queue_words = blockDim.x / 32 * 3 * QUEUE_ROWS;
    const uint4* table = (const uint4*)join_copy(p.table, p.table_words, queue_words);
    const uint32_t mask = (uint32_t)p.slots.mask, width = (uint32_t)p.slots.width;
    uint64_t sum = 0;
    uint32_t pairs = 0;
    JoinQueue queue = {(uint32_t*)(wc_shared() + JOIN_PARTS_BYTES) + wc_warp() * 3 * QUEUE_ROWS, 0};
    // Looks at the next pair of slots for the last rows of the queue, 32 at most.
    const auto look_on = [&](uint32_t count) {
        const bool is_row = wc_lane() < count;
        queue.waiting -= count;
        __syncwarp();
        uint32_t key = 0, value = 0, place = 0;
        if (is_row) {
            const uint32_t* row = queue.rows + queue.waiting + wc_lane();
            key = row[0];
            value = row[QUEUE_ROWS];
            place = (row[2 * QUEUE_ROWS] + 1) & mask;
        }
        __syncwarp();
        const uint4 slot = join_load<true>(table + place);
        const bool ends = join_look(slot, key, value, is_row, sum, pairs);
        queue.put(is_row && !ends, key, value, place);
    };
    wc_each_pair<LINEAR_ROWS>(p.keys, p.values, p.n, p.aligned != 0,
                              [&](LinearRows& keys, LinearRows& values, uint32_t there) {
        uint32_t at[LINEAR_ITEMS];
        uint4 slots[LINEAR_ITEMS];
        join_ask<true>(p.slots, table, keys, at, slots);
#pragma unroll
        for (int i = 0; i < LINEAR_ITEMS; ++i) {
            const uint32_t key = keys[i / WC_VEC][i % WC_VEC], value = values[i / WC_VEC][i % WC_VEC];
            const bool is_row = (there >> i & 1u) && key <= width;
            const bool ends = join_look(slots[i], key, value, is_row, sum, pairs);
            queue.put(is_row && !ends, key, value, at[i]);
        }
        while (queue.waiting >= 32) look_on(32);
    });
    while (queue.waiting > 0) look_on(min(queue.waiting, 32u));
    join_finish(p.out, sum, pairs, (uint64_t*)wc_shared());
}

// Probes a table in device memory: collecting rows takes longer there than the steps of a warp (H200: 1.95 against
// 1.37 ms for 2^28 probes of 256 KB).
WC_DEVICE void join_probe_linear(const JoinProbeParams& p) {
    const uint4* table = (const uint4*)p.table;
    const uint32_t mask = (uint32_t)p.slots.mask, width = (uint32_t)p.slots.width;
    uint64_t sum = 0;
    uint32_t pairs = 0;
    wc_each_pair<LINEAR_ROWS>(p.keys, p.values, p.n, p.aligned != 0,
                              [&](LinearRows& keys, LinearRows& values, uint32_t open) {
        uint32_t at[LINEAR_ITEMS];
        uint4 slots[LINEAR_ITEMS];
        join_ask<false>(p.slots, table, keys, at, slots);
#pragma unroll
        for (int i = 0; i < LINEAR_ITEMS; ++i) {
            const uint32_t key = keys[i / WC_VEC][i % WC_VEC];
            const bool is_row = (open >> i & 1u) && key <= width;
            if (!is_row || join_look(slots[i], key, values[i / WC_VEC][i % WC_VEC], is_row, sum, pairs)) {
                open &= ~(1u << i);
            }
        }
        // The rows that are left, one of each lane at a time: a tenth of them, so that most warps have some.
        while (__any_sync(WC_FULL_MASK, open != 0)) {
            const uint32_t next = open & (0u - open);
            uint32_t key = 0, value = 0, place = 0;
#pragma unroll
            for (int i = 0; i < LINEAR_ITEMS; ++i) {
                if (next != 1u << i) continue;
                key = keys[i / WC_VEC][i % WC_VEC];
                value = values[i / WC_VEC][i % WC_VEC];
                place = at[i] = (at[i] + 1) & mask;
            }
            const uint4 slot = join_load<false>(table + place);
            if (join_look(slot, key, value, next != 0, sum, pairs)) open &= ~next;
        }
    });
    join_finish(p.out, sum, pairs, (uint64_t*)wc_shared());
}

template <bool SHARED> WC_DEVICE void join_probe_direct(const JoinProbeParams& p) {
    const uint32_t* table = (const uint32_t*)p.table;
    const uint32_t* bits = p.bits;
    if (SHARED) {
        table = (const uint32_t*)join_copy(p.table, p.table_words, 0);
        bits = table + (p.bits - (const uint32_t*)p.table);
    }
    const uint32_t width = (uint32_t)p.slots.width;
    // Without a repeated key there are as many values as rows.
    const bool is_full = p.rows == p.slots.width + 1 && p.status[0] == 0 && p.status[1] == 0;
    uint64_t sum = 0;
    uint32_t pairs = 0;
    constexpr int ITEMS = WC_ROWS * WC_VEC;
    typedef uint32_t Rows[WC_ROWS][WC_VEC];
    wc_each_pair<WC_ROWS>(p.keys, p.values, p.n, p.aligned != 0, [&](Rows& keys, Rows& values, uint32_t open) {
        uint32_t found[ITEMS];
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            uint32_t& key = keys[i / WC_VEC][i % WC_VEC];
            key = wc_relative(p.slots, key);
            if (key > width) open &= ~(1u << i);
        }
        if (!is_full) {
#pragma unroll
            for (int i = 0; i < ITEMS; ++i) {
                found[i] = open >> i & 1u ? join_load<SHARED>(bits + keys[i / WC_VEC][i % WC_VEC] / 32) : 0u;
            }
#pragma unroll
            for (int i = 0; i < ITEMS; ++i) {
                if (!(found[i] >> keys[i / WC_VEC][i % WC_VEC] % 32 & 1u)) open &= ~(1u << i);
            }
        }
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            found[i] = open >> i & 1u ? join_load<SHARED>(table + keys[i / WC_VEC][i % WC_VEC]) : 0u;
        }
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            if (open >> i & 1u) sum += (uint64_t)values[i / WC_VEC][i % WC_VEC] + found[i];
        }
        pairs += __popc(open);
    });
    join_finish(p.out, sum, pairs, (uint64_t*)wc_shared());
}

WC_KERNEL(hash_join_linear, JoinProbeParams, WC_THREADS, WC_BLOCKS) { join_probe_linear(p); }
WC_KERNEL(hash_join_linear_shared, JoinProbeParams, WC_SHARED_THREADS, 1) { join_probe_queued(p); }
WC_KERNEL(hash_join_direct, JoinProbeParams, WC_THREADS, WC_BLOCKS) { join_probe_direct<false>(p); }
WC_KERNEL(hash_join_direct_shared, JoinProbeParams, WC_SHARED_THREADS, 1) { join_probe_direct<true>(p); }
