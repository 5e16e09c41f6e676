// Sums over counts of what vectors take.

// Purpose: counts become the sums of those before them, segment by segment. Inputs: counts u32, those of segment s at
// firsts[s] .. firsts[s + 1] - 1, in place; one more entry behind them takes the sum. Outputs: totals u32 [segments].
// Mapping: a block a segment, tiles of 1,024, four counts a thread. Bytes: 8 a count. Valid for sums below 2^32.
struct ScanParams {
    uint32_t* counts;
    const uint32_t* firsts;
    uint32_t* totals;
};

WC_KERNEL(scan_counts, ScanParams, 256, 1) {
    uint32_t* const sums = (uint32_t*)wc_shared();
    const uint32_t lane = wc_lane(), warp = wc_warp();
    uint32_t* const counts = p.counts + p.firsts[blockIdx.x];
    const uint32_t length = p.firsts[blockIdx.x + 1] - p.firsts[blockIdx.x] - 1;
    uint32_t before = 0;
    for (uint32_t tile = 0; tile < length; tile += 1024) {
        const uint32_t at = tile + 4 * threadIdx.x;
        uint32_t own[4], count = 0;
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i) {
            own[i] = at + i < length ? counts[at + i] : 0;
            count += own[i];
        }
        uint32_t sum = wc_warp_inclusive_sum(count);
        if (lane == 31) sums[warp] = sum;
        __syncthreads();
        uint32_t tile_sum = 0;
        for (uint32_t other = 0; other < 8; ++other) {
            if (other < warp) sum += sums[other];
            tile_sum += sums[other];
        }
        uint32_t start = before + sum - count;
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i) {
            if (at + i < length) counts[at + i] = start;
            start += own[i];
        }
        before += tile_sum;
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        counts[length] = before;
        p.totals[blockIdx.x] = before;
    }
}
