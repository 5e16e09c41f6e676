// What a launch on the emulated device consists of: blocks, warps, lanes; and the calls by which Rust starts one.
#pragma once

#include "emulator_abi.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <string>
#include <vector>

extern "C" {
// Mirrors `Request` of src/emulated/runtime.rs.
struct wc_emu_request {
    void (*entry)(const void* params);
    const void* params;
    const void* hidden;  // for a kernel launched early: the struct without its addresses, until a thread waits
    const char* kernel;
    uint64_t seed;
    uint64_t time_limit_ms;
    uint32_t grid, block, shared_bytes;
    uint32_t order;
    uint32_t resident_blocks;
    uint32_t params_bytes;
};
// Runs a kernel to its end. Zero for success; otherwise one and the reason in `message`, which ends with a zero byte.
int32_t wc_emu_run(const wc_emu_request* request, char* message, size_t message_bytes);
}

namespace wc_emu {

enum Order : uint32_t { FORWARD, REVERSED, SEEDED };

// A place in kernel source.
struct Site {
    const char* file;
    int line;
    bool operator==(const Site& other) const {
        return line == other.line && (file == other.file || strcmp(file, other.file) == 0);
    }
    std::string text() const { return std::string(file ? file : "?") + ":" + std::to_string(line); }
};

struct Lane {
    void* context = nullptr;
    char* stack = nullptr;
    uint64_t value = 0;   // what it gives to a collective, then what it gets
    unsigned argument = 0;
    Site site{nullptr, 0};
};

// Lanes that wait in one collective.
struct Group {
    wc_emu_kind kind;
    unsigned mask, arrived;
    Site site;
};

struct Warp {
    unsigned exists = 0;   // lanes the block has
    unsigned exited = 0;   // lanes that have returned
    unsigned ready = 0;    // lanes that can run
    unsigned yielded = 0;  // of them, those that let others run first
    unsigned asking = 0;   // lanes in __activemask
    unsigned group_count = 0;
    Group groups[32];
    Lane lanes[32];
};

// Threads that wait at a barrier of the block.
struct Barrier {
    unsigned arrived = 0;
    wc_emu_barrier_kind kind = WC_EMU_BARRIER;
    Site site{nullptr, 0};
    unsigned count = 0;
};

struct Block {
    unsigned index = 0;
    unsigned threads = 0, exited = 0;
    char* shared = nullptr;  // between two guards
    Barrier barrier;
    std::vector<unsigned> warp_order;
    std::vector<Warp> warps;
};

struct Launch : wc_emu_launch_head {
    const wc_emu_request* request;
    std::vector<Block> blocks;
    std::vector<char*> stacks;
    void* scheduler = nullptr;  // context of the operating system thread, and its stack
    const void* scheduler_stack = nullptr;
    size_t scheduler_stack_bytes = 0;
    uint64_t random;
    Lane* entered = nullptr;  // the lane that runs, if one does
    bool waited = false;      // whether a thread of a kernel launched early has waited for the kernels before
    bool failed = false;
    std::string failure;
    // Signs of life since the last change, see `watch`.
    uint64_t changes_seen = 0, backoffs = 0, acquires = 0, meetings = 0;
    int64_t started_ns = 0, changed_ns = 0;
    Site spin{nullptr, 0};

    uint64_t next_random() {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        return random;
    }
};

// A thread's record, found from its stack; begins with what kernels see.
struct Thread : wc_emu_thread {
    Launch* owner;
    Block* block;
    Warp* warp;
    unsigned lane, warp_index;
    void* fake_stack;
    void* hidden;  // its own parameter struct, as long as the thread has to wait for the kernels before
};
static_assert(sizeof(Thread) <= WC_EMU_RECORD_BYTES, "the record of a thread has its room");

inline std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));
inline std::string format(const char* pattern, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, pattern);
    vsnprintf(text, sizeof text, pattern, arguments);
    va_end(arguments);
    return text;
}

// Ends the launch with a reason; of the calling fiber nothing runs any more.
[[noreturn]] void fail(Thread* thread, const std::string& reason);
// Lets the scheduler go on; returns when the fiber is resumed.
void leave(Thread* thread);

}  // namespace wc_emu
