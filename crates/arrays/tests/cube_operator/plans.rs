//! What plans do, and what they say.

use std::collections::HashSet;

use warpcube_arrays::cube_operator::{Algorithm, Costs, Extent, Plan, Rule, Run, Source, Way};
use warpcube_arrays::key::KeyLayout;

use crate::model::ALGORITHMS;

fn extent(cardinalities: &[u64], rows: u64) -> Extent {
    let sizes: Vec<u32> = cardinalities.iter().map(|size| *size as u32).collect();
    let layout = KeyLayout::for_sizes(&sizes).unwrap();
    Extent { layout, rows, cardinalities: cardinalities.to_vec(), is_sorted: true }
}

fn plan(extent: &Extent, algorithm: Algorithm) -> Plan {
    let dimensions: Vec<usize> = (0..extent.cardinalities.len()).collect();
    Plan::new(extent, &dimensions, &[Rule::Sum], algorithm, &Costs::CPU).unwrap()
}

fn sorts(plan: &Plan) -> usize {
    plan.runs().iter().filter(|run| run.is_sorted_anew()).count()
}

#[test]
fn one_sort_a_path_and_none_of_sorted_rows() {
    for k in 1..=10usize {
        let plan = plan(&extent(&vec![8; k], 100_000), Algorithm::Paths);
        let fewest: usize = (0..k.div_ceil(2)).fold(1, |product, at| product * (k - at) / (at + 1));
        assert_eq!((plan.runs().len(), sorts(&plan)), (fewest, fewest - 1), "the first path has the order of the rows");
        let shared = |run: &&Run| matches!(run.way, Way::Sort { shared } if shared > 0 && shared < run.order.len());
        // The paths that begin with another dimension than the one before begin k - 1 times.
        assert_eq!(plan.runs().iter().filter(shared).count(), fewest - k.min(fewest), "{k}");
    }
}

#[test]
fn every_plan_makes_each_cuboid_once_from_one_that_has_its_dimensions() {
    for algorithm in ALGORITHMS {
        let plan = plan(&extent(&[2000, 3, 50, 1, 400, 7, 9], 50_000), algorithm);
        let mut made = HashSet::new();
        for run in plan.runs() {
            for at in 0..run.cuboids.len() {
                let mut cuboid = run.order[..run.order.len() - at].to_vec();
                cuboid.sort_unstable();
                assert!(made.insert(cuboid), "{algorithm}: {run:?}");
            }
            match &run.source {
                Source::Rows => assert_eq!(run.order.len(), 7),
                Source::Cuboid(order) => {
                    assert!(run.order.iter().all(|it| order.contains(it)) && order.len() > run.order.len())
                }
            }
        }
        assert_eq!(made.len(), 128, "{algorithm}");
    }
}

#[test]
fn each_algorithm_has_its_ways() {
    let of = |algorithm| plan(&extent(&[1 << 20, 1 << 10, 30, 4], 1_000_000), algorithm);
    let [_, paths, smallest, dense, hash] = ALGORITHMS.map(of);
    assert!(paths.runs().iter().skip(1).all(|run| run.source == Source::Cuboid(vec![0, 1, 2, 3])));
    let by_itself = |plan: &Plan| plan.runs().len() == 16;
    assert!(by_itself(&smallest) && by_itself(&dense) && by_itself(&hash));
    let parent = |plan: &Plan, order: &[usize]| {
        plan.runs().iter().find(|run| run.order == order).map(|run| run.source.clone()).unwrap()
    };
    // All sets of four have about as many groups as there are rows; of two with the last dimension fewest.
    assert_eq!(parent(&smallest, &[1]), Source::Cuboid(vec![1, 3]));
    assert_eq!(parent(&hash, &[3]), Source::Cuboid(vec![2, 3]));
    assert!(hash.runs().iter().all(|run| run.way == Way::Hash));
    for run in dense.runs() {
        let bits: u32 = run.order.iter().map(|dimension| [20, 10, 5, 2][*dimension]).sum();
        assert_eq!(run.way, if bits <= 24 { Way::Dense } else { Way::Hash }, "{:?}", run.order);
    }
    let text = dense.explain(&["a", "b", "c", "d"]);
    let large = "a·b: hash table, from a·b·d; about 999534 groups; a dense table is too large with 2^30 entries";
    assert!(text.lines().any(|line| line == large), "{text}");
}

#[test]
fn the_cost_model_chooses_by_cuboid() {
    let auto = plan(&extent(&[1 << 20, 1 << 10, 30, 4], 1_000_000), Algorithm::Auto);
    let text = auto.explain(&["a", "b", "c", "d"]);
    let line = |cuboid: &str| {
        let line = text.lines().find(|line| line.starts_with(&format!("{cuboid}:")));
        line.unwrap_or_else(|| panic!("{cuboid} is not in\n{text}")).to_string()
    };
    assert!(line("a·b·c·d").contains("as it is sorted, from the rows"), "{text}");
    assert!(line("a·b·c").contains("prefix of a·b·c·d") && line("a·b·c").contains("ms in the same pass"), "{text}");
    // Few places: a table. Many: a sort.
    assert!(line("b·d").contains(": dense table, from b·c·d;") && line("c·a·d").contains(": sorted, from a·b·c·d;"));
    assert!(auto.runs().iter().any(Run::is_sorted_anew), "{text}");
    // Prefixes of many groups are made from a smaller parent.
    let single = auto.runs().iter().filter(|run| run.source != Source::Rows && run.cuboids.len() == 1).count();
    assert!(single > 0 && auto.runs().iter().any(|run| run.cuboids.len() > 1), "{text}");
    assert_eq!(text.lines().count(), 17);
    let none = Costs { dense: None, hash: None, ..Costs::CPU };
    let sorted = Plan::new(&extent(&[9, 8, 7], 100), &[0, 1, 2], &[Rule::Sum], Algorithm::Auto, &none).unwrap();
    assert!(sorted.runs().iter().all(|run| matches!(run.way, Way::Sort { .. })));
}
