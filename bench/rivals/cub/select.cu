// CUB's DeviceSelect::If (order kept) and DeviceScan::ExclusiveSum beside the cases select/… and scan/u32.
#include "common.cuh"

#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

struct Below {
    float bound;
    __host__ __device__ bool operator()(float item) const { return item < bound; }
};

int main(int count, char** arguments) {
    const Bench bench(count, arguments);
    {
        const int64_t n = bench.rows(29);
        const float* in =
            column<float>(n, [] __device__(uint64_t row) { return (float)(hash(1, row) >> 40) / 16777216.0f; });
        float* out = room<float>(n);
        uint64_t* selected = room<uint64_t>(1);
        for (int percent = 0; percent <= 100; percent += 10) {
            const Below below{percent / 100.0f};
            bench.measure("select/" + std::to_string(percent), [&](void* scratch, size_t& bytes) {
                return cub::DeviceSelect::If(scratch, bytes, in, out, selected, n, below);
            });
        }
    }
    const int64_t n = bench.rows(28);
    const uint32_t* in = column<uint32_t>(n, [] __device__(uint64_t row) { return (uint32_t)hash(4, row); });
    uint32_t* out = room<uint32_t>(n);
    bench.measure("scan/u32", [&](void* scratch, size_t& bytes) {
        return cub::DeviceScan::ExclusiveSum(scratch, bytes, in, out, n);
    });
}
