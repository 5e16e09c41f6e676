//! Flipped bits, cut and missing files, other versions: an error that names the file, or the same cube.

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};
use warpcube_arrays::Scheme;
use warpcube_cube::facts::{Rule, ValueType};
use warpcube_cube::store::{self, CubeLock, StoreError, StoredCube};

use crate::cubes::{facts, model, names, small};

fn stored() -> (TempDir, PathBuf, StoredCube) {
    stored_as(Scheme::Bess)
}

fn stored_as(scheme: Scheme) -> (TempDir, PathBuf, StoredCube) {
    let temporary = tempdir().unwrap();
    let (folder, cube) = (temporary.path().join("cube"), StoredCube { scheme, ..small() });
    store::create(&folder, &cube).unwrap();
    (temporary, folder, cube)
}

/// Changes a manifest and gives it the checksum of its new text.
pub fn rewrite(folder: &Path, change: impl FnOnce(&mut Value)) {
    let path = folder.join("cube.json");
    let mut json: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    json.as_object_mut().unwrap().shift_remove("checksum").unwrap();
    change(&mut json);
    let text = serde_json::to_string_pretty(&json).unwrap();
    let body = format!("{}\n", text.strip_prefix("{\n").unwrap());
    let checksum = crc32fast::hash(body.as_bytes());
    fs::write(path, format!("{{\"checksum\": \"{checksum:08x}\",\n{body}")).unwrap();
}

pub fn files(json: &mut Value) -> &mut Vec<Value> {
    json["files"].as_array_mut().unwrap()
}

fn file<'a>(json: &'a mut Value, role: &str) -> &'a mut Value {
    files(json).iter_mut().find(|file| file["role"] == role).unwrap()
}

#[test]
fn a_flipped_bit_anywhere_is_found_or_means_nothing() {
    flips_are_found(Scheme::Bess);
}

#[test]
fn a_flipped_bit_of_an_index_is_found_or_means_nothing() {
    flips_are_found(Scheme::Bxcrs);
}

fn flips_are_found(scheme: Scheme) {
    let (_temporary, folder, cube) = stored_as(scheme);
    let mut found = 0;
    for name in names(&folder) {
        let path = folder.join(&name);
        let whole = fs::read(&path).unwrap();
        let mut harmless = 0;
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            fs::write(&path, &damaged).unwrap();
            let opened = catch_unwind(|| store::open(&folder));
            match opened.unwrap_or_else(|_| panic!("{name}: byte {at} panics")) {
                Ok(opened) => {
                    assert_eq!(opened, cube, "{name}: byte {at}");
                    harmless += 1;
                }
                Err(error) => {
                    assert!(error.to_string().contains(&name), "{name}: byte {at}: {error}");
                    found += 1;
                }
            }
        }
        fs::write(&path, &whole).unwrap();
        // Zeros between the pages of the facts have no meaning, nor has the name of a former holder.
        let zeros = if name.ends_with(".warpcols") { whole.len() / 4 } else { 0 };
        assert!(harmless <= zeros, "{name}: {harmless} of {} bytes mean nothing", whole.len());
    }
    assert!(found > 4000, "{found} flipped bits were found");
    assert_eq!(store::open(&folder).unwrap(), cube);
}

#[test]
fn a_file_of_another_length_is_refused() {
    let (_temporary, folder, cube) = stored();
    for name in names(&folder).into_iter().filter(|name| name != "lock") {
        let path = folder.join(&name);
        let whole = fs::read(&path).unwrap();
        let longer = [whole.clone(), vec![0; 64]].concat();
        let cut = (0..whole.len()).map(|length| &whole[..length]);
        for bytes in cut.chain([longer.as_slice()]) {
            fs::write(&path, bytes).unwrap();
            let error = store::open(&folder).unwrap_err().to_string();
            assert!(error.contains(&name), "{name} of {} bytes: {error}", bytes.len());
        }
        fs::remove_file(&path).unwrap();
        let error = store::open(&folder).unwrap_err();
        match &error {
            StoreError::NoCube { .. } => assert_eq!(name, "cube.json"),
            StoreError::Io { path: named, .. } => assert_eq!(named, &path),
            error => panic!("{name} is missing: {error}"),
        }
        fs::write(&path, &whole).unwrap();
    }
    assert_eq!(store::open(&folder).unwrap(), cube);
}

#[test]
fn another_scheme_or_version_of_it_is_named() {
    let (_temporary, folder, _) = stored_as(Scheme::Xcrs);
    rewrite(&folder, |json| json["facts"]["scheme_version"] = json!(2));
    let error = store::open(&folder).unwrap_err().to_string();
    assert!(error.ends_with("has version 2 of its format, this program reads version 1"), "{error}");
    rewrite(&folder, |json| {
        json["facts"]["scheme_version"] = json!(1);
        json["facts"]["scheme"] = json!("crs");
    });
    let error = store::open(&folder).unwrap_err().to_string();
    assert!(error.contains("'crs' is no storage scheme"), "{error}");
    // Arrays of one scheme are none of another.
    rewrite(&folder, |json| json["facts"]["scheme"] = json!("hybrid:1"));
    let error = store::open(&folder).unwrap_err().to_string();
    assert!(error.contains("is damaged: column 0 is not 'index bei'"), "{error}");
    // Folders from before schemes had versions hold the first one.
    let (_temporary, folder, cube) = stored();
    rewrite(&folder, |json| {
        json["facts"].as_object_mut().unwrap().remove("scheme_version");
        json["facts"]["scheme"] = json!("BESS");
    });
    assert_eq!(store::open(&folder).unwrap(), cube);
}

