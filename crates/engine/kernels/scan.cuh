// What generated pipelines call: hashes, keys, dates, decimals, errors. Rows lie in lanes as
// crates/column/kernels/plain.cuh maps them.

enum WcErrorCode { WC_DIVIDE_BY_ZERO = 1, WC_OVERFLOW = 2 };
// WC_SUM_WINDOW of fixed.cuh is 4.
enum WcFlag { WC_DUPLICATE_KEY = 1, WC_LONG_RUN = 8 };
// The bit of the flags that a result has where a scan has stopped without room (stops.cuh).
#define WC_STOPPED_SHIFT 5

WC_DEVICE bool wc_test_bit(const uint32_t* bits, uint64_t position) {
    return bits[position >> 5] >> (position & 31u) & 1u;
}

// The same in device memory for a row that is asked for; others look at the first word.
WC_DEVICE bool wc_test_far(const uint32_t* bits, bool asked, uint64_t position) {
    const uint32_t word = bits[asked ? position >> 5 : 0];
    return asked & (word >> (position & 31u) & 1u);
}

// The chunk that a ticket falls into: the last one whose first ticket is not past it. All lanes look together, a 32nd
// of what is left each, so that a thousand chunks take two loads.
WC_DEVICE uint32_t wc_find_chunk(const uint32_t* first_tickets, uint32_t chunks, uint32_t ticket, uint32_t lane) {
    uint32_t low = 0, left = chunks;
    while (left > 1) {
        const uint32_t stride = (left + 31) / 32, at = lane * stride;
        const bool reached = at < left && wc_load_cached(first_tickets + low + at) <= ticket;
        // The first of them is reached in any case.
        const uint32_t last = 31 - __clz(__ballot_sync(WC_FULL_MASK, reached) | 1u);
        low += last * stride;
        left = left - last * stride < stride ? left - last * stride : stride;
    }
    return low;
}

// Finaliser of MurmurHash3 (64 bits): spreads packed keys over a table. It can be inverted: the seed of a run, which
// keys are mixed with, keeps keys that were made to collide from colliding.
WC_DEVICE uint64_t wc_hash(uint64_t key) {
    key ^= key >> 33;
    key *= 0xff51afd7ed558ccdULL;
    key ^= key >> 33;
    key *= 0xc4ceb9fe1a85ec53ULL;
    return key ^ key >> 33;
}

// Longest run of slots that a key is looked for in. Below half load runs are shorter for any table that fits a device;
// past nine tenths they are not, and a table is better enlarged than filled up.
#define WC_RUN_MAX 1024

// Open addressing, linear probing; a slot holds key + 1, zero is empty. All keys lie within WC_RUN_MAX slots of their
// first one.
WC_DEVICE uint64_t wc_table_find(const uint64_t* keys, uint64_t mask, uint64_t seed, uint64_t key) {
    uint64_t slot = wc_hash(key ^ seed) & mask;
    for (uint32_t tries = 0; tries < WC_RUN_MAX; ++tries, slot = (slot + 1) & mask) {
        uint64_t found = keys[slot];
        if (found == key + 1) return slot;
        if (found == 0) break;
    }
    return ~0ULL;
}

// The slot of a key, entered if it is new; all ones if no slot is left for it. Keys lie STRIDE words apart.
template <int STRIDE = 1>
WC_DEVICE uint64_t wc_table_enter(uint64_t* keys, uint64_t mask, uint64_t seed, uint64_t key, bool* is_new) {
    uint64_t slot = wc_hash(key ^ seed) & mask;
    for (uint64_t tries = 0; tries <= mask && tries < WC_RUN_MAX; ++tries, slot = (slot + 1) & mask) {
        uint64_t found = wc_load_relaxed(keys + slot * STRIDE);
        if (found == 0) found = wc_compare_swap(keys + slot * STRIDE, 0, key + 1);
        *is_new = found == 0;
        if (found == 0 || found == key + 1) return slot;
    }
    *is_new = false;
    return ~0ULL;
}

