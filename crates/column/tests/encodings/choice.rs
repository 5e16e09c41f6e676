//! Profiles, and the encodings that columns get by them.

use warpcube_column::Storage;
use warpcube_column::encoding::{
    DICTIONARY_MAX, Dictionary, Encoding, Profile, Sample, candidates, choose, decode, encode,
};

use crate::data::*;

fn chosen(segment: &Segment) -> Encoding {
    let plain = segment.plain();
    let profile = Profile::of(&plain);
    let sample = Sample::of(&plain, 8);
    let distinct = Dictionary::distinct(&plain, DICTIONARY_MAX);
    choose(&profile, &sample.plain().unwrap(), distinct).unwrap()
}

fn name(storage: Storage, value: impl FnMut(u64) -> u64) -> &'static str {
    let bits: Vec<u64> = (0..40_000).map(value).collect();
    chosen(&Segment::new(storage, &bits, None)).name()
}

#[test]
fn the_smallest_wins_unless_it_is_slow() {
    let mut random = Random(1);
    assert_eq!(name(Storage::I32, |_| random.next() % 1000), "packed");
    assert_eq!(name(Storage::I64, |row| Random(row / 400).next()), "rle");
    assert_eq!(name(Storage::I64, |row| row * 1_000_003), "gpu-dfor");
    assert_eq!(name(Storage::I64, |_| Random(random.next() % 7).next()), "dictionary");
    assert_eq!(name(Storage::F64, |_| ((random.next() % 100_000) as f64 / 100.0).to_bits()), "alp");
    assert_eq!(name(Storage::F64, |_| random.next()), "plain");
    assert_eq!(name(Storage::F32, |_| u64::from((random.next() as f32).sqrt().to_bits())), "plain");
}

#[test]
fn what_is_chosen_holds_the_column() {
    for (case, distribution) in DISTRIBUTIONS.into_iter().enumerate() {
        for storage in STORAGES {
            for nulls in [Nulls::None, Nulls::Some, Nulls::All] {
                let segment = Segment::draw(storage, distribution, nulls, 2_100, case as u64);
                let (plain, validity) = (segment.plain(), segment.validity.as_deref());
                let sample = Sample::of(&plain, 1);
                let distinct = Dictionary::distinct(&plain, 1000);
                for candidate in candidates(&Profile::of(&plain), &sample.plain().unwrap(), distinct).unwrap() {
                    let encoding = candidate.encoding;
                    let bytes = encode(&encoding, &plain).unwrap_or_else(|error| panic!("{encoding:?}: {error}"));
                    let back = decode(&encoding, &bytes, storage, validity, segment.rows).unwrap();
                    assert!(back == segment.values, "{encoding:?} of {storage:?} {distribution:?}");
                }
            }
        }
    }
}

#[test]
fn an_empty_column_has_an_encoding() {
    for storage in STORAGES {
        let segment = Segment::new(storage, &[], None);
        assert_eq!(encode(&chosen(&segment), &segment.plain()).map(|bytes| bytes.len() < 64), Ok(true), "{storage:?}");
    }
}

#[test]
fn profiles_count_and_add_up() {
    let valid: Vec<bool> = (0..3000).map(|row| row % 10 != 3).collect();
    let bits: Vec<u64> = (0..3000).map(|row| if row % 10 == 3 { 1 << 40 } else { row / 6 }).collect();
    let profile = Profile::of(&Segment::new(Storage::I64, &bits, Some(&valid)).plain());
    assert_eq!((profile.rows, profile.nulls, profile.bounds), (3000, 300, Some((0, 499))));
    assert!(profile.is_sorted());
    // 500 runs, two of which a vector cuts.
    assert_eq!(profile.runs, 502);
    assert!(profile.distinct.estimate().abs_diff(500) < 15, "{}", profile.distinct.estimate());
    let halves = [&bits[..1024], &bits[1024..]].map(|bits| Segment::new(Storage::I64, bits, None));
    let [mut first, second] = halves.map(|segment| Profile::of(&segment.plain()));
    first.add(&second);
    let whole = Profile::of(&Segment::new(Storage::I64, &bits, None).plain());
    assert_eq!(first, whole);
    assert!(!whole.is_sorted() && whole.descents == 300);
    let negative = Profile::of(&Segment::new(Storage::I8, &[0xff, 1], None).plain());
    assert_eq!(negative.bounds, Some((-1, 1)));
}
