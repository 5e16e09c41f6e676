// The end of the source-based algorithm: the hash tables of all hash functions become sums in the order of targets.
//
// Input: slots of all tables, pairs of rank plus 1, or 0, and sum. Output: sums and filled bytes by rank, zero before.
// Mapping: a thread a slot, moving grid. Bytes: 16 a slot. Numerics: words wrap; the host has proven that sums hold.
// Source: Meinke, 4.2.2 (compaction of duplicates).

struct MergeParams {
    const uint64_t* slots;
    uint64_t* sums;
    uint8_t* filled;
    uint64_t count;
};

WC_KERNEL(wc_source_merge, MergeParams, 256, 4) {
    const uint64_t lanes = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t slot = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; slot < p.count; slot += lanes) {
        const uint64_t rank = p.slots[2 * slot];
        if (rank == 0) continue;
        wc_add(p.sums + rank - 1, p.slots[2 * slot + 1]);
        p.filled[rank - 1] = 1;
    }
}