// Asks whether the run goes on: lanes 1 to 6 read the words of `control`, error, flags and cancel, 64 bits each, which
// are zero as long as nothing is lost.
WC_DEVICE uint32_t wc_ask(const uint64_t* control, uint32_t lane) {
    return lane - 1 < 6 ? wc_load_relaxed((const uint32_t*)control + lane - 1) : 0;
}

// Whether the run is lost, for lanes that ask by themselves.
WC_DEVICE bool wc_is_lost(const uint64_t* control) {
    return (wc_load_relaxed(control) | wc_load_relaxed(control + 1) | wc_load_relaxed(control + 2)) != 0;
}

// wc_ask, and lane 0 asks for the next number of a ticket; wc_drawn waits for the answers.
WC_DEVICE uint32_t wc_draw(const uint64_t* control, uint32_t* counter, uint32_t lane) {
    return lane == 0 ? wc_count(counter) : wc_ask(control, lane);
}

// The number that was drawn; all ones where the run is lost.
WC_DEVICE uint32_t wc_drawn(uint32_t answer, uint32_t lane) {
    const bool lost = __any_sync(WC_FULL_MASK, lane != 0 && answer != 0);
    const uint32_t number = __shfl_sync(WC_FULL_MASK, answer, 0);
    return lost ? 0xffffffffu : number;
}

WC_DEVICE void wc_raise(uint64_t* slot, uint64_t code) { wc_compare_swap(slot, 0, code); }

// The one NaN that floats have. Loaded columns hold no other; the sign and the bits of one that arithmetic gives depend
// on the processor, so that it is taken for this one wherever values are ordered, grouped or kept.
WC_DEVICE double wc_one_nan(double value) {
    return value == value ? value : __longlong_as_double(0x7ff8000000000000LL);
}

// Total order of floats as of integers (IEEE 754 totalOrder): -inf < ... < -0 < +0 < ... < inf < NaN.
WC_DEVICE int64_t wc_order(double value) {
    int64_t bits = __double_as_longlong(wc_one_nan(value));
    return bits ^ (int64_t)((uint64_t)(bits >> 63) >> 1);
}

// Comparisons of floats: NaN equals NaN and is largest, zeros of both signs are equal.
template <typename T> WC_DEVICE bool wc_float_less(T left, T right) { return left == left && !(left >= right); }
template <typename T> WC_DEVICE bool wc_float_same(T left, T right) {
    return left == right || (left != left && right != right);
}

// Whether an integer is one of ascending constants.
WC_DEVICE bool wc_among(const int64_t* constants, uint64_t count, int64_t value) {
    uint64_t from = 0;
    for (uint64_t left = count; left > 0;) {
        const uint64_t half = left / 2;
        const bool above = wc_load_cached(constants + from + half) < value;
        from += above ? half + 1 : 0;
        left = above ? left - half - 1 : half;
    }
    return from < count && wc_load_cached(constants + from) == value;
}

// Civil date of a day count (Howard Hinnant, "chrono-compatible low-level date algorithms").
struct WcDate { int32_t year, month, day; };
WC_DEVICE WcDate wc_civil(int64_t days) {
    int64_t shifted = days + 719468;
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    uint32_t of_era = (uint32_t)(shifted - era * 146097);
    uint32_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    uint32_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    uint32_t shifted_month = (5 * of_year + 2) / 153;
    WcDate date;
    date.day = (int32_t)(of_year - (153 * shifted_month + 2) / 5 + 1);
    date.month = (int32_t)(shifted_month < 10 ? shifted_month + 3 : shifted_month - 9);
    date.year = (int32_t)(year_of_era + era * 400 + (date.month <= 2 ? 1 : 0));
    return date;
}

// Number of set bits of the lanes before this one, and of all lanes.
WC_DEVICE uint32_t wc_warp_prefix(uint32_t count, uint32_t* total) {
    const uint32_t sum = wc_warp_inclusive_sum(count);
    *total = __shfl_sync(WC_FULL_MASK, sum, 31);
    return sum - count;
}

