// CUB's DeviceSegmentedSort beside the cases segsort/…, over the same random cuts.
#include "common.cuh"

#include <cub/device/device_segmented_sort.cuh>

// Ends of segments that are cut at random places, by a linear congruential generator (Knuth, MMIX).
static std::vector<int64_t> cuts(uint64_t rows, uint64_t segments) {
    std::vector<int64_t> cuts{0, (int64_t)rows};
    uint64_t state = segments;
    for (uint64_t segment = 1; segment < segments; ++segment) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        cuts.push_back((int64_t)((unsigned __int128)state * rows >> 64));
    }
    std::sort(cuts.begin(), cuts.end());
    return cuts;
}

int main(int count, char** arguments) {
    const Bench bench(count, arguments);
    const int64_t n = bench.rows(28);
    const uint32_t* in = column<uint32_t>(n, [] __device__(uint64_t row) { return (uint32_t)(hash(1, row) >> 32); });
    uint32_t* out = room<uint32_t>(n);
    for (uint32_t log = 4; log <= 24; log += 4) {
        const int64_t segments = bench.scaled(1ull << log);
        const std::vector<int64_t> host = cuts(n, segments);
        int64_t* offsets = room<int64_t>(host.size());
        CHECK(cudaMemcpy(offsets, host.data(), host.size() * sizeof(int64_t), cudaMemcpyHostToDevice));
        bench.measure("segsort/" + std::to_string(1ull << log), [&](void* scratch, size_t& bytes) {
            return cub::DeviceSegmentedSort::SortKeys(scratch, bytes, in, out, n, segments, offsets, offsets + 1);
        });
        CHECK(cudaFree(offsets));
    }
}
