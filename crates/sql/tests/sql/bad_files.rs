//! Files that are not what they claim to be, on the device and on the CPU: one error that names the file, or the right
//! answer, and a session that goes on.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::file::properties::WriterProperties;
use parquet::file::statistics::Statistics;
use warpcube_sql::{Connection, Place};

use crate::fuzz::random::Random;
use crate::support::{cpu, emulated, lenient, one, run, settle};

/// Rows of a file, in two row groups; column `a` counts them from 1, `b` is ten times that.
const ROWS: i64 = 4000;

/// Bytes behind a footer: its length and the magic.
const TRAILER_BYTES: usize = 8;

fn write(path: &Path) {
    let column =
        |factor: i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values((1..=ROWS).map(|row| row * factor))) };
    let batch = RecordBatch::try_from_iter([("a", column(1)), ("b", column(10))]).unwrap();
    let half = Some(ROWS as usize / 2);
    let properties = WriterProperties::builder().set_max_row_group_row_count(half).set_dictionary_enabled(false);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// Gives a file another footer; its pages stay as they are.
fn lie(path: &Path, edit: impl FnOnce(&mut i64, &mut Vec<RowGroupMetaData>)) {
    write(path);
    with_footer(path, edit);
}

/// The file with another footer.
pub fn with_footer(path: &Path, edit: impl FnOnce(&mut i64, &mut Vec<RowGroupMetaData>)) {
    let mut bytes = std::fs::read(path).unwrap();
    let told = ParquetMetaDataReader::new().parse_and_finish(&std::fs::File::open(path).unwrap()).unwrap();
    let file = told.file_metadata();
    let (mut rows, mut groups) = (file.num_rows(), told.row_groups().to_vec());
    edit(&mut rows, &mut groups);
    let file = FileMetaData::new(
        file.version(),
        rows,
        file.created_by().map(str::to_string),
        file.key_value_metadata().cloned(),
        file.schema_descr_ptr(),
        file.column_orders().cloned(),
    );
    let length = bytes.len();
    let footer = u32::from_le_bytes(bytes[length - TRAILER_BYTES..length - 4].try_into().unwrap());
    bytes.truncate(length - TRAILER_BYTES - footer as usize);
    let summed: i64 = groups.iter().map(RowGroupMetaData::num_rows).sum();
    let start = bytes.len();
    ParquetMetaDataWriter::new(&mut bytes, &ParquetMetaData::new(file, groups)).finish().unwrap();
    if rows != summed {
        // The writer adds up what the groups have: the file's own number is found by the bytes of its field.
        let (before, after) = (rows_field(summed), rows_field(rows));
        let at = bytes[start..].windows(before.len()).position(|window| window == before).expect("the field is there");
        assert_eq!(before.len(), after.len(), "other fields would have to move");
        bytes[start + at..start + at + after.len()].copy_from_slice(&after);
    }
    std::fs::write(path, bytes).unwrap();
}

/// The field `num_rows` of a file as Thrift's compact protocol writes it: one past the field before, a 64-bit integer,
/// zigzag, seven bits a byte.
fn rows_field(rows: i64) -> Vec<u8> {
    let mut rest = ((rows << 1) ^ (rows >> 63)) as u64;
    let mut bytes = vec![0x16];
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}

/// The row group with another number of rows, in itself and in its columns.
fn with_counts(group: &RowGroupMetaData, rows: i64, values: i64) -> RowGroupMetaData {
    let column = |column: &ColumnChunkMetaData| column.clone().into_builder().set_num_values(values).build().unwrap();
    let columns = group.columns().iter().map(column).collect();
    group.clone().into_builder().set_num_rows(rows).set_column_metadata(columns).build().unwrap()
}

/// The row group with other statistics of its first column.
fn with_statistics(group: &RowGroupMetaData, low: i64, high: i64, nulls: u64) -> RowGroupMetaData {
    let mut columns = group.columns().to_vec();
    let statistics = Statistics::int64(Some(low), Some(high), None, Some(nulls), false);
    columns[0] = columns[0].clone().into_builder().set_statistics(statistics).build().unwrap();
    group.clone().into_builder().set_column_metadata(columns).build().unwrap()
}

fn sessions() -> [Connection; 3] {
    [cpu(), lenient(), emulated()]
}

