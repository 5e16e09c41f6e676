//! Encodings against the values that went in: every storage, distribution and encoding; files; damage.

mod choice;
mod damage;
mod data;
mod document;
mod files;
mod layouts;
mod round_trips;
mod views;
