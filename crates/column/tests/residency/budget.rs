//! Eviction and waits of statements under a device budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use warpcube_column::{ColumnError, LoadLimits};
use warpcube_gpu::{GpuError, size_class};

use crate::source::*;

/// Rows of a column of 128 KiB.
const ROWS: usize = 16 << 10;

fn column_bytes() -> u64 {
    size_class(ROWS * 8) as u64
}

#[test]
fn the_least_recently_used_column_leaves() {
    let source = Source::integers("t", 4, ROWS);
    let residency = residency(3 * column_bytes());
    for column in [0, 1, 2, 0] {
        drop(admit(&residency, &source, &[column], 0).unwrap());
    }
    drop(admit(&residency, &source, &[3], 0).unwrap());
    let resident = |column| residency.is_resident("t", "1", &[column]);
    assert_eq!([0, 1, 2, 3].map(resident), [true, false, true, true]);
    assert_eq!(source.scans(), [vec![0], vec![1], vec![2], vec![3]]);
    assert_eq!(residency.summaries()[0].columns.iter().map(|column| column.hits).collect::<Vec<_>>(), [1, 0, 0]);
    let usage = residency.device().pool().usage();
    assert!(usage.reserved_peak <= usage.budget && usage.live <= usage.budget, "{usage:?}");
}

#[test]
fn pinned_columns_stay_and_the_error_names_the_numbers() {
    let source = Source::integers("t", 3, ROWS);
    let residency = residency(2 * column_bytes());
    let error = admit(&residency, &source, &[0, 1, 2], 0).unwrap_err();
    let ColumnError::OverBudget { purpose, wanted, budget, .. } = &error else { panic!("{error}") };
    assert_eq!((purpose.as_str(), *wanted, *budget), ("table 't'", column_bytes(), 2 * column_bytes()));
    assert_eq!(residency.device().pool().usage().reserved, 0, "a refused statement holds no memory");
    let pinned = admit(&residency, &source, &[0, 1], 0).unwrap();
    assert!(residency.summaries()[0].columns.iter().all(|column| column.pinned));
    assert_eq!(values(&residency, &pinned.tables[0], 1)[5], 51);
    drop(pinned);
    assert!(residency.summaries()[0].columns.iter().all(|column| !column.pinned));
}

#[test]
fn memory_for_results_evicts_columns_too() {
    let source = Source::integers("t", 2, ROWS);
    let residency = residency(2 * column_bytes());
    drop(admit(&residency, &source, &[0], 0).unwrap());
    let pinned = admit(&residency, &source, &[1], column_bytes()).unwrap();
    assert_eq!(pinned.transient.bytes(), column_bytes());
    assert!(!residency.is_resident("t", "1", &[0]) && residency.is_resident("t", "1", &[1]));
}

#[test]
fn a_load_does_not_evict_columns_of_its_statement() {
    let (one, two) = (Source::integers("one", 2, ROWS), Source::integers("two", 2, ROWS));
    let residency = residency(3 * column_bytes());
    drop(admit(&residency, &one, &[0], 0).unwrap());
    drop(admit(&residency, &two, &[0, 1], 0).unwrap());
    // Column 0 of `one` is the oldest, but the statement needs it: columns of `two` are evicted.
    let pinned = admit(&residency, &one, &[1, 0], 0).unwrap();
    assert_eq!(one.scans(), [vec![0], vec![1]]);
    assert_eq!(values(&residency, &pinned.tables[0], 1)[1], 10);
}

