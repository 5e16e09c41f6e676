//! The planning demo: its tables, its cube, and queries to it.

use std::time::Instant;

use arrow::array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use warpcube_cube::aggregate::{CellValue, Progress};
use warpcube_cube::answer::{Answer, AskOptions, Cube};
use warpcube_cube::build::{Built, Tables, TablesError, TextFiles, build};
use warpcube_cube::define::parse;
use warpcube_cube::demo;

/// The tables of the demo; projections of the facts are made batch by batch.
struct Demo {
    facts: Vec<RecordBatch>,
}

impl Demo {
    fn new() -> Demo {
        Demo { facts: demo::facts().collect::<Result<_, _>>().unwrap() }
    }
}

impl Tables for Demo {
    fn query(&self, sql: &str, _: &TextFiles) -> Result<Box<dyn RecordBatchReader + '_>, TablesError> {
        let is_empty = sql.ends_with(" LIMIT 0");
        let file = |name: &str| sql.contains(&format!(" FROM '{name}'"));
        let mut batches = match () {
            () if file(demo::REGIONS_FILE) => vec![demo::regions()],
            () if file(demo::PRODUCTS_FILE) => vec![demo::products()],
            () if file(demo::FACTS_FILE) => self.facts.clone(),
            () => return Err("no such table".into()),
        };
        let schema = batches[0].schema();
        let list = sql.strip_prefix("SELECT ").unwrap_or(sql).strip_prefix("DISTINCT ");
        let distinct = list.is_some();
        let list = list.unwrap_or(&sql[7..]).split(" FROM ").next().unwrap_or_default();
        let places: Vec<usize> = match list {
            "*" => (0..schema.fields().len()).collect(),
            list => list.split(", ").map(|name| schema.index_of(name.trim_matches('"')).unwrap()).collect(),
        };
        if is_empty {
            batches.truncate(0);
        }
        let mut rows: Vec<RecordBatch> = batches.iter().map(|batch| batch.project(&places).unwrap()).collect();
        if distinct {
            // Months follow one another: the first row of each run is distinct enough.
            rows = rows
                .iter()
                .map(|batch| {
                    let runs = arrow::compute::partition(batch.columns()).unwrap().ranges();
                    let first: arrow::array::UInt32Array = runs.iter().map(|run| run.start as u32).collect();
                    arrow::compute::take_record_batch(batch, &first).unwrap()
                })
                .collect();
        }
        let schema = std::sync::Arc::new(schema.project(&places).unwrap());
        Ok(Box::new(RecordBatchIterator::new(rows.into_iter().map(Ok), schema)))
    }
}

fn built() -> Built {
    let definition = parse(demo::DEFINITION).unwrap();
    build(&definition, &Demo::new(), &Progress::new()).unwrap()
}

/// The cells of a cross-tab as lines.
fn lines(cube: &Cube, query: &str) -> Vec<(String, Vec<Option<f64>>)> {
    match cube.ask(query, &AskOptions::default(), &Progress::new()) {
        Ok(Answer::Table(table)) => {
            let answer = table.cross_tab(cube).unwrap();
            let line = |line: &warpcube_cube::ask::Line| {
                let cells = line.cells.iter().map(|cell| cell.map(CellValue::to_f64)).collect();
                (line.labels[0].caption.clone(), cells)
            };
            answer.pages[0].rows.iter().map(line).collect()
        }
        other => panic!("{query}: {other:?}"),
    }
}

#[test]
fn the_demo_answers_the_queries_of_the_tour() {
    let Built { model, facts, report, .. } = built();
    assert_eq!((report.rows, report.cells, report.rows_empty, report.rows_aside), (demo::ROWS, demo::ROWS, 0, 0));
    let defaults: Vec<&str> = model
        .dimensions()
        .iter()
        .map(|dimension| dimension.element(dimension.default_element().unwrap()).caption())
        .collect();
    assert_eq!(defaults, ["All months", "World", "All products", "Actual", "Units"]);
    let cube = Cube { model, facts: facts.into(), texts: Default::default() };

    let variance = lines(&cube, "rows Europe, children(Europe) cols Version where Margin, FY26");
    assert_eq!((variance[0].0.as_str(), variance[1].0.as_str(), variance.len()), ("Europe", "France", 17));
    for column in 0..3 {
        let countries: f64 = variance[1..].iter().filter_map(|line| line.1[column]).sum();
        assert!((countries - variance[0].1[column].unwrap()).abs() < 0.01);
    }
    let europe = &variance[0].1;
    assert!((europe[0].unwrap() - europe[1].unwrap() - europe[2].unwrap()).abs() < 0.01);
    assert!(europe[0].unwrap() > 0.0 && europe[2].unwrap() != 0.0);

    let quarters = lines(&cube, "rows Revenue, Cost, Margin cols children(FY26) where Europe, Budget");
    assert_eq!(quarters.len(), 3);
    for ((revenue, cost), margin) in quarters[0].1.iter().zip(&quarters[1].1).zip(&quarters[2].1) {
        let (revenue, cost, margin) = (revenue.unwrap(), cost.unwrap(), margin.unwrap());
        assert!((revenue - cost - margin).abs() < 0.01);
        assert!((0.2..0.6).contains(&(margin / revenue)), "a plausible margin: {margin} of {revenue}");
    }
    assert!(matches!(
        cube.ask("facts at France, Cost, Actual, 2026-03", &AskOptions::default(), &Progress::new()),
        Ok(Answer::Rows(rows)) if rows.len() > 50
    ));
    let cheap = lines(&cube, "rows leaves(\"All products\") with price < 10 where Units");
    assert!(!cheap.is_empty() && cheap.len() < 20, "{cheap:?}");
}

#[test]
fn the_tables_are_the_same_on_every_run() {
    let (mut rows, mut sum) = (0, 0_i128);
    for batch in demo::facts() {
        let batch = batch.unwrap();
        rows += batch.num_rows() as u64;
        let amounts = batch.column(5).as_any().downcast_ref::<arrow::array::Decimal128Array>().unwrap();
        sum += amounts.values().iter().sum::<i128>();
        assert!(amounts.values().iter().all(|amount| (1..100_000_000_000).contains(amount)));
    }
    assert_eq!((rows, demo::regions().num_rows(), demo::products().num_rows()), (demo::ROWS, 47, 360));
    assert_eq!(sum, 143_486_847_480, "recorded from a run");
}

/// Prints seconds for making and for building the demo; run it in release.
#[test]
#[ignore = "a measurement"]
fn time_of_the_demo() {
    let start = Instant::now();
    let tables = Demo::new();
    let made = start.elapsed();
    let definition = parse(demo::DEFINITION).unwrap();
    let one_core = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let start = Instant::now();
    let built = one_core.install(|| build(&definition, &tables, &Progress::new()).unwrap());
    println!("made in {made:?}, built {} cells in {:?} on one core", built.facts.len(), start.elapsed());
}
