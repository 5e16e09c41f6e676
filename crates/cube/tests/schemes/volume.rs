//! A million cells in every scheme, and the times of all operations printed on demand.

use std::time::Instant;

use warpcube_cube::schemes::generate::{SPARSITIES, Specification};
use warpcube_cube::schemes::{Cells, Limits, Scheme, Storage, SubArray};

/// Looks up every 7th cell and the cells of another seed; sums what is found.
fn looked_up(stored: &dyn Storage<i64>, asked: &[u32]) -> (usize, i64) {
    let found = stored.get(asked).unwrap();
    (found.iter().flatten().count(), found.iter().flatten().sum())
}

fn check(stored: &dyn Storage<i64>, cells: &Cells<i64>, asked: &[u32], expected: (usize, i64)) {
    assert_eq!(looked_up(stored, asked), expected, "{}", stored.scheme());
    let total: i64 = cells.values().iter().sum();
    let sums = stored.prefix_sums().unwrap();
    assert!(sums.iter().all(|group_by| group_by.sums().iter().sum::<i64>() == total), "{}", stored.scheme());
    let area = &SubArray::measured(cells.shape())[2];
    let inside = stored.sub_array(area).unwrap();
    let within =
        |tuple: &[u32]| tuple.iter().zip(area.low().iter().zip(area.high())).all(|(at, (l, h))| l <= at && at <= h);
    let expected = cells.iter().filter(|(tuple, _)| within(tuple));
    assert!(inside.iter().eq(expected), "{}", stored.scheme());
}

#[test]
fn a_million_cells() {
    let specification = Specification::new(4, 1_000_000, 0.95, 1).unwrap();
    let cells = specification.hundredths().unwrap();
    let asked = specification.with_seed(2).coordinates().unwrap();
    let map: std::collections::HashMap<&[u32], i64> = cells.iter().collect();
    let found: Vec<i64> = asked.chunks(4).filter_map(|tuple| map.get(tuple).copied()).collect();
    let expected = (found.len(), found.iter().sum());
    assert!(expected.0 > 20_000);
    for scheme in Scheme::all(4).into_iter().filter(|scheme| *scheme != Scheme::Hybrid { r: 1 }) {
        let stored = scheme.build(&cells, &Limits::default()).unwrap();
        check(stored.as_ref(), &cells, &asked, expected);
    }
}

/// Prints nanoseconds a cell of every operation, scheme and sparsity. Run with `--release -- --ignored --nocapture`.
#[test]
#[ignore = "prints times"]
fn times() {
    println!("{:<14}k sparsity  ratio  build    get random    sub    sum", "scheme");
    for (dimensions, sparsity) in [2, 3, 4, 8].into_iter().flat_map(|k| SPARSITIES.map(|sparsity| (k, sparsity))) {
        let specification = Specification::new(dimensions, 2_000_000, sparsity, 1).unwrap();
        let cells = specification.hundredths().unwrap();
        let asked = specification.with_seed(2).coordinates().unwrap();
        let shuffled = shuffled(&asked, dimensions);
        for scheme in Scheme::all(dimensions) {
            time(scheme, &cells, sparsity, &asked, &shuffled);
        }
    }
}

/// The tuples in another order: every 786,433rd, around the list.
fn shuffled(asked: &[u32], dimensions: usize) -> Vec<u32> {
    let tuples = asked.len() / dimensions;
    let tuple = |index: usize| &asked[index * 786_433 % tuples * dimensions..][..dimensions];
    (0..tuples).flat_map(tuple).copied().collect()
}

fn time(scheme: Scheme, cells: &Cells<i64>, sparsity: f64, asked: &[u32], shuffled: &[u32]) {
    let nanoseconds = |start: Instant, cells: usize| start.elapsed().as_nanos() as f64 / cells as f64;
    let start = Instant::now();
    let Ok(stored) = scheme.build(cells, &Limits::default()) else { return };
    let build = nanoseconds(start, cells.len());
    let get = [asked, shuffled].map(|asked| {
        let start = Instant::now();
        let found = stored.get(asked).unwrap();
        nanoseconds(start, found.len())
    });
    let start = Instant::now();
    let areas = SubArray::measured(cells.shape());
    let inside: usize = areas.iter().map(|area| stored.sub_array(area).unwrap().len()).sum();
    let sub = nanoseconds(start, inside);
    let start = Instant::now();
    let sums = stored.prefix_sums().unwrap();
    let sum = nanoseconds(start, cells.len());
    assert_eq!(sums.len(), cells.shape().dimensions() - 1);
    let ratio = stored.sizes().ratio::<i64>(cells.shape()).unwrap();
    println!(
        "{scheme:<14}{} {sparsity:>8} {ratio:>6.3} {build:>6.1} {:>6.1} {:>6.1} {sub:>6.1} {sum:>6.1}",
        cells.shape().dimensions(),
        get[0],
        get[1]
    );
}
