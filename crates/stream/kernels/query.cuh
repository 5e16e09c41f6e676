// Queries: cells on the popular path by a descent, others along side links.
//
// `on_path` has a thread a query: it answers those whose bounds are single values of the first levels, and clears the
// cells of others. `lists` has a thread an entry, a range of keys that another query asks of its lowest level, or a
// value of its set there: it finds where the side links of these keys lie, and their number. A scan of these numbers
// makes one list of all links. `online` cuts it into pieces of one size, a warp each, whatever lists they belong to: a
// lane goes from a link's node up to the root, past keys that the query bounds, and joins the node's measures. What a
// lane has joined for one query is added to the query's cell when the next one begins; lanes of a warp that end with
// one query are joined first. `match` has a thread a node of one level, for sub-cubes and removals.
// Cells: the number of nodes, then two words a measure: the lower 32 bits and the rest of a sum, each added up in 64
// bits, or the least or largest and nothing. Bytes: 4 a link, 8 a level that is passed, mostly in random order.
// Source: algorithms 3 and 4 of the paper, whose blocks have a query each.

#define WC_WORDS (2 * WC_MEASURES)

struct WcBounds {
    const uint32_t* low;     // by query and dimension of the path
    const uint32_t* high;    // the same; null where all are single values
    const uint64_t* masks;   // levels that have bounds, bit by bit
    const uint64_t* places;  // where a bound's set lies, and in the low half its length; null without sets
    const uint32_t* sets;
    uint64_t dimensions;
};

WC_DEVICE bool wc_holds(const WcBounds& bounds, uint64_t query, uint32_t level, uint32_t key) {
    const uint64_t at = query * bounds.dimensions + level - 1;
    const uint32_t low = bounds.low[at];
    if (bounds.high == nullptr) return key == low;
    if (key < low || key > bounds.high[at]) return false;
    const uint64_t place = bounds.places == nullptr ? 0 : bounds.places[at];
    const uint64_t length = (uint32_t)place, begin = place >> 32;
    if (length == 0) return true;
    const uint64_t found = wc_lower_bound(bounds.sets, begin, begin + length, key);
    return found < begin + length && bounds.sets[found] == key;
}

// Whether the nodes from one of `level` up to the root meet the bounds of the levels in `mask`.
WC_DEVICE bool wc_meets(
    const WcTree& tree, const WcBounds& bounds, uint64_t query, uint32_t mask, uint32_t level, uint64_t node) {
    while (mask != 0) {
        const uint64_t place = tree.starts[level] + node;
        if ((mask >> level & 1) != 0) {
            if (!wc_holds(bounds, query, level, tree.keys[place])) return false;
            mask &= ~(1u << level);
            if (mask == 0) break;
        }
        node = tree.parents[place];
        --level;
    }
    return true;
}

struct QueryParams {
    WcTree tree;
    WcBounds bounds;
    uint64_t queries, entries;
    const uint32_t* entry_queries;
    const uint32_t* entry_low;   // keys of the lowest level
    const uint32_t* entry_high;
    uint32_t* entry_first;       // the first link of an entry
    uint32_t* entry_counts;      // links of an entry, and 0 behind the last
    const uint64_t* offsets;     // their scan
    uint64_t* found;
    uint64_t* cells;
};

WC_DEVICE uint32_t wc_lowest(uint32_t mask) { return mask == 0 ? 0 : 31 - (uint32_t)__clz((int)mask); }

// The node that single values of the first levels lead to, among all nodes; none: all ones.
WC_DEVICE uint64_t wc_on_path(const WcTree& tree, const WcBounds& bounds, uint64_t query, uint32_t mask) {
    const uint32_t lowest = wc_lowest(mask);
    // Bits 1 to `lowest`.
    if (mask != (uint32_t)((2ull << lowest) - 2)) return ~0ull;
    const uint64_t row = query * bounds.dimensions;
    for (uint32_t d = 0; bounds.high != nullptr && d < lowest; ++d) {
        if (bounds.low[row + d] != bounds.high[row + d]) return ~0ull;
    }
    uint64_t place = 0;
    for (uint32_t level = 1; level <= lowest; ++level) {
        const uint64_t first = tree.leftmost[place], end = first + tree.children[place];
        const uint32_t key = bounds.low[row + level - 1];
        const uint32_t* keys = tree.keys + tree.starts[level];
        const uint64_t node = wc_lower_bound(keys, first, end, key);
        if (node == end || keys[node] != key) return ~0ull;
        place = tree.starts[level] + node;
    }
    return place;
}

