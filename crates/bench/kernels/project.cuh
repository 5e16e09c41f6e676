// Project: out[i] = a * x[i] + b * y[i], or the sigmoid 1 / (1 + exp(-z)) of it.
//
// Input: two columns of n items of WC_ITEM, two factors. Output: n items. Mapping: a block a tile, rows of 16 bytes a
// lane (tile.cuh); both columns are asked for before the first is used. Shared memory: none. Registers: a lane's items
// of both columns. Bytes: three items a row. Numerics: a * x is added to the rounded b * y by one fused operation.
// Source: Shanbhag's thesis, 3.6.1 (queries Q1 and Q2).

struct ProjectParams {
    const WC_ITEM* x;
    const WC_ITEM* y;
    WC_ITEM* out;
    double a, b;
    uint64_t n;
    uint64_t aligned;
};

WC_DEVICE float wc_multiply_add(float a, float x, float z) { return fmaf(a, x, z); }
WC_DEVICE double wc_multiply_add(double a, double x, double z) { return fma(a, x, z); }

WC_KERNEL(wc_project, ProjectParams, WC_THREADS, WC_BLOCKS) {
    const uint64_t from = ((uint64_t)blockIdx.x * (WC_THREADS / 32) + wc_warp()) * (32 * WC_VEC * WC_ROWS);
    const WC_ITEM a = (WC_ITEM)p.a, b = (WC_ITEM)p.b;
    WC_ITEM x[WC_ROWS][WC_VEC], y[WC_ROWS][WC_VEC];
    wc_load_part<WC_VEC, WC_ROWS>(x, p.x, from, p.n, p.aligned != 0, (WC_ITEM)0);
    wc_load_part<WC_VEC, WC_ROWS>(y, p.y, from, p.n, p.aligned != 0, (WC_ITEM)0);
#pragma unroll
    for (int j = 0; j < WC_ROWS; ++j) {
#pragma unroll
        for (int k = 0; k < WC_VEC; ++k) {
            const WC_ITEM z = wc_multiply_add(a, x[j][k], b * y[j][k]);
#ifdef WC_SIGMOID
            x[j][k] = (WC_ITEM)1 / ((WC_ITEM)1 + exp(-z));
#else
            x[j][k] = z;
#endif
        }
        wc_store_row<WC_VEC>(p.out, from + (j * 32 + wc_lane()) * WC_VEC, p.n, p.aligned != 0, x[j]);
    }
}
