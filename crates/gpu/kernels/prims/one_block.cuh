// What one block does for a grid: the last one that is done, and a sort of few items.
#pragma once

// Whether the calling block is the last of `blocks` to get here: what the others wrote is then there to be read. All
// threads of the block call; `word` is in shared memory, `done` is zeroed beforehand.
WC_DEVICE bool wc_is_last_block(uint64_t* done, uint64_t blocks, uint32_t* word) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) *word = wc_fetch_add(done, (uint64_t)1) == blocks - 1;
    __syncthreads();
    __threadfence();
    return *word != 0;
}

// Sorts `count` items. All threads of the block call, which are whole warps; a barrier before is the caller's, the one
// behind is here. `items.order(i, j)`, i < j, exchanges two that are out of order. A bitonic network whose first step
// of a merge compares mirrored places: the better one always goes to the lower place, so places behind the end need no
// padding. Steps of 32 and less stay within 64 aligned places, which are always the same warp's.
template <typename Items> WC_DEVICE void wc_sort_network(const Items& items, uint32_t count) {
    for (uint32_t run = 2; run / 2 < count; run *= 2) {
        for (uint32_t step = run / 2; step > 0; step /= 2) {
            // What tells the places of a pair apart: all bits of a run where they are mirrored.
            const uint32_t apart = step == run / 2 ? run - 1 : step, next = step > 1 ? step / 2 : run;
            for (uint32_t pair = threadIdx.x;; pair += blockDim.x) {
                const uint32_t i = 2 * pair - (pair & (step - 1)), j = i ^ apart;
                if (i >= count) break;
                if (j < count) items.order(i, j);
            }
            if (step > 32 || next > 32) {
                __syncthreads();
            } else {
                __syncwarp(WC_FULL_MASK);
            }
        }
    }
    __syncthreads();
}
