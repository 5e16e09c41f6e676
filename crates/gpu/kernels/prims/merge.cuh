// Merge of two sorted sequences of keys, with payload, into one; stable: of equal keys those of the first come first.
//
// Text in front defines WC_MERGE_KEY, WC_MERGE_THREADS, WC_MERGE_ITEMS and, for pairs, WC_MERGE_PAYLOAD.
// Inputs: keys and payload of both. Output: keys and payload. Mapping: a block has MERGE_TILE rows of the output; one
// kernel finds where each tile begins in both inputs, a thread a tile; then a thread of a tile has MERGE_ITEMS rows.
// Shared memory: MERGE_TILE keys, and a word a row for pairs. Bytes: keys and payload once in and once out, 8 a tile.
// Numerics: keys pass through their bits, as in radix_sort.cuh.
// Source: O. Green, R. McColl, D. Bader, "GPU Merge Path: A GPU Merging Algorithm", 2012.
#pragma once

typedef WC_MERGE_KEY MergeKey;
typedef WcKey<MergeKey>::Bits MergeBits;
#ifdef WC_MERGE_PAYLOAD
typedef WC_MERGE_PAYLOAD MergePayload;
constexpr bool MERGE_PAIRS = true;
#else
typedef uint32_t MergePayload;
constexpr bool MERGE_PAIRS = false;
#endif
constexpr uint32_t MERGE_THREADS = WC_MERGE_THREADS, MERGE_ITEMS = WC_MERGE_ITEMS;
constexpr uint32_t MERGE_TILE = MERGE_THREADS * MERGE_ITEMS;

struct MergeParams {
    const MergeKey* first;
    const MergeKey* second;
    MergeKey* out;
    const MergePayload* first_values;
    const MergePayload* second_values;
    MergePayload* out_values;
    uint64_t first_rows, second_rows;
    uint64_t descending;  // 1: the largest key comes first
    uint64_t* splits;     // rows of the first in front of each tile, and of all tiles
};

WC_DEVICE MergeBits merge_bits(MergeKey key, MergeBits flip) { return WcKey<MergeKey>::to_bits(key) ^ flip; }
WC_DEVICE MergeBits merge_flip(const MergeParams& p) { return (MergeBits)(p.descending ? ~(MergeBits)0 : 0); }

// Rows of the first sequence among the first `rows` rows of the merged one.
template <typename First, typename Second>
WC_DEVICE uint64_t merge_split(uint64_t rows, uint64_t firsts, uint64_t seconds, First first, Second second) {
    uint64_t low = rows > seconds ? rows - seconds : 0, high = rows < firsts ? rows : firsts;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (first(middle) <= second(rows - 1 - middle)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// Finds where tiles begin.
WC_KERNEL(merge_splits, MergeParams, 128, 4) {
    const uint64_t rows = p.first_rows + p.second_rows, tiles = (rows + MERGE_TILE - 1) / MERGE_TILE;
    const uint64_t tile = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (tile > tiles) return;
    const MergeBits flip = merge_flip(p);
    const auto first = [&](uint64_t row) { return merge_bits(p.first[row], flip); };
    const auto second = [&](uint64_t row) { return merge_bits(p.second[row], flip); };
    p.splits[tile] = merge_split(min(tile * MERGE_TILE, rows), p.first_rows, p.second_rows, first, second);
}

// Merges tiles.
WC_KERNEL(merge_tiles, MergeParams, MERGE_THREADS, WC_MERGE_BLOCKS) {
    MergeBits* keys = (MergeBits*)wc_shared();
    uint32_t* sources = (uint32_t*)(keys + MERGE_TILE);
    const MergeBits flip = merge_flip(p);
    const uint64_t row = (uint64_t)blockIdx.x * MERGE_TILE, total = p.first_rows + p.second_rows;
    const uint32_t rows = (uint32_t)(total - row < MERGE_TILE ? total - row : MERGE_TILE);
    const uint64_t first = wc_load_cached(p.splits + blockIdx.x), second = row - first;
    const uint32_t firsts = (uint32_t)(wc_load_cached(p.splits + blockIdx.x + 1) - first), seconds = rows - firsts;
    // The first sequence's rows lie in front of the second's.
    MergeKey loaded[MERGE_ITEMS];
#pragma unroll
    for (uint32_t i = 0; i < MERGE_ITEMS; ++i) {
        const uint32_t at = i * MERGE_THREADS + threadIdx.x;
        if (at < rows) loaded[i] = at < firsts ? p.first[first + at] : p.second[second + at - firsts];
    }
#pragma unroll
    for (uint32_t i = 0; i < MERGE_ITEMS; ++i) {
        const uint32_t at = i * MERGE_THREADS + threadIdx.x;
        if (at < rows) keys[at] = merge_bits(loaded[i], flip);
    }
    __syncthreads();
    const uint32_t begin = min(threadIdx.x * MERGE_ITEMS, rows);
    const auto front = [&](uint64_t at) { return keys[at]; };
    const auto back = [&](uint64_t at) { return keys[firsts + at]; };
    uint32_t a = (uint32_t)merge_split(begin, firsts, seconds, front, back), b = firsts + begin - a;
    MergeBits merged[MERGE_ITEMS];
    uint32_t source[MERGE_ITEMS];
    MergeBits left = a < firsts ? keys[a] : 0, right = b < rows ? keys[b] : 0;
#pragma unroll
    for (uint32_t i = 0; i < MERGE_ITEMS; ++i) {
        const bool takes_first = b >= rows || (a < firsts && left <= right);
        merged[i] = takes_first ? left : right;
        source[i] = takes_first ? a : b;
        if (takes_first) {
            if (++a < firsts) left = keys[a];
        } else {
            if (++b < rows) right = keys[b];
        }
    }
    __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < MERGE_ITEMS; ++i) {
        if (begin + i >= rows) continue;
        keys[begin + i] = merged[i];
        if (MERGE_PAIRS) sources[begin + i] = source[i];
    }
    __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < MERGE_ITEMS; ++i) {
        const uint32_t at = i * MERGE_THREADS + threadIdx.x;
        if (at >= rows) continue;
        p.out[row + at] = WcKey<MergeKey>::from_bits(keys[at] ^ flip);
        if (!MERGE_PAIRS) continue;
        const uint32_t from = sources[at];
        p.out_values[row + at] = from < firsts ? p.first_values[first + from] : p.second_values[second + from - firsts];
    }
}
