//! The rules of the queue, with a compiler that the test controls.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{scope, sleep};

use super::*;

/// A client of a queue whose compiler reports each beginning and ends at the test's signal. An image is the source.
struct Bench {
    client: Client,
    begun: Receiver<String>,
    go_on: Sender<Result<()>>,
}

impl Bench {
    fn new() -> Bench {
        Bench::of(true)
    }

    fn of(slow: bool) -> Bench {
        let ((says, begun), (go_on, goes_on)) = (channel(), channel::<Result<()>>());
        let (says, goes_on) = (Mutex::new(says), Mutex::new(goes_on));
        let queue = Queue::new(slow, move |program, architecture| {
            says.lock().send(format!("{}/{architecture}", program.name())).unwrap();
            goes_on.lock().recv().unwrap().map(|()| (Image::Cubin(program.source().into()), true))
        });
        Bench { client: Client::new(Arc::new(queue)), begun, go_on }
    }

    /// Another client of the same queue.
    fn other(&self) -> Client {
        Client::new(self.client.queue.clone())
    }

    fn request(&self, name: &str, priority: Priority) -> Handle {
        self.client.request(&program(name), 90, priority)
    }

    /// The next program that begins.
    fn next(&self) -> String {
        self.begun.recv_timeout(Duration::from_secs(60)).expect("a program begins")
    }

    fn nothing_begins(&self) {
        sleep(2 * GRACE);
        assert_eq!(self.begun.try_recv().ok(), None);
    }

    /// Ends one of the begun programs.
    fn end(&self) {
        self.go_on.send(Ok(())).unwrap();
    }

    /// Waits until the program begins, and ends it.
    fn run(&self, name: &str) {
        assert_eq!(self.next(), name);
        self.end();
    }
}

fn program(name: &str) -> Program {
    Program::new(name, format!("source of {name}"))
}

#[test]
fn two_begin_at_once_in_the_order_of_their_requests() {
    let bench = Bench::new();
    let handles = ["a", "b", "c"].map(|name| bench.request(name, Priority::Now));
    let mut first = [bench.next(), bench.next()];
    first.sort();
    assert_eq!(first, ["a/90", "b/90"]);
    bench.nothing_begins();
    bench.end();
    assert_eq!(bench.next(), "c/90");
    assert!(handles[2].poll().is_none());
    bench.end();
    bench.end();
    for (handle, name) in handles.iter().zip(["a", "b", "c"]) {
        let made = handle.wait().unwrap();
        assert!(matches!(&*made, Image::Cubin(text) if *text == format!("source of {name}").into_bytes()));
    }
    bench.client.settle();
    assert_eq!((bench.client.compiles(), bench.client.queue.shared.state.lock().workers), (3, [0; 3]));
}

#[test]
fn a_program_is_compiled_once_for_all_requests() {
    let bench = Bench::new();
    let first = bench.request("a", Priority::Now);
    assert_eq!(bench.next(), "a/90");
    let second = bench.request("a", Priority::Idle);
    scope(|threads| {
        let (first, second) = (threads.spawn(|| first.wait()), threads.spawn(|| second.wait()));
        bench.end();
        let (first, second) = (first.join().unwrap().unwrap(), second.join().unwrap().unwrap());
        assert!(Arc::ptr_eq(&first, &second));
    });
    assert!(bench.request("a", Priority::Now).poll().is_some() && bench.client.has(&program("a"), 90));
    // Another architecture is another program.
    assert!(!bench.client.has(&program("a"), 80));
    let other = bench.client.request(&program("a"), 80, Priority::Now);
    bench.run("a/80");
    other.wait().unwrap();
    assert_eq!(bench.client.compiles(), 2);
}

#[test]
fn programs_begin_by_priority() {
    let bench = Bench::new();
    let now = bench.request("now", Priority::Now);
    assert_eq!(bench.next(), "now/90");
    let idle = bench.request("idle", Priority::Idle);
    let soon = bench.request("soon", Priority::Soon);
    bench.nothing_begins();
    bench.end();
    now.wait().unwrap();
    assert_eq!(bench.next(), "soon/90");
    bench.nothing_begins();
    bench.end();
    soon.wait().unwrap();
    assert_eq!(bench.next(), "idle/90");
    // A running idle program is not stopped, and delays no other.
    let urgent = bench.request("urgent", Priority::Now);
    bench.run("urgent/90");
    bench.end();
    assert!(urgent.wait().is_ok() && idle.wait().is_ok());
}

#[test]
fn a_later_request_of_higher_priority_raises_a_waiting_one() {
    let bench = Bench::new();
    let hold = bench.client.hold_idle();
    let idle = ["a", "b", "c"].map(|name| bench.request(name, Priority::Idle));
    bench.nothing_begins();
    let raised = bench.request("c", Priority::Now);
    bench.run("c/90");
    assert!(raised.wait().is_ok() && idle[2].wait().is_ok());
    bench.nothing_begins();
    drop(hold);
    // A lower request lowers nothing.
    let soon = bench.request("b", Priority::Soon);
    bench.request("b", Priority::Idle);
    bench.run("b/90");
    soon.wait().unwrap();
    bench.run("a/90");
    bench.client.settle();
    assert!(idle.iter().all(|handle| handle.poll().is_some()));
}

