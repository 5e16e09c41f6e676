// Fibers: stacks from a pool, and the switch from one to another.
//
// A stack is mapped once and used for the life of the process. The switch saves what the calling convention asks a
// function to preserve, and nothing else; floating-point modes are the same in all fibers.
#pragma once

#include "emulator_abi.h"

#include <sys/mman.h>
#include <unistd.h>

#include <mutex>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace wc_emu {

// Stacks mapped in one go.
constexpr size_t STACKS_PER_SLAB = 64;

// Stacks of all launches of the process; the last one given back is the first to be taken, for its pages are warm.
class StackPool {
public:
    // Moves up to `count` stacks to `into`; each is named by its lowest address. False if there is no memory.
    bool take(std::vector<char*>& into, size_t count) {
        std::lock_guard<std::mutex> lock(mutex_);
        if (free_.empty() && !map_slab()) return false;
        size_t moved = count < free_.size() ? count : free_.size();
        into.insert(into.end(), free_.end() - moved, free_.end());
        free_.resize(free_.size() - moved);
        return true;
    }

    void give(std::vector<char*>& from) {
        std::lock_guard<std::mutex> lock(mutex_);
        free_.insert(free_.end(), from.begin(), from.end());
        from.clear();
    }

private:
    bool map_slab() {
        size_t bytes = (STACKS_PER_SLAB + 1) * WC_EMU_STACK_BYTES;
        void* slab = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (slab == MAP_FAILED) return false;
        uintptr_t first = ((uintptr_t)slab + WC_EMU_STACK_BYTES - 1) & ~(WC_EMU_STACK_BYTES - 1);
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        for (size_t i = STACKS_PER_SLAB; i-- > 0;) {
            char* stack = (char*)(first + i * WC_EMU_STACK_BYTES);
            // A kernel that runs out of stack faults here instead of writing into its neighbour's.
            if (mprotect(stack, page, PROT_NONE) != 0) return !free_.empty();
            free_.push_back(stack);
        }
        return true;
    }

    std::mutex mutex_;
    std::vector<char*> free_;
};

// Saves the running context below the current stack pointer, writes that to *save and goes on with `next`.
extern "C" void wc_emu_switch(void** save, void* next);
// Its second half: goes on with the context that the stack pointer points to. For signal handlers, which set both.
extern "C" char wc_emu_resume;

#if defined(__x86_64__)
// It ends in a jump and not in a return, which the processor would predict to go back to the caller.
asm(R"(
    .text
    .p2align 4
    .hidden wc_emu_switch
    .globl wc_emu_switch
    .type wc_emu_switch, @function
wc_emu_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    .hidden wc_emu_resume
    .globl wc_emu_resume
wc_emu_resume:
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    popq %rcx
    jmpq *%rcx
    .size wc_emu_switch, . - wc_emu_switch
)");

// Lays out a context that starts `main` with `top` as the end of its stack.
inline void* start_context(uintptr_t top, void (*main)()) {
    void** frame = (void**)(top & ~(uintptr_t)15);
    *--frame = nullptr;
    *--frame = (void*)main;
    for (int i = 0; i < 6; i++) *--frame = nullptr;
    return frame;
}
#elif defined(__aarch64__)
asm(R"(
    .text
    .p2align 4
    .hidden wc_emu_switch
    .globl wc_emu_switch
    .type wc_emu_switch, %function
wc_emu_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    .hidden wc_emu_resume
    .globl wc_emu_resume
wc_emu_resume:
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
    .size wc_emu_switch, . - wc_emu_switch
)");

inline void* start_context(uintptr_t top, void (*main)()) {
    void** frame = (void**)((top & ~(uintptr_t)15) - 160);
    for (int i = 0; i < 20; i++) frame[i] = nullptr;
    frame[11] = (void*)main;
    return frame;
}
#else
#error "the emulated device runs on x86-64 and on 64-bit ARM"
#endif

}  // namespace wc_emu
