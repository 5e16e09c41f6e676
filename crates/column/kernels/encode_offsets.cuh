// Offsets from references, as packed segments hold them.

// What offsets are taken from: `bounds` of a segment's vectors where each has a reference of its own, its smallest
// value, else null and `reference`, a key, for all.
struct WcReference {
    const uint64_t* bounds;
    uint64_t reference;
};

// The reference of a vector as a key; 0 as a value where no row is valid.
WC_DEVICE uint64_t wc_reference(const WcSource& s, const WcReference& r, uint64_t vector) {
    if (r.bounds == nullptr) return r.reference;
    const uint64_t low = r.bounds[2 * vector];
    return low <= r.bounds[2 * vector + 1] ? low : s.flip;
}

WC_DEVICE uint64_t wc_offset(const WcSource& s, uint64_t row, uint64_t reference) {
    return wc_valid(s, row) ? (wc_key(s, row) - reference) & wc_word_mask(s) : 0;
}

WC_DEVICE bool wc_is_wide(uint64_t offset, uint32_t bits) { return bits < 64 && offset >> bits != 0; }
