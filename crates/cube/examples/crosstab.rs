//! Times of cross-tabs over a planning cube of 2 million facts, by every algorithm.
//!
//! `cargo run --release -p warpcube-cube --example crosstab [facts]` prints one line a cross-tab and algorithm: the
//! median of nine runs, the processor time of all threads (on Linux), cells of the result, additions, and what the cost
//! model says. An algorithm whose predicted cost is a hundred times the least is left out.

use std::hint::black_box;
use std::time::Instant;

use warpcube_cube::aggregate::{Algorithm, Area, Cells, Progress, Request, TargetMap, aggregate, work};
use warpcube_cube::facts::{
    FactMeasure, Facts, InputColumn, InputValues, KeyLayout, Loader, PAGE_CELLS, Rule, ValueType,
};

/// Months of three years, versions, accounts, regions, products.
const SIZES: [u32; 5] = [36, 2, 12, 60, 2_000];
const RUNS: usize = 9;

type Targets = Vec<Vec<(u32, f64)>>;

fn main() {
    let facts = std::env::args().nth(1).map_or(2_000_000, |count| count.parse().expect("a number of facts"));
    let started = Instant::now();
    let facts = plan(facts);
    println!("{} facts loaded in {:.0} ms", facts.len(), started.elapsed().as_secs_f64() * 1e3);
    for (name, lists) in crosstabs() {
        let maps: Vec<TargetMap> = lists
            .iter()
            .zip(SIZES)
            .map(|(targets, size)| TargetMap::from_targets(size, targets).expect("targets of the plan"))
            .collect();
        let counted = work(&facts, &maps);
        println!("\n{name}: {} relevant cells, {} cell-to-target additions", counted.relevant_cells, counted.additions);
        let area = Area::new(maps);
        for algorithm in explain(&facts, &area).into_iter().map(Some).chain([None]) {
            time(&facts, &area, algorithm);
        }
    }
}

/// Facts with products that are sold in few regions, drawn from a fixed seed.
fn plan(count: u32) -> Facts {
    let mut state = 42_u64;
    let mut draw = |below: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % u64::from(below)) as u32
    };
    let mut columns = vec![Vec::new(); SIZES.len()];
    let mut values = Vec::new();
    for _ in 0..count {
        let product = draw(SIZES[4]);
        let region = (product * 7 + draw(8)) % SIZES[3];
        let cell = [draw(SIZES[0]), draw(SIZES[1]), draw(SIZES[2]), region, product];
        columns.iter_mut().zip(cell).for_each(|(column, coordinate)| column.push(coordinate));
        values.push(i64::from(draw(10_000_000)));
    }
    let columns: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
    let layout = KeyLayout::for_sizes(&SIZES).expect("narrow keys");
    let amount = FactMeasure::new("amount", Rule::Sum, ValueType::Decimal { scale: 2 });
    let mut loader = Loader::new(layout, vec![amount]);
    let input = InputColumn { values: InputValues::Decimals(&values), filled: None };
    loader.append(&columns, &[input]).expect("rows of the plan");
    loader.finish(PAGE_CELLS).expect("sums below 64 bits")
}

/// Spans of `width` base elements each.
fn spans(size: u32, width: u32) -> Targets {
    (0..size / width).map(|span| (span * width..(span + 1) * width).map(|base| (base, 1.0)).collect()).collect()
}

fn all(size: u32) -> Targets {
    spans(size, size)
}

/// Base elements, spans of several widths, and all.
fn hierarchy(size: u32, widths: &[u32]) -> Targets {
    widths.iter().flat_map(|&width| spans(size, width)).chain(all(size)).collect()
}

/// Both versions and their difference.
fn versions() -> Targets {
    vec![vec![(0, 1.0)], vec![(1, 1.0)], vec![(0, 1.0), (1, -1.0)]]
}

