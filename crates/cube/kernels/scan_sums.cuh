// What the pass over facts adds up: sums of values by place.
//
// Text in front defines WC_VALUES, what is added up of a fact; WC_LIMBS, words of a sum; WC_SHARED_SUMS (1 or 0).
//   WC_VALUES_WHOLE    whole numbers of 64 bits. One limb: a sum of 64 bits. Two: sums of the low 32 and of the high 32
//                      bits of values.
//   WC_VALUES_ONES     1 a fact, in one limb.
//   WC_VALUES_DOUBLES  doubles that the host scales by a power of two to magnitudes below 2^(32 * WC_LIMBS), as whole
//                      numbers: limb i has the sums of their bits from 32 i on, under the sign of the number. Sums of
//                      whole numbers have no order: their bits are the same on every run.
//   WC_VALUES_ORDER    unsigned words whose greatest is kept, in one limb: numbers in an order that the host chose.
// Several limbs hold the sums of 2^31 facts.
//
// Shared memory: a limb as two words of 32 bits, since shared memory adds those at full rate; the greatest as one word.

#define WC_VALUES_WHOLE 0
#define WC_VALUES_ONES 1
#define WC_VALUES_DOUBLES 2
#define WC_VALUES_ORDER 3

#define WC_CUBE_NONE 0x80000000u

// A sum that wraps, or the greatest.
struct CubeSum {
    uint64_t limbs[WC_LIMBS];

    static WC_INLINE CubeSum none() {
        CubeSum sum;
        for (int i = 0; i < WC_LIMBS; ++i) sum.limbs[i] = 0;
        return sum;
    }
    WC_INLINE void add(int64_t value) {
#if WC_VALUES == WC_VALUES_ORDER
        if ((uint64_t)value > limbs[0]) limbs[0] = (uint64_t)value;
#elif WC_VALUES == WC_VALUES_DOUBLES
        add_double((uint64_t)value & 0x7fffffffffffffffull, value < 0);
#elif WC_LIMBS == 1
        limbs[0] += (uint64_t)value;
#else
        limbs[0] += (uint32_t)value;
        limbs[1] += (uint64_t)(value >> 32);
#endif
    }
#if WC_VALUES == WC_VALUES_DOUBLES
    // Adds the whole number nearest to a double.
    WC_INLINE void add_double(uint64_t magnitude, bool is_negative) {
        int32_t exponent = (int32_t)(magnitude >> 52) - 1075;
        uint64_t mantissa = (magnitude & 0xfffffffffffffull) | 1ull << 52;
        if (exponent < 0) {
            mantissa = exponent < -53 ? 0ull : (mantissa + (1ull << (-exponent - 1))) >> -exponent;
            exponent = 0;
        }
#pragma unroll
        for (int i = 0; i < WC_LIMBS; ++i) {
            const int32_t shift = exponent - 32 * i;
            uint32_t digit = 0;
            if (shift >= 0 && shift < 32) digit = (uint32_t)(mantissa << shift);
            if (shift < 0 && shift > -64) digit = (uint32_t)(mantissa >> -shift);
            limbs[i] += is_negative ? 0ull - digit : (uint64_t)digit;
        }
    }
#endif
    // What all lanes have, in each of them.
    WC_INLINE CubeSum of_warp() const {
        CubeSum all = *this;
#if WC_VALUES == WC_VALUES_ORDER
        for (int step = 16; step > 0; step >>= 1) {
            const uint64_t other = __shfl_xor_sync(WC_FULL_MASK, all.limbs[0], step);
            if (other > all.limbs[0]) all.limbs[0] = other;
        }
#else
#pragma unroll
        for (int i = 0; i < WC_LIMBS; ++i) all.limbs[i] = wc_warp_sum(limbs[i]);
#endif
        return all;
    }
};

#if WC_SHARED_SUMS && WC_VALUES != WC_VALUES_ORDER
typedef uint32_t CubeWord;  // for each limb the low words of all places, then the high words
#else
typedef uint64_t CubeWord;
#endif

// The sums of a block, or of the grid.
struct CubeSums {
    CubeWord* words;
    uint8_t* filled;
    uint32_t places;

    WC_INLINE void add(uint32_t place, const CubeSum& sum) const {
#if WC_VALUES == WC_VALUES_ORDER
        if (wc_load_relaxed(words + place) < sum.limbs[0]) wc_max(words + place, sum.limbs[0]);
#if WC_SHARED_SUMS
        // All warps write the same; none reads what another may be writing.
        filled[place] = 1;
#else
        if (filled[place] == 0) filled[place] = 1;
#endif
#elif WC_SHARED_SUMS
#pragma unroll
        for (int i = 0; i < WC_LIMBS; ++i) {
            uint32_t* const low = words + (2u * i) * places + place;
            const uint32_t added = (uint32_t)sum.limbs[i];
            const uint32_t before = atomicAdd(low, added);
            const uint32_t high = (uint32_t)(sum.limbs[i] >> 32) + (before + added < added ? 1u : 0u);
            if (high != 0) atomicAdd(low + places, high);
            // The first addition to a place finds a low word of 0.
            if (i == 0 && before == 0) filled[place] = 1;
        }
#else
#pragma unroll
        for (int i = 0; i < WC_LIMBS; ++i) wc_add(words + (uint64_t)i * places + place, sum.limbs[i]);
        if (filled[place] == 0) filled[place] = 1;
#endif
    }

#if WC_SHARED_SUMS
    // Neutral sums; all threads of the block call it.
    WC_INLINE void clear() const {
        uint32_t* const halves = (uint32_t*)words;
        for (uint32_t word = threadIdx.x; word < 2u * WC_LIMBS * places; word += blockDim.x) halves[word] = 0;
        for (uint32_t place = threadIdx.x; place < places; place += blockDim.x) filled[place] = 0;
    }
    // Adds the sums of a block to those of the grid; all threads of the block call it.
    WC_INLINE void leave(uint64_t* all, uint8_t* all_filled) const {
        for (uint32_t place = threadIdx.x; place < places; place += blockDim.x) {
            if (filled[place] == 0) continue;
#if WC_VALUES == WC_VALUES_ORDER
            wc_max(all + place, words[place]);
#else
#pragma unroll
            for (int i = 0; i < WC_LIMBS; ++i) {
                const uint32_t* const low = words + (2u * i) * places + place;
                wc_add(all + (uint64_t)i * places + place, (uint64_t)low[places] << 32 | low[0]);
            }
#endif
            if (all_filled[place] == 0) all_filled[place] = 1;
        }
    }
#endif
};

// What a warp has added up for one place, a part a lane.
struct CubeRun {
    uint32_t place;
    CubeSum sum;

    WC_INLINE void flush(const CubeSums& sums) {
        if (place != WC_CUBE_NONE) {
            const CubeSum all = sum.of_warp();
            if (wc_lane() == 0) sums.add(place, all);
        }
        sum = CubeSum::none();
    }
    // Begins another place, the same in all lanes.
    WC_INLINE void move_to(uint32_t next, const CubeSums& sums) {
        if (next != place) {
            flush(sums);
            place = next;
        }
    }
};
