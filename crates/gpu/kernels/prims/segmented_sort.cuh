// Segmented radix sort: the rows of each segment in the order of their keys. Stable.
//
// Inputs: keys, payload as in radix_sort.cuh; `segments` + 1 ascending offsets into them. Outputs: as there; rows in no
// segment are not written. A kernel classifies segments by size, on the device alone:
//  - up to SMALL rows: many adjacent ones make a pack of up to PACK rows, which a block sorts in shared memory: by
//    comparisons where segments are tiny, otherwise by the digits of keys and then by the number of the segment;
//  - up to PACK rows: a pack of their own;
//  - larger ones: tiles of the radix sort, whose counts, places and look-back are those of the segment; it has a slot.
// Shared memory: see PACK_BYTES, and radix_tile.cuh. Bytes: rows of packs are read and written once, those of large
// segments as in radix_sort.cuh. Descriptors have 64 bits, for segments of any length.
// Source: the sizes by class are those of E. Stehle, H.-A. Jacobsen, "A Memory Bandwidth-Efficient Hybrid Radix Sort
// on GPUs", 2017; the tiles see radix_tile.cuh.
#pragma once

typedef WC_SEGMENT_OFFSET SegmentOffset;

constexpr uint32_t PACK_THREADS = WC_PACK_THREADS, PACK_ITEMS = WC_PACK_ITEMS, PACK_WARPS = PACK_THREADS / 32;
constexpr uint32_t PACK = PACK_THREADS * PACK_ITEMS, SMALL = PACK / 4, WINDOW = PACK - SMALL;
// Segments of a chunk at most, which packs do not leave.
constexpr uint32_t CHUNK_MAX = 2048, CLASSIFY_THREADS = 256, CLASSIFY_ITEMS = CHUNK_MAX / CLASSIFY_THREADS;
// Windows of a chunk at most.
constexpr uint32_t WINDOWS_MAX = CHUNK_MAX / 3 + 1;
constexpr uint64_t PACK_ALONE = (uint64_t)1 << 63, PACK_COMPARED = (uint64_t)1 << 62;
static_assert(PACK <= 1 << 15 && PACK / 32 <= PACK_THREADS && PACK_THREADS >= SORT_BINS, "a pack fits its block");

// What classification leaves for the other kernels.
struct SegmentCounters {
    uint64_t packs, slots, tiles;
};
struct SegmentSlot {
    uint64_t start, rows, tile;
};

struct SegmentedParams {
    SortPlaces places;
    SortDigits digits;
    const SegmentOffset* offsets;
    uint64_t segments;
    uint64_t chunk;             // segments of a chunk
    uint64_t form;              // FORM_
    SegmentCounters* counters;  // zero before
    uint64_t* packs;            // the first segment of each; PACK_ALONE is set if it is the only one, PACK_COMPARED if
                                // the pack is sorted by comparisons
    SegmentSlot* slots;
    uint64_t* counts;           // SORT_BINS a pass a slot
    uint32_t* plans;            // a word a pass and one for a copy, a slot
    uint32_t* tile_slots;
    uint64_t* words;            // descriptors of tiles
    uint32_t* tickets;          // a pass, zero before
    uint64_t comparisons;       // of a pack that is sorted by comparisons, at most
    uint64_t pass;
};

