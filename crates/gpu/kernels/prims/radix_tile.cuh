// One tile of a pass of a radix sort: ranks of keys in the tile, places of the tile in the output.
//
// Text in front of this file defines WC_SORT_KEY, WC_SORT_THREADS (a multiple of 32, at least 256), WC_SORT_ITEMS and,
// for pairs, WC_SORT_PAYLOAD. radix_sort.cuh and segmented_sort.cuh build on it.
//
// Source: A. Adinets, D. Merrill, "Onesweep: A Faster Least Significant Digit Radix Sort for GPUs", 2022: one pass
// over the data a digit, tiles by ticket, decoupled look-back for each bin. Ranks inside a warp by one vote a bit.
#pragma once

typedef WC_SORT_KEY SortKey;
typedef WcKey<SortKey>::Bits SortBits;
#ifdef WC_SORT_PAYLOAD
typedef WC_SORT_PAYLOAD SortPayload;
constexpr bool SORT_PAIRS = true;
#else
typedef uint32_t SortPayload;
constexpr bool SORT_PAIRS = false;
#endif

constexpr uint32_t SORT_BINS = 256, SORT_THREADS = WC_SORT_THREADS, SORT_ITEMS = WC_SORT_ITEMS;
constexpr uint32_t SORT_WARPS = SORT_THREADS / 32, SORT_TILE = SORT_THREADS * SORT_ITEMS;
// Descriptors that a thread of the look-back loads at once.
constexpr uint32_t SORT_LOOK_BACK = 4;

// What a pass does, a word of the plan: bit 0 says that there is anything to do, bits 1 and 2 name the source and bits
// 3 and 4 the target (0 input, 1 output, 2 other), bit 5 says that the source holds keys and bit 6 that the target does
// (others hold bits of keys), bits 8 and 9 count active passes before it modulo 3, a portion of the rows each.
constexpr uint32_t PLAN_ACTIVE = 1, PLAN_ENCODE = 32, PLAN_DECODE = 64;
WC_DEVICE uint32_t plan_source(uint32_t plan) { return plan >> 1 & 3u; }
WC_DEVICE uint32_t plan_target(uint32_t plan) { return plan >> 3 & 3u; }
// The code of prefixes in descriptors; a pass over several portions of the rows has several.
WC_DEVICE uint32_t plan_code(uint32_t plan, uint64_t portion) {
    return 1 + (uint32_t)(((plan >> 8 & 3u) + portion) % 3);
}

// Keys, bits of keys and payload in the three places of a sort.
struct SortPlaces {
    SortBits* keys[3];
    SortPayload* values[3];
};

// The digit that a pass sorts by, as members of parameter structs.
struct SortDigits {
    uint64_t begin, end;   // the bits of keys that count
    uint64_t width;        // bits of a digit, at most 8
    uint64_t passes;
    uint64_t descending;   // 1: bits are complemented
};

WC_DEVICE uint32_t digit_shift(const SortDigits& digits, uint64_t pass) {
    return (uint32_t)(digits.begin + pass * digits.width);
}
WC_DEVICE uint32_t digit_mask(const SortDigits& digits, uint64_t pass) {
    const uint64_t left = digits.end - digits.begin - pass * digits.width;
    return (1u << (left < digits.width ? left : digits.width)) - 1;
}
WC_DEVICE SortBits sort_flip(const SortDigits& digits) { return (SortBits)(digits.descending ? ~(SortBits)0 : 0); }

WC_DEVICE SortBits sort_encode(SortBits raw, SortBits flip) {
    SortKey key;
    memcpy(&key, &raw, sizeof key);
    return WcKey<SortKey>::to_bits(key) ^ flip;
}
WC_DEVICE SortBits sort_decode(SortBits bits, SortBits flip) {
    const SortKey key = WcKey<SortKey>::from_bits(bits ^ flip);
    SortBits raw;
    memcpy(&raw, &key, sizeof raw);
    return raw;
}

