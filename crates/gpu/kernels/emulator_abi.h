// What kernels and the runtime of the emulated device share: the record of a thread, and the calls between them.
//
// Each CUDA thread is a fiber. Its stack is a power of two long and aligned to its length, and a wc_emu_thread lies
// near the top of it, so a kernel finds its own indices from its stack pointer alone: no thread-local storage, and any
// number of launches on different operating system threads. How near differs from stack to stack, or the records of a
// thousand fibers would share a few sets of the cache.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Length and alignment of a fiber's stack; the lowest page is not accessible.
#define WC_EMU_STACK_SHIFT 18
#define WC_EMU_STACK_BYTES ((uintptr_t)1 << WC_EMU_STACK_SHIFT)
// Room for the record of a thread, and the number of places where it may lie.
#define WC_EMU_RECORD_BYTES ((uintptr_t)576)
#define WC_EMU_RECORD_PLACES ((uintptr_t)32)

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
};

// What kernels read and write of a running launch without a call.
struct wc_emu_launch_head {
    // Counts down at every atomic; at zero wc_emu_point() decides whether to switch fibers or to give up.
    int64_t countdown;
    // Writes that another thread could be waiting for.
    uint64_t changes;
};

// What a kernel reads of its own thread.
struct wc_emu_thread {
    uint3 thread_index, block_index;
    dim3 block_shape, grid_shape;
    char* shared;
    wc_emu_launch_head* launch;
};

// Collectives of a warp.
enum wc_emu_kind : int {
    WC_EMU_SYNCWARP,
    WC_EMU_BALLOT,
    WC_EMU_ANY,
    WC_EMU_ALL,
    WC_EMU_SHFL,
    WC_EMU_SHFL_UP,
    WC_EMU_SHFL_DOWN,
    WC_EMU_SHFL_XOR,
    WC_EMU_MATCH_ANY,
    WC_EMU_ADD,
    WC_EMU_MIN_UNSIGNED,
    WC_EMU_MAX_UNSIGNED,
    WC_EMU_MIN_SIGNED,
    WC_EMU_MAX_SIGNED,
    WC_EMU_AND,
    WC_EMU_OR,
    WC_EMU_XOR,
    WC_EMU_ACTIVEMASK,
};

// Barriers of a block.
enum wc_emu_barrier_kind : int { WC_EMU_BARRIER, WC_EMU_BARRIER_COUNT, WC_EMU_BARRIER_AND, WC_EMU_BARRIER_OR };

// Why a fiber lets others run.
enum wc_emu_yield_kind : int { WC_EMU_YIELD_ACQUIRE, WC_EMU_YIELD_BACKOFF };

extern "C" {
// One lane's part in a collective: waits for all lanes of `mask` and returns the lane's result. `argument` is the lane
// or distance of a shuffle with its width in the upper 16 bits.
uint64_t wc_emu_collective(
    wc_emu_kind kind, unsigned mask, uint64_t value, unsigned argument, const char* file, int line);
int wc_emu_barrier(wc_emu_barrier_kind kind, int predicate, const char* file, int line);
void wc_emu_yield(wc_emu_yield_kind kind, const char* file, int line);
void wc_emu_point(const char* file, int line);
int64_t wc_emu_clock();
void wc_emu_wait();
}

// The record of the thread on whose stack an address lies.
static inline __attribute__((always_inline)) wc_emu_thread* wc_emu_record(uintptr_t address) {
    uintptr_t stack = address >> WC_EMU_STACK_SHIFT;
    uintptr_t place = (stack & (WC_EMU_RECORD_PLACES - 1)) + 1;
    return (wc_emu_thread*)(((stack + 1) << WC_EMU_STACK_SHIFT) - place * WC_EMU_RECORD_BYTES);
}