/// Revenue less cost, among twelve accounts.
fn margin() -> Targets {
    vec![(0..6).map(|base| (base, 1.0)).chain((6..12).map(|base| (base, -1.0))).collect()]
}

fn crosstabs() -> Vec<(&'static str, [Targets; 5])> {
    let [months, _, accounts, regions, products] = SIZES;
    let one = |base| vec![vec![(base, 1.0)]];
    vec![
        ("grand total", [all(months), vec![vec![(0, 1.0)]], margin(), all(regions), all(products)]),
        (
            "months, quarters, years × versions",
            [hierarchy(months, &[1, 3, 12]), versions(), margin(), all(regions), all(products)],
        ),
        (
            "200 groups × months, quarters, years",
            [hierarchy(months, &[1, 3, 12]), one(0), margin(), all(regions), spans(products, 10)],
        ),
        (
            "products of a group × months × versions, one region",
            [spans(months, 1), versions(), margin(), one(7), spans(products, 1).into_iter().take(50).collect()],
        ),
        (
            "regions in 3 levels × groups in 3 levels",
            [all(months), versions(), margin(), hierarchy(regions, &[1, 10]), hierarchy(products, &[50, 200])],
        ),
        (
            "products × accounts, one month",
            [one(5), vec![vec![(0, 1.0), (1, -1.0)]], spans(accounts, 1), all(regions), spans(products, 4)],
        ),
        (
            "hierarchies everywhere: 10,000 cells of many targets",
            [
                hierarchy(months, &[12]),
                versions(),
                hierarchy(accounts, &[2]),
                hierarchy(regions, &[10]),
                hierarchy(products, &[200, 500]),
            ],
        ),
        ("one cell", [one(3), one(0), one(2), one(21), one(3)]),
        (
            "fractional weights: months × groups",
            [spans(months, 1), vec![vec![(0, 0.4), (1, 0.6)]], margin(), spans(regions, 60), spans(products, 10)],
        ),
    ]
}

fn time(facts: &Facts, area: &Area, algorithm: Option<Algorithm>) {
    let request = Request { algorithm, ..Request::default() };
    let run = || aggregate(facts, area, &[0], &request, &Progress::new()).expect("sums below 64 bits");
    let cpu_before = cpu_ms();
    let mut times: Vec<(f64, Cells)> = Vec::new();
    for _ in 0..RUNS {
        let started = Instant::now();
        let cells = black_box(run());
        times.push((started.elapsed().as_secs_f64() * 1e3, cells));
    }
    let cpu = (cpu_ms() - cpu_before) / RUNS as f64;
    times.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (median, cells) = &times[RUNS / 2];
    let (count, additions) = (cells.len(), cells.report().additions.unwrap_or_default());
    let name = algorithm.map_or("chosen", Algorithm::name);
    println!("  {name:<16}{median:>9.2} ms {cpu:>9.2} ms cpu {count:>8} cells {additions:>12} additions");
}

/// What the cost model says, and the algorithms that are worth timing.
fn explain(facts: &Facts, area: &Area) -> Vec<Algorithm> {
    let cells = aggregate(facts, area, &[0], &Request::default(), &Progress::new()).expect("sums below 64 bits");
    let decision = &cells.report().decision;
    let cost = |algorithm: &Algorithm| {
        let of = decision.predicted.iter().find(|prediction| prediction.algorithm == (*algorithm).into());
        of.map_or(f64::INFINITY, |prediction| prediction.cost)
    };
    let least = Algorithm::ALL.iter().map(cost).fold(f64::INFINITY, f64::min);
    println!("    {}", decision.reason);
    Algorithm::ALL.into_iter().filter(|algorithm| cost(algorithm) < 100.0 * least).collect()
}

/// Processor time of all threads of this process so far, in milliseconds; 0 where the system does not tell.
fn cpu_ms() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let time = |task: std::fs::DirEntry| -> Option<f64> {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    };
    tasks.filter_map(time).sum::<f64>() / 1e6
}
