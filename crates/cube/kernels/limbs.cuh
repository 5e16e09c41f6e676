// Between the first pass of contraction and its products: limbs of sums become sums of two words.
//
// Text in front: monoids.cuh. Input: `limbs` planes of `places` words, as scan_sums.cuh has them: the sum of a place is
// the sum of its limbs times 2^(32 i). Output: the sum of each place as a whole number of 128 bits, or as a pair of
// doubles, times `unit`, a power of two.
// Mapping: a thread a place. Bytes: 8 a limb and 16 a place. Numerics: a pair of doubles has 106 bits; digits are added
// from the highest on, so that a sum is rounded once.

#define WC_LIMBS_MAX 5

struct LimbsParams {
    const uint64_t* sums;
    void* out;
    uint64_t places, limbs, is_precise;
    double unit;
};

WC_KERNEL(wc_cube_limbs, LimbsParams, 256, 4) {
    const uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    const int highest = (int)p.limbs - 1;
    for (uint64_t place = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; place < p.places; place += stride) {
        uint32_t digits[WC_LIMBS_MAX];
        int64_t carry = 0;
#pragma unroll
        for (int i = 0; i < WC_LIMBS_MAX; ++i) {
            if (i >= highest) continue;
            const int64_t limb = (int64_t)p.sums[(uint64_t)i * p.places + place] + carry;
            digits[i] = (uint32_t)limb;
            carry = limb >> 32;
        }
        const int64_t top = (int64_t)p.sums[(uint64_t)highest * p.places + place] + carry;
        CubePrecise pair{(double)(top >> 32) * 4294967296.0, 0.0};
        pair = pair.plus({(double)(uint32_t)top, 0.0});
        unsigned __int128 sum = (unsigned __int128)(__int128)top;
#pragma unroll
        for (int i = WC_LIMBS_MAX - 1; i >= 0; --i) {
            if (i >= highest) continue;
            pair = CubePrecise{pair.high * 4294967296.0, pair.low * 4294967296.0}.plus({(double)digits[i], 0.0});
            sum = sum << 32 | digits[i];
        }
        if (p.is_precise != 0) {
            ((CubePrecise*)p.out)[place] = {pair.high * p.unit, pair.low * p.unit};
        } else {
            ((CubeWide*)p.out)[place] = {(uint64_t)sum, (uint64_t)(sum >> 64)};
        }
    }
}