#[test]
fn another_version_is_named() {
    let (_temporary, folder, _) = stored();
    let path = folder.join("facts-1.warpcols");
    let mut bytes = fs::read(&path).unwrap();
    bytes[8] += 1;
    fs::write(&path, bytes).unwrap();
    let error = store::open(&folder).unwrap_err().to_string();
    assert!(error.ends_with("has format version 4 of encoded columns, this program reads 3"), "{error}");
    // Fields of another version may be others.
    rewrite(&folder, |json| {
        json["version"] = json!(3);
        json["news"] = json!(true);
    });
    for error in [store::open(&folder).unwrap_err(), CubeLock::lock(&folder).unwrap().replace(&small()).unwrap_err()] {
        assert!(matches!(&error, StoreError::Version { found: 3, wanted: 2, .. }), "{error}");
        assert!(error.to_string().ends_with("has version 3 of its format, this program reads version 2"), "{error}");
    }
}

#[test]
fn a_manifest_that_lies_is_refused() {
    let (_temporary, folder, cube) = stored();
    let whole = fs::read(folder.join("cube.json")).unwrap();
    type Lie<'a> = (&'a dyn Fn(&mut Value), &'a str);
    let lies: [Lie<'_>; 10] = [
        (&|json| json["facts"]["cells"] = json!(u64::MAX), "its pages hold 3 cells, the manifest has"),
        (&|json| json["facts"]["cells"] = json!(2), "its pages hold 3 cells, the manifest has 2"),
        (&|json| json["identity"] = json!("0"), "holds version"),
        (&|json| json["cube"] = json!("other"), "holds version"),
        (&|json| json["generation"] = json!("x"), "it is no manifest"),
        (&|json| json["strange"] = json!(1), "it is no manifest"),
        (&|json| files(json).retain(|file| file["role"] != "model"), "it names no model"),
        (&|json| files(json).retain(|file| file["role"] != "facts"), "it names no facts"),
        (&|json| file(json, "texts")["bytes"] = json!(u64::MAX), "it has"),
        (&|json| file(json, "model")["name"] = json!("../secret"), "'../secret' is no name"),
    ];
    for (lie, message) in lies {
        rewrite(&folder, |json| lie(json));
        let error = store::open(&folder).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
        fs::write(folder.join("cube.json"), &whole).unwrap();
    }
    rewrite(&folder, |json| json["facts"]["page_cells"] = json!(u64::MAX));
    assert_eq!(store::open(&folder).unwrap().facts.base().keys(), cube.facts.base().keys());
    rewrite(&folder, |json| json["facts"]["page_cells"] = json!(0));
    assert_eq!(store::open(&folder).unwrap().facts.base().keys(), cube.facts.base().keys());
}

#[test]
fn files_of_another_cube_are_refused() {
    let (_temporary, folder, cube) = stored();
    let (_other_temporary, other, _) = stored();
    let mut changed = cube.clone();
    changed.definition = Some("cube: large\n".to_owned());
    changed.texts.pop();
    CubeLock::lock(&other).unwrap().replace(&changed).unwrap();
    for (own, foreign) in [("facts-1.warpcols", "facts-2.warpcols"), ("texts-1.arrow", "texts-2.arrow")] {
        let whole = fs::read(folder.join(own)).unwrap();
        fs::copy(other.join(foreign), folder.join(own)).unwrap();
        let error = store::open(&folder).unwrap_err().to_string();
        assert!(error.contains(own), "{error}");
        fs::write(folder.join(own), whole).unwrap();
    }
}

#[test]
fn errors_name_column_and_page() {
    let decimal = ValueType::Decimal { scale: 0 };
    let model = model("pages", &[1000, 1000], &[(Rule::Sum, decimal), (Rule::Sum, ValueType::Double)]);
    let rows: Vec<_> = (0..196_000_u64)
        .map(|row| (row * 5 + row % 4, Some((row * 7919 % 100_000) as i64), Some(row as f64 / 4.0)))
        .collect();
    let cube = StoredCube::new(model.clone(), facts(&model, &rows, 4096));
    let temporary = tempdir().unwrap();
    let folder = temporary.path().join("cube");
    store::create(&folder, &cube).unwrap();
    let path = folder.join("facts-1.warpcols");
    let whole = fs::read(&path).unwrap();
    let mut places = BTreeSet::new();
    for part in 1..60 {
        let mut damaged = whole.clone();
        damaged[whole.len() * part / 60] ^= 4;
        fs::write(&path, damaged).unwrap();
        let error = store::open(&folder).unwrap_err().to_string();
        let place = error.split(" is damaged at ").nth(1).unwrap_or_else(|| panic!("{error}"));
        places.insert(place.to_owned());
    }
    let place = |column, chunk| format!("column '{column}', chunk {chunk}: its checksum differs");
    let pages = cube.facts.len().div_ceil(store::PAGE_ROWS);
    let expected: BTreeSet<String> = ["key", "measure M0", "measure M1"]
        .into_iter()
        .flat_map(|column| (0..pages).map(move |page| place(column, page)))
        .collect();
    assert_eq!((pages, places), (3, expected));
}
