//! A device that fails: the statement has one error or the CPU's answer with the reason, and the session goes on.

use std::sync::Arc;

use warpcube_gpu::{Device, EmulatorFaults, EmulatorOptions};
use warpcube_sql::{Connection, Database, DatabaseOptions, Place, Summary};

use crate::support::{one, pool, rows, run, settle};

/// What the statements of these tests ask, and its answer.
const QUERY: &str = "SELECT k, sum(x) AS s FROM t GROUP BY k";
const ANSWER: [&str; 4] = ["| 0 | 166833 |", "| 1 | 167167 |", "| 2 | 166500 |", "| k | s      |"];

/// A session over a device that fails when it is told to.
async fn session(placement: &str) -> (Connection, Arc<EmulatorFaults>) {
    let options = DatabaseOptions::new().with("warpcube.device", "emulated").with("warpcube.placement", placement);
    let session = Database::open(options).unwrap().connect();
    let faults = Arc::new(EmulatorFaults::default());
    let emulator = EmulatorOptions { faults: faults.clone(), ..EmulatorOptions::default() };
    session.database().device().take_up(Device::emulated(emulator, 256 << 20).unwrap());
    let create = "CREATE TABLE t AS SELECT value % 3 AS k, value AS x FROM generate_series(1, 1000)";
    session.collect(create).await.unwrap();
    (session, faults)
}

/// Runs the query; where its fragment ran and why.
async fn answered(session: &Connection) -> (Place, String) {
    let (batches, Summary { fragments, .. }) = run(session, QUERY).await.unwrap();
    assert_eq!(rows(&batches), ANSWER);
    let last = fragments.last().expect("a fragment").clone();
    (last.place, last.reason.unwrap_or_default())
}

