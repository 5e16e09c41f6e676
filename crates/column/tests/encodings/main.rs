//! Encodings against the values that went in: every storage, distribution and encoding; files; damage.

mod damage;
mod data;
mod document;
mod every;
mod files;
mod ladder;
mod layouts;
mod profile;
mod round_trips;
mod views;
