//! Behaviour that a GPU leaves undefined is an error on the emulated device, which works on afterwards.

mod emulated_support;

use std::time::Duration;

use emulated_support::{BUDGET, ORDERS, Rig, kernel, shape};
use warpcube_gpu::{Device, EmulatorOptions, GpuError, LaunchShape, Params};

/// Runs a kernel body with 64 threads a block in all orders; each must fail with all of `words` in the reason.
fn check_fails(name: &str, body: &str, shape: LaunchShape, words: &[&str]) {
    let source = format!("struct P {{ uint64_t* a; uint64_t* b; }};\nWC_KERNEL({name}, P, 1024, 1) {{\n{body}\n}}");
    for order in ORDERS {
        let mut rig = Rig::new(order);
        let error = rig.run::<u64, u64>(name, &source, shape, &[0; 64], 64).expect_err(name);
        assert!(matches!(&error, GpuError::Emulator(_)), "{error}");
        let text = error.to_string();
        assert!(text.contains(&format!("kernel '{name}'")), "{order:?}: {text}");
        for word in words {
            assert!(text.contains(word), "{order:?}: '{word}' is not in: {text}");
        }
        rig.assert_works();
    }
}

#[test]
fn different_collectives_of_one_mask() {
    let body = "if (wc_lane() < 16) __ballot_sync(WC_FULL_MASK, 1);\nelse __any_sync(WC_FULL_MASK, 1);";
    let words = ["mismatched collectives", "__ballot_sync", "__any_sync", "mixed.cu:3", "mixed.cu:4", "0xffffffff"];
    check_fails("mixed", body, shape(1, 32, 0), &words);
}

#[test]
fn one_collective_at_two_places() {
    let body = "if (wc_lane() < 16) __syncwarp();\nelse __syncwarp();";
    check_fails("places", body, shape(1, 32, 0), &["mismatched collectives", "places.cu:3", "places.cu:4"]);
}

#[test]
fn masks_that_wait_for_each_other() {
    let body = "if (wc_lane() == 0) __syncwarp(3u);\nelse __syncwarp(7u);";
    check_fails("masks", body, shape(1, 32, 0), &["mask"]);
}

#[test]
fn a_caller_outside_of_its_mask() {
    check_fails("outside", "__syncwarp(0x0000ffffu);", shape(1, 32, 0), &["not in its mask", "0x0000ffff"]);
}

#[test]
fn a_lane_of_the_mask_that_has_exited() {
    let body = "if (wc_lane() == 9) return;\nwc_backoff(); __syncwarp();";
    let words = ["__syncwarp", "exited.cu:4", "lanes 0x00000200 of the mask have exited"];
    check_fails("exited", body, shape(1, 32, 0), &words);
}

#[test]
fn a_lane_that_exits_while_others_wait_for_it() {
    let body = "if (wc_lane() == 9) { wc_backoff(); return; }\n__syncwarp();";
    check_fails("leaves", body, shape(1, 32, 0), &["lane 9: the lane exits while", "__syncwarp at leaves.cu:4"]);
}

#[test]
fn a_lane_of_the_mask_that_does_not_exist() {
    check_fails("missing", "__syncwarp();", shape(1, 48, 0), &["0xffff0000", "do not exist"]);
}

#[test]
fn a_shuffle_from_outside_of_the_mask() {
    let body = "if (wc_lane() < 4) p.b[0] = __shfl_sync(0xfu, wc_lane(), 4);";
    check_fails("stranger", body, shape(1, 32, 0), &["reads lane 4", "not in the mask"]);
}

#[test]
fn a_barrier_that_some_threads_do_not_reach() {
    let body = "if (threadIdx.x < 40) __syncthreads();";
    check_fails("skipped", body, shape(2, 64, 0), &["__syncthreads", "exit"]);
}

#[test]
fn two_barriers_of_which_each_has_half_the_threads() {
    let body = "if (threadIdx.x < 32) __syncthreads();\nelse __syncthreads();";
    check_fails("halves", body, shape(1, 64, 0), &["mismatched barriers", "halves.cu:3", "halves.cu:4"]);
}

