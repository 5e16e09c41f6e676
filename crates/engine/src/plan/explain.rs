//! Fragments in words, for EXPLAIN: expressions with the names of their columns, steps with the tables they probe,
//! sinks.

use std::fmt::Write;

use arrow::datatypes::{DataType, Decimal128Type, DecimalType};
use arrow::temporal_conversions::date32_to_datetime;

use crate::ir::{AggregateCall, AggregateKind, BinaryOp, DatePart, Expr, Fragment, JoinKind, Literal, Sink, Step};
use crate::ir::{OrderKey, Pipeline, Probe, Source, TopK, Ty, UnaryOp, WindowCall, WindowFunction};
use crate::plan::order::{Item, Planned};

/// What stands in a register: its text and, where it is known, its Arrow type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Named {
    pub(crate) text: String,
    pub(crate) data_type: Option<DataType>,
}

/// The steps and the sink of a pipeline.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PipelineWords {
    /// What it leaves: a table, groups or the result.
    pub(crate) name: String,
    pub(crate) steps: Vec<StepWords>,
    pub(crate) sink: String,
}

/// A step of a pipeline.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StepWords {
    pub(crate) text: String,
    /// The pipeline whose table it probes.
    pub(crate) build: Option<usize>,
    /// Whether a row goes on once for each of its matches.
    pub(crate) joins: bool,
    /// Estimated share of rows that go on at least once; none before binding.
    pub(crate) share: Option<f64>,
}

/// All pipelines in words. `columns` are those of each table, in register order; `orders` the steps of each pipeline as
/// binding has put them, where there is a binding.
pub(crate) fn describe(
    fragment: &Fragment,
    columns: &[Vec<Named>],
    orders: Option<&[&[Planned]]>,
) -> Vec<PipelineWords> {
    let mut payloads: Vec<Vec<Named>> = Vec::with_capacity(fragment.pipelines.len());
    let mut words = Vec::with_capacity(fragment.pipelines.len());
    let mut keys: Vec<Keys> = Vec::with_capacity(fragment.pipelines.len());
    for (index, pipeline) in fragment.pipelines.iter().enumerate() {
        let columns = match pipeline.source {
            Source::Table(table) => columns.get(table),
            Source::Output(groups) => payloads.get(groups),
        };
        let registers = registers(pipeline, columns.map_or(&[], Vec::as_slice), &payloads);
        let steps = match orders.and_then(|orders| orders.get(index)) {
            Some(order) => order.iter().map(|planned| bound_step(planned, &registers, &keys)).collect(),
            None => pipeline.steps.iter().map(|step| step_words(step, &registers, &keys)).collect(),
        };
        let branches = fragment.branches(index);
        let (is_root, last) = (branches.end == fragment.pipelines.len(), branches.end - 1);
        let probed = fragment.is_probed(index);
        let name = match &pipeline.sink {
            _ if is_root => "the result".to_string(),
            Sink::Build { .. } => format!("table {index}"),
            Sink::Aggregate { .. } if probed => format!("table {index}"),
            Sink::Aggregate { .. } => format!("groups {last}"),
            Sink::Rows { .. } => format!("rows {last}"),
            Sink::TopK(top) if top.k.is_none() => format!("sorted rows {last}"),
            Sink::TopK(_) => format!("first rows {last}"),
        };
        let into = match &pipeline.sink {
            Sink::Aggregate { .. } if probed => format!(" in {name}"),
            Sink::Aggregate { .. } if !is_root => format!(" into {name}"),
            _ => String::new(),
        };
        // Columns of a union have the names of the first branch.
        let sink = match words.get(branches.start) {
            Some(PipelineWords { sink, .. }) => sink.clone(),
            None => sink(index, &pipeline.sink, &registers) + &into,
        };
        words.push(PipelineWords { name, steps, sink });
        let key = |key: &Expr| (expression(key, &registers), matches!(key, Expr::Literal(..)));
        keys.push(match &pipeline.sink {
            Sink::Build { keys, .. } => keys.iter().map(key).collect(),
            Sink::Aggregate { groups, .. } if probed => groups.iter().map(|(expr, _)| key(expr)).collect(),
            _ => Vec::new(),
        });
        payloads.push(match &pipeline.sink {
            _ if branches.start < index => payloads[branches.start].clone(),
            Sink::Build { payload, .. } => payload.iter().map(|expr| named(expr, &registers)).collect(),
            Sink::Aggregate { groups, aggregates } => {
                let groups = if probed { &[] } else { groups.as_slice() };
                let keys = groups.iter().map(|(expr, data_type)| (expression(expr, &registers), data_type));
                let calls = aggregates.iter().map(|call| (aggregate(call, &registers), &call.data_type));
                let named = |(text, data_type): (String, &DataType)| Named { text, data_type: Some(data_type.clone()) };
                keys.chain(calls).map(named).collect()
            }
            Sink::TopK(TopK { outputs: columns, .. }) | Sink::Rows { columns, .. } => {
                let named = |(expr, data_type): &(Expr, DataType)| Named {
                    text: expression(expr, &registers),
                    data_type: Some(data_type.clone()),
                };
                let windows = match &pipeline.sink {
                    Sink::TopK(top) => top.windows.iter().map(|call| (window(call, top, &registers), call)).collect(),
                    _ => Vec::new(),
                };
                let of_windows =
                    windows.into_iter().map(|(text, call)| Named { text, data_type: Some(call.data_type.clone()) });
                columns.iter().map(named).chain(of_windows).collect()
            }
        });
    }
    words
}