#[test]
fn a_running_idle_program_raised_to_now_delays_lower_ones() {
    let bench = Bench::new();
    bench.request("idle", Priority::Idle);
    assert_eq!(bench.next(), "idle/90");
    let waited_for = bench.request("idle", Priority::Now);
    bench.request("soon", Priority::Soon);
    bench.nothing_begins();
    bench.end();
    waited_for.wait().unwrap();
    bench.run("soon/90");
    bench.client.settle();
}

#[test]
fn a_call_does_not_wait_for_a_worker_under_idle_scheduling() {
    let bench = Bench::of(false);
    let idle = bench.request("a", Priority::Idle);
    assert_eq!(bench.next(), "a/90");
    // Only a program that a call waits for is begun again, and only once.
    bench.request("a", Priority::Soon);
    bench.nothing_begins();
    let now = [(); 2].map(|()| bench.request("a", Priority::Now));
    assert_eq!(bench.next(), "a/90");
    bench.nothing_begins();
    bench.end();
    let made = now[0].wait().unwrap();
    bench.end();
    bench.client.settle();
    for handle in [&idle, &now[1], &bench.request("a", Priority::Now)] {
        assert!(Arc::ptr_eq(&made, &handle.wait().unwrap()), "the first outcome counts");
    }
    assert_eq!(bench.client.compiles(), 2);
    // A second run that is cancelled before it begins leaves the first.
    let idle = bench.request("b", Priority::Idle);
    assert_eq!(bench.next(), "b/90");
    let busy = ["c", "d"].map(|name| bench.request(name, Priority::Now));
    drop((bench.next(), bench.next()));
    let again = bench.request("b", Priority::Now);
    bench.client.close();
    (0..3).for_each(|_| bench.end());
    assert!(busy.iter().chain([&idle, &again]).all(|handle| handle.wait().is_ok()));
}

#[test]
fn a_thread_under_idle_scheduling_requests_as_soon_at_most() {
    let counts = || [Priority::Now, Priority::Soon, Priority::Idle].map(Priority::on_this_thread);
    assert_eq!(counts(), [Priority::Now, Priority::Soon, Priority::Idle]);
    let left = || {
        use_idle_scheduling();
        // Threads inherit the scheduling.
        scope(|threads| threads.spawn(counts).join().unwrap())
    };
    assert_eq!(scope(|threads| threads.spawn(left).join().unwrap()), [Priority::Soon, Priority::Soon, Priority::Idle]);
}

#[test]
fn idle_programs_begin_one_at_a_time_after_a_grace_period() {
    let bench = Bench::new();
    let now = bench.request("now", Priority::Now);
    bench.request("a", Priority::Idle);
    bench.request("b", Priority::Idle);
    bench.run("now/90");
    now.wait().unwrap();
    let ended = Instant::now();
    assert_eq!(bench.next(), "a/90");
    assert!(ended.elapsed() >= GRACE / 2, "the grace period has passed");
    bench.nothing_begins();
    bench.end();
    bench.run("b/90");
    bench.client.settle();
}

#[test]
fn an_error_reaches_every_handle_and_a_later_request_compiles_again() {
    let bench = Bench::new();
    let handles = [Priority::Soon, Priority::Now].map(|priority| bench.request("a", priority));
    assert_eq!(bench.next(), "a/90");
    bench.go_on.send(Err(GpuError::Compile { program: "a".into(), log: "no such name".into() })).unwrap();
    for handle in &handles {
        assert!(matches!(handle.wait(), Err(GpuError::Compile { log, .. }) if log == "no such name"));
    }
    let again = bench.request("a", Priority::Now);
    bench.run("a/90");
    assert!(again.wait().is_ok());
    // A panic of the compiler is an error too.
    let panics = Client::new(Arc::new(Queue::new(true, |_, _| panic!("a defect"))));
    let error = panics.request(&program("a"), 90, Priority::Now).wait().err().unwrap();
    assert!(matches!(error, GpuError::Compile { log, .. } if log.contains("panicked")));
    panics.settle();
}

#[test]
fn nothing_begins_after_the_queue_was_closed() {
    let bench = Bench::new();
    let kept = bench.request("kept", Priority::Now);
    bench.run("kept/90");
    kept.wait().unwrap();
    let running = bench.request("running", Priority::Soon);
    assert_eq!(bench.next(), "running/90");
    let hold = bench.client.hold_idle();
    let waiting = bench.request("waiting", Priority::Idle);
    bench.client.close();
    assert!(matches!(waiting.wait(), Err(GpuError::Cancelled)));
    assert!(matches!(bench.request("later", Priority::Now).wait(), Err(GpuError::Cancelled)));
    assert!(bench.request("kept", Priority::Now).wait().is_ok());
    // The running program ends and reaches its handle.
    bench.end();
    bench.client.settle();
    assert!(running.poll().is_some_and(|outcome| outcome.is_ok()));
    drop(hold);
    bench.nothing_begins();
    assert_eq!(bench.client.compiles(), 2);
}

