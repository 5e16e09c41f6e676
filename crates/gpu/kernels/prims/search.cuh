// Search of many keys in one sorted sequence: for each the number of its elements below the key, or not above it.
//
// Text in front defines WC_SEARCH_KEY and WC_SEARCH_PLACE (uint32_t or uint64_t).
// Inputs: the sorted sequence, keys to look for. Output: a place a key. Mapping: `search_binary` gives a thread
// SEARCH_KEYS keys, whose loads go side by side; `search_pary` gives a warp a key and cuts the range by 33 a step, for
// few keys. Bytes: a key and a place each; probes are of 32 bytes, those of the first steps from the caches.
// Source: T. Kaldewey, J. Hagen, A. Di Blas, E. Sedlar, "Parallel Search on Video Cards", 2009.
#pragma once

typedef WC_SEARCH_KEY SearchKey;
typedef WcKey<SearchKey>::Bits SearchBits;
typedef WC_SEARCH_PLACE SearchPlace;

constexpr uint32_t SEARCH_THREADS = 256, SEARCH_KEYS = 4;

struct SearchParams {
    const SearchKey* sorted;
    uint64_t rows;
    const SearchKey* keys;
    uint64_t count;
    SearchPlace* places;
    uint64_t upper;       // 1: elements not above the key are counted
    uint64_t descending;  // 1: the sequence descends
};

// Whether the element is in front of the place of a key.
WC_DEVICE bool search_passes(SearchBits element, SearchBits key, bool upper) {
    return upper ? element <= key : element < key;
}

WC_KERNEL(search_binary, SearchParams, SEARCH_THREADS, 4) {
    const SearchBits flip = (SearchBits)(p.descending ? ~(SearchBits)0 : 0);
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    const uint64_t leap = p.rows == 0 ? 0 : (uint64_t)1 << (63 - __clzll((int64_t)p.rows));
    const uint64_t first = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (uint64_t base = first; base < p.count; base += step * SEARCH_KEYS) {
        SearchBits keys[SEARCH_KEYS];
        uint64_t low[SEARCH_KEYS];
#pragma unroll
        for (uint32_t k = 0; k < SEARCH_KEYS; ++k) {
            low[k] = 0;
            keys[k] = 0;
            if (base + k * step < p.count) keys[k] = WcKey<SearchKey>::to_bits(p.keys[base + k * step]) ^ flip;
        }
        for (uint64_t half = leap; half > 0; half /= 2) {
#pragma unroll
            for (uint32_t k = 0; k < SEARCH_KEYS; ++k) {
                const uint64_t next = low[k] + half;
                if (next > p.rows) continue;
                const SearchBits element = WcKey<SearchKey>::to_bits(p.sorted[next - 1]) ^ flip;
                if (search_passes(element, keys[k], p.upper)) low[k] = next;
            }
        }
#pragma unroll
        for (uint32_t k = 0; k < SEARCH_KEYS; ++k) {
            if (base + k * step < p.count) p.places[base + k * step] = (SearchPlace)low[k];
        }
    }
}

WC_KERNEL(search_pary, SearchParams, SEARCH_THREADS, 4) {
    const SearchBits flip = (SearchBits)(p.descending ? ~(SearchBits)0 : 0);
    const uint64_t warps = (uint64_t)gridDim.x * (blockDim.x / 32), lane = wc_lane();
    for (uint64_t at = (uint64_t)blockIdx.x * (blockDim.x / 32) + wc_warp(); at < p.count; at += warps) {
        const SearchBits key = WcKey<SearchKey>::to_bits(p.keys[at]) ^ flip;
        uint64_t low = 0, high = p.rows;
        while (low < high) {
            // 32 probes leave 33 parts; a short range is probed as a whole.
            const uint64_t rows = high - low, part = rows / 33, more = rows % 33;
            const uint64_t probe = rows <= 32 ? low + lane : low + (lane + 1) * part + (lane + 1) * more / 33;
            bool passes = false;
            if (probe < high) {
                const SearchBits element = WcKey<SearchKey>::to_bits(p.sorted[probe]) ^ flip;
                passes = search_passes(element, key, p.upper);
            }
            const uint32_t passed = (uint32_t)__popc(__ballot_sync(WC_FULL_MASK, passes));
            const uint64_t last = __shfl_sync(WC_FULL_MASK, probe, (int)(passed == 0 ? 0 : passed - 1));
            const uint64_t next = __shfl_sync(WC_FULL_MASK, probe, (int)(passed == 32 ? 31 : passed));
            if (passed > 0) low = last + 1;
            if (passed < 32 && next < high) high = next;
        }
        if (lane == 0) p.places[at] = (SearchPlace)low;
    }
}
