// Radix partition: keys of any type, and payload of any size beside them or the numbers of rows, moved to 256
// partitions by the hash of the key or by its place in a range; in a partition rows lie in any order.
//
// Input: n keys of WC_KEY, payload of WC_PAYLOAD where that is defined: n elements, or none (null), for the numbers of
// rows. Output: both by partition, and the row that each partition begins at. Three kernels: counts by partition, the
// places where partitions begin, and the move. Mapping: a block a tile; a row's rank among those of its partition in
// the tile comes from a counter in shared memory, the tile's place in each partition from a counter in device memory.
// Shared memory: the tile in its new order and two words a partition. Registers: a lane's rows. Bytes: keys three
// times, payload twice; runs of a tile are written by neighbouring lanes. Numerics: keys count by their ordered bits
// (keys.cuh). Source: Schuh, Chen, Dittrich: An Experimental Comparison of Thirteen Relational Equi-Joins in Main
// Memory (2016), section 3 (software write-combining), with shared memory as the buffer.

#define WC_TILE (WC_THREADS * WC_ROWS * WC_VEC)
constexpr uint32_t PARTITIONS = 1u << WC_PARTITION_BITS;
typedef WcKey<WC_KEY>::Bits KeyBits;

// Where a key belongs: ordered bits less `least`; above `width` in the last partition.
struct PartitionOf {
    uint64_t least[2];  // low word, high word
    uint64_t width[2];
    uint64_t hashed;  // or by the bits from `shift` on
    uint64_t shift;
};

struct PartitionParams {
    const WC_KEY* keys;
    const WC_PAYLOAD_TYPE* values;
    WC_KEY* keys_out;
    WC_PAYLOAD_TYPE* values_out;
    uint64_t n;
    uint64_t aligned;
    PartitionOf of;
    uint64_t* counts;  // a word a partition: zero before, then counts, then the next free row
    uint64_t* starts;  // the first row of each partition, and n
};

WC_DEVICE uint128_t wc_wide(const uint64_t (&words)[2]) { return (uint128_t)words[1] << 64 | words[0]; }

// The high bits of a product with an odd number (multiply-shift hashing: Dietzfelbinger et al. 1997), as in
// key_slots.cuh for keys of 32 bits.
WC_DEVICE uint32_t wc_hash_of(uint32_t bits) { return bits * 0x9e3779b1u >> (32 - WC_PARTITION_BITS); }
WC_DEVICE uint32_t wc_hash_of(uint64_t bits) {
    return (uint32_t)(bits * 0x9e3779b97f4a7c15ull >> (64 - WC_PARTITION_BITS));
}
WC_DEVICE uint32_t wc_hash_of(uint128_t bits) {
    return wc_hash_of((uint64_t)bits ^ (uint64_t)(bits >> 64) * (uint64_t)0xc2b2ae3d27d4eb4full);
}
WC_DEVICE uint32_t wc_hash_of(uint8_t bits) { return wc_hash_of((uint32_t)bits); }

WC_DEVICE uint32_t wc_partition_of(const PartitionOf& of, WC_KEY key) {
    const KeyBits relative = (KeyBits)(WcKey<WC_KEY>::to_bits(key) - (KeyBits)wc_wide(of.least));
    if (relative > (KeyBits)wc_wide(of.width)) return PARTITIONS - 1;
    if (of.hashed) return wc_hash_of(relative);
    const KeyBits place = relative >> (uint32_t)of.shift;
    return place >= PARTITIONS - 1 ? PARTITIONS - 1 : (uint32_t)place;
}

// A block has a counter of each partition for each lane: lanes of a warp meet in no bank.
WC_KERNEL(radix_partition_count, PartitionParams, WC_COUNT_THREADS, 1) {
    uint32_t* cells = (uint32_t*)wc_shared();
    for (uint32_t at = threadIdx.x; at < PARTITIONS * WC_COUNT_COLUMNS; at += blockDim.x) cells[at] = 0;
    __syncthreads();
    uint32_t* own = cells + (wc_lane() & (WC_COUNT_COLUMNS - 1));
    wc_each_key(p.keys, p.n, [&](WC_KEY key) {
        atomicAdd(own + wc_partition_of(p.of, key) * WC_COUNT_COLUMNS, 1u);
    });
    __syncthreads();
    for (uint32_t bin = threadIdx.x; bin < PARTITIONS; bin += blockDim.x) {
        uint64_t sum = 0;
        for (uint32_t k = 0; k < WC_COUNT_COLUMNS; ++k) {
            sum += cells[bin * WC_COUNT_COLUMNS + ((k + bin) & (WC_COUNT_COLUMNS - 1))];
        }
        if (sum != 0) wc_add(p.counts + bin, sum);
    }
}

// One warp: lane i has the partitions from i * PARTITIONS / 32 on.
WC_KERNEL(radix_partition_starts, PartitionParams, 32, 1) {
    const uint32_t each = PARTITIONS / 32, first = threadIdx.x * each;
    uint64_t own = 0;
    for (uint32_t i = 0; i < each; ++i) own += p.counts[first + i];
    uint64_t start = wc_warp_inclusive_sum(own) - own;
    for (uint32_t i = 0; i < each; ++i) {
        const uint64_t count = p.counts[first + i];
        p.starts[first + i] = p.counts[first + i] = start;
        start += count;
    }
    if (threadIdx.x == 31) p.starts[PARTITIONS] = start;
}

