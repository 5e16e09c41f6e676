//! No files of a crate that use each other in a circle.
//!
//! A file uses another by a path that begins with `crate` or `super`; tests at the end of a file do not count. A name
//! that a module gives on (`pub use part::Name` in `mod.rs`) is one of the file that has it. The crate's root uses
//! nothing here: it collects what its modules give.

use std::collections::{BTreeMap, BTreeSet};

use super::TextFile;
use super::layers::{module_of, paths, paths_given_on};

/// Circles that stay, by crate and files, each with what recurs in it.
const KEPT: [(&str, &[&str], &str); 1] =
    [("column", &["format/dictionary", "format/encoding"], "the codes of a dictionary have an encoding of their own")];

/// Where the tests of a file begin.
const TESTS: &str = "#[cfg(test)]\nmod tests";

type Module = Vec<String>;

/// Findings in the crates.
pub(super) fn check(files: &[TextFile]) -> Vec<String> {
    let name = |file: &TextFile| {
        let folder = file.path.split_once("/src/")?.0;
        Some(folder.strip_prefix("crates/").unwrap_or(folder).to_string())
    };
    let crates: BTreeSet<String> = files.iter().filter_map(name).collect();
    crates.iter().flat_map(|name| findings(name, files)).collect()
}

fn findings(name: &str, files: &[TextFile]) -> Vec<String> {
    let circles = circles(&uses(name, files));
    let words = |circle: &Vec<Module>| circle.iter().map(|module| module.join("/")).collect::<Vec<_>>();
    let is_kept = |circle: &Vec<String>| KEPT.iter().any(|(of, files, _)| *of == name && circle == files);
    let found = circles.iter().map(words).filter(|circle| !is_kept(circle));
    found.map(|circle| format!("{}: files in a circle: {}", folder(name), circle.join(", "))).collect()
}

/// The folder of a crate's files.
fn folder(name: &str) -> String {
    if name == "xtask" { "xtask/src".into() } else { format!("crates/{name}/src") }
}

/// The files that each file of a crate uses.
fn uses(name: &str, files: &[TextFile]) -> BTreeMap<Module, BTreeSet<Module>> {
    let folder = format!("{}/", folder(name));
    let owned = |module: Vec<&str>| module.into_iter().map(String::from).collect::<Module>();
    let of_crate: BTreeMap<Module, &TextFile> =
        files.iter().filter_map(|file| Some((owned(module_of(file.path.strip_prefix(&folder)?)?), file))).collect();
    let given_on: BTreeMap<&Module, BTreeMap<String, Module>> =
        of_crate.iter().map(|(module, file)| (module, names_given_on(module, file, &of_crate))).collect();
    let file_of = |path: &[String]| {
        let mut path = path.to_vec();
        // A name may be given on by several modules in turn.
        for _ in 0..=of_crate.len() {
            let length = (0..=path.len()).rev().find(|length| of_crate.contains_key(&path[..*length]))?;
            let (module, rest) = (path[..length].to_vec(), path[length..].to_vec());
            match rest.first().and_then(|name| given_on[&module].get(name)) {
                Some(target) => path = target.iter().cloned().chain(rest[1..].iter().cloned()).collect(),
                None => return Some(module),
            }
        }
        None
    };
    let uses = |(module, file): (&Module, &&TextFile)| {
        let own: Vec<&str> = module.iter().map(String::as_str).collect();
        let code = file.text.split(TESTS).next().unwrap_or_default();
        let used = paths(code, &own).into_iter().filter_map(|(_, path)| file_of(&path));
        let used = if module.is_empty() { BTreeSet::new() } else { used.collect() };
        (module.clone(), used.into_iter().filter(|used| used != module && !used.is_empty()).collect())
    };
    of_crate.iter().map(uses).collect()
}

/// Names that a module has from others, with the paths of what they name.
fn names_given_on(
    module: &Module,
    file: &TextFile,
    of_crate: &BTreeMap<Module, &TextFile>,
) -> BTreeMap<String, Vec<String>> {
    let is_child = |first: &String| of_crate.contains_key(&[module.as_slice(), std::slice::from_ref(first)].concat());
    let paths = paths_given_on(&file.text).into_iter().filter(|path| path.first().is_some_and(is_child));
    let named = |path: Vec<String>| Some((path.last()?.clone(), [module.as_slice(), &path].concat()));
    paths.filter_map(named).collect()
}

/// Sets of files each of which uses all others, over some in between; each set in order.
fn circles(uses: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<Vec<Module>> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        uses.keys().map(|module| (module, reached(module, uses))).collect();
    let mut circles: BTreeSet<Vec<Module>> = BTreeSet::new();
    for (module, of_module) in &reached {
        let both = of_module.iter().filter(|other| reached[*other].contains(module));
        let circle: Vec<Module> = both.map(|other| (*other).clone()).collect();
        if !circle.is_empty() {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

/// All files that a file uses, over others too.
fn reached<'a>(module: &'a Module, uses: &'a BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<&'a Module> {
    let (mut found, mut left) = (BTreeSet::new(), vec![module]);
    while let Some(next) = left.pop() {
        left.extend(uses[next].iter().filter(|used| found.insert(*used)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: format!("crates/a/src/{path}"), text: text.into() }
    }

    #[test]
    fn a_circle_is_found_over_names_that_modules_give_on() {
        let files = [
            file("lib.rs", "mod one; pub use crate::one::A; use crate::two::B;"),
            file("one.rs", "use crate::two::{B, C};"),
            file("two/mod.rs", "mod inner; pub use inner::B;"),
            file("two/inner.rs", "use super::last::D;"),
            file("two/last.rs", "fn f() -> crate::one::A { 1 }"),
            file("three.rs", "use crate::one::A;\n#[cfg(test)]\nmod tests { use crate::four::F; }"),
            file("four.rs", "use crate::three::T;"),
        ];
        let expected = "crates/a/src: files in a circle: one, two/inner, two/last";
        assert_eq!(findings("a", &files), [expected]);
        // Without the last edge there is none.
        let open = [&files[0], &files[1], &files[2], &files[3]]
            .map(|file| TextFile { path: file.path.clone(), text: file.text.clone() });
        assert_eq!(findings("a", &open), Vec::<String>::new());
    }

    #[test]
    fn a_file_and_its_folder_are_in_no_circle_if_the_parent_only_collects() {
        let files = [
            file("part/mod.rs", "mod one; pub use one::One; pub fn shared() {}"),
            file("part/one.rs", "use super::shared; mod tests { use super::*; }"),
        ];
        assert_eq!(findings("a", &files), Vec::<String>::new());
    }
}
