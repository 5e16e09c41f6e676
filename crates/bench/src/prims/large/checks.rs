//! Kernels that make the inputs, and check the outputs, of primitives over more than 2^31 rows. Each check adds the
//! number of wrong rows to the first word of `out`, and a sum that the host compares to the second.

/// Members: two inputs and two outputs of a primitive, rows of the kernel, another number, rows of the case, and what a
/// check finds.
pub(super) const TEXT: &str = "struct LargeParams {
    const uint32_t* in; const uint32_t* in2; uint32_t* a; uint64_t* b; uint64_t n; uint64_t other; uint64_t rows;
    uint64_t* out;
};
#define WC_EACH(i, end) for (uint64_t i = wc_first(); i < (end); i += wc_stride())
// Adds up what the threads found.
WC_DEVICE void wc_found(const LargeParams& p, uint64_t wrong, uint64_t sum) {
    wrong = wc_warp_sum(wrong);
    sum = wc_warp_sum(sum);
    if (wc_lane() == 0 && wrong != 0) wc_add(p.out, wrong);
    if (wc_lane() == 0 && sum != 0) wc_add(p.out + 1, sum);
}

// Inputs: distinct keys, the rows backwards, flags of every 16th row, multiples of `other` modulo 2^16 as floats,
// numbers of runs of `other` rows, numbers modulo `other`, every other number from `other` on, and offsets of segments
// of `other` rows up to the word `in`.
WC_KERNEL(large_keys, LargeParams, 256, 1) { WC_EACH(i, p.n) p.a[i] = (uint32_t)i * 0x9e3779b1u; }
WC_KERNEL(large_backwards, LargeParams, 256, 1) { WC_EACH(i, p.n) p.a[i] = (uint32_t)(p.n - 1 - i); }
WC_KERNEL(large_flags, LargeParams, 256, 1) { WC_EACH(i, p.n) ((uint8_t*)p.a)[i] = i % 16 == 0; }
WC_KERNEL(large_floats, LargeParams, 256, 1) { WC_EACH(i, p.n) ((float*)p.a)[i] = (float)(i * p.other & 0xffff); }
WC_KERNEL(large_runs, LargeParams, 256, 1) { WC_EACH(i, p.n) p.a[i] = (uint32_t)(i / p.other); }
WC_KERNEL(large_modulo, LargeParams, 256, 1) { WC_EACH(i, p.n) p.a[i] = (uint32_t)(i % p.other); }
WC_KERNEL(large_steps, LargeParams, 256, 1) { WC_EACH(i, p.n) p.a[i] = (uint32_t)(2 * i + p.other); }
WC_KERNEL(large_offsets, LargeParams, 256, 1) {
    const uint64_t end = *(const uint64_t*)p.in;
    WC_EACH(i, p.n) p.b[i] = i * p.other < end ? i * p.other : end;
}

