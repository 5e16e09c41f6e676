// The header in front of every program: the few words that CUDA and the emulated device say differently.
//
// Rules for kernel source (tests on the emulated device hold them):
//  - a kernel is written WC_KERNEL(name, Params, threads, min_blocks) { ... uses p.field ... }, where Params is a plain
//    struct of 8-byte members (pointers, int64_t, uint64_t, double);
//  - shared memory comes from wc_shared() alone, the dynamic arena of the block;
//  - collectives name their mask; PTX stands in this file alone, each piece with its emulated twin;
//  - a spin loop calls wc_backoff();
//  - a kernel that may be launched early begins with wc_wait_previous(), in every thread;
//  - arithmetic that may wrap is unsigned.
#pragma once

#ifdef WARPCUBE_EMULATED
#include "emulator.h"
#else

typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;

#define WC_DEVICE static __device__ __forceinline__
// For member functions, which bring their own linkage.
#define WC_INLINE __device__ __forceinline__
#define WC_KERNEL(name, Params, threads, min_blocks) \
    extern "C" __global__ void __launch_bounds__(threads, min_blocks) name(const __grid_constant__ Params p)

// The dynamic shared memory of the block, aligned to 16 bytes.
WC_DEVICE char* wc_shared() {
    extern __shared__ __align__(16) char wc_shared_arena[];
    return wc_shared_arena;
}

// Streaming loads: data read once, evicted first.
template <typename T> WC_DEVICE T wc_load_stream(const T* address) {
    if constexpr (sizeof(T) == 16) {
        union {
            int4 words;
            T value;
        } data = {__ldcs((const int4*)address)};
        return data.value;
    } else {
        return __ldcs(address);
    }
}
// Streaming loads of data that is read once more soon: the L1 cache does not take it in, and in the L2 cache it
// outlives what is read once. The data stays the same while the kernel runs.
template <typename T> WC_DEVICE T wc_load_again(const T* address) {
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    union {
        T value;
        uint32_t words[(sizeof(T) + 3) / 4];
    } data;
#define WC_LOAD_AGAIN "ld.global.nc.L1::no_allocate.L2::cache_hint"
    if constexpr (sizeof(T) == 16) {
        asm(WC_LOAD_AGAIN ".v4.u32 {%0, %1, %2, %3}, [%4], %5;"
            : "=r"(data.words[0]), "=r"(data.words[1]), "=r"(data.words[2]), "=r"(data.words[3])
            : "l"(address), "l"(policy));
    } else if constexpr (sizeof(T) == 8) {
        asm(WC_LOAD_AGAIN ".v2.u32 {%0, %1}, [%2], %3;"
            : "=r"(data.words[0]), "=r"(data.words[1])
            : "l"(address), "l"(policy));
    } else if constexpr (sizeof(T) == 4) {
        asm(WC_LOAD_AGAIN ".u32 %0, [%1], %2;" : "=r"(data.words[0]) : "l"(address), "l"(policy));
    } else if constexpr (sizeof(T) == 2) {
        asm(WC_LOAD_AGAIN ".u16 %0, [%1], %2;" : "=r"(data.words[0]) : "l"(address), "l"(policy));
    } else {
        static_assert(sizeof(T) == 1, "a load of 1, 2, 4, 8 or 16 bytes");
        asm(WC_LOAD_AGAIN ".u8 %0, [%1], %2;" : "=r"(data.words[0]) : "l"(address), "l"(policy));
    }
#undef WC_LOAD_AGAIN
    return data.value;
}
// Loads of data that stays the same while the kernel runs and is read again.
template <typename T> WC_DEVICE T wc_load_cached(const T* address) { return __ldg(address); }

// Streaming stores: data not read again soon, evicted first.
template <typename T> WC_DEVICE void wc_store_stream(T* address, T value) { __stcs(address, value); }

// 16 bytes at once; the address is aligned to 16.
WC_DEVICE int4 wc_load16_stream(const void* address) { return __ldcs((const int4*)address); }

