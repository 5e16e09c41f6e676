//! A server in this process, asked over the wire: what it gives is what a connection gives, and nobody else gets in.

mod admission;
mod bad_input;
mod endings;
mod flight;
mod harness;
mod queries;
mod registry;
mod tokens;
