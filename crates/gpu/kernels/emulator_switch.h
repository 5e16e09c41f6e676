// From the scheduler to a fiber and back, with what the address sanitizer wants to know of it.
#pragma once

#include "emulator_fiber.h"
#include "emulator_runtime.h"

namespace wc_emu {

#if defined(__SANITIZE_ADDRESS__)

// A stack that was dropped in mid-flight keeps marks of frames that are gone.
inline void forget_stack(char* stack) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    __asan_unpoison_memory_region(stack + page, WC_EMU_STACK_BYTES - page);
}

// Guards around shared memory, which only the runtime may touch.
inline void forbid(const char* start, size_t bytes) { __asan_poison_memory_region(start, bytes); }
inline void permit(const char* start, size_t bytes) { __asan_unpoison_memory_region(start, bytes); }

inline void enter(Launch& launch, Lane& lane) {
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, lane.stack, WC_EMU_STACK_BYTES);
    wc_emu_switch(&launch.scheduler, lane.context);
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
}

inline void finish_entry(Thread* thread) {
    __sanitizer_finish_switch_fiber(nullptr, &thread->owner->scheduler_stack, &thread->owner->scheduler_stack_bytes);
}

inline void leave_with(Thread* thread, void** fake) {
    Launch& launch = *thread->owner;
    __sanitizer_start_switch_fiber(fake, launch.scheduler_stack, launch.scheduler_stack_bytes);
    wc_emu_switch(&thread->warp->lanes[thread->lane].context, launch.scheduler);
}

void leave(Thread* thread) {
    leave_with(thread, &thread->fake_stack);
    __sanitizer_finish_switch_fiber(
        thread->fake_stack, &thread->owner->scheduler_stack, &thread->owner->scheduler_stack_bytes);
}

[[noreturn]] inline void leave_for_good(Thread* thread) {
    leave_with(thread, nullptr);
    __builtin_unreachable();
}

#else

inline void forget_stack(char*) {}

inline void forbid(const char*, size_t) {}
inline void permit(const char*, size_t) {}

inline void enter(Launch& launch, Lane& lane) { wc_emu_switch(&launch.scheduler, lane.context); }

inline void finish_entry(Thread*) {}

void leave(Thread* thread) {
    wc_emu_switch(&thread->warp->lanes[thread->lane].context, thread->owner->scheduler);
}

[[noreturn]] inline void leave_for_good(Thread* thread) {
    leave(thread);
    __builtin_unreachable();
}

#endif

}  // namespace wc_emu