/// The error of a statement.
async fn error(session: &Connection, sql: &str) -> String {
    let ran = match session.execute(sql).await {
        Ok(execution) => execution.collect().await,
        Err(error) => Err(error),
    };
    ran.map(|batches| format!("{batches:?}")).expect_err(sql).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn footers_that_contradict_themselves_are_corrupt() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).join("part.parquet");
    let half = ROWS / 2;
    lie(&path("file"), |rows, _| *rows += 1);
    lie(&path("group"), |_, groups| groups[1] = with_counts(&groups[1], half + 1, half));
    lie(&path("negative"), |rows, groups| {
        *rows = half - 1;
        groups[1] = with_counts(&groups[1], -1, -1);
    });
    lie(&path("nulls"), |_, groups| groups[0] = with_statistics(&groups[0], 1, half, half as u64 + 1));
    let cases = [
        ("file", "its footer tells of 4001 rows, its row groups have 4000"),
        ("group", "row group 1 has 2001 rows, its column 'a' 2000 values"),
        ("negative", "row group 1 has -1 rows"),
        ("nulls", "row group 0: column 'a' has 2001 nulls in 2000 values"),
    ];
    write(&path("good"));
    for session in sessions() {
        for (name, reason) in cases {
            let path = path(name).display().to_string();
            let expected = format!("FILE-003 {path}: {reason}");
            assert_eq!(error(&session, &format!("SELECT count(*) FROM '{path}'")).await, expected);
            let create = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{path}'");
            assert_eq!(error(&session, &create).await, expected);
        }
        // A table that was good when it was made.
        let changing = path("changing");
        write(&changing);
        let create = format!("CREATE EXTERNAL TABLE c STORED AS PARQUET LOCATION '{}'", changing.display());
        session.collect(&create).await.unwrap();
        let sql = "SELECT count(*), sum(a) FROM c";
        assert_eq!(one(&session, sql).await.0, "4000 8002000");
        lie(&changing, |rows, _| *rows = 4100);
        assert!(error(&session, sql).await.starts_with(&format!("FILE-003 {}: its footer", changing.display())));
        write(&changing);
        assert_eq!(one(&session, sql).await.0, "4000 8002000");
    }
}

/// All of the footer tells of more or fewer rows than the pages hold.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn footers_that_are_longer_than_their_file_are_corrupt() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    write(&path);
    let bytes = std::fs::read(&path).unwrap();
    let end = bytes.len();
    let size = u32::try_from(end).unwrap();
    for length in [size - 11, size, size + 100, u32::MAX] {
        let mut changed = bytes.clone();
        changed[end - TRAILER_BYTES..end - 4].copy_from_slice(&length.to_le_bytes());
        std::fs::write(&path, changed).unwrap();
        let reason = format!("its last bytes tell of a footer of {length} bytes, the file has {size}");
        let expected = format!("FILE-003 {}: {reason}", path.display());
        for place in [path.display().to_string(), format!("{}/", folder.path().display())] {
            assert_eq!(error(&cpu(), &format!("SELECT count(*) FROM '{place}'")).await, expected);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn footers_that_lie_with_one_voice_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    for (name, rows) in [("more", ROWS / 2 + 700), ("fewer", ROWS / 2 - 700)] {
        let path = folder.path().join(name).join("part.parquet");
        lie(&path, |told, groups| {
            *told = ROWS / 2 + rows;
            groups[1] = with_counts(&groups[1], rows, rows);
        });
        for session in sessions() {
            session.collect("CREATE TABLE other AS VALUES (1), (2)").await.unwrap();
            let create = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}'", path.display());
            session.collect(&create).await.unwrap();
            for _ in 0..2 {
                // Columns have the rows that their pages have.
                assert_eq!(one(&session, "SELECT sum(a), max(b), count(a) FROM t").await.0, "8002000 40000 4000");
                // Counting without a column may believe the footer.
                let counted = one(&session, "SELECT count(*) FROM t").await.0;
                assert!(counted == "4000" || counted == (ROWS / 2 + rows).to_string(), "{counted}");
            }
            assert_eq!(one(&session, "SELECT sum(column1) FROM other").await.0, "3");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_device_believes_no_bounds_but_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bounds.parquet");
    // The values of the first group are said to lie between 5 and 6, those of the second among those of nobody.
    lie(&path, |_, groups| {
        groups[0] = with_statistics(&groups[0], 5, 6, 0);
        groups[1] = with_statistics(&groups[1], -7, -9, 0);
    });
    let create = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}'", path.display());
    let queries = [
        ("SELECT count(*), sum(a), min(a), max(a) FROM t WHERE a > 100", "3900 7996950 101 4000"),
        ("SELECT count(*), sum(b) FROM t WHERE a BETWEEN 7 AND 9", "3 240"),
        ("SELECT min(a), max(a) FROM t", "1 4000"),
    ];
    let device = emulated();
    device.collect(&create).await.unwrap();
    for (sql, expected) in queries {
        assert_eq!(one(&device, sql).await, (expected.to_string(), vec![Place::Gpu]), "{sql}");
    }
    // The CPU takes a footer's bounds at their word, as DataFusion does, unless it is told not to.
    let cpu = cpu();
    for setting in ["datafusion.execution.parquet.pruning", "datafusion.execution.collect_statistics"] {
        cpu.set(setting, "false").unwrap();
    }
    cpu.collect(&create).await.unwrap();
    for (sql, expected) in &queries[..2] {
        assert_eq!(one(&cpu, sql).await.0, *expected, "{sql}");
    }
}

/// What is said of a file, with placement `auto` and `cuda` and on the CPU, when it is read if not before, and that it
/// leaves nothing behind.
async fn all_say(create: &str, sql: &str, expected: &str) {
    for session in sessions() {
        if let Err(error) = session.collect(create).await {
            assert!(error.to_string().starts_with(expected), "{create}\n{error}\n{expected}");
            continue;
        }
        for _ in 0..2 {
            let found = error(&session, sql).await;
            assert!(found.starts_with(expected), "{sql}\n{found}\n{expected}");
        }
        if session.database().device().gpu().is_some() {
            settle(&session).await;
            let found = error(&session, "LOAD TABLE t").await;
            assert!(found.starts_with(expected), "LOAD TABLE\n{found}\n{expected}");
            settle(&session).await;
        }
        session.collect("CREATE TABLE other AS VALUES (1), (2)").await.unwrap();
        assert_eq!(one(&session, "SELECT sum(column1) FROM other").await.0, "3");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_pages_name_their_file() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("t/good.parquet"));
    let path = folder.path().join("t/torn.parquet");
    write(&path);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4..3000].fill(0xA5);
    std::fs::write(&path, bytes).unwrap();
    let create = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}/t/'", folder.path().display());
    all_say(&create, "SELECT sum(a), sum(b) FROM t", &format!("FILE-003 {}: ", path.display())).await;
}

