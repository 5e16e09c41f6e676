// Radix sort: a pass over the keys counts all digits, a pass a digit moves keys and payload, the least significant
// first. Stable. A sort by the most significant digit first is one such pass, whose bins are segments for
// segmented_sort.cuh.
//
// Inputs: `rows` keys of WC_SORT_KEY and, for pairs, payload of 1, 4, 8 or 16 bytes (a null pointer stands for the
// numbers of rows). Outputs: both in the order of the bits begin..end of keys (WcKey), complemented if descending.
// Mapping: a tile of SORT_TILE rows is a block's, a warp has adjacent rows, a lane every 32nd of them.
// Shared memory: SORT_EXCHANGE_BYTES, SORT_COUNTER_BYTES, 2 KB of places; WC_SORT_COLUMNS KB a digit for counts.
// Bytes: keys once for counts; a pass reads and writes keys and payload once, and moves 3 KB of descriptors a tile in
// the L2 cache. A pass whose digit is the same in all keys moves nothing, nor does a pass over keys that are in order.
// Numerics: equal keys keep their order; keys pass through their bits, so zeros lose their sign and NaN its payload.
// Source: see radix_tile.cuh. A launch covers a portion of less than 2^30 rows, so that descriptors have 32 bits.
#pragma once

constexpr uint32_t COUNT_COLUMNS = WC_SORT_COLUMNS;

struct SortCountParams {
    const SortBits* keys;
    uint64_t rows;
    SortDigits digits;
    uint64_t* counts;  // SORT_BINS a pass, then the blocks that found keys out of order; zero before
};

// The bits of a key that count.
WC_DEVICE SortBits sort_counted(SortBits bits, const SortDigits& digits) {
    const uint64_t above = sizeof(SortBits) * 8 - (digits.end - digits.begin);
    return (SortBits)((SortBits)(bits >> digits.begin) << above) >> above;
}

// Counts the digits of all passes, and tells whether keys are in order. A block has WC_SORT_COLUMNS counters of a bin,
// of which a lane uses one: lanes of a warp meet in few banks, whatever the keys are.
WC_KERNEL(radix_sort_count, SortCountParams, WC_SORT_COUNT_THREADS, 1) {
    uint32_t* cells = (uint32_t*)wc_shared();
    const uint32_t passes = (uint32_t)p.digits.passes, words = passes * SORT_BINS * COUNT_COLUMNS;
    for (uint32_t at = threadIdx.x; at < words; at += blockDim.x) cells[at] = 0;
    __syncthreads();
    const SortBits flip = sort_flip(p.digits);
    uint32_t* own = cells + wc_lane() % COUNT_COLUMNS;
    bool in_order = true;
    wc_each_pair(p.keys, p.rows, blockIdx.x, gridDim.x, [&](SortBits raw, SortBits before) {
        const SortBits bits = sort_encode(raw, flip);
        in_order &= sort_counted(sort_encode(before, flip), p.digits) <= sort_counted(bits, p.digits);
#pragma unroll
        for (uint32_t pass = 0; pass < sizeof(SortBits); ++pass) {
            if (pass >= passes) break;
            const uint32_t digit = (uint32_t)(bits >> digit_shift(p.digits, pass)) & digit_mask(p.digits, pass);
            atomicAdd(own + (pass * SORT_BINS + digit) * COUNT_COLUMNS, 1u);
        }
    });
    if (__syncthreads_or(!in_order) && threadIdx.x == 0) wc_add(p.counts + passes * SORT_BINS, (uint64_t)1);
    for (uint32_t bin = threadIdx.x; bin < passes * SORT_BINS; bin += blockDim.x) {
        uint64_t sum = 0;
        for (uint32_t k = 0; k < COUNT_COLUMNS; ++k) sum += cells[bin * COUNT_COLUMNS + (k + bin) % COUNT_COLUMNS];
        if (sum != 0) wc_add(p.counts + bin, sum);
    }
}

struct SortPlanParams {
    uint64_t* counts;  // of each pass, then blocks out of order; afterwards places of bins' first keys, then `rows`
    uint32_t* plan;    // a word a pass, and one for a copy
    uint64_t rows;
    uint64_t passes;
    uint64_t form;     // FORM_
    uint64_t portions;
};

// Makes the plan of the passes, in one block.
WC_KERNEL(radix_sort_plan, SortPlanParams, SORT_BINS, 1) {
    uint64_t* parts = (uint64_t*)wc_shared();
    uint32_t constant = 0;
    for (uint32_t pass = 0; pass < p.passes; ++pass) {
        if (sort_starts(p.counts + pass * SORT_BINS, 0, p.rows, parts)) constant |= 1u << pass;
    }
    if (threadIdx.x != 0) return;
    uint64_t* const behind = p.counts + p.passes * SORT_BINS;
    if (*behind == 0) constant = (1u << p.passes) - 1;
    *behind = p.rows;
    sort_plan(p.plan, (uint32_t)p.passes, constant, p.form, (uint32_t)p.portions);
}

struct SortPassParams {
    SortPlaces places;
    SortDigits digits;
    uint64_t row, end;       // the portion's rows
    uint64_t pass, portion;
    const uint32_t* plan;
    const uint64_t* starts;  // places of the first key of each bin of this portion
    uint64_t* carry;         // those of the next portion, or null
    uint32_t* words;         // descriptors
    uint32_t* ticket;        // zero before
};

// Sorts a portion by one digit; a block a tile.
WC_KERNEL(radix_sort_pass, SortPassParams, SORT_THREADS, WC_SORT_BLOCKS) {
    uint32_t* ticket = (uint32_t*)(wc_shared() + SORT_EXCHANGE_BYTES + SORT_COUNTER_BYTES + SORT_BINS * 8 + 32);
    const uint32_t plan = wc_load_cached(p.plan + p.pass);
    if (!(plan & PLAN_ACTIVE)) return;
    if (threadIdx.x == 0) *ticket = wc_count(p.ticket);
    __syncthreads();
    SortTask<uint32_t> task;
    task.plan = plan;
    task.code = plan_code(plan, p.portion);
    task.shift = digit_shift(p.digits, p.pass);
    task.mask = digit_mask(p.digits, p.pass);
    task.flip = sort_flip(p.digits);
    task.first = 0;
    task.tile = *ticket;
    task.row = p.row + task.tile * SORT_TILE;
    task.rows = (uint32_t)(p.end - task.row < SORT_TILE ? p.end - task.row : SORT_TILE);
    task.words = p.words;
    task.starts = p.starts;
    task.carry = task.row + task.rows == p.end ? p.carry : nullptr;
    sort_tile<true>(p.places, task, [] {});
}

struct SortCopyParams {
    SortPlaces places;
    uint64_t rows;
    const uint32_t* plan;  // of the copy
};

// Copies the result to the output where the last pass did not leave it there.
WC_KERNEL(radix_sort_copy, SortCopyParams, SORT_BINS, 4) {
    const uint32_t plan = wc_load_cached(p.plan);
    if (!(plan & PLAN_ACTIVE)) return;
    const uint64_t each = SORT_BINS * 16;
    for (uint64_t row = blockIdx.x * each; row < p.rows; row += gridDim.x * each) {
        sort_copy(p.places, plan, row, row + each < p.rows ? row + each : p.rows);
    }
}
