// Gather and scatter: out[i] = in[rows[i]], and out[rows[i]] = in[i].
//
// Input: n row numbers of WC_INDEX, below the number of elements that they lead to; values of WC_VALUE, a type of the
// elements' size. Mapping: a block a tile (tile.cuh); rows are loaded by 16 bytes a lane, then all values of a lane
// are asked for at once. Shared memory: none. Registers: values of a lane, 64 bytes at the default tuning or the values
// of two rows. Bytes: row numbers and values once, a random access moves a sector of 32 bytes. Where two rows of a
// scatter have one number, either value stays.

struct GatherParams {
    const WC_VALUE* in;
    const WC_INDEX* rows;
    WC_VALUE* out;
    uint64_t n;
    uint64_t aligned;
};

WC_KERNEL(wc_gather, GatherParams, WC_THREADS, WC_BLOCKS) {
    const uint64_t from = ((uint64_t)blockIdx.x * (WC_THREADS / 32) + wc_warp()) * (32 * WC_VEC * WC_ROWS);
    WC_INDEX rows[WC_ROWS][WC_VEC];
    wc_load_part<WC_VEC, WC_ROWS>(rows, p.rows, from, p.n, p.aligned != 0, (WC_INDEX)0);
    // The row numbers of items behind the last are 0: there is an element, since there is a row.
    WC_VALUE values[WC_ROWS][WC_VEC];
#pragma unroll
    for (int j = 0; j < WC_ROWS; ++j) {
#pragma unroll
        for (int k = 0; k < WC_VEC; ++k) values[j][k] = wc_load_cached(p.in + rows[j][k]);
    }
#pragma unroll
    for (int j = 0; j < WC_ROWS; ++j) {
        wc_store_row<WC_VEC>(p.out, from + (j * 32 + wc_lane()) * WC_VEC, p.n, p.aligned != 0, values[j]);
    }
}

WC_KERNEL(wc_scatter, GatherParams, WC_THREADS, WC_BLOCKS) {
    const uint64_t from = ((uint64_t)blockIdx.x * (WC_THREADS / 32) + wc_warp()) * (32 * WC_VEC * WC_ROWS);
    WC_INDEX rows[WC_ROWS][WC_VEC];
    WC_VALUE values[WC_ROWS][WC_VEC];
    wc_load_part<WC_VEC, WC_ROWS>(rows, p.rows, from, p.n, p.aligned != 0, (WC_INDEX)0);
    wc_load_part<WC_VEC, WC_ROWS>(values, p.in, from, p.n, p.aligned != 0, WC_VALUE());
#pragma unroll
    for (int j = 0; j < WC_ROWS; ++j) {
#pragma unroll
        for (int k = 0; k < WC_VEC; ++k) {
            if (from + (j * 32 + wc_lane()) * WC_VEC + k < p.n) p.out[rows[j][k]] = values[j][k];
        }
    }
}