#[test]
fn a_barrier_and_a_collective_that_wait_for_each_other() {
    let body = "if (threadIdx.x < 5) __syncthreads();\n__syncwarp();\nif (threadIdx.x >= 5) __syncthreads();";
    check_fails("deadlock", body, shape(1, 32, 0), &["deadlock", "5 of 32 threads wait", "0xffffffe0"]);
}

#[test]
fn waiting_for_a_block_that_cannot_run_yet() {
    let body = "if (threadIdx.x == 0) wc_fetch_add(p.a, (uint64_t)1);\n\
                while (wc_load_acquire(p.a) < gridDim.x) wc_backoff();";
    check_fails("grid_barrier", body, shape(9, 32, 0), &["livelock", "grid_barrier.cu:4"]);
}

#[test]
fn an_endless_loop_of_atomics_meets_the_time_limit() {
    let options = EmulatorOptions { time_limit: Duration::from_millis(50), ..EmulatorOptions::default() };
    let device = Device::emulated(options, BUDGET).unwrap();
    let stream = device.stream().unwrap();
    let mut rig = Rig { device, stream };
    let source = "struct P { uint64_t* a; uint64_t* b; };
        WC_KERNEL(endless, P, 32, 1) { while (atomicCAS(p.a, 1ull * 0, 0ul) < 5) p.b[0] = 1; }";
    let source = source.replace("1ull * 0", "0ul");
    let error = rig.run::<u64, u64>("endless", &source, shape(1, 32, 0), &[0], 1).unwrap_err();
    assert!(error.to_string().contains("not done after 50 ms"), "{error}");
    rig.assert_works();
}

#[test]
fn writes_past_shared_memory() {
    let body = "wc_shared()[threadIdx.x] = 1;";
    check_fails("overrun", body, shape(3, 32, 31), &["byte 31", "31 bytes of shared memory"]);
    check_fails("underrun", "wc_shared()[-1] = 1;", shape(3, 32, 64), &["byte -1"]);
}

#[test]
fn writes_next_to_a_buffer() {
    // 64 words each; the pool rounds sizes up, but the guard begins at the buffer's end.
    let past = ["byte 512 of the buffer 'test' of 512 bytes was written", "kernel 'past'"];
    check_fails("past", "if (threadIdx.x == 0) p.b[64] = 1;", shape(1, 32, 0), &past);
    check_fails("before", "if (threadIdx.x == 0) p.b[-1] = 1;", shape(1, 32, 0), &["byte -8 of the buffer 'test'"]);
}

#[test]
fn a_guard_within_the_size_class_is_checked() {
    let mut rig = Rig::new(ORDERS[0]);
    let source = "struct P { char* a; };\nWC_KERNEL(inside, P, 32, 1) { p.a[1001] = 1; }";
    let inside = kernel(&rig.device, "inside", source);
    let buffer = rig.device.buffer(1001, "odd size").unwrap();
    let error = rig.stream.launch(&inside, shape(1, 32, 0), &Params::new().buffer(&buffer)).unwrap_err();
    assert!(error.to_string().contains("byte 1001 of the buffer 'odd size' of 1001 bytes"), "{error}");
    rig.stream.synchronize().unwrap();
    rig.assert_works();
}

#[test]
fn writes_to_a_buffer_that_was_dropped() {
    let mut rig = Rig::new(ORDERS[0]);
    let source = "struct P { uint64_t a; };\nWC_KERNEL(stale, P, 32, 1) { *(uint64_t*)p.a = 7; }";
    let stale = kernel(&rig.device, "stale", source);
    let buffer = rig.device.buffer(2048, "short life").unwrap();
    let address = buffer.pointer().word();
    drop(buffer);
    rig.stream.launch(&stale, shape(1, 32, 0), &Params::new().u64(address)).unwrap();
    let _again = rig.device.buffer(2048, "next life").unwrap();
    let error = rig.stream.synchronize().unwrap_err();
    assert!(error.to_string().contains("'short life' was written after its last handle was dropped"), "{error}");
    rig.assert_works();
}

