//! Properties of random dimensions: weights against a walk over every path, live changes, keys, stored forms.

use std::collections::BTreeMap;

use proptest::prelude::*;
use warpcube_cube::facts::KeyLayout;
use warpcube_cube::model::{
    Change, CubeModel, Dimension, DimensionBuilder, ElementId, ElementKind, Measure, Rule, ValueType,
};

/// Kinds of elements, then edges whose ends are taken as remainders: a parent is later than its child.
type Drawn = (Vec<u8>, Vec<(usize, usize, i8)>);

fn drawn() -> impl Strategy<Value = Drawn> {
    let kinds = prop::collection::vec(0..6_u8, 1..18);
    (kinds, prop::collection::vec((0..100_usize, 0..100_usize, -3..=3_i8), 0..40))
}

fn kind(number: u8) -> ElementKind {
    match number {
        0 => ElementKind::Text,
        1 | 2 => ElementKind::Base,
        _ => ElementKind::Consolidated,
    }
}

/// The dimension that a draw describes; `scale` multiplies its weights.
fn built((kinds, edges): &Drawn, scale: f64) -> Dimension {
    let mut builder = DimensionBuilder::new("D").unwrap();
    let ids: Vec<_> =
        kinds.iter().enumerate().map(|(at, k)| builder.add(&format!("E{at}"), kind(*k)).unwrap()).collect();
    let mut taken = std::collections::HashSet::new();
    for (parent, child, weight) in edges {
        let parent = parent % ids.len();
        if parent > 0 && kind(kinds[parent]) == ElementKind::Consolidated && taken.insert((parent, child % parent)) {
            builder.link(ids[parent], ids[child % parent], f64::from(*weight) * scale).unwrap();
        }
    }
    builder.finish().unwrap()
}

/// Weights of the base elements below `id` by a walk over every path.
fn walked(dimension: &Dimension, id: ElementId, weight: f64, found: &mut BTreeMap<u32, f64>) {
    if let Some(base) = dimension.element(id).base() {
        *found.entry(base).or_default() += weight;
    }
    for edge in dimension.element(id).children() {
        walked(dimension, edge.child, weight * edge.weight, found);
    }
}

/// Checks what holds in every dimension.
fn sound(dimension: &Dimension) {
    for (position, id) in dimension.elements().iter().enumerate() {
        let element = dimension.element(*id);
        assert_eq!(dimension.position(*id) as usize, position);
        assert_eq!(dimension.find(element.name()).unwrap(), *id);
        assert_eq!(element.base().is_some(), element.kind() == ElementKind::Base);
        assert!(element.base().is_none_or(|base| dimension.at_base(base) == Some(*id)));
        for edge in element.children() {
            assert!(dimension.element(edge.child).parents().contains(id));
            assert!(dimension.level(edge.child) < dimension.level(*id));
        }
        assert!(element.parents().iter().all(|p| dimension.element(*p).children().iter().any(|e| e.child == *id)));
        assert!(!dimension.descendants(*id).contains(id));
    }
    let measure = Measure { name: "m".to_owned(), rule: Rule::Sum, value: ValueType::Double, format: None, over: None };
    let cube = CubeModel::new("c", vec![dimension.clone()], vec![measure]).unwrap();
    assert_eq!(CubeModel::from_json(&cube.to_json().unwrap()).unwrap(), cube);
}

/// A change by number; ids and names may be unknown, so that a part of the changes is refused.
fn change(number: u8, a: u32, b: u32, c: u32, weight: f64) -> Change {
    let [a_id, b_id, c_id] = [a, b, c].map(ElementId::new);
    match number % 8 {
        0 => Change::Add { name: format!("N{a}"), kind: kind((b % 6) as u8), position: Some(c as usize) },
        1 => Change::Link { parent: a_id, child: b_id, weight, place: Some(c as usize) },
        2 => Change::Unlink { parent: a_id, child: b_id },
        3 => Change::Move { child: a_id, from: b_id, to: c_id, weight },
        4 => Change::Weigh { parent: a_id, child: b_id, weight },
        5 => Change::Rename { element: a_id, name: format!("N{b}") },
        6 => Change::Reposition { element: a_id, position: b as usize },
        _ => Change::Remove { element: a_id },
    }
}

