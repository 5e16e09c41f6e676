// Keys as unsigned bits whose order is that of the keys: one NaN, larger than all other floats, and one zero.
// The host's side is crates/gpu/src/prims/element.rs.
#pragma once

typedef unsigned __int128 uint128_t;
typedef __int128 int128_t;

// Bits of a key type: `Bits`, `to_bits`, `from_bits`.
template <typename T> struct WcKey;

template <> struct WcKey<uint8_t> {
    typedef uint8_t Bits;
    static WC_INLINE Bits to_bits(uint8_t key) { return key; }
    static WC_INLINE uint8_t from_bits(Bits bits) { return bits; }
};
template <> struct WcKey<uint32_t> {
    typedef uint32_t Bits;
    static WC_INLINE Bits to_bits(uint32_t key) { return key; }
    static WC_INLINE uint32_t from_bits(Bits bits) { return bits; }
};
template <> struct WcKey<uint64_t> {
    typedef uint64_t Bits;
    static WC_INLINE Bits to_bits(uint64_t key) { return key; }
    static WC_INLINE uint64_t from_bits(Bits bits) { return bits; }
};
template <> struct WcKey<uint128_t> {
    typedef uint128_t Bits;
    static WC_INLINE Bits to_bits(uint128_t key) { return key; }
    static WC_INLINE uint128_t from_bits(Bits bits) { return bits; }
};
template <> struct WcKey<int32_t> {
    typedef uint32_t Bits;
    static WC_INLINE Bits to_bits(int32_t key) { return (Bits)key ^ 0x80000000u; }
    static WC_INLINE int32_t from_bits(Bits bits) { return (int32_t)(bits ^ 0x80000000u); }
};
template <> struct WcKey<int64_t> {
    typedef uint64_t Bits;
    static WC_INLINE Bits to_bits(int64_t key) { return (Bits)key ^ 0x8000000000000000ull; }
    static WC_INLINE int64_t from_bits(Bits bits) { return (int64_t)(bits ^ 0x8000000000000000ull); }
};
template <> struct WcKey<int128_t> {
    typedef uint128_t Bits;
    static WC_INLINE Bits to_bits(int128_t key) { return (Bits)key ^ (Bits)1 << 127; }
    static WC_INLINE int128_t from_bits(Bits bits) { return (int128_t)(bits ^ (Bits)1 << 127); }
};
template <> struct WcKey<float> {
    typedef uint32_t Bits;
    static WC_INLINE Bits to_bits(float key) {
        const Bits bits = key != key ? 0x7fc00000u : key == 0.0f ? 0u : __float_as_uint(key);
        return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    }
    static WC_INLINE float from_bits(Bits bits) {
        return __uint_as_float(bits & 0x80000000u ? bits & 0x7fffffffu : ~bits);
    }
};
template <> struct WcKey<double> {
    typedef uint64_t Bits;
    static WC_INLINE Bits to_bits(double key) {
        const Bits bits = key != key ? 0x7ff8000000000000ull : key == 0.0 ? 0ull : (Bits)__double_as_longlong(key);
        return bits & 0x8000000000000000ull ? ~bits : bits | 0x8000000000000000ull;
    }
    static WC_INLINE double from_bits(Bits bits) {
        return __longlong_as_double((int64_t)(bits & 0x8000000000000000ull ? bits & 0x7fffffffffffffffull : ~bits));
    }
};