#[test]
fn invalid_pointers() {
    check_fails("null", "p.b[0] = *(uint64_t*)0;", shape(1, 32, 0), &["null pointer", "null.cu:3"]);
    check_fails("wild", "*(volatile uint64_t*)0x100000 = 1;", shape(1, 32, 0), &["0x100000", "not mapped"]);
    let body = "p.b[0] = *(uint64_t*)((char*)p.a + 4 + p.a[0]);";
    check_fails("misaligned", body, shape(1, 32, 0), &["misaligned", "misaligned.cu:3"]);
    let body = "p.b[0] = wc_load16_stream(p.a + 1).x;";
    check_fails("misaligned16", body, shape(1, 32, 0), &["misaligned", "int4"]);
}

#[test]
fn arithmetic_that_differs_between_cpu_and_gpu() {
    check_fails("divide", "p.b[0] = 5 / p.a[0];", shape(1, 32, 0), &["by zero", "divide.cu:3"]);
    check_fails("shift", "p.b[0] = 1ull << (p.a[0] + 64);", shape(1, 32, 0), &["shift", "by 64"]);
    let body = "int table[4] = {1, 2, 3, 4}; p.b[0] = table[p.a[0] + 4];";
    check_fails("index", body, shape(1, 32, 0), &["index 4", "int [4]"]);
    let body = "int64_t x = (int64_t)(p.a[0] | 1ull << 63); p.b[0] = (uint64_t)(x / ((int64_t)p.a[0] - 1));";
    check_fails("overflow", body, shape(1, 32, 0), &["overflows"]);
}

#[test]
fn signed_arithmetic_that_overflows() {
    let check = |name: &str, body: &str, words: &[&str]| {
        // Unknown to the compiler: the input holds zeros.
        let body = format!("const int64_t max = 0x7fffffffffffffffll - (int64_t)p.a[0];\n{body}");
        check_fails(name, &body, shape(1, 32, 0), words);
    };
    check("sum", "p.b[0] = (uint64_t)(max + 2);", &["9223372036854775807 + 2 overflows", "sum.cu:4"]);
    check("difference", "p.b[0] = (uint64_t)(-2 - max);", &["-2 - 9223372036854775807 overflows"]);
    check("product", "p.b[0] = (uint64_t)(max * 3);", &["9223372036854775807 * 3 overflows"]);
    check(
        "negation",
        "const int64_t min = (int64_t)(p.a[0] | 1ull << 63); p.b[0] = (uint64_t)-min;",
        &["-(-9223372036854775808) overflows"],
    );
    check("quotient", "p.b[0] = (uint64_t)((-max - 1) / ((int64_t)p.a[0] - 1));", &["/ -1 overflows"]);
    check("narrow", "const int x = (int)(p.a[0] + 0x7fffffff); p.b[0] = x + 1;", &["2147483647 + 1 overflows 'int'"]);
    let wide = "__int128 x = (__int128)max * max * 2; p.b[0] = (uint64_t)((x + x) >> 64);";
    check("wide", wide, &["a value of more than 64 bits", "overflows '__int128'"]);
    // Unsigned arithmetic wraps by definition, and so do atomics on a GPU.
    let source = "struct P { const uint64_t* a; int64_t* b; };
        WC_KERNEL(wraps, P, 32, 1) {
            if (threadIdx.x > 0) return;
            p.b[0] = (int64_t)(0x7fffffffffffffffull + p.a[0] + 1);
            p.b[1] = 0x7fffffffffffffffll;
            wc_add(p.b + 1, (int64_t)1);
            int* narrow = (int*)(p.b + 2);
            *narrow = 0x7fffffff;
            atomicAdd(narrow, 1);
        }";
    let output: Vec<i64> = Rig::new(ORDERS[0]).run("wraps", source, shape(1, 32, 0), &[0u64], 3).unwrap();
    assert_eq!(output, [i64::MIN, i64::MIN, 0x8000_0000]);
}

