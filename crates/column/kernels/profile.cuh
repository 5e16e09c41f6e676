// What one pass over a column tells: profile.rs in crates/column/src/encoding counts the same on the CPU. Needs
// encode.cuh and encode_walk.cuh.

// Registers of the sketch of distinct values.
#define WC_REGISTERS 4096
// Widths of offsets: 0 to 64.
#define WC_WIDTHS 65

// Totals of a column, u64 each.
#define WC_TOTAL_VALID 0
#define WC_TOTAL_RUNS 1
#define WC_TOTAL_DESCENTS 2
#define WC_TOTAL_LOW 3
#define WC_TOTAL_HIGH 4
#define WC_TOTAL_FIRST 5
#define WC_TOTAL_LAST 6
#define WC_TOTAL_WIDTHS 7

// Takes a value's bits into the sketch: the finish of SplitMix64, then HyperLogLog.
WC_DEVICE void wc_sketch(uint32_t* registers, uint64_t bits) {
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9ull;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebull;
    const uint64_t hash = bits ^ bits >> 31;
    uint32_t* const entry = registers + hash % WC_REGISTERS;
    const uint32_t rank = __ffsll((long long)(hash / WC_REGISTERS | 1ull << 63));
    // Registers only grow: an old value costs an atomic more.
    if (*entry < rank) atomicMax(entry, rank);
}

// Purpose: profile of some segments, added to the column's. Inputs: segments, and of each the number that its first
// vector has in the column, all ones behind the last; `end`, the number behind the last vector. Outputs: bounds u64
// [vectors][2], smallest and largest key, all ones and 0 without a valid row; ends u64 [vectors][2], keys of the first
// and the last valid row; totals; registers u32 [WC_REGISTERS]. Mapping: a warp a vector, grid-stride; shared memory
// WC_WIDTHS * 128 bytes. Bytes: the values once, and once more from the caches.
struct ProfileParams {
    WcSource sources[WC_SEGMENTS];
    uint64_t firsts[WC_SEGMENTS];
    uint64_t end;
    uint64_t* bounds;
    uint64_t* ends;
    uint64_t* totals;
    uint32_t* registers;
};

WC_KERNEL(profile_vectors, ProfileParams, 256, 1) {
    // A column for each lane, so that lanes do not meet.
    uint32_t* const widths = (uint32_t*)wc_shared();
    const uint32_t lane = wc_lane();
    for (uint32_t at = threadIdx.x; at < WC_WIDTHS * 32; at += blockDim.x) widths[at] = 0;
    __syncthreads();
    const uint64_t width = p.sources[0].width, flip = p.sources[0].flip, mask = wc_word_mask(p.sources[0]);
    const uint64_t value_mask = width == 8 ? ~0ull : (1ull << (8 * width)) - 1;
    uint64_t valid = 0, runs = 0, descents = 0;
    const WcShare share(1);
    for (uint64_t number = p.firsts[0] + share.first(); number < p.end; number += share.warps()) {
        uint32_t segment = 0;
        while (segment + 1 < WC_SEGMENTS && p.firsts[segment + 1] <= number) ++segment;
        const WcSource source = p.sources[segment];
        const uint64_t vector = number - p.firsts[segment];
        WcRuns walk(source, vector, lane);
        uint64_t low = ~0ull, high = 0, first = 0, last = 0;
#pragma unroll 4
        for (uint32_t step = 0; step < 32; ++step) {
            uint64_t key;
            const uint32_t begins = walk.next(source, step, lane, key);
            runs += __popc(begins);
            if (!walk.filled.any) continue;
            low = key < low ? key : low;
            high = key > high ? key : high;
            if (step == 0) first = key;
            last = key;
            // Before the first row there is 0, which no key is below.
            descents += key < walk.before;
            if (begins >> lane & 1u) wc_sketch(p.registers, (key ^ flip) & value_mask);
        }
        low = wc_warp_min(low);
        high = wc_warp_max(high);
        if (lane == 0) {
            p.bounds[2 * number] = low;
            p.bounds[2 * number + 1] = high;
            p.ends[2 * number] = first;
        }
        if (lane == 31) p.ends[2 * number + 1] = last;
        valid += __popc(wc_valid_word(source, vector * 1024 + 32 * lane));
#pragma unroll 4
        for (uint32_t step = 0; step < 32; ++step) {
            const uint64_t row = vector * 1024 + 32 * step + lane;
            const uint64_t offset = wc_valid(source, row) ? (wc_key(source, row) - low) & mask : 0;
            wc_add(widths + 32 * (64 - __clzll((long long)offset)) + lane, 1u);
        }
    }
    valid = wc_warp_sum(valid);
    descents = wc_warp_sum(descents);
    if (lane == 0) {
        wc_add(p.totals + WC_TOTAL_VALID, valid);
        wc_add(p.totals + WC_TOTAL_RUNS, runs);
        wc_add(p.totals + WC_TOTAL_DESCENTS, descents);
    }
    __syncthreads();
    for (uint32_t width = wc_warp(); width < WC_WIDTHS; width += blockDim.x / 32) {
        const uint32_t count = wc_warp_sum(widths[32 * width + lane]);
        if (lane == 0 && count != 0) wc_add(p.totals + WC_TOTAL_WIDTHS + width, (uint64_t)count);
    }
}

// Purpose: what vectors tell together: bounds of the column, its first and last vector with a valid row, descents from
// one vector to the next. Inputs: bounds and ends of all vectors. Outputs: totals. Mapping: a thread a vector,
// grid-stride by warps. Bytes: 32 a vector.
struct ProfileColumnParams {
    const uint64_t* bounds;
    const uint64_t* ends;
    uint64_t vectors;
    uint64_t* totals;
};

WC_KERNEL(profile_column, ProfileColumnParams, 256, 1) {
    uint64_t low = ~0ull, high = 0, first = ~0ull, last = 0, descents = 0;
    const WcShare share(1);
    for (uint64_t vector = share.first_thread(); vector < p.vectors; vector += share.threads()) {
        const uint64_t vector_low = p.bounds[2 * vector], vector_high = p.bounds[2 * vector + 1];
        if (vector_low > vector_high) continue;
        low = vector_low < low ? vector_low : low;
        high = vector_high > high ? vector_high : high;
        first = vector < first ? vector : first;
        last = vector > last ? vector : last;
        uint64_t before = vector;
        while (before > 0 && p.bounds[2 * before - 2] > p.bounds[2 * before - 1]) --before;
        descents += before > 0 && p.ends[2 * vector] < p.ends[2 * before - 1];
    }
    low = wc_warp_min(low);
    high = wc_warp_max(high);
    first = wc_warp_min(first);
    last = wc_warp_max(last);
    descents = wc_warp_sum(descents);
    if (wc_lane() != 0 || low > high) return;
    wc_min(p.totals + WC_TOTAL_LOW, low);
    wc_max(p.totals + WC_TOTAL_HIGH, high);
    wc_min(p.totals + WC_TOTAL_FIRST, first);
    wc_max(p.totals + WC_TOTAL_LAST, last);
    wc_add(p.totals + WC_TOTAL_DESCENTS, descents);
}
