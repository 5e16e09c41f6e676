//! Palo databases as folders of cubes: nothing is lost, changes show, broken files leave nothing behind.

mod attributes;
mod changes;
mod random;
mod refused;
mod round_trip;
mod source;