WC_KERNEL(wc_htree_on_path, QueryParams, 128, 4) {
    for (uint64_t query = wc_first(); query < p.queries; query += wc_stride()) {
        const uint64_t place = wc_on_path(p.tree, p.bounds, query, (uint32_t)p.bounds.masks[query]);
        p.found[query] = place == ~0ull ? 0 : 1;
        for (uint32_t m = 0; m < WC_MEASURES; ++m) {
            uint64_t* cell = p.cells + query * WC_WORDS + 2 * m;
            const int64_t value =
                place == ~0ull ? wc_nothing(WC_OPERATION[m]) : p.tree.measures[m * p.tree.nodes + place];
            cell[0] = WC_OPERATION[m] == 0 ? (uint64_t)value & 0xffffffffull : (uint64_t)value;
            cell[1] = WC_OPERATION[m] == 0 ? (uint64_t)(value >> 32) : 0;
        }
    }
}

WC_KERNEL(wc_htree_lists, QueryParams, 128, 4) {
    const WcTree& tree = p.tree;
    if (wc_first() == 0) p.entry_counts[p.entries] = 0;
    for (uint64_t entry = wc_first(); entry < p.entries; entry += wc_stride()) {
        const uint32_t lowest = wc_lowest((uint32_t)p.bounds.masks[p.entry_queries[entry]]);
        const uint32_t low = p.entry_low[entry], high = p.entry_high[entry];
        const uint64_t last = tree.headers[lowest + 1];
        const uint64_t first = wc_lower_bound(tree.header_keys, tree.headers[lowest], last, low);
        uint64_t end = first;
        if (low <= high) end = high == 0xffffffffu ? last : wc_lower_bound(tree.header_keys, first, last, high + 1);
        uint32_t count = 0, link = 0;
        if (first < end) {
            link = tree.header_first[first];
            count = tree.header_first[end - 1] + tree.header_counts[end - 1] - link;
        }
        p.entry_first[entry] = link;
        p.entry_counts[entry] = count;
    }
}

// Links of a piece: steps of a link a lane.
constexpr uint32_t WC_PIECE = 8 * 32;

// What a lane has joined for a query.
struct Joined {
    uint64_t found;
    uint64_t words[WC_WORDS];

    WC_INLINE void clear() {
        found = 0;
#pragma unroll
        for (uint32_t m = 0; m < WC_MEASURES; ++m) {
            words[2 * m] = (uint64_t)wc_nothing(WC_OPERATION[m]);
            words[2 * m + 1] = 0;
        }
    }

    WC_INLINE void join(uint32_t m, uint64_t low, uint64_t high) {
        if (WC_OPERATION[m] == 0) {
            words[2 * m] += low;
            words[2 * m + 1] += high;
        } else if (WC_OPERATION[m] == 1) {
            if ((int64_t)low < (int64_t)words[2 * m]) words[2 * m] = low;
        } else if ((int64_t)low > (int64_t)words[2 * m]) {
            words[2 * m] = low;
        }
    }

    WC_INLINE void add(const WcTree& tree, uint64_t place) {
        ++found;
#pragma unroll
        for (uint32_t m = 0; m < WC_MEASURES; ++m) {
            const int64_t value = tree.measures[m * tree.nodes + place];
            if (WC_OPERATION[m] == 0) join(m, (uint64_t)value & 0xffffffffull, (uint64_t)(value >> 32));
            else join(m, (uint64_t)value, 0);
        }
    }

