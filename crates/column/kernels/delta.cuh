// Delta columns: vectors and single values. The layout is drawn in crates/column/src/encoding/delta.rs; offsets lie as
// in packed.cuh, so that a lane has rows 4 * i to 4 * i + 3 of each half of a group of 256.

// What a lane of a half adds to its own sums: those of the lanes before it. Where sums of both halves take 16 bits,
// they are added up side by side.
template <int W, typename Sum> struct WcHalves {
    Sum before[2], whole;  // whole: the sum of the first half

    // Sums of lanes, and of a half, take this type: 128 offsets have seven bits more than one.
    template <typename S> WC_INLINE void add_up(S low, S high) {
        const S first = wc_warp_inclusive_sum(low), second = wc_warp_inclusive_sum(high);
        before[0] = first - low;
        before[1] = second - high;
        whole = __shfl_sync(WC_FULL_MASK, first, 31);
    }

    WC_INLINE WcHalves(Sum low, Sum high) {
        if (W == 0) {
            before[0] = before[1] = whole = 0;
        } else if (W <= 9) {
            const uint32_t own = (uint32_t)low | (uint32_t)high << 16, sums = wc_warp_inclusive_sum(own);
            const uint32_t others = sums - own;
            before[0] = others & 0xffffu;
            before[1] = others >> 16;
            whole = __shfl_sync(WC_FULL_MASK, sums, 31) & 0xffffu;
        } else if (W <= 25) {
            add_up<uint32_t>((uint32_t)low, (uint32_t)high);
        } else {
            add_up<Sum>(low, high);
        }
    }
};

// A group's first value and its least difference.
WC_DEVICE void wc_delta_head(const uint32_t* heads, uint32_t group, uint32_t (&head)[2]) {
    const uint2 both = wc_load_cached((const uint2*)heads + group);
    head[0] = both.x;
    head[1] = both.y;
}
WC_DEVICE void wc_delta_head(const uint64_t* heads, uint32_t group, uint64_t (&head)[2]) {
    head[0] = wc_load_cached(heads + 2 * group);
    head[1] = wc_load_cached(heads + 2 * group + 1);
}

template <typename T, int W> struct WcDelta {
    typedef typename WcPackedSum<sizeof(T)>::Type Sum;
    const char* groups;
    const Sum* heads;

    WC_INLINE WcDelta(const char* segment, uint32_t rows)
        : groups(segment), heads((const Sum*)(segment + (uint64_t)((rows + 1023) / 1024) * (128 * W))) {}

    template <int SLOTS> struct Step {
        WcPacked<W, SLOTS> offsets;
        Sum heads[SLOTS / 8][2];
    };

    template <int SLOTS> WC_INLINE void fetch(Step<SLOTS>& step, uint32_t base, uint32_t lane) const {
        step.offsets.load(groups, base, lane);
#pragma unroll
        for (int group = 0; group < SLOTS / 8; ++group) wc_delta_head(heads, base / 256 + group, step.heads[group]);
    }

    template <int SLOTS>
    WC_INLINE void decode(T (&target)[SLOTS], const Step<SLOTS>& step, uint32_t, uint32_t lane) const {
#pragma unroll
        for (int group = 0; group < SLOTS / 8; ++group) {
            Sum offsets[8];
#pragma unroll
            for (int i = 0; i < 8; ++i) offsets[i] = step.offsets.template value<Sum>(8 * group + i, 0);
            const Sum low = offsets[0] + offsets[1] + offsets[2] + offsets[3];
            const Sum high = offsets[4] + offsets[5] + offsets[6] + offsets[7];
            const WcHalves<W, Sum> halves(low, high);
            const Sum least = step.heads[group][1];
            const Sum first = step.heads[group][0] + 4 * lane * least;
            Sum value = first + halves.before[0] + offsets[0];
            target[8 * group] = (T)value;
#pragma unroll
            for (int i = 1; i < 4; ++i) target[8 * group + i] = (T)(value += offsets[i] + least);
            value = first + 128 * least + halves.whole + halves.before[1] + offsets[4];
            target[8 * group + 4] = (T)value;
#pragma unroll
            for (int i = 5; i < 8; ++i) target[8 * group + i] = (T)(value += offsets[i] + least);
        }
    }

    // One lane adds up the offsets of its group up to the row.
    WC_INLINE T get(uint32_t row) const {
        const uint32_t group = row / 256, first = 256 * group;
        Sum head[2];
        wc_delta_head(heads, group, head);
        Sum sum = head[0] + (row - first) * head[1];
        for (uint32_t at = first; W != 0 && at <= row; ++at) sum += wc_packed_get<W, Sum>(groups, at, 0);
        return (T)sum;
    }
};
