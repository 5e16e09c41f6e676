//! The programs of single-pass primitives compile for GPUs.

use crate::cuda::nvrtc;
use crate::error::GpuError;
use crate::prims::sum::SumType;
use crate::prims::{Element, Reduce, Reduction, Scan, ScanKind, reduce, scan};
use crate::program::Program;

/// Ampere, Hopper, Blackwell for workstations.
const ARCHITECTURES: [u32; 3] = [80, 90, 120];

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
    ];
    all.map(|(input, reduction)| reduce::program(input, reduction, Reduce::tuning()).unwrap()).to_vec()
}

#[test]
fn kernels_compile_for_gpus() {
    for program in [scans(), reductions()].concat() {
        for architecture in ARCHITECTURES {
            match nvrtc::compile(&program, architecture) {
                Ok(cubin) => {
                    assert!(!cubin.is_empty());
                    if let Ok(d) = std::env::var("CUBINS") {
                        if architecture == 90 {
                            std::fs::write(format!("{d}/{}-{}.cubin", program.name(), &program.hash()[..6]), &cubin)
                                .unwrap();
                            std::fs::write(
                                format!("{d}/{}-{}.txt", program.name(), &program.hash()[..6]),
                                program
                                    .source()
                                    .lines()
                                    .take_while(|l| l.starts_with('#'))
                                    .collect::<Vec<_>>()
                                    .join("; "),
                            )
                            .unwrap();
                        }
                    } // TEMP
                }
                Err(GpuError::CompilerUnavailable { .. }) => return,
                Err(error) => panic!("{} for sm_{architecture}: {error:?}", program.name()),
            }
        }
    }
}
