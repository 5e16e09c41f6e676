// What one pass over a column tells: profile.rs in crates/column/src/format counts the same on the CPU. Needs
// encode.cuh. Programs of it have one way to read vectors each: a first load waits for its compiler.

// Registers of the sketch of distinct values.
#define WC_REGISTERS 4096
// Widths of offsets: 0 to 64.
#define WC_WIDTHS 65
// Segments of a launch, and most vectors of one.
#define WC_PROFILE_SEGMENTS 64
#define WC_SEGMENT_VECTORS 1024

// Totals of a column, u64 each.
#define WC_TOTAL_VALID 0
#define WC_TOTAL_RUNS 1
#define WC_TOTAL_DESCENTS 2
#define WC_TOTAL_LOW 3
#define WC_TOTAL_HIGH 4
#define WC_TOTAL_FIRST 5
#define WC_TOTAL_LAST 6
#define WC_TOTAL_WIDTHS 7

// Takes a value's bits into the sketch: two rounds of multiplying and folding, then HyperLogLog. A register of rank r
// holds the r lowest bits: a value of a higher rank has none of them.
WC_DEVICE void wc_sketch(uint32_t* registers, uint64_t bits) {
    uint64_t mixed = (uint64_t)(uint32_t)bits * 0xbf58476d1ce4e5b9ull + (bits >> 32) * 0xd6e8feb86659fd93ull;
    mixed = (mixed ^ mixed >> 32) * 0x94d049bb133111ebull;
    const uint32_t high = (uint32_t)(mixed >> 32), low = (uint32_t)mixed ^ high;
    uint32_t* const entry = registers + high / (0x100000000ull / WC_REGISTERS);
    // Registers only grow: an old value costs an atomic more.
    if ((low & *entry) == 0) atomicMax(entry, (low | 1u << 31) ^ ((low | 1u << 31) - 1));
}

// What a lane has seen of vectors, and where its block counts.
struct WcProfile {
    uint32_t* widths;     // in shared memory, u32 [WC_WIDTHS][32]: a column for each lane, so that lanes do not meet
    uint32_t* registers;  // in shared memory, u32 [WC_REGISTERS]
    uint64_t valid, runs, descents;

    WC_INLINE void count_width(uint32_t width, uint32_t lane) { wc_add(widths + 32 * width + lane, 1u); }
};

// Smallest and largest key of a vector, those of its first and its last row.
struct WcEnds { uint64_t low, high, first, last; };

// Parameters of a pass over some segments. Inputs: segments, and of each the number that its first vector has in the
// column, all ones behind the last; `end`, the number behind the last vector. Outputs, added to the column's: bounds
// u64 [vectors][2], smallest and largest key, all ones and 0 without a valid row; ends u64 [vectors][2], keys of the
// first and the last valid row; totals; registers u32 [WC_REGISTERS].
struct ProfileParams {
    WcSource sources[WC_PROFILE_SEGMENTS];
    uint64_t firsts[WC_PROFILE_SEGMENTS];
    uint64_t end;
    uint64_t* bounds;
    uint64_t* ends;
    uint64_t* totals;
    uint32_t* registers;
};

// The pass: `profile` gives the ends of a vector of a segment and counts its rows. Mapping: a warp a vector,
// grid-stride; shared memory WC_WIDTHS * 128 + WC_REGISTERS * 4 bytes.
template <typename F> WC_DEVICE void wc_profile_vectors(const ProfileParams& p, F profile) {
    uint32_t* const widths = (uint32_t*)wc_shared();
    WcProfile seen{widths, widths + WC_WIDTHS * 32, 0, 0, 0};
    const uint32_t lane = wc_lane();
    for (uint32_t at = threadIdx.x; at < WC_WIDTHS * 32 + WC_REGISTERS; at += blockDim.x) widths[at] = 0;
    __syncthreads();
    const WcShare share(1);
    for (uint64_t number = p.firsts[0] + share.first(); number < p.end; number += share.warps()) {
        // No segment has more vectors than that.
        uint32_t segment = (uint32_t)((number - p.firsts[0]) / WC_SEGMENT_VECTORS);
        while (segment + 1 < WC_PROFILE_SEGMENTS && p.firsts[segment + 1] <= number) ++segment;
        const WcEnds ends = profile(seen, p.sources[segment], number - p.firsts[segment], lane);
        if (lane == 0) {
            p.bounds[2 * number] = ends.low;
            p.bounds[2 * number + 1] = ends.high;
            p.ends[2 * number] = ends.first;
        }
        if (lane == 31) p.ends[2 * number + 1] = ends.last;
    }
    const uint64_t valid = wc_warp_sum(seen.valid), runs = wc_warp_sum(seen.runs);
    const uint64_t descents = wc_warp_sum(seen.descents);
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
    for (uint32_t at = threadIdx.x; at < WC_REGISTERS; at += blockDim.x) {
        const uint32_t own = seen.registers[at];
        if (own > p.registers[at]) atomicMax(p.registers + at, own);
    }
}
