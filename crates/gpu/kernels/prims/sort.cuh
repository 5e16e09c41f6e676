// Words of a sort by several keys: pieces of the keys' bits side by side, the first key in the highest bits.
//
// The launcher writes one kernel a word around `sort_piece`. Inputs: values of each key and, where a key has NULLs, a
// byte a row that is 0 for NULL; for words behind the first, the order of rows so far. Output: a word a row.
// Mapping: a thread a row, in steps of the grid. Bytes: each key once, by row numbers after the first word; a word a
// row. Numerics: a NULL has the bits zero, and its place by a bit above them, so NULLs keep their order.
// Source: Knuth, The Art of Computer Programming 3, 5.2.5: sorting by the least significant key first is stable.
#pragma once

// Bits of a key from bit `from` on, complemented in descending order.
template <typename Key> WC_DEVICE uint64_t sort_piece(Key key, bool descending, uint32_t from, uint64_t mask) {
    typedef typename WcKey<Key>::Bits Bits;
    const Bits bits = WcKey<Key>::to_bits(key);
    return (uint64_t)((descending ? (Bits)~bits : bits) >> from) & mask;
}