// Checks.
WC_KERNEL(large_sum, LargeParams, 256, 1) {
    uint64_t sum = 0;
    WC_EACH(i, p.n) sum += p.in[i];
    wc_found(p, 0, sum);
}
// The segment of a row, spread, where segments have `other` rows.
WC_DEVICE uint64_t wc_segment(const LargeParams& p, uint64_t row) {
    return p.other == 0 ? 0 : row / p.other * 0xd1342543de82ef95ull;
}
// Keys with a second column, or with their segments.
WC_KERNEL(large_hash, LargeParams, 256, 1) {
    uint64_t sum = 0;
    WC_EACH(i, p.n) sum += wc_hash(p.in[i], p.in2 == nullptr ? wc_segment(p, i) : p.in2[i]);
    wc_found(p, 0, sum);
}
WC_KERNEL(large_scanned, LargeParams, 256, 1) {
    uint64_t wrong = 0;
    WC_EACH(i, p.n) wrong += i == 0 ? p.b[0] != 0 : p.b[i] != p.b[i - 1] + p.in[i - 1];
    wc_found(p, wrong, 0);
}
WC_KERNEL(large_segments_scanned, LargeParams, 256, 1) {
    uint64_t wrong = 0;
    WC_EACH(i, p.n) wrong += p.a[i] != p.in[i] + (i % p.other == 0 ? 0 : p.a[i - 1]);
    wc_found(p, wrong, 0);
}
// Rows `b` ascend and have keys below `other`.
WC_KERNEL(large_selected, LargeParams, 256, 1) {
    uint64_t wrong = 0;
    WC_EACH(i, p.n) wrong += p.b[i] >= p.rows || p.in[p.b[i]] >= p.other || (i > 0 && p.b[i] <= p.b[i - 1]);
    wc_found(p, wrong, 0);
}
WC_KERNEL(large_below, LargeParams, 256, 1) {
    uint64_t below = 0;
    WC_EACH(i, p.n) below += p.in[i] < p.other;
    wc_found(p, 0, below);
}
WC_KERNEL(large_split, LargeParams, 256, 1) {
    uint64_t wrong = 0;
    WC_EACH(i, p.n) wrong += p.b[i] != i * 16;
    wc_found(p, wrong, 0);
}
// 2x + y of multiples of 1 and of 3.
WC_KERNEL(large_projected, LargeParams, 256, 1) {
    uint64_t wrong = 0;
    WC_EACH(i, p.n) wrong += ((const float*)p.a)[i] != (float)(2 * (i & 0xffff) + (3 * i & 0xffff));
    wc_found(p, wrong, 0);
}
// Keys of `in` backwards.
WC_KERNEL(large_reversed, LargeParams, 256, 1) {
    uint64_t wrong = 0;
    WC_EACH(i, p.n) wrong += p.a[i] != p.in[p.n - 1 - i];
    wc_found(p, wrong, 0);
}
WC_KERNEL(large_counted, LargeParams, 256, 1) {
    uint64_t wrong = 0;
    if (blockIdx.x == 0) {
        uint64_t count = 0;
        for (uint64_t i = threadIdx.x; i < 256; i += blockDim.x) count += p.b[i];
        wc_found(p, 0, count);
        // Keys are spread evenly: no bin is off by more than three and one in 2^16.
        const uint64_t even = p.n / 256, off = (even >> 16) + 3;
        for (uint64_t i = threadIdx.x; i < 256; i += blockDim.x) {
            wrong += p.b[i] + off < even || p.b[i] > even + off + 1;
        }
    }
    wc_found(p, wrong, 0);
}
// Ascending keys; with `other`, in each segment of so many.
WC_KERNEL(large_sorted, LargeParams, 256, 1) {
    uint64_t wrong = 0, sum = 0;
    WC_EACH(i, p.n) {
        wrong += i > 0 && (p.other == 0 || i % p.other != 0) && p.in[i] < p.in[i - 1];
        sum += wc_hash(p.in[i], wc_segment(p, i));
    }
    wc_found(p, wrong, sum);
}
// Rows `b`: those of every 16th number first, by their keys, then the others in their order.
WC_KERNEL(large_sorted_rows, LargeParams, 256, 1) {
    uint64_t wrong = 0;
    WC_EACH(i, p.n) {
        const uint64_t row = p.b[i], before = i > 0 ? p.b[i - 1] : 0;
        if (row >= p.n || before >= p.n) {
            ++wrong;
            continue;
        }
        const bool null = row % 16 != 0, behind_null = before % 16 != 0;
        const bool ascends = null ? !behind_null || row > before : !behind_null && p.in[row] > p.in[before];
        wrong += i > 0 && !ascends;
    }
    wc_found(p, wrong, 0);
}
WC_KERNEL(large_merged, LargeParams, 256, 1) {
    uint64_t wrong = 0;
    WC_EACH(i, p.n) wrong += p.in[i] != (uint32_t)i;
    wc_found(p, wrong, 0);
}
// Places are the keys.
WC_KERNEL(large_searched, LargeParams, 256, 1) {
    uint64_t wrong = 0;
    WC_EACH(i, p.n) wrong += p.b[i] != p.in[i];
    wc_found(p, wrong, 0);
}
// Runs of 16 rows, the last of `other`; their keys are their numbers.
WC_KERNEL(large_encoded, LargeParams, 256, 1) {
    uint64_t wrong = 0;
    WC_EACH(i, p.n) wrong += p.a[i] != (uint32_t)i || p.b[i] != (i + 1 == p.n ? p.other : 16);
    wc_found(p, wrong, 0);
}
// Sums of segments: `b` has the offsets, `in` sums of 32 bits of keys.
WC_KERNEL(large_segments, LargeParams, 256, 1) {
    uint64_t wrong = 0;
    WC_EACH(i, p.n) {
        uint32_t sum = 0;
        for (uint64_t row = p.b[i]; row < p.b[i + 1]; ++row) sum += p.in2[row];
        wrong += sum != p.in[i];
    }
    wc_found(p, wrong, 0);
}
// Rows lie between the starts of their partition, by the highest byte of their keys.
WC_KERNEL(large_partitions, LargeParams, 256, 1) {
    uint64_t wrong = 0, sum = 0;
    WC_EACH(i, p.n) {
        wrong += i < p.b[p.in[i] >> 24] || i >= p.b[(p.in[i] >> 24) + 1];
        sum += wc_hash(p.in[i], p.in2[i]);
    }
    wc_found(p, wrong, sum);
}
// Sums `b` of groups `a`: of all rows, whose keys are their numbers modulo the groups and whose values are the numbers
// backwards; the sum of keys tells whether there are all of them.
WC_KERNEL(large_grouped, LargeParams, 256, 1) {
    uint64_t wrong = 0, sum = 0;
    WC_EACH(i, p.n) {
        const uint64_t key = p.a[i], rows = p.rows / p.n + (key < p.rows % p.n ? 1 : 0);
        const uint64_t numbers = key * rows + p.n * (rows * (rows - 1) / 2);
        wrong += key >= p.n || p.b[i] != (p.rows - 1) * rows - numbers;
        sum += key;
    }
    wc_found(p, wrong, sum);
}
// Rows `b` have the keys `a`, which descend.
WC_KERNEL(large_top, LargeParams, 256, 1) {
    uint64_t wrong = 0;
    WC_EACH(i, p.n) wrong += p.b[i] >= p.rows || p.in[p.b[i]] != p.a[i] || (i > 0 && p.a[i] >= p.a[i - 1]);
    wc_found(p, wrong, 0);
}
";
