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
    heads: Kernel,
    starts: Kernel,
    columns: Kernel,
    /// What lists rows that have a value, if there are lists.
    lists: Option<Kernel>,
    /// What makes a level of a segment tree, if there is one.
    tree: Option<Kernel>,
    /// The scan of heads.
    numbers: Scan,
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
        Ok(Some(WindowKernels {
            heads: module.kernel(&self.name(HEADS))?,
            starts: module.kernel(&self.name(STARTS))?,
            columns: module.kernel(&self.name(COLUMNS))?,
            numbers: Scan::new(device, NUMBERS.input, NUMBERS.of, NUMBERS.kind)?,
            lists: (!plan.lists.is_empty()).then(|| module.kernel(&self.name(LISTS))).transpose()?,
            tree: has_trees.then(|| module.kernel(&self.name(TREE))).transpose()?,
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
        let slice = |region, element| Slice { region, element, len: rows };
        let mut phases = vec![launch(&kernels.heads, &windows.heads_params)];
        let numbered = windows.numbers.iter().zip(&plan.levels).filter(|(_, level)| level.values.is_none());
        let numbered = numbered.map(|(numbers, _)| {
            let values = slice(*numbers, Element::U32);
            Phase::Primitive(Primitive::Scan { scan: &kernels.numbers, values, scratch })
        });
        phases.extend(numbered);
        if plan.has_starts() {
            phases.push(launch(&kernels.starts, &windows.starts_params));
        }
        for ((scan, kernel), region) in plan.scans.iter().zip(&kernels.scans).zip(&windows.scans) {
            let values = slice(*region, scan.element());
            match kernel {
                ValueScan::All(scan) => phases.push(Phase::Primitive(Primitive::Scan { scan, values, scratch })),
                ValueScan::WithinRuns(scan, level) => {
                    let keys = slice(windows.numbers[*level], Element::U32);
                    phases.push(Phase::Primitive(Primitive::ScanKeyed { scan, keys, values, scratch }));
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
