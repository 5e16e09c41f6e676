// Bounds of vectors, for references of their own. Needs encode_offsets.cuh.

// Purpose: smallest and largest key of each vector. Outputs: bounds u64 [vectors][2]; without a valid row all ones
// and 0. Mapping: a warp a vector, grid-stride. Bytes: the values once. Valid for any number of rows below 2^32.
struct BoundsParams {
    WcSource source;
    uint64_t* bounds;
};

WC_ENCODER(vector_bounds, BoundsParams, 4) {
    const uint32_t lane = wc_lane();
    for (uint64_t vector = share.first(); vector < wc_vectors(p.source); vector += share.warps()) {
        uint64_t low, high;
        wc_find_bounds(p.source, vector, lane, &low, &high);
        if (lane == 0) {
            p.bounds[2 * vector] = low;
            p.bounds[2 * vector + 1] = high;
        }
    }
}
