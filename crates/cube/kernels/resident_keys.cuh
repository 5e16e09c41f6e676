// Keys of facts in miniblocks, one fact at a time (device/keys.rs).
//
// Text in front defines WC_KEY_WORDS (1 or 2 words of 64 bits a key).
#pragma once

#define WC_MINIBLOCK_FACTS 128u
// Units of 16 bytes of a miniblock up to which its keys are offsets.
#define WC_OFFSET_UNITS 32u
#define WC_CHUNK_FACTS (1ull << 20)

#if WC_KEY_WORDS == 1
typedef uint64_t CubeKey;
#else
typedef unsigned __int128 CubeKey;
#endif

// Members of parameter structs.
struct CubeKeys {
    const CubeKey* firsts;
    const uint32_t* starts;
    const uint32_t* offsets;
};

// Coordinates within keys: dimension d is key >> shifts[d] & masks[d].
struct CubeShape {
    uint64_t dimensions;
    uint64_t shifts[32], masks[32];

    WC_INLINE uint32_t coordinate(CubeKey key, uint32_t dimension) const {
        return (uint32_t)(key >> (uint32_t)shifts[dimension]) & (uint32_t)masks[dimension];
    }
};

// Number of low bits that hold all set bits.
WC_DEVICE uint32_t wc_key_bits(CubeKey key) {
#if WC_KEY_WORDS == 1
    return 64u - (uint32_t)__clzll((int64_t)key);
#else
    const uint64_t high = (uint64_t)(key >> 64);
    return high != 0 ? 128u - (uint32_t)__clzll((int64_t)high) : 64u - (uint32_t)__clzll((int64_t)(uint64_t)key);
#endif
}

// The key of a fact.
WC_DEVICE CubeKey wc_key_of(const CubeKeys& keys, uint64_t fact) {
    const uint64_t miniblock = fact / WC_MINIBLOCK_FACTS;
    const uint32_t at = (uint32_t)(fact % WC_MINIBLOCK_FACTS);
    const uint32_t start = wc_load_cached(keys.starts + miniblock);
    const uint32_t units = wc_load_cached(keys.starts + miniblock + 1) - start;
    const uint32_t* const words = keys.offsets + 4ull * start;
    if (units > WC_OFFSET_UNITS) return ((const CubeKey*)words)[at];
    const uint32_t bit = at * units;
    const uint32_t low = wc_load_cached(words + bit / 32u), high = wc_load_cached(words + bit / 32u + 1);
    const uint32_t mask = units == 32u ? 0xffffffffu : (1u << units) - 1u;
    return keys.firsts[miniblock] + (__funnelshift_r(low, high, bit % 32u) & mask);
}

// The value of a fact; `chunks` has the addresses of the values of each chunk.
WC_DEVICE uint64_t wc_value_of(const uint64_t* chunks, uint64_t fact) {
    const uint64_t* const values = (const uint64_t*)wc_load_cached(chunks + fact / WC_CHUNK_FACTS);
    return wc_load_stream(values + fact % WC_CHUNK_FACTS);
}

// True if a fact has a value; `chunks` has the addresses of the validity words of each chunk, 0 where all have one.
WC_DEVICE bool wc_has_value(const uint64_t* chunks, uint64_t fact) {
    const uint32_t* const words = (const uint32_t*)wc_load_cached(chunks + fact / WC_CHUNK_FACTS);
    const uint64_t row = fact % WC_CHUNK_FACTS;
    return words == nullptr || (wc_load_cached(words + row / 32) >> (row % 32) & 1u) != 0;
}
