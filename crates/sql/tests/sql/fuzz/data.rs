//! Random tables: a fact table, dimensions tied to it by keys, and dimensions of dimensions.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int64Array, StringArray, UInt64Array};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use arrow::record_batch::RecordBatch;

use super::random::Random;

/// Rows of a batch at most, so that tables have several.
const BATCH_ROWS: usize = 700;

/// How a table is given to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// In memory, in that many partitions.
    Memory(usize),
    /// Parquet: that many files, with row groups of so many rows.
    Parquet(usize, usize),
}

/// A column with what queries have to know of it.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its name, unlike that of any other column.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// Values reach to the bounds of the type, or are infinite or NaN: sums as doubles would depend on their order.
    pub wide: bool,
}

/// A table.
#[derive(Debug, Clone)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// All rows.
    pub rows: RecordBatch,
    /// Where it is kept.
    pub storage: Storage,
}

/// A tie: `parent.foreign = child.key`.
#[derive(Debug, Clone)]
pub struct Tie {
    /// Index of the table that is tied.
    pub child: usize,
    /// Index of the table it is tied to.
    pub parent: usize,
    /// Column of the parent.
    pub foreign: String,
    /// Column of the child.
    pub key: String,
}

/// All tables of a case; the first is the fact table.
#[derive(Debug, Clone)]
pub struct Tables {
    /// Tables.
    pub tables: Vec<Table>,
    /// Ties, parents before children.
    pub ties: Vec<Tie>,
}

/// How the numbers of a column are spread.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Small(i128),
    Full,
    Skewed(i128),
    Sorted,
    /// Sorted, but for one value in so many.
    Jumping(usize),
    Constant,
}

impl Tables {
    /// A fact table alone, of about `rows` rows: columns as in any other table, and columns that mislead orders.
    pub fn misleading(random: &mut Random, rows: usize) -> Tables {
        let rows = match random.below(8) {
            0 => random.below(2),
            1 => 1023 + random.below(4),
            // Long enough for a threshold from a sample.
            2 | 3 => rows * 12 + random.below(rows.max(1)),
            _ => rows / 2 + random.below(rows.max(1)),
        };
        let mut table = Table::generate(random, "f", rows, 5);
        for index in 0..4 {
            table.append(&format!("f_m{index}"), misleading(random, rows));
        }
        Tables { tables: vec![table], ties: Vec::new() }
    }

    /// Random tables; the fact table has about `rows` rows.
    pub fn generate(random: &mut Random, rows: usize) -> Tables {
        let fact_rows = match random.below(12) {
            0 => 0,
            1 => 1,
            2 => 1023 + random.below(4),
            _ => rows / 2 + random.below(rows.max(1)),
        };
        let dimensions = random.below(4);
        let mut made = vec![Table::generate(random, "f", fact_rows, 9)];
        let mut ties = Vec::new();
        for index in 0..dimensions {
            let parent = if index > 0 && random.chance(35) { random.below(made.len()) } else { 0 };
            let name = format!("d{index}");
            let child_rows = *random.pick(&[0, 1, 7, 60, 500, 2500]);
            let mut child = Table::generate(random, &name, child_rows.min(rows.max(60)), 4);
            let (key, foreign) = (format!("{name}_key"), format!("{}_{name}", made[parent].name));
            let (keys, references) = keys(random, child.rows.num_rows(), made[parent].rows.num_rows());
            child.append(&key, keys);
            made[parent].append(&foreign, references);
            made.push(child);
            ties.push(Tie { child: made.len() - 1, parent, foreign, key });
        }
        Tables { tables: made, ties }
    }
}

