// Strings compared with constants: LIKE, lists, order. `text_match.rs` draws the table of a test and has the same in
// plain Rust.
//
// A thread walks its string by words of 64 bits, aligned whatever the string's first byte: threads of neighbouring rows
// read neighbouring bytes, and each word is loaded once. A piece of a pattern is searched by its first four bytes,
// eight places a turn without a branch, and compared whole where those are found. Where a pattern has a piece that may
// lie anywhere, a warp first searches the bytes of 32 rows as one run, and threads walk the strings that have it alone.
// Bytes moved: those of the strings, and four of offsets a row. Operations: about 4 a byte. The floor is the bytes over
// the device's bandwidth: 0.19 ms for 15 million strings of 49 bytes at 4.2 TB/s.

// Kinds of tests.
#define WC_LIKE 0
#define WC_IN 1
#define WC_LT 2
#define WC_LE 3
#define WC_GT 4
#define WC_GE 5

// Words of a table before its pieces, and of a piece.
#define WC_TABLE_HEAD 2
#define WC_PIECE_WORDS 5
// A byte of a piece that stands for any character.
#define WC_ANY 255u
// No place in a string.
#define WC_NOWHERE 0xffffffffu

// One string of a table.
struct WcPiece {
    const uint8_t* bytes;
    uint32_t length;  // bytes, a character that may be any counted as one
    uint32_t head;    // the first bytes as a word
    uint32_t mask;    // those of them that are the same in every match
    uint32_t chars;   // characters if any of them may be any, else 0

    WC_INLINE WcPiece(const uint32_t* table, uint32_t number) {
        const uint32_t* const words = table + WC_TABLE_HEAD + number * WC_PIECE_WORDS;
        bytes = (const uint8_t*)table + wc_load_cached(words);
        length = wc_load_cached(words + 1);
        head = wc_load_cached(words + 2);
        mask = wc_load_cached(words + 3);
        chars = wc_load_cached(words + 4);
    }
};

WC_DEVICE uint32_t wc_byte(const WcText& text, uint32_t at) {
    return wc_load_cached((const uint8_t*)text.bytes + at);
}

// Whether a byte continues a character of UTF-8.
WC_DEVICE bool wc_continues(uint32_t byte) { return (byte & 0xc0u) == 0x80u; }

// Where the match of a piece ends that begins at `at` and goes no further than `limit`.
WC_DEVICE uint32_t wc_match_piece(const WcText& text, uint32_t at, uint32_t limit, const WcPiece& piece) {
    for (uint32_t i = 0; i < piece.length; ++i) {
        if (at >= limit) return WC_NOWHERE;
        const uint32_t wanted = wc_load_cached(piece.bytes + i), found = wc_byte(text, at);
        if (wanted == WC_ANY) {
            at += found < 0x80u ? 1 : found < 0xe0u ? 2 : found < 0xf0u ? 3 : 4;
        } else {
            if (wanted != found) return WC_NOWHERE;
            ++at;
        }
    }
    return at <= limit ? at : WC_NOWHERE;
}

// The first place from `at` on whose word is the head under the mask; past `last` if there is none up to it.
WC_DEVICE uint32_t wc_find_head(const WcText& text, uint32_t at, uint32_t last, uint32_t head, uint32_t mask) {
    const uint64_t address = (uint64_t)(text.bytes + at);
    const uint64_t* words = (const uint64_t*)(address & ~7ull);
    const uint32_t shift = 8 * (uint32_t)(address & 7), back = 63 - shift;
    uint64_t low = wc_load_cached(words), high = wc_load_cached(words + 1);
    for (;;) {
        const uint64_t next = wc_load_cached(words + 2);
        // A shift by 64 is none: the word above is shifted twice.
        const uint64_t here = low >> shift | high << 1 << back, there = high >> shift | next << 1 << back;
        const uint32_t a = (uint32_t)here, b = (uint32_t)(here >> 32), c = (uint32_t)there;
        uint32_t hits = 0;
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i) {
            hits |= (uint32_t)(((__funnelshift_r(a, b, 8 * i) ^ head) & mask) == 0) << i;
            hits |= (uint32_t)(((__funnelshift_r(b, c, 8 * i) ^ head) & mask) == 0) << (4 + i);
        }
        if (hits != 0) return at + __ffs(hits) - 1;
        at += 8;
        if (at > last) return at;
        ++words;
        low = high;
        high = next;
    }
}

