//! Whether a build of one crate has the dependencies that a build of the workspace has.
//!
//! Cargo unites the features that the selected crates ask for. Where `-p warpcube-sql` asks for fewer than all crates
//! do, a few small libraries differ, and DataFusion is compiled anew on top of them.

use std::collections::BTreeSet;

use crate::process::{Result, cargo, output};

/// Crates that are heavy to build anew.
const HEAVY: [&str; 1] = ["warpcube-sql"];

/// What is built for programs, and what is built for the compiler too: features of the two are united apart.
const EDGES: [&str; 2] = ["normal,dev,no-proc-macro", "normal,build,dev"];

/// Findings among the dependencies of heavy crates.
pub(super) fn check() -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for edges in EDGES {
        let all = dependencies(&["--workspace"], edges)?;
        for package in HEAVY {
            let own = dependencies(&["-p", package], edges)?;
            findings.extend(own.difference(&all).map(|differs| {
                format!("{package}: built alone it has {differs}, other features than in a build of the workspace")
            }));
        }
    }
    Ok(findings)
}

/// All crates that a selection builds for its tests, with their features.
fn dependencies(selection: &[&str], edges: &str) -> Result<BTreeSet<String>> {
    let mut tree = cargo();
    tree.arg("tree").args(selection).args(["--edges", edges, "--prefix", "none", "--format", "{p} {f}"]);
    Ok(output(&mut tree)?.lines().map(|line| line.trim_end_matches(" (*)").to_string()).collect())
}
