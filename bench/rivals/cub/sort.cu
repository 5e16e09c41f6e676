// CUB's DeviceRadixSort beside the cases sort/…: from one column into another, the input left as it is.
#include "common.cuh"

#include <cub/device/device_radix_sort.cuh>

template <typename Key>
Key* keys(uint64_t n) {
    return column<Key>(n, [] __device__(uint64_t row) { return (Key)(hash(1, row) >> (64 - 8 * sizeof(Key))); });
}

template <typename Key>
void pairs(const Bench& bench, const char* name, uint64_t n) {
    const Key* in = keys<Key>(n);
    Key* out = room<Key>(n);
    const uint32_t* rows = column<uint32_t>(n, [] __device__(uint64_t row) { return (uint32_t)row; });
    uint32_t* rows_out = room<uint32_t>(n);
    bench.measure(name, [&](void* scratch, size_t& bytes) {
        return cub::DeviceRadixSort::SortPairs(scratch, bytes, in, out, rows, rows_out, n);
    });
}

int main(int count, char** arguments) {
    const Bench bench(count, arguments);
    const uint64_t n = bench.rows(28);
    const uint32_t* in = keys<uint32_t>(n);
    uint32_t* out = room<uint32_t>(n);
    bench.measure("sort/keys/u32", [&](void* scratch, size_t& bytes) {
        return cub::DeviceRadixSort::SortKeys(scratch, bytes, in, out, n);
    });
    pairs<uint32_t>(bench, "sort/pairs/u32", n);
    pairs<uint64_t>(bench, "sort/pairs/u64", bench.rows(27));
}
