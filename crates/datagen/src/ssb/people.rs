//! The customer and supplier tables: keys, names, addresses, cities and telephone numbers. Both draw telephone
//! numbers and cities from the same two streams, suppliers first, so customers start where the suppliers end.

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, StringBuilder};

use super::dists::{ADDRESS_CHARACTERS, NATIONS, REGIONS, SEGMENTS};
use super::scale::Scale;
use crate::random::Stream;

/// Draws an address may take: one for its length and one for each five of up to 40 characters. SSB shortened the
/// addresses to 24 characters and kept the number.
const ADDRESS_DRAWS: u64 = 9;
/// Draws of a telephone number: its three groups.
const PHONE_DRAWS: u64 = 3;

/// Suppliers or customers in sequence, from any row on.
pub(super) struct People {
    next: u64,
    end: u64,
    title: &'static str,
    address_seed: u64,
    nation: Stream,
    city: Stream,
    phone: Stream,
    /// Customers have a market segment, suppliers do not.
    segment: Option<Stream>,
}

impl People {
    /// The suppliers of `range`, counted from 0.
    pub(super) fn suppliers(range: Range<u64>) -> Self {
        Self::new("Supplier", range, 0, 706_178_559, 110_356_601, None)
    }

    /// The customers of `range`, counted from 0.
    pub(super) fn customers(scale: Scale, range: Range<u64>) -> Self {
        let segment = Stream::at(1_140_279_430, range.start);
        Self::new("Customer", range, scale.suppliers(), 881_155_353, 1_489_529_863, Some(segment))
    }

    fn new(
        title: &'static str,
        range: Range<u64>,
        others_before: u64,
        address_seed: u64,
        nation_seed: u64,
        segment: Option<Stream>,
    ) -> Self {
        let before = others_before + range.start;
        Self {
            next: range.start,
            end: range.end,
            title,
            address_seed,
            nation: Stream::at(nation_seed, range.start),
            city: Stream::at(1_495_190_827, before),
            phone: Stream::at(1_521_138_112, PHONE_DRAWS * before),
            segment,
        }
    }

    /// The columns of up to `rows` further rows; `None` at the end.
    pub(super) fn columns(&mut self, rows: usize) -> Option<Vec<ArrayRef>> {
        if self.next == self.end {
            return None;
        }
        let first = self.next;
        let last = self.end.min(first + rows as u64);
        self.next = last;

        let rows = (last - first) as usize;
        let builder = |bytes: usize| StringBuilder::with_capacity(rows, rows * bytes);
        let (mut names, mut addresses, mut cities) = (builder(18), builder(16), builder(10));
        let (mut nations, mut regions, mut phones) = (builder(9), builder(8), builder(15));
        let mut segments = builder(10);
        let mut text = String::with_capacity(32);
        for number in first..last {
            append(&mut names, &mut text, |to| write!(to, "{}#{:09}", self.title, number + 1));
            // An address rarely uses all its draws: each starts from where its row's draws begin.
            let mut draws = Stream::at(self.address_seed, ADDRESS_DRAWS * number);
            append(&mut addresses, &mut text, |to| address(&mut draws, to));

            let nation = self.nation.index(NATIONS.len());
            let (name, region) = NATIONS[nation];
            let city = self.city.index(10);
            append(&mut cities, &mut text, |to| write!(to, "{:9.9}{city}", name));
            nations.append_value(name);
            regions.append_value(REGIONS[region]);

            let mut group = |low, high| self.phone.draw(low, high);
            let (area, exchange, line) = (group(100, 999), group(100, 999), group(1000, 9999));
            append(&mut phones, &mut text, |to| write!(to, "{}-{area}-{exchange}-{line}", 10 + nation));
            if let Some(segment) = &mut self.segment {
                segments.append_value(SEGMENTS[segment.index(SEGMENTS.len())]);
            }
        }

        let keys = Int32Array::from_iter_values((first..last).map(|number| number as i32 + 1));
        let mut columns: Vec<ArrayRef> = vec![Arc::new(keys)];
        for mut strings in [names, addresses, cities, nations, regions, phones] {
            columns.push(Arc::new(strings.finish()));
        }
        if self.segment.is_some() {
            columns.push(Arc::new(segments.finish()));
        }
        Some(columns)
    }
}

/// Appends what `fill` writes; `text` is room to write in that is kept between rows.
pub(super) fn append(to: &mut StringBuilder, text: &mut String, fill: impl FnOnce(&mut String) -> std::fmt::Result) {
    text.clear();
    // Writing to a String does not fail.
    fill(text).expect("a String takes all that is written");
    to.append_value(&*text);
}

/// An address: 6 to 24 characters, five to a draw.
fn address(stream: &mut Stream, to: &mut String) -> std::fmt::Result {
    let mut bits = 0;
    for i in 0..stream.draw(6, 24) {
        if i % 5 == 0 {
            bits = stream.draw(0, i64::from(i32::MAX));
        }
        to.push(char::from(ADDRESS_CHARACTERS[(bits & 63) as usize]));
        bits >>= 6;
    }
    Ok(())
}
