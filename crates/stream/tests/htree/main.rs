//! H-trees on the CPU equal brute force; those on the emulated device, in three orders of threads, equal the CPU's.

mod cpu;
mod device;
mod edges;
mod invariants;
mod model;
