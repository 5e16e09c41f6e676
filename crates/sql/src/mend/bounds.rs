//! Filters of scans whose pruning by bounds drops no NaN.
//!
//! Bounds of floats in files are those of what is not NaN, and DataFusion takes them for bounds of all: `x > 5` drops a
//! row group whose largest number is 4 and that has NaNs. Bloom filters tell zeros of both signs apart. A scan here
//! keeps a filter on floats if no NaN passes it, and what it promised to filter is filtered above it, where NaNs are
//! one.
//!
//! Unnecessary once DataFusion leaves the upper bounds of floats unknown.

use std::collections::BTreeSet;

use datafusion::common::DFSchema;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{
    Between, BinaryExpr, Expr, Operator, TableProviderFilterPushDown, TableScan, TableScanBuilder,
};

use super::canonical::{is_arithmetic, is_float, makes_nan};
use crate::walk::Walk;

/// The scan with filters that drop no NaN, and what it promised to filter; none where its filters may stay.
pub(super) fn without_nans(scan: &TableScan) -> Result<Option<(TableScan, Option<Expr>)>> {
    let table = scan.source.schema();
    let schema = DFSchema::try_from_qualified_schema(scan.table_name.clone(), &table)?;
    let is_of_floats = scan.filters.iter().map(|filter| is_of_floats(filter, &schema)).collect::<Result<Vec<_>>>()?;
    if !is_of_floats.contains(&true) {
        return Ok(None);
    }
    let support = scan.source.supports_filters_pushdown(&scan.filters.iter().collect::<Vec<_>>())?;
    let is_promised = |filter: usize| is_of_floats[filter] && support[filter] == TableProviderFilterPushDown::Exact;
    let promised = scan.filters.iter().enumerate().filter(|(filter, _)| is_promised(*filter));
    let promised = conjunction(promised.map(|(_, filter)| filter.clone()));
    let filters = prunable(&scan.filters, &schema)?;
    let mut projection = scan.projection.clone();
    if let (Some(projection), Some(promised)) = (&mut projection, &promised) {
        let read: BTreeSet<usize> =
            promised.column_refs().into_iter().map(|column| schema.index_of_column(column)).collect::<Result<_>>()?;
        let missing: Vec<usize> = read.into_iter().filter(|column| !projection.contains(column)).collect();
        projection.extend(missing);
    }
    // A LIMIT above the scan applies in any case; the scan may leave it out.
    let fetch = scan.fetch.filter(|_| promised.is_none());
    let mended = TableScanBuilder::new(scan.table_name.clone(), scan.source.clone())
        .with_projection(projection)
        .with_filters(filters)
        .with_fetch(fetch)
        .with_statistics_requests(scan.statistics_requests.clone());
    Ok(Some((mended.build()?, promised)))
}

/// Whether a filter computes with floats, or reads some.
fn is_of_floats(filter: &Expr, schema: &DFSchema) -> Result<bool> {
    filter.exists(|expr| {
        Ok(match expr {
            Expr::Column(_) | Expr::ScalarFunction(_) => is_float(expr, schema),
            Expr::BinaryExpr(binary) => is_arithmetic(binary.op) && is_float(expr, schema),
            Expr::Cast(cast) => makes_nan(&cast.expr, cast.field.data_type(), schema),
            Expr::TryCast(cast) => makes_nan(&cast.expr, cast.field.data_type(), schema),
            _ => false,
        })
    })
}

/// What may prune of filters that all have to hold.
fn prunable(filters: &[Expr], schema: &DFSchema) -> Result<Vec<Expr>> {
    let parts: Vec<&Expr> = filters.iter().flat_map(split_conjunction).collect();
    // No NaN is below a bound, so that a lower bound of the same column may prune too.
    let bounded = parts.iter().filter_map(|part| Comparison::of(part)).filter(Comparison::drops_nan);
    let bounded: Vec<&Expr> = bounded.map(|comparison| comparison.value).collect();
    let mut kept = Vec::new();
    for part in parts {
        let is_lower = |comparison: Comparison| {
            matches!(comparison.op, Operator::Gt | Operator::GtEq) && bounded.contains(&comparison.value)
        };
        match Comparison::of(part).is_some_and(is_lower) {
            true => kept.push(part.clone()),
            false => kept.extend(relaxed(part, schema)?),
        }
    }
    Ok(kept)
}