// Where the first match of a piece ends that begins at `at` or later and ends at `limit` or before.
WC_DEVICE uint32_t wc_find_piece(const WcText& text, uint32_t at, uint32_t limit, const WcPiece& piece) {
    if (piece.length > limit - at) return WC_NOWHERE;
    const uint32_t last = limit - piece.length;
    for (;; ++at) {
        if (at > last) return WC_NOWHERE;
        at = wc_find_head(text, at, last, piece.head, piece.mask);
        if (at > last) return WC_NOWHERE;
        // A piece that begins with any character does not begin within one.
        if (piece.mask == 0 && wc_continues(wc_byte(text, at))) continue;
        const uint32_t end = wc_match_piece(text, at, limit, piece);
        if (end != WC_NOWHERE) return end;
    }
}

// Where the piece begins that a string ends with, at `at` or later.
WC_DEVICE uint32_t wc_last_piece(const WcText& text, uint32_t at, const WcPiece& piece) {
    if (piece.length > text.length - at) return WC_NOWHERE;
    uint32_t from = text.length - piece.length;
    if (piece.chars != 0) {
        from = text.length;
        for (uint32_t left = piece.chars; left > 0; --left) {
            do {
                if (from == at) return WC_NOWHERE;
                --from;
            } while (wc_continues(wc_byte(text, from)));
        }
    }
    return wc_match_piece(text, from, text.length, piece) == text.length ? from : WC_NOWHERE;
}

// LIKE: a first piece at the start and a last one at the end, if the table says so, and the others between in order.
WC_DEVICE bool wc_like(const WcText& text, const uint32_t* table) {
    uint32_t pieces = wc_load_cached(table), first = 0, at = 0, limit = text.length;
    const uint32_t ends = wc_load_cached(table + 1);
    if (ends & 1u) {
        at = wc_match_piece(text, 0, limit, WcPiece(table, 0));
        if (at == WC_NOWHERE) return false;
        if (pieces == 1 && (ends & 2u)) return at == limit;
        first = 1;
    }
    if (ends & 2u) {
        limit = wc_last_piece(text, at, WcPiece(table, --pieces));
        if (limit == WC_NOWHERE) return false;
    }
    for (; first < pieces; ++first) {
        at = wc_find_piece(text, at, limit, WcPiece(table, first));
        if (at == WC_NOWHERE) return false;
    }
    return true;
}

// Whether a string is one of the table's.
WC_DEVICE bool wc_in(const WcText& text, const uint32_t* table) {
    const uint32_t pieces = wc_load_cached(table);
    for (uint32_t i = 0; i < pieces; ++i) {
        const WcPiece piece(table, i);
        if (piece.length != text.length) continue;
        if (wc_match_piece(text, 0, text.length, piece) == text.length) return true;
    }
    return false;
}

// The eight bytes at any address.
WC_DEVICE uint64_t wc_eight_bytes(const void* at) {
    const uint64_t* const words = (const uint64_t*)((uint64_t)at & ~7ull);
    const uint32_t shift = 8 * (uint32_t)((uint64_t)at & 7);
    return wc_load_cached(words) >> shift | wc_load_cached(words + 1) << 1 << (63 - shift);
}

