
// Values read back from the cells of groups, and what is computed of integers in 128 and 256 bits.

// The double of an image that wc_order gives.
WC_DEVICE double wc_of_order(int64_t image) {
    return __longlong_as_double(image ^ (int64_t)((uint64_t)(image >> 63) >> 1));
}

// n times a sum of squares less the square of a sum, rounded once: 256 bits hold it. What is below zero is of no rows.
WC_DEVICE double wc_deviations(__int128 sum, __int128 squares, int64_t count) {
    const unsigned __int128 total = sum < 0 ? 0 - (unsigned __int128)sum : (unsigned __int128)sum;
    const uint64_t n = (uint64_t)count, t0 = (uint64_t)total, t1 = (uint64_t)(total >> 64);
    const unsigned __int128 q0 = (unsigned __int128)(uint64_t)squares * n, cross = (unsigned __int128)t0 * t1;
    const unsigned __int128 q1 = (unsigned __int128)(uint64_t)((unsigned __int128)squares >> 64) * n;
    const unsigned __int128 first = q0 + (q1 << 64), square = (unsigned __int128)t0 * t0;
    const unsigned __int128 second = square + (cross << 65), low = first - second;
    const unsigned __int128 first_high = (q1 >> 64) + (first < q0);
    const unsigned __int128 second_high = (unsigned __int128)t1 * t1 + (cross >> 63) + (second < square);
    const __int128 high = (__int128)(first_high - second_high - (first < second));
    const uint64_t words[4] = {(uint64_t)low, (uint64_t)(low >> 64), high < 0 ? 0 : (uint64_t)high,
                               high < 0 ? 0 : (uint64_t)((unsigned __int128)high >> 64)};
    int top = 3;
    while (top > 0 && words[top] == 0) top -= 1;
    if (top == 0) return (double)words[0];
    // 64 bits from the first one on; the last of them tells of those that are left out.
    const int shift = __clzll((long long)words[top]);
    const uint64_t next = words[top - 1];
    uint64_t kept = shift == 0 ? words[top] : words[top] << shift | next >> (64 - shift), rest = next << shift;
    for (int word = 0; word + 1 < top; ++word) rest |= words[word];
    kept |= rest != 0;
    return (double)kept * __longlong_as_double((int64_t)(1023 + 64 * top - shift) << 52);
}

// The double nearest to an integer over a power of ten of 127 bits at most.
WC_DEVICE double wc_nearest_double(__int128 units, uint64_t power_high, uint64_t power_low) {
    typedef unsigned __int128 Wide;
    const Wide magnitude = units < 0 ? 0 - (Wide)units : (Wide)units;
    const Wide power = (Wide)power_high << 64 | power_low, largest_exact = (Wide)10000000000000000000u * 1000u;
    const bool is_exact = magnitude >> 53 == 0 && power <= largest_exact;
    if (is_exact || magnitude == 0) return (double)(int64_t)units / (double)power;
    Wide whole = magnitude / power, rest = magnitude % power;
    // Bits behind the point, up to two more than a double has, and 64 bits of longer ones: the last bit tells of the
    // rest.
    int exponent = 0;
    for (; whole >> 54 == 0; --exponent) {
        rest <<= 1;
        whole = whole << 1 | (rest >= power);
        if (rest >= power) rest -= power;
    }
    for (; whole >> 64 != 0; ++exponent) whole = whole >> 1 | (whole & 1);
    const uint64_t kept = (uint64_t)whole | (rest != 0);
    const double nearest = (double)kept * __longlong_as_double((int64_t)(1023 + exponent) << 52);
    return units < 0 ? -nearest : nearest;
}

// The magnitude of a number times a factor over another, truncated; all ones if 128 bits do not hold it, or of zero.
WC_DEVICE unsigned __int128 wc_quotient(__int128 dividend, __int128 factor, __int128 divisor) {
    typedef unsigned __int128 Wide;
    const Wide a = dividend < 0 ? 0 - (Wide)dividend : (Wide)dividend, f = (Wide)factor;
    const Wide by = divisor < 0 ? 0 - (Wide)divisor : (Wide)divisor;
    const uint64_t a0 = (uint64_t)a, a1 = (uint64_t)(a >> 64), f0 = (uint64_t)f, f1 = (uint64_t)(f >> 64);
    // The sum of both does not leave 128 bits: a and f have 127 at most.
    const Wide cross = (Wide)a0 * f1 + (Wide)a1 * f0, first = (Wide)a0 * f0, low = first + (cross << 64);
    const Wide high = (Wide)a1 * f1 + (cross >> 64) + (low < first);
    if (high == 0 && by != 0) return low / by;
    if (high >= by) return ~(Wide)0;
    Wide rest = high, quotient = 0;
    for (int bit = 127; bit >= 0; --bit) {
        rest = rest << 1 | (low >> bit & 1);
        quotient <<= 1;
        if (rest >= by) {
            rest -= by;
            quotient |= 1;
        }
    }
    return quotient;
}