template <typename T> WC_DEVICE T sort_load(const T* address) { return wc_load_stream(address); }
WC_DEVICE uint128_t sort_load(const uint128_t* address) {
    const int4 words = wc_load16_stream(address);
    uint128_t value;
    memcpy(&value, &words, sizeof value);
    return value;
}

// Lanes of the warp with the same digit.
WC_DEVICE uint32_t sort_match(uint32_t digit) {
    uint32_t same = WC_FULL_MASK;
#pragma unroll
    for (uint32_t bit = 0; bit < 8; ++bit) same = wc_match_bit(same, digit, 1u << bit);
    return same;
}

// The place of a lane's key: `counters`, of the warp, hold the next place of each bin and move on. Lanes with one digit
// follow each other; the last of them counts for all.
WC_DEVICE uint32_t sort_rank(uint32_t* counters, uint32_t digit) {
    const uint32_t same = sort_match(digit), below = __popc(same & ((1u << wc_lane()) - 1));
    const uint32_t last = 31 - __clz((int)same);
    uint32_t next = 0;
    if (wc_lane() == last) next = atomicAdd(counters + digit, below + 1);
    return __shfl_sync(WC_FULL_MASK, next, (int)last) + below;
}

// Threads below SORT_BINS: the count of the thread's bin over all warps.
template <uint32_t WARPS> WC_DEVICE uint32_t sort_bin_count(const uint32_t* counters) {
    uint32_t sum = 0;
#pragma unroll
    for (uint32_t warp = 0; warp < WARPS; ++warp) sum += counters[warp * SORT_BINS + threadIdx.x];
    return sum;
}

// The sum over the bins below one's own; called by all threads, with a barrier inside. `parts` has 8 words.
WC_DEVICE uint32_t sort_bin_start(uint32_t sum, uint32_t* parts) {
    uint32_t inclusive = 0;
    if (threadIdx.x < SORT_BINS) {
        inclusive = wc_warp_inclusive_sum(sum);
        if (wc_lane() == 31) parts[wc_warp()] = inclusive;
    }
    __syncthreads();
    uint32_t before = inclusive - sum;
    if (threadIdx.x < SORT_BINS) {
#pragma unroll
        for (uint32_t warp = 0; warp < SORT_BINS / 32; ++warp) before += warp < wc_warp() ? parts[warp] : 0;
    }
    return before;
}

// Threads below SORT_BINS: counts of each warp become the next place of its keys of the bin.
template <uint32_t WARPS> WC_DEVICE void sort_bin_places(uint32_t* counters, uint32_t start) {
#pragma unroll
    for (uint32_t warp = 0; warp < WARPS; ++warp) {
        const uint32_t count = counters[warp * SORT_BINS + threadIdx.x];
        counters[warp * SORT_BINS + threadIdx.x] = start;
        start += count;
    }
}

// Descriptors of tiles, SORT_BINS words a tile: a count in the low bits, a code in the highest two. Code 0 is the count
// of a tile alone; the pass's code, of 1, 2 and 3 in turn, that of all tiles up to it; others are left over from the
// two passes before, or from the fill with ones in front of the first.
template <typename Word> constexpr uint32_t WORD_SHIFT = sizeof(Word) * 8 - 2;

// The count of a bin in the tiles of `first..tile`; `words` is the bin's word of tile 0.
template <typename Word>
WC_DEVICE Word sort_look_back(const Word* words, uint64_t first, uint64_t tile, uint32_t code) {
    Word sum = 0;
    for (;;) {
        Word seen[SORT_LOOK_BACK];
#pragma unroll
        for (uint32_t k = 0; k < SORT_LOOK_BACK; ++k) {
            const uint64_t at = tile - first > k ? tile - 1 - k : first;
            seen[k] = wc_load_relaxed(words + at * SORT_BINS);
        }
        uint32_t counted = 0;
#pragma unroll
        for (uint32_t k = 0; k < SORT_LOOK_BACK; ++k) {
            const uint32_t found = (uint32_t)(seen[k] >> WORD_SHIFT<Word>);
            if (counted != k) continue;
            if (found == code) return sum + (seen[k] & (((Word)1 << WORD_SHIFT<Word>) - 1));
            if (found != 0) continue;
            sum += seen[k];
            ++counted;
        }
        if (counted == 0) wc_backoff();
        tile -= counted;
    }
}

