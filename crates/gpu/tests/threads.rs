//! Joining waits until threads have destroyed their thread-local state.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use warpcube_gpu::Threads;

#[derive(Default)]
struct Slow(Option<Arc<AtomicUsize>>);

impl Drop for Slow {
    fn drop(&mut self) {
        thread::sleep(Duration::from_millis(20));
        self.0.take().map(|ended| ended.fetch_add(1, Ordering::Relaxed));
    }
}

thread_local! {
    static KEPT: Cell<Slow> = Cell::default();
}

#[test]
fn a_join_waits_for_thread_local_state() {
    let (threads, ended) = (Threads::default(), Arc::new(AtomicUsize::new(0)));
    for _ in 0..3 {
        let ended = ended.clone();
        let work = move || KEPT.with(|kept| kept.set(Slow(Some(ended))));
        threads.spawn("slow", work).unwrap();
    }
    threads.join();
    assert_eq!(ended.load(Ordering::Relaxed), 3);
    let told = ended.clone();
    threads.spawn("dropped", move || KEPT.with(|kept| kept.set(Slow(Some(told))))).unwrap();
    drop(threads);
    assert_eq!(ended.load(Ordering::Relaxed), 4);
}

#[test]
fn scoped_threads_are_joined_likewise() {
    let ended = Arc::new(AtomicUsize::new(0));
    let work = |number| KEPT.with(|kept| kept.set(Slow((number > 0).then(|| ended.clone()))));
    Threads::run(3, work);
    assert_eq!(ended.load(Ordering::Relaxed), 2);
    let panicked = std::panic::catch_unwind(|| Threads::run(2, |number| assert_eq!(number, 0)));
    assert!(panicked.is_err());
}

#[test]
fn a_thread_may_drop_the_last_handle_of_its_threads() {
    let threads = Arc::new(Threads::default());
    let (own, (told, is_told)) = (threads.clone(), std::sync::mpsc::channel());
    let (go, waits) = std::sync::mpsc::channel::<()>();
    let work = move || {
        _ = waits.recv();
        drop(own);
        told.send(()).unwrap();
    };
    threads.spawn("last", work).unwrap();
    drop(threads);
    drop(go);
    is_told.recv().unwrap();
}