/// Pages with checksums: 150 rows in row groups of 100, written by pyarrow with `write_page_checksum=True`; `a` counts
/// from 1, `b` has a dictionary, `c` is half of what `a` is, less one half.
const CHECKSUMS: &[u8] = include_bytes!("../data/checksums.parquet");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_that_are_not_what_their_checksum_says_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let sql = "SELECT sum(a), count(DISTINCT b), sum(c) FROM t";
    let create = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}'", path.display());
    std::fs::write(&path, CHECKSUMS).unwrap();
    for session in sessions() {
        session.collect(&create).await.unwrap();
        assert_eq!(one(&session, sql).await.0, "11325 5 5587.5");
    }
    for (at, place, whole) in [
        (500, "row group 0, column 'a', data page 2", "SELECT sum(c), count(b) FROM t"),
        (960, "row group 0, column 'b', dictionary page", "SELECT sum(a), sum(c) FROM t"),
        (3000, "row group 1, column 'c', data page 2", "SELECT sum(a), count(b) FROM t"),
    ] {
        let mut bytes = CHECKSUMS.to_vec();
        bytes[at] ^= 0x10;
        std::fs::write(&path, bytes).unwrap();
        let reason = "its bytes are not those that its checksum was taken of";
        let expected = format!("FILE-003 {}: {place}: {reason}", path.display());
        all_say(&create, sql, &expected).await;
        // What is not read is not looked at.
        let session = cpu();
        session.collect(&create).await.unwrap();
        session.collect(whole).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quotes_that_are_never_closed_have_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let reason = "a value begins with \" here and has no end; close it, or name the character that quotes values";
    let expected = |line: u32| format!("FILE-004 {}, line {line}: {reason}", path.display());
    let file = format!("SELECT count(*) FROM '{}'", path.display());
    let declared = format!("CREATE EXTERNAL TABLE d (a INT, b VARCHAR) STORED AS CSV LOCATION '{}'", path.display());
    std::fs::write(&path, "a,b\n1,x\n2,\"y\n3,z\n4,z\n").unwrap();
    for session in sessions() {
        for sql in [&file, &declared] {
            let found = error(&session, sql).await;
            assert!(found.starts_with(&expected(3)), "{sql}\n{found}");
        }
        let other = format!("{declared} OPTIONS (format.quote '~')");
        session.collect(&other).await.unwrap();
        assert_eq!(one(&session, "SELECT count(*), max(b) FROM d").await.0, "4 z");
    }
    // A table that was whole when it was made, and a file that is compressed.
    let session = cpu();
    std::fs::write(&path, "a,b\n1,x\n\"2\",\"y\nyy\"\n").unwrap();
    session.collect(&declared).await.unwrap();
    assert_eq!(one(&session, "SELECT count(*), sum(a) FROM d").await.0, "2 3");
    let compressed = folder.path().join("t.csv.gz");
    session.collect(&format!("COPY d TO '{}'", compressed.display())).await.unwrap();
    assert_eq!(one(&session, &format!("SELECT count(*) FROM '{}'", compressed.display())).await.0, "2");
    std::fs::write(&path, "a,b\n1,x\n\"2\",\"y\nyy\"\n3,\"").unwrap();
    assert!(error(&session, "SELECT count(*) FROM d").await.starts_with(&expected(5)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn footers_that_point_elsewhere_name_their_file() {
    type Edit = fn(ColumnChunkMetaData) -> ColumnChunkMetaData;
    let far: Edit = |column| column.into_builder().set_data_page_offset(1 << 40).build().unwrap();
    let beyond: Edit = |column| column.into_builder().set_total_compressed_size(1 << 40).build().unwrap();
    let inside: Edit = |column| column.into_builder().set_data_page_offset(11).build().unwrap();
    let short: Edit = |column| column.into_builder().set_total_compressed_size(20).build().unwrap();
    let negative: Edit = |column| column.into_builder().set_data_page_offset(-5).build().unwrap();
    for (number, edit) in [far, beyond, inside, short, negative].into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("astray{number}.parquet"));
        lie(&path, |_, groups| {
            let mut columns = groups[1].columns().to_vec();
            columns[0] = edit(columns[0].clone());
            groups[1] = groups[1].clone().into_builder().set_column_metadata(columns).build().unwrap();
        });
        let create = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}'", path.display());
        all_say(&create, "SELECT sum(a), sum(b) FROM t", &format!("FILE-003 {}: ", path.display())).await;
    }
}

