// Distinct values of a column, and codes for them; dictionary.rs in crates/column/src/format says what they are.

// The slot at which a value is looked for first, of a power of two of them.
WC_DEVICE uint64_t wc_slot(uint64_t bits, uint64_t slots) {
    return (bits * 0x9e3779b97f4a7c15ull >> 32) & (slots - 1);
}

// A value's bits, zero-extended.
WC_DEVICE uint64_t wc_bits(const WcSource& s, uint64_t row) {
    const uint64_t value = wc_key(s, row) ^ s.flip;
    return s.width == 8 ? value : value & ((1ull << (8 * s.width)) - 1);
}

#define WC_NO_VALUE (~0ull)

// Purpose: the distinct valid values of a segment join a set. Inputs: set u64 [slots], WC_NO_VALUE where empty; state
// u32 [2]: values in the set, and 1 if WC_NO_VALUE is one of the column's. Stops once there are more than `limit`; the
// set is four times as large. Mapping: a thread a row, grid-stride. Bytes: the values once, the set from the caches.
struct DistinctParams {
    WcSource source;
    uint64_t* set;
    uint64_t slots, limit;
    uint32_t* state;
};

WC_ENCODER(collect_distinct, DistinctParams, 3) {
    const uint64_t threads = share.threads();
    uint64_t last = 0;
    bool has_last = false;
    for (uint64_t row = share.first_thread(); row < p.source.rows; row += threads) {
        if (!wc_valid(p.source, row)) continue;
        const uint64_t bits = wc_bits(p.source, row);
        if (has_last && bits == last) continue;
        has_last = true;
        last = bits;
        if (bits == WC_NO_VALUE) {
            wc_or(p.state + 1, 1u);
            continue;
        }
        uint64_t slot = wc_slot(bits, p.slots);
        for (uint32_t tries = 0;; ++tries) {
            uint64_t found = wc_load_relaxed(p.set + slot);
            if (found == bits) break;
            if (wc_load_relaxed(p.state) > p.limit) return;
            if (found == WC_NO_VALUE) {
                found = wc_compare_swap(p.set + slot, (uint64_t)WC_NO_VALUE, bits);
                if (found == WC_NO_VALUE) wc_add(p.state, 1u);
                if (found == WC_NO_VALUE || found == bits) break;
            }
            slot = (slot + 1) & (p.slots - 1);
        }
    }
}

// Purpose: codes of values. Inputs: keys u64 [slots] and their codes u32 [slots], all ones where a slot is empty;
// `flag` is raised where a value has none. Outputs: codes u32 [vectors * 1024]; null slots and padding have 0.
// Mapping: a thread a row, grid-stride. Bytes: the values once, 4 a row, the table from the caches.
struct CodeParams {
    WcSource source;
    const uint64_t* keys;
    const uint32_t* codes;
    uint64_t slots;
    uint32_t* flag;
    uint32_t* out;
};

WC_ENCODER(look_up_codes, CodeParams, 3) {
    const uint64_t threads = share.threads(), rows = wc_vectors(p.source) * 1024;
    for (uint64_t row = share.first_thread(); row < rows; row += threads) {
        uint32_t code = 0;
        if (wc_valid(p.source, row)) {
            const uint64_t bits = wc_bits(p.source, row);
            uint64_t slot = wc_slot(bits, p.slots);
            while (true) {
                code = wc_load_cached(p.codes + slot);
                if (code == WC_FULL_MASK || wc_load_cached(p.keys + slot) == bits) break;
                slot = (slot + 1) & (p.slots - 1);
            }
            if (code == WC_FULL_MASK) {
                wc_or(p.flag, 1u);
                code = 0;
            }
        }
        p.out[row] = code;
    }
}