/// The keys of a dimension and references to them.
fn keys(random: &mut Random, rows: usize, references: usize) -> (ArrayRef, ArrayRef) {
    let types = [
        DataType::Int32,
        DataType::Int64,
        DataType::UInt32,
        DataType::Int16,
        DataType::UInt64,
        DataType::Date32,
        DataType::Utf8,
    ];
    let data_type = random.pick(&types).clone();
    let step = *random.pick(&[1, 1, 3, 10]);
    let is_signed = matches!(data_type, DataType::Int32 | DataType::Int64 | DataType::Int16 | DataType::Date32);
    let first = *random.pick(if is_signed { &[0, 1, 100, -1, -40, -3_000] } else { &[0, 1, 100, 7, 40, 3_000] });
    let mut values: Vec<Option<i128>> = (0..rows as i128).map(|row| Some(first + row * step)).collect();
    if random.chance(50) {
        for last in (1..values.len()).rev() {
            let other = random.below(last + 1);
            values.swap(last, other);
        }
    }
    if rows > 1 && random.chance(8) {
        values[1] = values[0];
    }
    if random.chance(15) {
        // Two rows of three have a key in common.
        (1..rows).step_by(3).for_each(|row| values[row] = values[row - 1]);
    }
    if rows > 2 && random.chance(15) {
        values[2] = None;
    }
    let nulls = *random.pick(&[0, 0, 5, 40]);
    let span = (rows as i128 * step + 5).max(1);
    let misses = random.chance(50);
    // Rows that refer to the same key side by side, but for some.
    let run = random.chance(30).then(|| *random.pick(&[50, 700, 5_000]));
    let refer = |row: usize| {
        if random.chance(nulls) {
            return None;
        }
        if let Some(run) = run.filter(|_| rows > 0 && random.below(400) > 0) {
            return Some(first + (row / run % rows) as i128 * step);
        }
        if misses || rows == 0 {
            return Some(first + random.between(0, span));
        }
        values[random.below(rows)].or(Some(first))
    };
    let referring: Vec<Option<i128>> = (0..references).map(refer).collect();
    (numbers(&values, &data_type), numbers(&referring, &data_type))
}

impl Table {
    fn generate(random: &mut Random, name: &str, rows: usize, columns_max: usize) -> Table {
        let count = 2 + random.below(columns_max);
        let storage = match random.chance(50) {
            true => Storage::Memory(1 + random.below(4)),
            false => Storage::Parquet(1 + random.below(3), *random.pick(&[100, 1000, 1 << 20])),
        };
        let empty = RecordBatch::new_empty(Arc::new(Schema::empty()));
        let mut table = Table { name: name.into(), columns: Vec::new(), rows: empty, storage };
        // A column of its own keeps the number of rows, whatever shrinking takes away.
        table
            .append(&format!("{name}_id"), numbers(&(0..rows as i128).map(Some).collect::<Vec<_>>(), &DataType::Int32));
        for index in 0..count {
            let (values, wide) = column(random, rows);
            table.append(&format!("{name}_c{index}"), values);
            table.columns.last_mut().expect("just added").wide = wide;
        }
        table
    }

    fn append(&mut self, name: &str, values: ArrayRef) {
        let data_type = values.data_type().clone();
        let mut fields: Vec<Arc<Field>> = self.rows.schema().fields().iter().cloned().collect();
        fields.push(Arc::new(Field::new(name, data_type.clone(), true)));
        let mut arrays = self.rows.columns().to_vec();
        arrays.push(values);
        self.rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("columns of one length");
        self.columns.push(Column { name: name.into(), data_type, wide: false });
    }

    /// The rows in `parts` parts, each in batches.
    pub fn partitions(&self, parts: usize) -> Vec<Vec<RecordBatch>> {
        let rows = self.rows.num_rows();
        let part_rows = rows.div_ceil(parts.max(1)).max(1);
        let batch_rows = BATCH_ROWS.max(rows / 16);
        let batches = |start: usize, end: usize| -> Vec<RecordBatch> {
            let starts = (start..end).step_by(batch_rows);
            starts.map(|at| self.rows.slice(at, batch_rows.min(end - at))).collect()
        };
        (0..parts).map(|part| batches((part * part_rows).min(rows), ((part + 1) * part_rows).min(rows))).collect()
    }

    /// The table with the rows of a range left out.
    pub fn without(&self, start: usize, length: usize) -> Table {
        let head = self.rows.slice(0, start);
        let end = (start + length).min(self.rows.num_rows());
        let tail = self.rows.slice(end, self.rows.num_rows() - end);
        let rows = concat_batches(&self.rows.schema(), [&head, &tail]).expect("parts of one table");
        Table { rows, ..self.clone() }
    }
}

