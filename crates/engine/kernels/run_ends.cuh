// Purpose: a table of extremes gets the entries of the keys whose runs begin or end a step (runs.cuh); the build has
// written those of all others. Inputs: keys + 1 of a hash table (zero is empty), one of its cells. Output: for each key
// an entry of 4 or 8 bytes. Mapping: one thread a slot, grid-stride. Bytes: keys once, cells and entries of those there
// are.
struct EnterEndsParams { const uint64_t* keys; const uint64_t* cells; void* entries; uint64_t width; uint64_t slots; };

WC_KERNEL(enter_ends, EnterEndsParams, 256, 1) {
    wc_wait_previous();
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t slot = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; slot < p.slots; slot += step) {
        const uint64_t key = p.keys[slot];
        if (key == 0) continue;
        if (p.width == 4) {
            ((uint32_t*)p.entries)[key - 1] = (uint32_t)p.cells[slot];
        } else {
            ((uint64_t*)p.entries)[key - 1] = p.cells[slot];
        }
    }
}
