// First pass of contraction where all facts are of one class: their total.
//
// Input: values in chunks of 2^20, whole numbers, zero where they are NULL. Output: their sum, a word of 64 bits, zero
// before the launch. Mapping: blocks walk over tiles of 4,096 values with the stride of the grid; a thread has eight
// loads of 16 bytes on their way. Bytes: values once. Numerics: words wrap; the host has proven that sums hold.

#define WC_TOTAL_LOADS 8
#define WC_TOTAL_TILE (256ull * 2 * WC_TOTAL_LOADS)
#define WC_CHUNK_FACTS (1ull << 20)

struct TotalParams {
    const uint64_t* values;  // addresses of the values of each chunk
    uint64_t* sums;
    uint64_t facts;
};

WC_KERNEL(wc_cube_total, TotalParams, 256, 4) {
    uint64_t total = 0;
    for (uint64_t begin = blockIdx.x * WC_TOTAL_TILE; begin < p.facts; begin += gridDim.x * WC_TOTAL_TILE) {
        const int64_t* const chunk = (const int64_t*)wc_load_cached(p.values + begin / WC_CHUNK_FACTS);
        const int64_t* const values = chunk + begin % WC_CHUNK_FACTS;
        const uint32_t left = (uint32_t)min(p.facts - begin, WC_TOTAL_TILE);
        union { int4 word; int64_t pair[2]; } loaded[WC_TOTAL_LOADS];
#pragma unroll
        for (uint32_t load = 0; load < WC_TOTAL_LOADS; ++load) {
            const uint32_t row = 2u * (threadIdx.x + 256u * load);
            loaded[load].word = make_int4(0, 0, 0, 0);
            if (row < left) loaded[load].word = wc_load16_stream(values + row);
        }
#pragma unroll
        for (uint32_t load = 0; load < WC_TOTAL_LOADS; ++load) {
            const uint32_t row = 2u * (threadIdx.x + 256u * load);
#pragma unroll
            for (uint32_t i = 0; i < 2; ++i) {
                total += row + i < left ? (uint64_t)loaded[load].pair[i] : 0ull;
            }
        }
    }
    uint64_t* const parts = (uint64_t*)wc_shared();
    const uint64_t sum = wc_warp_sum(total);
    if (wc_lane() == 0) parts[wc_warp()] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        uint64_t all = 0;
        for (uint32_t warp = 0; warp < 8; ++warp) all += parts[warp];
        wc_add(p.sums, all);
    }
}
