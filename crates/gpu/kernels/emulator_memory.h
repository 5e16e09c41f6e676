// Atomics, fences, and the emulated twins of what prelude.cuh says in PTX. Atomics are real ones: two launches on two
// operating system threads may share memory. int64_t is `long long` under NVRTC and `long` under g++ on Linux, so the
// 64-bit forms stand for both; a form that CUDA lacks is missing here too.
#pragma once

// Where a fiber may be switched, and the time limit looked at.
static inline void wc_emu_pass(const char* file, int line) {
    if (--wc_emu_self()->launch->countdown <= 0) wc_emu_point(file, line);
}
static inline void wc_emu_changed() { ++wc_emu_self()->launch->changes; }

// `update` computes the new value from `old`; the loop is one atomic step, as all others here.
#define WC_EMU_ATOMIC(name, T, update)                                                       \
    static inline T name(T* address, T value, WC_EMU_SITE) {                                 \
        wc_emu_pass(wc_file, wc_line);                                                       \
        wc_emu_changed();                                                                    \
        T old, desired;                                                                      \
        __atomic_load(address, &old, __ATOMIC_RELAXED);                                      \
        do {                                                                                 \
            desired = update;                                                                \
        } while (!__atomic_compare_exchange(                                                 \
            address, &old, &desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));            \
        return old;                                                                          \
    }
#define WC_EMU_ATOMIC_UNSIGNED(name, update)               \
    WC_EMU_ATOMIC(name, unsigned, update)                  \
    WC_EMU_ATOMIC(name, unsigned long, update)             \
    WC_EMU_ATOMIC(name, unsigned long long, update)
#define WC_EMU_ATOMIC_SIGNED(name, update)                 \
    WC_EMU_ATOMIC(name, int, update)                       \
    WC_EMU_ATOMIC(name, long, update)                      \
    WC_EMU_ATOMIC(name, long long, update)

WC_EMU_ATOMIC_UNSIGNED(atomicAdd, old + value)
// Those of signed integers wrap, as the hardware's do.
WC_EMU_ATOMIC(atomicAdd, int, (int)((unsigned)old + (unsigned)value))
WC_EMU_ATOMIC(atomicAdd, float, old + value)
WC_EMU_ATOMIC(atomicAdd, double, old + value)
WC_EMU_ATOMIC(atomicSub, int, (int)((unsigned)old - (unsigned)value))
WC_EMU_ATOMIC(atomicSub, unsigned, old - value)
WC_EMU_ATOMIC_UNSIGNED(atomicMin, value < old ? value : old)
WC_EMU_ATOMIC_SIGNED(atomicMin, value < old ? value : old)
WC_EMU_ATOMIC_UNSIGNED(atomicMax, value > old ? value : old)
WC_EMU_ATOMIC_SIGNED(atomicMax, value > old ? value : old)
WC_EMU_ATOMIC_UNSIGNED(atomicOr, old | value)
WC_EMU_ATOMIC(atomicOr, int, old | value)
WC_EMU_ATOMIC_UNSIGNED(atomicAnd, old & value)
WC_EMU_ATOMIC(atomicAnd, int, old & value)
WC_EMU_ATOMIC_UNSIGNED(atomicXor, old ^ value)
WC_EMU_ATOMIC(atomicXor, int, old ^ value)
WC_EMU_ATOMIC_UNSIGNED(atomicExch, value)
WC_EMU_ATOMIC(atomicExch, int, value)
WC_EMU_ATOMIC(atomicExch, float, value)

#define WC_EMU_COMPARE_SWAP(T)                                                                                     \
    static inline T atomicCAS(T* address, T expected, T desired, WC_EMU_SITE) {                                    \
        wc_emu_pass(wc_file, wc_line);                                                                             \
        if (__atomic_compare_exchange_n(address, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))   \
            wc_emu_changed();                                                                                      \
        return expected;                                                                                           \
    }
WC_EMU_COMPARE_SWAP(int)
WC_EMU_COMPARE_SWAP(unsigned)
WC_EMU_COMPARE_SWAP(unsigned long)
WC_EMU_COMPARE_SWAP(unsigned long long)
#undef WC_EMU_COMPARE_SWAP

// An acquire load yields first: a thread that polls lets the one it waits for run.
#define WC_EMU_ORDERED(T)                                                           \
    static inline T wc_load_acquire(const T* address, WC_EMU_SITE) {                \
        wc_emu_yield(WC_EMU_YIELD_ACQUIRE, wc_file, wc_line);                       \
        return __atomic_load_n(address, __ATOMIC_ACQUIRE);                          \
    }                                                                               \
    static inline T wc_load_relaxed(const T* address, WC_EMU_SITE) {                \
        wc_emu_pass(wc_file, wc_line);                                              \
        return __atomic_load_n(address, __ATOMIC_RELAXED);                          \
    }                                                                               \
    static inline void wc_store_relaxed(T* address, T value, WC_EMU_SITE) {         \
        wc_emu_pass(wc_file, wc_line);                                              \
        wc_emu_changed();                                                           \
        __atomic_store_n(address, value, __ATOMIC_RELAXED);                         \
    }                                                                               \
    static inline void wc_store_release(T* address, T value, WC_EMU_SITE) {         \
        wc_emu_pass(wc_file, wc_line);                                              \
        wc_emu_changed();                                                           \
        __atomic_store_n(address, value, __ATOMIC_RELEASE);                         \
    }                                                                               \
    static inline T wc_fetch_add(T* address, T value, WC_EMU_SITE) {                \
        return atomicAdd(address, value, wc_file, wc_line);                         \
    }                                                                               \
    static inline T wc_fetch_or(T* address, T bits, WC_EMU_SITE) {                  \
        return atomicOr(address, bits, wc_file, wc_line);                           \
    }                                                                               \
    static inline T wc_count(T* address, WC_EMU_SITE) {                             \
        return atomicAdd(address, (T)1, wc_file, wc_line);                          \
    }                                                                               \
    static inline T wc_compare_swap(T* address, T expected, T desired, WC_EMU_SITE) { \
        return atomicCAS(address, expected, desired, wc_file, wc_line);             \
    }
