//! Turns of statements: who is next when a place becomes free.
//!
//! Each client has a line of its own. A free place goes to the client with the fewest running statements among those
//! that wait, and of equals to the one whose last turn is the longest ago. So a client that sends a thousand statements
//! holds up its own, and a client with one statement waits for no more than one place. A client may have fewer places
//! than the server. Its line has room for a number of statements; more are refused.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot::{Sender, channel};

/// Statements of one client that may wait.
const WAITING_MAX: usize = 4096;

/// Why a statement gets no turn.
#[derive(Debug, PartialEq)]
pub(crate) enum NoTurn {
    /// Too many statements of its client wait.
    LineFull,
    /// There are no turns any more.
    Closed,
}

/// The turns of statements.
pub(crate) struct Turns(Mutex<State>);

struct State {
    free: usize,
    /// The lines of the clients, by their numbers.
    lines: Vec<Line>,
    /// Number of turns that were given.
    given: u64,
    is_closed: bool,
}

/// The statements of a client.
struct Line {
    /// Places that it may have.
    most: usize,
    running: usize,
    /// The number of its last turn.
    last: u64,
    waiting: VecDeque<Sender<Turn>>,
}

/// A place of a statement that runs, which is free again when this is dropped.
pub(crate) struct Turn {
    turns: Arc<Turns>,
    client: usize,
}

impl Turns {
    /// So many places, for clients that have no more than these each.
    pub(crate) fn new(places: usize, clients: impl IntoIterator<Item = Option<usize>>) -> Turns {
        let line = |most: Option<usize>| {
            let most = most.unwrap_or(usize::MAX).max(1);
            Line { most, running: 0, last: 0, waiting: VecDeque::new() }
        };
        let lines = clients.into_iter().map(line).collect();
        Turns(Mutex::new(State { free: places.max(1), lines, given: 0, is_closed: false }))
    }

    /// Waits for the turn of a statement of a client, by the client's number.
    pub(crate) async fn wait(self: &Arc<Self>, client: usize) -> Result<Turn, NoTurn> {
        let (sender, turn) = channel();
        {
            let mut state = self.lock();
            if state.is_closed {
                return Err(NoTurn::Closed);
            }
            let waiting = &mut state.lines[client].waiting;
            if waiting.len() >= WAITING_MAX {
                // Those that were given up leave room.
                waiting.retain(|waiting| !waiting.is_closed());
            }
            if waiting.len() >= WAITING_MAX {
                return Err(NoTurn::LineFull);
            }
            waiting.push_back(sender);
        }
        self.give();
        turn.await.map_err(|_| NoTurn::Closed)
    }

