//! Whether a build of one crate has the dependencies that a build of the workspace has, and the Python module those of
//! the program: its wheel is built out of the program's build.
//!
//! Cargo unites the features that the selected crates ask for. Where `-p warpcube-sql` asks for fewer than all crates
//! do, a few small libraries differ, and DataFusion is compiled anew on top of them.

use std::collections::BTreeSet;

use crate::process::{Result, cargo, output, root};

/// Crates that are heavy to build anew.
const HEAVY: [&str; 1] = ["warpcube-sql"];

/// Crates whose types cross from one library to another: a second version would not be understood.
const ONCE: [&str; 4] = ["arrow", "arrow-array", "arrow-schema", "object_store"];

/// What is built for programs, and what is built for the compiler too: features of the two are united apart.
const EDGES: [&str; 2] = ["normal,dev,no-proc-macro", "normal,build,dev"];

/// Findings among the dependencies of heavy crates.
pub(super) fn check() -> Result<Vec<String>> {
    let lock = root().join("Cargo.lock");
    let lock = std::fs::read_to_string(&lock).map_err(|error| format!("{}: {error}", lock.display()))?;
    let mut findings = doubles(&lock);
    for edges in EDGES {
        let all = dependencies(&["--workspace"], edges)?;
        for package in HEAVY {
            let own = dependencies(&["-p", package], edges)?;
            findings.extend(own.difference(&all).map(|differs| {
                format!("{package}: built alone it has {differs}, other features than in a build of the workspace")
            }));
        }
    }
    for edges in ["normal,no-proc-macro", "normal,build"] {
        let module = dependencies(&["-p", "warpcube-python"], edges)?;
        let program = dependencies(&["-p", "warpcube"], edges)?;
        findings.extend(
            program
                .difference(&module)
                .map(|differs| format!("warpcube: it has {differs}, with other features in the Python module")),
        );
    }
    Ok(findings)
}

/// Findings among the versions of crates in the lock file.
fn doubles(lock: &str) -> Vec<String> {
    let versions = |name: &str| lock.lines().filter(|line| *line == format!("name = \"{name}\"")).count();
    let several = ONCE.iter().filter(|name| versions(name) > 1);
    several.map(|name| format!("Cargo.lock: {} versions of {name}, which others share", versions(name))).collect()
}

/// All crates that a selection builds for its tests, with their features.
fn dependencies(selection: &[&str], edges: &str) -> Result<BTreeSet<String>> {
    let mut tree = cargo();
    tree.arg("tree").args(selection).args(["--edges", edges, "--prefix", "none", "--format", "{p} {f}"]);
    Ok(output(&mut tree)?.lines().map(|line| line.trim_end_matches(" (*)").to_string()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_arrow_is_found() {
        let of = |version: &str| format!("[[package]]\nname = \"arrow\"\nversion = \"{version}\"\n");
        assert_eq!(doubles(&of("59.3.2")), Vec::<String>::new());
        let both = of("58.0.0") + &of("59.3.2");
        assert_eq!(doubles(&both), ["Cargo.lock: 2 versions of arrow, which others share"]);
    }
}
