//! SSB against the reference generator: checksums of its text at scale factor 1, and parts against the whole.

use std::io::{self, Write};

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Int64Type};
use sha2::{Digest, Sha256};
use warpcube_datagen::{DatagenError, SsbTable, ssb_batches, write_ssb_tbl};

struct Hasher(Sha256);

impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Compares a table's text at scale factor 1 with the checksum of the reference generator's file.
fn check(table: SsbTable, rows: u64, sum: &str) {
    let mut hasher = Hasher(Sha256::new());
    assert_eq!(write_ssb_tbl(table, 1.0, &mut hasher).expect("a hash never fails"), rows);
    assert_eq!(table.rows(1.0).expect("a sound scale"), rows);
    let found: String = hasher.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(found, sum, "{}", table.name());
}

#[test]
fn customer_is_the_reference() {
    check(SsbTable::Customer, 30_000, "0ef34a4670b0d6284aa608818d8e1a0a819dc49e477bf7d5772a46d99b61240e");
}

#[test]
fn supplier_is_the_reference() {
    check(SsbTable::Supplier, 2_000, "f39fbf9318bba6c2e3567792989c8e4c010765ef0335b36d2bc41f0fbae3f26f");
}

#[test]
fn part_is_the_reference() {
    check(SsbTable::Part, 200_000, "57d34d1a284037852fcc738aaf5f629ff02e9e1bc55262c57239862c75ce864c");
}

#[test]
fn date_is_the_reference() {
    check(SsbTable::Date, 2_557, "da8171a9b774a9573801cc21e6dde8ee22c7e7649b94e9695547dcfa527104a2");
}

#[test]
fn lineorder_is_the_reference() {
    check(SsbTable::Lineorder, 6_001_173, "1395d8ac713f50b9cc874fd2bb99735ac62b73c8028c80c137aa421077da72ca");
}

fn whole(table: SsbTable, sf: f64, parts: usize, batch_rows: usize) -> RecordBatch {
    let schema = table.schema(sf).expect("a sound scale");
    let batches: Vec<RecordBatch> =
        (0..parts).flat_map(|part| ssb_batches(table, sf, part, parts, batch_rows).expect("a sound part")).collect();
    assert!(batches.iter().all(|batch| batch.num_rows() <= batch_rows && batch.num_rows() > 0));
    concat_batches(&schema, &batches).expect("batches of one schema")
}

#[test]
fn parts_are_the_whole() {
    for table in SsbTable::ALL {
        let sequential = whole(table, 0.01, 1, usize::MAX);
        assert_eq!(sequential.num_rows() as u64, table.rows(0.01).expect("a sound scale"), "{}", table.name());
        for (parts, batch_rows) in [(1, 1000), (2, 77), (13, 512), (500, 7)] {
            assert!(sequential == whole(table, 0.01, parts, batch_rows), "{} in {parts} parts", table.name());
        }
    }
}

#[test]
fn order_keys_take_64_bits_where_32_are_too_few() {
    let last = |sf| {
        let mut batches = ssb_batches(SsbTable::Lineorder, sf, 99_999_999, 100_000_000, 1000).expect("a sound part");
        let batch = batches.next().expect("a batch");
        let keys = cast(batch.column(0), &DataType::Int64).expect("integers");
        (batch.column(0).data_type().clone(), keys.as_primitive::<Int64Type>().values()[0])
    };
    let (narrow, key) = last(357.0);
    assert!(narrow == DataType::Int32 && (2_141_999_000..=2_142_000_000).contains(&key), "{key}");
    let (wide, key) = last(1000.0);
    assert!(wide == DataType::Int64 && (5_999_999_000..=6_000_000_000).contains(&key), "{key}");
}

#[test]
fn a_scale_or_part_without_sense_is_refused() {
    for sf in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(SsbTable::Part.rows(sf), Err(DatagenError::Scale(_))), "{sf}");
    }
    assert!(matches!(ssb_batches(SsbTable::Part, 1.0, 2, 2, 10), Err(DatagenError::Part { part: 2, parts: 2 })));
    assert!(matches!(ssb_batches(SsbTable::Part, 1.0, 0, 0, 10), Err(DatagenError::Part { .. })));
}
