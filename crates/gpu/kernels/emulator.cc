// The emulated device's runtime: the scheduler that runs a grid of fibers on the calling thread.
//
// A few blocks are resident at a time; each is visited in turn, and in it each warp, whose lanes run until all of them
// wait, have let others run or are done. When a block is done the next of the grid takes its place. Lanes, warps and
// blocks go forward, in reverse or in an order drawn from a seed. Nothing here is preempted: a fiber runs until a
// collective, an acquire load, a backoff or (in seeded order, now and then) an atomic.

#include "emulator_runtime.h"

#include "emulator_checks.h"
#include "emulator_fiber.h"
#include "emulator_lanes.h"
#include "emulator_switch.h"

#include <stdlib.h>
#include <time.h>

#include <algorithm>

namespace wc_emu {
namespace {

// Bytes before and after a block's shared memory that nothing may write, and what they and fresh memory hold.
constexpr size_t GUARD_BYTES = 1024;
constexpr unsigned char GUARD = 0x5a, POISON = 0xa5;
// Atomics between two looks at the clock, and rounds over all blocks between two looks.
constexpr int64_t ATOMICS_PER_LOOK = 1 << 16;
constexpr uint64_t ROUNDS_PER_LOOK = 256;
// Alignment of parameter structs.
constexpr size_t PARAMS_ALIGNMENT_BITS = 128;
// In seeded order every eighth atomic, on average, lets another lane run.
constexpr uint64_t SEEDED_COUNTDOWN_MAX = 15;
// A warp is left after so many sweeps over its lanes even if it could go on.
constexpr unsigned SWEEPS_PER_VISIT = 64;
// Threads that only back off for so long and so often, while nothing changes, wait for what will not come. Where lanes
// still meet in collectives, some thread may be at work for long without a write that others wait for.
constexpr int64_t IDLE_NS_MAX = 500'000'000, IDLE_NS_MAX_MEETING = 10'000'000'000;
constexpr uint64_t IDLE_BACKOFFS_MIN = 10'000;

StackPool& stack_pool() {
    static StackPool* pool = new StackPool;
    return *pool;
}

int64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

Thread* self() { return static_cast<Thread*>(wc_emu_record((uintptr_t)__builtin_frame_address(0))); }

// Looks at the clock: has the launch run for too long, does it still get anywhere?
void watch(Launch& launch, Site site) {
    int64_t now = now_ns();
    if (launch.changes != launch.changes_seen) {
        launch.changes_seen = launch.changes;
        launch.changed_ns = now;
        launch.backoffs = launch.acquires = launch.meetings = 0;
    }
    int64_t idle_ns_max = launch.meetings > 0 ? IDLE_NS_MAX_MEETING : IDLE_NS_MAX;
    if (now - launch.started_ns > (int64_t)launch.request->time_limit_ms * 1'000'000) {
        give_up(launch, format("not done after %llu ms, last seen at %s",
                               (unsigned long long)launch.request->time_limit_ms, site.text().c_str()));
    } else if (now - launch.changed_ns > idle_ns_max && launch.backoffs > IDLE_BACKOFFS_MIN &&
               launch.backoffs * 8 > launch.acquires) {
        give_up(launch, "livelock: threads spin at " + launch.spin.text() + " and nothing changes any more");
    }
}

void main_of_fiber() {
    Thread* thread = self();
    finish_entry(thread);
    const wc_emu_request& request = *thread->owner->request;
    if (request.hidden == nullptr) {
        request.entry(request.params);
    } else {
        thread->hidden = __builtin_alloca_with_align(request.params_bytes, PARAMS_ALIGNMENT_BITS);
        memcpy(thread->hidden, request.hidden, request.params_bytes);
        request.entry(thread->hidden);
    }
    note_exit(thread);
    leave_for_good(thread);
}

// Gives a lane a stack and its record.
bool start_lane(Launch& launch, Block& block, unsigned warp_index, unsigned lane) {
    if (launch.stacks.empty() && !stack_pool().take(launch.stacks, 32)) {
        give_up(launch, "no memory for the stacks of its threads");
        return false;
    }
    Lane& state = block.warps[warp_index].lanes[lane];
    state.stack = launch.stacks.back();
    launch.stacks.pop_back();
    forget_stack(state.stack);
    Thread* thread = static_cast<Thread*>(wc_emu_record((uintptr_t)state.stack));
    const wc_emu_request& request = *launch.request;
    thread->thread_index = {warp_index * 32 + lane, 0, 0};
    thread->block_index = {block.index, 0, 0};
    thread->block_shape = {request.block, 1, 1};
    thread->grid_shape = {request.grid, 1, 1};
    thread->shared = block.shared;
    thread->launch = &launch;
    thread->owner = &launch;
    thread->block = &block;
    thread->warp = &block.warps[warp_index];
    thread->lane = lane;
    thread->warp_index = warp_index;
    thread->fake_stack = nullptr;
    thread->hidden = nullptr;
    state.context = start_context((uintptr_t)thread, main_of_fiber);
    return true;
}

void start_block(Launch& launch, Block& block, unsigned index) {
    const wc_emu_request& request = *launch.request;
    block.index = index;
    block.threads = request.block;
    block.exited = 0;
    block.barrier.arrived = 0;
    unsigned warps = (request.block + 31) / 32;
    block.warps.resize(warps);
    block.warp_order.resize(warps);
    for (unsigned w = 0; w < warps; w++) {
        Warp& warp = block.warps[w];
        unsigned lanes = std::min(32u, request.block - w * 32);
        warp.exists = warp.ready = lanes == 32 ? ~0u : (1u << lanes) - 1;
        warp.exited = warp.yielded = warp.asking = warp.group_count = 0;
        block.warp_order[w] = request.order == REVERSED ? warps - 1 - w : w;
    }
    if (request.order == SEEDED) {
        for (unsigned w = warps; w > 1; w--) {
            std::swap(block.warp_order[w - 1], block.warp_order[launch.next_random() % w]);
        }
    }
    char* end = block.shared + request.shared_bytes;
    permit(block.shared - GUARD_BYTES, request.shared_bytes + 2 * GUARD_BYTES);
    memset(block.shared - GUARD_BYTES, GUARD, GUARD_BYTES);
    memset(block.shared, POISON, request.shared_bytes);
    memset(end, GUARD, GUARD_BYTES);
    forbid(block.shared - GUARD_BYTES, GUARD_BYTES);
    forbid(end, GUARD_BYTES);
}

// Looks at the guards of a block that is done.
void check_shared(Launch& launch, const Block& block) {
    int64_t bytes = launch.request->shared_bytes;
    permit(block.shared - GUARD_BYTES, (size_t)bytes + 2 * GUARD_BYTES);
    for (int64_t i = -(int64_t)GUARD_BYTES; i < bytes + (int64_t)GUARD_BYTES; i++) {
        if (i == 0) i = bytes;
        if ((unsigned char)block.shared[i] == GUARD) continue;
        give_up(launch, format("block %u wrote at byte %lld of its %lld bytes of shared memory", block.index,
                               (long long)i, (long long)bytes));
        return;
    }
}

void resume(Launch& launch, Block& block, unsigned warp_index, unsigned lane_index) {
    Warp& warp = block.warps[warp_index];
    Lane& lane = warp.lanes[lane_index];
    if (lane.stack == nullptr && !start_lane(launch, block, warp_index, lane_index)) return;
    launch.entered = &lane;
    enter(launch, lane);
    launch.entered = nullptr;
    if (warp.exited >> lane_index & 1u) {
        launch.stacks.push_back(lane.stack);
        lane.stack = nullptr;
    }
}

// The lanes of a set in the order in which they run, and their number. Seeded: an affine map, drawn anew each time.
unsigned order_of_lanes(Launch& launch, unsigned lanes, unsigned* order) {
    unsigned factor = 1, offset = 0, count = 0;
    if (launch.request->order == REVERSED) factor = 31, offset = 31;
    if (launch.request->order == SEEDED) {
        uint64_t random = launch.next_random();
        factor = (random & 30u) + 1;
        offset = (unsigned)(random >> 8) & 31u;
    }
    for (unsigned i = 0; i < 32; i++) {
        unsigned lane = (i * factor + offset) & 31u;
        if (lanes >> lane & 1u) order[count++] = lane;
    }
    return count;
}

// Runs the lanes of a warp until none can go on now. False if none could.
bool visit_warp(Launch& launch, Block& block, unsigned warp_index) {
    Warp& warp = block.warps[warp_index];
    bool ran = false;
    warp.yielded = 0;
    for (unsigned sweep = 0; sweep < SWEEPS_PER_VISIT; sweep++) {
        unsigned todo = warp.ready & ~warp.yielded;
        if (todo == 0) {
            if (warp.asking == 0) break;
            answer_active_masks(warp);
            continue;
        }
        ran = true;
        unsigned order[32], count = order_of_lanes(launch, todo, order);
        for (unsigned i = 0; i < count; i++) {
            // Stacks lie far apart: without this, each switch waits for memory.
            if (i + 2 < count) __builtin_prefetch(warp.lanes[order[i + 2]].context);
            resume(launch, block, warp_index, order[i]);
            if (launch.failed) return true;
        }
    }
    return ran;
}

// The blocks of the grid in the order in which they start.
std::vector<unsigned> order_of_blocks(Launch& launch) {
    std::vector<unsigned> order(launch.request->grid);
    for (unsigned i = 0; i < order.size(); i++) order[i] = i;
    if (launch.request->order == REVERSED) std::reverse(order.begin(), order.end());
    if (launch.request->order == SEEDED) {
        for (size_t i = order.size(); i > 1; i--) std::swap(order[i - 1], order[launch.next_random() % i]);
    }
    return order;
}

void run_grid(Launch& launch) {
    std::vector<unsigned> order = order_of_blocks(launch);
    size_t next = 0;
    for (Block& block : launch.blocks) start_block(launch, block, order[next++]);
    size_t active = launch.blocks.size();
    for (uint64_t round = 0; active > 0; round++) {
        bool ran = false;
        for (Block& block : launch.blocks) {
            if (block.exited == block.threads) continue;
            for (unsigned warp : block.warp_order) {
                ran |= visit_warp(launch, block, warp);
                if (launch.failed) return;
            }
            if (block.exited < block.threads) continue;
            check_shared(launch, block);
            if (launch.failed) return;
            if (next < order.size()) {
                start_block(launch, block, order[next++]);
                ran = true;
            } else {
                active--;
            }
        }
        if (!ran && active > 0) {
            std::string waiting;
            for (Block& block : launch.blocks) {
                std::string text = describe_waiting(block);
                if (!text.empty() && waiting.empty()) waiting = format("; block %u", block.index) + text;
            }
            give_up(launch, "deadlock: no thread can go on" + waiting);
            return;
        }
        if (round % ROUNDS_PER_LOOK == ROUNDS_PER_LOOK - 1) watch(launch, launch.spin);
        if (launch.failed) return;
    }
}

}  // namespace

void fail(Thread* thread, const std::string& reason) {
    give_up(*thread->owner, place_of(thread) + reason);
    leave(thread);
    __builtin_unreachable();
}

}  // namespace wc_emu

