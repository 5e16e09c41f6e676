//! The emulated device as a device: its properties, its cache of compiled kernels, its memory, injected faults.

mod emulated_support;

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use emulated_support::{BUDGET, ORDERS, Rig, device, kernel, shape};
use warpcube_gpu::{Device, EmulatorFaults, EmulatorOptions, GpuError, LaneOrder, Params, Program, Work};

const COPY: &str = "struct P { const uint64_t* in; uint64_t* out; int64_t n; };
WC_KERNEL(copy, P, 256, 2) {
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.n; i += (int64_t)gridDim.x * blockDim.x)
        p.out[i] = wc_load_stream(p.in + i);
}";

#[test]
fn its_properties() {
    let device = device(LaneOrder::Forward);
    let info = device.info();
    assert!(info.emulated);
    assert_eq!((info.name.as_str(), info.compute_capability, info.multiprocessors), ("emulated device", (9, 0), 3));
    let copy = kernel(&device, "copy", COPY);
    assert_eq!(copy.attributes().threads_per_block_max, 256);
    assert_eq!(copy.blocks_per_multiprocessor(256, 0).unwrap(), 4);
    assert_eq!(copy.blocks_per_multiprocessor(256, 100 << 10).unwrap(), 2);
    assert_eq!(copy.blocks_per_multiprocessor(256, 228 << 10).unwrap(), 0);
}

#[test]
fn an_object_is_compiled_once_for_all_orders_and_processes() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut compiles = Vec::new();
    for order in ORDERS {
        let cache_folder = Some(folder.path().to_path_buf());
        let options = EmulatorOptions { order, cache_folder, ..EmulatorOptions::default() };
        let device = Device::emulated(options, BUDGET).unwrap();
        kernel(&device, "copy", COPY);
        compiles.push(device.compiles());
    }
    assert_eq!(compiles, [1, 0, 0, 0, 0]);
}

/// A device whose compiled programs lie in a folder of its own.
fn device_in(folder: &tempfile::TempDir) -> Device {
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let cache_folder = Some(folder.path().to_path_buf());
    Device::emulated(EmulatorOptions { cache_folder, ..EmulatorOptions::default() }, BUDGET).unwrap()
}

/// A program whose kernel `works` writes a macro of its own, by a function and a type that others have too.
fn constant(name: &str, value: u64, definition: &str) -> Program {
    let source = format!(
        "#define VALUE {value}\n{definition}struct P {{ uint64_t* out; }};
        WC_DEVICE uint64_t value() {{ return VALUE; }}
        #ifdef TWICE
        WC_KERNEL(works, P, 32, 1) {{ p.out[0] = 2 * value(); }}
        #else
        WC_KERNEL(works, P, 32, 1) {{ p.out[0] = value(); }}
        #endif"
    );
    Program::new(name, source)
}

#[test]
fn programs_compiled_together_stay_apart() {
    let folder = tempfile::tempdir().unwrap();
    let device = device_in(&folder);
    let mut rig = Rig { stream: device.stream().unwrap(), device };
    let constants = [constant("one", 1, ""), constant("twice", 21, "#define TWICE\n"), constant("three", 3, "")];
    let modules = rig.device.compile_all(&constants).unwrap();
    for (module, expected) in modules.iter().zip([1, 42, 3]) {
        let output = rig.upload(&[0u64]);
        let kernel = module.kernel("works").unwrap();
        rig.stream.launch(&kernel, shape(1, 32, 0), &Params::new().buffer(&output)).unwrap();
        assert_eq!(rig.download::<u64>(&output), [expected]);
    }
    assert_eq!(rig.device.compiles(), 3);
    // One run of the compiler made the objects of all of them.
    let objects = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap());
    let is_object = |path: &Path| path.extension().is_some_and(|extension| extension == "so");
    let own =
        objects.filter(|entry| is_object(&entry.path()) && !entry.file_name().to_string_lossy().starts_with("lib"));
    let files: Vec<u64> = own.map(|entry| entry.metadata().unwrap().ino()).collect();
    assert!(files.len() == 3 && files.iter().all(|file| *file == files[0]), "{files:?}");

    // A program that does not compile fails alone.
    let broken = Program::new("broken", "int broken(");
    let others = [constant("four", 4, ""), broken.clone(), constant("five", 5, "")];
    assert!(matches!(rig.device.compile_all(&others), Err(GpuError::Compile { program, .. }) if program == "broken"));
    assert!(rig.device.compile_all(&[others[0].clone(), others[2].clone()]).is_ok());
}

