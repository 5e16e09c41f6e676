// Barriers, votes, shuffles, matches and reductions, as CUDA names them. Each call carries its place in the source, by
// which the runtime tells lanes that meet in one collective from lanes that miss each other.
#pragma once

static inline void __syncthreads(WC_EMU_SITE) { wc_emu_barrier(WC_EMU_BARRIER, 0, wc_file, wc_line); }
static inline int __syncthreads_count(int predicate, WC_EMU_SITE) {
    return wc_emu_barrier(WC_EMU_BARRIER_COUNT, predicate, wc_file, wc_line);
}
static inline int __syncthreads_and(int predicate, WC_EMU_SITE) {
    return wc_emu_barrier(WC_EMU_BARRIER_AND, predicate, wc_file, wc_line);
}
static inline int __syncthreads_or(int predicate, WC_EMU_SITE) {
    return wc_emu_barrier(WC_EMU_BARRIER_OR, predicate, wc_file, wc_line);
}

static inline void __syncwarp(unsigned mask = 0xffffffffu, WC_EMU_SITE) {
    wc_emu_collective(WC_EMU_SYNCWARP, mask, 0, 0, wc_file, wc_line);
}
static inline unsigned __activemask(WC_EMU_SITE) {
    return (unsigned)wc_emu_collective(WC_EMU_ACTIVEMASK, 0, 0, 0, wc_file, wc_line);
}
static inline unsigned __ballot_sync(unsigned mask, int predicate, WC_EMU_SITE) {
    return (unsigned)wc_emu_collective(WC_EMU_BALLOT, mask, predicate != 0, 0, wc_file, wc_line);
}
static inline int __any_sync(unsigned mask, int predicate, WC_EMU_SITE) {
    return (int)wc_emu_collective(WC_EMU_ANY, mask, predicate != 0, 0, wc_file, wc_line);
}
static inline int __all_sync(unsigned mask, int predicate, WC_EMU_SITE) {
    return (int)wc_emu_collective(WC_EMU_ALL, mask, predicate != 0, 0, wc_file, wc_line);
}

// The bits of a value of 4 or 8 bytes, and back; smaller integers travel as int, as in CUDA.
template <typename T, bool small = (sizeof(T) < 4)> struct wc_emu_bits {
    typedef T type;
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a lane exchanges values of 4 or 8 bytes");
    static_assert(__is_trivially_copyable(T), "a lane exchanges plain values");
    static uint64_t pack(T value) {
        uint64_t bits = 0;
        __builtin_memcpy(&bits, &value, sizeof(T));
        return bits;
    }
    static T unpack(uint64_t bits) {
        T value;
        __builtin_memcpy(&value, &bits, sizeof(T));
        return value;
    }
};
template <typename T> struct wc_emu_bits<T, true> {
    typedef int type;
    static uint64_t pack(T value) { return (uint32_t)(int)value; }
    static int unpack(uint64_t bits) { return (int)(uint32_t)bits; }
};

template <typename T>
static inline typename wc_emu_bits<T>::type wc_emu_shuffle(
    wc_emu_kind kind, unsigned mask, T value, unsigned by, int width, const char* file, int line) {
    unsigned argument = (by & 0xffffu) | (unsigned)width << 16;
    return wc_emu_bits<T>::unpack(wc_emu_collective(kind, mask, wc_emu_bits<T>::pack(value), argument, file, line));
}

#define WC_EMU_SHUFFLE(name, kind, Argument)                                                                      \
    template <typename T>                                                                                         \
    static inline typename wc_emu_bits<T>::type name(                                                             \
        unsigned mask, T value, Argument by, int width = 32, WC_EMU_SITE) {                                       \
        return wc_emu_shuffle(kind, mask, value, (unsigned)by, width, wc_file, wc_line);                          \
    }
WC_EMU_SHUFFLE(__shfl_sync, WC_EMU_SHFL, int)
WC_EMU_SHUFFLE(__shfl_up_sync, WC_EMU_SHFL_UP, unsigned)
WC_EMU_SHUFFLE(__shfl_down_sync, WC_EMU_SHFL_DOWN, unsigned)
WC_EMU_SHUFFLE(__shfl_xor_sync, WC_EMU_SHFL_XOR, int)
#undef WC_EMU_SHUFFLE

WC_DEVICE uint32_t wc_add_below(uint32_t value, uint32_t distance, WC_EMU_SITE) {
    const uint32_t other = __shfl_up_sync(0xffffffffu, value, distance, 32, wc_file, wc_line);
    return threadIdx.x % 32 >= distance ? value + other : value;
}

WC_DEVICE uint32_t wc_match_bit(uint32_t lanes, uint32_t digit, uint32_t bit, WC_EMU_SITE) {
    const uint32_t votes = __ballot_sync(0xffffffffu, (digit & bit) != 0, wc_file, wc_line);
    return lanes & (digit & bit ? votes : ~votes);
}

template <typename T> static inline unsigned __match_any_sync(unsigned mask, T value, WC_EMU_SITE) {
    return (unsigned)wc_emu_collective(
        WC_EMU_MATCH_ANY, mask, wc_emu_bits<T>::pack(value), 0, wc_file, wc_line);
}

#define WC_EMU_REDUCE(name, T, kind)                                                                              \
    static inline T name(unsigned mask, T value, WC_EMU_SITE) {                                                   \
        return (T)(uint32_t)wc_emu_collective(kind, mask, (uint32_t)value, 0, wc_file, wc_line);                  \
    }
WC_EMU_REDUCE(__reduce_add_sync, unsigned, WC_EMU_ADD)
WC_EMU_REDUCE(__reduce_add_sync, int, WC_EMU_ADD)
WC_EMU_REDUCE(__reduce_min_sync, unsigned, WC_EMU_MIN_UNSIGNED)
WC_EMU_REDUCE(__reduce_min_sync, int, WC_EMU_MIN_SIGNED)
WC_EMU_REDUCE(__reduce_max_sync, unsigned, WC_EMU_MAX_UNSIGNED)
WC_EMU_REDUCE(__reduce_max_sync, int, WC_EMU_MAX_SIGNED)
WC_EMU_REDUCE(__reduce_and_sync, unsigned, WC_EMU_AND)
WC_EMU_REDUCE(__reduce_or_sync, unsigned, WC_EMU_OR)
WC_EMU_REDUCE(__reduce_xor_sync, unsigned, WC_EMU_XOR)
#undef WC_EMU_REDUCE
