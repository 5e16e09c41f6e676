//! Correct kernels give their answer on the emulated device, the same in every order of lanes, warps and blocks.

mod emulated_support;

use emulated_support::{ORDERS, Rig, check, kernel, shape};
use warpcube_gpu::Params;

#[test]
fn a_block_reduction_goes_through_shared_memory() {
    let source = r#"
struct P { const int64_t* in; int64_t* out; };
WC_KERNEL(block_sum, P, 1024, 1) {
    int64_t* sums = (int64_t*)wc_shared();
    sums[threadIdx.x] = p.in[(int64_t)blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    for (uint32_t step = blockDim.x / 2; step > 0; step >>= 1) {
        if (threadIdx.x < step) sums[threadIdx.x] += sums[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) p.out[blockIdx.x] = sums[0];
}"#;
    for block in [32, 256, 1024] {
        let input: Vec<i64> = (0..block as i64 * 9).map(|i| i * i - 1000).collect();
        let expected: Vec<i64> = input.chunks(block as usize).map(|part| part.iter().sum()).collect();
        check("block_sum", source, shape(9, block, block * 8), &input, &expected);
    }
}

#[test]
fn shuffles_move_values_of_four_and_eight_bytes() {
    let source = r#"
struct P { const double* in; double* out; };
WC_KERNEL(shuffles, P, 32, 1) {
    uint32_t lane = wc_lane();
    double value = p.in[lane];
    double* out = p.out + lane * 10;
    out[0] = __shfl_sync(WC_FULL_MASK, value, 5);
    out[1] = __shfl_sync(WC_FULL_MASK, value, 3, 8);
    out[2] = __shfl_up_sync(WC_FULL_MASK, value, 3);
    out[3] = __shfl_down_sync(WC_FULL_MASK, value, 3, 16);
    out[4] = __shfl_xor_sync(WC_FULL_MASK, value, 9);
    out[5] = __shfl_sync(WC_FULL_MASK, (float)value, (int)(lane + 1));
    out[6] = __shfl_xor_sync(WC_FULL_MASK, (int64_t)value * 0x100000001LL, 1);
    out[7] = __shfl_up_sync(WC_FULL_MASK, (uint32_t)lane, 1, 4);
    out[8] = __shfl_sync(WC_FULL_MASK, (long long)lane - 40, 0);
    out[9] = wc_warp_sum(value);
}"#;
    let input: Vec<f64> = (0..32).map(|lane| f64::from(lane) * 3.0 + 1.0).collect();
    let expected: Vec<f64> = (0..32usize)
        .flat_map(|lane| {
            let down = if lane % 16 + 3 < 16 { lane + 3 } else { lane };
            [
                input[5],
                input[lane / 8 * 8 + 3],
                input[if lane >= 3 { lane - 3 } else { lane }],
                input[down],
                input[lane ^ 9],
                input[(lane + 1) % 32],
                ((input[lane ^ 1] as i64) * 0x1_0000_0001) as f64,
                if lane % 4 == 0 { lane } else { lane - 1 } as f64,
                -40.0,
                input.iter().sum(),
            ]
        })
        .collect();
    check("shuffles", source, shape(1, 32, 0), &input, &expected);
}

#[test]
fn votes_matches_and_reductions() {
    let source = r#"
struct P { const uint64_t* in; uint64_t* out; };
WC_KERNEL(votes, P, 32, 1) {
    uint64_t value = p.in[wc_lane()];
    uint64_t* out = p.out + wc_lane() * 12;
    out[0] = __ballot_sync(WC_FULL_MASK, value > 100);
    out[1] = __any_sync(WC_FULL_MASK, value == 7) != 0;
    out[2] = __all_sync(WC_FULL_MASK, value > 0) != 0;
    out[3] = __match_any_sync(WC_FULL_MASK, value % 5);
    out[4] = __match_any_sync(WC_FULL_MASK, (uint32_t)value & 1u);
    out[5] = __reduce_add_sync(WC_FULL_MASK, (uint32_t)value);
    out[6] = __reduce_min_sync(WC_FULL_MASK, (uint32_t)value);
    out[7] = (uint64_t)__reduce_max_sync(WC_FULL_MASK, -(int)value);
    out[8] = __reduce_or_sync(WC_FULL_MASK, 1u << (value & 31));
    out[9] = __reduce_xor_sync(WC_FULL_MASK, (uint32_t)value);
    out[10] = __activemask();
    out[11] = __all_sync(WC_FULL_MASK, value > 100) != 0;
}"#;
    let input: Vec<u64> = (0..32).map(|lane| lane * lane + 3).collect();
    let lanes = |keep: &dyn Fn(u64) -> bool| {
        (0..32).filter(|lane| keep(input[*lane as usize])).map(|lane| 1u64 << lane).sum::<u64>()
    };
    let expected: Vec<u64> = input
        .iter()
        .flat_map(|own| {
            [
                lanes(&|value| value > 100),
                u64::from(input.contains(&7)),
                1,
                lanes(&|value| value % 5 == own % 5),
                lanes(&|value| value % 2 == own % 2),
                input.iter().sum(),
                3,
                -3i64 as u64,
                input.iter().fold(0, |bits, value| bits | 1 << (value & 31)),
                input.iter().fold(0, |bits, value| bits ^ value),
                0xffff_ffff,
                0,
            ]
        })
        .collect();
    check("votes", source, shape(1, 32, 0), &input, &expected);
}

#[test]
fn parts_of_a_warp_work_apart_in_divergent_branches() {
    // Three parts of each warp diverge, each with its own number of steps, and reconverge.
    let source = r#"
struct P { const uint64_t* in; uint64_t* out; };
WC_KERNEL(parts, P, 64, 1) {
    uint32_t lane = wc_lane();
    uint64_t value = p.in[threadIdx.x];
    uint64_t result = 0;
    if (lane < 8) {
        for (int step = 4; step > 0; step >>= 1) value += __shfl_xor_sync(0x000000ffu, value, step);
        result = value;
    } else if (lane < 20) {
        result = __popc(__ballot_sync(0x000fff00u, value & 1));
    } else {
        for (uint32_t i = 0; i < 5; i++) {
            __syncwarp(0xfff00000u);
            value = __shfl_sync(0xfff00000u, value, 20 + (int)((lane - 20 + 1) % 12));
        }
        result = value;
    }
    __syncwarp();
    p.out[threadIdx.x] = result + __shfl_sync(WC_FULL_MASK, result, 0);
}"#;
    let input: Vec<u64> = (0..64).map(|i| i * 7 + 2).collect();
    let expected: Vec<u64> = input
        .chunks(32)
        .flat_map(|warp| {
            let sum: u64 = warp[..8].iter().sum();
            let odd = warp[8..20].iter().filter(|value| *value % 2 == 1).count() as u64;
            (0..32).map(move |lane| {
                let own = match lane {
                    0..8 => sum,
                    8..20 => odd,
                    _ => warp[20 + (lane - 20 + 5) % 12],
                };
                own + sum
            })
        })
        .collect();
    check("parts", source, shape(1, 64, 0), &input, &expected);
}

#[test]
fn lanes_that_are_active_together_share_one_atomic() {
    // The result of __activemask is unspecified; every lane gets its own number in any case.
    let source = r#"
struct P { const uint64_t* in; uint64_t* out; };
WC_KERNEL(active, P, 64, 1) {
    if (p.in[threadIdx.x] % 3 == 0) {
        uint32_t together = __activemask();
        int leader = __ffs((int)together) - 1;
        uint64_t first = 0;
        if ((int)wc_lane() == leader) first = wc_fetch_add(p.out + 64, (uint64_t)__popc(together));
        first = __shfl_sync(together, first, leader);
        p.out[first + (uint64_t)__popc(together & ((1u << wc_lane()) - 1))] = p.in[threadIdx.x];
    }
}"#;
    let input: Vec<u64> = (0..64).map(|i| i * 5 % 64).collect();
    for order in ORDERS {
        let mut output: Vec<u64> = Rig::new(order).run("active", source, shape(1, 64, 0), &input, 65).unwrap();
        assert_eq!(output[64], 22, "{order:?}");
        output[..22].sort();
        assert_eq!(output[..22], (0..64).step_by(3).collect::<Vec<u64>>(), "{order:?}");
    }
}

#[test]
fn block_votes_count_all_threads() {
    let source = r#"
struct P { const uint64_t* in; uint64_t* out; };
WC_KERNEL(block_votes, P, 96, 1) {
    uint64_t value = p.in[threadIdx.x];
    uint64_t* out = p.out + threadIdx.x * 4;
    out[0] = __syncthreads_count(value % 3 == 0);
    out[1] = __syncthreads_and(value < 96) != 0;
    out[2] = __syncthreads_or(value == 96) != 0;
    out[3] = __syncthreads_or(value == 95) != 0;
}"#;
    let input: Vec<u64> = (0..96).collect();
    let expected: Vec<u64> = (0..96).flat_map(|_| [32, 1, 0, 1]).collect();
    check("block_votes", source, shape(1, 96, 0), &input, &expected);
}

#[test]
fn a_scan_looks_back_from_block_to_block() {
    // Blocks take tiles of the input by ticket, in any order of their start, and wait for the tile before.
    let source = r#"
struct P { const uint64_t* in; uint64_t* out; uint32_t* ticket; uint64_t* prefix; uint32_t* ready; };
WC_KERNEL(scan, P, 64, 1) {
    uint32_t* part = (uint32_t*)wc_shared();
    uint64_t* sums = (uint64_t*)(wc_shared() + 16);
    if (threadIdx.x == 0) *part = wc_fetch_add(p.ticket, 1);
    __syncthreads();
    uint32_t mine = *part;
    int64_t row = (int64_t)mine * 64 + threadIdx.x;
    uint64_t value = p.in[row];
    sums[threadIdx.x] = value;
    __syncthreads();
    uint64_t before = 0;
    for (uint32_t i = 0; i < threadIdx.x; i++) before += sums[i];
    if (threadIdx.x == 63) {
        uint64_t carried = 0;
        if (mine > 0) {
            while (wc_load_acquire(p.ready + mine - 1) == 0) wc_backoff();
            carried = p.prefix[mine - 1];
        }
        p.prefix[mine] = carried + before + value;
        wc_store_release(p.ready + mine, 1u);
        sums[64] = carried;
    }
    __syncthreads();
    p.out[row] = sums[64] + before + value;
}"#;
    let blocks = 40;
    let input: Vec<u64> = (0..blocks * 64).map(|i| i * 31 % 17).collect();
    let mut expected = input.clone();
    (1..expected.len()).for_each(|i| expected[i] += expected[i - 1]);
    for order in ORDERS {
        let mut rig = Rig::new(order);
        let scan = kernel(&rig.device, "scan", source);
        let (given, output) = (rig.upload(&input), rig.upload(&vec![0u64; input.len()]));
        let (ticket, ready) = (rig.upload(&[0u32; 2]), rig.upload(&vec![0u32; blocks as usize]));
        let prefix = rig.device.buffer(blocks as usize * 8, "prefix").unwrap();
        let params = Params::new().buffer(&given).buffer(&output).buffer(&ticket).buffer(&prefix).buffer(&ready);
        rig.stream.launch(&scan, shape(blocks as u32, 64, 16 + 65 * 8), &params).unwrap();
        assert_eq!(rig.download::<u64>(&output), expected, "{order:?}");
    }
}

#[test]
fn atomics_lose_nothing() {
    let source = r#"
struct P { const int64_t* in; int64_t* out; };
WC_KERNEL(atomics, P, 128, 1) {
    int64_t value = p.in[(int64_t)blockIdx.x * blockDim.x + threadIdx.x];
    wc_add(p.out + 0, value);
    wc_min(p.out + 1, value);
    wc_max(p.out + 2, value);
    wc_add((double*)(p.out + 3), 0.5);
    wc_or((uint32_t*)(p.out + 4), 1u << (value & 31));
    atomicXor((unsigned long long*)(p.out + 5), (unsigned long long)value);
    uint64_t* cell = (uint64_t*)(p.out + 6);
    uint64_t seen = *cell;
    for (;;) {
        uint64_t found = wc_compare_swap(cell, seen, seen * 1 + (uint64_t)(value & 3));
        if (found == seen) break;
        seen = found;
    }
    atomicAdd((int*)(p.out + 7), 1);
    atomicAdd((float*)(p.out + 8), 1.0f);
    wc_fetch_add((uint64_t*)(p.out + 9), (uint64_t)2);
}"#;
    let input: Vec<i64> = (0..128 * 7).map(|i| (i * 7919) % 1009 - 500).collect();
    let expected = [
        input.iter().sum(),
        (*input.iter().min().unwrap()).min(0),
        *input.iter().max().unwrap(),
        (input.len() as f64 * 0.5).to_bits() as i64,
        i64::from(input.iter().fold(0u32, |bits, value| bits | 1 << (value & 31))),
        input.iter().fold(0, |bits, value| bits ^ value),
        input.iter().map(|value| value & 3).sum(),
        input.len() as i64,
        i64::from((input.len() as f32).to_bits()),
        input.len() as i64 * 2,
    ];
    check("atomics", source, shape(7, 128, 0), &input, &expected);
}

#[test]
fn two_threads_launch_at_once_into_one_buffer() {
    let source = r#"
struct P { uint64_t* out; int64_t rounds; };
WC_KERNEL(crowd, P, 256, 1) {
    for (int64_t i = 0; i < p.rounds; i++) {
        wc_add(p.out + (threadIdx.x + i) % 16, (uint64_t)1);
        __syncwarp();
    }
    __syncthreads();
}"#;
    let mut rig = Rig::new(ORDERS[2]);
    let crowd = kernel(&rig.device, "crowd", source);
    let output = rig.upload(&[0u64; 16]);
    rig.stream.synchronize().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut stream = rig.device.stream().unwrap();
                for _ in 0..5 {
                    let params = Params::new().buffer(&output).i64(16);
                    stream.launch(&crowd, shape(6, 256, 0), &params).unwrap();
                }
                stream.synchronize().unwrap();
            });
        }
    });
    assert_eq!(rig.download::<u64>(&output), [2 * 5 * 6 * 256; 16]);
}

