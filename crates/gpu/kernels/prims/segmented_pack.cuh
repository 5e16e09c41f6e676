// The part of the segmented sort for packs: segments of up to PACK rows, sorted in shared memory.
#pragma once

// Shared memory of a pack.
struct PackMemory {
    SortBits keys[PACK];
    uint32_t tags[PACK];
    uint32_t counters[PACK_WARPS * SORT_BINS];
    uint64_t deltas[CHUNK_MAX];      // of each segment: its first row, less its first place in the pack
    uint32_t heads[PACK / 32];       // a bit a place where a segment begins
    uint32_t numbers[PACK / 32];     // segments that begin below the places of the word
    uint32_t parts[PACK_WARPS + 3];  // partial sums; the pack's rows and segments, the shift of a pass
    uint16_t firsts[CHUNK_MAX + 1];  // of each segment its first place in the pack, and the end of the last one
};
constexpr uint32_t PACK_ROWS_AT = PACK_WARPS, PACK_SEGMENTS_AT = PACK_WARPS + 1, PACK_SHIFT_AT = PACK_WARPS + 2;

// The segment, by its number in the pack, that a place belongs to.
WC_DEVICE uint32_t pack_segment(const PackMemory& memory, uint32_t place) {
    const uint32_t below = memory.heads[place / 32] & (0xffffffffu >> (31 - place % 32));
    return memory.numbers[place / 32] + __popc(below) - 1;
}

// The sum of a word over all threads below; the sum over all is left in `parts[at]`. Two barriers.
WC_DEVICE uint32_t pack_sum_below(PackMemory& memory, uint32_t value, uint32_t at) {
    const uint32_t inclusive = wc_warp_inclusive_sum(value);
    if (wc_lane() == 31) memory.parts[wc_warp()] = inclusive;
    __syncthreads();
    uint32_t before = inclusive - value;
#pragma unroll
    for (uint32_t warp = 0; warp < PACK_WARPS; ++warp) before += warp < wc_warp() ? memory.parts[warp] : 0;
    if (threadIdx.x == PACK_THREADS - 1) memory.parts[at] = before + value;
    __syncthreads();
    return before;
}

// Lays the segments of a pack side by side.
WC_DEVICE void pack_lay_out(const SegmentedParams& p, PackMemory& memory, uint64_t pack) {
    constexpr uint32_t EACH = (CHUNK_MAX + PACK_THREADS - 1) / PACK_THREADS;
    const uint64_t word = p.packs[pack], first = word & ~(PACK_ALONE | PACK_COMPARED);
    const bool alone = (word & PACK_ALONE) != 0;
    uint64_t end = min((first / p.chunk + 1) * p.chunk, p.segments);
    if (alone) end = first + 1;
    if (!alone && pack + 1 < p.counters->packs) {
        // The next pack of the chunk, if it is one of several segments, ends this one.
        const uint64_t next = p.packs[pack + 1] & ~PACK_COMPARED;
        if (next / p.chunk == first / p.chunk) end = next;
    }
    for (uint32_t at = threadIdx.x; at < PACK / 32; at += PACK_THREADS) memory.heads[at] = 0;
    // Rows in the low half, segments in the high one.
    uint32_t sizes[EACH], sum = 0;
    uint64_t starts[EACH];
#pragma unroll
    for (uint32_t k = 0; k < EACH; ++k) {
        const uint64_t segment = first + threadIdx.x * EACH + k;
        sizes[k] = 0;
        if (segment >= end) continue;
        starts[k] = p.offsets[segment];
        const uint64_t rows = p.offsets[segment + 1] - starts[k];
        if (rows > 0 && (alone || rows <= SMALL)) sizes[k] = 1u << 16 | (uint32_t)rows;
        sum += sizes[k];
    }
    uint32_t before = pack_sum_below(memory, sum, PACK_ROWS_AT);
#pragma unroll
    for (uint32_t k = 0; k < EACH; ++k) {
        if (sizes[k] == 0) continue;
        const uint32_t place = before & 0xffffu;
        memory.deltas[before >> 16] = starts[k] - place;
        memory.firsts[before >> 16] = (uint16_t)place;
        atomicOr(memory.heads + place / 32, 1u << place % 32);
        before += sizes[k];
    }
    if (threadIdx.x == PACK_THREADS - 1) memory.firsts[before >> 16] = (uint16_t)(before & 0xffffu);
    __syncthreads();
    const uint32_t total = memory.parts[PACK_ROWS_AT];
    const uint32_t begun = threadIdx.x < PACK / 32 ? __popc(memory.heads[threadIdx.x]) : 0;
    const uint32_t number = pack_sum_below(memory, begun, PACK_SEGMENTS_AT);
    if (threadIdx.x < PACK / 32) memory.numbers[threadIdx.x] = number;
    if (threadIdx.x == 0) memory.parts[PACK_ROWS_AT] = total & 0xffffu;
    __syncthreads();
}

