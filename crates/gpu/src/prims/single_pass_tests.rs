//! The programs of single-pass primitives compile for GPUs.

use crate::prims::gpu_programs::compile_for_gpus;
use crate::prims::monoid::Joined;
use crate::prims::{
    Element, Moved, Predicate, Reduce, Reduction, Scan, ScanKind, SelectOrder, gather, partition, reduce, scan,
    scan_keyed, segmented, select, split,
};
use crate::program::Program;

fn scans() -> Vec<Program> {
    let types = [
        (Element::U32, Reduction::Sum(Element::U32)),
        (Element::U8, Reduction::Sum(Element::U32)),
        (Element::U32, Reduction::Sum(Element::U64)),
        (Element::I64, Reduction::Sum(Element::I64)),
        (Element::F64, Reduction::Sum(Element::F64)),
        (Element::U8, Reduction::Least),
        (Element::F32, Reduction::Largest),
        (Element::I64, Reduction::Least),
        (Element::F32, Reduction::Count),
    ];
    let kinds = [ScanKind::Inclusive, ScanKind::Exclusive];
    let scan =
        |(input, of), kind| scan::program(Joined::in_states("scan", input, of).unwrap(), kind, Scan::tuning(input, of));
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
        (Element::I128, Reduction::Count),
    ];
    let program = |(input, of)| reduce::program(Joined::new("reduce", input, of).unwrap(), Reduce::tuning());
    all.map(program).to_vec()
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

fn movers() -> Vec<Program> {
    let gathers = [(Element::U32, Element::U32), (Element::I128, Element::U64), (Element::U8, Element::U32)];
    gathers.map(|(value, index)| gather::program(value, index)).to_vec()
}

fn segments() -> Vec<Program> {
    let program = |input, of, kind| {
        let types = Joined::in_states("segmented", input, of).unwrap();
        segmented::program(types, kind, segmented::tuning(types))
    };
    vec![
        program(Element::U32, Reduction::Sum(Element::U64), None),
        program(Element::F64, Reduction::Sum(Element::F64), None),
        program(Element::U8, Reduction::Sum(Element::U32), None),
        program(Element::U32, Reduction::Sum(Element::U32), Some(ScanKind::Inclusive)),
        program(Element::I64, Reduction::Sum(Element::I64), Some(ScanKind::Exclusive)),
        program(Element::U8, Reduction::Largest, None),
        program(Element::F64, Reduction::Least, Some(ScanKind::Inclusive)),
        program(Element::I128, Reduction::Count, None),
    ]
}

fn keyed_scans() -> Vec<Program> {
    let tuning = crate::prims::TileTuning { threads: 256, rows: 4, blocks: 3 };
    let program = |key, input, of, kind| {
        scan_keyed::program(key, Joined::in_states("scan_keyed", input, of).unwrap(), kind, tuning)
    };
    vec![
        program(Element::U32, Element::U32, Reduction::Sum(Element::U64), ScanKind::Inclusive),
        program(Element::I128, Element::F64, Reduction::Largest, ScanKind::Exclusive),
        program(Element::F32, Element::U8, Reduction::Count, ScanKind::Inclusive),
    ]
}

#[test]
fn kernels_compile_for_gpus() {
    [scans(), keyed_scans(), reductions(), selections(), movers(), segments()]
        .iter()
        .flatten()
        .for_each(compile_for_gpus);
}
