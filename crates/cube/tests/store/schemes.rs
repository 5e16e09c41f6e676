//! Cubes in every storage scheme: stored and read back equal, converted, refused with their size.

use proptest::prelude::*;
use tempfile::tempdir;
use warpcube_arrays::{Scheme, SchemeError};
use warpcube_cube::facts::{Rule, ValueType};
use warpcube_cube::store::{self, CubeLock, Role, StoreError, StoredCube, chosen, scheme_sizes};

use crate::cubes::{Row, expected_names, facts, model, names};

const MEASURES: [(Rule, ValueType); 3] = [
    (Rule::Sum, ValueType::Decimal { scale: 2 }),
    (Rule::Avg, ValueType::Double),
    (Rule::Count, ValueType::Decimal { scale: 0 }),
];

fn cube(sizes: &[usize], rows: &[Row]) -> StoredCube {
    let model = model("schemes", sizes, &MEASURES);
    let facts = facts(&model, rows, 16);
    StoredCube::new(model, facts)
}

/// Every scheme that files have.
fn schemes(dimensions: usize) -> Vec<Scheme> {
    Scheme::all(dimensions).into_iter().filter(|scheme| *scheme != Scheme::Ptcs).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn facts_come_back_equal_from_every_scheme(
        sizes in prop::collection::vec(1..9_usize, 1..5),
        rows in prop::collection::vec((any::<u64>(), prop::option::of(-9..9_i64), prop::option::of(-9.0..9.0)), 0..80),
    ) {
        let temporary = tempdir().unwrap();
        let folder = temporary.path().join("cube");
        let cube = cube(&sizes, &rows);
        store::create(&folder, &cube).unwrap();
        let held = CubeLock::lock(&folder).unwrap();
        for scheme in schemes(sizes.len()) {
            let other = StoredCube { scheme, ..cube.clone() };
            held.replace(&other).unwrap();
            prop_assert_eq!(&held.open().unwrap(), &other);
            prop_assert_eq!(names(&folder), expected_names(&folder));
            let info = store::info(&folder).unwrap();
            prop_assert_eq!(info.facts.scheme, scheme.to_string());
        }
    }
}

/// Twice the rows of a page, so that every array has several.
fn large() -> StoredCube {
    let rows: Vec<Row> = (0..150_000_u64).map(|row| (row * 7 % 180_000, Some(row as i64 % 1000), None)).collect();
    cube(&[50, 400, 9], &rows)
}

#[test]
fn sizes_are_those_of_the_files() {
    let cube = large();
    assert!(cube.facts.len() > 2 * store::PAGE_ROWS);
    let temporary = tempdir().unwrap();
    let sizes = scheme_sizes(&cube).unwrap();
    assert_eq!(sizes.len(), 10);
    for size in &sizes {
        let folder = temporary.path().join(size.scheme.to_string().replace(':', "-"));
        let stored = StoredCube { scheme: size.scheme, ..cube.clone() };
        match &size.bytes {
            Ok(bytes) => {
                store::create(&folder, &stored).unwrap();
                assert_eq!(store::open(&folder).unwrap(), stored, "{}", size.scheme);
                assert_eq!(store::info(&folder).unwrap().index_bytes(), *bytes, "{}", size.scheme);
            }
            Err(error) => {
                assert_eq!(error, &SchemeError::NoFile { scheme: Scheme::Ptcs });
                let refused = store::create(&folder, &stored).unwrap_err();
                assert!(matches!(refused, StoreError::Scheme { .. }) && !folder.exists(), "{refused}");
            }
        }
    }
    let of = |scheme| sizes.iter().find(|size| size.scheme == scheme).and_then(|size| size.bytes.clone().ok());
    let least = sizes.iter().filter_map(|size| size.bytes.clone().ok()).min();
    assert!(of(chosen(&sizes)) == least || chosen(&sizes) == Scheme::Bess, "{sizes:?}");
}

#[test]
fn pointers_are_files_of_their_own() {
    let temporary = tempdir().unwrap();
    for (scheme, arrays) in [
        (Scheme::Xcrs, &["rptr"][..]),
        (Scheme::Xccs, &["cptr"]),
        (Scheme::Bxcrs, &["rptr_c", "compwrd"]),
        (Scheme::Hybrid { r: 3 }, &["bptr"]),
        (Scheme::Bess, &[]),
    ] {
        let folder = temporary.path().join(scheme.to_string().replace(':', "-"));
        let cube = cube(&[4, 5, 6], &[(1, Some(1), None), (117, Some(2), Some(0.5)), (30, Some(-1), None)]);
        store::create(&folder, &StoredCube { scheme, ..cube }).unwrap();
        let info = store::info(&folder).unwrap();
        let found: Vec<&str> = info.facts.pointers.iter().map(|array| array.name.as_str()).collect();
        assert_eq!(found, arrays, "{scheme}");
        assert_eq!(info.files.iter().filter(|file| file.role == Role::Index).count(), arrays.len());
        assert_eq!(info.facts.scheme_version, store::SCHEME_VERSION);
    }
}

#[test]
fn pointers_above_the_limit_are_refused_with_their_size() {
    let temporary = tempdir().unwrap();
    let folder = temporary.path().join("cube");
    let cube = cube(&[300, 300, 300, 300], &[(5, Some(1), None)]);
    store::create(&folder, &cube).unwrap();
    let held = CubeLock::lock(&folder).unwrap();
    let before = names(&folder);
    let scheme = Scheme::Hybrid { r: 1 };
    let error = held.replace(&StoredCube { scheme, ..cube.clone() }).unwrap_err().to_string();
    assert_eq!(
        error,
        "cube 'schemes' cannot be stored: pointer arrays of scheme hybrid:1 take 64800000008 bytes for 8100000000 \
         blocks, more than the limit of 1073741824: use bess, or hybrid with a larger r"
    );
    assert_eq!((names(&folder), held.open().unwrap()), (before, cube));
}

#[test]
fn wide_keys_and_partitions_come_back() {
    let temporary = tempdir().unwrap();
    let rows: Vec<Row> =
        (0..40_u64).map(|row| (row.wrapping_mul(0x9E37_79B9_7F4A_7C15), Some(row as i64), None)).collect();
    let cube = cube(&[7; 24], &rows);
    assert!(!cube.facts.layout().is_narrow());
    for scheme in [Scheme::Bess, Scheme::Coordinate, Scheme::OffsetValue, Scheme::Hybrid { r: 24 }] {
        let folder = temporary.path().join(scheme.to_string().replace(':', "-"));
        let stored = StoredCube { scheme, ..cube.clone() };
        store::create(&folder, &stored).unwrap();
        assert_eq!(store::open(&folder).unwrap(), stored, "{scheme}");
    }
}
