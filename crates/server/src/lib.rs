//! The server: one database behind HTTP and Arrow Flight SQL.
//!
//! Every request passes a guard ([`guard`]): the address that it asks for is loopback, no foreign web page sent it, and
//! it has the token. A statement runs by a [`warpcube_sql::Connection`] of its own on the threads of statements
//! ([`statements`]); requests are served on others, which a busy statement never holds up. Its rows go out as they come
//! through a short queue: a client that reads slowly slows the statement down, and one that goes away cancels it.

mod clients;
mod door;
mod error;
mod flight;
mod guard;
mod http;
mod literals;
mod metrics;
mod results;
mod seal;
mod server;
mod shared;
mod statements;
mod token;
mod turns;

pub use clients::TokenOptions;
pub use error::ServerError;
pub use server::{Server, ServerOptions, TokenPlace};
pub use warpcube_door::MakeThreads;