// Loads and stores that other blocks (or the host) see while this kernel runs.
WC_DEVICE uint32_t wc_load_acquire(const uint32_t* address) {
    uint32_t value;
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    return value;
}
WC_DEVICE uint64_t wc_load_acquire(const uint64_t* address) {
    uint64_t value;
    asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}
WC_DEVICE uint32_t wc_load_relaxed(const uint32_t* address) {
    uint32_t value;
    asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    return value;
}
WC_DEVICE uint64_t wc_load_relaxed(const uint64_t* address) {
    uint64_t value;
    asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}
WC_DEVICE void wc_store_relaxed(uint32_t* address, uint32_t value) {
    asm volatile("st.relaxed.gpu.u32 [%0], %1;" : : "l"(address), "r"(value) : "memory");
}
WC_DEVICE void wc_store_relaxed(uint64_t* address, uint64_t value) {
    asm volatile("st.relaxed.gpu.u64 [%0], %1;" : : "l"(address), "l"(value) : "memory");
}
// Two words at an address aligned to 16, each seen whole; what is between them is not promised.
WC_DEVICE void wc_load_pair_relaxed(const uint64_t* address, uint64_t (&pair)[2]) {
    asm volatile("ld.relaxed.gpu.v2.u64 {%0, %1}, [%2];" : "=l"(pair[0]), "=l"(pair[1]) : "l"(address) : "memory");
}
WC_DEVICE void wc_store_pair_relaxed(uint64_t* address, const uint64_t (&pair)[2]) {
    asm volatile("st.relaxed.gpu.v2.u64 [%0], {%1, %2};" : : "l"(address), "l"(pair[0]), "l"(pair[1]) : "memory");
}
WC_DEVICE void wc_store_release(uint32_t* address, uint32_t value) {
    asm volatile("st.release.gpu.u32 [%0], %1;" : : "l"(address), "r"(value) : "memory");
}
WC_DEVICE void wc_store_release(uint64_t* address, uint64_t value) {
    asm volatile("st.release.gpu.u64 [%0], %1;" : : "l"(address), "l"(value) : "memory");
}

// A kernel launched early (programmatic dependent launch) touches memory only after it has waited for the kernels
// before it; the next one may come to the device once all blocks have said so. Both do nothing for other launches.
WC_DEVICE void wc_wait_previous() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" : : : "memory");
#endif
}
WC_DEVICE void wc_start_next() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
#endif
}

// The value plus that of the lane `distance` below, where there is one. The shuffle says whether there is, which is an
// instruction less than to compare lanes.
WC_DEVICE uint32_t wc_add_below(uint32_t value, uint32_t distance) {
    asm volatile(
        "{\n"
        "  .reg .u32 other;\n"
        "  .reg .pred there;\n"
        "  shfl.sync.up.b32 other|there, %0, %1, 0, 0xffffffff;\n"
        "  @there add.u32 %0, %0, other;\n"
        "}"
        : "+r"(value)
        : "r"(distance));
    return value;
}

// Those lanes of a set that agree with one's own in a bit of their digits; called by all lanes. A ballot in plain C++
// takes seven instructions, since the compiler tests the bit twice; this takes four.
WC_DEVICE uint32_t wc_match_bit(uint32_t lanes, uint32_t digit, uint32_t bit) {
    asm volatile(
        "{\n"
        "  .reg .u32 own, votes;\n"
        "  .reg .pred set;\n"
        "  and.b32 own, %1, %2;\n"
        "  setp.ne.u32 set, own, 0;\n"
        "  vote.sync.ballot.b32 votes, set, 0xffffffff;\n"
        "  @!set not.b32 votes, votes;\n"
        "  and.b32 %0, %0, votes;\n"
        "}"
        : "+r"(lanes)
        : "r"(digit), "r"(bit));
    return lanes;
}

// Asks for memory to be brought to the L2 cache, where the device can; both are multiples of 16, one lane asks.
WC_DEVICE void wc_prefetch(const char* address, uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" : : "l"(address), "r"(bytes));
#endif
}

