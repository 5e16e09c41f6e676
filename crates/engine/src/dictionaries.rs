//! Strings of several dictionaries beside each other: codes of one as codes or places among another's.
//!
//! Dictionaries are sorted, so that all of this is merging; it is done when a fragment is bound, and the tables are
//! remembered for as long as their dictionaries live.

use std::cmp::Ordering;
use std::sync::{Arc, Weak};

use arrow::array::StringArray;
use parking_lot::Mutex;
use warpcube_column::Dictionary;

/// Results remembered at most.
const REMEMBERED_MAX: usize = 32;

/// A code that no string has.
pub(crate) const MISSING: u32 = u32::MAX;

/// Where strings lie among others: `2 i + 1` at the `i`-th of them, `2 i` before it.
pub(crate) fn places(of: &Arc<Dictionary>, among: &Arc<Dictionary>) -> Arc<Vec<u32>> {
    static KNOWN: Mutex<Vec<Known<Vec<u32>>>> = Mutex::new(Vec::new());
    remembered(&KNOWN, &[of, among], || {
        let mut at = 0;
        let place = |code: u32| {
            let text = of.value(code);
            while at < among.len() && among.value(at as u32) < text {
                at += 1;
            }
            let same = at < among.len() && among.value(at as u32) == text;
            2 * at as u32 + u32::from(same)
        };
        (0..of.len() as u32).map(place).collect()
    })
}

/// Codes among another dictionary's, [`MISSING`] for strings it has not.
pub(crate) fn codes(of: &Arc<Dictionary>, among: &Arc<Dictionary>) -> Vec<u32> {
    places(of, among).iter().map(|place| if place % 2 == 1 { place / 2 } else { MISSING }).collect()
}

/// The strings of several dictionaries as one.
pub(crate) fn merged(dictionaries: &[&Arc<Dictionary>]) -> Arc<Dictionary> {
    static KNOWN: Mutex<Vec<Known<Dictionary>>> = Mutex::new(Vec::new());
    let [first, others @ ..] = dictionaries else {
        return Arc::new(Dictionary::from_sorted(StringArray::from(Vec::<&str>::new())));
    };
    if others.iter().all(|other| Arc::ptr_eq(first, other)) {
        return (*first).clone();
    }
    remembered(&KNOWN, dictionaries, || {
        let all: Vec<&str> = dictionaries.iter().fold(Vec::new(), |known, dictionary| union(&known, dictionary));
        Dictionary::from_sorted(StringArray::from_iter_values(all))
    })
}

fn union<'a>(one: &[&'a str], other: &'a Dictionary) -> Vec<&'a str> {
    let mut both = Vec::with_capacity(one.len() + other.len());
    let mut one = one.iter().copied().peekable();
    let mut other = (0..other.len() as u32).map(|code| other.value(code)).peekable();
    loop {
        let next = match (one.peek(), other.peek()) {
            (None, None) => return both,
            (Some(_), None) => one.next(),
            (None, Some(_)) => other.next(),
            (Some(left), Some(right)) => match left.cmp(right) {
                Ordering::Less => one.next(),
                Ordering::Greater => other.next(),
                Ordering::Equal => {
                    one.next();
                    other.next()
                }
            },
        };
        both.extend(next);
    }
}

/// A result with the dictionaries it was made of.
struct Known<T> {
    of: Vec<Weak<Dictionary>>,
    result: Arc<T>,
}

fn remembered<T>(known: &Mutex<Vec<Known<T>>>, of: &[&Arc<Dictionary>], make: impl FnOnce() -> T) -> Arc<T> {
    let same = |one: &Known<T>| {
        // A weak reference keeps its address taken.
        one.of.len() == of.len()
            && one.of.iter().zip(of).all(|(weak, arc)| std::ptr::eq(weak.as_ptr(), Arc::as_ptr(arc)))
    };
    if let Some(found) = known.lock().iter().find(|one| same(one)) {
        return found.result.clone();
    }
    let result = Arc::new(make());
    let mut known = known.lock();
    known.retain(|one| one.of.iter().all(|dictionary| dictionary.strong_count() > 0));
    if known.len() >= REMEMBERED_MAX {
        known.remove(0);
    }
    known.push(Known { of: of.iter().map(|dictionary| Arc::downgrade(dictionary)).collect(), result: result.clone() });
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dictionary(texts: &[&str]) -> Arc<Dictionary> {
        Arc::new(Dictionary::from_sorted(StringArray::from(texts.to_vec())))
    }

    #[test]
    fn strings_find_their_place() {
        let (one, other) = (dictionary(&["b", "d", "f"]), dictionary(&["a", "b", "e", "f", "g"]));
        assert_eq!(*places(&other, &one), [0, 1, 4, 5, 6]);
        assert_eq!(codes(&other, &one), [MISSING, 0, MISSING, 2, MISSING]);
        assert_eq!(*places(&one, &dictionary(&[])), [0, 0, 0]);
        assert!(Arc::ptr_eq(&places(&other, &one), &places(&other, &one)), "made once");
    }

    #[test]
    fn dictionaries_merge() {
        let (one, other) = (dictionary(&["b", "d"]), dictionary(&["a", "b", "e"]));
        let all = merged(&[&one, &other, &dictionary(&[""])]);
        assert_eq!(all.values().iter().flatten().collect::<Vec<_>>(), ["", "a", "b", "d", "e"]);
        assert!(Arc::ptr_eq(&merged(&[&one, &one]), &one));
    }
}
