//! Replacements that stop anywhere: at an error, or with their process.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use warpcube_cube::store::Step;

use crate::lock::child;

/// Lets so many steps pass and fails at all others, as a full disk does: a write leaves half a file. `steps` counts
/// them.
pub fn full_disk(passing: usize, steps: &mut usize) -> impl FnMut(Step<'_>) -> io::Result<()> {
    move |step| {
        *steps += 1;
        if *steps <= passing {
            return Ok(());
        }
        if let Step::Write(path) = step {
            fs::write(path, b"half a fi")?;
        }
        Err(io::Error::other("the disk is full"))
    }
}

/// Runs one test of this binary, which replaces cubes in a loop, in a process of its own, and kills that at a random
/// moment, so many microseconds at most after it has written that it begins. Its further lines; the last one may be
/// cut.
pub fn killed(test: &str, folder: &Path, delay_max: u64) -> Vec<String> {
    let mut child = child(test, folder);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("begins ")), "the child began no replacement");
    std::thread::sleep(Duration::from_micros(RandomState::new().hash_one(test) % delay_max));
    child.kill().unwrap();
    child.wait().unwrap();
    lines.collect()
}