// What a tile needs to know of itself.
template <typename Word> struct SortTask {
    uint32_t plan, code, shift, mask;
    SortBits flip;
    uint64_t row;          // its first row
    uint32_t rows;         // at most SORT_TILE
    uint64_t first, tile;  // among descriptors: the first tile of its segment, and itself
    Word* words;           // descriptors
    const uint64_t* starts;  // places in the output of the first key of each bin
    uint64_t* carry;       // where the last tile leaves the places behind its own, or null
};

// Shared memory of a tile in bytes: keys or payload in their new order, counters of warps, places of bins, words.
constexpr uint32_t SORT_WIDEST = sizeof(SortPayload) > sizeof(SortBits) && SORT_PAIRS ? sizeof(SortPayload)
                                                                                      : sizeof(SortBits);
constexpr uint32_t SORT_EXCHANGE_BYTES = (SORT_TILE * SORT_WIDEST + 15) / 16 * 16;
constexpr uint32_t SORT_COUNTER_BYTES = SORT_WARPS * SORT_BINS * 4;

// Sorts one tile by one digit. Keys lie `items` rows apart from warp to warp and 1 apart from lane to lane, so that
// ranks in the order of (warp, item, lane) keep the order of rows. FULL says that all tiles but the last have
// SORT_TILE rows: places past the last row hold the largest digit then, and rank behind all rows. All threads call
// `ahead` between ranks and look-back.
template <bool FULL, typename Word, typename Ahead>
WC_DEVICE void sort_tile(const SortPlaces& places, const SortTask<Word>& task, Ahead ahead) {
    SortBits* exchange = (SortBits*)wc_shared();
    uint32_t* counters = (uint32_t*)(wc_shared() + SORT_EXCHANGE_BYTES);
    // Of each bin the address of its first row in the output, less that of its first place in the tile.
    uint64_t* offsets = (uint64_t*)(wc_shared() + SORT_EXCHANGE_BYTES + SORT_COUNTER_BYTES);
    uint32_t* parts = (uint32_t*)(offsets + SORT_BINS);
    const uint32_t lane = wc_lane(), warp = wc_warp();
    const uint32_t items = FULL ? SORT_ITEMS : (task.rows + SORT_THREADS - 1) / SORT_THREADS;
    const uint32_t own = warp * items * 32 + lane;
    uint32_t* mine = counters + warp * SORT_BINS;

    SortBits keys[SORT_ITEMS];
    const SortBits* source = places.keys[plan_source(task.plan)] + task.row;
#pragma unroll
    for (uint32_t i = 0; i < SORT_ITEMS; ++i) {
        keys[i] = ~(SortBits)0;
        if (i < items && own + i * 32 < task.rows) keys[i] = sort_load(source + own + i * 32);
    }
    for (uint32_t bin = lane; bin < SORT_BINS; bin += 32) mine[bin] = 0;
    if (threadIdx.x == 0) parts[9] = task.shift;
    __syncwarp();
    if (task.plan & PLAN_ENCODE) {
#pragma unroll
        for (uint32_t i = 0; i < SORT_ITEMS; ++i) {
            if (i < items && own + i * 32 < task.rows) keys[i] = sort_encode(keys[i], task.flip);
        }
    }

    // Counts come first, so that other tiles wait for them alone and not for ranks.
#pragma unroll
    for (uint32_t i = 0; i < SORT_ITEMS; ++i) {
        if (i < items) atomicAdd(mine + ((uint32_t)(keys[i] >> task.shift) & task.mask), 1u);
    }
    __syncthreads();
    uint32_t count = 0;
    Word* word = task.words + task.tile * SORT_BINS + threadIdx.x;
    const Word code = (Word)task.code << WORD_SHIFT<Word>;
    if (threadIdx.x < SORT_BINS) {
        count = sort_bin_count<SORT_WARPS>(counters);
        wc_store_relaxed(word, (Word)(count | (task.tile == task.first ? code : 0)));
    }
    const uint32_t start = sort_bin_start(count, parts);
    if (threadIdx.x < SORT_BINS) sort_bin_places<SORT_WARPS>(counters, start);
    __syncthreads();

    // The shift is read again, or the compiler keeps all digits in registers from the counts on and spills 30 words.
    const uint32_t shift = *(const volatile uint32_t*)(parts + 9);
    uint32_t ranks[(SORT_ITEMS + 1) / 2];
#pragma unroll
    for (uint32_t i = 0; i < SORT_ITEMS; ++i) {
        if (i >= items) continue;
        const uint32_t rank = sort_rank(mine, (uint32_t)(keys[i] >> shift) & task.mask);
        exchange[rank] = keys[i];
        ranks[i / 2] = i % 2 == 0 ? rank : ranks[i / 2] | rank << 16;
    }
    SortPayload values[SORT_ITEMS];
    if (SORT_PAIRS) {
        const SortPayload* payload = places.values[plan_source(task.plan)];
        const uint64_t row = task.row + own;
        if (payload == nullptr) {
#pragma unroll
            for (uint32_t i = 0; i < SORT_ITEMS; ++i) values[i] = (SortPayload)(row + i * 32);
        } else {
#pragma unroll
            for (uint32_t i = 0; i < SORT_ITEMS; ++i) {
                if (i < items && own + i * 32 < task.rows) values[i] = sort_load(payload + row + i * 32);
            }
        }
    }

    ahead();
    SortBits* target = places.keys[plan_target(task.plan)];
    if (threadIdx.x < SORT_BINS) {
        Word before = 0;
        if (task.tile != task.first) {
            before = sort_look_back(task.words + threadIdx.x, task.first, task.tile, task.code);
            wc_store_relaxed(word, (Word)(before + count) | code);
        }
        const uint64_t place = wc_load_cached(task.starts + threadIdx.x) + before;
        if (task.carry != nullptr) task.carry[threadIdx.x] = place + count;
        offsets[threadIdx.x] = (uint64_t)target + (place - start) * sizeof(SortBits);
    }
    __syncthreads();

    uint32_t bins[(SORT_ITEMS + 3) / 4];
#pragma unroll
    for (uint32_t i = 0; i < SORT_ITEMS; ++i) {
        const uint32_t at = i * SORT_THREADS + threadIdx.x;
        if (i % 4 == 0) bins[i / 4] = 0;
        if (at >= task.rows) continue;
        const SortBits bits = exchange[at];
        const uint32_t bin = (uint32_t)(bits >> task.shift) & task.mask;
        bins[i / 4] |= bin << i % 4 * 8;
        *(SortBits*)(offsets[bin] + at * sizeof(SortBits)) =
            task.plan & PLAN_DECODE ? sort_decode(bits, task.flip) : bits;
    }
    if (!SORT_PAIRS) return;
    __syncthreads();
    SortPayload* payload = places.values[plan_target(task.plan)];
    if (threadIdx.x < SORT_BINS) {
        const int64_t offset = (int64_t)(offsets[threadIdx.x] - (uint64_t)target) / (int64_t)sizeof(SortBits);
        offsets[threadIdx.x] = (uint64_t)payload + (uint64_t)offset * sizeof(SortPayload);
    }
    SortPayload* swap = (SortPayload*)wc_shared();
#pragma unroll
    for (uint32_t i = 0; i < SORT_ITEMS; ++i) {
        if (i < items && own + i * 32 < task.rows) swap[ranks[i / 2] >> i % 2 * 16 & 0xffffu] = values[i];
    }
    __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < SORT_ITEMS; ++i) {
        const uint32_t at = i * SORT_THREADS + threadIdx.x;
        if (at >= task.rows) continue;
        *(SortPayload*)(offsets[bins[i / 4] >> i % 4 * 8 & 0xffu] + at * sizeof(SortPayload)) = swap[at];
    }
}

