//! What is written is what is read.

use proptest::prelude::*;
use tempfile::tempdir;
use warpcube_arrays::Scheme;
use warpcube_cube::facts::{FactMeasure, InputColumn, InputValues, Loader, Rule, ValueType};
use warpcube_cube::model::{Change, ElementId, ElementKind};
use warpcube_cube::store::{self, CubeLock, Role, StoreError, StoredCube};

use crate::cubes::{cubes, expected_names, facts, model, names, small};

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn cubes_come_back_equal(first in cubes(), second in cubes()) {
        let temporary = tempdir().unwrap();
        let folder = temporary.path().join("cube");
        store::create(&folder, &first).unwrap();
        prop_assert_eq!(&store::open(&folder).unwrap(), &first);
        let held = CubeLock::lock(&folder).unwrap();
        prop_assert_eq!(held.replace(&second).unwrap(), 2);
        prop_assert_eq!(&held.open().unwrap(), &second);
        prop_assert_eq!(names(&folder), expected_names(&folder));
        let info = store::info(&folder).unwrap();
        prop_assert_eq!(info.facts.cells, second.facts.len() as u64);
        prop_assert_eq!(info.texts, second.texts.len() as u64);
        for file in &info.files {
            prop_assert_eq!(std::fs::metadata(folder.join(&file.name)).unwrap().len(), file.bytes);
        }
    }
}

#[test]
fn a_cube_without_facts_comes_back() {
    let temporary = tempdir().unwrap();
    for sizes in [&[1][..], &[6; 24]] {
        let model = model("empty", sizes, &[(Rule::Sum, ValueType::Double), (Rule::Count, ValueType::Double)]);
        let cube = StoredCube::new(model.clone(), facts(&model, &[], 7));
        let folder = temporary.path().join(sizes.len().to_string());
        store::create(&folder, &cube).unwrap();
        assert_eq!(store::open(&folder).unwrap(), cube);
        let info = store::info(&folder).unwrap();
        assert_eq!((info.generation, info.facts.cells, info.bytes_per_fact()), (1, 0, None));
    }
}

#[test]
fn pages_are_packed_and_named() {
    let decimal = ValueType::Decimal { scale: 2 };
    let model = model("pages", &[50, 400, 9], &[(Rule::Sum, decimal), (Rule::Sum, ValueType::Double)]);
    let price = |row: u64| (row % 5 > 0).then_some((row % 700) as f64 / 4.0);
    let rows: Vec<_> =
        (0..150_000_u64).map(|row| (row * 7 % 180_000, Some((row % 1000) as i64 + 1_000_000), price(row))).collect();
    let cube = StoredCube::new(model.clone(), facts(&model, &rows, 4096));
    assert!(cube.facts.len() > 2 * store::PAGE_ROWS, "{} cells", cube.facts.len());
    let temporary = tempdir().unwrap();
    let folder = temporary.path().join("cube");
    store::create(&folder, &cube).unwrap();
    assert_eq!(store::open(&folder).unwrap(), cube);
    let info = store::info(&folder).unwrap();
    let columns: Vec<&str> = info.facts.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(columns[..3], ["key", "measure M0", "measure M1"]);
    // Values of 8 bytes each would take 24 bytes a fact.
    let cells = info.facts.cells as f64;
    let bytes = |column: usize| info.facts.columns[column].bytes as f64 / cells;
    assert!(bytes(0) < 1.5 && bytes(1) < 3.1 && bytes(2) < 3.1, "{:?}", info.facts);
    let sum: u64 = info.facts.columns.iter().map(|column| column.bytes).sum();
    assert!(info.facts_bytes() < sum + 8192, "{} bytes for {sum} of pages", info.facts_bytes());
    assert_eq!(info.files.iter().filter(|file| file.role == Role::Facts).count(), 1);
}