#[test]
fn writes_between_structures_of_one_buffer() {
    let mut rig = Rig::new(ORDERS[0]);
    let write = kernel(
        &rig.device,
        "write",
        "struct P { char* a; int64_t at; };\nWC_KERNEL(write, P, 32, 1) { p.a[p.at] = 1; }",
    );
    let buffer = rig.device.buffer(1000, "two zones").unwrap();
    buffer.set_redzones(&[100..400, 900..1000]).unwrap();
    assert!(matches!(buffer.set_redzones(&[0..10, 900..1001]), Err(GpuError::Contract(_))));
    let mut launch = |at: i64| rig.stream.launch(&write, shape(1, 32, 0), &Params::new().buffer(&buffer).i64(at));
    for at in [0, 99, 400, 899] {
        launch(at).unwrap();
    }
    for (at, redzone) in [(100, "100..400"), (399, "100..400"), (900, "900..1000"), (999, "900..1000")] {
        let error = launch(at).unwrap_err().to_string();
        let place =
            format!("byte {at} of the buffer 'two zones' of 1000 bytes was written, in the redzone at {redzone}");
        assert!(error.contains(&place) && error.contains("kernel 'write'"), "{error}");
        launch(0).unwrap();
    }
    // Copies and fills cover a redzone as a whole; it is checked afterwards too.
    rig.stream.fill(&buffer, 0, 7, 500).unwrap();
    rig.stream.upload(&buffer, 50, &[8; 350]).unwrap();
    let error = rig.stream.launch(&write, shape(1, 32, 0), &Params::new().buffer(&buffer).i64(250)).unwrap_err();
    assert!(error.to_string().contains("byte 250 of"), "{error}");
    for (offset, bytes) in [(0, 101), (0, 399), (100, 8), (399, 10), (200, 10)] {
        let error = rig.stream.fill(&buffer, offset, 7, bytes).unwrap_err().to_string();
        assert!(error.contains("touches the redzone at 100..400"), "{error}");
        assert!(rig.stream.download(&buffer, offset, &mut vec![0; bytes]).is_err());
    }
    let mut content = vec![0; 500];
    rig.stream.download(&buffer, 0, &mut content).unwrap();
    assert_eq!((content[49], content[99], content[400], content[499]), (7, 8, 7, 7));
    // Redzones end with their declaration or their buffer.
    buffer.set_redzones(&[]).unwrap();
    rig.stream.launch(&write, shape(1, 32, 0), &Params::new().buffer(&buffer).i64(250)).unwrap();
    buffer.set_redzones(&[0..500, 500..1000]).unwrap();
    drop(buffer);
    let again = rig.device.buffer(1000, "again").unwrap();
    rig.stream.launch(&write, shape(1, 32, 0), &Params::new().buffer(&again).i64(250)).unwrap();
    rig.stream.synchronize().unwrap();
}

#[test]
fn a_stack_that_overflows() {
    let source = "struct P { uint64_t* a; uint64_t* b; };
        static __noinline__ uint64_t deep(volatile uint64_t* x, uint64_t n) {
            volatile uint64_t local[100];
            local[n % 100] = n;
            return n == 0 ? *x : deep(x, n - 1) + local[n % 100];
        }
        WC_KERNEL(recursion, P, 32, 1) { p.b[0] = deep(p.a, 100000); }";
    let mut rig = Rig::new(ORDERS[0]);
    let error = rig.run::<u64, u64>("recursion", source, shape(1, 32, 0), &[0], 1).unwrap_err();
    assert!(error.to_string().contains("stack overflow"), "{error}");
    rig.assert_works();
}

#[test]
fn a_parameter_struct_of_another_size() {
    let mut rig = Rig::new(ORDERS[0]);
    let source = "struct P { uint64_t* a; int64_t n; };\nWC_KERNEL(sizes, P, 32, 1) { p.a[0] = 1; }";
    let sizes = kernel(&rig.device, "sizes", source);
    let buffer = rig.upload(&[0u64]);
    let error = rig.stream.launch(&sizes, shape(1, 32, 0), &Params::new().buffer(&buffer)).unwrap_err();
    assert!(error.to_string().contains("has 16 bytes, the launcher gave 8"), "{error}");
}
