//! The figures of README, docs/benchmarks.md and the pages of bench/results, drawn from the results of the suites
//! `ssb`, `tpch`, `primitives` and `schemes` and nothing else.

use std::fs;
use std::path::Path;

use serde_json::Value;
use warpcube_figures::Figure;

use crate::bench_table::{TPCH, front, read};
use crate::docs::write;
use crate::process::{Result, root};

/// The results that the figures of primitives show.
pub(crate) const RESULTS: &str = "bench/results/primitives-h200.json";
const FOLDER: &str = "docs/figures";

/// Draws the figures, or with `check` says whether they differ.
pub(crate) fn run(check: bool) -> Result<()> {
    if check {
        return differences()?.into_iter().next().map_or(Ok(()), Err);
    }
    let drawn = drawn()?;
    fs::create_dir_all(root().join(FOLDER)).map_err(|error| format!("{FOLDER}: {error}"))?;
    for name in kept(&root().join(FOLDER)).iter().filter(|name| !drawn.iter().any(|figure| figure.name == **name)) {
        let path = file(name);
        fs::remove_file(root().join(&path)).map_err(|error| format!("{path}: {error}"))?;
    }
    drawn.iter().try_for_each(|figure| write(&file(figure.name), &figure.svg))
}

/// Whether the figures are what the results give.
pub(crate) fn differences() -> Result<Vec<String>> {
    let folder = root().join(FOLDER);
    let text = |name: &str| fs::read_to_string(folder.join(format!("{name}.svg"))).unwrap_or_default();
    Ok(compare(&drawn()?, &kept(&folder), text))
}

/// Where the figures of the folder, of these names and texts, are not those that were drawn.
fn compare(drawn: &[Figure], kept: &[String], text: impl Fn(&str) -> String) -> Vec<String> {
    let outdated = drawn.iter().filter(|figure| text(figure.name) != figure.svg);
    let outdated = outdated.map(|figure| (figure.name, "not what the results give"));
    let superfluous = kept.iter().filter(|name| !drawn.iter().any(|figure| figure.name == **name));
    let superfluous = superfluous.map(|name| (name.as_str(), "no results are in it"));
    let finding = |(name, what)| format!("{}: {what}; run 'cargo xtask figures'", file(name));
    outdated.chain(superfluous).map(finding).collect()
}

fn drawn() -> Result<Vec<Figure>> {
    let text = fs::read_to_string(root().join(RESULTS)).map_err(|error| format!("{RESULTS}: {error}"))?;
    let results: Value = serde_json::from_str(&text).map_err(|error| format!("{RESULTS}: {error}"))?;
    let mut figures = warpcube_figures::primitives(&results);
    let schemes = read(&["schemes"])?;
    figures.extend(warpcube_figures::schemes(&schemes.iter().map(|(_, results)| results).collect::<Vec<_>>()));
    let (report, others) = front()?;
    figures.extend(warpcube_figures::ssb(&report, &others));
    let tpch = read(&["tpch"])?.into_iter().find(|(name, _)| name == TPCH);
    figures.extend(tpch.and_then(|(_, results)| warpcube_figures::tpch(&results)));
    Ok(figures)
}

fn file(name: &str) -> String {
    format!("{FOLDER}/{name}.svg")
}

/// Names of the figures that the folder has; none where it is missing.
fn kept(folder: &Path) -> Vec<String> {
    let paths = folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let drawings = paths.filter(|path| path.extension().is_some_and(|extension| extension == "svg"));
    let mut names: Vec<String> =
        drawings.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned())).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_results() {
        let figure = |name, svg: &str| Figure { name, title: String::new(), svg: svg.into() };
        let drawn = [figure("select", "<svg>"), figure("join", "<svg>")];
        let kept = ["select", "join"].map(str::to_string);
        assert!(compare(&drawn, &kept, |_| "<svg>".into()).is_empty());
        let found = compare(&drawn, &kept, |name| if name == "join" { "<svg/>".into() } else { "<svg>".into() });
        assert_eq!(found, ["docs/figures/join.svg: not what the results give; run 'cargo xtask figures'"]);
        let found = compare(&drawn[..1], &kept, |_| "<svg>".into());
        assert_eq!(found, ["docs/figures/join.svg: no results are in it; run 'cargo xtask figures'"]);
    }
}
