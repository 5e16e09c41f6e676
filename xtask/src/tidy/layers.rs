//! Which modules of a crate may use which: layers from the ground up, held against the paths that its files name.
//!
//! A path counts if it begins with `crate` or `super`, in a `use` or elsewhere, tests included; the crate's root only
//! collects what its modules give, and is not looked at. A module may use those of its own layer and of layers below.

use super::TextFile;

/// The layers of each crate, the ground first. `*` stands for all modules that are not named; without it each has to
/// be, and no path may go through a name that the root gives on.
const LAYERS: [(&str, &[&[&str]]); 7] = [
    ("column", &[&["units"], &["error"], &["source"], &["format"], &["device"], &["host"], &["load"], &["residency"]]),
    (
        "gpu",
        &[
            &["error", "program", "threads", "trust"],
            &[
                "backend", "emulated", "cuda", "pool", "modules", "compile", "device", "buffer", "launch", "event",
                "host",
            ],
            &["cancel", "recording"],
            &["stream"],
            &["prims"],
        ],
    ),
    (
        "cube",
        &[
            &["algorithm", "error", "matrix", "progress"],
            &["facts"],
            &["model", "aggregate"],
            &["define", "query", "device"],
            &["*"],
        ],
    ),
    ("palo", &[&["*"], &["catalog"]]),
    ("stream", &[&["error", "schema", "tree"], &["query", "tuples"], &["cpu"], &["device"]]),
    (
        "engine",
        &[
            &["error", "ir", "text_match", "arena", "format", "tuning", "float_sum"],
            &["lookup", "dictionaries"],
            &["facts"],
            &["plan"],
            &["result"],
            &["codegen", "vector"],
            &["exec"],
        ],
    ),
    (
        "sql",
        &[
            &[
                "default_schema",
                "extension_types",
                "values",
                "walk",
                "locations",
                "csv_lines",
                "leaf_operator",
                "lexer",
                "redaction",
                "nearest",
                "words",
                "cancel",
                "progress",
                "file_sets",
                "span_lengths",
                "text_bytes",
                "text_decimals",
                "decimal_floats",
                "text_times",
                "time_units",
                "calendar_units",
                "zone_clocks",
                "canonical_floats",
                "nested_keys",
                "nested_texts",
                "time_texts",
            ],
            &["error", "spill"],
            &["ranges", "text_formats"],
            &[
                "format_options",
                "formats",
                "settings",
                "statement",
                "report",
                "row_groups",
                "diagnose",
                "memory_table",
                "memory_share",
            ],
            &["access", "device", "device_tables", "registry", "show"],
            &["engines"],
            &["cubes", "functions"],
            &["syntax"],
            &["catalog"],
            &["mend", "outputs", "rewrite", "runtime", "shared"],
            &["baseline", "lower", "staged_files"],
            &["codec", "placement"],
            &["plans"],
            &["exec"],
            &["stream"],
            &["database"],
            &["connection"],
        ],
    ),
];

/// Findings in the files of these crates.
pub(super) fn check(files: &[TextFile]) -> Vec<String> {
    LAYERS.iter().flat_map(|(name, layers)| findings(name, layers, files)).collect()
}

fn findings(name: &str, layers: &[&[&str]], files: &[TextFile]) -> Vec<String> {
    let folder = format!("crates/{name}/src/");
    let of_crate: Vec<(Vec<&str>, &TextFile)> = files
        .iter()
        .filter_map(|file| Some((module_of(file.path.strip_prefix(&folder)?)?, file)))
        .filter(|(module, _)| !module.is_empty())
        .collect();
    let others = layers.iter().position(|layer| layer.contains(&"*"));
    let layer_of = |module: &str| layers.iter().position(|layer| layer.contains(&module)).or(others);
    let is_module = |name: &str| of_crate.iter().any(|(module, _)| module[0] == name);
    let mut findings = Vec::new();
    for (module, file) in &of_crate {
        let own = module[0];
        let Some(layer) = layer_of(own) else {
            findings.push(format!("{}: module {own} is in no layer of xtask/src/tidy/layers.rs", file.path));
            continue;
        };
        for (line, path) in paths(&file.text, module) {
            let Some(used) = path.first().map(String::as_str).filter(|used| *used != own) else { continue };
            let place = format!("{}:{line}", file.path);
            match layer_of(used).filter(|_| is_module(used)) {
                Some(below) if below <= layer => {}
                Some(_) => findings.push(format!("{place}: {own} may not use {used}, which is in a layer above it")),
                None if others.is_none() && used != "*" => {
                    findings.push(format!("{place}: names {used} by the crate's root; name the module that has it"));
                }
                None => {}
            }
        }
    }
    findings.dedup();
    findings
}

