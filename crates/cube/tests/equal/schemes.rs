//! Every storage scheme that can store a cube gives its cells back: the facts are converted, opened and asked.

use std::sync::Arc;

use proptest::prelude::*;
use warpcube_arrays::Scheme;
use warpcube_cube::aggregate::Algorithm;
use warpcube_cube::answer::{AlgorithmName, Cube};
use warpcube_cube::device::DeviceAlgorithm;
use warpcube_cube::model::Span;
use warpcube_cube::store::{self, CubeLock, StoreError, StoredCube};

use crate::algorithms::{cells, run};
use crate::cube::{ALL, cases, on_device, whole};

#[test]
fn every_scheme_gives_the_same_cells() {
    run(12, cases(whole(), &ALL, &[Span::First, Span::Last]), |case| {
        let drawn = case.cube();
        let query = case.query(&ALL[..6]);
        // The layout of a stored cube is that of its model.
        let all: Vec<usize> = (0..drawn.facts.len()).collect();
        let facts = drawn.facts.selected(drawn.model.layout(), &all);
        let by = Some(AlgorithmName::Cpu(Algorithm::Source));
        let Ok(expected) = cells(&drawn, &query, by, None) else {
            return Err(TestCaseError::reject("an area beyond the limit, or a sum beyond its type"));
        };
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("drawn.cube");
        let stored = StoredCube::new(drawn.model.clone(), facts);
        store::create(&folder, &stored).unwrap();
        let mut converted = 0;
        for scheme in Scheme::all(drawn.model.dimensions().len()) {
            let held = CubeLock::lock(&folder).unwrap();
            match held.replace(&StoredCube { scheme, ..stored.clone() }) {
                Ok(_) => converted += 1,
                Err(StoreError::Scheme { .. }) => continue,
                Err(error) => panic!("{scheme}: {error}"),
            }
            drop(held);
            let opened = store::open(&folder).unwrap();
            prop_assert_eq!(opened.scheme, scheme);
            let cube = Cube { model: opened.model, facts: Arc::new(opened.facts), texts: Default::default() };
            let device = on_device(&cube.facts, case.order);
            let algorithms = Algorithm::ALL.map(AlgorithmName::Cpu).into_iter();
            for algorithm in algorithms.chain([AlgorithmName::Device(DeviceAlgorithm::Contract)]) {
                let found = cells(&cube, &query, Some(algorithm), Some(&device)).unwrap();
                let told = format!("{scheme} by {algorithm}: {query}");
                prop_assert_eq!(found.cells.ranks(), expected.cells.ranks(), "{}", told);
                prop_assert_eq!(found.cells.columns(), expected.cells.columns(), "{}", told);
            }
        }
        prop_assert!(converted >= 4, "bess, coordinate, offset-value and a hybrid one store every cube: {converted}");
        Ok(())
    });
}
