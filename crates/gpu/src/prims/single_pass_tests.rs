//! The programs of single-pass primitives compile for GPUs.

use crate::prims::gpu_programs::compile_for_gpus;
use crate::prims::sum::SumType;
use crate::prims::{
    Element, Moved, OrderedForm, Predicate, Projection, Reduce, Reduction, Scan, ScanKind, SelectOrder, gather,
    partition, project, reduce, scan, segmented, select, split,
};
use crate::program::Program;

fn scans() -> Vec<Program> {
    let types = [
        (Element::U32, Element::U32),
        (Element::U8, Element::U32),
        (Element::U32, Element::U64),
        (Element::I64, Element::I64),
        (Element::F64, Element::F64),
    ];
    let kinds = [ScanKind::Inclusive, ScanKind::Exclusive];
    let scan =
        |(input, sum), kind| scan::program(SumType::new("scan", input, sum).unwrap(), kind, Scan::tuning(input, sum));
    types.into_iter().flat_map(|types| kinds.map(|kind| scan(types, kind))).collect()
}

fn reductions() -> Vec<Program> {
    let all = [
        (Element::U32, Reduction::Sum(Element::U64)),
        (Element::F32, Reduction::Sum(Element::F64)),
        (Element::F32, Reduction::Largest),
        (Element::I64, Reduction::Least),
        (Element::U8, Reduction::Largest),
        (Element::I128, Reduction::Largest),
    ];
    all.map(|(input, reduction)| reduce::program(input, reduction, Reduce::tuning()).unwrap()).to_vec()
}

fn selections() -> Vec<Program> {
    let text = || Predicate::Text("x < a && x >= b".into());
    let (values, rows) = (Moved::Values, Moved::Rows(Element::U64));
    let forms = [
        select::form(Element::F32, text(), values, SelectOrder::Stable),
        select::form(Element::F32, text(), values, SelectOrder::Any),
        select::form(Element::U64, Predicate::Flags, values, SelectOrder::Stable),
        select::form(Element::I128, text(), rows, SelectOrder::Stable),
        partition::form(Element::U32, Predicate::Flags),
        split::form(),
    ];
    forms.iter().map(|form| form.program(form.tuning()).unwrap()).collect()
}

fn aggregations() -> Vec<Program> {
    let (counts, sums) = (Some(Element::U32), Some((Element::U32, Element::U64)));
    let forms = [
        OrderedForm { key: Element::U32, count: counts, sum: None },
        OrderedForm { key: Element::U32, count: None, sum: sums },
        OrderedForm { key: Element::U64, count: Some(Element::U64), sum: Some((Element::F64, Element::F64)) },
        OrderedForm { key: Element::I128, count: None, sum: None },
        OrderedForm { key: Element::U8, count: counts, sum: None },
        OrderedForm { key: Element::F32, count: counts, sum: Some((Element::I64, Element::I64)) },
    ];
    forms.map(|form| form.program(form.tuning()).unwrap()).to_vec()
}

fn movers() -> Vec<Program> {
    let gathers = [(Element::U32, Element::U32), (Element::I128, Element::U64), (Element::U8, Element::U32)];
    let gathers = gathers.map(|(value, index)| gather::program(value, index));
    let projections = [(Element::F32, Projection::Linear), (Element::F32, Projection::Sigmoid)];
    let projections = projections.map(|(item, projection)| project::program(item, projection).unwrap());
    gathers.into_iter().chain(projections).collect()
}

fn segments() -> Vec<Program> {
    let program = |input, sum, kind| {
        segmented::program(SumType::new("segmented", input, sum).unwrap(), kind, segmented::tuning(sum))
    };
    vec![
        program(Element::U32, Element::U64, None),
        program(Element::F64, Element::F64, None),
        program(Element::U8, Element::U32, None),
        program(Element::U32, Element::U32, Some(ScanKind::Inclusive)),
        program(Element::I64, Element::I64, Some(ScanKind::Exclusive)),
    ]
}

#[test]
fn kernels_compile_for_gpus() {
    [scans(), reductions(), selections(), aggregations(), movers(), segments()]
        .iter()
        .flatten()
        .for_each(compile_for_gpus);
}
