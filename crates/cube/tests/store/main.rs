//! Cube folders: round trips, damage, locks, and replacements that stop anywhere.

mod crash;
mod cubes;
mod damage;
mod interruptions;
mod lock;
mod reuse;
mod round_trip;
mod schemes;
mod segments;
mod together;
