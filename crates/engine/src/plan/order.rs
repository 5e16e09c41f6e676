//! The order in which a pipeline takes its steps, and which of them run on whole vectors.
//!
//! Filters and probes that only thin rows out may be taken in any order: what drops most in the least time is first.
//! What can raise an error stays behind everything that came before it in the plan. Probes with payload that a step
//! needs come before that step.
//!
//! Filters that read the same registers are taken together, in the plan's order: each of them costs next to nothing
//! where its columns are there. The shares of their parts then do not tell in which order they stand in a kernel, and
//! another literal seldom asks for another one.

use std::ops::Range;

use super::estimate::selectivity;
use super::table::{TableLayout, Tables, table};
use crate::error::{EngineError, Result};
use crate::facts::{Facts, analyse};
use crate::ir::{BinaryOp, Expr, JoinKind, Overflow, Pipeline, Probe, Step, Ty};
use crate::tuning::Tuning;

/// A step in its final place.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    /// What is done.
    pub(crate) item: Item,
    /// Of a filter, its number among the [`filter_parts`] of the pipeline; zero otherwise.
    pub(crate) part: usize,
    /// Estimated share of rows that go on.
    pub(crate) share: f64,
    /// The same of all filters that are taken together with it.
    together: f64,
    /// Time a row, over that of a filter.
    cost: f64,
    /// Whether it can raise an evaluation error, or is a limit: it stays behind the steps before it.
    pub(crate) fallible: bool,
    /// Whether it is a probe that finds an entry for every row: nothing has to be tested.
    pub(crate) certain: bool,
    /// Whether the residual of a probe can: it is then evaluated for all matches of a row, as it is on the CPU.
    pub(crate) residual_raises: bool,
}

impl Planned {
    /// Whether it is a probe whose payload becomes registers.
    pub(crate) fn joins(&self) -> bool {
        matches!(&self.item, Item::Probe(probe, _) if matches!(probe.kind, JoinKind::Inner | JoinKind::Left))
    }

    /// Whether it is a probe that leaves registers: payload, or a mark.
    pub(crate) fn gives_registers(&self) -> bool {
        self.joins() || matches!(&self.item, Item::Probe(probe, _) if probe.kind == JoinKind::Mark)
    }

    /// Whether it drops too little for what it costs to be worth columns of its own.
    pub(crate) fn is_weak(&self, tuning: &Tuning) -> bool {
        self.together > tuning.weak_share || self.cost >= tuning.far_probe_cost
    }
}

/// A step, conjunctions taken apart.
#[derive(Debug, Clone)]
pub(crate) enum Item {
    /// A filter.
    Filter(Expr),
    /// A probe, with the registers of its payload and its mark.
    Probe(Probe, Range<usize>),
    /// So many rows, after as many have been skipped: [`Step::Limit`].
    Limit {
        /// Rows that are left out first.
        skip: u64,
        /// Rows that go on.
        rows: u64,
    },
}

impl Item {
    /// Calls `visit` for every register the item reads, but the payload of its own table.
    pub(crate) fn registers(&self, visit: &mut impl FnMut(usize)) {
        match self {
            Item::Filter(expr) => expr.registers(visit),
            Item::Probe(probe, own) => probe.each(&mut |expr| {
                expr.registers(&mut |register| {
                    if !own.contains(&register) {
                        visit(register);
                    }
                });
            }),
            Item::Limit { .. } => {}
        }
    }
}

/// What is known of every register of the pipeline.
pub(crate) fn registers(pipeline: &Pipeline, columns: &[Facts], tables: &Tables) -> Result<Vec<Option<Facts>>> {
    let mut registers: Vec<Option<Facts>> = columns.iter().cloned().map(Some).collect();
    for step in &pipeline.steps {
        let Step::Probe(probe) = step else { continue };
        if probe.has_payload() {
            for column in &table(tables, probe)?.payload {
                let nullable = column.facts.nullable || probe.kind == JoinKind::Left;
                registers.push(Some(Facts { nullable, ..column.facts.clone() }));
            }
        }
        if probe.kind == JoinKind::Mark {
            registers.push(Some(Facts::new(Ty::Bool, false, Ty::Bool.bounds())));
        }
    }
    Ok(registers)
}