#[test]
fn deferred_programs_fail_until_they_are_compiled_together() {
    let folder = tempfile::tempdir().unwrap();
    let device = device_in(&folder);
    let (there, missing) = (constant("there", 1, ""), [constant("some", 2, ""), constant("more", 3, "")]);
    device.compile(&there).unwrap();
    let fresh = device_in(&folder);
    let fails = |program: &Program| matches!(fresh.compile(program), Err(GpuError::CompilerUnavailable { .. }));
    fresh.rehearse(None, || {
        assert!(fresh.compile(&there).is_ok() && missing.iter().all(fails) && fails(&missing[0]));
    });
    assert!(missing.iter().all(|program| fresh.is_compiled(program)));
    let third = device_in(&folder);
    let other = constant("other", 4, "");
    third.rehearse(Some("some"), || {
        assert!(third.compile(&other).is_ok() && third.compile(&missing[0]).is_err());
    });
    assert!(third.compile(&missing[0]).is_ok() && third.compiles() == 1);
}

#[test]
fn a_folder_that_others_can_write_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let options = EmulatorOptions { cache_folder: Some(folder.path().to_path_buf()), ..EmulatorOptions::default() };
    let error = Device::emulated(options, BUDGET).unwrap_err();
    assert!(error.to_string().contains("WARPCUBE_EMULATOR_CACHE"), "{error}");
}

#[test]
fn of_the_options_only_definitions_reach_the_compiler() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let source = "struct P { uint64_t* out; };\nWC_KERNEL(width, P, 32, 1) { p.out[0] = WIDTH; }";
    let options = vec!["-DWIDTH=17".into(), "--maxrregcount=64".into()];
    let module = rig.device.compile(&Program::new("width", source).with_options(options)).unwrap();
    let output = rig.upload(&[0u64]);
    let width = module.kernel("width").unwrap();
    rig.stream.launch(&width, shape(1, 32, 0), &Params::new().buffer(&output)).unwrap();
    assert_eq!(rig.download::<u64>(&output), [17]);
    assert!(matches!(module.kernel("height"), Err(GpuError::Contract(_))));
}

#[test]
fn invalid_source_does_not_compile() {
    let device = device(LaneOrder::Forward);
    let compile = |name: &str, body: &str| {
        let source = format!("struct P {{ uint64_t* out; }};\nWC_KERNEL({name}, P, 32, 1) {{\n{body}\n}}");
        match device.compile(&Program::new(name, source)).err() {
            Some(GpuError::Compile { program, log }) if program == name => log,
            other => panic!("{name}: {other:?}"),
        }
    };
    assert!(compile("typo", "p.out[0] = no_such_name;").contains("typo.cu:3"));
    assert!(compile("arena", "__shared__ int sums[32];").contains("shared_memory_comes_from_wc_shared_alone"));
    assert!(compile("change", "p.out = nullptr;").contains("change.cu:3"));
}