// Distributes segments by size; a block a chunk.
WC_KERNEL(segmented_sort_classify, SegmentedParams, CLASSIFY_THREADS, 4) {
    uint32_t* parts = (uint32_t*)wc_shared();
    uint64_t* base = (uint64_t*)(parts + 16);
    uint32_t* comparisons = (uint32_t*)(base + 2);  // of each window: each row with all of its segment
    uint32_t* large = comparisons + WINDOWS_MAX;    // its count, then segments of the chunk
    const uint64_t chunks = (p.segments + p.chunk - 1) / p.chunk;
    for (uint64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const uint64_t first = chunk * p.chunk, end = min(first + p.chunk, p.segments);
        if (threadIdx.x == 0) large[0] = 0;
        for (uint32_t window = threadIdx.x; window < WINDOWS_MAX; window += blockDim.x) comparisons[window] = 0;
        uint32_t sizes[CLASSIFY_ITEMS], sum = 0;
        __syncthreads();
#pragma unroll
        for (uint32_t k = 0; k < CLASSIFY_ITEMS; ++k) {
            const uint64_t segment = first + threadIdx.x * CLASSIFY_ITEMS + k;
            sizes[k] = 0;
            if (segment >= end) continue;
            const uint64_t rows = p.offsets[segment + 1] - p.offsets[segment];
            if (rows <= SMALL) {
                sizes[k] = (uint32_t)rows;
                sum += sizes[k];
            } else if (rows <= PACK) {
                p.packs[wc_fetch_add(&p.counters->packs, (uint64_t)1)] = segment | PACK_ALONE;
            } else {
                large[1 + atomicAdd(large, 1u)] = (uint32_t)(segment - first);
            }
        }
        const uint32_t inclusive = wc_warp_inclusive_sum(sum);
        if (wc_lane() == 31) parts[wc_warp()] = inclusive;
        __syncthreads();
        uint32_t before = inclusive - sum, total = 0;
        for (uint32_t warp = 0; warp < CLASSIFY_THREADS / 32; ++warp) {
            before += warp < wc_warp() ? parts[warp] : 0;
            total += parts[warp];
        }
        const uint64_t packs = (total + WINDOW - 1) / WINDOW;
        if (threadIdx.x == 0 && packs > 0) base[0] = wc_fetch_add(&p.counters->packs, packs);
        __syncthreads();
        // A segment belongs to the window of its last row, so a pack has less than WINDOW + SMALL rows.
        uint32_t place = before, last = ~0u, pending = 0;
#pragma unroll
        for (uint32_t k = 0; k < CLASSIFY_ITEMS; ++k) {
            if (sizes[k] == 0) continue;
            place += sizes[k];
            const uint32_t window = (place - 1) / WINDOW;
            if (window != last && pending > 0) atomicAdd(comparisons + last, pending);
            if (window != last) pending = 0;
            last = window;
            pending += sizes[k] * sizes[k];
        }
        if (pending > 0) atomicAdd(comparisons + last, pending);
        __syncthreads();
#pragma unroll
        for (uint32_t k = 0; k < CLASSIFY_ITEMS; ++k) {
            if (sizes[k] == 0) continue;
            const uint32_t window = (before + sizes[k] - 1) / WINDOW;
            const bool begins = before == 0 || (before - 1) / WINDOW != window;
            const uint64_t kind = comparisons[window] <= p.comparisons ? PACK_COMPARED : 0;
            if (begins) p.packs[base[0] + window] = (first + threadIdx.x * CLASSIFY_ITEMS + k) | kind;
            before += sizes[k];
        }
        __syncthreads();
        for (uint32_t at = 0; at < large[0]; ++at) {
            const uint64_t segment = first + large[1 + at], start = p.offsets[segment];
            const uint64_t rows = p.offsets[segment + 1] - start, tiles = (rows + SORT_TILE - 1) / SORT_TILE;
            if (threadIdx.x == 0) {
                base[0] = wc_fetch_add(&p.counters->slots, (uint64_t)1);
                base[1] = wc_fetch_add(&p.counters->tiles, tiles);
                p.slots[base[0]] = SegmentSlot{start, rows, base[1]};
            }
            __syncthreads();
            const uint64_t slot = base[0], tile = base[1], bins = p.digits.passes * SORT_BINS;
            for (uint64_t bin = threadIdx.x; bin < bins; bin += blockDim.x) p.counts[slot * bins + bin] = 0;
            for (uint64_t k = threadIdx.x; k < tiles; k += blockDim.x) p.tile_slots[tile + k] = (uint32_t)slot;
            __syncthreads();
        }
        __syncthreads();
    }
}

// Counts digits of large segments and clears the descriptors of their tiles. A block has adjacent tiles; those of one
// segment are counted by one loop over their rows.
WC_KERNEL(segmented_sort_count, SegmentedParams, WC_SORT_COUNT_THREADS, WC_SEGMENT_COUNT_BLOCKS) {
    constexpr uint32_t COLUMNS = WC_SORT_COLUMNS;
    uint32_t* cells = (uint32_t*)wc_shared();
    const uint32_t passes = (uint32_t)p.digits.passes, bins = passes * SORT_BINS;
    const uint64_t tiles = p.counters->tiles, each = (tiles + gridDim.x - 1) / gridDim.x;
    const uint64_t from = min(blockIdx.x * each, tiles), end = min(from + each, tiles);
    const SortBits flip = sort_flip(p.digits);
    uint32_t* own = cells + wc_lane() % COLUMNS;
    for (uint64_t word = from * SORT_BINS + threadIdx.x; word < end * SORT_BINS; word += blockDim.x) {
        p.words[word] = ~0ull;
    }
    for (uint64_t tile = from; tile < end;) {
        const uint32_t slot = p.tile_slots[tile];
        const SegmentSlot segment = p.slots[slot];
        const uint64_t next = min(segment.tile + (segment.rows + SORT_TILE - 1) / SORT_TILE, end);
        const uint64_t row = (tile - segment.tile) * SORT_TILE;
        const uint64_t rows = min((next - segment.tile) * SORT_TILE, segment.rows) - row;
        for (uint32_t at = threadIdx.x; at < bins * COLUMNS; at += blockDim.x) cells[at] = 0;
        __syncthreads();
        wc_each_key(p.places.keys[0] + segment.start + row, rows, 0, 1, [&](SortBits raw) {
            const SortBits bits = sort_encode(raw, flip);
#pragma unroll
            for (uint32_t pass = 0; pass < sizeof(SortBits); ++pass) {
                if (pass >= passes) break;
                const uint32_t digit = (uint32_t)(bits >> digit_shift(p.digits, pass)) & digit_mask(p.digits, pass);
                atomicAdd(own + (pass * SORT_BINS + digit) * COLUMNS, 1u);
            }
        });
        __syncthreads();
        for (uint32_t bin = threadIdx.x; bin < bins; bin += blockDim.x) {
            uint64_t sum = 0;
            for (uint32_t k = 0; k < COLUMNS; ++k) sum += cells[bin * COLUMNS + (k + bin) % COLUMNS];
            if (sum != 0) wc_add(p.counts + (uint64_t)slot * bins + bin, sum);
        }
        __syncthreads();
        tile = next;
    }
}