#[test]
fn intrinsics_compute_what_cuda_says() {
    let source = r#"
struct P { const uint64_t* in; uint64_t* out; };
WC_KERNEL(intrinsics, P, 1, 1) {
    uint64_t x = p.in[0];
    uint32_t y = (uint32_t)x;
    uint64_t results[] = {
        (uint64_t)__popc(y), (uint64_t)__popcll(x), (uint64_t)__clz(0), (uint64_t)__clzll(1), (uint64_t)__ffs(0),
        (uint64_t)__ffsll(8), __brev(1u), __byte_perm(0x33221100u, 0x77665544u, 0x7052u),
        __funnelshift_l(0x80000000u, 1u, 1), __funnelshift_r(0u, 1u, 4), __umulhi(0xffffffffu, 2u),
        (uint64_t)__mul64hi(-1, 2), __umul64hi(~0ull, 3ull), (uint64_t)__double_as_longlong(1.0),
        (uint64_t)__float_as_int(1.0f), (uint64_t)__longlong_as_double(0x4000000000000000LL),
        (uint64_t)min((int64_t)3, (int64_t)-4) + 10, (uint64_t)max(3u, 4u), (uint64_t)floor(2.5),
        (uint64_t)((unsigned __int128)x * x >> 64), (uint64_t)(fma(2.0, 3.0, 4.0) + sqrt(16.0f)),
        (uint64_t)(isnan(x * 0.0 / 0.0) ? 1 : 0),
    };
    for (int i = 0; i < 22; i++) p.out[i] = results[i];
}"#;
    let x: u64 = 0xdead_beef_0123_4567;
    let high = ((u128::from(x) * u128::from(x)) >> 64) as u64;
    #[rustfmt::skip]
    let expected = [
        u64::from((x as u32).count_ones()), u64::from(x.count_ones()), 32, 63, 0,
        4, 1 << 31, 0x77_00_55_22,
        3, 1 << 28, 1,
        u64::MAX, 2, 1.0f64.to_bits(),
        u64::from(1.0f32.to_bits()), 2,
        6, 4, 2,
        high, 14,
        1,
    ];
    check("intrinsics", source, shape(1, 1, 0), &[x], &expected);
}