WC_DEVICE uint64_t wc_warp_max(uint64_t value) {
    for (int step = 16; step > 0; step >>= 1) {
        uint64_t other = __shfl_xor_sync(WC_FULL_MASK, value, step);
        value = other > value ? other : value;
    }
    return value;
}

// The lane's slots whose rows lie before `rows`, as bits.
template <int SLOTS> WC_DEVICE uint32_t wc_slots_before(uint32_t rows, uint32_t lane) {
    uint32_t bits = 0;
#pragma unroll
    for (int slot = 0; slot < SLOTS; ++slot) bits |= (uint32_t)(wc_slot_row(slot, lane) < rows) << slot;
    return bits;
}

// Copies a bitmap to shared memory, 16 bytes a thread; both are aligned to 16 and padded to whole 16 bytes.
WC_DEVICE void wc_stage(uint32_t* target, const uint32_t* source, uint64_t words) {
    for (uint64_t at = threadIdx.x; at < words / 4; at += blockDim.x) ((uint4*)target)[at] = ((const uint4*)source)[at];
}

// Brings a bitmap to shared memory so that bit `first` of it comes to place 0; `past` words, and one without bits.
WC_DEVICE void wc_stage_from(uint32_t* target, uint32_t past, const uint32_t* source, uint64_t words, int64_t first) {
#pragma unroll 4
    for (uint32_t at = threadIdx.x; at <= past; at += blockDim.x) {
        const int64_t word = (first >> 5) + (int64_t)at;
        const uint32_t low = (uint64_t)word < words ? source[word] : 0;
        const uint32_t high = (uint64_t)(word + 1) < words ? source[word + 1] : 0;
        target[at] = at < past ? __funnelshift_r(low, high, (uint32_t)first) : 0;
    }
}

// The slots of a packed column that are alive and whose offsets a bitmap of `past` words has, as bits. Words of slots
// that are not alive are not loaded.
template <int SLOTS, typename Packed>
WC_DEVICE uint32_t wc_found(const Packed& column, const uint32_t* bits, uint32_t past, uint32_t alive) {
    uint32_t found = 0;
#pragma unroll
    for (int slot = 0; slot < SLOTS; ++slot) {
        const uint32_t offset = column.template value<uint32_t>(slot, 0u);
        uint32_t word = 0;
        if (alive >> slot & 1u) word = bits[min(offset >> 5, past)];
        // The bit goes in from above.
        found = __funnelshift_r(found, __funnelshift_r(word, 0u, offset), 1u);
    }
    return SLOTS < 32 ? found >> (32 - SLOTS) % 32 : found;
}

// How many codes are set, the first one that is, and the first past all of them. All threads of the block start it.
WC_DEVICE void wc_span_start(uint32_t* span) {
    if (threadIdx.x == 0) {
        span[0] = 0;
        span[1] = 0xffffffffu;
        span[2] = 0;
    }
    __syncthreads();
}
// The same of those that one thread sees.
struct WcSpan {
    uint32_t set = 0, first = 0xffffffffu, past = 0;
    WC_INLINE void see(uint32_t code, bool is_set) {
        if (!is_set) return;
        set += 1;
        first = code < first ? code : first;
        past = code + 1 > past ? code + 1 : past;
    }
    WC_INLINE void add_to(uint32_t* span) const {
        if (set == 0) return;
        atomicAdd(span, set);
        atomicMin(span + 1, first);
        atomicMax(span + 2, past);
    }
};

// The keys of a bitmap that this thread's words hold.
WC_DEVICE void wc_span_bits(WcSpan& span, const uint32_t* bits, uint32_t words) {
    for (uint32_t at = threadIdx.x; at < words; at += blockDim.x) {
        const uint32_t word = bits[at];
        if (word == 0) continue;
        span.see(32 * at + __ffs(word) - 1, true);
        span.see(32 * at + 31 - __clz(word), true);
    }
}