/// Bytes changed anywhere, drawn from a seed: whatever readers make of them, the session is there afterwards. Pages
/// of these have no checksums, so that some of these files have an answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_damage_to_a_file_ends_a_session() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.parquet");
    write(&whole);
    let whole = std::fs::read(whole).unwrap();
    let mut random = Random::new(3);
    let sessions = [cpu(), emulated()];
    let mut failed = 0;
    for number in 0..60 {
        let mut bytes = whole.clone();
        for _ in 0..1 + random.below(8) {
            // Every second one in the footer, which is small and decides most.
            let from = if random.chance(50) { bytes.len() - 900 } else { 4 };
            let at = from + random.below(bytes.len() - from);
            bytes[at] = random.next() as u8;
        }
        let path = folder.path().join(format!("damaged{number}.parquet"));
        std::fs::write(&path, bytes).unwrap();
        for session in &sessions {
            let sql = format!("SELECT count(*), sum(a), max(b) FROM '{}'", path.display());
            match run(session, &sql).await {
                Ok((batches, _)) => assert_eq!(crate::format::rows(&batches).len(), 1),
                Err(error) => {
                    let known = ["FILE-0", "SQL-0", "COL-0"].iter().any(|code| error.starts_with(code));
                    assert!(known && error.lines().count() == 1, "{error}");
                    failed += 1;
                }
            }
        }
    }
    assert!(failed > 20, "only {failed} of the damaged files were found out");
    settle(&sessions[1]).await;
    for session in &sessions {
        session.collect("CREATE TABLE other AS VALUES (1), (2)").await.unwrap();
        assert_eq!(one(session, "SELECT sum(column1) FROM other").await.0, "3");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_that_is_no_number_has_file_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let rows: String = (0..25_000).map(|row| format!("{row},{}\n", row * 2)).collect();
    std::fs::write(&path, format!("a,price\n{rows}25000,cheap\n")).unwrap();
    let create = format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{}'", path.display());
    let reason = "Error while parsing value 'cheap' as type 'Int64'";
    let expected = format!("FILE-004 {}, line 25002, column 'price': {reason}", path.display());
    all_say(&create, "SELECT sum(price), sum(a) FROM t", &expected).await;
    std::fs::write(&path, format!("a,price\n{rows}25000,1,2\n")).unwrap();
    let expected = "line 25002: incorrect number of fields, expected 2 got 3";
    let expected = format!("FILE-004 {}, {expected}", path.display());
    all_say(&create, "SELECT sum(price), sum(a) FROM t", &expected).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_are_gone_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    for session in sessions() {
        write(&path);
        let create = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}'", path.display());
        session.collect(&create).await.unwrap();
        let sql = "SELECT sum(a) FROM t";
        assert_eq!(one(&session, sql).await.0, "8002000");
        std::fs::remove_file(&path).unwrap();
        let found = error(&session, sql).await;
        assert!(found.starts_with(&format!("FILE-001 {}: no such file", path.display())), "{found}");
        write(&path);
        assert_eq!(one(&session, sql).await.0, "8002000");
    }
}