// Waits a little inside a spin loop.
WC_DEVICE void wc_backoff() { __nanosleep(32); }

// Reductions to global memory: the result is not used, so the hardware need not return it.
WC_DEVICE void wc_add(uint32_t* address, uint32_t value) { atomicAdd(address, value); }
WC_DEVICE void wc_add(uint64_t* address, uint64_t value) { atomicAdd(address, value); }
WC_DEVICE void wc_add(int64_t* address, int64_t value) { atomicAdd((uint64_t*)address, (uint64_t)value); }
WC_DEVICE void wc_add(double* address, double value) { atomicAdd(address, value); }
WC_DEVICE void wc_min(int64_t* address, int64_t value) { atomicMin(address, value); }
WC_DEVICE void wc_max(int64_t* address, int64_t value) { atomicMax(address, value); }
WC_DEVICE void wc_min(uint64_t* address, uint64_t value) { atomicMin(address, value); }
WC_DEVICE void wc_max(uint64_t* address, uint64_t value) { atomicMax(address, value); }
WC_DEVICE void wc_or(uint32_t* address, uint32_t value) { atomicOr(address, value); }
WC_DEVICE uint32_t wc_fetch_add(uint32_t* address, uint32_t value) { return atomicAdd(address, value); }
WC_DEVICE uint64_t wc_fetch_add(uint64_t* address, uint64_t value) { return atomicAdd(address, value); }
// Adds one, for one lane, and gives what was there. The compiler merges `atomicAdd`s of a warp, even where only one
// lane gets there, and then waits for the answer at once; this one is waited for where it is used.
WC_DEVICE uint32_t wc_count(uint32_t* address) {
    uint32_t before;
    asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(address) : "memory");
    return before;
}
// Sets bits and gives what was there; waited for where it is used.
WC_DEVICE uint32_t wc_fetch_or(uint32_t* address, uint32_t bits) {
    uint32_t before;
    asm volatile("atom.relaxed.gpu.global.or.b32 %0, [%1], %2;" : "=r"(before) : "l"(address), "r"(bits) : "memory");
    return before;
}
WC_DEVICE uint64_t wc_compare_swap(uint64_t* address, uint64_t expected, uint64_t desired) {
    return atomicCAS(address, expected, desired);
}
WC_DEVICE uint32_t wc_compare_swap(uint32_t* address, uint32_t expected, uint32_t desired) {
    return atomicCAS(address, expected, desired);
}

#endif  // WARPCUBE_EMULATED

// From here on one text for both.

#define WC_FULL_MASK 0xffffffffu

WC_DEVICE uint32_t wc_lane() { return threadIdx.x & 31u; }
WC_DEVICE uint32_t wc_warp() { return threadIdx.x >> 5; }

// Sum over the 32 lanes, the same result in every lane.
template <typename T> WC_DEVICE T wc_warp_sum(T value) {
    for (int step = 16; step > 0; step >>= 1) value += __shfl_xor_sync(WC_FULL_MASK, value, step);
    return value;
}

// The result of a warp, left for the block in `parts`, a word a warp; after a barrier the result of the lane's warp, or
// zero for lanes past the last one.
template <typename T> WC_DEVICE void wc_leave(T* parts, T value) {
    if (wc_lane() == 0) parts[wc_warp()] = value;
}
template <typename T> WC_DEVICE T wc_left(const T* parts) { return wc_lane() < blockDim.x / 32 ? parts[wc_lane()] : 0; }

// Sum over the lanes up to one's own.
WC_DEVICE uint32_t wc_warp_inclusive_sum(uint32_t value) {
#pragma unroll
    for (uint32_t step = 1; step < 32; step *= 2) value = wc_add_below(value, step);
    return value;
}
WC_DEVICE uint64_t wc_warp_inclusive_sum(uint64_t value) {
#pragma unroll
    for (uint32_t step = 1; step < 32; step *= 2) {
        const uint64_t other = __shfl_up_sync(WC_FULL_MASK, value, step);
        if (wc_lane() >= step) value += other;
    }
    return value;
}
