//! Phases of windows behind a sort ([`crate::codegen::windows`]).

use std::sync::Arc;

use warpcube_gpu::prims::{Element, Scan, ScanKeyed};
use warpcube_gpu::{Device, DeviceInfo, Kernel, Module, Program};

use crate::codegen::params::{Argument, ParamList};
use crate::codegen::topk::BoundTop;
use crate::codegen::windows::{COLUMNS, HEADS, LISTS, STARTS, TREE};
use crate::error::Result;
use crate::exec::phase::{Launch, Phase, Primitive, Slice, blocks};
use crate::plan::windows::{NUMBERS, within_runs};

/// The kernels of windows.
pub(crate) struct WindowKernels {
    /// What finds the heads of runs, and the scan that numbers these, if runs are numbered.
    numbers: Option<(Kernel, Scan)>,
    /// What writes first rows of runs, and what is scanned, if either is there.
    starts: Option<Kernel>,
    columns: Kernel,
    /// What lists rows that have a value, if there are lists.
    lists: Option<Kernel>,
    /// What makes a level of a segment tree, if there is one.
    tree: Option<Kernel>,
    scans: Vec<ValueScan>,
}

/// A scan of values.
enum ValueScan {
    All(Scan),
    WithinRuns(ScanKeyed, usize),
    /// A segment tree of so many leaves.
    Tree(u64),
}

impl BoundTop {
    /// The programs of `gpu::prims` that its windows take.
    pub(super) fn window_programs(&self) -> Vec<Program> {
        self.plan.windows.as_ref().map(|windows| windows.programs()).unwrap_or_default()
    }

    /// The kernels of its windows, of the module with those of its own.
    pub(super) fn window_kernels(&self, device: &Device, module: &Arc<Module>) -> Result<Option<WindowKernels>> {
        let Some(plan) = &self.plan.windows else { return Ok(None) };
        let scans = plan.scans.iter().map(|scan| {
            let Some(spec) = scan.spec() else { return Ok(ValueScan::Tree(scan.leaves(self.k).unwrap_or(1))) };
            Ok(match scan.level() {
                None => ValueScan::All(Scan::new(device, spec.input, spec.of, spec.kind)?),
                Some(level) => {
                    let key = within_runs(spec).key;
                    ValueScan::WithinRuns(ScanKeyed::new(device, key, spec.input, spec.of, spec.kind)?, level)
                }
            })
        });
        let scans = scans.collect::<Result<Vec<_>>>()?;
        let has_trees = scans.iter().any(|scan| matches!(scan, ValueScan::Tree(_)));
        let kernel = |is_there: bool, name| is_there.then(|| module.kernel(&self.name(name))).transpose();
        let numbers = match kernel(plan.has_numbers(), HEADS)? {
            Some(heads) => Some((heads, Scan::new(device, NUMBERS.input, NUMBERS.of, NUMBERS.kind)?)),
            None => None,
        };
        Ok(Some(WindowKernels {
            numbers,
            starts: kernel(plan.has_starts(), STARTS)?,
            columns: module.kernel(&self.name(COLUMNS))?,
            lists: kernel(!plan.lists.is_empty(), LISTS)?,
            tree: kernel(has_trees, TREE)?,
            scans,
        }))
    }

    /// What makes the columns of windows of the sorted rows.
    pub(super) fn window_phases<'a>(&self, kernels: &'a WindowKernels, info: &DeviceInfo) -> Vec<Phase<'a>> {
        let (Some(plan), Some(windows)) = (&self.plan.windows, &self.windows) else { return Vec::new() };
        let launch = |kernel: &'a Kernel, params: &ParamList| {
            Phase::Launch(Launch::over(kernel, self.k, blocks(info), params.arguments().cloned().collect()))
        };
        let (rows, scratch) = (self.k, windows.scratch);
        let slice = |region, distance, element| Slice { region, distance, element, len: rows };
        let mut phases = Vec::new();
        if let Some((heads, scan)) = &kernels.numbers {
            phases.push(launch(heads, &windows.heads_params));
            let numbered = windows.numbers.iter().zip(&plan.levels).filter(|(_, level)| level.is_numbered);
            phases.extend(numbered.map(|(numbers, _)| {
                let values = slice(*numbers, 0, Element::U32);
                Phase::Primitive(Primitive::Scan { scan, values, joined: values, scratch })
            }));
        }
        phases.extend(kernels.starts.iter().map(|starts| launch(starts, &windows.starts_params)));
        for ((scan, kernel), region) in plan.scans.iter().zip(&kernels.scans).zip(&windows.scans) {
            let joined = slice(*region, 0, scan.element());
            match kernel {
                ValueScan::All(kernel) => {
                    let output = plan.scanned_as_is(scan).zip(self.memory.columns);
                    let values = output.map_or(joined, |(output, columns)| {
                        let word = self.row.word_of(&self.row.columns[output]);
                        slice(columns, 8 * word * self.places() as usize, scan.element())
                    });
                    phases.push(Phase::Primitive(Primitive::Scan { scan: kernel, values, joined, scratch }));
                }
                ValueScan::WithinRuns(scan, level) => {
                    let keys = slice(windows.numbers[*level], 0, Element::U32);
                    phases.push(Phase::Primitive(Primitive::ScanKeyed { scan, keys, values: joined, scratch }));
                }
                ValueScan::Tree(leaves) => {
                    let levels = std::iter::successors(Some(leaves / 2), |nodes| Some(nodes / 2));
                    for (nodes, kernel) in levels.take_while(|nodes| *nodes > 0).zip(kernels.tree.iter().cycle()) {
                        let operands = vec![Argument::Region(*region), Argument::U64(nodes)];
                        phases.push(Phase::Launch(Launch::over(kernel, nodes, blocks(info), operands)));
                    }
                }
            }
        }
        phases.extend(kernels.lists.iter().map(|lists| launch(lists, &windows.lists_params)));
        phases.push(launch(&kernels.columns, &windows.columns_params));
        phases
    }
}
