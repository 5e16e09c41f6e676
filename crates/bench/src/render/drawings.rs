//! The drawings of README, docs/benchmarks.md and the pages of bench/results, kept in docs/figures.

use std::fs;
use std::path::Path;

use super::Drawing;
use super::pages::read;
use super::specs::SPECS;

const FOLDER: &str = "docs/figures";

/// Draws all below the project's root; `written` hears of each file.
///
/// # Errors
/// Files that cannot be read or written or have another form.
pub fn write(root: &Path, written: &mut dyn FnMut(&str)) -> Result<(), String> {
    let drawn = drawn(root)?;
    let failed = |path: &str, error: std::io::Error| format!("{path}: {error}");
    fs::create_dir_all(root.join(FOLDER)).map_err(|error| failed(FOLDER, error))?;
    for name in kept(&root.join(FOLDER)).iter().filter(|name| !drawn.iter().any(|drawing| drawing.name == **name)) {
        let path = file(name);
        fs::remove_file(root.join(&path)).map_err(|error| failed(&path, error))?;
    }
    for drawing in &drawn {
        let path = file(drawing.name);
        fs::write(root.join(&path), &drawing.svg).map_err(|error| failed(&path, error))?;
        written(&path);
    }
    Ok(())
}

/// Where the drawings are not what the results give.
///
/// # Errors
/// As [`write`].
pub fn differences(root: &Path) -> Result<Vec<String>, String> {
    let folder = root.join(FOLDER);
    let text = |name: &str| fs::read_to_string(folder.join(format!("{name}.svg"))).unwrap_or_default();
    Ok(compare(&drawn(root)?, &kept(&folder), text))
}

/// Where the drawings of the folder, of these names and texts, are not those that were drawn.
fn compare(drawn: &[Drawing], kept: &[String], text: impl Fn(&str) -> String) -> Vec<String> {
    let outdated = drawn.iter().filter(|drawing| text(drawing.name) != drawing.svg);
    let outdated = outdated.map(|drawing| (drawing.name, "not what the results give"));
    let superfluous = kept.iter().filter(|name| !drawn.iter().any(|drawing| drawing.name == **name));
    let superfluous = superfluous.map(|name| (name.as_str(), "no results are in it"));
    let finding = |(name, what)| format!("{}: {what}; run 'cargo xtask figures'", file(name));
    outdated.chain(superfluous).map(finding).collect()
}

fn drawn(root: &Path) -> Result<Vec<Drawing>, String> {
    let mut drawings = Vec::new();
    for spec in &SPECS {
        drawings.extend(spec.kept_drawings(&read(root, spec.suites)?));
    }
    Ok(drawings)
}

fn file(name: &str) -> String {
    format!("{FOLDER}/{name}.svg")
}

/// Names of the drawings that the folder has; none where it is missing.
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
    fn drawings_are_those_of_the_results() {
        let drawing = |name, svg: &str| Drawing { name, title: String::new(), svg: svg.into() };
        let drawn = [drawing("select", "<svg>"), drawing("join", "<svg>")];
        let kept = ["select", "join"].map(str::to_string);
        assert!(compare(&drawn, &kept, |_| "<svg>".into()).is_empty());
        let found = compare(&drawn, &kept, |name| if name == "join" { "<svg/>".into() } else { "<svg>".into() });
        assert_eq!(found, ["docs/figures/join.svg: not what the results give; run 'cargo xtask figures'"]);
        let found = compare(&drawn[..1], &kept, |_| "<svg>".into());
        assert_eq!(found, ["docs/figures/join.svg: no results are in it; run 'cargo xtask figures'"]);
    }
}
