// The end of sort and choose: the first k of all keys in order, with their rows.
#pragma once

struct TopKChooseParams {
    const TopKKey* keys;
    const TopKRow* rows;
    uint64_t k;
    TopKKey* keys_out;
    TopKRow* rows_out;
};

// Purpose: copies the result out of the sorted copy. Mapping: a thread a place, blocks walk over all places.
// Bytes moved: k keys and rows, read and written.
WC_KERNEL(topk_choose, TopKChooseParams, 256, 4) {
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t at = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; at < p.k; at += step) {
        p.keys_out[at] = p.keys[at];
        p.rows_out[at] = p.rows[at];
    }
}
