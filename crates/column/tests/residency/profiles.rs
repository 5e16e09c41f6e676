//! What the device tells of a column is what the CPU tells.

use std::collections::HashSet;

use warpcube_column::Residency;
use warpcube_column::encoding::{Dictionary, Profile};

use crate::data::*;
use crate::encoded::{chunks, table};
use crate::source::residency;

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
    // A set that is filled up.
    assert_eq!(set(1).is_some(), distinct.len() <= 1, "{case}");
    drop(table);
    residency.clear();
    expected
}

#[test]
fn profiles_of_every_storage() {
    let residency = residency(256 << 20);
    for storage in STORAGES {
        for (seed, distribution) in DISTRIBUTIONS.into_iter().enumerate() {
            let chunks = chunks(storage, distribution, 1_000 * seed as u64 + 1);
            compare(&residency, &chunks, &format!("{storage:?} {distribution:?}"));
        }
    }
}
