//! What profiles tell of columns.

use warpcube_column::Storage;
use warpcube_column::format::Profile;

use crate::data::*;

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