proptest! {
    #[test]
    fn base_weights_equal_a_walk_over_every_path(draw in drawn()) {
        let dimension = built(&draw, 1.0);
        let map = dimension.base_map(dimension.elements()).unwrap();
        for (target, id) in dimension.elements().iter().enumerate() {
            let mut wanted = BTreeMap::new();
            walked(&dimension, *id, 1.0, &mut wanted);
            let found = dimension.base_weights(*id).unwrap();
            prop_assert_eq!(&found.bases, &wanted.keys().copied().collect::<Vec<_>>());
            prop_assert_eq!(&found.weights, &wanted.values().copied().collect::<Vec<_>>());
            prop_assert_eq!(&dimension.base_set(*id), &found.bases);
            prop_assert_eq!(map.by_target.row(target), (&found.bases[..], &found.weights[..]));
            prop_assert!(map.whole[target]);
        }
        prop_assert_eq!(map.by_base.transposed(), map.by_target);
    }

    #[test]
    fn fractional_weights_are_near_and_the_same_in_every_list(draw in drawn()) {
        let dimension = built(&draw, 0.1);
        let map = dimension.base_map(dimension.elements()).unwrap();
        for (target, id) in dimension.elements().iter().enumerate() {
            let mut wanted = BTreeMap::new();
            walked(&dimension, *id, 1.0, &mut wanted);
            let found = dimension.base_weights(*id).unwrap();
            prop_assert_eq!(&found.bases, &wanted.keys().copied().collect::<Vec<_>>());
            for (found, wanted) in found.weights.iter().zip(wanted.values()) {
                prop_assert!((found - wanted).abs() <= 1e-9, "{} {}", found, wanted);
            }
            prop_assert_eq!(map.by_target.row(target), (&found.bases[..], &found.weights[..]));
        }
    }

    #[test]
    fn live_changes_keep_what_holds(
        draw in drawn(),
        changes in prop::collection::vec((0..8_u8, 0..24_u32, 0..24_u32, 0..24_u32, -2.0..2.0_f64), 0..40),
        filled in 0..8_u32,
    ) {
        let mut dimension = built(&draw, 1.0);
        for (number, a, b, c, weight) in changes {
            let change = change(number, a, b, c, weight);
            let before = dimension.clone();
            let bases: Vec<_> = (0..before.base_count() as u32).map(|base| before.at_base(base)).collect();
            let was_removed = matches!(change, Change::Remove { .. });
            match dimension.apply(change, &|base| base == filled) {
                Err(_) => prop_assert_eq!(&dimension, &before),
                Ok(effect) => {
                    for (base, was) in bases.into_iter().enumerate() {
                        let freed = effect.freed_base == Some(base as u32);
                        prop_assert_eq!(dimension.at_base(base as u32), was.filter(|_| !freed));
                    }
                    prop_assert!(was_removed || effect.freed_base != Some(filled));
                }
            }
        }
        sound(&dimension);
    }

    #[test]
    fn keys_and_coordinates_are_a_bijection_that_keeps_order(
        shape in prop::collection::vec((0..=32_u32, any::<u32>(), any::<u32>()), 1..=32),
    ) {
        let mut room = 128;
        let bits: Vec<u32> = shape.iter().map(|(bits, ..)| { let b = (*bits).min(room); room -= b; b }).collect();
        let layout = KeyLayout::new(&bits).unwrap();
        let fitted = |value: u32, bits: u32| (u64::from(value) & ((1 << bits) - 1)) as u32;
        let a: Vec<u32> = shape.iter().zip(&bits).map(|((_, a, _), bits)| fitted(*a, *bits)).collect();
        let b: Vec<u32> = shape.iter().zip(&bits).map(|((.., b), bits)| fitted(*b, *bits)).collect();
        let (key_a, key_b) = (layout.pack::<u128>(&a), layout.pack(&b));
        prop_assert_eq!(layout.unpack(key_a), a.clone());
        prop_assert_eq!(key_a.cmp(&key_b), a.cmp(&b));
        prop_assert!(key_a.checked_shr(layout.total_bits()).unwrap_or(0) == 0);
        prop_assert_eq!(layout.is_narrow(), layout.total_bits() <= 64);
        let shifted = a.iter().enumerate().map(|(d, at)| u128::from(*at).checked_shl(layout.shift(d)).unwrap_or(0));
        prop_assert_eq!(shifted.sum::<u128>(), key_a);
    }
}