    // Adds what was joined to a query's cell, and begins anew.
    WC_INLINE void leave(const QueryParams& p, uint32_t query) {
        if (found == 0) return;
        wc_add(p.found + query, found);
#pragma unroll
        for (uint32_t m = 0; m < WC_MEASURES; ++m) {
            uint64_t* cell = p.cells + (uint64_t)query * WC_WORDS + 2 * m;
            if (WC_OPERATION[m] == 0) {
                wc_add(cell, words[2 * m]);
                wc_add(cell + 1, words[2 * m + 1]);
            } else if (WC_OPERATION[m] == 1) {
                wc_min((int64_t*)cell, (int64_t)words[2 * m]);
            } else {
                wc_max((int64_t*)cell, (int64_t)words[2 * m]);
            }
        }
        clear();
    }

    // Joins what the lanes of a warp have.
    WC_INLINE void join_warp() {
        found = wc_warp_sum(found);
#pragma unroll
        for (uint32_t m = 0; m < WC_MEASURES; ++m) {
            for (int step = 16; step > 0; step >>= 1) {
                const uint64_t low = __shfl_xor_sync(WC_FULL_MASK, words[2 * m], step);
                const uint64_t high = __shfl_xor_sync(WC_FULL_MASK, words[2 * m + 1], step);
                join(m, low, high);
            }
        }
    }
};

// The entry of a link: the last one that begins at it or before.
WC_DEVICE uint64_t wc_entry(const QueryParams& p, uint64_t from, uint64_t link) {
    uint64_t low = from, high = p.entries;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (p.offsets[middle] <= link) low = middle + 1;
        else high = middle;
    }
    return low - 1;
}

WC_KERNEL(wc_htree_online, QueryParams, 256, 4) {
    const uint64_t links = p.offsets[p.entries];
    Joined joined;
    joined.clear();
    for (uint64_t piece = wc_first() / 32; piece * WC_PIECE < links; piece += wc_stride() / 32) {
        uint32_t query = 0, mask = 0, lowest = 0;
        uint64_t entry = 0, begin = 0, end = 0;
        for (uint32_t step = 0; step < WC_PIECE; step += 32) {
            const uint64_t link = piece * WC_PIECE + step + wc_lane();
            if (link >= links) break;
            if (link >= end) {
                entry = wc_entry(p, entry, link);
                begin = p.offsets[entry];
                end = p.offsets[entry + 1];
                const uint32_t next = p.entry_queries[entry];
                if (next != query) joined.leave(p, query);
                query = next;
                mask = (uint32_t)p.bounds.masks[query];
                lowest = wc_lowest(mask);
                // Keys of the lowest level are those of the entry.
                mask &= ~(1u << lowest);
            }
            const uint64_t start = p.tree.starts[lowest];
            const uint32_t node = p.tree.side_links[start + p.entry_first[entry] + (link - begin)];
            if (mask == 0 || wc_meets(p.tree, p.bounds, query, mask, lowest - 1, p.tree.parents[start + node])) {
                joined.add(p.tree, start + node);
            }
        }
        const uint32_t one = __shfl_sync(WC_FULL_MASK, query, 0);
        if (__all_sync(WC_FULL_MASK, query == one || joined.found == 0)) {
            joined.join_warp();
            if (wc_lane() > 0) joined.clear();
            query = one;
        }
        joined.leave(p, query);
    }
}

struct MatchParams {
    WcTree tree;
    WcBounds bounds;  // of one query
    uint64_t level, wanted;
    uint8_t* flags;   // 1 for nodes of the level that meet the bounds, or do not where 0 is wanted
};

WC_KERNEL(wc_htree_match, MatchParams, 256, 4) {
    const uint64_t count = p.tree.starts[p.level + 1] - p.tree.starts[p.level];
    const uint32_t mask = (uint32_t)p.bounds.masks[0];
    for (uint64_t node = wc_first(); node < count; node += wc_stride()) {
        const bool meets = wc_meets(p.tree, p.bounds, 0, mask, (uint32_t)p.level, node);
        p.flags[node] = meets == (p.wanted != 0) ? 1 : 0;
    }
}
