
// Purpose: gather the groups there are. Inputs: marks (uint8 a place; hashed 1: uint64 key + 1 a slot; hashed 2: the
// state of a slot behind which its key has words), `of_marks` words apart if hashed; cells uint64, those of a group
// `of_cells` words apart and those of neighbours `of_neighbours`, copies behind each other (a cell is the sum of its
// copies); control (error, flags). Output: error, flags, number of groups, then key and cells of each
// group, in no order. Mapping: one thread a place, grid-stride; one atomic a warp. Bytes: the marks once, cells of
// groups once. The counter output[2] is zeroed beforehand. May be launched early.
struct CompactParams {
    const uint64_t* control; const void* marks; const uint64_t* cells; uint64_t* output;
    uint64_t places; uint64_t cell_count; uint64_t hashed; uint64_t word_count; uint64_t copies;
    uint64_t of_marks; uint64_t of_cells; uint64_t of_neighbours;
};

WC_KERNEL(compact_groups, CompactParams, 256, 1) {
    wc_wait_previous();
    const uint32_t lane = wc_lane();
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        p.output[0] = p.control[0];
        p.output[1] = p.control[1] | (uint64_t)(p.control[3] != 0) << WC_STOPPED_SHIFT;
    }
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    const uint64_t whole = (p.places + 31) / 32 * 32;
    for (uint64_t place = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; place < whole; place += step) {
        uint64_t key = place + 1;
        if (place >= p.places) key = 0;
        else if (p.hashed) key = ((const uint64_t*)p.marks)[place * p.of_marks];
        else if (((const uint8_t*)p.marks)[place] == 0) key = 0;
        const uint32_t found = __ballot_sync(WC_FULL_MASK, key != 0);
        if (found == 0) continue;
        uint64_t at = 0;
        if (lane == 0) at = wc_fetch_add(p.output + 2, (uint64_t)__popc(found));
        at = __shfl_sync(WC_FULL_MASK, at, 0) + __popc(found & ((1u << lane) - 1));
        if (key == 0) continue;
        uint64_t* row = p.output + 3 + at * (p.cell_count + p.word_count);
        row[0] = key - 1;
        if (p.hashed == 2) {
            const uint64_t* words = (const uint64_t*)p.marks + place * p.of_marks + 1;
            for (uint64_t word = 0; word < p.word_count; ++word) row[word] = words[word];
        }
        row += p.word_count;
        for (uint64_t cell = 0; cell < p.cell_count; ++cell) {
            const uint64_t* copy = p.cells + cell * p.of_cells + place * p.of_neighbours;
            uint64_t sum = 0;
#pragma unroll 8
            for (uint64_t i = 0; i < p.copies; ++i, copy += p.cell_count * p.places) sum += *copy;
            row[cell] = sum;
        }
    }
}
