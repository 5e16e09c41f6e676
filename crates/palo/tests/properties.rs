//! Import → export → import of random Palo databases and cube files.

use proptest::prelude::*;
use warpcube_cube::store::{Field, LineEnd};
use warpcube_palo::{
    Cell, CellReader, CellValue, CellWriter, Cube, CubeHeader, Database, Dimension, Element, ElementType, Elements,
    Section,
};

/// Texts with what the format sets apart: quotes, semicolons, commas, line ends, `#`, brackets.
fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "ß", "\"", ";", ",", "\n", "\r\n", "#", "[", "]", " "]), 0..8)
        .prop_map(|parts| parts.concat())
}

fn fields() -> impl Strategy<Value = Vec<Field>> {
    let quoted = text().prop_map(|text| Field { text, quoted: true });
    let bare = (0..5_u8).prop_map(|number| Field { text: number.to_string(), quoted: false });
    prop::collection::vec(prop_oneof![quoted, bare], 1..4)
}

/// Weights are small: those of long paths multiply, and a dimension takes no more than 10¹⁵ below an element.
fn weight() -> impl Strategy<Value = f64> {
    prop_oneof![(-3..=3_i8).prop_map(f64::from), any::<f64>().prop_filter("small", |weight| weight.abs() <= 1.0)]
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![(-3..=3_i8).prop_map(f64::from), any::<f64>().prop_filter("finite", |number| number.is_finite())]
}

type DrawnElement = (String, u8, bool, u32, Vec<(usize, f64)>, Vec<Field>);

/// Elements with sparse numbers; children have lower places than their parents.
fn elements(drawn: Vec<DrawnElement>, header: (u32, Vec<Field>)) -> Elements {
    let mut rows: Vec<Element> = Vec::new();
    for (at, (name, kind, mark, gap, edges, settings)) in drawn.into_iter().enumerate() {
        let kind = [ElementType::Numeric, ElementType::Text, ElementType::Consolidated][usize::from(kind % 3)];
        let id = rows.last().map_or(0, |row| row.id + 1) + gap;
        let (mut children, mut weights) = (Vec::new(), Vec::new());
        for (child, weight) in edges.into_iter().filter(|_| kind == ElementType::Consolidated && at > 0) {
            let child = &mut rows[child % at];
            if !children.contains(&child.id) {
                children.push(child.id);
                weights.push(weight);
                child.parents.push(id);
            }
        }
        rows.push(Element {
            id,
            name: format!("{name}{at}"),
            position: at as u32,
            kind,
            string_consolidation: mark,
            level: 0,
            indent: 1,
            depth: 0,
            parents: Vec::new(),
            children,
            weights,
            settings,
        });
    }
    Elements { level: 1, indent: 2, depth: 1, size: header.0, settings: header.1, rows }
}

fn dimension() -> impl Strategy<Value = (String, u32, Vec<Field>, Option<Elements>)> {
    let edges = prop::collection::vec((0..50_usize, weight()), 0..6);
    let element = (text(), any::<u8>(), any::<bool>(), 0..3_u32, edges, fields());
    let drawn = prop::collection::vec(element, 0..8);
    let list = (drawn, (0..9_u32, fields())).prop_map(|(drawn, header)| elements(drawn, header));
    (text(), 1..9_u32, fields(), prop::option::of(list))
}

fn database() -> impl Strategy<Value = Database> {
    let heading = (prop::option::of("[0-9.]{1,8}"), any::<bool>(), any::<u32>(), any::<u32>(), fields());
    let cubes = prop::collection::vec((text(), prop::collection::vec(0..9_usize, 1..4), fields()), 0..4);
    let other = prop::collection::vec(fields(), 0..3);
    (heading, prop::collection::vec(dimension(), 1..4), cubes, other).prop_map(|(heading, dimensions, cubes, other)| {
        let dimensions: Vec<_> = dimensions
            .into_iter()
            .enumerate()
            .map(|(at, (name, kind, settings, elements))| Dimension {
                id: at as u32 * 2,
                name: format!("#_{at}{name}"),
                kind,
                settings,
                elements,
            })
            .collect();
        let cube = |(at, (name, of, settings)): (usize, (String, Vec<usize>, Vec<Field>))| Cube {
            id: at as u32 * 3,
            name: format!("#_{at}{name}"),
            dimensions: of.into_iter().map(|of| dimensions[of % dimensions.len()].id).collect(),
            settings,
        };
        Database {
            version: heading.0,
            line_end: if heading.1 { LineEnd::CrLf } else { LineEnd::Lf },
            dimension_size: heading.2,
            cube_size: heading.3,
            settings: heading.4,
            cubes: cubes.into_iter().enumerate().map(cube).collect(),
            other: vec![Section { title: "RIGHTS".to_owned(), rows: other }],
            dimensions,
        }
    })
}

proptest! {
    #[test]
    fn databases_come_back_equal(database in database()) {
        let text = database.write(Vec::new()).unwrap();
        let read = Database::read(text.as_slice()).unwrap();
        prop_assert_eq!(&read, &database);
        prop_assert_eq!(read.write(Vec::new()).unwrap(), text);
    }

    #[test]
    fn dimensions_come_back_from_the_model(database in database()) {
        for dimension in database.dimensions.iter().filter(|dimension| dimension.elements.is_some()) {
            let (model, origin) = dimension.to_model().unwrap();
            let exported = Dimension::from_model(&model, &origin).unwrap();
            let (again, same_origin) = exported.to_model().unwrap();
            prop_assert_eq!(&again, &model);
            prop_assert_eq!(&same_origin, &origin);
            let graph = |dimension: &Dimension| -> Vec<_> {
                let rows = dimension.elements.iter().flat_map(|elements| elements.rows.clone());
                rows.map(|row| (row.id, row.name, row.kind, row.parents, row.children, row.weights, row.settings))
                    .collect()
            };
            prop_assert_eq!(graph(&exported), graph(dimension));
        }
    }

    #[test]
    fn cells_come_back_equal(
        cube in any::<u32>(),
        sizes in prop::collection::vec(any::<u32>(), 1..5),
        numbers in prop::collection::vec((any::<u32>(), number()), 0..9),
        texts in prop::collection::vec((any::<u32>(), text()), 0..9),
        crlf in any::<bool>(),
        settings in fields(),
    ) {
        let header = CubeHeader { cube, sizes: sizes.clone(), settings };
        let line_end = if crlf { LineEnd::CrLf } else { LineEnd::Lf };
        let path = |seed: u32| (0..sizes.len() as u32).map(|at| seed.rotate_left(at * 8)).collect::<Vec<u32>>();
        let wanted: Vec<_> = (numbers.into_iter().map(|(seed, number)| (path(seed), CellValue::Number(number))))
            .chain(texts.into_iter().map(|(seed, text)| (path(seed), CellValue::Text(text))))
            .collect();
        let mut writer = CellWriter::new(Vec::new(), &header, line_end).unwrap();
        wanted.iter().for_each(|(path, value)| writer.write(path, value).unwrap());
        let file = writer.finish().unwrap();
        let reader = CellReader::new(file.as_slice()).unwrap();
        prop_assert_eq!(reader.header(), &header);
        prop_assert_eq!(reader.line_end(), line_end);
        let found: Vec<_> = reader.map(Result::unwrap).map(|Cell { path, value, .. }| (path, value)).collect();
        prop_assert_eq!(found, wanted);
    }
}
