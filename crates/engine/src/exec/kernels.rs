//! The kernels of a bound fragment: compiled, and how they are launched.

use std::sync::Arc;
use std::time::Instant;

use warpcube_column::Relation;
use warpcube_gpu::{Effort, Kernel, LaunchShape, Module, Program};

use crate::codegen::computed::COMPUTE;
use crate::codegen::stop_memory::WARPS_PER_MULTIPROCESSOR;
use crate::error::{EngineError, NotCompiled, Result};
use crate::exec::bind::{BoundFragment, Guesses, Root, scanned_tops};
use crate::exec::binding::{Binding, Finish, Kernels, Launch};
use crate::exec::engine::Engine;
use crate::exec::growth::Moves;
use crate::exec::report::RunReport;
use crate::plan::launches::LaunchGroup;

impl Engine {
    /// Compiles a bound fragment and chooses its launches.
    pub(super) fn prepare(
        &self,
        fragment: BoundFragment,
        tables: &[Relation],
        guesses: Guesses,
        elsewhere: bool,
        report: &mut RunReport,
    ) -> Result<Binding> {
        let start = Instant::now();
        let _span = tracing::info_span!("compile").entered();
        let compiles = self.device().compiles();
        let emulated = u32::from(self.device().info().emulated);
        let (tiers, yields) = (self.tuning.tiers > emulated, elsewhere && self.tuning.yields > emulated);
        let in_haste = |program: &Program| match tiers && !self.device().is_cached(program) {
            true => program.with_effort(Effort::Least),
            false => program.clone(),
        };
        let first: Vec<Program> = fragment.parts.iter().map(in_haste).collect();
        let hasty = first != fragment.parts;
        // Programs that many fragments share are compiled beside those of this one, with all effort.
        let own = first.len();
        let all: Vec<Program> = first.into_iter().chain(fragment.shared_programs(self.device().info())).collect();
        if yields && !all.iter().all(|program| self.device().is_cached(program)) {
            let loaded = std::mem::take(&mut report.loaded);
            return Err(EngineError::NotCompiled(Arc::new(NotCompiled { programs: all, loaded })));
        }
        let modules = self.device().compile_all(&all)?;
        let kernels = self.kernels(&fragment, &modules[..own])?;
        report.compile += start.elapsed();
        report.compiled |= self.device().compiles() > compiles;
        Ok(Binding::new(Arc::new(fragment), tables, guesses, Arc::new(kernels), hasty))
    }

    /// Compiles what moves entries to a larger arena.
    pub(super) fn compile_moves(&self, moves: &Moves, report: &mut RunReport) -> Result<()> {
        let (start, compiles) = (Instant::now(), self.device().compiles());
        self.device().compile_all(&moves.programs())?;
        report.compile += start.elapsed();
        report.compiled |= self.device().compiles() > compiles;
        Ok(())
    }

    /// The launches of a bound fragment, and the kernels beside them, of the modules of its parts.
    pub(super) fn kernels(&self, fragment: &BoundFragment, modules: &[Arc<Module>]) -> Result<Kernels> {
        // All kernels of one program, or those of a launch group in the launch group's.
        let module = |position: usize| &modules[position.min(modules.len() - 1)];
        let mut launches = Vec::with_capacity(fragment.launch_groups.len());
        for (position, group) in fragment.launch_groups.iter().enumerate() {
            launches.push(self.launch_of(fragment, group, module(position).kernel(&group.name)?)?);
        }
        let last = module(launches.len());
        let finish = match &fragment.root {
            Root::Groups(_, None) | Root::Rows(_) => Finish::Nothing,
            Root::TopK(top) if top.last_block().is_some() => Finish::Nothing,
            Root::Groups(_, Some(gathered)) => Finish::Gather(last.kernel(match gathered.computed {
                None => "compact_groups",
                Some(_) => COMPUTE,
            })?),
            Root::TopK(top) => Finish::TopK(Box::new(top.kernels(self.device(), last)?)),
        };
        let first = launches.len() + usize::from(!matches!(finish, Finish::Nothing));
        let scanned = scanned_tops(&fragment.pipelines).enumerate();
        let tops = scanned
            .map(|(position, (pipeline, top))| Ok((pipeline, top.kernels(self.device(), module(first + position))?)));
        let tops = tops.collect::<Result<Vec<_>>>()?;
        let behind = module(modules.len() - 1);
        let matches = match fragment.has_matches {
            true => Some((behind.kernel("place_matches")?, behind.kernel("order_matches")?)),
            false => None,
        };
        let ends = fragment.has_ends.then(|| behind.kernel("enter_ends")).transpose()?;
        Ok(Kernels { launches, finish, tops, matches, ends })
    }

    /// A persistent grid: for each member as many blocks as are resident at once, fewer where tickets are few.
    fn launch_of(&self, bound: &BoundFragment, group: &LaunchGroup, kernel: Kernel) -> Result<Launch> {
        let block = bound.pipelines[group.members[0]].plan.shared.block;
        let shared_bytes = group.shared_bytes(&bound.pipelines);
        let resident = kernel.blocks_per_multiprocessor(block, shared_bytes)?.max(1);
        // No more warps than have a place for their state.
        let resident = resident.min(WARPS_PER_MULTIPROCESSOR * 32 / block).max(1);
        let most = resident * self.device().info().multiprocessors;
        let (mut grid, mut firsts) = (0, Vec::with_capacity(group.members.len()));
        for index in &group.members {
            firsts.push(grid);
            let tickets = bound.pipelines[*index].plan.tickets.iter().map(|tickets| tickets.count).max().unwrap_or(0);
            grid += most.min(tickets.div_ceil(block / 32)).max(1);
        }
        firsts.remove(0);
        Ok(Launch { kernel, shape: LaunchShape { grid, block, shared_bytes }, firsts })
    }
}
