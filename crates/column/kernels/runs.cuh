// Columns of runs (RLE): vectors and single values. The layout is drawn in crates/column/src/format/rle.rs.

template <typename T> struct WcRle : WcLateView {
    const uint32_t* blocks;
    const T* values;
    const uint16_t* starts;

    WC_INLINE WcRle(const char* segment, uint32_t rows) : blocks((const uint32_t*)segment) {
        const uint32_t vectors = (rows + 1023) / 1024;
        const uint64_t runs = wc_load_cached(blocks + vectors), values_at = ((uint64_t)vectors * 4 + 11) / 8 * 8;
        values = (const T*)(segment + values_at);
        starts = (const uint16_t*)(segment + (values_at + runs * sizeof(T) + 1) / 2 * 2);
    }

    // The last run from `first` on, before `end`, that begins at a row of the vector or before it; `first` does.
    WC_INLINE uint32_t find(uint32_t first, uint32_t end, uint32_t row) const {
        while (end - first > 1) {
            const uint32_t middle = (first + end) / 2;
            if (wc_load_cached(starts + middle) <= row) first = middle; else end = middle;
        }
        return first;
    }

    // The same for all lanes together: a vector has at most 32 * 32 runs.
    WC_INLINE uint32_t find_together(uint32_t first, uint32_t end, uint32_t row, uint32_t lane) const {
        const uint32_t stride = (end - first + 31) / 32;
        uint32_t at = first + lane * stride;
        first += (__popc(__ballot_sync(WC_FULL_MASK, at < end && wc_load_cached(starts + at) <= row)) - 1) * stride;
        if (stride == 1) return first;
        at = first + lane;
        const bool before = lane < stride && at < end && wc_load_cached(starts + at) <= row;
        return first + __popc(__ballot_sync(WC_FULL_MASK, before)) - 1;
    }

    template <int SLOTS>
    WC_INLINE void decode(T (&target)[SLOTS], const Step<SLOTS>&, uint32_t base, uint32_t lane) const {
        const uint32_t begin = base % 1024, rows = 32 * SLOTS;
        uint32_t run = wc_load_cached(blocks + base / 1024), last = wc_load_cached(blocks + base / 1024 + 1) - 1;
        // The runs of the step's first and last row: lanes search between them.
        const uint32_t first = begin == 0 ? run : find_together(run, last + 1, begin, lane);
        if (begin + rows < 1024) last = find_together(run, last + 1, begin + rows - 1, lane);
        run = first;
        if (run == last) {
            const T value = wc_load_cached(values + run);
#pragma unroll
            for (int slot = 0; slot < SLOTS; ++slot) target[slot] = value;
            return;
        }
#pragma unroll
        for (int half = 0; half < SLOTS / 4; ++half) {
            const uint32_t row = begin + 128 * half + 4 * lane;
            run = find(run, last + 1, row);
            target[4 * half] = wc_load_cached(values + run);
#pragma unroll
            for (int i = 1; i < 4; ++i) {
                run += run < last && wc_load_cached(starts + run + 1) <= row + i;
                target[4 * half + i] = wc_load_cached(values + run);
            }
        }
    }

    WC_INLINE T get(uint32_t row) const {
        const uint32_t first = wc_load_cached(blocks + row / 1024), end = wc_load_cached(blocks + row / 1024 + 1);
        return wc_load_cached(values + find(first, end, row % 1024));
    }
};