// Sorts the pack by one digit, of the keys or of the tags; false if all rows have the same.
template <bool BY_TAG>
WC_DEVICE bool pack_pass(PackMemory& memory, SortBits (&keys)[PACK_ITEMS], uint32_t (&tags)[PACK_ITEMS],
                         uint32_t rows, bool tagged, uint32_t shift, uint32_t mask) {
    const auto digit = [&](uint32_t i, uint32_t shift) {
        return (BY_TAG ? tags[i] >> shift : (uint32_t)(keys[i] >> shift)) & mask;
    };
    const uint32_t items = (rows + PACK_THREADS - 1) / PACK_THREADS, own = wc_warp() * items * 32 + wc_lane();
    uint32_t* mine = memory.counters + wc_warp() * SORT_BINS;
    for (uint32_t bin = wc_lane(); bin < SORT_BINS; bin += 32) mine[bin] = 0;
    if (threadIdx.x == 0) memory.parts[PACK_SHIFT_AT] = shift;
    __syncwarp();
#pragma unroll
    for (uint32_t i = 0; i < PACK_ITEMS; ++i) {
        if (i < items) atomicAdd(mine + digit(i, shift), 1u);
    }
    __syncthreads();
    uint32_t count = 0, inclusive = 0;
    bool constant = false;
    if (threadIdx.x < SORT_BINS) {
        count = sort_bin_count<PACK_WARPS>(memory.counters);
        inclusive = wc_warp_inclusive_sum(count);
        if (wc_lane() == 31) memory.parts[wc_warp()] = inclusive;
        // Places past the last row count for the largest digit.
        constant = count - (threadIdx.x == mask ? items * PACK_THREADS - rows : 0) == rows;
    }
    if (__syncthreads_or(constant)) return false;
    if (threadIdx.x < SORT_BINS) {
        uint32_t start = inclusive - count;
#pragma unroll
        for (uint32_t warp = 0; warp < SORT_BINS / 32; ++warp) start += warp < wc_warp() ? memory.parts[warp] : 0;
        sort_bin_places<PACK_WARPS>(memory.counters, start);
    }
    __syncthreads();
    // Read again, as in `sort_tile`.
    const uint32_t again = *(const volatile uint32_t*)(memory.parts + PACK_SHIFT_AT);
#pragma unroll
    for (uint32_t i = 0; i < PACK_ITEMS; ++i) {
        if (i >= items) continue;
        const uint32_t rank = sort_rank(mine, digit(i, again));
        memory.keys[rank] = keys[i];
        if (tagged) memory.tags[rank] = tags[i];
    }
    __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < PACK_ITEMS; ++i) {
        if (i >= items) continue;
        keys[i] = memory.keys[own + i * 32];
        if (tagged) tags[i] = memory.tags[own + i * 32];
    }
    return true;
}