// Moves rows: with their payload, or with their numbers.
template <bool NUMBERS> WC_DEVICE void wc_move_rows(const PartitionParams& p) {
    WC_KEY* swap_keys = (WC_KEY*)wc_shared();
    WC_PAYLOAD_TYPE* swap_values = (WC_PAYLOAD_TYPE*)(swap_keys + WC_TILE);
#ifdef WC_PAYLOAD
    uint64_t* offsets = (uint64_t*)(swap_values + WC_TILE);
#else
    uint64_t* offsets = (uint64_t*)(swap_keys + WC_TILE);
#endif
    uint32_t* counters = (uint32_t*)(offsets + PARTITIONS);
    uint32_t* parts = counters + PARTITIONS;
    for (uint32_t bin = threadIdx.x; bin < PARTITIONS; bin += WC_THREADS) counters[bin] = 0;

    const uint64_t tile_row = (uint64_t)blockIdx.x * WC_TILE, from = tile_row + wc_warp() * (32 * WC_VEC * WC_ROWS);
    const uint32_t rows = (uint32_t)(p.n - tile_row < WC_TILE ? p.n - tile_row : WC_TILE);
    WC_KEY keys[WC_ROWS][WC_VEC];
    wc_load_part<WC_VEC, WC_ROWS>(keys, p.keys, from, p.n, p.aligned != 0, (WC_KEY)0);
#ifdef WC_PAYLOAD
    WC_PAYLOAD values[WC_ROWS][WC_VEC];
    if constexpr (!NUMBERS) {
        wc_load_part<WC_VEC, WC_ROWS>(values, p.values, from, p.n, p.aligned != 0, (WC_PAYLOAD)0);
    } else {
#pragma unroll
        for (int j = 0; j < WC_ROWS; ++j) {
#pragma unroll
            for (int k = 0; k < WC_VEC; ++k) values[j][k] = (WC_PAYLOAD)(from + (j * 32 + wc_lane()) * WC_VEC + k);
        }
    }
#endif
    __syncthreads();

    // Partition and rank of a row, 16 bits each.
    uint32_t ranks[WC_ROWS][WC_VEC];
    static_assert(WC_TILE <= 65536 && PARTITIONS <= 65536, "a rank and a partition have 16 bits");
#pragma unroll
    for (int j = 0; j < WC_ROWS; ++j) {
#pragma unroll
        for (int k = 0; k < WC_VEC; ++k) {
            if (from + (j * 32 + wc_lane()) * WC_VEC + k >= p.n) continue;
            const uint32_t bin = wc_partition_of(p.of, keys[j][k]);
            ranks[j][k] = bin << 16 | atomicAdd(counters + bin, 1u);
        }
    }
    __syncthreads();

    // The place of each partition in the tile, and the row of the output that it goes to.
    static_assert(PARTITIONS % 32 == 0 && PARTITIONS <= WC_THREADS, "a thread has a partition");
    uint32_t count = 0, start = 0;
    if (threadIdx.x < PARTITIONS) {
        count = counters[threadIdx.x];
        start = wc_warp_inclusive_sum(count);
        if (wc_lane() == 31) parts[wc_warp()] = start;
    }
    __syncthreads();
    if (threadIdx.x < PARTITIONS) {
        start -= count;
        for (uint32_t warp = 0; warp < wc_warp(); ++warp) start += parts[warp];
        counters[threadIdx.x] = start;
        const uint64_t row = count == 0 ? 0 : wc_fetch_add(p.counts + threadIdx.x, (uint64_t)count);
        offsets[threadIdx.x] = row - start;
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < WC_ROWS; ++j) {
#pragma unroll
        for (int k = 0; k < WC_VEC; ++k) {
            if (from + (j * 32 + wc_lane()) * WC_VEC + k >= p.n) continue;
            const uint32_t at = counters[ranks[j][k] >> 16] + (ranks[j][k] & 0xffffu);
            swap_keys[at] = keys[j][k];
#ifdef WC_PAYLOAD
            swap_values[at] = values[j][k];
#endif
        }
    }
    __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < WC_ROWS * WC_VEC; ++i) {
        const uint32_t at = i * WC_THREADS + threadIdx.x;
        if (at >= rows) continue;
        const WC_KEY key = swap_keys[at];
        const uint64_t row = offsets[wc_partition_of(p.of, key)] + at;
        p.keys_out[row] = key;
#ifdef WC_PAYLOAD
        p.values_out[row] = swap_values[at];
#endif
    }
}

WC_KERNEL(radix_partition_move, PartitionParams, WC_THREADS, WC_BLOCKS) { wc_move_rows<false>(p); }
#ifdef WC_PAYLOAD
WC_KERNEL(radix_partition_number, PartitionParams, WC_THREADS, WC_BLOCKS) { wc_move_rows<true>(p); }
#endif
