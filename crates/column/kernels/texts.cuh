// Strings as bytes with offsets; `format/bytes.rs` draws the layout. No load of a string's words leaves its segment:
// zeros lie behind the last string.

struct WcText {
    const char* bytes;
    uint32_t length;
};

struct WcTexts {
    const uint32_t* offsets;
    const char* text;

    WC_INLINE WcTexts(const char* segment, uint32_t rows)
        : offsets((const uint32_t*)segment), text(segment + 4 * (uint64_t)((rows + 1023) / 1024 * 1024 + 4)) {}

    // The string of a row; empty for null slots and padding.
    WC_INLINE WcText get(uint32_t row) const {
        const uint32_t first = wc_load_cached(offsets + row), end = wc_load_cached(offsets + row + 1);
        WcText found = {text + first, end - first};
        return found;
    }
};
