// Defects that the compiler's checks and the processor's traps find in a running kernel, turned into launch failures.
//
// Kernels are compiled with checks for null and misaligned pointers, array bounds, shift widths, division by zero and
// signed arithmetic that overflows.
// They call the handlers below, whose names and arguments are those of the compiler's own undefined-behaviour library;
// that library is not linked. What the checks miss arrives as a signal: the handler lets the scheduler go on where
// the fiber stood.
#pragma once

#include "emulator_fiber.h"
#include "emulator_runtime.h"

#include <signal.h>
#include <ucontext.h>

namespace wc_emu {

// The launch whose fibers this operating system thread runs.
inline thread_local Launch* running_launch = nullptr;

inline std::string place_of(const Thread* thread) {
    return format("block %u, warp %u, lane %u: ", thread->block->index, thread->warp_index, thread->lane);
}

inline void give_up(Launch& launch, const std::string& reason) {
    if (launch.failed) return;
    launch.failed = true;
    launch.failure = format("kernel '%s': ", launch.request->kernel) + reason;
}

#if !defined(__SANITIZE_ADDRESS__)

constexpr int TRAPS[] = {SIGSEGV, SIGBUS, SIGFPE};
inline struct sigaction earlier_actions[NSIG];

// Ends the launch if the signal comes from one of its fibers; otherwise the earlier action gets its turn.
inline void on_trap(int signal, siginfo_t* info, void* opaque) {
    ucontext_t* context = (ucontext_t*)opaque;
    Launch* launch = running_launch;
#if defined(__x86_64__)
    uintptr_t stack_pointer = (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
#else
    uintptr_t stack_pointer = (uintptr_t)context->uc_mcontext.sp;
#endif
    if (launch == nullptr || launch->entered == nullptr ||
        (uintptr_t)launch->entered->stack >> WC_EMU_STACK_SHIFT != stack_pointer >> WC_EMU_STACK_SHIFT) {
        sigaction(signal, &earlier_actions[signal], nullptr);
        return;
    }
    const Thread* thread = static_cast<const Thread*>(wc_emu_record(stack_pointer));
    uintptr_t address = (uintptr_t)info->si_addr;
    std::string reason = format("access to address 0x%llx, which is not mapped", (unsigned long long)address);
    if (thread->hidden != nullptr) reason = "access to memory before wc_wait_previous(), in a kernel launched early";
    if (signal == SIGFPE) reason = "integer division that overflows";
    if (address >> WC_EMU_STACK_SHIFT == stack_pointer >> WC_EMU_STACK_SHIFT) reason = "stack overflow";
    give_up(*launch, place_of(thread) + reason);
#if defined(__x86_64__)
    context->uc_mcontext.gregs[REG_RSP] = (greg_t)(uintptr_t)launch->scheduler;
    context->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)&wc_emu_resume;
#else
    context->uc_mcontext.sp = (uintptr_t)launch->scheduler;
    context->uc_mcontext.pc = (uintptr_t)&wc_emu_resume;
#endif
}

inline void install_traps() {
    static const bool installed = [] {
        struct sigaction action = {};
        action.sa_sigaction = on_trap;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigemptyset(&action.sa_mask);
        for (int signal : TRAPS) sigaction(signal, &action, &earlier_actions[signal]);
        return true;
    }();
    (void)installed;
}

#else

// The address sanitizer reports traps itself, and better.
inline void install_traps() {}

#endif

// Descriptions that the compiler lays down beside a check.
struct CheckPlace {
    const char* file;
    uint32_t line, column;
};
struct CheckedType {
    uint16_t kind, info;
    char name[1];
};
struct PointerCheck {
    CheckPlace place;
    const CheckedType* type;
    uint8_t log_alignment, access;
};
struct OperandCheck {
    CheckPlace place;
    const CheckedType* left;
    const CheckedType* right;
};
struct ArithmeticCheck {
    CheckPlace place;
    const CheckedType* type;
};

// A signed operand. Types of up to 64 bits are passed by value, others by address.
inline __int128 operand(const CheckedType* type, uintptr_t value) {
    unsigned bits = 1u << (type->info >> 1);
    if (bits > 64) return *(const __int128*)value;
    return (int64_t)((uint64_t)value << (64 - bits)) >> (64 - bits);
}

inline std::string operand_text(const CheckedType* type, uintptr_t value) {
    __int128 number = operand(type, value);
    return number == (int64_t)number ? format("%lld", (long long)number) : "a value of more than 64 bits";
}

inline void fail_check(const CheckPlace& place, const std::string& what) {
    Thread* thread = static_cast<Thread*>(wc_emu_record((uintptr_t)__builtin_frame_address(0)));
    fail(thread, what + format(" at %s:%u", place.file ? place.file : "?", place.line));
}

}  // namespace wc_emu

#pragma GCC visibility push(default)
extern "C" {

void __ubsan_handle_type_mismatch_v1(wc_emu::PointerCheck* check, uintptr_t address) {
    std::string what = address == 0
        ? wc_emu::format("null pointer to %s", check->type->name)
        : wc_emu::format("misaligned access to %s: address 0x%llx is no multiple of %u", check->type->name,
                         (unsigned long long)address, 1u << check->log_alignment);
    wc_emu::fail_check(check->place, what);
}

void __ubsan_handle_out_of_bounds(wc_emu::OperandCheck* check, uintptr_t index) {
    wc_emu::fail_check(check->place,
                       wc_emu::format("index %lld is outside of %s", (long long)index, check->left->name));
}

void __ubsan_handle_shift_out_of_bounds(wc_emu::OperandCheck* check, uintptr_t, uintptr_t by) {
    wc_emu::fail_check(check->place, wc_emu::format("shift of %s by %lld", check->left->name, (long long)by));
}

void __ubsan_handle_divrem_overflow(wc_emu::ArithmeticCheck* check, uintptr_t left, uintptr_t right) {
    const char* name = check->type->name;
    bool overflows = check->type->info & 1 && wc_emu::operand(check->type, right) == -1;
    std::string by_zero = wc_emu::format("division of %s by zero", name);
    std::string past_end = wc_emu::operand_text(check->type, left) + wc_emu::format(" / -1 overflows %s", name);
    wc_emu::fail_check(check->place, overflows ? past_end : by_zero);
}

#define WC_EMU_OVERFLOW(which, sign)                                                                              \
    void __ubsan_handle_##which##_overflow(wc_emu::ArithmeticCheck* check, uintptr_t left, uintptr_t right) {     \
        std::string what = wc_emu::operand_text(check->type, left) + sign;                                        \
        what += wc_emu::operand_text(check->type, right);                                                         \
        wc_emu::fail_check(check->place, what + wc_emu::format(" overflows %s", check->type->name));              \
    }
WC_EMU_OVERFLOW(add, " + ")
WC_EMU_OVERFLOW(sub, " - ")
WC_EMU_OVERFLOW(mul, " * ")
#undef WC_EMU_OVERFLOW

void __ubsan_handle_negate_overflow(wc_emu::ArithmeticCheck* check, uintptr_t value) {
    std::string what = "-(" + wc_emu::operand_text(check->type, value) + ")";
    wc_emu::fail_check(check->place, what + wc_emu::format(" overflows %s", check->type->name));
}

}  // extern "C"
#pragma GCC visibility pop