#[test]
fn folders_that_hold_something_are_refused() {
    let temporary = tempdir().unwrap();
    let cube = small();
    std::fs::write(temporary.path().join("notes.txt"), "mine").unwrap();
    let error = store::create(temporary.path(), &cube).unwrap_err();
    assert!(matches!(&error, StoreError::NotEmpty { entry, .. } if entry == "notes.txt"), "{error}");
    assert_eq!(names(temporary.path()), ["notes.txt"]);
    let folder = temporary.path().join("deep/cube");
    store::create(&folder, &cube).unwrap();
    let error = store::create(&folder, &cube).unwrap_err();
    assert!(matches!(error, StoreError::Exists { .. }), "{error}");
    assert!(matches!(store::check_new(&folder), Err(StoreError::Exists { .. })));
    assert!(store::check_new(&temporary.path().join("new")).is_ok());
    assert_eq!(store::open(&folder).unwrap(), cube);
}

#[test]
fn a_folder_without_a_manifest_is_no_cube() {
    let temporary = tempdir().unwrap();
    let missing = temporary.path().join("nothing");
    for folder in [temporary.path(), &missing] {
        let errors = [
            store::open(folder).map(drop).unwrap_err(),
            store::info(folder).map(drop).unwrap_err(),
            CubeLock::lock(folder).map(drop).unwrap_err(),
        ];
        for error in errors {
            assert!(error.to_string().ends_with("is no cube: it has no cube.json"), "{error}");
        }
    }
    assert!(names(temporary.path()).is_empty());
}

#[test]
fn sums_of_averages_beyond_their_type_come_back_in_every_scheme() {
    let temporary = tempdir().unwrap();
    let measures = [(Rule::Avg, ValueType::Decimal { scale: 2 }), (Rule::Avg, ValueType::Double)];
    let model = model("small", &[3, 5], &measures);
    let of_facts = model.measures().iter().map(|one| FactMeasure::new(&one.name, one.rule, one.value)).collect();
    let mut loader = Loader::new(model.layout().clone(), of_facts);
    let decimals = InputColumn { values: InputValues::Decimals(&[6_000_000_000_000_000_000; 3]), filled: None };
    let doubles = InputColumn { values: InputValues::Doubles(&[1.0, -1.5e308, -1.5e308]), filled: None };
    loader.append(&[&[0, 1, 1], &[4, 0, 0]], &[decimals, doubles]).unwrap();
    let facts = loader.finish(2).unwrap();
    assert!((0..2).all(|measure| facts.base().carries(measure).is_some()));
    for scheme in [Scheme::Bess, Scheme::Xccs, Scheme::Bxcrs] {
        let cube = StoredCube { scheme, ..StoredCube::new(model.clone(), facts.clone()) };
        let folder = temporary.path().join(scheme.to_string());
        store::create(&folder, &cube).unwrap();
        assert_eq!(store::open(&folder).unwrap(), cube, "{scheme}");
    }
}

#[test]
fn contradictions_are_refused_and_write_nothing() {
    let temporary = tempdir().unwrap();
    let cube = small();
    let decimal = ValueType::Decimal { scale: 2 };
    let wide = model("small", &[3, 200], &[(Rule::Sum, decimal), (Rule::Avg, ValueType::Double)]);
    let other = model("small", &[3, 5], &[(Rule::Sum, decimal), (Rule::Avg, decimal)]);
    let mut text = cube.clone();
    text.texts[0].elements[1] = ElementId::new(99);
    let mut short = cube.clone();
    short.texts[1].elements.pop();
    let mut fewer = model("small", &[2, 5], &[(Rule::Sum, decimal), (Rule::Avg, ValueType::Double)]);
    let add = Change::Add { name: "N".to_owned(), kind: ElementKind::Consolidated, position: None };
    fewer.apply(0, add, &|_| false).unwrap();
    let cases = [
        (StoredCube { model: wide, ..cube.clone() }, "keys of the facts have bits"),
        (StoredCube { model: other, ..cube.clone() }, "the measures of the facts are not those of the model"),
        (text, "text cell 0 names element number 99 of dimension 'D1', which does not live"),
        (short, "text cell 1 names 1 elements, the cube has 2 dimensions"),
    ];
    for (cube, message) in cases {
        let folder = temporary.path().join("cube");
        let error = store::create(&folder, &cube).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
        assert!(!folder.exists());
    }
}
