//! The lineorder table: orders of one to seven lines each. The draws of a line belong to one stream a column, seven
//! draws an order whether they are used or not, so any order can be reached directly. Lines of one order stay in one
//! batch.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array, StringBuilder};
use rayon::prelude::*;

use super::dates::DATE_KEYS;
use super::dists::{PRIORITIES, SHIP_MODES};
use super::scale::Scale;
use crate::random::{Stream, power};

/// Most lines of an order.
pub(super) const MAX_LINES: u64 = 7;

/// Orders are placed on the first this many days, so that even the latest can still be shipped and received (121
/// and 30 days in TPC-H) within the calendar.
const ORDER_DAYS: usize = 2557 - 151;

/// The seed of the stream of lines per order.
const LINES_SEED: u64 = 1_434_868_289;

/// Factors that move a line's stream over the lines an order does not have.
const UNUSED: [u64; 8] = [power(7), power(6), power(5), power(4), power(3), power(2), power(1), power(0)];

/// The key of the `number`th order, counted from 1: eight keys of every 32 are used, as in TPC-H.
pub(super) fn order_key(number: u64) -> u64 {
    ((number >> 3) << 5) | (number & 7)
}

/// The retail price of a part, in cents.
fn retail_price(part: i64) -> i64 {
    90_000 + (part / 10) % 20_001 + (part % 1_000) * 100
}

/// Counts the lines of `orders` orders, each of which draws its own number; the stream has made `before` draws before
/// the first order. TPC-H has the same stream, with none before.
pub(crate) fn order_lines(before: u64, orders: u64) -> u64 {
    const CHUNK: u64 = 1 << 18;
    let lines = |range: Range<u64>| -> u64 {
        let mut stream = Stream::at(LINES_SEED, before + range.start);
        range.map(|_| stream.draw(1, MAX_LINES as i64) as u64).sum()
    };
    let chunk = |number: u64| lines(number * CHUNK..((number + 1) * CHUNK).min(orders));
    (0..orders.div_ceil(CHUNK)).into_par_iter().map(chunk).sum()
}

/// Orders in sequence, from any order on.
pub(super) struct Lineorders {
    next: u64,
    end: u64,
    customers: i64,
    suppliers: i64,
    parts: i64,
    wide_keys: bool,
    order: OrderStreams,
    line: LineStreams,
}

/// One draw an order each.
struct OrderStreams {
    date: Stream,
    customer: Stream,
    priority: Stream,
    lines: Stream,
}

/// Seven draws an order each.
struct LineStreams {
    part: Stream,
    supplier: Stream,
    quantity: Stream,
    discount: Stream,
    tax: Stream,
    commit: Stream,
    ship_mode: Stream,
}

impl LineStreams {
    fn skip(&mut self, factor: u64) {
        self.part.skip(factor);
        self.supplier.skip(factor);
        self.quantity.skip(factor);
        self.discount.skip(factor);
        self.tax.skip(factor);
        self.commit.skip(factor);
        self.ship_mode.skip(factor);
    }
}

impl Lineorders {
    /// The orders of `range`, counted from 0.
    pub(super) fn new(scale: Scale, range: Range<u64>) -> Self {
        let order = scale.days_before_orders() + range.start;
        let line = MAX_LINES * range.start;
        Self {
            next: range.start,
            end: range.end,
            customers: scale.customers() as i64,
            suppliers: scale.suppliers() as i64,
            parts: scale.largest_ordered_part() as i64,
            wide_keys: wide_keys(scale),
            order: OrderStreams {
                date: Stream::at(1_066_728_069, order),
                customer: Stream::at(851_767_375, order),
                priority: Stream::at(591_449_447, order),
                lines: Stream::at(LINES_SEED, order),
            },
            line: LineStreams {
                part: Stream::at(1_808_217_256, line),
                supplier: Stream::at(2_095_021_727, line),
                quantity: Stream::at(209_208_115, line),
                discount: Stream::at(554_590_007, line),
                tax: Stream::at(721_958_466, line),
                commit: Stream::at(904_914_315, line),
                ship_mode: Stream::at(675_466_456, line),
            },
        }
    }

    /// The columns of up to `rows` further lines; `None` at the end.
    pub(super) fn columns(&mut self, rows: usize) -> Option<Vec<ArrayRef>> {
        if self.next == self.end {
            return None;
        }
        let rows = rows.max(MAX_LINES as usize);
        // A short range asks for no more room than its orders can fill.
        let mut columns = Columns::with_capacity(rows.min((self.end - self.next) as usize * MAX_LINES as usize));
        while self.next < self.end && columns.key.len() + MAX_LINES as usize <= rows {
            self.next += 1;
            self.append_order(&mut columns);
        }
        Some(columns.finish(self.wide_keys))
    }