    /// Refuses all statements from now on, those that wait too.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.lines.iter_mut().for_each(|line| line.waiting.clear());
    }

    /// Gives free places to those who are next.
    fn give(self: &Arc<Self>) {
        loop {
            let Some((client, sender)) = self.lock().next() else { return };
            // A statement that was given up gives its place back when this is dropped, without the lock.
            drop(sender.send(Turn { turns: self.clone(), client }));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The client that is next, with its first statement, which has a place then.
    fn next(&mut self) -> Option<(usize, Sender<Turn>)> {
        if self.free == 0 {
            return None;
        }
        for line in &mut self.lines {
            while line.waiting.front().is_some_and(Sender::is_closed) {
                line.waiting.pop_front();
            }
        }
        let may_run = |(_, line): &(usize, &Line)| !line.waiting.is_empty() && line.running < line.most;
        let lines = self.lines.iter().enumerate().filter(may_run);
        let (client, _) = lines.min_by_key(|(_, line)| (line.running, line.last))?;
        let line = &mut self.lines[client];
        let sender = line.waiting.pop_front()?;
        self.free -= 1;
        self.given += 1;
        (line.running, line.last) = (line.running + 1, self.given);
        Some((client, sender))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        {
            let mut state = self.turns.lock();
            state.free += 1;
            state.lines[self.client].running -= 1;
        }
        self.turns.give();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::BoxFuture;

    use super::*;

    type Waiting = BoxFuture<'static, Result<Turn, NoTurn>>;

    fn turns(places: usize, clients: &[Option<usize>]) -> Arc<Turns> {
        Arc::new(Turns::new(places, clients.iter().copied()))
    }

    /// A statement that waits in its line.
    fn wait(turns: &Arc<Turns>, client: usize) -> Waiting {
        let turns = turns.clone();
        let mut waiting = async move { turns.wait(client).await }.boxed();
        match waiting.as_mut().now_or_never() {
            None => waiting,
            Some(done) => async move { done }.boxed(),
        }
    }

    fn now(waiting: &mut Waiting) -> Option<Turn> {
        waiting.as_mut().now_or_never().map(|turn| turn.ok().unwrap())
    }

    #[test]
    fn a_client_that_floods_holds_up_its_own_statements_alone() {
        let turns = turns(1, &[None, None, None]);
        let running = now(&mut wait(&turns, 0)).unwrap();
        let mut flood: Vec<Waiting> = (0..100).map(|_| wait(&turns, 0)).collect();
        let (mut one, mut two, mut other) = (wait(&turns, 1), wait(&turns, 1), wait(&turns, 2));
        drop(running);
        assert!(now(&mut flood[0]).is_none());
        drop(now(&mut one).expect("the client without a turn so far, whose line is the longer one"));
        drop(now(&mut other).expect("then the other one"));
        drop(now(&mut flood[0]).expect("then the one whose last turn is the longest ago"));
        drop(now(&mut two).expect("and so on"));
        for waiting in &mut flood[1..] {
            drop(now(waiting).expect("in their order"));
        }
        assert_eq!(turns.lock().free, 1);
    }

    #[test]
    fn places_are_shared_evenly_among_those_who_wait() {
        let turns = turns(4, &[None, None]);
        let mut first: Vec<Turn> = (0..4).map(|_| now(&mut wait(&turns, 0)).unwrap()).collect();
        let waiting: Vec<Waiting> = (0..8).map(|number| wait(&turns, number % 2)).collect();
        for (left, running) in [(3, (3, 1)), (2, (2, 2)), (1, (2, 2)), (0, (2, 2))] {
            first.pop();
            assert_eq!(first.len(), left);
            let state = turns.lock();
            assert_eq!((state.lines[0].running, state.lines[1].running), running, "{left} are left");
        }
        drop(waiting);
        assert_eq!(turns.lock().free, 4);
    }

    #[test]
    fn a_client_has_no_more_places_than_it_may_have() {
        let turns = turns(3, &[Some(1), None]);
        let first = now(&mut wait(&turns, 0)).unwrap();
        let mut second = wait(&turns, 0);
        assert!(now(&mut second).is_none());
        assert!(now(&mut wait(&turns, 1)).is_some(), "there are places for others");
        drop(first);
        assert!(now(&mut second).is_some());
    }

    #[test]
    fn statements_that_are_given_up_leave_no_place_taken() {
        let turns = turns(1, &[None]);
        let running = now(&mut wait(&turns, 0)).unwrap();
        drop(wait(&turns, 0));
        let mut last = wait(&turns, 0);
        drop(running);
        assert!(now(&mut last).is_some());
        // One whose turn has come and that has not noticed.
        let (running, unnoticed) = (now(&mut wait(&turns, 0)).unwrap(), wait(&turns, 0));
        drop(running);
        drop(unnoticed);
        assert_eq!(turns.lock().free, 1);
    }

    #[test]
    fn lines_have_room_for_some_and_close() {
        let turns = turns(1, &[None, None]);
        let running = now(&mut wait(&turns, 0)).unwrap();
        let mut waiting: Vec<Waiting> = (0..WAITING_MAX).map(|_| wait(&turns, 0)).collect();
        let refused = |client| wait(&turns, client).now_or_never().and_then(Result::err);
        assert_eq!(refused(0), Some(NoTurn::LineFull));
        assert_eq!(refused(1), None, "other lines have room");
        waiting.pop();
        assert_eq!(refused(0), None, "it was given up");
        turns.close();
        assert_eq!(waiting.remove(0).now_or_never().and_then(Result::err), Some(NoTurn::Closed));
        assert_eq!(refused(1), Some(NoTurn::Closed));
        drop(running);
        assert_eq!(turns.lock().free, 1);
    }
}