fn column(random: &mut Random, rows: usize) -> (ArrayRef, bool) {
    let nulls = *random.pick(&[0, 0, 0, 3, 30, 90, 100]);
    let kind = random.below(20);
    if kind < 5 {
        return (strings(random, rows, nulls), false);
    }
    if kind < 7 {
        let data_type = random.pick(&[DataType::Float64, DataType::Float32]).clone();
        return floats(random, rows, nulls, &data_type);
    }
    if kind == 7 {
        let value = |_| (!random.chance(nulls)).then(|| random.chance(40));
        return (Arc::new((0..rows).map(value).collect::<BooleanArray>()), false);
    }
    let (data_type, low, high) = integer_type(random);
    let shape = match random.below(9) {
        0 | 1 => Shape::Full,
        2 | 3 => Shape::Skewed(1 + random.between(0, 1000)),
        4 => Shape::Sorted,
        5 => Shape::Constant,
        6 => Shape::Jumping(*random.pick(&[90, 800, 3_000])),
        _ => Shape::Small(*random.pick(&[2, 7, 50, 4000])),
    };
    let base = random.between(low.max(-40), high.min(100));
    let value = |row: usize| {
        if random.chance(nulls) {
            return None;
        }
        let value = match shape {
            Shape::Small(domain) => base + random.between(0, domain - 1),
            Shape::Full => match random.below(12) {
                0 => low,
                1 => high,
                2 => low.max(0),
                _ => random.between(low, high),
            },
            Shape::Skewed(domain) => {
                let one = random.between(0, domain);
                let other = random.between(0, one);
                base + random.between(0, other)
            }
            Shape::Sorted => base + (row / 3) as i128,
            Shape::Jumping(rarity) => match random.below(rarity) {
                0 => random.between(low.max(-1 << 62), high.min(1 << 62)),
                _ => base + (row / 100) as i128,
            },
            Shape::Constant => base,
        };
        Some(value.clamp(low, high))
    };
    let values: Vec<Option<i128>> = (0..rows).map(value).collect();
    let wide = matches!(shape, Shape::Full | Shape::Jumping(_)) && high > i128::from(u32::MAX);
    (numbers(&values, &data_type), wide)
}

/// A type whose values are integers inside, with the bounds of values worth drawing.
fn integer_type(random: &mut Random) -> (DataType, i128, i128) {
    let years = 150i128 * 365 * 86_400;
    match random.below(17) {
        0 => (DataType::Int8, i8::MIN.into(), i8::MAX.into()),
        1 => (DataType::Int16, i16::MIN.into(), i16::MAX.into()),
        2 | 3 => (DataType::Int32, i32::MIN.into(), i32::MAX.into()),
        4 | 5 => (DataType::Int64, i64::MIN.into(), i64::MAX.into()),
        6 => (DataType::UInt8, 0, u8::MAX.into()),
        7 => (DataType::UInt16, 0, u16::MAX.into()),
        8 => (DataType::UInt32, 0, u32::MAX.into()),
        9 => (DataType::UInt64, 0, u64::MAX.into()),
        10 | 11 => (DataType::Date32, -30_000, 60_000),
        12 | 13 => {
            let (unit, factor) = *random.pick(&[
                (TimeUnit::Second, 1),
                (TimeUnit::Millisecond, 1_000),
                (TimeUnit::Microsecond, 1_000_000),
                (TimeUnit::Nanosecond, 1_000_000_000),
            ]);
            (DataType::Timestamp(unit, None), -years * factor, years * factor)
        }
        _ => {
            let (precision, scale) = *random.pick(&[(5, 2), (9, 0), (12, 2), (15, 2), (18, 6), (25, 4), (38, 10)]);
            let bound = 10i128.pow(u32::from(precision)) - 1;
            (DataType::Decimal128(precision, scale), -bound, bound)
        }
    }
}