// Sorts packs, a block a pack. A row travels with its tag: its place at first, and above it the number of its segment.
WC_KERNEL(segmented_sort_pack, SegmentedParams, PACK_THREADS, WC_PACK_BLOCKS) {
    PackMemory& memory = *(PackMemory*)wc_shared();
    const SortBits flip = sort_flip(p.digits);
    const uint64_t packs = p.counters->packs;
    for (uint64_t pack = blockIdx.x; pack < packs; pack += gridDim.x) {
        if (p.packs[pack] & PACK_COMPARED) continue;
        __syncthreads();
        pack_lay_out(p, memory, pack);
        const uint32_t rows = memory.parts[PACK_ROWS_AT], segments = memory.parts[PACK_SEGMENTS_AT];
        const uint32_t items = (rows + PACK_THREADS - 1) / PACK_THREADS, own = wc_warp() * items * 32 + wc_lane();
        const bool tagged = SORT_PAIRS || segments > 1;

        // Places past the last row have the largest key and segment, and stay behind all rows.
        SortBits keys[PACK_ITEMS];
        uint32_t tags[PACK_ITEMS];
#pragma unroll
        for (uint32_t i = 0; i < PACK_ITEMS; ++i) {
            const uint32_t place = own + i * 32;
            keys[i] = ~(SortBits)0;
            tags[i] = ~0u;
            if (i >= items || place >= rows) continue;
            const uint32_t segment = pack_segment(memory, place);
            keys[i] = sort_load(p.places.keys[0] + (memory.deltas[segment] + place));
            tags[i] = segment << 16 | place;
        }
#pragma unroll
        for (uint32_t i = 0; i < PACK_ITEMS; ++i) {
            if (i < items && own + i * 32 < rows) keys[i] = sort_encode(keys[i], flip);
        }
        bool moved = false;
        for (uint64_t pass = 0; pass < p.digits.passes; ++pass) {
            const uint32_t shift = digit_shift(p.digits, pass), mask = digit_mask(p.digits, pass);
            moved |= pack_pass<false>(memory, keys, tags, rows, tagged, shift, mask);
        }
        const uint32_t bits = moved && segments > 1 ? 32 - __clz((int)(segments - 1)) : 0;
        const uint32_t passes = (bits + 7) / 8, width = passes == 0 ? 0 : (bits + passes - 1) / passes;
        for (uint32_t pass = 0; pass < passes; ++pass) {
            const uint32_t shift = 16 + pass * width, mask = (1u << width) - 1;
            pack_pass<true>(memory, keys, tags, rows, tagged, shift, mask);
        }

#pragma unroll
        for (uint32_t i = 0; i < PACK_ITEMS; ++i) {
            const uint32_t place = own + i * 32;
            if (i >= items || place >= rows) continue;
            const uint64_t row = memory.deltas[pack_segment(memory, place)] + place;
            p.places.keys[1][row] = sort_decode(keys[i], flip);
        }
        if (!SORT_PAIRS) continue;
        // The barrier keeps the compiler from holding the rows of keys in registers.
        __syncthreads();
        SortPayload values[PACK_ITEMS];
        const SortPayload* payload = p.places.values[0];
#pragma unroll
        for (uint32_t i = 0; i < PACK_ITEMS; ++i) {
            const uint32_t place = own + i * 32;
            if (i >= items || place >= rows) continue;
            const uint64_t row = memory.deltas[pack_segment(memory, place)] + (tags[i] & 0xffffu);
            values[i] = payload == nullptr ? (SortPayload)row : payload[row];
        }
        // In place all payload is read before any is written.
        __syncthreads();
#pragma unroll
        for (uint32_t i = 0; i < PACK_ITEMS; ++i) {
            const uint32_t place = own + i * 32;
            if (i >= items || place >= rows) continue;
            p.places.values[1][memory.deltas[pack_segment(memory, place)] + place] = values[i];
        }
    }
}

#if WC_PACK_COMPARISONS > 0
// A row of a pack as one number, larger than those of all rows in front of it in its order: the number of its segment,
// its key, its place.
template <uint32_t KEY_BYTES> struct PackWordOf { typedef uint64_t Word; };
template <> struct PackWordOf<8> { typedef uint128_t Word; };
typedef PackWordOf<sizeof(SortBits)>::Word PackWord;
constexpr uint32_t PACK_KEY_SHIFT = 16, PACK_SEGMENT_SHIFT = PACK_KEY_SHIFT + sizeof(SortBits) * 8;
// Words that a row is compared with at once.
constexpr uint32_t PACK_STEP = 4;
static_assert(sizeof(SortBits) <= 8 && PACK_SEGMENT_SHIFT + 12 <= sizeof(PackWord) * 8, "a row fits into a word");
static_assert(sizeof(PackWord) * PACK <= (sizeof(SortBits) + 4) * PACK + PACK_WARPS * SORT_BINS * 4,
              "words fit in front of `deltas`");