#[test]
fn fresh_memory_is_poisoned_and_so_is_shared_memory() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let buffer = rig.device.buffer(64, "first").unwrap();
    rig.stream.fill(&buffer, 0, 1, 64).unwrap();
    rig.stream.synchronize().unwrap();
    drop(buffer);
    let buffer = rig.device.buffer(64, "second").unwrap();
    assert_eq!(rig.download::<u8>(&buffer), [0xcb; 64]);
    let source = "struct P { const uint64_t* in; uint64_t* out; };
        WC_KERNEL(shared, P, 32, 1) {
            uint64_t* arena = (uint64_t*)wc_shared();
            p.out[blockIdx.x * 32 + threadIdx.x] = arena[threadIdx.x];
            arena[threadIdx.x] = 1;
        }";
    let seen: Vec<u64> = rig.run("shared", source, shape(9, 32, 256), &[0u64], 9 * 32).unwrap();
    assert!(seen.iter().all(|word| *word == 0xa5a5_a5a5_a5a5_a5a5));
}

#[test]
fn memory_runs_out_at_its_size_and_comes_back() {
    let options = EmulatorOptions { memory_bytes: 8 << 20, ..EmulatorOptions::default() };
    let device = Device::emulated(options, BUDGET).unwrap();
    let most = device.buffer(6 << 20, "most").unwrap();
    assert_eq!(device.memory().unwrap(), (2 << 20, 8 << 20));
    let error = device.buffer(4 << 20, "more").unwrap_err();
    assert!(matches!(&error, GpuError::OutOfMemory { operation, .. } if operation == "more"), "{error}");
    drop(most);
    device.buffer(4 << 20, "more").unwrap();
}

#[test]
fn cached_blocks_are_freed_before_the_budget_is_exceeded() {
    let device = Device::emulated(EmulatorOptions::default(), 8 << 20).unwrap();
    let pool = device.pool();
    drop(device.buffer(6 << 20, "first").unwrap());
    assert_eq!((pool.usage().live, pool.usage().cached), (0, 6 << 20));
    // A cached block of that size is reused.
    drop(device.buffer(6 << 20, "first again").unwrap());
    assert_eq!(pool.usage().driver_allocations, 1);
    let other = device.buffer(4 << 20, "of another size").unwrap();
    assert_eq!((pool.usage().live, pool.usage().cached), (4 << 20, 0));
    assert_eq!(device.memory().unwrap().0, (1 << 30) - (4 << 20));
    drop(other);
    let small = device.buffer(1 << 20, "beside it").unwrap();
    assert_eq!((pool.usage().live, pool.usage().cached), (1 << 20, 4 << 20));
    drop(small);
}

#[test]
fn blocks_without_a_reservation_free_the_cached_ones() {
    let device = Device::emulated(EmulatorOptions::default(), 8 << 20).unwrap();
    let pool = device.pool();
    let covered = pool.try_reserve(8 << 20).unwrap();
    let most = device.buffer(7 << 20, "covered").unwrap();
    drop(device.buffer(1 << 20, "covered").unwrap());
    assert_eq!((pool.usage().live, pool.usage().cached), (7 << 20, 1 << 20));
    let beside = device.buffer(4 << 20, "not covered").unwrap();
    assert_eq!((pool.usage().live, pool.usage().cached, pool.usage().reserved), (11 << 20, 0, 8 << 20));
    assert!(pool.try_reserve(1).is_none());
    drop((most, beside, covered));
    drop(device.buffer(1 << 20, "again").unwrap());
    let usage = pool.usage();
    assert!(usage.live + usage.cached <= usage.budget, "{usage:?}");
}

