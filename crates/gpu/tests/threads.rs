//! Threads are joined to their very end.

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
fn threads_are_waited_for_until_they_have_given_up_what_they_kept() {
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
fn threads_of_a_scope_are_waited_for_as_long() {
    let ended = Arc::new(AtomicUsize::new(0));
    let work = |number| KEPT.with(|kept| kept.set(Slow((number > 0).then(|| ended.clone()))));
    Threads::run(3, work);
    assert_eq!(ended.load(Ordering::Relaxed), 2);
    let panicked = std::panic::catch_unwind(|| Threads::run(2, |number| assert_eq!(number, 0)));
    assert!(panicked.is_err());
}

#[test]
fn who_drops_them_may_be_one_of_them() {
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