// The order of a string and the table's only one, by bytes: less than, equal to or greater than zero.
WC_DEVICE int wc_compare_text(const WcText& text, const uint32_t* table) {
    const WcPiece piece(table, 0);
    const uint32_t both = text.length < piece.length ? text.length : piece.length;
    for (uint32_t at = 0; at < both; at += 8) {
        uint64_t one = wc_eight_bytes(text.bytes + at), other = wc_eight_bytes(piece.bytes + at);
        if (both - at < 8) {
            const uint64_t mask = (1ull << 8 * (both - at)) - 1;
            one &= mask;
            other &= mask;
        }
        if (one != other) {
            const uint32_t shift = (uint32_t)(__ffsll((long long)(one ^ other)) - 1) & ~7u;
            return (one >> shift & 255u) < (other >> shift & 255u) ? -1 : 1;
        }
    }
    return text.length == piece.length ? 0 : text.length < piece.length ? -1 : 1;
}

// One test of one string.
template <int KIND> WC_DEVICE bool wc_match(const WcText& text, const uint32_t* table) {
    if (KIND == WC_LIKE) return wc_like(text, table);
    if (KIND == WC_IN) return wc_in(text, table);
    const int order = wc_compare_text(text, table);
    return KIND == WC_LT ? order < 0 : KIND == WC_LE ? order <= 0 : KIND == WC_GT ? order > 0 : order >= 0;
}

// The piece of a pattern that tells most rows that do not match by its first four bytes: the first one that may lie
// anywhere and whose first four bytes are the same in every match. WC_NOWHERE if there is none.
WC_DEVICE uint32_t wc_telling_piece(const uint32_t* table) {
    const uint32_t pieces = wc_load_cached(table), ends = wc_load_cached(table + 1);
    for (uint32_t i = ends & 1u; i + (ends >> 1) < pieces; ++i) {
        if (WcPiece(table, i).mask == 0xffffffffu) return i;
    }
    return WC_NOWHERE;
}

// Which of 32 neighbouring rows, from `row` on, have the first four bytes of a piece and room for the rest of it: a bit
// a row. The warp reads the bytes of all as one run, eight a lane, so that no lane waits for another's longer string.
WC_DEVICE uint32_t wc_rows_with(const WcTexts& texts, uint32_t row, uint32_t lane, const WcPiece& piece) {
    const uint32_t start = wc_load_cached(texts.offsets + row + lane);
    const uint32_t end = wc_load_cached(texts.offsets + row + lane + 1);
    const uint32_t from = __shfl_sync(WC_FULL_MASK, start, 0) & ~7u;
    const uint32_t bytes = __shfl_sync(WC_FULL_MASK, end, 31) - from;
    uint32_t rows = 0;
    for (uint32_t done = 0; done < bytes; done += 8 * 32) {
        const uint32_t at = from + done + 8 * lane;
        uint32_t hits = 0;
        if (done + 8 * lane < bytes) {
            const uint64_t* const words = (const uint64_t*)(texts.text + at);
            const uint64_t here = wc_load_cached(words), next = wc_load_cached(words + 1);
            const uint32_t a = (uint32_t)here, b = (uint32_t)(here >> 32), c = (uint32_t)next;
#pragma unroll
            for (uint32_t i = 0; i < 4; ++i) {
                hits |= (uint32_t)(__funnelshift_r(a, b, 8 * i) == piece.head) << i;
                hits |= (uint32_t)(__funnelshift_r(b, c, 8 * i) == piece.head) << (4 + i);
            }
        }
        while (__any_sync(WC_FULL_MASK, hits != 0)) {
            // The row of a hit is the last one that begins at it or before; a lane without one looks up any.
            const uint32_t place = at + (hits != 0 ? __ffs(hits) - 1 : 0);
            uint32_t owner = 0;
#pragma unroll
            for (uint32_t step = 16; step > 0; step /= 2) {
                const uint32_t begins = __shfl_sync(WC_FULL_MASK, start, owner + step);
                if (begins <= place) owner += step;
            }
            const uint32_t begins = __shfl_sync(WC_FULL_MASK, start, owner);
            const uint32_t ends = __shfl_sync(WC_FULL_MASK, end, owner);
            const bool fits = place >= begins && place < ends && piece.length <= ends - place;
            if (hits != 0 && fits) rows |= 1u << owner;
            hits &= hits - 1;
        }
    }
    return __reduce_or_sync(WC_FULL_MASK, rows);
}