/// The pipeline's steps in the order they are taken, and what passes its filters; bitmaps of more than
/// `bitmap_bytes_max` are not in shared memory.
pub(crate) fn order(
    pipeline: &Pipeline,
    columns: usize,
    registers: &[Option<Facts>],
    tables: &Tables,
    (overflow, bitmap_bytes_max, tuning): (Overflow, usize, &Tuning),
) -> Result<(Vec<Planned>, Passing)> {
    let mut waiting: Vec<Planned> = Vec::new();
    let parts = filter_parts(pipeline);
    let passing = Passing::of(&parts, registers);
    let (mut register, mut parts) = (columns, parts.into_iter().zip(&passing.shares).enumerate());
    for step in &pipeline.steps {
        match step {
            Step::Filter(expr) => {
                for (part, (expr, share)) in parts.by_ref().take(conjuncts(expr).len()) {
                    let (_, fallible) = analyse(&[&expr], registers, overflow)?;
                    let (share, cost) = (*share, if expr.tests_strings() { tuning.text_cost } else { 1.0 });
                    waiting.push(Planned {
                        item: Item::Filter(expr),
                        part,
                        share,
                        together: share,
                        cost,
                        fallible,
                        certain: false,
                        residual_raises: false,
                    });
                }
            }
            Step::Probe(probe) => {
                let built = table(tables, probe)?;
                let read: Vec<&Expr> = probe.keys.iter().chain(&probe.residual).collect();
                let (_, fallible) = analyse(&read, registers, overflow)?;
                let residual: Vec<&Expr> = probe.residual.iter().collect();
                let (_, residual_raises) = analyse(&residual, registers, overflow)?;
                let met = probe.residual.as_ref().map_or(1.0, |residual| selectivity(residual, registers));
                let share = match probe.kind {
                    JoinKind::Inner | JoinKind::Semi => built.share * met,
                    JoinKind::Left | JoinKind::Mark => 1.0,
                    JoinKind::Anti => 1.0 - built.share * met,
                };
                let is_far = built.layout == TableLayout::Direct && built.bitmap_bytes() > bitmap_bytes_max;
                let cost = match is_far {
                    _ if built.matches.is_some() && !is_of_keys(probe.kind) => tuning.matches_cost,
                    _ if probe.residual.is_some() => tuning.far_probe_cost,
                    true => tuning.far_probe_cost,
                    false => tuning.probe_cost,
                };
                let (keys, _) = analyse(&probe.keys.iter().collect::<Vec<_>>(), registers, overflow)?;
                let thins_out = matches!(probe.kind, JoinKind::Inner | JoinKind::Semi) && probe.residual.is_none();
                let certain = thins_out && !fallible && built.is_full && built.pack.has_all(&keys);
                let width = probe.width(built.payload.len());
                let item = Item::Probe(probe.clone(), register..register + width);
                let together = share;
                waiting.push(Planned { item, part: 0, share, together, cost, fallible, certain, residual_raises });
                register += width;
            }
            Step::Limit { skip, rows } => {
                let item = Item::Limit { skip: *skip, rows: *rows };
                let (fallible, certain, residual_raises) = (true, false, false);
                let (share, together, cost) = (1.0, 1.0, 1.0);
                waiting.push(Planned { item, part: 0, share, together, cost, fallible, certain, residual_raises });
            }
        }
    }
    let groups = taken_together(&mut waiting);
    let mut waiting: Vec<(Planned, usize)> = waiting.into_iter().zip(groups).collect();
    let mut available: Vec<bool> = (0..registers.len()).map(|register| register < columns).collect();
    let mut ordered: Vec<Planned> = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let best = pick(&waiting, &available)
            .ok_or_else(|| EngineError::Malformed("a step reads registers no step writes".into()))?;
        let (planned, group) = waiting.remove(best);
        if let Item::Probe(_, payload) = &planned.item {
            available[payload.clone()].fill(true);
        }
        ordered.push(planned);
        ordered.extend(waiting.extract_if(.., |(_, other)| *other == group).map(|(planned, _)| planned));
    }
    Ok((ordered, passing))
}