// How the output of a sort lies to its input: elsewhere; in the same place; keys in the same place, and payload is the
// number of the row; elsewhere, and the input is the other place, which passes may overwrite.
constexpr uint64_t FORM_APART = 0, FORM_IN_PLACE = 1, FORM_NUMBERING = 2, FORM_FROM_OTHER = 3;

// Writes the plan of one sort: `constant` bit p says that pass p has one digit only. In place the sort goes to the
// other place first and back, with a copy at the end for an odd number of passes; from the other place it goes to the
// output first, with a copy for an even number; otherwise the first target is the one from which the last pass comes to
// the output. A pass has `epochs` portions.
WC_DEVICE void sort_plan(uint32_t* plan, uint32_t passes, uint32_t constant, uint64_t form, uint32_t epochs) {
    uint32_t active = 0;
    for (uint32_t pass = 0; pass < passes; ++pass) active += ~constant >> pass & 1u;
    const bool direct = form == FORM_FROM_OTHER || (form == FORM_APART && active % 2 == 1);
    uint32_t source = 0, target = direct ? 1 : 2, done = 0;
    for (uint32_t pass = 0; pass < passes; ++pass) {
        plan[pass] = 0;
        if (constant >> pass & 1u) continue;
        const uint32_t epoch = done * (epochs % 3) % 3;
        plan[pass] = PLAN_ACTIVE | source << 1 | target << 3 | (done == 0 ? PLAN_ENCODE : 0) | epoch << 8;
        if (++done == active) plan[pass] |= PLAN_DECODE;
        source = target;
        target = 3 - target;
    }
    const bool stays = active == 0 && form == FORM_IN_PLACE;
    const bool copies = source == 2 || (source == 0 && !stays);
    plan[passes] = copies ? PLAN_ACTIVE | source << 1 | 1u << 3 : 0;
}