/// Integers as an array of an integer type, a decimal, a date, a timestamp, or as text.
fn numbers(values: &[Option<i128>], data_type: &DataType) -> ArrayRef {
    let narrow: ArrayRef = match data_type {
        DataType::Decimal128(precision, scale) => {
            let decimals = Decimal128Array::from(values.to_vec()).with_precision_and_scale(*precision, *scale);
            return Arc::new(decimals.expect("bounds of the type were kept"));
        }
        DataType::UInt64 => {
            return Arc::new(values.iter().map(|value| value.map(|value| value as u64)).collect::<UInt64Array>());
        }
        DataType::Date32 => {
            let days: Vec<Option<i32>> = values.iter().map(|value| value.map(|value| value as i32)).collect();
            return Arc::new(arrow::array::Date32Array::from(days));
        }
        _ => Arc::new(values.iter().map(|value| value.map(|value| value as i64)).collect::<Int64Array>()),
    };
    cast(&narrow, data_type).expect("integers convert")
}

/// Multiples of a quarter, whose sums are exact, and now and then what floats are feared for.
fn floats(random: &mut Random, rows: usize, nulls: u64, data_type: &DataType) -> (ArrayRef, bool) {
    let special = random.chance(20);
    let span = *random.pick(&[4, 400, 100_000]);
    let value = |_| {
        if random.chance(nulls) {
            return None;
        }
        Some(match random.below(60) {
            0 if special => f64::NAN,
            1 if special => f64::INFINITY,
            2 => -0.0,
            _ => random.between(-span, span) as f64 / 4.0,
        })
    };
    let values: ArrayRef = Arc::new((0..rows).map(value).collect::<Float64Array>());
    (cast(&values, data_type).expect("floats convert"), special)
}

/// Keys that orders are feared for: all equal, sorted both ways, nothing but NaN, infinities or NULL, one far from all
/// others, buckets that separate nothing.
fn misleading(random: &mut Random, rows: usize) -> ArrayRef {
    let nulls = *random.pick(&[0, 0, 5, 60]);
    let shape = random.below(10);
    let is_float = shape >= 7 || random.chance(50);
    let far = random.below(rows.max(1));
    let mut value = |row: usize| {
        if shape == 6 || random.chance(nulls) {
            return None;
        }
        Some(match shape {
            0 => -2.5,
            1 => row as f64,
            2 => -(row as f64),
            3 if row == far => 9e7,
            3 => random.between(0, 40) as f64,
            4 => random.between(-3, 3) as f64,
            5 => (row / 700) as f64,
            7 => f64::NAN,
            8 => *random.pick(&[f64::INFINITY, f64::NEG_INFINITY]),
            _ => {
                *random.pick(&[f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 5e-324, 1.0, f64::MAX])
            }
        })
    };
    let values: ArrayRef = Arc::new((0..rows).map(&mut value).collect::<Float64Array>());
    let floats = [DataType::Float64, DataType::Float32];
    let integers = [DataType::Int32, DataType::Int64, DataType::Decimal128(12, 2), DataType::Date32];
    let data_type = if is_float { random.pick(&floats) } else { random.pick(&integers) };
    let narrowed = match data_type {
        DataType::Date32 => cast(&values, &DataType::Int32).expect("small numbers convert"),
        _ => values,
    };
    cast(&narrowed, data_type).expect("small numbers convert")
}

fn strings(random: &mut Random, rows: usize, nulls: u64) -> ArrayRef {
    const PARTS: [&str; 14] =
        ["", "a", "Ab", "ASIA", "x_y", "100%", "ünï", "MFGR#1", " ", "it's", "zz", "0", "-5", "EUROPE"];
    let distinct = *random.pick(&[1, 3, 12, 200]);
    let words: Vec<String> = (0..distinct)
        .map(|index| match index < PARTS.len() {
            true => PARTS[index].to_string(),
            false => format!("{}{}{index}", random.pick(&PARTS), random.pick(&PARTS)),
        })
        .collect();
    let value = |_| (!random.chance(nulls)).then(|| words[random.below(words.len())].as_str());
    let values: ArrayRef = Arc::new((0..rows).map(value).collect::<StringArray>());
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let types = [DataType::Utf8, DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View, dictionary];
    cast(&values, random.pick(&types)).expect("strings convert")
}
