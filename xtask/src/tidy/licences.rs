//! The licences of all libraries that the workspace builds: permissive ones, and MPL-2.0 for what is taken unmodified
//! from the registry.
//!
//! `cargo tree` gives the SPDX expression of each crate. Of licences joined by OR one has to do, of those joined by AND
//! all; the older `MIT/Apache-2.0` is an OR.

use std::collections::BTreeSet;

use crate::process::{Result, cargo, output};

/// Licences that ask for no more than a notice.
const PERMISSIVE: [&str; 13] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    "bzip2-1.0.6",
];
/// The licence that asks for the source of files that were changed.
const OF_FILES: &str = "MPL-2.0";

/// Findings among all crates that are built for programs, tests and the build.
pub(super) fn check() -> Result<Vec<String>> {
    let mut tree = cargo();
    tree.args(["tree", "--workspace", "--edges", "normal,build,dev", "--prefix", "none", "--format", "{p}|{l}|"]);
    Ok(findings(&output(&mut tree)?))
}

fn findings(tree: &str) -> Vec<String> {
    // Between the trees of two crates is a blank line; what was shown before ends with `(*)`.
    let crates: BTreeSet<(&str, &str)> =
        tree.lines().filter_map(|line| line.rsplit_once('|')?.0.split_once('|')).collect();
    let refused = crates.into_iter().filter(|(name, licence)| !is_taken(licence, is_unmodified(name)));
    let finding = |(name, licence): (&str, &str)| match licence {
        "" => format!("crate {name} names no licence"),
        _ => format!("crate {name}: licence {licence} is not permissive (xtask/src/tidy/licences.rs)"),
    };
    refused.map(finding).collect()
}

/// Whether a crate is one of the registry: one of a folder or a repository shows it in parentheses.
fn is_unmodified(name: &str) -> bool {
    !name.contains("(/") && !name.contains("://")
}

/// Whether an SPDX expression leaves a licence that is taken.
fn is_taken(licence: &str, is_unmodified: bool) -> bool {
    let spaced = licence.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    either(&words, &mut at, is_unmodified) && at == words.len()
}

/// Reads terms joined by OR and leaves `at` behind them.
fn either(words: &[&str], at: &mut usize, is_unmodified: bool) -> bool {
    let mut is_taken = all(words, at, is_unmodified);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        is_taken |= all(words, at, is_unmodified);
    }
    is_taken
}

/// Reads terms joined by AND.
fn all(words: &[&str], at: &mut usize, is_unmodified: bool) -> bool {
    let mut is_taken = term(words, at, is_unmodified);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        is_taken &= term(words, at, is_unmodified);
    }
    is_taken
}

/// Reads a licence, with an exception that permits more, or an expression in parentheses.
fn term(words: &[&str], at: &mut usize, is_unmodified: bool) -> bool {
    let Some(word) = words.get(*at) else { return false };
    *at += 1;
    if *word == "(" {
        let is_taken = either(words, at, is_unmodified);
        *at += 1;
        return is_taken && words.get(*at - 1) == Some(&")");
    }
    if words.get(*at) == Some(&"WITH") {
        *at += 2;
    }
    PERMISSIVE.contains(word) || *word == OF_FILES && is_unmodified
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_or_one_licence_does_and_of_and_all() {
        for licence in [
            "MIT",
            "MIT OR Apache-2.0",
            "MIT/Apache-2.0",
            "GPL-3.0-only OR MIT",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0-only",
            "(MIT OR GPL-3.0-only) AND Unicode-3.0",
            "MPL-2.0",
        ] {
            assert!(is_taken(licence, true), "{licence}");
        }
        for licence in ["", "GPL-3.0-only", "MIT AND LGPL-2.1-only", "(MIT OR Apache-2.0", "MIT Apache-2.0", "SSPL-1.0"]
        {
            assert!(!is_taken(licence, true), "{licence}");
        }
    }

    #[test]
    fn mpl_is_taken_from_the_registry_alone() {
        let tree = "\
warpcube-sql v0.1.0 (/work/sql)|Apache-2.0|
option-ext v0.2.0|MPL-2.0|
option-ext v0.2.0|MPL-2.0| (*)

patched v1.0.0 (/work/patched)|MPL-2.0|
forked v1.0.0 (https://a.org/forked#0a1b)|MPL-2.0 OR GPL-3.0-only|
bare v1.0.0||
macros v1.0.0 (proc-macro)|GPL-3.0-only|
";
        assert_eq!(
            findings(tree),
            [
                "crate bare v1.0.0 names no licence",
                "crate forked v1.0.0 (https://a.org/forked#0a1b): licence MPL-2.0 OR GPL-3.0-only is not permissive \
                 (xtask/src/tidy/licences.rs)",
                "crate macros v1.0.0 (proc-macro): licence GPL-3.0-only is not permissive (xtask/src/tidy/licences.rs)",
                "crate patched v1.0.0 (/work/patched): licence MPL-2.0 is not permissive (xtask/src/tidy/licences.rs)",
            ]
        );
    }
}
