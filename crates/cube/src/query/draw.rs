//! Cross-tabs drawn at random, for measurements and tests: what people ask, of every size up to a limit.

use warpcube_arrays::random::Random;

use super::{BoundQuery, bind, parse, quoted};
use crate::model::{CubeModel, Dimension, ElementId, ElementKind};

/// Elements of a list of names.
const LIST_MAX: u64 = 12;
/// Sets that are drawn for a dimension until one has room.
const TRIALS: u32 = 8;

/// The text of a cross-tab of at most `targets_max` cells: elements of all dimensions, base and consolidated, each in a
/// point or in one of the sets that the language has. Sizes are drawn evenly by their logarithms.
pub fn random_cross_tab(model: &CubeModel, targets_max: u64, random: &mut Random) -> String {
    let share = (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
    let mut room = (targets_max.max(1) as f64).powf(share).ceil() as u64;
    let mut dimensions: Vec<usize> = (0..model.dimensions().len()).collect();
    for place in (1..dimensions.len()).rev() {
        dimensions.swap(place, random.below(place as u64 + 1) as usize);
    }
    let (mut axes, mut point) = ([Vec::new(), Vec::new(), Vec::new()], Vec::new());
    for number in dimensions {
        let dimension = &model.dimensions()[number];
        let drawn = (0..TRIALS).find_map(|_| {
            let set = set(dimension, room, random)?;
            size(model, &set).filter(|size| (1..=room).contains(size)).map(|size| (set, size))
        });
        match drawn {
            Some((set, size)) if size > 1 || axes[0].is_empty() => {
                room /= size;
                // Pages are the rarest.
                let axis = [0, 0, 1, 1, 2][random.below(5) as usize];
                axes[if axes[0].is_empty() { 0 } else { axis }].push(set);
            }
            _ => point.extend(element(dimension, random)),
        }
    }
    let mut text = String::new();
    for (name, sets) in ["rows", "cols", "pages"].into_iter().zip(&axes).filter(|(_, sets)| !sets.is_empty()) {
        text.push_str(&format!("{name} {} ", sets.join(" * ")));
    }
    if !point.is_empty() {
        text.push_str(&format!("where {}", point.join(", ")));
    }
    text.trim_end().to_string()
}

/// A set of a dimension, which may have other sizes than there is room for.
fn set(dimension: &Dimension, room: u64, random: &mut Random) -> Option<String> {
    let name = quoted(dimension.name());
    Some(match random.below(7) {
        0 => name,
        1 => format!("children({})", element(dimension, random)?),
        2 => format!("descendants({})", element(dimension, random)?),
        3 => format!("leaves({})", element(dimension, random)?),
        4 => format!("level({name}, {})", random.below(3)),
        5 => format!("sum({}, {})", element(dimension, random)?, element(dimension, random)?),
        _ => {
            let names = (0..1 + random.below(LIST_MAX.min(room))).map(|_| element(dimension, random));
            names.collect::<Option<Vec<_>>>()?.join(", ")
        }
    })
}

/// The name of an element: of a consolidated one as often as of a base one.
fn element(dimension: &Dimension, random: &mut Random) -> Option<String> {
    let kind = if random.below(2) == 0 { ElementKind::Base } else { ElementKind::Consolidated };
    let of_kind = |kind| move |id: &ElementId| dimension.element(*id).kind() == kind;
    let mut ids: Vec<ElementId> = dimension.elements().iter().copied().filter(of_kind(kind)).collect();
    if ids.is_empty() {
        ids = dimension.elements().iter().copied().filter(of_kind(ElementKind::Base)).collect();
    }
    let id = *ids.get(random.below(ids.len() as u64) as usize)?;
    Some(format!("{}:{}", quoted(dimension.name()), quoted(dimension.element(id).name())))
}

/// Targets of a set; nothing for one that names no elements.
fn size(model: &CubeModel, set: &str) -> Option<u64> {
    let text = format!("rows {set}");
    match bind(model, &parse(&text).ok()?, &text).ok()? {
        BoundQuery::CrossTab(table) => Some(table.rows.iter().map(|set| set.targets.len() as u64).product()),
        _ => None,
    }
}
