// What some pipelines call beside scan.cuh: tables of keys that need several words, floats as keys and as payload,
// arithmetic of months.
//
// A slot's state is zero, or a hash of its key with the lowest two bits 1 (being written) or 2 (written); words lie
// side by side, WORDS a slot. Where a STRIDE is given, slots have so many words, the state and those of the key the
// first of them. A writer claims the state, writes the words and releases the state; a reader acquires the
// state before it looks at the words, so that no key is seen half.

// The bits of a float as a key: both zeros are one value, all NaNs another.
WC_DEVICE uint64_t wc_float_key(double value) {
    const uint64_t bits = (uint64_t)__double_as_longlong(wc_one_nan(value));
    return bits << 1 == 0 ? 0 : bits;
}
WC_DEVICE uint32_t wc_float_key(float value) {
    union { float value; uint32_t bits; } both;
    both.value = value;
    return value == 0.0f ? 0 : value == value ? both.bits : 0x7fc00000u;
}

template <int WORDS> WC_DEVICE uint64_t wc_wide_hash(uint64_t seed, const uint64_t (&key)[WORDS]) {
    uint64_t hash = seed;
    for (int word = 0; word < WORDS; ++word) hash = wc_hash(hash ^ key[word]) + 0x9e3779b97f4a7c15ULL;
    return hash;
}

template <int WORDS> WC_DEVICE bool wc_wide_same(const uint64_t* words, const uint64_t (&key)[WORDS]) {
    bool same = true;
    for (int word = 0; word < WORDS; ++word) same &= words[word] == key[word];
    return same;
}

// The slot of a key in a table that no one writes any more; all ones if there is none.
template <int WORDS>
WC_DEVICE uint64_t wc_wide_find(const uint64_t* states, const uint64_t* words, uint64_t mask, uint64_t seed,
                                const uint64_t (&key)[WORDS]) {
    const uint64_t hash = wc_wide_hash(seed, key);
    const uint64_t written = (hash & ~3ULL) | 2;
    uint64_t slot = hash >> 2 & mask;
    for (uint32_t tries = 0; tries < WC_RUN_MAX; ++tries, slot = (slot + 1) & mask) {
        const uint64_t state = states[slot];
        if (state == 0) break;
        if (state == written && wc_wide_same(words + slot * WORDS, key)) return slot;
    }
    return ~0ULL;
}

// The slot of a key, entered if it is new; all ones if no slot is left for it.
template <int STRIDE = 0, int WORDS>
WC_DEVICE uint64_t wc_wide_enter(uint64_t* states, uint64_t* words, uint64_t mask, uint64_t seed,
                                 const uint64_t (&key)[WORDS], bool* is_new) {
    const uint64_t hash = wc_wide_hash(seed, key);
    const uint64_t writing = (hash & ~3ULL) | 1, written = (hash & ~3ULL) | 2;
    constexpr int OF_STATES = STRIDE == 0 ? 1 : STRIDE, OF_WORDS = STRIDE == 0 ? WORDS : STRIDE;
    uint64_t slot = hash >> 2 & mask;
    *is_new = false;
    for (uint64_t tries = 0; tries <= mask && tries < WC_RUN_MAX;) {
        const uint64_t state = wc_load_acquire(states + slot * OF_STATES);
        if (state == 0) {
            // Whoever loses the race looks at the slot again, which now has a state.
            if (wc_compare_swap(states + slot * OF_STATES, 0, writing) != 0) continue;
            for (int word = 0; word < WORDS; ++word) words[slot * OF_WORDS + word] = key[word];
            wc_store_release(states + slot * OF_STATES, written);
            *is_new = true;
            return slot;
        }
        if (state == writing) {
            wc_backoff();
            continue;
        }
        if (state == written && wc_wide_same(words + slot * OF_WORDS, key)) return slot;
        slot = (slot + 1) & mask;
        ++tries;
    }
    return ~0ULL;
}

// NULL among doubles of a join table: a NaN whose bits wc_one_nan never gives.
WC_DEVICE double wc_nan_null() { return __longlong_as_double(0x7ff8000000574331LL); }
WC_DEVICE bool wc_is_nan_null(double value) { return __double_as_longlong(value) == 0x7ff8000000574331LL; }

// Day counts of civil dates, the inverse of wc_civil (Howard Hinnant), and dates some months later: the day of the
// month stays, or is the last one of a shorter month.
WC_DEVICE int64_t wc_days_of(int64_t year, int64_t month, int64_t day) {
    year -= month <= 2;
    const int64_t era = (year >= 0 ? year : year - 399) / 400;
    const int64_t of_era = year - era * 400;
    const int64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}
WC_DEVICE int64_t wc_add_months(int64_t days, int64_t months) {
    const WcDate date = wc_civil(days);
    const int64_t shifted = (int64_t)date.year * 12 + date.month - 1 + months;
    const int64_t year = (shifted >= 0 ? shifted : shifted - 11) / 12;
    const int64_t month = shifted - year * 12 + 1;
    const int64_t first = wc_days_of(year, month, 1);
    const int64_t length = wc_days_of(month == 12 ? year + 1 : year, month == 12 ? 1 : month + 1, 1) - first;
    return first + (date.day < length ? date.day : length) - 1;
}