/// Whether a probe only asks whether there is a match.
fn is_of_keys(kind: JoinKind) -> bool {
    matches!(kind, JoinKind::Semi | JoinKind::Anti | JoinKind::Mark)
}

/// The share of rows that pass a filter among those that passed the filters on the same register: what two bounds drop
/// does not overlap, so that a range is as large as both leave together.
fn beside(alone: &mut Vec<(usize, f64)>, filter: &Expr, share: f64) -> f64 {
    let mut read = Vec::new();
    filter.registers(&mut |register| read.push(register));
    let Some(register) = read.pop().filter(|last| read.iter().all(|other| other == last)) else { return share };
    let Some((_, before)) = alone.iter_mut().find(|(known, _)| *known == register) else {
        alone.push((register, share));
        return share;
    };
    // Of filters after one that leaves nothing nothing more is known.
    if *before <= 0.0 {
        return share;
    }
    let both = if *before + share > 1.0 { *before + share - 1.0 } else { *before * share };
    let among = both / *before;
    *before = both;
    among
}

/// A number for each step, the same for filters that are taken together: those that read the same registers, test no
/// strings and raise nothing.
fn taken_together(steps: &mut [Planned]) -> Vec<usize> {
    let mut known: Vec<(Vec<usize>, f64)> = Vec::new();
    let mut group = |planned: &Planned| {
        let mut read = Vec::new();
        planned.item.registers(&mut |register| read.push(register));
        read.sort_unstable();
        read.dedup();
        let is_filter = matches!(planned.item, Item::Filter(_)) && !planned.fallible && planned.cost <= 1.0;
        match known.iter_mut().position(|(of, _)| is_filter && *of == read) {
            Some(position) => {
                known[position].1 *= planned.share;
                position
            }
            None => {
                // No filter is taken together with another kind of step.
                known.push((if is_filter { read } else { vec![usize::MAX] }, planned.share));
                known.len() - 1
            }
        }
    };
    let groups: Vec<usize> = steps.iter().map(&mut group).collect();
    steps.iter_mut().zip(&groups).for_each(|(planned, group)| planned.together = known[*group].1);
    groups
}

/// The step that is best taken now; a fallible one only when it is the first that waits.
fn pick(waiting: &[(Planned, usize)], available: &[bool]) -> Option<usize> {
    let ready = |planned: &Planned| {
        let mut ready = true;
        planned.item.registers(&mut |register| ready &= available.get(register).copied().unwrap_or(false));
        ready
    };
    // What drops most rows in the least time comes first.
    let weight = |planned: &Planned| 1.0 - (1.0 - planned.together) / planned.cost;
    let candidates = waiting.iter().enumerate().filter(|(position, (planned, _))| {
        let in_turn = !planned.fallible || *position == 0;
        // Nothing overtakes a fallible step's predecessors, but infallible steps may overtake a fallible one.
        in_turn && ready(planned)
    });
    candidates.min_by(|(_, (a, _)), (_, (b, _))| weight(a).total_cmp(&weight(b))).map(|(position, _)| position)
}

/// The conjuncts of a pipeline's filters, in the order of the plan.
pub(crate) fn filter_parts(pipeline: &Pipeline) -> Vec<Expr> {
    let filters = pipeline.steps.iter().filter_map(|step| match step {
        Step::Filter(expr) => Some(expr),
        Step::Probe(_) | Step::Limit { .. } => None,
    });
    filters.flat_map(conjuncts).cloned().collect()
}

/// Estimated shares of rows that pass the parts of a pipeline's filters.
#[derive(Debug, Clone)]
pub(crate) struct Passing {
    /// For each part, of the rows that passed those before it.
    pub(crate) shares: Vec<f64>,
    /// For all parts that read the same registers.
    pub(crate) groups: Vec<f64>,
}

