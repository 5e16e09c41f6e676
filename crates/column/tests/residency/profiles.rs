//! Profiles of the device equal those of the CPU.

use std::collections::HashSet;

use warpcube_column::format::{Dictionary, Profile};
use warpcube_column::{Residency, Storage};

use crate::data::*;
use crate::encoded::{chunks, devices, table};

fn compare(residency: &Residency, chunks: &[Segment], case: &str) -> Profile {
    let table = table(residency, chunks);
    let column = &table.columns[0];
    let found = residency.profile(column).unwrap();
    let mut expected = Profile::of(&chunks[0].plain());
    chunks[1..].iter().for_each(|chunk| expected.add(&Profile::of(&chunk.plain())));
    assert!(found == expected, "{case}: {found:?}\nexpected {expected:?}");
    let distinct: HashSet<u64> =
        chunks.iter().flat_map(|chunk| Dictionary::distinct(&chunk.plain(), usize::MAX).unwrap()).collect();
    let set = |limit| residency.distinct(column, limit).unwrap();
    let found = set(distinct.len()).unwrap();
    assert_eq!((found.len(), found.into_iter().collect::<HashSet<_>>()), (distinct.len(), distinct.clone()), "{case}");
    if !distinct.is_empty() {
        assert_eq!(set(distinct.len() - 1), None, "{case}");
    }
    // A full hash set.
    assert_eq!(set(1).is_some(), distinct.len() <= 1, "{case}");
    drop(table);
    residency.clear();
    expected
}

#[test]
fn profiles_of_every_storage() {
    let devices = devices();
    for storage in Storage::ALL {
        for (seed, distribution) in DISTRIBUTIONS.into_iter().enumerate() {
            let chunks = chunks(storage, distribution, 1_000 * seed as u64 + 1);
            compare(&devices[seed % 3], &chunks, &format!("{storage:?} {distribution:?}"));
        }
    }
}

#[test]
fn profiles_of_many_segments() {
    let nulls = [Nulls::None, Nulls::Some, Nulls::All];
    let draw = |chunk: usize| {
        let rows = 1 + chunk * 37 % 1_500;
        Segment::draw(Storage::I32, Distribution::Runs, nulls[chunk % 3], rows, chunk as u64)
    };
    let chunks: Vec<Segment> = (0..40).map(draw).collect();
    for residency in devices() {
        let profile = compare(&residency, &chunks, "many");
        assert!(profile.descents > 100 && profile.nulls > 1_000, "{profile:?}");
    }
}