/// The registers of a pipeline: those of its source, then the payload of each probe.
fn registers(pipeline: &Pipeline, columns: &[Named], payloads: &[Vec<Named>]) -> Vec<Named> {
    let mut registers = columns.to_vec();
    for step in &pipeline.steps {
        let Step::Probe(probe) = step else { continue };
        if probe.has_payload() {
            registers.extend(payloads.get(probe.build).into_iter().flatten().cloned());
        }
        if probe.kind == JoinKind::Mark {
            registers.push(Named { text: format!("found in {}", probe.build), data_type: Some(DataType::Boolean) });
        }
    }
    registers
}

fn named(expr: &Expr, registers: &[Named]) -> Named {
    Named { text: expression(expr, registers), data_type: type_of(expr, registers) }
}

/// The keys of a table in words, and whether each is a constant.
type Keys = Vec<(String, bool)>;

fn bound_step(planned: &Planned, registers: &[Named], keys: &[Keys]) -> StepWords {
    let words = match &planned.item {
        Item::Filter(expr) => filter_words(expr, registers),
        Item::Probe(probe, _) => probe_words(probe, registers, keys),
        Item::Limit { skip, rows } => limit_words(*skip, *rows),
    };
    StepWords { share: Some(planned.share), ..words }
}

fn step_words(step: &Step, registers: &[Named], keys: &[Keys]) -> StepWords {
    match step {
        Step::Filter(expr) => filter_words(expr, registers),
        Step::Probe(probe) => probe_words(probe, registers, keys),
        Step::Limit { skip, rows } => limit_words(*skip, *rows),
    }
}

fn filter_words(expr: &Expr, registers: &[Named]) -> StepWords {
    let text = format!("filter {}", expression(expr, registers));
    StepWords { text, build: None, joins: false, share: None }
}

fn probe_words(probe: &Probe, registers: &[Named], keys: &[Keys]) -> StepWords {
    let joins = matches!(probe.kind, JoinKind::Inner | JoinKind::Left);
    StepWords { text: join(probe, registers, keys), build: Some(probe.build), joins, share: None }
}

fn limit_words(skip: u64, rows: u64) -> StepWords {
    let text = match skip {
        0 => format!("any {rows} rows"),
        _ => format!("any {rows} rows behind {skip}"),
    };
    StepWords { text, build: None, joins: false, share: None }
}

/// A join with its equalities; those of two constants, which every row meets, are left out.
fn join(probe: &Probe, registers: &[Named], keys: &[Keys]) -> String {
    let kind = match probe.kind {
        JoinKind::Inner => "inner join",
        JoinKind::Left => "left join",
        JoinKind::Semi => "semi join",
        JoinKind::Anti => "anti join",
        JoinKind::Mark => "mark join",
    };
    let built = keys.get(probe.build).map_or(&[][..], Vec::as_slice);
    let pairs = probe.keys.iter().zip(built);
    let pairs = pairs.filter(|(key, (_, is_constant))| !(*is_constant && matches!(key, Expr::Literal(..))));
    let pairs: Vec<String> =
        pairs.map(|(key, (other, _))| format!("{} = {other}", expression(key, registers))).collect();
    let on = match pairs.is_empty() {
        true => format!("{kind} of every two rows"),
        false => format!("{kind} on {}", pairs.join(" AND ")),
    };
    match &probe.residual {
        Some(residual) => format!("{on} where {}", expression(residual, registers)),
        None => on,
    }
}

