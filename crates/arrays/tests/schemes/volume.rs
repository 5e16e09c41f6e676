//! A million cells in every scheme, and the times of all operations printed on demand.

use std::collections::HashMap;
use std::time::Instant;

use warpcube_arrays::generate::Specification;
use warpcube_arrays::{Cells, Limits, Scheme, Storage, SubArray};

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

/// Prints nanoseconds of processor time a cell, of every operation. Run with `--release -- --ignored --nocapture`.
#[test]
#[ignore = "prints times"]
fn times() {
    println!("scheme         k sparsity  ratio  build    get random    sub    sum");
    for (dimensions, sparsity) in [2, 4, 8].into_iter().flat_map(|k| [0.9, 0.99].map(|sparsity| (k, sparsity))) {
        let specification = Specification::new(dimensions, 2_000_000, sparsity, 1).unwrap();
        let cells = specification.hundredths().unwrap();
        let asked = specification.with_seed(2).coordinates().unwrap();
        let shuffled = shuffled(&asked, dimensions);
        for scheme in Scheme::all(dimensions) {
            time(scheme, &cells, sparsity, [&asked, &shuffled]);
        }
    }
}

/// The tuples in another order: every 786,433rd, around the list.
fn shuffled(asked: &[u32], dimensions: usize) -> Vec<u32> {
    let tuples = asked.len() / dimensions;
    let tuple = |index: usize| &asked[index * 786_433 % tuples * dimensions..][..dimensions];
    (0..tuples).flat_map(tuple).copied().collect()
}

/// Result of `work`, and nanoseconds of processor time of this thread; wall time where the system does not tell it.
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let on_processor = || {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    };
    let (wall, before) = (Instant::now(), on_processor());
    let result = work();
    let spent = on_processor().zip(before).map(|(after, before)| after - before);
    (result, spent.unwrap_or(wall.elapsed().as_nanos() as f64))
}

fn time(scheme: Scheme, cells: &Cells<i64>, sparsity: f64, asked: [&[u32]; 2]) {
    let (Ok(stored), build) = timed(|| scheme.build(cells, &Limits::default())) else { return };
    let get = asked.map(|asked| timed(|| stored.get(asked).unwrap()).1 / cells.len() as f64);
    let areas = SubArray::measured(cells.shape());
    let (inside, sub) = timed(|| areas.iter().map(|area| stored.sub_array(area).unwrap().len()).sum::<usize>());
    let (sums, sum) = timed(|| stored.prefix_sums().unwrap());
    assert_eq!(sums.len(), cells.shape().dimensions() - 1);
    let ratio = stored.sizes().ratio::<i64>(cells.shape()).unwrap();
    let (dimensions, count) = (cells.shape().dimensions(), cells.len() as f64);
    let (build, [sorted, random], sub, sum) = (build / count, get, sub / inside as f64, sum / count);
    println!(
        "{scheme:<14} {dimensions} {sparsity:>8} {ratio:>6.3} {build:>6.1} {sorted:>6.1} {random:>6.1} {sub:>6.1} \
         {sum:>6.1}"
    );
}
