//! The tables of ClickBench and H2O: distinct counts, lengths and shares as published, and parts against the whole.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::hash::Hash;
use std::path::Path;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{Date32Type, Float64Type, Int16Type, Int32Type, Int64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tempfile::TempDir;
use warpcube_datagen::{NoProgress, WriteOptions, WrittenTable, write_clickbench_parquet, write_h2o_parquet};

/// Rows of `hits`, small enough for a test and large enough for shares of a thousandth.
const HITS: u64 = 200_000;

fn read(path: &Path) -> RecordBatch {
    let mut files = vec![path.to_path_buf()];
    if path.is_dir() {
        files = fs::read_dir(path).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
        files.sort();
    }
    let reader = |file: &std::path::PathBuf| {
        let file = fs::File::open(file).expect("a file");
        ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet").build().expect("a reader")
    };
    let batches: Vec<_> = files.iter().flat_map(reader).map(|batch| batch.expect("a batch")).collect();
    concat_batches(&batches[0].schema(), &batches).expect("batches of one schema")
}

fn counts<T: Hash + Eq>(values: impl Iterator<Item = T>) -> HashMap<T, u64> {
    let mut counts = HashMap::new();
    values.for_each(|value| *counts.entry(value).or_default() += 1);
    counts
}

/// Asserts that a figure is that published, within a share of it.
fn near(what: &str, found: f64, published: f64, within: f64) {
    assert!((found / published - 1.0).abs() <= within, "{what}: {found}, published {published}");
}

fn ints(batch: &RecordBatch, column: &str) -> Vec<i64> {
    let column = batch.column_by_name(column).expect("a column");
    let wide = arrow::compute::cast(column, &arrow::datatypes::DataType::Int64).expect("an integer");
    wide.as_primitive::<Int64Type>().values().to_vec()
}

fn texts<'b>(batch: &'b RecordBatch, column: &str) -> Vec<&'b str> {
    batch.column_by_name(column).expect("a column").as_string::<i32>().iter().flatten().collect()
}