fn sink(index: usize, sink: &Sink, registers: &[Named]) -> String {
    match sink {
        Sink::Build { keys, payload } if payload.is_empty() => {
            format!("build table {index} of {}", list(keys, registers))
        }
        Sink::Build { keys, payload } => {
            format!("build table {index} of {} with {}", list(keys, registers), list(payload, registers))
        }
        Sink::Aggregate { groups, aggregates } => {
            let calls: Vec<String> = aggregates.iter().map(|call| aggregate(call, registers)).collect();
            let calls = calls.join(", ");
            let keys: Vec<String> = groups.iter().map(|(expr, _)| expression(expr, registers)).collect();
            match (keys.is_empty(), calls.is_empty()) {
                (true, _) => format!("aggregate {calls}"),
                (false, true) => format!("group by {}", keys.join(", ")),
                (false, false) => format!("group by {}: {calls}", keys.join(", ")),
            }
        }
        Sink::TopK(top) => top_k(top, registers),
        Sink::Rows { columns, limit } => {
            let columns: Vec<String> = columns.iter().map(|(expr, _)| expression(expr, registers)).collect();
            let some = limit.map_or_else(String::new, |limit| format!("{limit} "));
            format!("{some}rows of {}", columns.join(", "))
        }
    }
}

fn top_k(top: &TopK, registers: &[Named]) -> String {
    let key = |key: &OrderKey| {
        let direction = if key.descending { " DESC" } else { "" };
        let nulls = match (key.nulls_first, key.descending) {
            (true, false) => " NULLS FIRST",
            (false, true) => " NULLS LAST",
            _ => "",
        };
        format!("{}{direction}{nulls}", expression(&key.expr, registers))
    };
    let keys: Vec<String> = top.keys.iter().map(key).collect();
    let rows = top.k.map_or_else(|| "all rows".to_string(), |k| format!("first {k} rows"));
    let behind = if top.skip > 0 { format!(" behind {}", top.skip) } else { String::new() };
    let windows: Vec<String> = top.windows.iter().map(|call| window(call, top, registers)).collect();
    let with = if windows.is_empty() { String::new() } else { format!(", with {}", windows.join(", ")) };
    let first = top.first.and_then(|first| Some((windows.get(first.window)?, first.rows)));
    let wanted = first.map(|(window, rows)| format!(", wanted up to {rows} of {window}")).unwrap_or_default();
    format!("{rows} by {}{behind}{with}{wanted}", keys.join(", "))
}

/// A column of a window, over the outputs of a sort.
fn window(call: &WindowCall, top: &TopK, registers: &[Named]) -> String {
    let output = |at: &usize| top.outputs.get(*at).map(|(expr, _)| expression(expr, registers)).unwrap_or_default();
    let (name, argument) = match &call.function {
        WindowFunction::RowNumber => ("row_number", String::new()),
        WindowFunction::Rank => ("rank", String::new()),
        WindowFunction::DenseRank => ("dense_rank", String::new()),
        WindowFunction::PercentRank => ("percent_rank", String::new()),
        WindowFunction::CumeDist => ("cume_dist", String::new()),
        WindowFunction::Tile(parts) => ("ntile", parts.to_string()),
        WindowFunction::Shift { output: of, rows, .. } => ("lag", format!("{}, {rows}", output(of))),
        WindowFunction::Nth { output: of, place, .. } => ("nth_value", format!("{}, {place}", output(of))),
        WindowFunction::Aggregate { kind, output: of, filter, .. } => {
            let of = of.as_ref().map_or_else(|| "*".to_string(), output);
            let filter = filter.as_ref().map(|filter| format!(" where {}", output(filter))).unwrap_or_default();
            (aggregate_name(*kind), of + &filter)
        }
    };
    let keys = |count: usize| if count == 1 { "key" } else { "keys" };
    let by = call.partition;
    format!("{name}({argument}) in partitions by {by} {}", keys(by))
}

