//! Fragments over columns in host memory, which the CPU runs: random ones, and the share of them that it takes.
//!
//! All other fragments of these tests are run so too, wherever they are compared.

use crate::random::generator::Generator;
use crate::support::*;

/// Random fragments of the test.
const SEEDS: u64 = 300;

#[test]
fn random_fragments_equal_the_interpreter_on_the_cpu() {
    let (mut taken, mut refused) = (0, Vec::new());
    for seed in 0..SEEDS {
        let mut generator = Generator::new(seed);
        let tables = generator.tables(900 + seed as usize * 7);
        let fragment = generator.fragment();
        match compare_on_host(&fragment, &tables.iter().collect::<Vec<_>>()) {
            Ok(()) => taken += 1,
            Err(reason) => refused.push(reason),
        }
    }
    refused.sort();
    let mut kinds: Vec<(usize, &str)> =
        refused.chunk_by(|one, other| one == other).map(|run| (run.len(), &*run[0])).collect();
    kinds.sort();
    assert!(taken * 20 > SEEDS * 19, "{taken} of {SEEDS} taken; refused: {kinds:#?}");
}