/// The filter, or one that lets more rows pass, such that bounds of what is not NaN tell whether any row does.
fn relaxed(filter: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    if !is_of_floats(filter, schema)? {
        return Ok(Some(filter.clone()));
    }
    let or_nan = |value: &Expr, nan: ScalarValue| {
        // A NaN among bounds says that they are none: some writers take the first value for one.
        Some(filter.clone().or(value.clone().gt_eq(Expr::Literal(nan, None))))
    };
    Ok(match filter {
        Expr::BinaryExpr(BinaryExpr { op: Operator::And, .. }) => {
            let parts: Vec<Expr> = split_conjunction(filter).into_iter().cloned().collect();
            conjunction(prunable(&parts, schema)?)
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            relaxed(left, schema)?.zip(relaxed(right, schema)?).map(|(left, right)| left.or(right))
        }
        Expr::IsNull(inner) | Expr::IsNotNull(inner) if is_read(inner) => Some(filter.clone()),
        Expr::Between(Between { expr, negated: false, low, high }) if is_read(expr) => {
            match (low.as_ref(), high.as_ref()) {
                (Expr::Literal(_, _), Expr::Literal(high, _)) => nan_of(high).and_then(|nan| or_nan(expr, nan)),
                _ => None,
            }
        }
        Expr::InList(InList { expr, list, negated: false }) if is_read(expr) => {
            let values = list.iter().map(|item| match item {
                Expr::Literal(value, _) if !is_zero(value) => nan_of(value),
                _ => None,
            });
            let nans: Option<Vec<ScalarValue>> = values.collect();
            nans.and_then(|nans| nans.into_iter().next()).and_then(|nan| or_nan(expr, nan))
        }
        filter => match Comparison::of(filter).filter(Comparison::drops_nan) {
            // Bloom filters tell zeros of both signs apart.
            Some(Comparison { op: Operator::Eq, constant, .. }) if is_zero(constant) => None,
            Some(Comparison { value, constant, .. }) => nan_of(constant).and_then(|nan| or_nan(value, nan)),
            None => None,
        },
    })
}

/// A column compared with a constant.
struct Comparison<'a> {
    value: &'a Expr,
    op: Operator,
    constant: &'a ScalarValue,
}

impl<'a> Comparison<'a> {
    fn of(filter: &'a Expr) -> Option<Comparison<'a>> {
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = filter else { return None };
        match (left.as_ref(), right.as_ref()) {
            (value, Expr::Literal(constant, _)) if is_read(value) => Some(Comparison { value, op: *op, constant }),
            (Expr::Literal(constant, _), value) if is_read(value) => {
                Some(Comparison { value, op: op.swap()?, constant })
            }
            _ => None,
        }
    }

    /// Whether it is false for a NaN.
    fn drops_nan(&self) -> bool {
        matches!(self.op, Operator::Lt | Operator::LtEq | Operator::Eq) && nan_of(self.constant).is_some()
    }
}

/// Whether an expression is a column, or one as a float of another width.
fn is_read(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) => true,
        Expr::Cast(cast) => cast.field.data_type().is_floating() && matches!(*cast.expr, Expr::Column(_)),
        _ => false,
    }
}

/// The NaN of a constant's type; none if the constant is one, NULL, or no float.
fn nan_of(constant: &ScalarValue) -> Option<ScalarValue> {
    match constant {
        ScalarValue::Float32(Some(value)) if !value.is_nan() => Some(ScalarValue::Float32(Some(f32::NAN))),
        ScalarValue::Float64(Some(value)) if !value.is_nan() => Some(ScalarValue::Float64(Some(f64::NAN))),
        _ => None,
    }
}

fn is_zero(constant: &ScalarValue) -> bool {
    match constant {
        ScalarValue::Float32(Some(value)) => *value == 0.0,
        ScalarValue::Float64(Some(value)) => *value == 0.0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::prelude::{col, lit};

    use super::*;

    #[test]
    fn what_a_nan_passes_does_not_prune() {
        let schema = DFSchema::try_from(Schema::new(vec![
            Field::new("x", DataType::Float64, true),
            Field::new("n", DataType::Int64, true),
        ]));
        let schema = schema.unwrap();
        let kept = |filters: &[Expr]| {
            let kept = prunable(filters, &schema).unwrap();
            kept.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ; ")
        };
        let (x, n) = (col("x"), col("n"));
        let below = "x < Float64(5) OR x >= Float64(NaN)";
        assert_eq!(kept(&[x.clone().lt(lit(5.0))]), below);
        assert_eq!(kept(&[lit(5.0).gt(x.clone()), n.clone().eq(lit(1i64))]).split(" ; ").count(), 2);
        assert_eq!(kept(&[x.clone().gt(lit(5.0))]), "");
        assert_eq!(kept(&[x.clone().gt(lit(1.0)).and(x.clone().lt(lit(5.0)))]), format!("x > Float64(1) ; {below}"));
        assert_eq!(kept(&[x.clone().gt(lit(1.0)).or(n.clone().eq(lit(1i64)))]), "");
        assert_eq!(kept(&[x.clone().lt(lit(f64::NAN))]), "");
        assert_eq!(kept(&[x.clone().eq(lit(0.0))]), "");
        assert_eq!(kept(&[x.clone().not_eq(lit(5.0))]), "");
        assert_eq!(kept(&[!x.clone().lt(lit(5.0))]), "");
        assert_eq!(kept(&[(x.clone() + lit(1.0)).lt(lit(5.0))]), "");
        assert_eq!(kept(&[x.clone().is_null()]), "x IS NULL");
        assert_eq!(kept(&[x.clone().in_list(vec![lit(5.0), lit(f64::NAN)], false)]), "");
        assert_eq!(kept(&[n.clone().gt(lit(5i64))]), "n > Int64(5)");
    }
}