/// The module of a file, from the crate's root; none for what is no module's file, nothing for the root.
pub(super) fn module_of(path: &str) -> Option<Vec<&str>> {
    let mut module: Vec<&str> = path.strip_suffix(".rs")?.split('/').collect();
    if matches!(module.last(), Some(&"mod" | &"lib" | &"main")) {
        module.pop();
    }
    Some(module)
}

/// All paths of a file that begin with `crate` or `super`, from the crate's root, each with its line.
pub(super) fn paths(text: &str, module: &[&str]) -> Vec<(usize, Vec<String>)> {
    let tokens = tokens(text);
    let word = |at: usize| tokens.get(at).map_or("", |(_, token)| token.as_str());
    let (mut found, mut depth) = (Vec::new(), 0);
    // Modules within the file, each with the depth of its braces.
    let mut inner: Vec<(usize, String)> = Vec::new();
    for (at, (line, token)) in tokens.iter().enumerate() {
        match token.as_str() {
            "{" => {
                depth += 1;
                if at >= 2 && word(at - 2) == "mod" {
                    inner.push((depth, word(at - 1).to_string()));
                }
            }
            "}" => {
                inner.retain(|(within, _)| *within < depth);
                depth = depth.saturating_sub(1);
            }
            "crate" | "super" if word(at + 1) == "::" && (at == 0 || word(at - 1) != "::") => {
                let mut prefix: Vec<String> = Vec::new();
                let mut next = at;
                if token == "super" {
                    prefix.extend(module.iter().map(|part| part.to_string()));
                    prefix.extend(inner.iter().map(|(_, name)| name.clone()));
                    while word(next) == "super" {
                        prefix.pop();
                        next += 2;
                    }
                } else {
                    next += 2;
                }
                tree(&tokens, &mut next, prefix, &mut |path| found.push((*line, path)));
            }
            _ => {}
        }
    }
    found
}

/// All paths of `use` items of a file that begin with neither `crate` nor `super`.
pub(super) fn paths_given_on(text: &str) -> Vec<Vec<String>> {
    let tokens = tokens(text);
    let word = |at: usize| tokens.get(at).map_or("", |(_, token)| token.as_str());
    let mut found = Vec::new();
    for at in (0..tokens.len()).filter(|at| word(*at) == "use") {
        let mut next = if word(at + 1) == "self" { at + 3 } else { at + 1 };
        if !matches!(word(next), "crate" | "super") {
            tree(&tokens, &mut next, Vec::new(), &mut |path| found.push(path));
        }
    }
    found
}

/// Reads a path, or a tree of them in braces, and leaves `at` behind it.
fn tree(tokens: &[(usize, String)], at: &mut usize, mut path: Vec<String>, found: &mut dyn FnMut(Vec<String>)) {
    let word = |at: usize| tokens.get(at).map_or("", |(_, token)| token.as_str());
    while is_name(word(*at)) || word(*at) == "*" {
        path.push(word(*at).to_string());
        *at += 1;
        if word(*at) != "::" {
            return found(path);
        }
        *at += 1;
    }
    if word(*at) != "{" {
        return found(path);
    }
    *at += 1;
    while *at < tokens.len() && word(*at) != "}" {
        match word(*at) {
            name if is_name(name) && name != "as" || name == "{" => tree(tokens, at, path.clone(), found),
            // What a path is called here, and commas.
            "as" => *at += 2,
            _ => *at += 1,
        }
    }
    *at += 1;
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Names, `::` and all other characters of a source text, each with its line; comments, strings and blanks left out.
fn tokens(text: &str) -> Vec<(usize, String)> {
    let (mut tokens, mut line, mut rest) = (Vec::new(), 1, text);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => string_length(rest),
            '\'' => character_length(rest),
            'r' | 'b' | 'c' if raw_length(rest).is_some() => raw_length(rest).unwrap_or(1),
            ':' if rest.starts_with("::") => 2,
            first if first.is_alphanumeric() || first == '_' => {
                rest.find(|other: char| !other.is_alphanumeric() && other != '_').unwrap_or(rest.len())
            }
            first => first.len_utf8(),
        };
        let token = &rest[..length];
        if is_name(token) && !token.contains('"') || token == "::" || matches!(first, '{' | '}' | '*' | ',' | ';') {
            tokens.push((line, token.to_string()));
        } else if !first.is_whitespace() && !token.starts_with("//") && !token.starts_with("/*") {
            tokens.push((line, "?".to_string()));
        }
        line += token.matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}