fn aggregate_name(kind: AggregateKind) -> &'static str {
    match kind {
        AggregateKind::Count => "count",
        AggregateKind::Sum => "sum",
        AggregateKind::ExactSum => "exact sum",
        AggregateKind::Min => "min",
        AggregateKind::Max => "max",
    }
}

fn aggregate(call: &AggregateCall, registers: &[Named]) -> String {
    let name = aggregate_name(call.kind);
    let argument = call.argument.as_ref().map_or_else(|| "*".to_string(), |expr| expression(expr, registers));
    if call.unites {
        // The argument may be the name of what was united before.
        return format!("{} united", argument.trim_end_matches(" united"));
    }
    match &call.filter {
        Some(filter) => format!("{name}({argument}) where {}", expression(filter, registers)),
        None => format!("{name}({argument})"),
    }
}

fn list(exprs: &[Expr], registers: &[Named]) -> String {
    exprs.iter().map(|expr| expression(expr, registers)).collect::<Vec<_>>().join(", ")
}

/// How tightly a call binds, whose operand stands between parentheses.
const CALL: u8 = u8::MAX;

/// An expression as SQL would have it, more or less.
pub(crate) fn expression(expr: &Expr, registers: &[Named]) -> String {
    let mut text = String::new();
    Writer { registers, text: &mut text }.write(expr, None, 0);
    text
}

/// The Arrow type of an expression's value, as far as its constants need it to be read.
fn type_of(expr: &Expr, registers: &[Named]) -> Option<DataType> {
    match expr {
        Expr::Reg(register) => registers.get(*register)?.data_type.clone(),
        Expr::Rescale(inner, by) => match type_of(inner, registers)? {
            DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => {
                Some(DataType::Decimal128(38, scale.checked_add(*by)?))
            }
            _ => None,
        },
        Expr::Digits(inner, _) => type_of(inner, registers),
        Expr::Binary(BinaryOp::Add | BinaryOp::Sub, left, right) => {
            type_of(left, registers).or_else(|| type_of(right, registers))
        }
        _ => None,
    }
}

struct Writer<'a> {
    registers: &'a [Named],
    text: &'a mut String,
}