// Living rows of 32 neighbouring ones from which on all their bytes are searched together.
#define WC_SEARCHED_ROWS_MIN 8

// The position of bit number `nth` among those of a mask.
WC_DEVICE uint32_t wc_nth_bit(uint32_t mask, uint32_t nth) {
    uint32_t position = 0;
#pragma unroll
    for (uint32_t step = 16; step > 0; step /= 2) {
        const uint32_t below = __popc(mask >> position & ((1u << step) - 1));
        if (nth >= below) {
            nth -= below;
            position += step;
        }
    }
    return position;
}

// The test of the rows of a step that are alive, bit k for slot k.
//
// The step has 32 neighbouring rows for each of its slots. Lane t keeps a mask of rows 32 t to 32 t + 31: those alive,
// less the ones that a search for a piece of the pattern has ruled out. The rows that are left are shared out among the
// lanes, 32 at a time, and the outcomes go back to the masks and from there to the lanes whose slots the rows lie in.
template <int KIND, int SLOTS>
WC_DEVICE uint32_t
wc_match_step(const WcTexts& texts, const uint32_t* table, uint32_t base, uint32_t lane, uint32_t alive) {
    static_assert(SLOTS <= 32, "a lane keeps 32 rows");
    const uint32_t telling = KIND == WC_LIKE ? wc_telling_piece(table) : WC_NOWHERE;
    uint32_t asked = 0;
#pragma unroll 1
    for (uint32_t turn = 0; turn < SLOTS; ++turn) {
        const uint32_t theirs = __shfl_sync(WC_FULL_MASK, alive, turn % 4 * 8 + lane / 4);
        uint32_t rows = __ballot_sync(WC_FULL_MASK, theirs >> (turn / 4 * 4 + lane % 4) & 1u);
        if (telling != WC_NOWHERE && __popc(rows) >= WC_SEARCHED_ROWS_MIN) {
            rows &= wc_rows_with(texts, base + 32 * turn, lane, WcPiece(table, telling));
        }
        if (lane == turn) asked = rows;
    }
    const uint32_t own = __popc(asked), behind = wc_warp_inclusive_sum(own), before = behind - own;
    const uint32_t all = __shfl_sync(WC_FULL_MASK, behind, 31);
    uint32_t found = 0, open = asked;
#pragma unroll 1
    for (uint32_t first = 0; first < all; first += 32) {
        // The lane whose mask has row number `item` is the first with more rows up to it.
        const uint32_t item = first + lane;
        uint32_t turn = 0;
#pragma unroll
        for (uint32_t step = 16; step > 0; step /= 2) {
            const uint32_t upto = __shfl_sync(WC_FULL_MASK, behind, turn + step - 1);
            if (upto <= item) turn += step;
        }
        const uint32_t mask = __shfl_sync(WC_FULL_MASK, asked, turn), ahead = __shfl_sync(WC_FULL_MASK, before, turn);
        bool holds = false;
        if (item < all) {
            const uint32_t row = base + 32 * turn + wc_nth_bit(mask, item - ahead);
            holds = wc_match<KIND>(texts.get(row), table);
        }
        const uint32_t outcomes = __ballot_sync(WC_FULL_MASK, holds);
        const uint32_t last = min(behind, first + 32);
        for (uint32_t i = max(before, first); i < last; ++i) {
            const uint32_t row = open & (0u - open);
            open ^= row;
            if (outcomes >> (i - first) & 1u) found |= row;
        }
    }
    uint32_t bits = 0;
#pragma unroll 1
    for (uint32_t turn = 0; turn < SLOTS; ++turn) {
        const uint32_t rows = __shfl_sync(WC_FULL_MASK, found, turn);
        if (lane / 8 == turn % 4) bits |= (rows >> (4 * (lane % 8)) & 15u) << (turn / 4 * 4);
    }
    return bits;
}