// Sorts packs of tiny segments by comparisons, a block a pack: the place of a row is the number of words below its own.
// Words of other segments compare as their places do, so loads of PACK_STEP words need no bounds.
WC_KERNEL(segmented_sort_compare, SegmentedParams, PACK_THREADS, WC_PACK_BLOCKS) {
    PackMemory& memory = *(PackMemory*)wc_shared();
    PackWord* words = (PackWord*)wc_shared();
    const SortBits flip = sort_flip(p.digits);
    const uint64_t packs = p.counters->packs;
    for (uint64_t pack = blockIdx.x; pack < packs; pack += gridDim.x) {
        if (!(p.packs[pack] & PACK_COMPARED)) continue;
        __syncthreads();
        pack_lay_out(p, memory, pack);
        const uint32_t rows = memory.parts[PACK_ROWS_AT], items = (rows + PACK_THREADS - 1) / PACK_THREADS;
        PackWord own[PACK_ITEMS];
#pragma unroll
        for (uint32_t i = 0; i < PACK_ITEMS; ++i) {
            const uint32_t place = i * PACK_THREADS + threadIdx.x;
            own[i] = ~(PackWord)0;
            if (i >= items || place >= rows) continue;
            const uint32_t segment = pack_segment(memory, place);
            const SortBits bits = sort_load(p.places.keys[0] + (memory.deltas[segment] + place));
            own[i] = (PackWord)segment << PACK_SEGMENT_SHIFT | (PackWord)bits << PACK_KEY_SHIFT | place;
        }
#pragma unroll
        for (uint32_t i = 0; i < PACK_ITEMS; ++i) {
            const uint32_t place = i * PACK_THREADS + threadIdx.x;
            if (i >= items) continue;
            const PackWord others = own[i] & ~((PackWord)(SortBits)~(SortBits)0 << PACK_KEY_SHIFT);
            const SortBits bits = sort_encode((SortBits)(own[i] >> PACK_KEY_SHIFT), flip);
            if (place < rows) own[i] = others | (PackWord)bits << PACK_KEY_SHIFT;
            words[place] = own[i];
        }
        __syncthreads();
        uint32_t places[(PACK_ITEMS + 1) / 2];
#pragma unroll
        for (uint32_t i = 0; i < PACK_ITEMS; ++i) {
            const uint32_t at = i * PACK_THREADS + threadIdx.x;
            uint32_t place = at;
            if (i < items && at < rows) {
                const uint32_t segment = (uint32_t)(own[i] >> PACK_SEGMENT_SHIFT);
                const uint32_t begin = memory.firsts[segment] / PACK_STEP * PACK_STEP, end = memory.firsts[segment + 1];
                place = begin;
                for (uint32_t j = begin; j < end; j += PACK_STEP) {
                    PackWord others[PACK_STEP];
                    memcpy(others, __builtin_assume_aligned(words + j, 16), sizeof others);
#pragma unroll
                    for (uint32_t k = 0; k < PACK_STEP; ++k) place += others[k] < own[i] ? 1 : 0;
                }
            }
            places[i / 2] = i % 2 == 0 ? place : places[i / 2] | place << 16;
        }
        __syncthreads();
#pragma unroll
        for (uint32_t i = 0; i < PACK_ITEMS; ++i) {
            if (i < items) words[places[i / 2] >> i % 2 * 16 & 0xffffu] = own[i];
        }
        __syncthreads();
#pragma unroll
        for (uint32_t i = 0; i < PACK_ITEMS; ++i) {
            const uint32_t place = i * PACK_THREADS + threadIdx.x;
            if (i >= items || place >= rows) continue;
            own[i] = words[place];
            const uint64_t row = memory.deltas[(uint32_t)(own[i] >> PACK_SEGMENT_SHIFT)] + place;
            p.places.keys[1][row] = sort_decode((SortBits)(own[i] >> PACK_KEY_SHIFT), flip);
        }
        if (!SORT_PAIRS) continue;
        SortPayload values[PACK_ITEMS];
        const SortPayload* payload = p.places.values[0];
#pragma unroll
        for (uint32_t i = 0; i < PACK_ITEMS; ++i) {
            const uint32_t place = i * PACK_THREADS + threadIdx.x;
            if (i >= items || place >= rows) continue;
            const uint64_t delta = memory.deltas[(uint32_t)(own[i] >> PACK_SEGMENT_SHIFT)];
            const uint64_t row = delta + ((uint32_t)own[i] & 0xffffu);
            values[i] = payload == nullptr ? (SortPayload)row : payload[row];
        }
        // In place all payload is read before any is written.
        __syncthreads();
#pragma unroll
        for (uint32_t i = 0; i < PACK_ITEMS; ++i) {
            const uint32_t place = i * PACK_THREADS + threadIdx.x;
            if (i >= items || place >= rows) continue;
            p.places.values[1][memory.deltas[(uint32_t)(own[i] >> PACK_SEGMENT_SHIFT)] + place] = values[i];
        }
    }
}
#endif