impl Writer<'_> {
    fn put(&mut self, text: impl std::fmt::Display) {
        write!(self.text, "{text}").expect("writing to a string cannot fail");
    }

    /// Writes an expression: `like` is the type of what constants stand beside, `outer` how tightly the operator around
    /// binds.
    fn write(&mut self, expr: &Expr, like: Option<&DataType>, outer: u8) {
        match expr {
            Expr::Reg(register) | Expr::Place(register) => match self.registers.get(*register) {
                Some(named) => self.put(&named.text),
                None => self.put(format_args!("#{register}")),
            },
            Expr::Literal(value, _) => self.literal(*value, like),
            Expr::Unary(op, inner) => self.unary(*op, inner, outer),
            Expr::Binary(op, left, right) => self.binary(*op, left, right, outer),
            Expr::Cast(inner, ty) => {
                self.put("CAST(");
                self.write(inner, None, 0);
                self.put(format_args!(" AS {})", sql_type(*ty)));
            }
            // The value stays the same; only its digits move.
            Expr::Rescale(inner, _) | Expr::Digits(inner, _) => self.write(inner, like, outer),
            Expr::DecimalToFloat(inner, _) => {
                self.put("CAST(");
                self.write(inner, None, 0);
                self.put(" AS DOUBLE)");
            }
            Expr::Case(branches, otherwise) => {
                self.put("CASE");
                for (when, then) in branches {
                    self.put(" WHEN ");
                    self.write(when, None, 0);
                    self.put(" THEN ");
                    self.write(then, like, 0);
                }
                self.put(" ELSE ");
                self.write(otherwise, like, 0);
                self.put(" END");
            }
            Expr::DatePart(part, inner) => {
                self.put(match part {
                    DatePart::Year => "year(",
                    DatePart::Quarter => "quarter(",
                    DatePart::Month => "month(",
                    DatePart::Day => "day(",
                });
                self.write(inner, None, 0);
                self.put(")");
            }
            Expr::Quotient(operands, _) => self.binary(BinaryOp::Div, &operands[0], &operands[1], outer),
            Expr::Deviations(sums) => {
                let [sum, squares, count] = sums.as_ref();
                for (before, part) in [("deviations(", sum), (", ", squares), (", ", count)] {
                    self.put(before);
                    self.write(part, None, 0);
                }
                self.put(")");
            }
            Expr::AddMonths(inner, months) => {
                self.wrapped(outer > 5, |writer| {
                    writer.write(inner, None, 5);
                    writer.put(format_args!(" + INTERVAL '{months} months'"));
                });
            }
            Expr::InCalendar(inner, _) => self.write(inner, like, outer),
            Expr::Among(inner, values) => {
                self.write(inner, None, 0);
                let _ = write!(self.text, " in {} values", values.len());
            }
            Expr::Text(text) => self.put(format_args!("'{}'", text.replace('\'', "''"))),
            Expr::Match(register, test) => {
                let name =
                    self.registers.get(*register).map_or_else(|| format!("#{register}"), |named| named.text.clone());
                self.put(test.words(&name));
            }
            Expr::Lookup(_, function, _) => {
                let text = readable(&function.describe());
                self.put(text);
            }
        }
    }

    fn unary(&mut self, op: UnaryOp, inner: &Expr, outer: u8) {
        let (before, after, binds) = match op {
            UnaryOp::Not => ("NOT ", "", 3),
            UnaryOp::Negate => ("-", "", 7),
            UnaryOp::IsNull => ("", " IS NULL", 4),
            UnaryOp::IsNotNull => ("", " IS NOT NULL", 4),
            UnaryOp::IsTrue => ("", " IS TRUE", 4),
            UnaryOp::Absolute => ("abs(", ")", CALL),
            UnaryOp::Floor => ("floor(", ")", CALL),
            UnaryOp::Ceil => ("ceil(", ")", CALL),
            UnaryOp::Round => ("round(", ")", CALL),
            UnaryOp::RoundEven => ("round_even(", ")", CALL),
            UnaryOp::Truncate => ("trunc(", ")", CALL),
            UnaryOp::Sign => ("signum(", ")", CALL),
            UnaryOp::Root => ("sqrt(", ")", CALL),
        };
        self.wrapped(outer > binds, |writer| {
            writer.put(before);
            writer.write(inner, None, if binds == CALL { 0 } else { binds + 1 });
            writer.put(after);
        });
    }

    fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr, outer: u8) {
        let (sign, binds) = match op {
            BinaryOp::Or => ("OR", 1),
            BinaryOp::And => ("AND", 2),
            BinaryOp::Eq => ("=", 4),
            BinaryOp::Ne => ("<>", 4),
            BinaryOp::Lt => ("<", 4),
            BinaryOp::Le => ("<=", 4),
            BinaryOp::Gt => (">", 4),
            BinaryOp::Ge => (">=", 4),
            BinaryOp::Add => ("+", 5),
            BinaryOp::Sub => ("-", 5),
            BinaryOp::Mul => ("*", 6),
            BinaryOp::Div => ("/", 6),
            BinaryOp::Rem => ("%", 6),
        };
        // Only chains of one logical operator, of sums and of products read the same without parentheses on the right.
        let right_binds = match op {
            BinaryOp::Or | BinaryOp::And | BinaryOp::Add | BinaryOp::Mul => binds,
            _ => binds + 1,
        };
        let like_left = type_of(right, self.registers);
        let like_right = type_of(left, self.registers);
        self.wrapped(outer > binds, |writer| {
            writer.write(left, like_left.as_ref(), binds);
            writer.put(format_args!(" {sign} "));
            writer.write(right, like_right.as_ref(), right_binds);
        });
    }

    fn wrapped(&mut self, parentheses: bool, inner: impl FnOnce(&mut Self)) {
        if parentheses {
            self.put("(");
        }
        inner(self);
        if parentheses {
            self.put(")");
        }
    }

    fn literal(&mut self, value: Literal, like: Option<&DataType>) {
        match (value, like) {
            (Literal::Null, _) => self.put("NULL"),
            (Literal::Argument(index), _) => self.put(format_args!("(subquery {index})")),
            (Literal::Float(value), _) => self.put(value),
            (Literal::Int(value), Some(DataType::Boolean)) => self.put(value != 0),
            (Literal::Int(value), Some(DataType::Date32)) => {
                match i32::try_from(value).ok().and_then(date32_to_datetime) {
                    Some(date) => self.put(date.date()),
                    None => self.put(value),
                }
            }
            (Literal::Int(value), Some(DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale))) => {
                self.put(Decimal128Type::format_decimal(value, 38, *scale));
            }
            (Literal::Int(value), _) => self.put(value),
        }
    }
}

