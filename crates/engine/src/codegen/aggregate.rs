//! What rows add to the cells of aggregates ([`crate::plan::cells`]), in kernel source.

use crate::codegen::expr::{Emitter, Value};
use crate::codegen::params::Argument;
use crate::error::{EngineError, Result};
use crate::ir::{AggregateCall, AggregateKind, Expr, Literal, Ty};
use crate::plan::cells::{Accumulators, Cell, CellOp, Part, Read};
use crate::plan::float_limbs::FloatLimbs;

/// What goes into a cell.
#[derive(Debug, Clone)]
pub(crate) struct CellText {
    /// Operation.
    pub(crate) op: CellOp,
    /// C expression of the value, of type `uint64_t` or `double`; of a float in limbs, the name of its parts.
    pub(crate) value: String,
    /// C expression of the condition; `None` takes every row.
    pub(crate) condition: Option<String>,
}

/// What a cell that counts adds for a row.
const COUNTED: &str = "1ULL";

/// Floats that were taken apart into limbs: the value, its window, and the name of the parts.
type Fixed = Vec<(String, FloatLimbs, String)>;

/// Writes the arguments of aggregates; what goes into each cell.
pub(crate) fn cells(emitter: &mut Emitter, plan: &Accumulators, aggregates: &[AggregateCall]) -> Result<Vec<CellText>> {
    let counted = |cell: &Cell| CellText { op: cell.op, value: COUNTED.into(), condition: None };
    let mut cells: Vec<CellText> = plan.cells.iter().map(counted).collect();
    let mut fixed = Fixed::new();
    for (index, (call, output)) in aggregates.iter().zip(&plan.outputs).enumerate() {
        let filter =
            call.filter.as_ref().map(|filter| Ok::<_, EngineError>(emitter.emit(filter)?.truth())).transpose()?;
        // Rows that are left out raise nothing.
        let argument = call.argument.as_ref().filter(|_| !call.unites);
        let value = argument.map(|argument| emitter.emit_guarded(argument, filter.as_deref())).transpose()?;
        let condition = match (value.as_ref().and_then(|value| value.valid.clone()), filter) {
            (None, None) => None,
            (Some(one), None) | (None, Some(one)) => Some(one),
            (Some(valid), Some(filter)) => Some(format!("({valid} && {filter})")),
        };
        if let (AggregateKind::Sum, Read::Wide { most: Some(most), .. }, Some(value)) = (call.kind, output.read, &value)
        {
            let most = emitter.emit(&Expr::Literal(Literal::Int(most), Ty::I128))?.code;
            emitter.raise(&format!("{0} > {most} || {0} < -{most}", value.code), &condition, "WC_OVERFLOW");
        }
        let parts = match (call.kind, output.read, &value) {
            (AggregateKind::ExactSum, Read::Fixed { window, .. }, Some(value)) => {
                take_apart(emitter, value, window, condition.as_deref(), &mut fixed)
            }
            _ => String::new(),
        };
        let own = plan.cells.iter().zip(&mut cells).filter(|(cell, _)| cell.call == Some(index));
        for (cell, text) in own {
            if let Part::Cell(register) = cell.part {
                text.value = emitter.emit(&Expr::Reg(register))?.code;
                continue;
            }
            let value = value.as_ref().map_or("", |value| value.code.as_str());
            *text = write(cell, value, &parts, condition.as_deref());
        }
    }
    Ok(cells)
}

/// Writes what takes a float apart into limbs; the name of the parts.
fn take_apart(
    emitter: &mut Emitter,
    value: &Value,
    window: FloatLimbs,
    condition: Option<&str>,
    fixed: &mut Fixed,
) -> String {
    let known = fixed.iter().find(|(code, known, _)| *code == value.code && *known == window);
    let parts = match known {
        Some((_, _, parts)) => parts.clone(),
        None => {
            let first = emitter.params.add("int64_t", Argument::I64(window.first as i64));
            let parts =
                emitter.define("WcFixed", &format!("wc_fixed((double){}, {first}, {})", value.code, window.limbs));
            fixed.push((value.code.clone(), window, parts.clone()));
            parts
        }
    };
    emitter.raise_flag(&also(condition, format!("!{parts}.fits")), "WC_SUM_WINDOW");
    parts
}

/// Both a condition, if there is one, and a test.
fn also(condition: Option<&str>, test: String) -> String {
    condition.map_or_else(|| test.clone(), |condition| format!("({condition} && {test})"))
}

/// What goes into a cell of a value with this code, whose parts have that name if it is taken apart.
fn write(cell: &Cell, value: &str, parts: &str, condition: Option<&str>) -> CellText {
    let mut condition = condition.map(str::to_string);
    let mut only_if = |test: String| condition = Some(also(condition.as_deref(), test));
    let value = match cell.part {
        Part::One => COUNTED.to_string(),
        Part::Cell(_) => value.to_string(),
        Part::Integer => format!("(uint64_t)(int64_t){value}"),
        Part::Low => format!("(uint64_t)(uint32_t){value}"),
        Part::Middle => format!("(uint64_t)(uint32_t)({value} >> 32)"),
        Part::Highest => format!("(uint64_t)(int64_t)({value} >> 64)"),
        Part::High { signed } => {
            format!("(uint64_t)(int64_t)({}{value} >> 32)", if signed { "(int64_t)" } else { "" })
        }
        Part::Float => format!("(double){value}"),
        Part::Limbs => parts.to_string(),
        Part::Limb(limb) => {
            only_if(format!("wc_fixed_part({parts}, {limb}) != 0"));
            format!("wc_fixed_limb({parts}, {limb})")
        }
        Part::Infinite => {
            only_if(format!("{parts}.infinite != 0"));
            format!("{parts}.infinite")
        }
        Part::Image { signed, turned, float } => {
            let image = match (float, signed) {
                (true, _) => format!("((uint64_t)wc_order({value}) ^ 0x8000000000000000ULL)"),
                (false, true) => format!("((uint64_t)(int64_t){value} ^ 0x8000000000000000ULL)"),
                (false, false) => format!("(uint64_t){value}"),
            };
            if turned { format!("~{image}") } else { image }
        }
    };
    CellText { op: cell.op, value, condition }
}
