//! The rules of the project that a program can check: files, crates, documents.
//!
//! Each check gives a list of findings, `file:line: what is wrong`; tidy fails if there is one.

mod circles;
mod documents;
mod edges;
mod features;
mod layers;
mod licences;
mod sources;

use crate::files::{TextFile, text_files};
use crate::process::{Result, root};

/// Checks everything.
pub(crate) fn run() -> Result<()> {
    let files = text_files()?;
    let mut findings = sources::check(&files);
    findings.extend(documents::check(&files));
    findings.extend(edges::check()?);
    findings.extend(layers::check(&files));
    findings.extend(circles::check(&files));
    findings.extend(features::check()?);
    findings.extend(licences::check()?);
    findings.extend(crate::docs::differences(&files)?);
    findings.extend(warpcube_bench::render::pages::differences(&root())?);
    findings.extend(warpcube_bench::render::drawings::differences(&root())?);
    findings.sort();
    findings.iter().for_each(|finding| println!("{finding}"));
    match findings.len() {
        0 => {
            println!("tidy: {} files", files.len());
            Ok(())
        }
        1 => Err("1 finding".into()),
        count => Err(format!("{count} findings")),
    }
}
