//! The program `warpcube`.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// glibc returns the memory of a statement to the system and takes it again: 2.7 calls of `mprotect` a repeat of an SSB
/// query.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(warpcube::program(std::env::args_os()))
}
