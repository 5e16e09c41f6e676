//! TABLESAMPLE: each row by chance, or a number of rows.
//!
//! BERNOULLI takes each row with the same chance, and so does SYSTEM here. With REPEATABLE the chance is a mixed number
//! of the row in the order of all columns, the same each time over the same rows. A number of rows are those that come
//! first in the order of their chances.

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    Expr, TableFactor, TableSample, TableSampleKind, TableSampleMethod, TableSampleQuantity, TableSampleUnit, Value,
    With,
};

use super::{alias, columns_of_factor, list, name_of, query_of, subquery};
use crate::error::{Result, SqlError};

/// The column of a row's chance.
const CHANCE: &str = "\u{2063}chance";
/// Chances are below this.
const CHANCES: u64 = 1 << 32;
/// A factor that mixes the bits of 32.
const FACTOR: u64 = 73_244_475;

/// The sample of a table.
///
/// # Errors
/// [`SqlError::Unsupported`] for buckets and offsets, [`SqlError::Planning`] for a share that is none.
pub(super) async fn of_table(
    state: &SessionState,
    table: TableFactor,
    sample: TableSampleKind,
    scopes: &[With],
) -> Result<TableFactor> {
    let (TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample)) = sample;
    let TableSample { modifier: _, name, quantity, seed, bucket, offset } = *sample;
    let Some(TableSampleQuantity { parenthesized: _, value, unit }) = quantity.filter(|_| bucket.is_none()) else {
        return Err(SqlError::Unsupported("BUCKET of TABLESAMPLE".into()));
    };
    if offset.is_some() {
        return Err(SqlError::Unsupported("OFFSET of TABLESAMPLE".into()));
    }
    // A number alone is one of rows in DuckDB, and a share behind a method.
    let is_share = match unit {
        Some(unit) => unit == TableSampleUnit::Percent,
        None => matches!(name, Some(TableSampleMethod::Bernoulli | TableSampleMethod::System)),
    };
    let Some(number) = number(&value) else {
        return Err(SqlError::Planning(format!("TABLESAMPLE takes a number, not {value}")));
    };
    let number = match is_share {
        true if (0.0..=100.0).contains(&number) => number.to_string(),
        true => return Err(SqlError::Planning(format!("TABLESAMPLE of {value} percent; a share is 0 to 100"))),
        false if number >= 0.0 && number.fract() == 0.0 => format!("{number:.0}"),
        false => return Err(SqlError::Planning(format!("TABLESAMPLE of {value} rows"))),
    };
    let own = name_of(&table).map(|name| alias(&name));
    let text = match seed {
        None if is_share => format!("SELECT * FROM {table} WHERE random() * 100 < {number}"),
        // A sort of rows without columns would fail where nothing reads them.
        None => {
            let chance = list([CHANCE]);
            format!(
                "SELECT * EXCLUDE ({chance}) FROM (SELECT *, random() AS {chance} FROM {table}) AS sampled \
                 ORDER BY {chance} LIMIT {number}"
            )
        }
        Some(seed) => {
            let Some(seed) = self::number(&Expr::Value(seed.value.clone())).filter(|seed| seed.fract() == 0.0) else {
                return Err(SqlError::Planning(format!("REPEATABLE takes an integer, not {}", seed.value)));
            };
            let seed = seed.rem_euclid(CHANCES as f64);
            let columns = columns_of_factor(state, &table, scopes).await?;
            let names = list(columns.iter().map(|column| column.name.as_str()));
            let chance = list([CHANCE]);
            let mut text = format!(
                "SELECT {names}, (CAST(row_number() OVER (ORDER BY {names}) AS BIGINT) * {FACTOR} + {seed:.0}) % \
                 {CHANCES} AS {chance} FROM {table}"
            );
            for _ in 0..2 {
                let high = format!("({chance} >> 16)");
                text = format!(
                    "SELECT {names}, (({chance} | {high}) - ({chance} & {high})) * {FACTOR} % {CHANCES} AS {chance} \
                     FROM ({text}) AS sampled"
                );
            }
            match is_share {
                true => {
                    format!("SELECT {names} FROM ({text}) AS sampled WHERE {chance} * 100.0 < {number} * {CHANCES}")
                }
                false => format!("SELECT {names} FROM ({text}) AS sampled ORDER BY {chance} LIMIT {number}"),
            }
        }
    };
    Ok(subquery(false, query_of(&text)?, own))
}

fn number(expr: &Expr) -> Option<f64> {
    let Expr::Value(value) = expr else { return None };
    let Value::Number(number, _) = &value.value else { return None };
    number.to_string().parse().ok().filter(|number: &f64| number.is_finite())
}
