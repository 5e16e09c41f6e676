//! Keys for joins and aggregations, made on the device: row numbers of a relation, as they are (dense) or by a
//! bijection of 32 bits (wide).

/// Device functions that kernels which make and check data start with: the finaliser of splitmix64 as the source of
/// numbers, that of MurmurHash3 as the bijection, which leaves zero alone, and its inverse.
pub(super) const KEYED: &str = "WC_DEVICE uint64_t wc_hash(uint64_t seed, uint64_t row) {
    uint64_t x = (seed + row) * 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}
WC_DEVICE uint32_t wc_mix(uint32_t x) {
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    return x ^ x >> 16;
}
WC_DEVICE uint32_t wc_unmix(uint32_t x) {
    x = (x ^ x >> 16) * 0x7ed1b41du;
    x = (x ^ x >> 13 ^ x >> 26) * 0xa5cb9243u;
    return x ^ x >> 16;
}
WC_DEVICE uint64_t wc_first() { return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; }
WC_DEVICE uint64_t wc_stride() { return (uint64_t)gridDim.x * blockDim.x; }
// Key of a row of a relation, and that row's value.
WC_DEVICE uint32_t wc_key(uint64_t row, uint64_t is_wide) {
    return is_wide ? wc_mix((uint32_t)row + 1) : (uint32_t)row;
}
WC_DEVICE uint32_t wc_value(uint32_t key) { return (uint32_t)wc_hash(77, key) | 1u; }
";