#[test]
fn requests_are_cancelled_by_priority_and_by_architecture() {
    let bench = Bench::new();
    let _hold = bench.client.hold_idle();
    let idle = [80, 90].map(|architecture| bench.client.request(&program("a"), architecture, Priority::Idle));
    bench.client.cancel(|priority, architecture| priority > Priority::Now && architecture != 90);
    assert!(matches!(idle[0].wait(), Err(GpuError::Cancelled)) && idle[1].poll().is_none());
    bench.client.cancel(|priority, _| priority > Priority::Now);
    assert!(matches!(idle[1].wait(), Err(GpuError::Cancelled)));
    bench.client.settle();
    assert_eq!(bench.client.compiles(), 0);
}

#[test]
fn dropping_a_client_waits_for_its_running_programs() {
    let bench = Bench::new();
    let (running, waiting) = (bench.request("running", Priority::Idle), bench.request("waiting", Priority::Idle));
    assert_eq!(bench.next(), "running/90");
    let Bench { client, go_on, .. } = bench;
    scope(|threads| {
        let dropping = threads.spawn(|| drop(client));
        assert!(matches!(waiting.wait(), Err(GpuError::Cancelled)));
        assert!(!dropping.is_finished() && running.poll().is_none());
        go_on.send(Ok(())).unwrap();
    });
    assert!(running.poll().is_some_and(|outcome| outcome.is_ok()));
}

/// The programs that a client was told to load, with their images' sizes.
fn loaded_by(client: &Client) -> Receiver<String> {
    let (says, loaded) = channel();
    let says = Mutex::new(says);
    client.loads(move |program, image| {
        assert!(matches!(image, Image::Cubin(text) if text == program.source().as_bytes()));
        says.lock().send(program.name().to_string()).unwrap();
    });
    loaded
}

#[test]
fn a_program_of_two_clients_is_compiled_once_and_loaded_by_both() {
    let bench = Bench::new();
    let other = bench.other();
    let loads = [loaded_by(&bench.client), loaded_by(&other)];
    let early = bench.request("a", Priority::Now);
    assert_eq!(bench.next(), "a/90");
    let late = other.request(&program("a"), 90, Priority::Soon);
    bench.end();
    assert!(Arc::ptr_eq(&early.wait().unwrap(), &late.wait().unwrap()));
    // Both have loaded it before their handles got the outcome.
    assert!(loads.iter().all(|loaded| loaded.try_recv().is_ok_and(|name| name == "a")));
    // The image is cached, and loaded by the one that requests it again.
    assert!(other.request(&program("a"), 90, Priority::Now).poll().is_some());
    assert_eq!(loads.iter().filter(|loaded| loaded.try_recv().is_ok()).count(), 0);
    assert_eq!((other.compiles(), bench.begun.try_recv().ok()), (1, None));
}

#[test]
fn a_load_that_panics_leaves_the_outcome() {
    let bench = Bench::new();
    bench.client.loads(|_, _| panic!("a defect"));
    let handle = bench.request("a", Priority::Now);
    bench.run("a/90");
    assert!(handle.wait().is_ok());
}

#[test]
fn what_one_client_cancels_another_may_still_want() {
    let bench = Bench::new();
    let other = bench.other();
    let hold = bench.client.hold_idle();
    let both = [bench.request("both", Priority::Idle), other.request(&program("both"), 90, Priority::Idle)];
    let (own, others) = (bench.request("own", Priority::Idle), other.request(&program("others"), 90, Priority::Idle));
    bench.client.close();
    assert!(matches!(own.wait(), Err(GpuError::Cancelled)));
    assert!(both.iter().chain([&others]).all(|handle| handle.poll().is_none()));
    // A closed client begins nothing, and raises no request of another.
    assert!(matches!(bench.request("new", Priority::Now).wait(), Err(GpuError::Cancelled)));
    let left = bench.request("both", Priority::Now);
    bench.nothing_begins();
    drop(hold);
    bench.run("both/90");
    bench.run("others/90");
    assert!(both.iter().chain([&others, &left]).all(|handle| handle.wait().is_ok()));
    other.settle();
}

#[test]
fn a_client_settles_while_another_waits() {
    let bench = Bench::new();
    let other = bench.other();
    let own = bench.request("own", Priority::Now);
    bench.run("own/90");
    let hold = other.hold_idle();
    let waiting = other.request(&program("waiting"), 90, Priority::Idle);
    bench.client.settle();
    assert!(own.poll().is_some() && waiting.poll().is_none());
    drop(bench.client);
    drop(hold);
    assert_eq!(bench.begun.recv_timeout(Duration::from_secs(60)).unwrap(), "waiting/90");
    bench.go_on.send(Ok(())).unwrap();
    waiting.wait().unwrap();
    other.settle();
    assert_eq!(other.queue.shared.state.lock().workers, [0; 3]);
}