/// Bytes of a string in quotes, with both.
fn string_length(text: &str) -> usize {
    let mut escaped = true;
    for (at, character) in text.char_indices() {
        match character {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

/// Bytes of a character in quotes; of a lifetime, those of its quote alone.
fn character_length(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    match characters.next() {
        Some((_, '\\')) => text[2..].char_indices().skip(1).find(|(_, end)| *end == '\'').map_or(1, |(at, _)| at + 3),
        Some(_) => characters.next().filter(|(_, end)| *end == '\'').map_or(1, |(at, _)| at + 1),
        None => 1,
    }
}

/// Bytes of a raw string, if there is one.
fn raw_length(text: &str) -> Option<usize> {
    let body = text.trim_start_matches(['b', 'c']).strip_prefix('r')?;
    let fences = body.len() - body.trim_start_matches('#').len();
    let content = body[fences..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(fences));
    let before = text.len() - content.len();
    Some(content.find(&end).map_or(text.len(), |at| before + at + end.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYERS: &[&[&str]] = &[&["ground"], &["middle"], &["top"]];

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: format!("crates/a/src/{path}"), text: text.into() }
    }

    fn found(path: &str, text: &str) -> Vec<String> {
        let all = [file("ground.rs", ""), file("middle/mod.rs", ""), file("top.rs", ""), file(path, text)];
        findings("a", LAYERS, &all)
    }

    #[test]
    fn an_edge_to_a_layer_above_is_found_however_it_is_written() {
        let above = "middle may not use top, which is in a layer above it";
        for text in [
            "use crate::top::Thing;",
            "use crate::{ground::One, top::{Thing, Other as Named}};",
            "use super::super::top;",
            "fn f() -> crate::top::Thing { 1 }",
            "let a = '\"'; let b = \"//\"; use crate::top::*;",
            "mod tests { mod deep { use super::super::super::super::top::Thing; } }",
            "macro_rules! m { () => { $crate::top::f() } }",
        ] {
            let findings = found("middle/inner.rs", text);
            assert_eq!(findings, [format!("crates/a/src/middle/inner.rs:1: {above}")], "{text}");
        }
        let second = found("middle/inner.rs", "// one\nuse crate::top::Thing;\n");
        assert_eq!(second, [format!("crates/a/src/middle/inner.rs:2: {above}")]);
    }

    #[test]
    fn edges_within_a_layer_and_down_are_none_and_neither_is_text() {
        for text in [
            "use crate::ground::{One, two::Three}; use super::other::Thing; pub(crate) fn f() {}",
            "//! [`Thing`](crate::top::Thing)\n/* use crate::top::Thing; */",
            "const TEXT: &str = \"use crate::top::Thing;\"; const RAW: &str = r#\"\" crate::top::Thing\"#;",
            "fn f<'a>(x: &'a str) -> char { '\\'' } mod tests { use super::*; use super::top::Thing; }",
        ] {
            assert_eq!(found("middle/inner.rs", text), Vec::<String>::new(), "{text}");
        }
        assert_eq!(found("top.rs", "use crate::middle::Thing; use super::ground::One;"), Vec::<String>::new());
        assert_eq!(found("lib.rs", "pub use crate::top::Thing; use crate::middle::Other;"), Vec::<String>::new());
    }

    #[test]
    fn modules_have_layers_and_paths_go_by_modules() {
        let unknown = found("other.rs", "");
        assert_eq!(unknown, ["crates/a/src/other.rs: module other is in no layer of xtask/src/tidy/layers.rs"]);
        let by_root = found("middle/inner.rs", "use crate::Thing;");
        let expected = "names Thing by the crate's root; name the module that has it";
        assert_eq!(by_root, [format!("crates/a/src/middle/inner.rs:1: {expected}")]);
    }

    #[test]
    fn a_star_is_all_that_is_not_named() {
        let files = [file("one.rs", "use crate::two::A;"), file("two.rs", "use crate::{one::B, last::C, Root};")];
        let last = file("last.rs", "use crate::two::A;");
        let layers: &[&[&str]] = &[&["*"], &["last"]];
        let all: Vec<TextFile> = files.into_iter().chain([last]).collect();
        let above = "two may not use last, which is in a layer above it";
        assert_eq!(findings("a", layers, &all), [format!("crates/a/src/two.rs:1: {above}")]);
    }
}
