// CUB's DeviceTopK (keys and their rows, in no order) beside the cases topk/f32/…, where this CUB has it: 3.3 and
// later.
#include "common.cuh"

#if __has_include(<cub/device/device_topk.cuh>)

#include <cub/device/device_topk.cuh>
#include <thrust/iterator/counting_iterator.h>

// Keys as crates/bench/src/prims/topk.rs makes them.
struct Made {
    int distribution;
    uint64_t n;

    __device__ static double share(uint64_t hash) { return (double)(hash >> 11) * 0x1p-53; }

    __device__ float operator()(uint64_t row) const {
        const uint64_t own = hash(1, row);
        switch (distribution) {
            case 1: return (float)((double)row / (double)n);
            case 2: return (float)((double)(n - 1 - row) / (double)n);
            case 3: return 1.0f;
            case 4: return (float)(own % 16);
            case 5: {
                const double radius = sqrt(-2.0 * log(share(own) + 0x1p-54));
                return (float)(radius * cos(6.283185307179586 * share(hash(2, row))));
            }
            case 6: {
                // Ones, but for a few that differ in one byte each.
                uint32_t bits = __float_as_uint(1.0f);
                const uint64_t part = n / 5 + 1;
                if (row % part == part - 1) bits ^= 1u << (8 * (row / part) + 3);
                return __uint_as_float(bits);
            }
            default: return (float)share(own);
        }
    }
};

int main(int count, char** arguments) {
    const Bench bench(count, arguments);
    const char* names[] = {"uniform", "ascending", "descending", "equal", "few", "normal", "bucket_killer"};
    const uint32_t ks[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 1 << 20};
    // At most 2^31: CUB is quicker with places of 32 bits.
    const uint32_t n = (uint32_t)bench.rows(29);
    float* keys = room<float>(n);
    float* best = room<float>(1 << 20);
    uint32_t* rows = room<uint32_t>(1 << 20);
    const auto all = thrust::make_counting_iterator<uint32_t>(0);
    const auto unsorted = cuda::execution::require(
        cuda::execution::determinism::not_guaranteed, cuda::execution::output_ordering::unsorted);
    for (int at = 0; at < 7; ++at) {
        make_rows<<<1056, 256>>>(keys, n, Made{at, n});
        CHECK(cudaDeviceSynchronize());
        for (const uint32_t k : ks) {
            if (k > n) continue;
            const std::string name = std::string("topk/f32/") + names[at] + "/" + std::to_string(k);
            bench.measure(name, [&](void* scratch, size_t& bytes) {
                return cub::DeviceTopK::MaxPairs(scratch, bytes, keys, best, all, rows, n, k, unsorted);
            });
        }
    }
}

#else

int main() {
    fprintf(stderr, "CUB %d has no DeviceTopK\n", CUB_VERSION);
}

#endif
