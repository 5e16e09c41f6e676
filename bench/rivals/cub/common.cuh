// What the programs beside this file share: inputs as crates/bench/src/prims makes them, timing, and the lines they
// print. A program takes --log-rows and --runs, as `warpcube-bench primitives` does, and prints a JSON line a case.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <cub/version.cuh>

// Fails with the call's place and the driver's words: a case that did not run prints no line.
#define CHECK(call)                                                                                  \
    do {                                                                                             \
        const cudaError_t error = (call);                                                            \
        if (error != cudaSuccess) {                                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error));           \
            exit(1);                                                                                 \
        }                                                                                            \
    } while (0)

// The finaliser of splitmix64 over seed and row.
__host__ __device__ inline uint64_t hash(uint64_t seed, uint64_t row) {
    uint64_t x = (seed + row) * 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

template <typename T, typename Make>
__global__ void make_rows(T* out, uint64_t n, Make make) {
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t row = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; row < n; row += step) out[row] = make(row);
}

// A column in device memory, which lives as long as the program.
template <typename T>
T* room(uint64_t n) {
    void* memory;
    CHECK(cudaMalloc(&memory, n * sizeof(T)));
    return (T*)memory;
}

template <typename T, typename Make>
T* column(uint64_t n, Make make) {
    T* out = room<T>(n);
    make_rows<<<1056, 256>>>(out, n, make);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    return out;
}

struct Bench {
    uint32_t log_rows = 29;
    uint32_t runs = 21;
    std::string device;

    Bench(int count, char** arguments) {
        for (int at = 1; at + 1 < count; at += 2) {
            if (!strcmp(arguments[at], "--log-rows")) log_rows = atoi(arguments[at + 1]);
            if (!strcmp(arguments[at], "--runs")) runs = atoi(arguments[at + 1]);
        }
        cudaDeviceProp properties;
        CHECK(cudaGetDeviceProperties(&properties, 0));
        device = properties.name;
    }

    // Rows of an input that has 2^log where the largest have 2^29.
    uint64_t rows(uint32_t log) const { return 1ull << (log + log_rows > 29 ? log + log_rows - 29 : 0); }

    // A number of runs or segments among 2^28 rows, for inputs of this size.
    uint64_t scaled(uint64_t count) const {
        return std::max<uint64_t>(1, (unsigned __int128)count * rows(28) >> 28);
    }

    // Times a call `(void* scratch, size_t& bytes) -> cudaError_t` of CUB: the median of the runs behind a first one,
    // by events. Slow cases get fewer runs, but no fewer than three.
    template <typename Call>
    void measure(const std::string& name, Call call) const {
        size_t bytes = 0;
        CHECK(call(nullptr, bytes));
        void* scratch;
        CHECK(cudaMalloc(&scratch, std::max<size_t>(bytes, 1)));
        cudaEvent_t start, end;
        CHECK(cudaEventCreate(&start));
        CHECK(cudaEventCreate(&end));
        std::vector<float> times;
        float spent = 0;
        for (uint32_t run = 0; run <= runs && (run <= 3 || spent < 500); ++run) {
            CHECK(cudaEventRecord(start));
            CHECK(call(scratch, bytes));
            CHECK(cudaEventRecord(end));
            CHECK(cudaEventSynchronize(end));
            float ms;
            CHECK(cudaEventElapsedTime(&ms, start, end));
            spent += ms;
            if (run > 0) times.push_back(ms);
        }
        CHECK(cudaFree(scratch));
        std::sort(times.begin(), times.end());
        printf("{\"rival\": \"cub\", \"version\": \"%d.%d.%d\", \"device\": \"%s\", \"log_rows\": %u, "
               "\"case\": \"%s\", "
               "\"ms\": %.6f, \"runs\": %zu}\n",
               CUB_MAJOR_VERSION, CUB_MINOR_VERSION, CUB_SUBMINOR_VERSION, device.c_str(), log_rows, name.c_str(),
               times[times.size() / 2], times.size());
        fflush(stdout);
    }
};
