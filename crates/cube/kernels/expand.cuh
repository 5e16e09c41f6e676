// One dimension of a contraction: classes become targets.
//
// Text in front: monoids.cuh, and the definition of WC_MONOID.
//
// Input: sums of shape outer × classes × inner, with a byte each that is 1 where the sum is filled; a list of
// (class, weight) for each target, target t having the entries offsets[t] … offsets[t + 1]. Output: the same of shape
// outer × targets × inner: out[o][t][i] = sum over entries of weight * in[o][class][i]; filled if one of them is.
// Mapping: a thread a place of the output, neighbours along `inner`. Bytes: entries × inner reads, which caches serve
// where classes are few. Numerics: those of the monoid; entries are added in their order.
// Source: contraction by sparse weight matrices (DESIGN, "Cubes").

struct ExpandParams {
    const WC_MONOID* in;
    const uint8_t* in_filled;
    const uint32_t* offsets;
    const uint32_t* classes;
    const WC_MONOID::Weight* weights;
    WC_MONOID* out;
    uint8_t* out_filled;
    uint64_t class_count;
    uint64_t targets;
    uint64_t inner;
    uint64_t places;  // of the output
};

WC_KERNEL(wc_cube_expand, ExpandParams, 256, 4) {
    const uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t place = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; place < p.places; place += stride) {
        const uint64_t row = place / p.inner, at = place - row * p.inner;
        const uint64_t outer = row / p.targets, target = row - outer * p.targets;
        WC_MONOID sum = WC_MONOID::none();
        uint32_t filled = 0;
        const uint32_t end = wc_load_cached(p.offsets + target + 1);
        for (uint32_t entry = wc_load_cached(p.offsets + target); entry < end; ++entry) {
            const uint64_t from = (outer * p.class_count + wc_load_cached(p.classes + entry)) * p.inner + at;
            filled |= p.in_filled[from];
            sum.add(p.in[from], wc_load_cached(p.weights + entry));
        }
        p.out[place] = sum;
        p.out_filled[place] = (uint8_t)filled;
    }
}