#[test]
fn concurrent_statements_past_the_budget_are_all_admitted() {
    let sources: Vec<Source> = (0..4).map(|table| Source::integers(&format!("t{table}"), 2, ROWS)).collect();
    // A statement needs four columns and a result; the budget has room for one and a half.
    let residency = Arc::new(residency(7 * column_bytes() + column_bytes() / 2));
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4usize {
            let (residency, sources, done) = (&residency, &sources, &done);
            scope.spawn(move || {
                for round in 0..8 {
                    let (first, second) = ((thread + round) % 4, (thread + round * 3 + 1) % 4);
                    let requests = [sources[first].request(&[0, 1]), sources[second].request(&[1, 0])];
                    let pinned = admit_with(residency, &requests, column_bytes(), &plain())
                        .unwrap_or_else(|error| panic!("thread {thread} round {round}: {error}"));
                    assert_eq!(values(residency, &pinned.tables[0], 1)[7], 71);
                    assert_eq!(values(residency, &pinned.tables[1], 0)[7], 71);
                    std::thread::sleep(Duration::from_millis(1));
                    done.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!(done.into_inner(), 32);
    let usage = residency.device().pool().usage();
    assert!(usage.reserved_peak <= usage.budget, "{usage:?}");
    residency.clear();
    assert_eq!(residency.device().pool().usage().reserved, 0);
}

#[test]
fn one_load_serves_all_waiting_statements() {
    let source = Source::integers("t", 1, ROWS);
    let residency = residency(8 * column_bytes());
    source.0.held.store(true, Ordering::SeqCst);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| admit(&residency, &source, &[0], 0).map(|pinned| pinned.loaded.rows)))
            .collect();
        while source.0.reading.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        source.0.held.store(false, Ordering::SeqCst);
        let mut rows: Vec<u64> = threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect();
        rows.sort_unstable();
        assert_eq!(rows, [0, 0, ROWS as u64]);
    });
    assert_eq!(source.scans(), [vec![0]]);
}

#[test]
fn a_cancelled_load_stops_and_releases_its_memory() {
    let source = Source::integers("t", 1, ROWS);
    let residency = residency(8 * column_bytes());
    source.0.held.store(true, Ordering::SeqCst);
    let limits = LoadLimits { cancelled: Arc::new(AtomicBool::new(false)), ..plain() };
    std::thread::scope(|scope| {
        let load = scope.spawn(|| admit_with(&residency, &[source.request(&[0])], 0, &limits).map(|_| ()));
        while source.0.reading.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        limits.cancelled.store(true, Ordering::SeqCst);
        source.0.held.store(false, Ordering::SeqCst);
        let error = load.join().unwrap().unwrap_err();
        assert!(matches!(error, ColumnError::Gpu(GpuError::Cancelled)), "{error}");
    });
    assert_eq!(residency.device().pool().usage().reserved, 0);
    assert_eq!(limits.rows_done.load(Ordering::SeqCst), 4096);
    drop(admit(&residency, &source, &[0], 0).unwrap());
}

#[test]
fn a_foreground_load_cancels_a_background_load() {
    let (late, urgent) = (Source::integers("late", 1, ROWS), Source::integers("urgent", 1, ROWS));
    let residency = residency(8 * column_bytes());
    late.0.held.store(true, Ordering::SeqCst);
    let limits = LoadLimits { cancelled: Arc::default(), in_background: true, ..plain() };
    let patience = Instant::now() + Duration::from_secs(60);
    std::thread::scope(|scope| {
        let in_background = scope.spawn(|| admit_with(&residency, &[late.request(&[0])], 0, &limits).map(|_| ()));
        while late.0.reading.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        let goes_first = scope.spawn(|| drop(admit(&residency, &urgent, &[0], 0).unwrap()));
        // The scan that is held ends in any case.
        while !limits.cancelled.load(Ordering::SeqCst) && Instant::now() < patience {
            std::thread::yield_now();
        }
        late.0.held.store(false, Ordering::SeqCst);
        let error = in_background.join().unwrap().unwrap_err();
        assert!(matches!(error, ColumnError::Gpu(GpuError::Cancelled)), "{error}");
        goes_first.join().unwrap();
    });
    assert_eq!(residency.summaries().len(), 1);
    let again = LoadLimits { in_background: true, ..plain() };
    drop(admit_with(&residency, &[late.request(&[0])], 0, &again).unwrap());
    let lacks_room = admit_with(&residency, &[late.request(&[0])], 8 * column_bytes(), &again);
    assert!(matches!(lacks_room.map(|_| ()).unwrap_err(), ColumnError::OverBudget { .. }));
}

