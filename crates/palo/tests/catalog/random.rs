//! Random cells: export gives the file, and after changes the changed cells.

use std::fs;

use proptest::prelude::*;
use warpcube_cube::facts::{FactColumn, Values};
use warpcube_cube::store;
use warpcube_cube::store::LineEnd;
use warpcube_palo::catalog::import;
use warpcube_palo::cube_file_name;

use crate::source::{Drawn, SALES, Source, cell_file, change, facts_of, number, text};

/// Cells anywhere, repeated ones and ones that are skipped among them: numbers first.
fn cells() -> impl Strategy<Value = Vec<Drawn>> {
    let path = (prop::sample::select(vec![0_u32, 2, 4, 5, 6, 9]), 0..3_u32).prop_map(|(one, other)| vec![one, other]);
    let value = prop_oneof![(-20..20_i32).prop_map(|eighths| f64::from(eighths) / 8.0), -1e300..1e300_f64];
    let number = (path.clone(), value).prop_map(|(path, value)| number(&path, value));
    let text = (path, "[a-c\";\n#]{0,5}").prop_map(|(path, value)| text(&path, &value));
    (prop::collection::vec(number, 0..12), prop::collection::vec(text, 0..6))
        .prop_map(|(numbers, texts)| [numbers, texts].concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_and_changes_show(
        cells in cells(),
        factor in prop::sample::select(vec![1.0, 0.5]),
        keep in 0..4_usize,
    ) {
        let file = cell_file(SALES, &[10, 3], LineEnd::CrLf, &cells);
        let source = Source::new(&file);
        let imported = import(&source.folder(), &source.path("catalog")).unwrap();
        let lost = imported.skipped.iter().map(|(_, skipped)| skipped.count).sum::<u64>();
        imported.catalog.export(&source.path("export")).unwrap();
        let exported = fs::read(source.path("export").join(cube_file_name(SALES))).unwrap();
        prop_assert_eq!(String::from_utf8(exported).unwrap(), String::from_utf8(file).unwrap());

        change(&imported.catalog, "Sales", |cube| {
            let FactColumn { values: Values::Doubles(values), .. } = &cube.facts.base().columns()[0] else {
                panic!("an imported cube holds doubles");
            };
            let names: Vec<Vec<&str>> = (0..cube.facts.len())
                .map(|fact| {
                    let pairs = cube.facts.cell(fact).into_iter().zip(cube.model.dimensions());
                    pairs.map(|(base, dimension)| dimension.element(dimension.at_base(base).unwrap()).name()).collect()
                })
                .collect();
            let changed: Vec<(&[&str], f64)> =
                names.iter().zip(values).skip(keep).map(|(names, value)| (names.as_slice(), value * factor)).collect();
            cube.facts = facts_of(cube, &changed);
            cube.texts.truncate(keep);
        });
        let stored = store::open(&imported.catalog.cube_folder("Sales").unwrap()).unwrap();
        imported.catalog.export(&source.path("changed")).unwrap();
        let again = import(&source.path("changed"), &source.path("again")).unwrap();
        let reread = store::open(&again.catalog.cube_folder("Sales").unwrap()).unwrap();
        prop_assert_eq!(reread.facts.base().keys(), stored.facts.base().keys());
        prop_assert_eq!(reread.facts.base().columns(), stored.facts.base().columns());
        prop_assert_eq!(reread.texts, stored.texts);
        prop_assert_eq!(again.skipped.iter().map(|(_, skipped)| skipped.count).sum::<u64>(), lost);
    }
}