#[test]
fn hits_have_the_published_columns_and_distributions() {
    let dir = TempDir::new().expect("a temporary folder");
    let options = WriteOptions { rows_per_file: 400_000, ..WriteOptions::default() };
    let report = write_clickbench_parquet(dir.path(), HITS, &options, &NoProgress).expect("it writes");
    assert_eq!((report.tables[0].files, report.tables[0].rows), (3, HITS), "files of a quarter of the rows");
    let hits = read(&report.tables[0].path);
    assert_eq!((hits.num_rows() as u64, hits.num_columns()), (HITS, 105));
    assert!(hits.columns().iter().all(|column| column.null_count() == 0));
    let share = |count: u64| count as f64 / HITS as f64;

    // Query 5 and 16: users, and the most active one; queries 6 and 13: phrases; query 34: addresses.
    let users = counts(ints(&hits, "UserID").into_iter());
    near("distinct users", share(users.len() as u64), 0.17630976, 0.001);
    near("the most active user", share(*users.values().max().unwrap()), 0.000291, 0.4);
    assert!(users[&435_090_932_899_640_449] > 0, "the user of query 20");
    let mean = users.keys().map(|user| *user as f64).sum::<f64>() / users.len() as f64;
    near("the mean of users", mean, 2.528953029789716e18, 0.02);
    let phrases = counts(texts(&hits, "SearchPhrase").into_iter());
    let searches = HITS - phrases[""];
    near("searches", share(searches), 0.13172392, 0.02);
    near("distinct phrases", share(phrases.len() as u64 - 1), 0.06019103, 0.001);
    let commonest = phrases.iter().filter(|phrase| !phrase.0.is_empty()).map(|phrase| *phrase.1).max();
    near("the commonest phrase", share(commonest.unwrap()), 0.000703, 0.25);
    let addresses = texts(&hits, "URL");
    let pages = counts(addresses.iter());
    near("distinct addresses", share(pages.len() as u64), 0.18342035, 0.001);
    let mut shares: Vec<u64> = pages.values().copied().collect();
    shares.sort_unstable_by(|one, other| other.cmp(one));
    for (place, published) in [(0, 0.0329), (1, 0.0163), (2, 0.0079), (9, 0.0029)] {
        near(&format!("address {place}"), share(shares[place]), published, 0.15);
    }
    assert!(addresses.iter().any(|address| address.contains("google")));
    assert!(texts(&hits, "Title").iter().any(|title| title.contains("Google")));
    assert_eq!(counts(ints(&hits, "URLHash").into_iter()).len(), pages.len(), "a hash an address");

    // Query 28: lengths of addresses by counter; queries 9 and 10: regions.
    let mut counters = BTreeMap::<i64, (u64, u64)>::new();
    for (counter, address) in ints(&hits, "CounterID").into_iter().zip(&addresses) {
        let entry = counters.entry(counter).or_default();
        *entry = (entry.0 + 1, entry.1 + address.chars().count() as u64);
    }
    for (counter, published, length) in [
        (3922, 0.0853, 87.8),
        (199_550, 0.0712, 109.8),
        (233_773, 0.0294, 469.1),
        (62, 0.0074, 93.2),
        (38, 0.0051, 76.4),
    ] {
        let (rows, characters) = counters[&counter];
        near(&format!("rows of counter {counter}"), share(rows), published, 0.35);
        near(&format!("addresses of counter {counter}"), characters as f64 / rows as f64, length, 0.12);
    }
    let regions = counts(ints(&hits, "RegionID").into_iter());
    for (region, published) in [(229, 0.183), (2, 0.0669), (208, 0.0426), (51, 0.0144)] {
        near(&format!("region {region}"), share(regions[&region]), published, 0.1);
    }

    // Queries 2 and 8, 11, 3, 7.
    let advertisers = counts(ints(&hits, "AdvEngineID").into_iter());
    near("advertisements", share(HITS - advertisers[&0]), 0.006305, 0.1);
    near("advertiser 2", share(advertisers[&2]), 0.00404602, 0.15);
    let of_ipads: HashSet<i64> = (ints(&hits, "UserID").into_iter().zip(texts(&hits, "MobilePhoneModel")))
        .filter_map(|(user, model)| (model == "iPad").then_some(user))
        .collect();
    near("users of the commonest model", of_ipads.len() as f64 / users.len() as f64, 0.0618, 0.1);
    let widths = ints(&hits, "ResolutionWidth");
    near("the mean of widths", widths.iter().sum::<i64>() as f64 / HITS as f64, 1513.49, 0.01);
    let days = hits.column_by_name("EventDate").unwrap().as_primitive::<Date32Type>();
    assert_eq!((days.values().iter().min(), days.values().iter().max()), (Some(&15_888), Some(&15_917)));

    // Queries 41 and 42 find rows.
    let asked = |column: &str, hash: i64, also: &dyn Fn(usize) -> bool| {
        let counters = ints(&hits, "CounterID");
        let hashes = ints(&hits, column);
        (0..hashes.len()).filter(|row| hashes[*row] == hash && counters[*row] == 62 && also(*row)).count()
    };
    let sources = ints(&hits, "TraficSourceID");
    assert!(asked("RefererHash", 3_594_120_000_172_545_465, &|row| [-1, 6].contains(&sources[row])) > 10);
    near(
        "rows of the page of query 42",
        share(asked("URLHash", 2_868_770_270_353_813_622, &|_| true) as u64),
        0.0015,
        0.2,
    );
}

fn h2o(dir: &Path, rows: u64, rows_per_file: u64) -> Vec<WrittenTable> {
    let options = WriteOptions { rows_per_file, ..WriteOptions::default() };
    write_h2o_parquet(dir, rows, &options, &NoProgress).expect("it writes").tables
}

