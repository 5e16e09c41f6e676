//! A cube of random rows equals GROUP BY over those rows, at base and at every level.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, DictionaryArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int32Type;
use proptest::prelude::*;
use warpcube_cube::aggregate::{Area, CellValue, Progress, Request, TargetMap, aggregate};
use warpcube_cube::build::Built;
use warpcube_cube::model::{Dimension, ElementId};

use crate::tables::{Memory, dates, defined, table};

const DEFINITION: &str = "
cube: random
facts: {sql: TABLE gl}
value: {type: decimal(3)}
measures:
  Sum: {column: amount}
  Rows: {rule: count}
  Values: {rule: count, column: amount}
  Mean: {rule: avg, column: amount}
  Least: {rule: min, column: amount}
  Most: {rule: max, column: amount}
dimensions:
  Day: {column: day, levels: [year, quarter, month, day], all: Days}
  Place: {levels: [area, town], all: Places}
  Item: {table: items, levels: [group, item], all: Items}
  Kind: {all: Kinds}
";

/// A row of the facts.
#[derive(Debug, Clone)]
struct Row {
    /// Days after 2025-11-01.
    day: u32,
    area: u8,
    /// Absent: the row lies at the area, which then has no towns.
    town: u8,
    item: u8,
    kind: i64,
    /// In hundredths.
    amount: Option<i64>,
}

fn row() -> impl Strategy<Value = Row> {
    (0..200_u32, 0..4_u8, 0..3_u8, 0..12_u8, -2..3_i64, prop::option::weighted(0.8, -500..500_i64))
        .prop_map(|(day, area, town, item, kind, amount)| Row { day, area, town, item, kind, amount })
}

impl Row {
    fn date(&self) -> String {
        const LENGTHS: [u32; 8] = [30, 31, 31, 28, 31, 30, 31, 30];
        let (mut month, mut day) = (0, self.day);
        while day >= LENGTHS[month] {
            day -= LENGTHS[month];
            month += 1;
        }
        let number = 11 + month as u32;
        let (year, number) = if number > 12 { (2026, number - 12) } else { (2025, number) };
        format!("{year}-{number:02}-{:02}", day + 1)
    }

    /// Names of the elements of each dimension from the total down to the base, as SQL would group by them.
    fn paths(&self) -> [Vec<String>; 4] {
        let date = self.date();
        let month = date[..7].to_string();
        let quarter = format!("{}-Q{}", &date[..4], (date[5..7].parse::<u32>().unwrap() - 1) / 3 + 1);
        let place = match self.town() {
            Some(town) => vec!["Places".to_string(), self.area(), town],
            None => vec!["Places".to_string(), self.area()],
        };
        let item = format!("item {}", self.item);
        let kind = self.kind.to_string();
        [
            vec!["Days".to_string(), date[..4].to_string(), quarter, month, date],
            place,
            vec!["Items".to_string(), format!("group {}", self.item % 3), item],
            vec!["Kinds".to_string(), kind],
        ]
    }

    fn area(&self) -> String {
        format!("area {}", self.area)
    }

    /// The last area has no towns; towns of all others have names of their own.
    fn town(&self) -> Option<String> {
        (self.area < 3).then(|| format!("town {}/{}", self.area, self.town))
    }
}

fn facts(rows: &[Row]) -> RecordBatch {
    let days: Vec<String> = rows.iter().map(Row::date).collect();
    let days: Vec<&str> = days.iter().map(String::as_str).collect();
    let areas: Vec<String> = rows.iter().map(Row::area).collect();
    let towns: StringArray = rows.iter().map(Row::town).collect();
    let items: Vec<String> = rows.iter().map(|row| format!("ITEM {}", row.item)).collect();
    let kinds: Int64Array = rows.iter().map(|row| Some(row.kind)).collect();
    let amounts: Decimal128Array = rows.iter().map(|row| row.amount.map(i128::from)).collect();
    let areas: DictionaryArray<Int32Type> = areas.iter().map(String::as_str).collect();
    table(vec![
        ("day", dates(&days)),
        ("area", Arc::new(areas) as ArrayRef),
        ("town", Arc::new(towns)),
        ("item", Arc::new(StringArray::from(items))),
        ("kind", Arc::new(kinds)),
        ("amount", Arc::new(amounts.with_precision_and_scale(9, 2).unwrap())),
    ])
}

