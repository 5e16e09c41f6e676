// The emulated device's side of kernel source: what CUDA C++ takes for granted, said in plain C++.
//
// Included by prelude.cuh when a program is compiled by the host's C++ compiler (see src/emulated/mod.rs). It is light
// on purpose, since every generated kernel reads it: whatever holds state lives in emulator.cc, which is compiled once
// into a library that kernels link to.
#pragma once

#include "emulator_abi.h"

// Default arguments that stand for the place of the call.
#define WC_EMU_SITE const char *wc_file = __builtin_FILE(), int wc_line = __builtin_LINE()

// The calling thread.
static inline __attribute__((always_inline)) wc_emu_thread* wc_emu_self() {
    return wc_emu_record((uintptr_t)__builtin_frame_address(0));
}

#define threadIdx (wc_emu_self()->thread_index)
#define blockIdx (wc_emu_self()->block_index)
#define blockDim (wc_emu_self()->block_shape)
#define gridDim (wc_emu_self()->grid_shape)
static const int warpSize = 32;

#define __device__
#define __host__
#define __global__
#define __constant__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ WC_ERROR_shared_memory_comes_from_wc_shared_alone

#define WC_DEVICE static inline
#define WC_INLINE inline

// A symbol of a kernel. An object may hold several programs; WC_PROGRAM is the name of the one at hand.
#define WC_EMU_JOIN(prefix, program, name) prefix##program##_##name
#define WC_EMU_OF_PROGRAM(prefix, program, name) WC_EMU_JOIN(prefix, program, name)
#define WC_EMU_SYMBOL(prefix, name) WC_EMU_OF_PROGRAM(prefix, WC_PROGRAM, name)
#define WC_EMU_EXPORT __attribute__((visibility("default")))

// A kernel, and beside it what the loader looks for: an entry that takes the address of the parameter struct, the
// struct's size and the largest block. The struct is a copy of the caller's that lives as long as the launch.
#define WC_KERNEL(name, Params, threads, min_blocks)                                                           \
    static_assert(__is_trivially_copyable(Params), "the parameter struct of " #name " is not plain data");     \
    static_assert((threads) > 0 && (threads) <= 1024 && (min_blocks) >= 0, "launch bounds of " #name);         \
    static void name(const Params& p);                                                                         \
    extern "C" {                                                                                               \
    WC_EMU_EXPORT extern const uint32_t WC_EMU_SYMBOL(wc_params_, name) = (uint32_t)sizeof(Params);            \
    WC_EMU_EXPORT extern const uint32_t WC_EMU_SYMBOL(wc_threads_, name) = (uint32_t)(threads);                \
    WC_EMU_EXPORT void WC_EMU_SYMBOL(wc_entry_, name)(const void* p) { name(*(const Params*)p); }              \
    }                                                                                                          \
    static void name(const Params& p)

WC_DEVICE char* wc_shared() { return wc_emu_self()->shared; }

#include "emulator_intrinsics.h"
#include "emulator_collectives.h"
#include "emulator_memory.h"