// Compares the bounds of a vector with what passes a step, bounds included.
template <typename Bounds>
WC_DEVICE void wc_zone_test(const Bounds& vector, int64_t low, int64_t high, bool* may, bool* all) {
    *may = *may && vector.high >= low && vector.low <= high;
    *all = *all && vector.low >= low && vector.high <= high;
}

// The same for a vector of at most 32 values side by side and the keys of a bitmap, the first of which is `first`: what
// lies between the ends of what passes need not pass.
template <typename Bounds>
WC_DEVICE void wc_zone_keys(
    const Bounds& vector, int64_t first, uint64_t keys, const uint32_t* bits, bool* may, bool* all) {
    // Distances without a sign: where a vector has patches, its end is that of all numbers.
    const uint64_t distance = (uint64_t)vector.low - (uint64_t)first;
    const uint64_t span = (uint64_t)vector.high - (uint64_t)vector.low;
    if (vector.low < first || span > 31 || distance >= keys || keys - distance <= span) {
        *all = false;
        return;
    }
    const uint32_t low = (uint32_t)distance, high = (uint32_t)(distance + span);
    const uint64_t words = bits[low / 32] | (uint64_t)bits[high / 32] << (high / 32 > low / 32 ? 32 : 0);
    const uint32_t wanted = 0xffffffffu >> (31 - (uint32_t)span), found = (uint32_t)(words >> low % 32) & wanted;
    *may = *may && found != 0;
    *all = *all && found == wanted;
}

// The chunk that a vector falls into, for each lane on its own: the last one whose first vector is not past it. No
// chunk has more than `whole` vectors, and most have as many: it is not before the first one looked at, nor far behind.
WC_DEVICE uint32_t wc_chunk_of(const uint32_t* first_vectors, uint32_t chunks, uint32_t vector, uint32_t whole) {
    uint32_t low = vector / whole, high = low + 1;
    for (uint32_t stride = 1; high < chunks && wc_load_cached(first_vectors + high) <= vector; stride *= 2) {
        low = high;
        high += stride;
    }
    high = high < chunks ? high : chunks;
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        if (wc_load_cached(first_vectors + middle) <= vector) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

// Adds to a 64-bit cell kept as two 32-bit halves in shared memory, where 32-bit additions are native and 64-bit ones
// are loops. Sums are exact modulo 2^64 whatever the order: each carry out of the lower half is seen by one thread.
WC_DEVICE void wc_add_halves(uint32_t* low, uint32_t* high, uint64_t value) {
    const uint32_t addend = (uint32_t)value;
    const uint32_t before = atomicAdd(low, addend);
    const uint32_t up = (uint32_t)(value >> 32) + (uint32_t)((uint32_t)(before + addend) < before);
    if (up != 0) atomicAdd(high, up);
}

// Whether an entry of a block's cache of cells is the owner's: it is the first one's that asks for it. Zero owns
// nothing.
WC_DEVICE bool wc_owns(uint32_t* entry, uint32_t owner) {
    uint32_t found = *entry;
    if (found == 0) found = wc_compare_swap(entry, 0u, owner);
    return found == 0 || found == owner;
}

// Adds to a cell of a block's cache, or to that of the table in global memory.
WC_DEVICE void wc_add_cached(bool is_cached, uint32_t* low, uint32_t* high, uint64_t* cell, uint64_t value) {
    if (is_cached) {
        wc_add_halves(low, high, value);
    } else {
        wc_add(cell, value);
    }
}
WC_DEVICE void wc_add_cached(bool is_cached, double* cached, double* cell, double value) {
    if (is_cached) {
        wc_add(cached, value);
    } else {
        wc_add(cell, value);
    }
}
WC_DEVICE void wc_max_cached(bool is_cached, uint64_t* cached, uint64_t* cell, uint64_t value) {
    if (!is_cached) {
        wc_max(cell, value);
    } else if (*cached < value) {
        wc_max(cached, value);
    }
}
