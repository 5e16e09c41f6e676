// Packed columns with patches, and patches themselves. The layouts are drawn in
// crates/column/src/format/packed.rs and patches.rs.

// Patches of a segment: rows of each group of 256, with their words.
template <typename Word> struct WcPatches {
    const uint32_t* starts;
    const uint16_t* rows;
    const Word* words;

    // The section begins at byte `at`, a multiple of 4, of a buffer that is aligned to 8 bytes.
    WC_INLINE WcPatches(const char* buffer, uint64_t at, uint32_t vectors) : starts((const uint32_t*)(buffer + at)) {
        const uint64_t rows_at = at + 4 * (4 * (uint64_t)vectors + 1);
        const uint64_t count = wc_load_cached(starts + 4 * vectors);
        rows = (const uint16_t*)(buffer + rows_at);
        words = (const Word*)(buffer + (rows_at + 2 * count + 7) / 8 * 8);
    }

    // The patches of each group of a step.
    template <int SLOTS> struct Step { uint32_t starts[SLOTS / 8 + 1]; };

    template <int SLOTS> WC_INLINE void fetch(Step<SLOTS>& step, uint32_t base) const {
#pragma unroll
        for (int group = 0; group <= SLOTS / 8; ++group) {
            step.starts[group] = wc_load_cached(starts + base / 256 + group);
        }
    }

    // Hands a lane the patches of its slots of a step: the slot, a constant, and the word. All lanes come here
    // together.
    template <int SLOTS, typename F> WC_INLINE void each(const Step<SLOTS>& step, uint32_t lane, const F& take) const {
#pragma unroll
        for (int group = 0; group < SLOTS / 8; ++group) {
            const uint32_t first = step.starts[group], end = step.starts[group + 1];
            if (first == end) continue;
            // A bit for each row of the group: patches are in the order of rows, so that those before a row are as many
            // as bits before its own.
            uint32_t patched[8] = {};
            for (uint32_t at = first; at < end; at += 32) {
                const uint32_t row = end - at > lane ? wc_load_cached(rows + at + lane) : 256;
#pragma unroll
                for (int word = 0; word < 8; ++word) {
                    patched[word] |= __reduce_or_sync(WC_FULL_MASK, row / 32 == word ? 1u << row % 32 : 0u);
                }
            }
            uint32_t before = first;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                uint32_t own = 0, at = 0;
#pragma unroll
                for (int word = 0; word < 4; ++word) {
                    const uint32_t bits = patched[4 * half + word];
                    own = lane / 8 == word ? bits : own;
                    at = lane / 8 == word ? before : at;
                    before += __popc(bits);
                }
                const uint32_t shift = lane % 8 * 4;
                at += __popc(own & ((1u << shift) - 1));
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                    if (own >> (shift + k) & 1u) take(8 * group + 4 * half + k, wc_load_cached(words + at++));
                }
            }
        }
    }

    // Whether a row is patched; then its word.
    WC_INLINE bool get(uint32_t row, Word* word) const {
        uint32_t first = wc_load_cached(starts + row / 256), end = wc_load_cached(starts + row / 256 + 1);
        for (; first < end; ++first) {
            const uint32_t found = wc_load_cached(rows + first);
            if (found == row % 256) *word = wc_load_cached(words + first);
            if (found >= row % 256) return found == row % 256;
        }
        return false;
    }
};

// A packed segment, with references of its vectors where OWN is true.
template <typename T, int W, bool OWN> struct WcPackedView {
    typedef typename WcPackedSum<sizeof(T)>::Type Sum;
    const char* groups;
    const Sum* references;
    Sum one;

    WC_INLINE WcPackedView(const char* segment, uint32_t rows, uint64_t reference)
        : groups(segment), references((const Sum*)(segment + bytes(rows, false))), one((Sum)reference) {}

    // Bytes of groups, and of references.
    static WC_INLINE uint64_t bytes(uint32_t rows, bool with_references) {
        return (uint64_t)((rows + 1023) / 1024) * (128 * W + (with_references && OWN ? sizeof(Sum) : 0));
    }

    WC_INLINE Sum reference(uint32_t row) const { return OWN ? wc_load_cached(references + row / 1024) : one; }

    template <int SLOTS> struct Step {
        WcPacked<W, SLOTS> packed;
        Sum added;
    };

    template <int SLOTS> WC_INLINE void fetch(Step<SLOTS>& step, uint32_t base, uint32_t lane) const {
        step.packed.load(groups, base, lane);
        step.added = reference(base);
    }

    template <int SLOTS>
    WC_INLINE void decode(T (&target)[SLOTS], const Step<SLOTS>& step, uint32_t, uint32_t) const {
#pragma unroll
        for (int slot = 0; slot < SLOTS; ++slot) target[slot] = step.packed.template value<T>(slot, step.added);
    }

    WC_INLINE T get(uint32_t row) const { return wc_packed_get<W, T>(groups, row, reference(row)); }
};

// The same with patches, which begin behind it in `buffer`, where it stands `at` bytes from the start.
template <typename T, int W, bool OWN> struct WcPatched {
    typedef WcPackedView<T, W, OWN> Packed;
    typedef typename Packed::Sum Sum;
    Packed packed;
    WcPatches<Sum> patches;

    WC_INLINE WcPatched(const char* buffer, uint32_t rows, uint64_t reference, uint64_t at = 0)
        : packed(buffer + at, rows, reference), patches(buffer, at + Packed::bytes(rows, true), (rows + 1023) / 1024) {}

    template <int SLOTS> struct Step {
        typename Packed::template Step<SLOTS> packed;
        typename WcPatches<Sum>::template Step<SLOTS> patches;
    };

    template <int SLOTS> WC_INLINE void fetch(Step<SLOTS>& step, uint32_t base, uint32_t lane) const {
        packed.fetch(step.packed, base, lane);
        patches.fetch(step.patches, base);
    }

    template <int SLOTS>
    WC_INLINE void decode(T (&target)[SLOTS], const Step<SLOTS>& step, uint32_t base, uint32_t lane) const {
        packed.decode(target, step.packed, base, lane);
        patches.each(step.patches, lane, [&](int slot, Sum offset) { target[slot] = (T)(step.packed.added + offset); });
    }

    // Patched values are past the width.
    WC_INLINE WcBounds bounds(uint32_t vector) const {
        WcBounds bounds = wc_bounds<W>((T)packed.reference(1024 * vector));
        const uint32_t* starts = patches.starts + 4 * vector;
        if (wc_load_cached(starts) != wc_load_cached(starts + 4)) bounds.high = 0x7fffffffffffffffll;
        return bounds;
    }

    WC_INLINE T get(uint32_t row) const {
        Sum offset;
        return patches.get(row, &offset) ? (T)(packed.reference(row) + offset) : packed.get(row);
    }
};