#[test]
fn injected_faults() {
    let faults = Arc::new(EmulatorFaults::default());
    let options = EmulatorOptions { faults: faults.clone(), ..EmulatorOptions::default() };
    let device = Device::emulated(options, BUDGET).unwrap();
    let mut rig = Rig { stream: device.stream().unwrap(), device };
    let copy = kernel(&rig.device, "copy", COPY);
    let input = rig.upload(&[5u64; 100]);
    faults.fail_allocation(2);
    let output = rig.device.buffer(800, "first").unwrap();
    let error = rig.device.buffer(800, "second").unwrap_err();
    assert!(matches!(error, GpuError::OutOfMemory { .. }), "{error}");
    rig.device.buffer(800, "third").unwrap();

    let params = Params::new().buffer(&input).buffer(&output).i64(100);
    faults.refuse_launch(1);
    let error = rig.stream.launch(&copy, shape(1, 256, 0), &params).unwrap_err();
    assert!(matches!(error, GpuError::LaunchRefused { .. }) && !rig.device.is_lost(), "{error}");
    faults.set_compiler_missing(true);
    let other = Program::new("other", "struct P { uint64_t* out; };\nWC_KERNEL(other, P, 32, 1) { p.out[0] = 1; }");
    let error = rig.device.compile(&other).err().expect("the compiler is missing");
    assert!(matches!(error, GpuError::CompilerUnavailable { .. }), "{error}");
    faults.set_compiler_missing(false);
    rig.device.compile(&other).unwrap();
    faults.fail_launch(2);
    rig.stream.launch(&copy, shape(1, 256, 0), &params).unwrap();
    let error = rig.stream.launch(&copy, shape(1, 256, 0), &params).unwrap_err();
    assert!(error.is_device_lost() && rig.device.is_lost());
    assert!(rig.device.buffer(1, "too late").is_err());
}

#[test]
fn a_launch_past_the_limits_is_refused_and_the_device_works_on() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let copy = kernel(&rig.device, "copy", COPY);
    let buffer = rig.upload(&[5u64; 100]);
    let params = Params::new().buffer(&buffer).buffer(&buffer).i64(100);
    let long = (0..4096).fold(Params::new(), |params, value| params.i64(value));
    let limit = rig.device.info().shared_memory_per_block as u32;
    let refusals = [
        (shape(1, 512, 0), &params, "512 threads, and the limit is 256".to_string()),
        (shape(1, 256, limit + 1), &params, format!("{} bytes of shared memory, and the limit is {limit}", limit + 1)),
        (shape(1, 256, 0), &long, "32768 bytes of parameters, and the limit is 32764".to_string()),
    ];
    for (shape, params, words) in refusals {
        let error = rig.stream.launch(&copy, shape, params).unwrap_err();
        assert!(matches!(error, GpuError::LaunchRefused { .. }) && error.to_string().contains(&words), "{error}");
        let mut work = Work::new(&rig.device);
        let recorded = work.launch(&copy, shape, params, false).unwrap_err();
        assert_eq!(recorded.to_string(), error.to_string());
    }
    rig.assert_works();
}

#[test]
fn copies_whose_ranges_overlap_are_refused() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let values: Vec<u64> = (0..128).collect();
    let buffer = rig.upload(&values);
    let (head, tail) = (buffer.part(0, 768).unwrap(), buffer.part(512, 512).unwrap());
    for (target, source, bytes) in
        [(&buffer, &head, 8), (&head, &head, 1), (&tail, &buffer.part(256, 512).unwrap(), 257)]
    {
        let error = rig.stream.copy(target, 0, source, 0, bytes).unwrap_err();
        assert!(matches!(&error, GpuError::Contract(_)), "{error}");
    }
    let error = rig.stream.copy(&buffer, 255, &buffer, 0, 256).unwrap_err();
    assert_eq!(error.to_string(), "GPU-008 a copy of 256 bytes to 255 bytes from its source: the ranges overlap");
    rig.stream.copy(&tail, 0, &head, 0, 512).unwrap();
    rig.stream.copy(&head, 5, &head, 5, 0).unwrap();
    let expected: Vec<u64> = (0..64).chain(0..64).collect();
    assert_eq!(rig.download::<u64>(&buffer), expected);
}

