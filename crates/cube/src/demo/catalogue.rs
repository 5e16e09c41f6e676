//! Regions and products of the demo.

use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, RecordBatch, StringArray};

use super::drawn_between;

/// A group of countries and its countries: id, name, size in percent of the largest.
type Region = (&'static str, &'static str, &'static [(&'static str, &'static str, i64)]);

const REGIONS: [Region; 4] = [
    (
        "EU",
        "Europe",
        &[
            ("FR", "France", 62),
            ("DE", "Germany", 84),
            ("GB", "United Kingdom", 66),
            ("IT", "Italy", 48),
            ("ES", "Spain", 41),
            ("NL", "Netherlands", 33),
            ("CH", "Switzerland", 24),
            ("AT", "Austria", 18),
            ("BE", "Belgium", 19),
            ("SE", "Sweden", 21),
            ("DK", "Denmark", 15),
            ("NO", "Norway", 14),
            ("FI", "Finland", 11),
            ("PL", "Poland", 27),
            ("PT", "Portugal", 10),
            ("IE", "Ireland", 9),
        ],
    ),
    (
        "AM",
        "Americas",
        &[
            ("US", "United States", 100),
            ("CA", "Canada", 38),
            ("MX", "Mexico", 29),
            ("BR", "Brazil", 35),
            ("AR", "Argentina", 12),
            ("CL", "Chile", 9),
            ("CO", "Colombia", 10),
            ("PE", "Peru", 7),
        ],
    ),
    (
        "AP",
        "Asia Pacific",
        &[
            ("JP", "Japan", 58),
            ("CN", "China", 77),
            ("IN", "India", 44),
            ("KR", "South Korea", 36),
            ("AU", "Australia", 32),
            ("NZ", "New Zealand", 8),
            ("SG", "Singapore", 13),
            ("TW", "Taiwan", 17),
            ("TH", "Thailand", 14),
            ("ID", "Indonesia", 19),
            ("MY", "Malaysia", 11),
            ("VN", "Vietnam", 12),
        ],
    ),
    (
        "MA",
        "Middle East and Africa",
        &[
            ("AE", "United Arab Emirates", 15),
            ("SA", "Saudi Arabia", 14),
            ("IL", "Israel", 9),
            ("TR", "Turkey", 20),
            ("ZA", "South Africa", 13),
            ("EG", "Egypt", 8),
        ],
    ),
];

/// Groups of products: name, name of one product, prefix of numbers, lowest and highest price in cents.
const GROUPS: [(&str, &str, &str, i64, i64); 12] = [
    ("Road bikes", "road bike", "RB", 69_900, 349_900),
    ("Mountain bikes", "mountain bike", "MB", 59_900, 299_900),
    ("City bikes", "city bike", "CB", 39_900, 129_900),
    ("Electric bikes", "electric bike", "EB", 159_900, 499_900),
    ("Frames", "frame", "FR", 24_900, 149_900),
    ("Wheels", "wheel", "WH", 6_900, 79_900),
    ("Tyres", "tyre", "TY", 1_490, 6_990),
    ("Saddles", "saddle", "SD", 1_990, 16_990),
    ("Lights", "light", "LI", 990, 12_990),
    ("Helmets", "helmet", "HE", 2_990, 24_990),
    ("Clothing", "jersey", "CL", 1_490, 19_990),
    ("Tools", "tool", "TO", 590, 9_990),
];

/// Models within a group.
const MODELS: [&str; 6] = ["Alba", "Brio", "Corsa", "Delta", "Esprit", "Forza"];
/// Editions of a model.
const EDITIONS: [&str; 5] = ["Basic", "Plus", "Pro", "Team", "Limited"];
/// Seed of prices.
const PRICE_SEED: u64 = 1 << 60;

/// A country that products are sold in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Country {
    pub(super) id: &'static str,
    /// Percent of the largest market.
    pub(super) size: i64,
}

/// A product.
#[derive(Debug, Clone)]
pub(super) struct Product {
    pub(super) sku: String,
    group: &'static str,
    name: String,
    /// In cents.
    pub(super) price: i64,
}

/// All countries, in the order of [`regions()`].
pub(super) fn country_list() -> Vec<Country> {
    REGIONS.iter().flat_map(|region| region.2).map(|(id, _, size)| Country { id, size: *size }).collect()
}

/// All products, in the order of [`products()`].
pub(super) fn product_list() -> Vec<Product> {
    let mut products = Vec::with_capacity(GROUPS.len() * MODELS.len() * EDITIONS.len());
    for (group, kind, prefix, lowest, highest) in GROUPS {
        for (at, model) in MODELS.iter().enumerate() {
            for (edition_at, edition) in EDITIONS.iter().enumerate() {
                let seed = PRICE_SEED + products.len() as u64;
                let price = drawn_between(seed, lowest, highest) / 100 * 100 + 90;
                products.push(Product {
                    sku: format!("{prefix}-{}{}", at + 1, edition_at + 1),
                    group,
                    name: format!("{model} {edition} {kind}"),
                    price,
                });
            }
        }
    }
    products
}

/// The table of regions: id, parent and name of World, four groups of countries and 42 countries.
pub fn regions() -> RecordBatch {
    let mut rows = vec![("W", None, "World")];
    for (id, name, countries) in REGIONS {
        rows.push((id, Some("W"), name));
        rows.extend(countries.iter().map(|(country, name, _)| (*country, Some(id), *name)));
    }
    let ids: StringArray = rows.iter().map(|row| Some(row.0)).collect();
    let parents: StringArray = rows.iter().map(|row| row.1).collect();
    let names: StringArray = rows.iter().map(|row| Some(row.2)).collect();
    let columns: [(&str, ArrayRef); 3] =
        [("id", Arc::new(ids)), ("parent_id", Arc::new(parents)), ("name", Arc::new(names))];
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

/// The table of products: group, number (`sku`), name and list price of 360 products.
pub fn products() -> RecordBatch {
    let products = product_list();
    let texts = |text: fn(&Product) -> &str| -> ArrayRef {
        Arc::new(products.iter().map(|product| Some(text(product))).collect::<StringArray>())
    };
    let prices: Decimal128Array = products.iter().map(|product| Some(i128::from(product.price))).collect();
    let prices = prices.with_precision_and_scale(8, 2).expect("prices below a million");
    let columns: [(&str, ArrayRef); 4] = [
        ("group", texts(|product| product.group)),
        ("sku", texts(|product| &product.sku)),
        ("name", texts(|product| &product.name)),
        ("price", Arc::new(prices)),
    ];
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}