#[test]
fn a_waiting_statement_can_be_cancelled() {
    let source = Source::integers("t", 2, ROWS);
    let residency = residency(column_bytes());
    let held = admit(&residency, &source, &[0], 0).unwrap();
    let limits = plain();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| admit_with(&residency, &[source.request(&[1])], 0, &limits).map(|_| ()));
        std::thread::sleep(Duration::from_millis(60));
        assert!(!waits.is_finished());
        limits.cancelled.store(true, Ordering::SeqCst);
        assert!(matches!(waits.join().unwrap().unwrap_err(), ColumnError::Gpu(GpuError::Cancelled)));
    });
    drop(held);
}

#[test]
fn an_evicted_table_releases_its_memory() {
    let (one, two) = (Source::integers("one", 2, ROWS), Source::integers("two", 1, ROWS));
    let residency = residency(8 * column_bytes());
    let pinned = admit(&residency, &one, &[0, 1], 0).unwrap();
    drop(admit(&residency, &two, &[0], 0).unwrap());
    assert_eq!(residency.evict_by_name("one").map(|table| table.columns.len()), Some(2));
    assert!(residency.evict_by_name("none").is_none());
    assert_eq!(residency.device().pool().usage().reserved, 3 * column_bytes());
    assert_eq!(values(&residency, &pinned.tables[0], 0)[3], 30, "pins outlive eviction");
    drop(pinned);
    assert_eq!(residency.device().pool().usage().reserved, column_bytes());
}

#[test]
fn resident_statements_wait_for_no_load_and_waits_end_when_cancelled() {
    let [slow, warm, cold] = ["slow", "warm", "cold"].map(|name| Source::integers(name, 1, ROWS));
    let residency = residency(8 * column_bytes());
    let running = admit(&residency, &warm, &[0], 0).unwrap();
    slow.0.held.store(true, Ordering::SeqCst);
    let (large, late) = (plain(), plain());
    let (over, patience) = (8 * column_bytes(), Instant::now() + Duration::from_secs(60));
    std::thread::scope(|scope| {
        let load = scope.spawn(|| admit(&residency, &slow, &[0], 0).map(|pinned| pinned.loaded.rows));
        while slow.0.reading.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        // One statement has no room beside the running one and waits for exclusive admission; another has to load.
        let wants_all = scope.spawn(|| admit_with(&residency, &[warm.request(&[0])], over, &large).map(|_| ()));
        let loads_too = scope.spawn(|| admit_with(&residency, &[cold.request(&[0])], 0, &late).map(|_| ()));
        std::thread::sleep(Duration::from_millis(60));
        assert!(!wants_all.is_finished() && !loads_too.is_finished());
        let resident = scope.spawn(|| admit(&residency, &warm, &[0], column_bytes()).map(|pinned| pinned.loaded.rows));
        large.cancelled.store(true, Ordering::SeqCst);
        late.cancelled.store(true, Ordering::SeqCst);
        let ended = || resident.is_finished() && wants_all.is_finished() && loads_too.is_finished();
        while !ended() && Instant::now() < patience {
            std::thread::yield_now();
        }
        let ended = ended();
        slow.0.held.store(false, Ordering::SeqCst);
        assert!(ended, "a statement waits for the load");
        assert_eq!(resident.join().unwrap().unwrap(), 0);
        for waited in [wants_all, loads_too] {
            let error = waited.join().unwrap().unwrap_err();
            assert!(matches!(error, ColumnError::Gpu(GpuError::Cancelled)), "{error}");
        }
        assert_eq!(load.join().unwrap().unwrap(), ROWS as u64);
    });
    drop(running);
}

