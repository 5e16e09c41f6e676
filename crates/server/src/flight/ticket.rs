//! Tickets: sealed statements, which the server runs when they are taken, and the statements that run by them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_flight::FlightInfo;
use arrow_flight::sql::{Any, TicketStatementQuery};
use prost::Message;
use serde::{Deserialize, Serialize};
use tonic::Status;
use warpcube_sql::Registration;

use crate::error::Refusal;
use crate::seal::Seal;

/// What a ticket is for.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Sealed {
    /// The number of the ticket.
    pub(super) number: u64,
    /// The statement's text, as lists and logs show it.
    pub(super) text: String,
    /// Its text with values in place of parameters, where it has any.
    pub(super) bound: Option<String>,
}

impl Sealed {
    /// What a new ticket is for.
    pub(super) fn new(text: String, bound: Option<String>) -> Sealed {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Sealed { number: NEXT.fetch_add(1, Ordering::Relaxed), text, bound }
    }

    /// The bytes of the ticket.
    pub(super) fn close(&self, seal: &Seal) -> Result<Vec<u8>, Status> {
        let text = serde_json::to_string(self).map_err(|error| Status::internal(error.to_string()))?;
        Ok(seal.close(&text))
    }

    /// What the bytes of a ticket are for.
    ///
    /// # Errors
    /// The seal is not the server's.
    pub(super) fn open(seal: &Seal, ticket: &[u8]) -> Result<Sealed, Status> {
        let sealed = seal.open(ticket).and_then(|text| serde_json::from_str(&text).ok());
        Ok(sealed.ok_or_else(|| Refusal::request("the ticket is none of this server"))?)
    }

    /// What the ticket of a call's answer is for.
    ///
    /// # Errors
    /// It has no ticket of a statement, or none of the server's.
    pub(super) fn of_info(seal: &Seal, info: &FlightInfo) -> Result<Sealed, Status> {
        let ticket = info.endpoint.iter().find_map(|endpoint| endpoint.ticket.as_ref());
        let any = ticket.and_then(|ticket| Any::decode(ticket.ticket.as_ref()).ok());
        let of_statement = any.and_then(|any| any.unpack::<TicketStatementQuery>().ok().flatten());
        let none = || Refusal::request("there is no ticket of a statement");
        Sealed::open(seal, &of_statement.ok_or_else(none)?.statement_handle)
    }
}

/// The statements that wait or run by tickets, by their numbers; of several by one ticket the last.
#[derive(Clone, Default)]
pub(super) struct Taken(Arc<Mutex<HashMap<u64, Registration>>>);

impl Taken {
    /// Notes a statement until what this gives is dropped.
    pub(super) fn take(&self, number: u64, statement: &Registration) -> Held {
        self.lock().insert(number, statement.clone());
        Held { taken: self.clone(), number, statement: statement.number() }
    }

    /// Cancels the statement of a ticket; false if its changes take their places already.
    ///
    /// # Errors
    /// None waits or runs by it.
    pub(super) fn cancel(&self, number: u64) -> Result<bool, Status> {
        let statement = self.lock().get(&number).cloned();
        let statement = statement.ok_or_else(|| Status::not_found("SRV-007 no statement runs by this ticket"))?;
        Ok(statement.cancel())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Registration>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A ticket whose statement waits or runs.
pub(super) struct Held {
    taken: Taken,
    number: u64,
    /// The number of the statement.
    statement: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        // A statement that was started later by the same ticket stays.
        let mut taken = self.taken.lock();
        if taken.get(&self.number).is_some_and(|last| last.number() == self.statement) {
            taken.remove(&self.number);
        }
    }
}