async fn failed(session: &Connection) -> String {
    run(session, QUERY).await.map(|(batches, _)| rows(&batches)).unwrap_err()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_device_ends_its_statement_and_not_the_session() {
    for warm in [false, true] {
        let (session, faults) = session("auto").await;
        if warm {
            assert_eq!(answered(&session).await.0, Place::Gpu);
        }
        faults.fail_launch(1);
        let error = failed(&session).await;
        assert!(error.starts_with("GPU-006 the device was lost in kernel '"), "{error}");
        assert!(error.ends_with("; queries run on the CPU until a restart"), "{error}");
        // From here on the CPU answers, with as many partitions as it has, and says why.
        for _ in 0..2 {
            let (place, reason) = answered(&session).await;
            assert_eq!(place, Place::Cpu);
            assert!(reason.contains("the device was lost in an earlier statement (GPU-006)"), "{reason}");
        }
        let plan = session.execute(QUERY).await.unwrap().plan;
        assert!(!format!("{plan:?}").contains("DeviceExec"));
        // Nothing of the session is lost with the device.
        session.collect("INSERT INTO t VALUES (7, 1)").await.unwrap();
        assert_eq!(one(&session, "SELECT count(*), max(k) FROM t").await, ("1001 7".into(), vec![Place::Cpu]));
        session.collect("SHOW DEVICE TABLES").await.unwrap();
        let load = session.collect("LOAD TABLE t").await.unwrap_err().to_string();
        assert!(load.starts_with("GPU-006 "), "{load}");
        // Under placement `cuda` it is an error.
        session.set("warpcube.placement", "cuda").unwrap();
        assert!(failed(&session).await.starts_with("GPU-006 the device was lost in an earlier statement"));
        session.set("warpcube.placement", "auto").unwrap();
        assert_eq!(pool(&session).live, pool(&session).reserved);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_lost_while_columns_are_loaded() {
    let (session, faults) = session("auto").await;
    faults.lose_at_allocation(1);
    let error = failed(&session).await;
    assert!(error.starts_with("GPU-006 the device was lost in allocating "), "{error}");
    assert_eq!(answered(&session).await.0, Place::Cpu);
    assert_eq!((pool(&session).live, pool(&session).reserved), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn statements_in_flight_fail_by_name_or_take_the_cpu() {
    let (session, faults) = session("auto").await;
    assert_eq!(answered(&session).await.0, Place::Gpu);
    // The fourth launch from now, whosever it is.
    faults.fail_launch(4);
    let statements: Vec<_> = (0..12)
        .map(|_| {
            let session = session.clone();
            tokio::spawn(async move { run(&session, QUERY).await })
        })
        .collect();
    let mut lost = 0;
    for statement in statements {
        match statement.await.unwrap() {
            Ok((batches, _)) => assert_eq!(rows(&batches), ANSWER),
            Err(error) => {
                assert!(error.starts_with("GPU-006 the device was lost in "), "{error}");
                lost += 1;
            }
        }
    }
    assert!(lost > 0);
    assert_eq!(answered(&session).await.0, Place::Cpu);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_launch_that_is_refused_leaves_the_answer_to_the_cpu_and_the_device_goes_on() {
    for placement in ["auto", "cuda"] {
        let (session, faults) = session(placement).await;
        faults.refuse_launch(1);
        let reason = match placement {
            "auto" => {
                let (place, reason) = answered(&session).await;
                assert_eq!(place, Place::Cpu);
                reason
            }
            _ => failed(&session).await,
        };
        assert!(reason.starts_with("GPU-010 launching kernel '") && reason.contains("EMULATED_REFUSAL"), "{reason}");
        settle(&session).await;
        assert_eq!(answered(&session).await, (Place::Gpu, String::new()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_that_runs_out_leaves_the_answer_to_the_cpu() {
    let (session, faults) = session("auto").await;
    let mut failures = 0;
    // Every buffer of the statement in turn, until there are no more.
    loop {
        session.collect("EVICT TABLE t").await.unwrap();
        faults.fail_allocation(failures + 1);
        let (place, reason) = answered(&session).await;
        faults.fail_allocation(0);
        settle(&session).await;
        if place == Place::Gpu {
            break;
        }
        assert!(reason.starts_with("GPU-004 out of device memory: "), "{reason}");
        failures += 1;
    }
    assert!(failures >= 3, "two columns and the groups have a buffer each, {failures} failed");
    session.set("warpcube.placement", "cuda").unwrap();
    faults.fail_allocation(1);
    assert!(failed(&session).await.starts_with("GPU-004 out of device memory: "));
    assert_eq!(answered(&session).await.0, Place::Gpu);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gpu_without_its_compiler_leaves_the_answer_to_the_cpu() {
    let (session, faults) = session("auto").await;
    faults.set_compiler_missing(true);
    for _ in 0..2 {
        let (place, reason) = answered(&session).await;
        assert_eq!(place, Place::Cpu);
        assert!(reason.starts_with("GPU-002 no usable CUDA run-time compiler (NVRTC): "), "{reason}");
    }
    session.set("warpcube.placement", "cuda").unwrap();
    assert!(failed(&session).await.starts_with("GPU-002 "));
    settle(&session).await;
    faults.set_compiler_missing(false);
    assert_eq!(answered(&session).await.0, Place::Gpu);
    // What is compiled needs no compiler.
    faults.set_compiler_missing(true);
    assert_eq!(answered(&session).await.0, Place::Gpu);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_larger_than_the_budget_stays_on_the_cpu() {
    let options = DatabaseOptions::new().with("warpcube.device", "emulated").with("warpcube.device_memory", "14000");
    let session = Database::open(options.with("warpcube.encoding", "plain")).unwrap().connect();
    let create = "CREATE TABLE t AS SELECT value % 3 AS k, value AS x FROM generate_series(1, 1000)";
    session.collect(create).await.unwrap();
    // One column alone has room, and so has its sum.
    assert_eq!(one(&session, "SELECT sum(x) FROM t").await, ("500500".into(), vec![Place::Gpu]));
    for _ in 0..2 {
        let (place, reason) = answered(&session).await;
        assert_eq!(place, Place::Cpu);
        assert!(reason.starts_with("COL-002 the statement does not fit the device budget: "), "{reason}");
    }
    session.set("warpcube.placement", "cuda").unwrap();
    let error = failed(&session).await;
    assert!(error.starts_with("COL-002 ") && error.contains("raise warpcube.device_memory"), "{error}");
    settle(&session).await;
    // With another budget the device is opened anew.
    session.set("warpcube.device_memory", "64MiB").unwrap();
    assert_eq!(answered(&session).await, (Place::Gpu, String::new()));
}

/// Where there is no GPU; with one, there is nothing to see.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_gpu_the_cpu_answers_and_the_session_says_why() {
    if Device::cuda_count().is_ok_and(|count| count > 0) {
        return;
    }
    let session = Database::open(DatabaseOptions::new()).unwrap().connect();
    let reason = session.database().device().no_gpu().expect("there is no device");
    assert!(reason.starts_with("GPU-001 no usable GPU: "), "{reason}");
    session.collect("CREATE TABLE t AS VALUES (1), (2)").await.unwrap();
    assert_eq!(one(&session, "SELECT sum(column1) FROM t").await, ("3".into(), vec![Place::Cpu]));
    // Columns are kept in host memory in place of a GPU's, unless it is to keep none.
    session.collect("LOAD TABLE t").await.unwrap();
    let (_, summary) = run(&session, "SELECT sum(column1) FROM t").await.unwrap();
    assert!(summary.fragments.iter().all(|fragment| fragment.place == Place::Columns), "{summary:?}");
    session.set("warpcube.host_memory", "0").unwrap();
    assert_eq!(one(&session, "SELECT sum(column1) FROM t").await, ("3".into(), vec![]));
    let error = session.collect("LOAD TABLE t").await.unwrap_err().to_string();
    assert!(error.starts_with("SQL-011 LOAD TABLE needs a device and this session has none: GPU-001"), "{error}");
    session.set("warpcube.host_memory", "64MiB").unwrap();
    session.collect("LOAD TABLE t").await.unwrap();
    let insisted = Database::open(DatabaseOptions::new().with("warpcube.device", "cuda")).unwrap_err().to_string();
    assert!(insisted.starts_with("CFG-003 warpcube.device = 'cuda': GPU-001"), "{insisted}");
    // An open session keeps what it has.
    let error = session.set("warpcube.device", "cuda").unwrap_err().to_string();
    assert!(error.starts_with("CFG-003 "), "{error}");
    assert_eq!(one(&session, "SELECT sum(column1) FROM t").await.0, "3");
}
