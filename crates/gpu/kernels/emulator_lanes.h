// Collectives of a warp and barriers of a block: who waits for whom, what is a misuse, what each lane gets.
//
// A lane that arrives joins the group of its mask. Groups of other masks may wait in the same warp meanwhile, so legal
// work in sub-warps is told from two misuses: lanes of one mask that call different collectives (or the same one at
// different places), and two lanes that wait for each other with different masks. What cannot be seen at arrival ends
// as a deadlock, which the scheduler reports in the words of `describe_waiting`.
#pragma once

#include "emulator_runtime.h"

namespace wc_emu {

inline const char* name_of(wc_emu_kind kind) {
    static const char* const names[] = {
        "__syncwarp",       "__ballot_sync",     "__any_sync",        "__all_sync",        "__shfl_sync",
        "__shfl_up_sync",   "__shfl_down_sync",  "__shfl_xor_sync",   "__match_any_sync",  "__reduce_add_sync",
        "__reduce_min_sync", "__reduce_max_sync", "__reduce_min_sync", "__reduce_max_sync", "__reduce_and_sync",
        "__reduce_or_sync", "__reduce_xor_sync", "__activemask",
    };
    return names[kind];
}

inline const char* name_of(wc_emu_barrier_kind kind) {
    static const char* const names[] = {
        "__syncthreads", "__syncthreads_count", "__syncthreads_and", "__syncthreads_or"};
    return names[kind];
}

inline std::string describe_group(const Group& group) {
    return format("lanes 0x%08x of mask 0x%08x wait in %s at %s", group.arrived, group.mask, name_of(group.kind),
                  group.site.text().c_str());
}

// What the threads of a block wait for, one clause each.
inline std::string describe_waiting(const Block& block) {
    std::string text;
    if (block.barrier.arrived > 0) {
        text += format("; %u of %u threads wait in %s at %s", block.barrier.arrived, block.threads,
                       name_of(block.barrier.kind), block.barrier.site.text().c_str());
    }
    for (size_t w = 0; w < block.warps.size(); w++) {
        for (unsigned g = 0; g < block.warps[w].group_count; g++) {
            text += format("; warp %zu: ", w) + describe_group(block.warps[w].groups[g]);
        }
    }
    return text;
}

// The lane a shuffle reads, or the lane itself where the distance leaves its segment. Segments are `width` lanes.
inline unsigned shuffle_source(wc_emu_kind kind, unsigned lane, unsigned argument) {
    unsigned by = argument & 31u, width = argument >> 16;
    unsigned first = lane & ~(width - 1), last = first + width - 1;
    if (kind == WC_EMU_SHFL) return first | (by & (width - 1));
    if (kind == WC_EMU_SHFL_UP) return lane >= first + by ? lane - by : lane;
    unsigned source = kind == WC_EMU_SHFL_DOWN ? lane + by : lane ^ by;
    return source <= last ? source : lane;
}

inline uint32_t combine(wc_emu_kind kind, uint32_t a, uint32_t b) {
    switch (kind) {
        case WC_EMU_ADD: return a + b;
        case WC_EMU_MIN_UNSIGNED: return a < b ? a : b;
        case WC_EMU_MAX_UNSIGNED: return a > b ? a : b;
        case WC_EMU_MIN_SIGNED: return (int32_t)a < (int32_t)b ? a : b;
        case WC_EMU_MAX_SIGNED: return (int32_t)a > (int32_t)b ? a : b;
        case WC_EMU_AND: return a & b;
        case WC_EMU_XOR: return a ^ b;
        default: return a | b;
    }
}

// Gives every lane of a complete group its result.
inline void resolve(Warp& warp, const Group& group) {
    uint64_t given[32];
    uint32_t votes = 0, reduced = 0;
    bool first = true;
    for (unsigned rest = group.mask; rest != 0; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        given[lane] = warp.lanes[lane].value;
        votes |= (given[lane] != 0 ? 1u : 0u) << lane;
        reduced = first ? (uint32_t)given[lane] : combine(group.kind, reduced, (uint32_t)given[lane]);
        first = false;
    }
    for (unsigned rest = group.mask; rest != 0; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        uint64_t& result = warp.lanes[lane].value;
        switch (group.kind) {
            case WC_EMU_SYNCWARP: result = 0; break;
            case WC_EMU_BALLOT: result = votes; break;
            case WC_EMU_ANY: result = votes != 0; break;
            case WC_EMU_ALL: result = votes == group.mask; break;
            case WC_EMU_SHFL:
            case WC_EMU_SHFL_UP:
            case WC_EMU_SHFL_DOWN:
            case WC_EMU_SHFL_XOR:
                result = given[shuffle_source(group.kind, lane, warp.lanes[lane].argument)];
                break;
            case WC_EMU_MATCH_ANY: {
                uint32_t equal = 0;
                for (unsigned others = group.mask; others != 0; others &= others - 1) {
                    unsigned other = (unsigned)__builtin_ctz(others);
                    equal |= (given[other] == given[lane] ? 1u : 0u) << other;
                }
                result = equal;
                break;
            }
            default: result = reduced; break;
        }
    }
}

// Fails the launch if the calling lane cannot take part.
inline void check_arrival(Thread* thread, const Group& own) {
    Warp& warp = *thread->warp;
    unsigned bit = 1u << thread->lane;
    auto complain = [&](const std::string& what) {
        std::string call = format("%s with mask 0x%08x at ", name_of(own.kind), own.mask) + own.site.text();
        fail(thread, call + ": " + what);
    };
    if ((own.mask & bit) == 0) complain("the calling lane is not in its mask");
    if ((own.mask & ~warp.exists) != 0) {
        complain(format("lanes 0x%08x of the mask do not exist in this block", own.mask & ~warp.exists));
    }
    if ((own.mask & warp.exited) != 0) complain(format("lanes 0x%08x of the mask have exited", own.mask & warp.exited));
    for (unsigned g = 0; g < warp.group_count; g++) {
        const Group& other = warp.groups[g];
        if (other.mask == own.mask) {
            if (other.kind != own.kind || !(other.site == own.site)) {
                complain("mismatched collectives: " + describe_group(other));
            }
        } else if ((other.mask & bit) != 0 && (own.mask & other.arrived) != 0) {
            complain("mismatched masks, each waits for the other: " + describe_group(other));
        }
    }
    if (own.kind >= WC_EMU_SHFL && own.kind <= WC_EMU_SHFL_XOR) {
        unsigned argument = warp.lanes[thread->lane].argument, width = argument >> 16;
        if (width == 0 || width > 32 || (width & (width - 1)) != 0) complain(format("its width is %u", width));
        unsigned source = shuffle_source(own.kind, thread->lane, argument);
        if ((own.mask >> source & 1u) == 0) complain(format("it reads lane %u, which is not in the mask", source));
    }
}

// One lane's part in a collective.
inline uint64_t join(Thread* thread, wc_emu_kind kind, unsigned mask, uint64_t value, unsigned argument, Site site) {
    Warp& warp = *thread->warp;
    Lane& lane = warp.lanes[thread->lane];
    unsigned bit = 1u << thread->lane;
    lane.value = value;
    lane.argument = argument;
    lane.site = site;
    if (kind == WC_EMU_ACTIVEMASK) {
        warp.asking |= bit;
        warp.ready &= ~bit;
        leave(thread);
        return lane.value;
    }
    check_arrival(thread, Group{kind, mask, 0, site});
    unsigned g = 0;
    while (g < warp.group_count && warp.groups[g].mask != mask) g++;
    if (g == warp.group_count) warp.groups[warp.group_count++] = Group{kind, mask, 0, site};
    Group& group = warp.groups[g];
    group.arrived |= bit;
    warp.ready &= ~bit;
    if (group.arrived == mask) {
        resolve(warp, group);
        thread->owner->meetings++;
        warp.ready |= mask;
        warp.groups[g] = warp.groups[--warp.group_count];
    }
    leave(thread);
    return lane.value;
}

// Answers __activemask once no other lane of the warp can run: lanes that ask at one place are active together.
inline void answer_active_masks(Warp& warp) {
    Site site = warp.lanes[__builtin_ctz(warp.asking)].site;
    unsigned together = 0;
    for (unsigned rest = warp.asking; rest != 0; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        if (warp.lanes[lane].site == site) together |= 1u << lane;
    }
    for (unsigned rest = together; rest != 0; rest &= rest - 1) warp.lanes[__builtin_ctz(rest)].value = together;
    warp.asking &= ~together;
    warp.ready |= together;
}

// One thread's part in a barrier of its block.
inline int join_barrier(Thread* thread, wc_emu_barrier_kind kind, bool predicate, Site site) {
    Block& block = *thread->block;
    Barrier& barrier = block.barrier;
    auto complain = [&](const std::string& what) {
        fail(thread, format("%s at %s: ", name_of(kind), site.text().c_str()) + what);
    };
    if (block.exited > 0) {
        complain(format("%u of the block's %u threads have exited", block.exited, block.threads));
    }
    if (barrier.arrived == 0) {
        barrier = Barrier{0, kind, site, 0};
    } else if (barrier.kind != kind || !(barrier.site == site)) {
        complain(format("mismatched barriers: %u threads wait in %s at %s", barrier.arrived, name_of(barrier.kind),
                        barrier.site.text().c_str()));
    }
    barrier.arrived++;
    barrier.count += predicate ? 1 : 0;
    thread->warp->ready &= ~(1u << thread->lane);
    if (barrier.arrived == block.threads) {
        unsigned result = barrier.count;
        if (kind == WC_EMU_BARRIER_AND) result = barrier.count == block.threads;
        if (kind == WC_EMU_BARRIER_OR) result = barrier.count > 0;
        for (Warp& warp : block.warps) {
            warp.ready = warp.exists;
            for (Lane& lane : warp.lanes) lane.value = result;
        }
        barrier.arrived = 0;
        thread->owner->meetings++;
    }
    leave(thread);
    return (int)thread->warp->lanes[thread->lane].value;
}

// A thread has returned from the kernel; whoever waits for it waits in vain.
inline void note_exit(Thread* thread) {
    Block& block = *thread->block;
    Warp& warp = *thread->warp;
    unsigned bit = 1u << thread->lane;
    for (unsigned g = 0; g < warp.group_count; g++) {
        if (warp.groups[g].mask & bit) fail(thread, "the lane exits while " + describe_group(warp.groups[g]));
    }
    if (block.barrier.arrived > 0) fail(thread, "the thread exits" + describe_waiting(block));
    warp.ready &= ~bit;
    warp.exited |= bit;
    block.exited++;
    thread->launch->changes++;
}

}  // namespace wc_emu