// Makes the plan of each large segment.
WC_KERNEL(segmented_sort_plan, SegmentedParams, SORT_BINS, 4) {
    uint64_t* parts = (uint64_t*)wc_shared();
    const uint32_t passes = (uint32_t)p.digits.passes;
    for (uint64_t slot = blockIdx.x; slot < p.counters->slots; slot += gridDim.x) {
        const SegmentSlot segment = p.slots[slot];
        uint32_t constant = 0;
        for (uint32_t pass = 0; pass < passes; ++pass) {
            uint64_t* counts = p.counts + (slot * passes + pass) * SORT_BINS;
            if (sort_starts(counts, segment.start, segment.rows, parts)) constant |= 1u << pass;
        }
        if (threadIdx.x == 0) sort_plan(p.plans + slot * (passes + 1), passes, constant, p.form, 1);
    }
}

// The next tile of a block that sorts by one digit.
struct SegmentTile {
    uint64_t row, first, tile;
    uint32_t rows, slot, plan;
};
constexpr uint32_t SEGMENT_TILE_AT = SORT_EXCHANGE_BYTES + SORT_COUNTER_BYTES + SORT_BINS * 8 + 64;

// Sorts large segments by one digit: blocks take tiles by ticket. A block draws its next tile while it looks back for
// the present one, by a thread that has no bin.
WC_KERNEL(segmented_sort_pass, SegmentedParams, SORT_THREADS, WC_SORT_BLOCKS) {
    SegmentTile& next = *(SegmentTile*)(wc_shared() + SEGMENT_TILE_AT);
    const uint64_t tiles = p.counters->tiles;
    const auto draw = [&] {
        if (threadIdx.x != SORT_THREADS - 1) return;
        const uint32_t tile = wc_count(p.tickets + p.pass);
        next.tile = tile;
        if (tile >= tiles) return;
        const uint32_t slot = p.tile_slots[tile];
        const SegmentSlot segment = p.slots[slot];
        const uint64_t row = (tile - segment.tile) * SORT_TILE, left = segment.rows - row;
        next.row = segment.start + row;
        next.first = segment.tile;
        next.rows = (uint32_t)(left < SORT_TILE ? left : SORT_TILE);
        next.slot = slot;
        next.plan = p.plans[slot * (p.digits.passes + 1) + p.pass];
    };
    draw();
    for (;;) {
        __syncthreads();
        const SegmentTile own = next;
        if (own.tile >= tiles) return;
        SortTask<uint64_t> task;
        task.plan = own.plan;
        if (!(task.plan & PLAN_ACTIVE)) {
            __syncthreads();
            draw();
            continue;
        }
        task.code = plan_code(task.plan, 0);
        task.shift = digit_shift(p.digits, p.pass);
        task.mask = digit_mask(p.digits, p.pass);
        task.flip = sort_flip(p.digits);
        task.first = own.first;
        task.tile = own.tile;
        task.row = own.row;
        task.rows = own.rows;
        task.words = p.words;
        task.starts = p.counts + (own.slot * p.digits.passes + p.pass) * SORT_BINS;
        task.carry = nullptr;
        sort_tile<false>(p.places, task, draw);
    }
}

// Copies large segments to the output where the last pass did not leave them there.
WC_KERNEL(segmented_sort_copy, SegmentedParams, SORT_BINS, 4) {
    for (uint64_t tile = blockIdx.x; tile < p.counters->tiles; tile += gridDim.x) {
        const uint32_t slot = p.tile_slots[tile];
        const uint32_t plan = p.plans[slot * (p.digits.passes + 1) + p.digits.passes];
        if (!(plan & PLAN_ACTIVE)) continue;
        const SegmentSlot segment = p.slots[slot];
        const uint64_t row = (tile - segment.tile) * SORT_TILE, end = min(row + SORT_TILE, segment.rows);
        sort_copy(p.places, plan, segment.start + row, segment.start + end);
    }
}