#[test]
fn a_loss_found_by_an_allocation_is_remembered() {
    let faults = Arc::new(EmulatorFaults::default());
    let options = EmulatorOptions { faults: faults.clone(), ..EmulatorOptions::default() };
    let device = Device::emulated(options, BUDGET).unwrap();
    faults.lose_at_allocation(1);
    assert!(device.buffer(8, "a column").unwrap_err().is_device_lost());
    assert!(device.is_lost() && device.stream().is_err() && device.memory().is_err());
    assert_eq!(device.pool().usage().live, 0);
}

/// A device whose faults the test sets, with a stream.
fn faulty() -> (Rig, Arc<EmulatorFaults>) {
    let faults = Arc::new(EmulatorFaults::default());
    let options = EmulatorOptions { faults: faults.clone(), ..EmulatorOptions::default() };
    let device = Device::emulated(options, BUDGET).unwrap();
    (Rig { stream: device.stream().unwrap(), device }, faults)
}

#[test]
fn a_failed_wait_loses_the_device_and_leaks_what_its_work_used() {
    for fails in [true, false] {
        let (Rig { device, mut stream }, faults) = faulty();
        let module = device.compile(&Program::new("copy", COPY)).unwrap();
        let (input, output) = (device.buffer(800, "input").unwrap(), device.buffer(800, "output").unwrap());
        let host = Arc::new(device.host_buffer(800).unwrap());
        stream.upload_from(&input, 0, &host, 0, 800).unwrap();
        let params = Params::new().buffer(&input).buffer(&output).i64(100);
        stream.launch(&module.kernel("copy").unwrap(), shape(1, 256, 0), &params).unwrap();
        if fails {
            faults.fail_wait(1);
        }
        let waited = stream.synchronize();
        assert_eq!((waited.is_err_and(|error| error.is_device_lost()), device.is_lost()), (fails, fails));
        let (left_module, left_host) = (Arc::downgrade(&module), Arc::downgrade(&host));
        drop((input, output, params, host, module, stream));
        assert_eq!((left_module.upgrade().is_some(), left_host.upgrade().is_some()), (fails, fails));
        assert_eq!(device.pool().usage().live > 0, fails);
    }
}

#[test]
fn every_wait_that_fails_loses_the_device() {
    type Wait = fn(&mut Rig) -> Result<(), GpuError>;
    let waits: [Wait; 5] = [
        |rig| rig.stream.download(&rig.device.buffer(8, "test")?, 0, &mut [0; 8]),
        |rig| rig.stream.upload(&rig.device.buffer(1 << 20, "test")?, 0, &vec![0; 1 << 20]),
        |rig| rig.stream.record()?.synchronize(),
        |rig| {
            let buffer = rig.device.buffer(8, "test")?;
            let mut work = Work::new(&rig.device);
            let output = work.download(&buffer, 0, 8)?;
            let mut recording = rig.stream.prepare(work)?;
            let ran = rig.stream.run(&mut recording, &[&buffer]);
            // The copy may still write what the recording owns.
            assert!(recording.output(&output).is_err_and(|error| error.is_device_lost()));
            ran
        },
        |rig| {
            rig.stream.fill(&rig.device.buffer(8, "test")?, 0, 0, 8)?;
            drop(std::mem::replace(&mut rig.stream, rig.device.stream()?));
            rig.stream.record().map(drop)
        },
    ];
    for wait in waits {
        let (mut rig, faults) = faulty();
        faults.fail_wait(1);
        let lost = wait(&mut rig);
        assert!(lost.as_ref().is_err_and(GpuError::is_device_lost) && rig.device.is_lost(), "{lost:?}");
        assert!(rig.stream.record().is_err(), "a lost device refuses work");
    }
}

#[test]
fn page_locked_memory_that_a_download_may_still_write_is_not_freed() {
    let (mut rig, faults) = faulty();
    let buffer = rig.upload(&[5u64; 100]);
    let mut host = rig.device.host_buffer(9 << 20).unwrap();
    faults.fail_wait(1);
    assert!(rig.stream.download(&buffer, 0, &mut host.as_mut_slice()[..800]).is_err());
    faults.hold_host_free();
    drop(host);
    assert!(!faults.wait_until_held(Duration::from_millis(100)), "a background thread frees it");
}

