// RLE segments; rle.rs in crates/column/src/format draws them. Needs encode_walk.cuh.

// Purpose: runs of each vector. Outputs: counts u32 [vectors]. Mapping: a warp a vector, grid-stride. Bytes: the
// values once.
struct RunCountParams {
    WcSource source;
    uint32_t* counts;
};

WC_ENCODER(count_runs, RunCountParams, 3) {
    const uint32_t lane = wc_lane();
    for (uint64_t vector = share.first(); vector < wc_vectors(p.source); vector += share.warps()) {
        WcRuns runs(p.source, vector, lane);
        uint32_t count = 0;
#pragma unroll 4
        for (uint32_t step = 0; step < 32; ++step) {
            uint64_t key;
            count += __popc(runs.next(p.source, step, lane, key));
        }
        if (lane == 0) p.counts[vector] = count;
    }
}

// Purpose: an RLE segment. Inputs: firsts u32 [vectors + 1], the number of each vector's first run. Outputs: these,
// values, starts. Mapping: a warp a vector, grid-stride. Bytes: the values once, the segment once.
struct RunParams {
    WcSource source;
    const uint32_t* firsts;
    char* out;
};

WC_ENCODER(write_runs, RunParams, 3) {
    const uint32_t lane = wc_lane();
    const uint64_t vectors = wc_vectors(p.source), runs = p.firsts[vectors];
    const uint64_t values_at = (4 * (vectors + 1) + 7) / 8 * 8;
    const uint64_t starts_at = (values_at + runs * p.source.width + 1) / 2 * 2;
    char* const values = p.out + values_at;
    uint16_t* const starts = (uint16_t*)(p.out + starts_at);
    wc_copy_starts(share, (uint32_t*)p.out, p.firsts, vectors + 1);
    if (share.begins()) {
        if (vectors % 2 == 0) ((uint32_t*)p.out)[vectors + 1] = 0;
        if (values_at + runs * p.source.width != starts_at) values[runs] = 0;
    }
    for (uint64_t vector = share.first(); vector < vectors; vector += share.warps()) {
        WcRuns walk(p.source, vector, lane);
        uint64_t at = p.firsts[vector];
#pragma unroll 4
        for (uint32_t step = 0; step < 32; ++step) {
            uint64_t key;
            const uint32_t begins = walk.next(p.source, step, lane, key);
            if (begins >> lane & 1u) {
                const uint64_t run = at + __popc(begins & wc_lanes_before(lane));
                wc_store(values, run, key ^ p.source.flip, p.source.width);
                starts[run] = (uint16_t)(32 * step + lane);
            }
            at += __popc(begins);
        }
    }
}
