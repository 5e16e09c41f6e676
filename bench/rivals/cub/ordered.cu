// CUB's DeviceRunLengthEncode and DeviceReduce::ReduceByKey beside the cases ordered/…: sorted keys 1, 2, 3, … in runs
// of random lengths, counts of 32 bits, sums of 64 bits of values of 32.
#include "common.cuh"

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <cuda/std/functional>
#include <thrust/iterator/transform_iterator.h>

struct Widened {
    __host__ __device__ uint64_t operator()(uint32_t value) const { return value; }
};

// Numbers the heads of runs in place.
static void number(uint32_t* heads, int64_t n) {
    size_t bytes = 0;
    CHECK(cub::DeviceScan::InclusiveSum(nullptr, bytes, heads, heads, n));
    void* scratch = room<char>(bytes);
    CHECK(cub::DeviceScan::InclusiveSum(scratch, bytes, heads, heads, n));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(scratch));
}

int main(int count, char** arguments) {
    const Bench bench(count, arguments);
    const int64_t n = bench.rows(28);
    const uint32_t* values = column<uint32_t>(n, [] __device__(uint64_t row) { return (uint32_t)hash(5, row); });
    const auto widened = thrust::make_transform_iterator(values, Widened{});
    uint32_t* found = room<uint32_t>(n);
    uint32_t* counts = room<uint32_t>(n);
    uint64_t* sums = room<uint64_t>(n);
    uint64_t* runs = room<uint64_t>(1);
    const uint64_t wanted[] = {bench.scaled(16), bench.scaled(65536), bench.scaled(16ull << 20), (uint64_t)n};
    const char* names[] = {"16", "65536", "16777216", "all"};
    for (int at = 0; at < 4; ++at) {
        const uint64_t seed = wanted[at], threshold = (uint64_t)(((unsigned __int128)wanted[at] << 32) / n);
        uint32_t* keys = column<uint32_t>(n, [=] __device__(uint64_t row) {
            return row == 0 || hash(seed, row) >> 32 < threshold ? 1u : 0u;
        });
        number(keys, n);
        bench.measure(std::string("ordered/count/") + names[at], [&](void* scratch, size_t& bytes) {
            return cub::DeviceRunLengthEncode::Encode(scratch, bytes, keys, found, counts, runs, n);
        });
        bench.measure(std::string("ordered/sum/") + names[at], [&](void* scratch, size_t& bytes) {
            return cub::DeviceReduce::ReduceByKey(
                scratch, bytes, keys, found, widened, sums, runs, cuda::std::plus<uint64_t>{}, n);
        });
        CHECK(cudaFree(keys));
    }
}