fn items() -> RecordBatch {
    let items: Vec<String> = (0..12).map(|item| format!("item {item}")).collect();
    let groups: Vec<String> = (0..12).map(|item| format!("group {}", item % 3)).collect();
    table(vec![("group", Arc::new(StringArray::from(groups))), ("item", Arc::new(StringArray::from(items)))])
}

/// Values of one group: those of its rows that are not NULL, in thousandths, and its number of rows.
type Group = (Vec<i64>, u64);

/// GROUP BY over every combination of levels: `depths[d]` counts the levels from the top of dimension d; a path that is
/// shorter stands with its base element.
fn grouped(rows: &[Row], depths: [usize; 4]) -> BTreeMap<Vec<String>, Group> {
    let mut groups: BTreeMap<Vec<String>, Group> = BTreeMap::new();
    for row in rows {
        let paths = row.paths();
        let key = paths.iter().zip(depths).map(|(path, depth)| path[depth.min(path.len() - 1)].clone()).collect();
        let group = groups.entry(key).or_default();
        group.0.extend(row.amount.map(|amount| amount * 10));
        group.1 += 1;
    }
    groups
}

/// The elements that the paths of some depth end at.
fn targets(dimension: &Dimension, rows: &[Row], position: usize, depth: usize) -> Vec<ElementId> {
    let mut names: Vec<String> = rows
        .iter()
        .map(|row| {
            let path = &row.paths()[position];
            path[depth.min(path.len() - 1)].clone()
        })
        .collect();
    names.sort();
    names.dedup();
    names.iter().map(|name| dimension.find(name).unwrap()).collect()
}

fn check(built: &Built, rows: &[Row], depths: [usize; 4]) {
    let elements: Vec<Vec<ElementId>> =
        (0..4).map(|position| targets(&built.model.dimensions()[position], rows, position, depths[position])).collect();
    let map = |(dimension, targets): (&Dimension, &Vec<ElementId>)| {
        let list = |id: &ElementId| {
            let weights = dimension.base_weights(*id).unwrap();
            weights.bases.into_iter().zip(weights.weights).collect()
        };
        let lists: Vec<Vec<(u32, f64)>> = targets.iter().map(list).collect();
        TargetMap::from_targets(dimension.base_count() as u32, &lists).unwrap()
    };
    let area = Area::new(built.model.dimensions().iter().zip(&elements).map(map).collect());
    let measures: Vec<usize> = (0..6).collect();
    let cells = aggregate(&built.facts, &area, &measures, &Request::default(), &Progress::new()).unwrap();
    let expected = grouped(rows, depths);
    assert_eq!(cells.len(), expected.len(), "{depths:?}");
    for cell in 0..cells.len() {
        let target = cells.target(cell);
        let name = |(position, at): (usize, &u32)| {
            built.model.dimensions()[position].element(elements[position][*at as usize]).name().to_string()
        };
        let key: Vec<String> = target.iter().enumerate().map(name).collect();
        let (values, count) = &expected[&key];
        let sum: i64 = values.iter().sum();
        let has_values = |value: f64| (!values.is_empty()).then_some(value);
        let found: Vec<Option<f64>> =
            cells.columns().iter().map(|column| column.value(cell).map(CellValue::to_f64)).collect();
        let thousandths = |value: i64| value as f64 / 1_000.0;
        let wanted = [
            has_values(thousandths(sum)),
            Some(*count as f64),
            has_values(values.len() as f64),
            has_values(sum as f64 / values.len() as f64 / 1_000.0),
            values.iter().min().map(|value| thousandths(*value)),
            values.iter().max().map(|value| thousandths(*value)),
        ];
        for (measure, (found, wanted)) in found.iter().zip(wanted).enumerate() {
            let is_near = match (found, wanted) {
                (Some(found), Some(wanted)) if measure == 3 => (found - wanted).abs() <= 1e-12 * wanted.abs(),
                (found, wanted) => *found == wanted,
            };
            assert!(is_near, "{depths:?} {key:?} measure {measure}: {found:?}, GROUP BY has {wanted:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_cube_equals_group_by(rows in prop::collection::vec(row(), 1..60)) {
        let memory = Memory::default().with("gl", facts(&rows)).with("items", items());
        let built = defined(&memory, DEFINITION).unwrap();
        prop_assert_eq!(built.report.rows, rows.len() as u64);
        for day in 0..5 {
            for place in 0..3 {
                for item in 0..3 {
                    for kind in 0..2 {
                        check(&built, &rows, [day, place, item, kind]);
                    }
                }
            }
        }
    }
}