#[test]
fn a_statement_over_budget_is_overtaken_for_a_limited_time() {
    let (warm, cold) = (Source::integers("warm", 1, ROWS), Source::integers("cold", 1, ROWS));
    let residency = residency(4 * column_bytes());
    drop(admit(&residency, &warm, &[0], 0).unwrap());
    let (ended, large) = (AtomicBool::new(false), AtomicBool::new(false));
    let patience = Instant::now() + Duration::from_secs(60);
    let overtaking = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        // The runs of two resident statements overlap, so that half of the device is never free.
        for _ in 0..2 {
            scope.spawn(|| {
                while !ended.load(Ordering::SeqCst) && Instant::now() < patience {
                    let pinned = admit(&residency, &warm, &[0], 0).unwrap();
                    overtaking.fetch_add(1, Ordering::SeqCst);
                    let next = overtaking.load(Ordering::SeqCst) + 1;
                    let handed_over = || overtaking.load(Ordering::SeqCst) >= next || large.load(Ordering::SeqCst);
                    // The run ends after the other statement began, or if it cannot begin.
                    let end = Instant::now() + Duration::from_millis(50);
                    while !handed_over() && Instant::now() < end {
                        std::thread::yield_now();
                    }
                    drop(pinned);
                }
            });
        }
        while overtaking.load(Ordering::SeqCst) < 4 {
            std::thread::yield_now();
        }
        let wants_all = scope.spawn(|| {
            let pinned = admit(&residency, &cold, &[0], 3 * column_bytes());
            large.store(true, Ordering::SeqCst);
            pinned.map(|pinned| pinned.transient.bytes())
        });
        while !wants_all.is_finished() && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(1));
        }
        let admitted = wants_all.is_finished();
        ended.store(true, Ordering::SeqCst);
        assert!(admitted, "later statements overtake it");
        assert_eq!(wants_all.join().unwrap().unwrap(), 3 * column_bytes());
    });
    // The turn is over: no statement waits for it.
    drop(admit(&residency, &warm, &[0], 0).unwrap());
}

#[test]
fn statements_behind_a_turn_can_be_cancelled_and_run_after_it() {
    let (warm, cold) = (Source::integers("warm", 1, ROWS), Source::integers("cold", 1, ROWS));
    let residency = residency(4 * column_bytes());
    let held = admit(&residency, &warm, &[0], 0).unwrap();
    let (large, late, over) = (plain(), plain(), 4 * column_bytes());
    std::thread::scope(|scope| {
        let wants_all = scope.spawn(|| admit_with(&residency, &[cold.request(&[0])], over, &large).map(|_| ()));
        std::thread::sleep(Duration::from_millis(900));
        // The statement has a turn by now.
        let waits = scope.spawn(|| admit_with(&residency, &[warm.request(&[0])], 0, &late).map(|_| ()));
        let goes_on = scope.spawn(|| admit(&residency, &warm, &[0], 0).map(|_| ()));
        let loads = scope.spawn(|| admit(&residency, &cold, &[0], 0).map(|_| ()));
        std::thread::sleep(Duration::from_millis(60));
        assert!(!wants_all.is_finished() && !waits.is_finished() && !goes_on.is_finished() && !loads.is_finished());
        late.cancelled.store(true, Ordering::SeqCst);
        assert!(matches!(waits.join().unwrap().unwrap_err(), ColumnError::Gpu(GpuError::Cancelled)));
        assert!(!goes_on.is_finished() && !loads.is_finished());
        large.cancelled.store(true, Ordering::SeqCst);
        assert!(matches!(wants_all.join().unwrap().unwrap_err(), ColumnError::Gpu(GpuError::Cancelled)));
        goes_on.join().unwrap().unwrap();
        loads.join().unwrap().unwrap();
    });
    drop(held);
}

#[test]
fn a_block_that_can_never_fit_is_refused_with_its_size() {
    let residency = residency(4 * column_bytes());
    let error = residency.device().buffer(5 * column_bytes() as usize, "a table of groups").unwrap_err();
    let GpuError::OutOfMemory { operation, wanted, free, budget } = &error else { panic!("{error}") };
    assert_eq!((operation.as_str(), *free, *budget), ("a table of groups", 4 * column_bytes(), 4 * column_bytes()));
    assert_eq!(*wanted, size_class(5 * column_bytes() as usize) as u64);
    drop(residency.device().buffer(4 * column_bytes() as usize, "a table of groups").unwrap());
}