#[test]
fn h2o_has_the_shapes_of_its_generator() {
    const ROWS: u64 = 20_000;
    let dir = TempDir::new().expect("a temporary folder");
    let tables = h2o(dir.path(), ROWS, 1 << 22);
    let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    assert_eq!(names, ["g1", "j1", "j1_big", "j1_medium", "j1_small"]);
    let rows: Vec<u64> = tables.iter().map(|table| table.rows).collect();
    assert_eq!(rows, [ROWS, ROWS, ROWS, 20, 10]);
    let [grouped, left, big, medium, small] = [0, 1, 2, 3, 4].map(|at| read(&tables[at].path));

    for (column, distinct) in [("id1", 100), ("id2", 100), ("id3", 200)] {
        assert_eq!(counts(texts(&grouped, column).into_iter()).len(), distinct, "{column}");
    }
    for (column, largest) in [("id4", 100), ("id5", 100), ("id6", 200), ("v1", 5), ("v2", 15)] {
        let found: HashSet<i64> = ints(&grouped, column).into_iter().collect();
        assert_eq!(found, (1..=largest).collect(), "{column}");
    }
    assert!(texts(&grouped, "id1").contains(&"id007") && texts(&grouped, "id3").contains(&"id0000000007"));
    let amounts = grouped.column_by_name("v3").unwrap().as_primitive::<Float64Type>();
    assert!(amounts.values().iter().all(|amount| (0.0..=100.0).contains(amount)));
    near("the mean of v3", amounts.values().iter().sum::<f64>() / ROWS as f64, 50.0, 0.02);

    // Nine tenths of the keys of either side are on the other, and no key of a table is missing in it.
    for (table, key, count) in [(&small, "id1", 10), (&medium, "id2", 20), (&big, "id3", ROWS)] {
        let keys = |batch: &RecordBatch| ints(batch, key).into_iter().collect::<HashSet<i64>>();
        let (ours, theirs) = (keys(&left), keys(table));
        assert_eq!((ours.len() as u64, theirs.len() as u64), (count, count), "{key}");
        assert_eq!(ours.intersection(&theirs).count() as u64, count * 9 / 10, "{key}");
    }
    let text = format!("id{}", ints(&left, "id3")[5]);
    assert_eq!(texts(&left, "id6")[5], text);
}

#[test]
fn parts_are_the_whole() {
    let [one, many] = [(); 2].map(|()| TempDir::new().expect("a temporary folder"));
    for (whole, cut) in h2o(one.path(), 20_000, 1 << 22).iter().zip(&h2o(many.path(), 20_000, 6_000)) {
        assert!(cut.files > 1 || whole.rows < 100);
        assert!(read(&whole.path).columns() == read(&cut.path).columns(), "{}", whole.name);
    }
    let hits = |dir: &TempDir, rows_per_file| {
        let dir = dir.path().join("hits");
        let options = WriteOptions { rows_per_file, ..WriteOptions::default() };
        let report = write_clickbench_parquet(&dir, 10_000, &options, &NoProgress).expect("it writes");
        (report.tables[0].files, read(&report.tables[0].path))
    };
    let ((whole_files, whole), (cut_files, cut)) = (hits(&one, 1 << 22), hits(&many, 12_000));
    assert!(whole_files == 1 && cut_files == 4 && whole.columns() == cut.columns());
    // Small tables have all that they can.
    let tiny = TempDir::new().expect("a temporary folder");
    assert_eq!(h2o(tiny.path(), 1, 10).iter().map(|table| table.rows).collect::<Vec<_>>(), [1, 1, 10, 10, 10]);
    let report = write_clickbench_parquet(&tiny.path().join("hits"), 1, &WriteOptions::default(), &NoProgress);
    assert_eq!(report.expect("it writes").tables[0].rows, 1);
    let narrow = read(&tiny.path().join("g1.parquet"));
    assert_eq!(narrow.column_by_name("id4").unwrap().as_primitive::<Int32Type>().len(), 1);
    assert!(read(&tiny.path().join("hits/hits.parquet")).column(1).as_primitive_opt::<Int16Type>().is_some());
}