WC_EMU_ORDERED(unsigned)
WC_EMU_ORDERED(unsigned long)
WC_EMU_ORDERED(unsigned long long)
#undef WC_EMU_ORDERED

// Other threads may run between the two words. The type has the checks of addresses look at the alignment.
struct __attribute__((aligned(16))) wc_emu_pair {
    uint64_t words[2];
};
static inline void wc_load_pair_relaxed(const uint64_t* address, uint64_t (&pair)[2], WC_EMU_SITE) {
    const wc_emu_pair* both = (const wc_emu_pair*)address;
    pair[0] = wc_load_relaxed(&both->words[0], wc_file, wc_line);
    pair[1] = wc_load_relaxed(&both->words[1], wc_file, wc_line);
}
static inline void wc_store_pair_relaxed(uint64_t* address, const uint64_t (&pair)[2], WC_EMU_SITE) {
    wc_emu_pair* both = (wc_emu_pair*)address;
    wc_store_relaxed(&both->words[0], pair[0], wc_file, wc_line);
    wc_store_relaxed(&both->words[1], pair[1], wc_file, wc_line);
}

#define WC_EMU_REDUCTION(name, atomic, T, As)                                       \
    static inline void name(T* address, T value, WC_EMU_SITE) {                     \
        atomic((As*)address, (As)value, wc_file, wc_line);                          \
    }
WC_EMU_REDUCTION(wc_add, atomicAdd, unsigned, unsigned)
WC_EMU_REDUCTION(wc_add, atomicAdd, unsigned long, unsigned long)
WC_EMU_REDUCTION(wc_add, atomicAdd, unsigned long long, unsigned long long)
WC_EMU_REDUCTION(wc_add, atomicAdd, long, unsigned long)
WC_EMU_REDUCTION(wc_add, atomicAdd, long long, unsigned long long)
WC_EMU_REDUCTION(wc_add, atomicAdd, double, double)
WC_EMU_REDUCTION(wc_min, atomicMin, long, long)
WC_EMU_REDUCTION(wc_min, atomicMin, long long, long long)
WC_EMU_REDUCTION(wc_min, atomicMin, unsigned long, unsigned long)
WC_EMU_REDUCTION(wc_min, atomicMin, unsigned long long, unsigned long long)
WC_EMU_REDUCTION(wc_max, atomicMax, long, long)
WC_EMU_REDUCTION(wc_max, atomicMax, long long, long long)
WC_EMU_REDUCTION(wc_max, atomicMax, unsigned long, unsigned long)
WC_EMU_REDUCTION(wc_max, atomicMax, unsigned long long, unsigned long long)
WC_EMU_REDUCTION(wc_or, atomicOr, unsigned, unsigned)
#undef WC_EMU_REDUCTION
#undef WC_EMU_ATOMIC
#undef WC_EMU_ATOMIC_UNSIGNED
#undef WC_EMU_ATOMIC_SIGNED

static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __nanosleep(unsigned, WC_EMU_SITE) { wc_emu_yield(WC_EMU_YIELD_BACKOFF, wc_file, wc_line); }
// Kernels run one after another here. A thread of a kernel that is launched early sees addresses that lead nowhere in
// its parameters until it waits, so that what it does too soon is found.
WC_DEVICE void wc_wait_previous() { wc_emu_wait(); }
WC_DEVICE void wc_start_next() {}

WC_DEVICE void wc_backoff(WC_EMU_SITE) { wc_emu_yield(WC_EMU_YIELD_BACKOFF, wc_file, wc_line); }
static inline long long clock64() { return wc_emu_clock(); }

template <typename T> static inline T __ldg(const T* address) { return *address; }
template <typename T> static inline T __ldcs(const T* address) { return *address; }
template <typename T> static inline T __ldcg(const T* address) { return *address; }
template <typename T> static inline T __ldca(const T* address) { return *address; }
template <typename T> static inline void __stcs(T* address, T value) { *address = value; }
template <typename T> static inline void __stcg(T* address, T value) { *address = value; }

template <typename T> WC_DEVICE T wc_load_stream(const T* address) { return *address; }
template <typename T> WC_DEVICE T wc_load_again(const T* address) { return *address; }
template <typename T> WC_DEVICE T wc_load_cached(const T* address) { return *address; }
template <typename T> WC_DEVICE void wc_store_stream(T* address, T value) { *address = value; }
// What is asked for has to be there, from a multiple of 16 to another.
WC_DEVICE void wc_prefetch(const char* address, uint32_t bytes) {
    (void)((const volatile int4*)address)->x;
    (void)((const volatile int4*)(address + bytes))[-1].w;
}
WC_DEVICE int4 wc_load16_stream(const void* address) { return *(const int4*)address; }