// Copies rows from..end of one place to another, by all threads of a block; payload that there is none of is the
// number of the row.
WC_DEVICE void sort_copy(const SortPlaces& places, uint32_t plan, uint64_t from, uint64_t end) {
    const SortBits* source = places.keys[plan_source(plan)];
    const SortPayload* payload = places.values[plan_source(plan)];
    for (uint64_t row = from + threadIdx.x; row < end; row += blockDim.x) {
        places.keys[plan_target(plan)][row] = sort_load(source + row);
        if (SORT_PAIRS) {
            places.values[plan_target(plan)][row] = payload == nullptr ? (SortPayload)row : sort_load(payload + row);
        }
    }
}

// Exclusive sums of the 256 counts of a digit, in place, from `before` on, by a block of 256 threads; true in all
// threads if one bin has all `rows`. `parts` has 8 words.
WC_DEVICE bool sort_starts(uint64_t* counts, uint64_t before, uint64_t rows, uint64_t* parts) {
    const uint64_t count = counts[threadIdx.x], inclusive = wc_warp_inclusive_sum(count);
    if (wc_lane() == 31) parts[wc_warp()] = inclusive;
    const bool constant = __syncthreads_or(count == rows);
    uint64_t start = before + inclusive - count;
    for (uint32_t warp = 0; warp < wc_warp(); ++warp) start += parts[warp];
    counts[threadIdx.x] = start;
    __syncthreads();
    return constant;
}