impl Passing {
    /// The shares of these parts.
    pub(crate) fn of(parts: &[Expr], registers: &[Option<Facts>]) -> Passing {
        let (mut alone, mut known) = (Vec::new(), Vec::<Vec<usize>>::new());
        let mut passing = Passing { shares: Vec::with_capacity(parts.len()), groups: Vec::new() };
        for part in parts {
            let share = beside(&mut alone, part, selectivity(part, registers));
            passing.shares.push(share);
            let mut read = Vec::new();
            part.registers(&mut |register| read.push(register));
            read.sort_unstable();
            read.dedup();
            match known.iter().position(|known| *known == read) {
                Some(group) => passing.groups[group] *= share,
                None => {
                    known.push(read);
                    passing.groups.push(share);
                }
            }
        }
        passing
    }
}

/// The operands of a chain of AND, in their order.
fn conjuncts(expr: &Expr) -> Vec<&Expr> {
    let (mut parts, mut rest) = (Vec::new(), vec![expr]);
    while let Some(expr) = rest.pop() {
        match expr {
            Expr::Binary(BinaryOp::And, left, right) => rest.extend([&**right, &**left]),
            other => parts.push(other),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Literal, Sink, Source};

    #[test]
    fn two_bounds_of_a_register_leave_a_range() {
        let mut alone = Vec::new();
        let reads = |register| Expr::binary(BinaryOp::Ge, Expr::Reg(register), Expr::Literal(Literal::Int(3), Ty::I32));
        assert_eq!(beside(&mut alone, &reads(0), 0.75), 0.75);
        assert_eq!(beside(&mut alone, &reads(1), 0.5), 0.5);
        assert_eq!(beside(&mut alone, &reads(0), 0.5), 1.0 / 3.0);
        // Of filters that drop more than everything together nothing is known.
        assert_eq!(beside(&mut alone, &reads(0), 0.5), 0.5);
        // A range outside of the column's bounds.
        assert_eq!(beside(&mut alone, &reads(2), 0.0), 0.0);
        assert_eq!(beside(&mut alone, &reads(2), 1.0), 1.0);
        let both = Expr::binary(BinaryOp::Lt, Expr::Reg(0), Expr::Reg(1));
        assert_eq!(beside(&mut alone, &both, 0.9), 0.9);
    }

    #[test]
    fn filters_of_the_same_registers_keep_the_order_of_the_plan() {
        let registers: Vec<_> = (0..2).map(|_| Some(Facts::new(Ty::I32, false, Some((0, 99))))).collect();
        let reads = |planned: &Planned| match &planned.item {
            Item::Filter(expr) => expr.against_constant().map(|(register, op, _)| (register, op)),
            Item::Probe(_, _) | Item::Limit { .. } => None,
        };
        let order_of = |low: i128, high: i128, other: i128| {
            let compare = |register, op, constant| {
                Step::Filter(Expr::binary(op, Expr::Reg(register), Expr::Literal(Literal::Int(constant), Ty::I32)))
            };
            let steps =
                vec![compare(0, BinaryOp::Ge, low), compare(1, BinaryOp::Lt, other), compare(0, BinaryOp::Lt, high)];
            let sink = Sink::Rows { columns: Vec::new(), limit: None };
            let pipeline = Pipeline { source: Source::Table(0), steps, sink };
            let (ordered, _) = order(&pipeline, 2, &registers, &[], (Overflow::Raise, 0, &Tuning::default())).unwrap();
            ordered.iter().map(|planned| reads(planned).unwrap()).collect::<Vec<_>>()
        };
        let (low, high, other) = ((0, BinaryOp::Ge), (0, BinaryOp::Lt), (1, BinaryOp::Lt));
        // A tenth of the rows, whichever bound drops more of them.
        assert_eq!(order_of(80, 90, 50), [low, high, other]);
        assert_eq!(order_of(10, 20, 50), [low, high, other]);
        assert_eq!(order_of(10, 20, 5), [other, low, high]);
    }
}
