//! A million cells in every scheme, and the times of all operations printed on demand.

use std::collections::HashMap;
use std::time::Instant;

use warpcube_cube::schemes::generate::{SPARSITIES, Specification};
use warpcube_cube::schemes::{Cells, Limits, Scheme, Storage, SubArray};

/// What every scheme has to find in the array.
struct Expected {
    asked: Vec<u32>,
    found: Vec<Option<i64>>,
    area: SubArray,
    inside: Cells<i64>,
    total: i64,
}

impl Expected {
    /// Looks up the first 200,000 cells of another seed and takes the inner one of the measured sub-arrays.
    fn of(cells: &Cells<i64>, other: &Specification) -> Self {
        let mut asked = other.coordinates().unwrap();
        asked.truncate(200_000 * cells.shape().dimensions());
        let map: HashMap<&[u32], i64> = cells.iter().collect();
        let found = asked.chunks(cells.shape().dimensions()).map(|tuple| map.get(tuple).copied()).collect();
        let [.., area] = SubArray::measured(cells.shape());
        let bounds = || area.low().iter().zip(area.high());
        let within = |tuple: &[u32]| tuple.iter().zip(bounds()).all(|(at, (low, high))| low <= at && at <= high);
        let inside: Vec<(&[u32], i64)> = cells.iter().filter(|(tuple, _)| within(tuple)).collect();
        let coordinates = inside.iter().flat_map(|(tuple, _)| tuple.iter().copied()).collect();
        let values = inside.iter().map(|(_, value)| *value).collect();
        let inside = Cells::new(cells.shape().clone(), coordinates, values).unwrap();
        Self { asked, found, area, inside, total: cells.values().iter().sum() }
    }

    fn check(&self, stored: &dyn Storage<i64>) {
        let scheme = stored.scheme();
        assert!(stored.get(&self.asked).unwrap() == self.found, "{scheme}");
        assert!(stored.sub_array(&self.area).unwrap() == self.inside, "{scheme}");
        let sums = stored.prefix_sums().unwrap();
        assert!(sums.iter().all(|group_by| group_by.sums().iter().sum::<i64>() == self.total), "{scheme}");
    }
}

#[test]
fn a_million_cells() {
    let specification = Specification::new(4, 1_000_000, 0.95, 1).unwrap();
    let cells = specification.hundredths().unwrap();
    let expected = Expected::of(&cells, &specification.with_seed(2));
    assert!(expected.found.iter().flatten().count() > 5_000);
    let hybrid = Scheme::measured_hybrid(4);
    for scheme in [Scheme::Coordinate, Scheme::OffsetValue, Scheme::Bess, Scheme::Xcrs, Scheme::Xccs, Scheme::Bxcrs] {
        expected.check(scheme.build(&cells, &Limits::default()).unwrap().as_ref());
    }
    expected.check(hybrid.build(&cells, &Limits::default()).unwrap().as_ref());
    expected.check(Scheme::Ptcs.build(&cells, &Limits::default()).unwrap().as_ref());
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
