// Vector types, bit tricks and arithmetic that CUDA C++ knows without an include.
#pragma once

#define WC_EMU_VECTOR2(name, T)                                                  \
    struct __align__(2 * sizeof(T)) name {                                       \
        T x, y;                                                                  \
    };                                                                           \
    static inline name make_##name(T x, T y) { return name{x, y}; }
#define WC_EMU_VECTOR4(name, T)                                                  \
    struct __align__(sizeof(T) < 8 ? 4 * sizeof(T) : 16) name {                  \
        T x, y, z, w;                                                            \
    };                                                                           \
    static inline name make_##name(T x, T y, T z, T w) { return name{x, y, z, w}; }
WC_EMU_VECTOR2(char2, signed char)
WC_EMU_VECTOR2(uchar2, unsigned char)
WC_EMU_VECTOR2(short2, short)
WC_EMU_VECTOR2(ushort2, unsigned short)
WC_EMU_VECTOR2(int2, int)
WC_EMU_VECTOR2(uint2, unsigned)
WC_EMU_VECTOR2(float2, float)
WC_EMU_VECTOR2(longlong2, long long)
WC_EMU_VECTOR2(ulonglong2, unsigned long long)
WC_EMU_VECTOR2(double2, double)
WC_EMU_VECTOR4(char4, signed char)
WC_EMU_VECTOR4(uchar4, unsigned char)
WC_EMU_VECTOR4(short4, short)
WC_EMU_VECTOR4(ushort4, unsigned short)
WC_EMU_VECTOR4(int4, int)
WC_EMU_VECTOR4(uint4, unsigned)
WC_EMU_VECTOR4(float4, float)
#undef WC_EMU_VECTOR2
#undef WC_EMU_VECTOR4

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
static inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }

static inline unsigned __brev(unsigned x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}
static inline unsigned long long __brevll(unsigned long long x) {
    return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}

// Four bytes picked from the eight of y:x, each by the low three bits of its digit in the selector; the fourth bit
// spreads the byte's sign.
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    uint64_t bytes = (uint64_t)y << 32 | x;
    unsigned result = 0;
    for (int i = 0; i < 4; i++) {
        unsigned digit = selector >> (4 * i) & 15u;
        unsigned byte = (unsigned)(bytes >> (8 * (digit & 7u))) & 0xffu;
        if (digit & 8u) byte = byte & 0x80u ? 0xffu : 0u;
        result |= byte << (8 * i);
    }
    return result;
}

static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)((((uint64_t)high << 32 | low) << (shift & 31u)) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((uint64_t)high << 32 | low) >> (shift & 31u));
}
static inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
    return shift >= 32u ? low : __funnelshift_l(low, high, shift);
}
static inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
    return shift >= 32u ? high : __funnelshift_r(low, high, shift);
}

static inline int __mulhi(int x, int y) { return (int)((int64_t)x * y >> 32); }
static inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((uint64_t)x * y >> 32); }
static inline long long __mul64hi(long long x, long long y) { return (long long)((__int128)x * y >> 64); }
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}

template <typename To, typename From> static inline To wc_emu_cast(From from) {
    static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
    To to;
    __builtin_memcpy(&to, &from, sizeof(To));
    return to;
}
static inline long long __double_as_longlong(double x) { return wc_emu_cast<long long>(x); }
static inline double __longlong_as_double(long long x) { return wc_emu_cast<double>(x); }
static inline int __float_as_int(float x) { return wc_emu_cast<int>(x); }
static inline unsigned __float_as_uint(float x) { return wc_emu_cast<unsigned>(x); }
static inline float __int_as_float(int x) { return wc_emu_cast<float>(x); }
static inline float __uint_as_float(unsigned x) { return wc_emu_cast<float>(x); }
static inline double __dmul_rn(double x, double y) { return x * y; }
static inline int __double2hiint(double x) { return (int)(wc_emu_cast<uint64_t>(x) >> 32); }
static inline int __double2loint(double x) { return (int)(uint32_t)wc_emu_cast<uint64_t>(x); }
static inline double __hiloint2double(int high, int low) {
    return wc_emu_cast<double>((uint64_t)(uint32_t)high << 32 | (uint32_t)low);
}

// The wider or unsigned type wins between two integers, as with CUDA's own overloads.
template <typename A, typename B> constexpr auto min(A a, B b) {
    typedef decltype(true ? a : b) T;
    return (T)b < (T)a ? (T)b : (T)a;
}
template <typename A, typename B> constexpr auto max(A a, B b) {
    typedef decltype(true ? a : b) T;
    return (T)a < (T)b ? (T)b : (T)a;
}
// Unlike the integers': a NaN loses against a number.
static inline double min(double a, double b) { return __builtin_fmin(a, b); }
static inline double max(double a, double b) { return __builtin_fmax(a, b); }
static inline float min(float a, float b) { return __builtin_fminf(a, b); }
static inline float max(float a, float b) { return __builtin_fmaxf(a, b); }

#define WC_EMU_MATH1(name)                                                       \
    static inline double name(double x) { return __builtin_##name(x); }          \
    static inline float name(float x) { return __builtin_##name##f(x); }         \
    static inline float name##f(float x) { return __builtin_##name##f(x); }
#define WC_EMU_MATH2(name)                                                                \
    static inline double name(double x, double y) { return __builtin_##name(x, y); }      \
    static inline float name(float x, float y) { return __builtin_##name##f(x, y); }      \
    static inline float name##f(float x, float y) { return __builtin_##name##f(x, y); }
WC_EMU_MATH1(sqrt)
WC_EMU_MATH1(cbrt)
WC_EMU_MATH1(floor)
WC_EMU_MATH1(ceil)
WC_EMU_MATH1(trunc)
WC_EMU_MATH1(round)
WC_EMU_MATH1(rint)
WC_EMU_MATH1(fabs)
WC_EMU_MATH1(exp)
WC_EMU_MATH1(exp2)
WC_EMU_MATH1(log)
WC_EMU_MATH1(log2)
WC_EMU_MATH1(log10)
WC_EMU_MATH1(sin)
WC_EMU_MATH1(cos)
WC_EMU_MATH1(tan)
WC_EMU_MATH2(pow)
WC_EMU_MATH2(fmod)
WC_EMU_MATH2(fmin)
WC_EMU_MATH2(fmax)
WC_EMU_MATH2(copysign)
#undef WC_EMU_MATH1
#undef WC_EMU_MATH2
static inline double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
static inline float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
static inline double abs(double x) { return __builtin_fabs(x); }
static inline float abs(float x) { return __builtin_fabsf(x); }
static inline int abs(int x) { return x < 0 ? -x : x; }
static inline long abs(long x) { return x < 0 ? -x : x; }
static inline long long abs(long long x) { return x < 0 ? -x : x; }
static inline long long llabs(long long x) { return x < 0 ? -x : x; }
template <typename T> static inline bool isnan(T x) { return __builtin_isnan(x); }
template <typename T> static inline bool isinf(T x) { return __builtin_isinf(x); }
template <typename T> static inline bool isfinite(T x) { return __builtin_isfinite(x); }
template <typename T> static inline bool signbit(T x) { return __builtin_signbit(x); }

extern "C" void* memcpy(void* target, const void* source, size_t bytes) noexcept;
extern "C" void* memset(void* target, int value, size_t bytes) noexcept;
