//! The document of the layouts consists of the heads of the encodings' files.
//!
//! `WARPCUBE_DOCS_UPDATE=1` writes the document.

use std::path::Path;

const BEGINNING: &str = "\
# Encodings

The layouts of segments: at most 2^20 rows of one column, in vectors of 1,024, little endian. This document consists of
the heads of the files in `crates/column/src/format`. After a change of a head,
`WARPCUBE_DOCS_UPDATE=1 cargo test -p warpcube-column --test encodings document` writes it.

`V` is the number of vectors of a segment. The left column of a layout is the first byte of a part.
";

/// Title and file of each section.
const SECTIONS: [(&str, &str); 16] = [
    ("Plain", "plain"),
    ("Packed", "packed"),
    ("Groups of packed segments", "bitpack"),
    ("Patches", "patches"),
    ("Delta", "delta"),
    ("NSF", "nsf"),
    ("NSV", "nsv"),
    ("RLE", "rle"),
    ("GPU-FOR", "gpu_for"),
    ("GPU-DFOR", "gpu_dfor"),
    ("Blocks of GPU-FOR and GPU-DFOR", "blocks"),
    ("Dictionary", "dictionary"),
    ("ALP", "alp"),
    ("Bytes", "bytes"),
    ("Files", "file"),
    ("Fields of a file's directory", "serial"),
];

#[test]
fn the_document_is_that_of_the_heads() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut expected = BEGINNING.to_string();
    for (title, file) in SECTIONS {
        let path = package.join("src/format").join(file).with_extension("rs");
        let source = std::fs::read_to_string(&path).unwrap();
        expected.push_str(&format!("\n## {title}\n\n"));
        for line in source.lines().map_while(|line| line.strip_prefix("//!")) {
            expected.push_str(line.strip_prefix(' ').unwrap_or(line));
            expected.push('\n');
        }
    }
    let document = package.join("ENCODINGS.md");
    if std::env::var_os("WARPCUBE_DOCS_UPDATE").is_some() {
        std::fs::write(&document, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&document).unwrap_or_default();
    assert!(
        found == expected,
        "crates/column/ENCODINGS.md differs from the heads; its first lines name the command that writes it"
    );
}
