//! The facts of the demo, month by month.
//!
//! Pairs of country and product are drawn to be sold, and sold pairs to have figures in a month and version, by
//! selection sampling (Knuth, *The Art of Computer Programming* 2, 3.4.2, algorithm S), so that their numbers are
//! exact.
//! All amounts are computed in whole numbers.

use std::sync::Arc;

use arrow::array::{Date32Builder, Decimal128Builder, RecordBatch, RecordBatchReader, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;

use super::catalogue::{Country, Product, country_list, product_list};
use super::{drawn, drawn_between};

/// Rows of the facts, each of another base cell.
pub const ROWS: u64 = 2_000_000;
/// Rows of a batch.
const BATCH_ROWS: usize = 1 << 16;
/// Pairs of country and product that are sold.
const SOLD_PAIRS: u64 = 9_800;
/// April 2023 to March 2026.
const MONTHS: u64 = 36;
/// Days from 1970-01-01 to the first of each month.
const FIRST_DAYS: [i32; MONTHS as usize] = first_days();
const VERSIONS: [&str; 2] = ["Actual", "Budget"];
const ACCOUNTS: [&str; 3] = ["Units", "Revenue", "Cost"];
/// Percent of an average month's sales, April first.
const SEASON: [i64; 12] = [112, 124, 130, 121, 108, 102, 92, 84, 96, 71, 74, 86];
/// Digits of amounts, two of them after the point.
const AMOUNT: (u8, i8) = (14, 2);
/// Seeds of independent draws.
const SEEDS: Seeds = Seeds { pair: 1 << 40, filled: 2 << 40, product: 3 << 40, sales: 4 << 40, month: 5 << 40 };

struct Seeds {
    pair: u64,
    filled: u64,
    product: u64,
    sales: u64,
    month: u64,
}

const fn first_days() -> [i32; MONTHS as usize] {
    const LENGTHS: [i32; 12] = [30, 31, 30, 31, 31, 30, 31, 30, 31, 31, 28, 31];
    let mut days = [0; MONTHS as usize];
    // 2023-04-01.
    let mut day = 19_448;
    let mut month = 0;
    while month < MONTHS as usize {
        days[month] = day;
        // The first year ends in February of the leap year 2024.
        day += LENGTHS[month % 12] + if month == 10 { 1 } else { 0 };
        month += 1;
    }
    days
}

/// A pair of country and product, and what it sells.
struct Pair {
    country: Country,
    product: usize,
    /// Units of an average month of FY24, times 100.
    units: i64,
    /// Growth of a year in percent.
    growth: i64,
}

/// The facts as batches: month, region, sku, version, account and amount.
pub struct FactRows {
    schema: SchemaRef,
    products: Vec<Product>,
    /// Cost of a unit in percent of its price, by product.
    costs: Vec<i64>,
    pairs: Vec<Pair>,
    /// Groups of cells looked at: month, version and pair by number, pair changing first.
    next: u64,
    selection: Selection,
    rows: u64,
}

/// Selection sampling: of `left` records yet to come, `wanted` are selected.
struct Selection {
    wanted: u64,
    left: u64,
}

impl Selection {
    /// Decides about the next record with a draw.
    fn takes(&mut self, draw: u64) -> bool {
        let takes = (u128::from(draw) * u128::from(self.left)) >> 64 < u128::from(self.wanted);
        self.left -= 1;
        self.wanted -= u64::from(takes);
        takes
    }
}

/// The facts of the demo, in the order of months.
pub fn facts() -> FactRows {
    let field = |name: &str, data_type: DataType| Field::new(name, data_type, false);
    let schema = Schema::new(vec![
        field("month", DataType::Date32),
        field("region", DataType::Utf8),
        field("sku", DataType::Utf8),
        field("version", DataType::Utf8),
        field("account", DataType::Utf8),
        field("amount", DataType::Decimal128(AMOUNT.0, AMOUNT.1)),
    ]);
    let products = product_list();
    let pairs = sold_pairs(&products);
    let costs = (0..products.len() as u64).map(|product| drawn_between(SEEDS.product + product, 44, 71)).collect();
    let groups = MONTHS * VERSIONS.len() as u64 * pairs.len() as u64;
    let wanted = ROWS.div_ceil(ACCOUNTS.len() as u64);
    let selection = Selection { wanted, left: groups };
    FactRows { schema: Arc::new(schema), products, costs, pairs, next: 0, selection, rows: 0 }
}

fn sold_pairs(products: &[Product]) -> Vec<Pair> {
    let countries = country_list();
    let mut selection = Selection { wanted: SOLD_PAIRS, left: (countries.len() * products.len()) as u64 };
    let mut pairs = Vec::with_capacity(SOLD_PAIRS as usize);
    for (number, (country, product)) in
        countries.iter().flat_map(|country| (0..products.len()).map(move |product| (*country, product))).enumerate()
    {
        let number = number as u64;
        if !selection.takes(drawn(SEEDS.pair + number)) {
            continue;
        }
        // Cheap products sell in larger numbers.
        let demand = 60_000_000 / (products[product].price + 9_000);
        let units = demand * country.size / 100 * drawn_between(SEEDS.sales + 2 * number, 40, 160) / 100;
        let growth = drawn_between(SEEDS.sales + 2 * number + 1, -6, 14);
        pairs.push(Pair { country, product, units, growth });
    }
    pairs
}

impl FactRows {
    /// Units, revenue and cost of a pair, in hundredths.
    fn amounts(&self, pair: &Pair, month: usize, version: usize, group: u64) -> [i64; 3] {
        let seed = |draw: u64| SEEDS.month + 4 * group + draw;
        let years = (month / 12) as i64;
        let trend = 100 + pair.growth * years;
        // A budget is smooth and hopes for a little more than comes.
        let noise = if version == 0 { drawn_between(seed(0), 70, 132) } else { drawn_between(seed(0), 97, 111) };
        let average = pair.units * SEASON[month % 12] / 100 * trend / 100;
        let units = (average * noise / 100 / 100).max(1);
        let price = self.products[pair.product].price * (100 + 2 * years) / 100;
        let discount = if version == 0 { drawn_between(seed(1), 84, 100) } else { 93 };
        let unit_cost = price * self.costs[pair.product] / 100;
        let drift = if version == 0 { drawn_between(seed(2), 96, 106) } else { 100 };
        [units * 100, units * price * discount / 100, units * unit_cost * drift / 100]
    }
}

impl Iterator for FactRows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rows == ROWS {
            return None;
        }
        let mut months = Date32Builder::new();
        let [mut regions, mut skus, mut versions, mut accounts] = std::array::from_fn(|_| StringBuilder::new());
        let mut amounts = Decimal128Builder::new().with_data_type(DataType::Decimal128(AMOUNT.0, AMOUNT.1));
        let mut rows = 0;
        while rows + ACCOUNTS.len() <= BATCH_ROWS && self.rows < ROWS {
            let group = self.next;
            self.next += 1;
            if !self.selection.takes(drawn(SEEDS.filled + group)) {
                continue;
            }
            let (outer, pair) = (group / SOLD_PAIRS, &self.pairs[(group % SOLD_PAIRS) as usize]);
            let (month, version) = ((outer / 2) as usize, (outer % 2) as usize);
            // The last group has fewer accounts: 2,000,000 is no multiple of three.
            let left = (ROWS - self.rows).min(ACCOUNTS.len() as u64) as usize;
            let values = self.amounts(pair, month, version, group);
            for (account, amount) in ACCOUNTS.iter().zip(values).take(left) {
                months.append_value(FIRST_DAYS[month]);
                regions.append_value(pair.country.id);
                skus.append_value(&self.products[pair.product].sku);
                versions.append_value(VERSIONS[version]);
                accounts.append_value(account);
                amounts.append_value(amount.into());
            }
            rows += left;
            self.rows += left as u64;
        }
        let columns: Vec<arrow::array::ArrayRef> = vec![
            Arc::new(months.finish()),
            Arc::new(regions.finish()),
            Arc::new(skus.finish()),
            Arc::new(versions.finish()),
            Arc::new(accounts.finish()),
            Arc::new(amounts.finish()),
        ];
        Some(RecordBatch::try_new(self.schema.clone(), columns))
    }
}

impl RecordBatchReader for FactRows {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