#[test]
fn no_copy_of_a_download_begins_if_a_range_is_refused() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let buffer = rig.upload(&[5u64; 4]);
    let (mut first, mut second) = ([0; 8], [0; 8]);
    let refused = rig.stream.download_all(&buffer, &mut [(0, &mut first), (25, &mut second)]);
    assert!(matches!(refused, Err(GpuError::Contract(_))) && first == [0; 8], "{refused:?}");
}

#[test]
fn cached_blocks_of_a_size_are_freed_in_the_background() {
    let device = Device::emulated(EmulatorOptions::default(), BUDGET).unwrap();
    let kept = device.buffer(3 << 20, "kept").unwrap();
    drop((device.buffer(2 << 20, "first").unwrap(), device.buffer(3 << 20, "second").unwrap()));
    device.free_cached(2 << 20);
    device.settle();
    let usage = device.pool().usage();
    assert_eq!((usage.live, usage.cached), (3 << 20, 3 << 20), "live blocks and other sizes stay");
    assert_eq!(device.memory().unwrap().0, (1 << 30) - (6 << 20));
    drop(kept);
    device.free_cached(3 << 20);
    device.free_cached(3 << 20);
    // A surplus block is counted once, reused or not.
    drop(device.buffer(3 << 20, "third").unwrap());
    device.free_cached(3 << 20);
    device.settle();
    assert_eq!((device.pool().usage().live, device.pool().usage().cached), (0, 0));
    assert_eq!(device.memory().unwrap().0, 1 << 30);
}

#[test]
fn small_host_memory_is_cached_up_to_a_limit() {
    let faults = Arc::new(EmulatorFaults::default());
    let options = EmulatorOptions { faults: faults.clone(), ..EmulatorOptions::default() };
    let device = Device::emulated(options, BUDGET).unwrap();
    let mut first = device.host_buffer(5000).unwrap();
    let address = first.as_slice().as_ptr();
    first.as_mut_slice().fill(7);
    drop(first);
    let second = device.host_buffer(8192).unwrap();
    assert_eq!(second.as_slice().as_ptr(), address, "sizes up to one power of two share a block");
    assert!(second.as_slice().iter().all(|byte| *byte == 0), "a block that is used again holds zeros");
    // The cache holds eight blocks of 8 MiB.
    let mut blocks: Vec<_> = (0..9).map(|_| device.host_buffer(8 << 20).unwrap()).collect();
    faults.hold_host_free();
    blocks.truncate(1);
    device.settle();
    assert!(!faults.wait_until_held(Duration::ZERO), "cached blocks are not freed");
    drop(blocks);
    assert!(faults.wait_until_held(Duration::from_secs(60)), "the ninth block is freed");
    faults.release();
    device.settle();
}

#[test]
fn host_memory_is_freed_in_the_background() {
    let faults = Arc::new(EmulatorFaults::default());
    let options = EmulatorOptions { faults: faults.clone(), ..EmulatorOptions::default() };
    let device = Device::emulated(options, BUDGET).unwrap();
    // Sizes beyond what is cached.
    let (first, second) = (device.host_buffer(9 << 20).unwrap(), device.host_buffer(10 << 20).unwrap());
    faults.hold_host_free();
    drop(first);
    assert!(faults.wait_until_held(Duration::from_secs(60)), "no thread frees the memory");
    // The drops returned while the free waits; the same thread frees the second buffer.
    drop(second);
    let settled = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            device.settle();
            settled.store(true, Ordering::SeqCst);
        });
        std::thread::sleep(Duration::from_millis(50));
        assert!(!settled.load(Ordering::SeqCst), "settling waits for the free");
        faults.release();
    });
    assert!(settled.load(Ordering::SeqCst) && !faults.wait_until_held(Duration::ZERO));
}