    fn append_order(&mut self, to: &mut Columns) {
        let key = order_key(self.next) as i64;
        let day = self.order.date.index(ORDER_DAYS);
        let customer = buyer(self.order.customer.draw(1, self.customers), self.customers);
        let priority = PRIORITIES[self.order.priority.index(PRIORITIES.len())];
        let lines = self.order.lines.draw(1, MAX_LINES as i64) as i32;

        let mut total = 0;
        for number in 1..=lines {
            let part = self.line.part.draw(1, self.parts);
            let quantity = self.line.quantity.draw(1, 50);
            let discount = self.line.discount.draw(0, 10);
            let tax = self.line.tax.draw(0, 8);
            let price = retail_price(part);
            let extended = price * quantity;
            let revenue = extended * (100 - discount) / 100;
            total += revenue * (100 + tax) / 100;

            to.key.push(key);
            to.number.push(number);
            to.customer.push(customer as i32);
            to.part.push(part as i32);
            to.supplier.push(self.line.supplier.draw(1, self.suppliers) as i32);
            to.date.push(DATE_KEYS[day]);
            to.priority.append_value(priority);
            to.quantity.push(quantity as i32);
            to.extended.push(extended as i32);
            to.discount.push(discount as i32);
            to.revenue.push(revenue as i32);
            to.cost.push((6 * price / 10) as i32);
            to.tax.push(tax as i32);
            to.commit.push(DATE_KEYS[day + self.line.commit.draw(30, 90) as usize]);
            to.ship_mode.append_value(SHIP_MODES[self.line.ship_mode.index(SHIP_MODES.len())]);
        }
        to.total.resize(to.key.len(), total as i32);
        self.line.skip(UNUSED[lines as usize]);
    }
}

/// The customer who placed an order: every third key never does, so a drawn one moves to a neighbour.
fn buyer(drawn: i64, customers: i64) -> i64 {
    match drawn % 3 {
        0 if drawn < customers => drawn + 1,
        0 => drawn - 1,
        _ => drawn,
    }
}

/// Whether the largest order key needs 64 bits.
pub(super) fn wide_keys(scale: Scale) -> bool {
    order_key(scale.orders()) > i32::MAX as u64
}

/// The columns being built. Amounts fit 32 bits at every scale: an extended price is at most 50 times 209,901 cents
/// and an order's total at most seven of those with 8 % tax.
struct Columns {
    key: Vec<i64>,
    number: Vec<i32>,
    customer: Vec<i32>,
    part: Vec<i32>,
    supplier: Vec<i32>,
    date: Vec<i32>,
    priority: StringBuilder,
    quantity: Vec<i32>,
    extended: Vec<i32>,
    total: Vec<i32>,
    discount: Vec<i32>,
    revenue: Vec<i32>,
    cost: Vec<i32>,
    tax: Vec<i32>,
    commit: Vec<i32>,
    ship_mode: StringBuilder,
}

impl Columns {
    fn with_capacity(rows: usize) -> Self {
        let numbers = || Vec::with_capacity(rows);
        Self {
            key: Vec::with_capacity(rows),
            number: numbers(),
            customer: numbers(),
            part: numbers(),
            supplier: numbers(),
            date: numbers(),
            priority: StringBuilder::with_capacity(rows, rows * 9),
            quantity: numbers(),
            extended: numbers(),
            total: numbers(),
            discount: numbers(),
            revenue: numbers(),
            cost: numbers(),
            tax: numbers(),
            commit: numbers(),
            ship_mode: StringBuilder::with_capacity(rows, rows * 5),
        }
    }

    fn finish(mut self, wide_keys: bool) -> Vec<ArrayRef> {
        let ints = |values: Vec<i32>| -> ArrayRef { Arc::new(Int32Array::from(values)) };
        let ship_priority = vec![0; self.key.len()];
        let key: ArrayRef = if wide_keys {
            Arc::new(Int64Array::from(self.key))
        } else {
            Arc::new(Int32Array::from_iter_values(self.key.into_iter().map(|key| key as i32)))
        };
        vec![
            key,
            ints(self.number),
            ints(self.customer),
            ints(self.part),
            ints(self.supplier),
            ints(self.date),
            Arc::new(self.priority.finish()),
            ints(ship_priority),
            ints(self.quantity),
            ints(self.extended),
            ints(self.total),
            ints(self.discount),
            ints(self.revenue),
            ints(self.cost),
            ints(self.tax),
            ints(self.commit),
            Arc::new(self.ship_mode.finish()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_keys_leave_gaps() {
        assert_eq!([1, 7, 8, 15, 16].map(order_key), [1, 7, 32, 39, 64]);
    }

    #[test]
    fn keys_widen_only_when_they_must() {
        let wide = |sf| wide_keys(Scale::new(sf).expect("a sound scale"));
        assert_eq!([1.0, 100.0, 357.0, 358.0, 1000.0].map(wide), [false, false, false, true, true]);
    }

    #[test]
    fn every_third_customer_buys_nothing() {
        let buyers: Vec<i64> = (1..=6).map(|drawn| buyer(drawn, 6)).collect();
        assert_eq!(buyers, [1, 2, 4, 4, 5, 5]);
    }
}