using namespace wc_emu;

#pragma GCC visibility push(default)
extern "C" {

uint64_t wc_emu_collective(
    wc_emu_kind kind, unsigned mask, uint64_t value, unsigned argument, const char* file, int line) {
    return join(self(), kind, mask, value, argument, Site{file, line});
}

int wc_emu_barrier(wc_emu_barrier_kind kind, int predicate, const char* file, int line) {
    return join_barrier(self(), kind, predicate != 0, Site{file, line});
}

void wc_emu_yield(wc_emu_yield_kind kind, const char* file, int line) {
    Thread* thread = self();
    Launch& launch = *thread->owner;
    launch.spin = Site{file, line};
    (kind == WC_EMU_YIELD_BACKOFF ? launch.backoffs : launch.acquires)++;
    thread->warp->yielded |= 1u << thread->lane;
    leave(thread);
}

void wc_emu_point(const char* file, int line) {
    Thread* thread = self();
    Launch& launch = *thread->owner;
    bool seeded = launch.request->order == SEEDED;
    launch.countdown = seeded ? 1 + (int64_t)(launch.next_random() % SEEDED_COUNTDOWN_MAX) : ATOMICS_PER_LOOK;
    if (!seeded || launch.next_random() % ROUNDS_PER_LOOK == 0) watch(launch, Site{file, line});
    if (seeded || launch.failed) {
        thread->warp->yielded |= 1u << thread->lane;
        leave(thread);
    }
}

int64_t wc_emu_clock() { return now_ns(); }

void wc_emu_wait() {
    Thread* thread = self();
    Launch& launch = *thread->owner;
    launch.waited = true;
    if (thread->hidden == nullptr) return;
    memcpy(thread->hidden, launch.request->params, launch.request->params_bytes);
    thread->hidden = nullptr;
}

int32_t wc_emu_run(const wc_emu_request* request, char* message, size_t message_bytes) {
    install_traps();
    Launch launch;
    launch.request = request;
    launch.random = request->seed * 2 + 0x9e3779b97f4a7c15ull;
    launch.countdown = request->order == SEEDED ? 1 : ATOMICS_PER_LOOK;
    launch.changes = 0;
    launch.started_ns = launch.changed_ns = now_ns();
    launch.blocks.resize(std::min(request->grid, std::max(request->resident_blocks, 1u)));
    size_t slot_bytes = (GUARD_BYTES * 2 + request->shared_bytes + GUARD_BYTES - 1) / GUARD_BYTES * GUARD_BYTES;
    char* shared = (char*)aligned_alloc(GUARD_BYTES, slot_bytes * launch.blocks.size());
    if (shared == nullptr) {
        give_up(launch, "no memory for the shared memory of its blocks");
    } else {
        for (size_t i = 0; i < launch.blocks.size(); i++) {
            launch.blocks[i].shared = shared + i * slot_bytes + GUARD_BYTES;
        }
        running_launch = &launch;
        run_grid(launch);
        running_launch = nullptr;
        if (request->hidden != nullptr && !launch.waited) {
            give_up(launch, "it was launched early and ends without wc_wait_previous(): the next kernel may start "
                            "before those before this one are done");
        }
    }
    for (Block& block : launch.blocks) {
        for (Warp& warp : block.warps) {
            for (Lane& lane : warp.lanes) {
                if (lane.stack != nullptr) launch.stacks.push_back(lane.stack);
            }
        }
    }
    stack_pool().give(launch.stacks);
    free(shared);
    snprintf(message, message_bytes, "%s", launch.failure.c_str());
    return launch.failed ? 1 : 0;
}

}  // extern "C"
#pragma GCC visibility pop