/// The name of a machine type in SQL.
fn sql_type(ty: Ty) -> &'static str {
    match ty {
        Ty::Bool => "BOOLEAN",
        Ty::I8 => "TINYINT",
        Ty::I16 => "SMALLINT",
        Ty::I32 => "INT",
        Ty::I64 => "BIGINT",
        Ty::U8 => "TINYINT UNSIGNED",
        Ty::U16 => "SMALLINT UNSIGNED",
        Ty::U32 => "INT UNSIGNED",
        Ty::U64 => "BIGINT UNSIGNED",
        Ty::F32 => "FLOAT",
        Ty::F64 => "DOUBLE",
        Ty::I128 => "DECIMAL",
    }
}

/// A dictionary function's text as SQL would have it: strings in single quotes.
fn readable(text: &str) -> String {
    let mut text = text.to_string();
    for kind in ["Utf8View(\"", "LargeUtf8(\"", "Utf8(\""] {
        while let Some(start) = text.find(kind) {
            let Some(length) = text[start + kind.len()..].find("\")") else { break };
            let end = start + kind.len() + length;
            text = format!("{}'{}'{}", &text[..start], &text[start + kind.len()..end], &text[end + 2..]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers() -> Vec<Named> {
        let column = |name: &str, data_type| Named { text: name.into(), data_type: Some(data_type) };
        vec![
            column("a", DataType::Int32),
            column("day", DataType::Date32),
            column("price", DataType::Decimal128(15, 2)),
            column("open", DataType::Boolean),
        ]
    }

    fn reg(register: usize) -> Expr {
        Expr::Reg(register)
    }

    fn int(value: i128) -> Expr {
        Expr::Literal(Literal::Int(value), Ty::I32)
    }

    #[test]
    fn constants_read_as_the_columns_beside_them() {
        let say = |expr: &Expr| expression(expr, &registers());
        assert_eq!(say(&Expr::binary(BinaryOp::Le, reg(1), int(10_471))), "day <= 1998-09-02");
        assert_eq!(say(&Expr::binary(BinaryOp::Gt, int(105), reg(2))), "1.05 > price");
        assert_eq!(say(&Expr::binary(BinaryOp::Eq, reg(3), int(1))), "open = true");
        assert_eq!(say(&Expr::binary(BinaryOp::Ne, reg(0), Expr::Literal(Literal::Null, Ty::I32))), "a <> NULL");
    }

    #[test]
    fn parentheses_stand_where_they_are_needed() {
        let say = |expr: &Expr| expression(expr, &registers());
        let sum = Expr::binary(BinaryOp::Add, reg(0), int(1));
        assert_eq!(say(&Expr::binary(BinaryOp::Mul, sum.clone(), reg(0))), "(a + 1) * a");
        assert_eq!(say(&Expr::binary(BinaryOp::Sub, reg(0), sum.clone())), "a - (a + 1)");
        let less = Expr::binary(BinaryOp::Lt, sum, int(7));
        let null = Expr::Unary(UnaryOp::IsNull, Box::new(reg(0)));
        let either = Expr::binary(BinaryOp::Or, less.clone(), null);
        assert_eq!(say(&Expr::binary(BinaryOp::And, less, either.clone())), "a + 1 < 7 AND (a + 1 < 7 OR a IS NULL)");
        assert_eq!(say(&Expr::Unary(UnaryOp::Not, Box::new(either))), "NOT (a + 1 < 7 OR a IS NULL)");
    }

    #[test]
    fn dictionary_functions_read_as_sql() {
        assert_eq!(readable("p_name LIKE Utf8(\"#1.x%\")"), "p_name LIKE '#1.x%'");
        assert_eq!(readable("concat(a, Utf8View(\"b\"), Utf8View(\"\"))"), "concat(a, 'b', '')");
        assert_eq!(readable("Utf8(\"open"), "Utf8(\"open");
    }

    #[test]
    fn casts_name_types_of_sql() {
        let cast = Expr::Cast(Box::new(reg(0)), Ty::I64);
        assert_eq!(expression(&cast, &registers()), "CAST(a AS BIGINT)");
        assert_eq!(expression(&Expr::DecimalToFloat(Box::new(reg(2)), 2), &registers()), "CAST(price AS DOUBLE)");
    }
}
