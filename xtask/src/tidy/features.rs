//! Whether a build of one crate has the dependencies that a build of the workspace has.
//!
//! Cargo unites the features that the selected crates ask for. Where `-p warpcube-sql` asks for fewer than all crates
//! do, a few small libraries differ, and DataFusion is compiled anew on top of them.

use std::collections::BTreeSet;

use crate::process::{Result, cargo, output};

/// Crates that are heavy to build anew.
const HEAVY: [&str; 1] = ["warpcube-sql"];

/// Findings among the dependencies of heavy crates.
pub(super) fn check() -> Result<Vec<String>> {
    let all = dependencies(&["--workspace"])?;
    let mut findings = Vec::new();
    for package in HEAVY {
        let own = dependencies(&["-p", package])?;
        findings.extend(own.difference(&all).map(|differs| {
            format!("{package}: built alone it has {differs}, other features than in a build of the workspace")
        }));
    }
    Ok(findings)
}

/// All crates that a selection builds for its tests, with their features.
fn dependencies(selection: &[&str]) -> Result<BTreeSet<String>> {
    let mut tree = cargo();
    tree.arg("tree").args(selection).args(["--edges", "normal,build,dev", "--prefix", "none", "--format", "{p} {f}"]);
    Ok(output(&mut tree)?.lines().map(|line| line.trim_end_matches(" (*)").to_string()).collect())
}
