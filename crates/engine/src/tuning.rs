//! Choices in generated kernels that do not change results, only speed.
//!
//! The defaults were found on an NVIDIA H200 with `warpcube ssb --sf 20` (bench/results); others can be tried without a
//! build by `WARPCUBE_TUNING=name=value,…`.

use std::str::FromStr;

use warpcube_column::TILE_SLOTS;
use warpcube_gpu::DeviceInfo;

/// Slots of a hashed group table at first.
pub(crate) const GROUP_SLOTS: u64 = 1 << 20;

/// What can be tuned.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuning {
    /// Share of 64-byte lines with a surviving row below which a column is gathered instead of loaded whole.
    pub eager_lines: f64,
    /// As `eager_lines`, for a column that only a step of little use asks for: one that leaves most rows, or looks into
    /// a table that shared memory cannot hold.
    pub eager_lines_weak: f64,
    /// Share of surviving rows above which rows are worked on in place instead of queued.
    pub in_place: f64,
    /// Share of rows in the queue from which on columns that were loaded whole, and are read once more for these rows,
    /// are kept in the L2 cache. On an H200 (2026-11-28, SSB scale 20) query 2.1 takes 0.245 ms with it and 0.255
    /// without, 3.1 0.297 and 0.322, 4.1 0.300 and 0.315; that the queue carries their offsets is worth 0.003 ms to 2.1
    /// and takes others up to a fifth longer.
    pub again_rows: f64,
    /// Registers that loaded vectors may take a thread, in bytes a row.
    pub vector_registers: usize,
    /// Values of each column that a lane loads at once, where the columns loaded take one 4-byte register a row.
    pub slots_one: usize,
    /// As `slots_one`, where packed columns take at most half a register a row and all rows go into one group.
    pub slots_narrow: usize,
    /// As `slots_one`, for two.
    pub slots_two: usize,
    /// As `slots_one`, for three to six.
    pub slots_some: usize,
    /// As `slots_one`, for more.
    pub slots_many: usize,
    /// Most values of a column that a lane loads at once where rows are worked on in place.
    pub slots_in_place: usize,
    /// Whether the next vectors are loaded before the present ones are worked on.
    pub prefetch: bool,
    /// Most bytes of a lane's vectors of a step that are loaded so in blocks of 1,024 threads, whose registers are few.
    /// On an H200 (2026-11-27) SSB's device mean was 0.1684 ms with 112, 0.1653 with 72 and 0.1670 with 0; query 2.1,
    /// at 72, lost 5 % by it.
    pub large_prefetch: usize,
    /// Most steps of a warp that are on their way at once, where all rows are worked on in place and go into one group.
    pub steps_ahead: usize,
    /// Blocks of 256 threads that registers must allow on a multiprocessor, for scans with a queue.
    pub blocks: u32,
    /// As `blocks`, for scans with a queue that unpack columns.
    pub blocks_packed: u32,
    /// As `blocks`, for scans without one.
    pub blocks_in_place: u32,
    /// As `blocks_in_place`, for scans that stop where a row finds no room: without it the state of a warp takes the
    /// registers of a block. On an H200 (2026-11-29) the scan of TPC-H's query 3 took 264 us with 80 registers, and
    /// 324 us with 96.
    pub blocks_resuming: u32,
    /// Rows of the smallest table whose vectors are looked at before their rows: the warps of a GPU have those of a
    /// smaller one in a step or two. By default those of any table are on emulated devices.
    pub skip_rows: u64,
    /// Whether filters on loaded vectors come before probes, whatever their selectivity.
    pub filters_first: bool,
    /// Time of a probe over that of a filter, by which steps are ordered.
    pub probe_cost: f64,
    /// The same where the table's bitmap does not fit shared memory.
    pub far_probe_cost: f64,
    /// The same where a row may have several matches: whatever does not need them comes before.
    pub matches_cost: f64,
    /// The same of a filter that tests strings: their bytes are some ten times those of other columns.
    pub text_cost: f64,
    /// Share of rows above which a step that leaves so many is weak (`eager_lines_weak`).
    pub weak_share: f64,
    /// Values of a vector up to which each of them is looked up in a table, where vectors are looked at before their
    /// rows.
    pub looked_up_values: u64,
    /// Tickets a warp draws on average, were all of them large.
    pub tickets_per_warp: u64,
    /// Most chunks that a launch scans; zero has one launch scan all of them.
    pub launch_chunks: u32,
    /// Share of rows, the last ones, that are cut into smaller tickets.
    pub small_tickets: f64,
    /// Most copies of group cells in global memory, where many rows add to few groups, and most bytes of them.
    pub group_copies: u32,
    /// See `group_copies`.
    pub copies_bytes: usize,
    /// Rows that come to groups in global memory, from which on blocks have a cache of their cells, and most bytes of
    /// it.
    pub cached_rows: u64,
    /// See `cached_rows`.
    pub cache_bytes: usize,
    /// Bytes of shared memory a warp that lanes' private cells of groups may take.
    pub private_bytes: usize,
    /// Rows below which private cells are not worth their zeroing.
    pub private_rows: u64,
    /// Bytes of shared memory that a block's cells of groups may take; bitmaps need the rest.
    pub shared_bytes: usize,
    /// Rows a group from which on a block's cells are worth their zeroing and flushing: below, atomic operations in
    /// global memory seldom meet.
    pub shared_rows: f64,
    /// Keys of groups up to which cells are indexed by key.
    pub dense_groups: u64,
    /// Places a row up to which a join table is indexed by key.
    pub direct_places_per_row: u64,
    /// Places up to which a join table is indexed by key whatever the rows are.
    pub direct_places: u64,
    /// Bytes of tables and cells in shared memory beyond which a multiprocessor has one large block.
    pub small_shared_bytes: usize,
    /// Most codes of a column for which a byte each in shared memory tells what a join table has.
    pub shared_codes: usize,
    /// Bytes of registers for the vectors of steps that are worked on in turn.
    pub ahead_bytes: f64,
    /// Most bytes of registers a row at which steps are made as long as tiles of differences.
    pub tile_registers: usize,
    /// As `blocks`, for scans that add up rows by runs, and wait for shared memory. By runs was measured on an H100
    /// (2026-11-25, TPC-H scale 10, four rows a run): groups of query 18 take 4.89 ms row by row, 3.00 by runs into a
    /// hash table, 0.82 as a list; extremes of query 21 take 3.01, 1.77 and 1.69. The limits for runs of other lengths
    /// are estimates.
    pub blocks_runs: u32,
    /// Bytes of a lane's vectors of a step up to which `blocks_runs` and `blocks_resuming` hold: longer ones need the
    /// registers.
    pub run_vector_bytes: usize,
    /// Rows a run of equal keys, of those that pass the steps, from which on runs are added up in shared memory before
    /// they meet a table of groups or of extremes. TPC-H's orders have four rows each.
    pub run_rows: f64,
    /// As `in_place`, where rows are added up by runs: those of a queue lose their order.
    pub in_place_runs: f64,
    /// Values of a key above which `in_place_runs` holds: with fewer, a block may have an entry for each.
    pub run_keys: u64,
    /// Most bytes of shared memory that the runs of a block of 256 threads take.
    pub run_bytes: usize,
    /// Bytes of a table of extremes from which on its entries are not zeroed but written once, where it is built over a
    /// sorted key: a kernel more, behind the build, enters the ends of runs.
    pub ordered_bytes: u64,
    /// Bytes up to which a join table is indexed by key; a larger one is where slots would take more. TPC-H 10 at scale
    /// 100 would have one of 16 GB for 4 % of its keys.
    pub direct_bytes: u64,
    /// Slots of a hashed group table, and rows of a result whose number is guessed, at first.
    pub group_slots: u64,
    /// Keys that any hashed join table has slots for, beside twice as many as are expected.
    pub expected_keys: u64,
    /// Whether groups by a sorted column take places in the order in which they are found, where they would be hashed.
    pub ordered_groups: bool,
    /// Bytes up to which a group table is downloaded whole, and not gathered first.
    pub whole_download_bytes: usize,
    /// How many times more or fewer rows the filters of the same registers may let pass with other constants than with
    /// those that a kernel was made for, to take it over: the order of its steps and what it loads whole fit about as
    /// many.
    pub passing_factor: f64,
    /// Rows of the smallest table for whose first rows a threshold is drawn; all rows of smaller ones are candidates.
    pub sampled_rows: u64,
    /// Rows drawn among the best that are enough for a threshold.
    pub better_samples: u64,
    /// Milliseconds that another algorithm of a top-k has to save over the threshold form: most have kernels for each
    /// k, which are compiled first.
    pub saved_ms: f64,
    /// Standard deviations by which the threshold of a top-k is put below where the sample says.
    pub top_deviations: f64,
    /// What the room for its candidates is multiplied by.
    pub top_room: f64,
    /// Rows of a sort that are put in order by the selection of a top-k; more are by a radix sort, whose launches take
    /// longer than few rows do.
    pub selected_rows_max: u64,
    /// Most matches that joins with several of them may give a sum whose cells hold fewer: beyond, the statement runs
    /// elsewhere.
    pub counted_matches: u64,
    /// Whether kernels start while those before them end.
    pub early_launch: bool,
    /// Whether kernels that build tables are compiled with less effort than those that scan.
    pub quick_builds: bool,
    /// Whether a first run takes kernels that are compiled with the least effort, to be followed by better ones if the
    /// statement is run again: never (0), on GPUs (1), on emulated devices too (2).
    pub tiers: u32,
    /// Whether a run that may be answered elsewhere ([`crate::RunOptions::elsewhere`]) does not wait for a compiler:
    /// never (0), on GPUs (1), on emulated devices too (2).
    pub yields: u32,
}

impl Tuning {
    /// The defaults for a device.
    pub fn of(info: &DeviceInfo) -> Tuning {
        match info.emulated {
            // It has the tables of tests.
            true => Tuning { skip_rows: 0, cached_rows: 0, ..Tuning::default() },
            false => Tuning::default(),
        }
    }

    /// Rows of the longest step of a warp: tickets have a multiple of them, but those that small tables are built by,
    /// which have a multiple of their own steps. No encoding is decoded by more rows than a step has.
    pub(crate) fn step_rows_max(&self) -> u64 {
        let slots = [self.slots_narrow, self.slots_one, self.slots_two, self.slots_some, self.slots_many, TILE_SLOTS];
        slots.into_iter().max().unwrap_or(32) as u64 * 32
    }
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            eager_lines: 0.7,
            counted_matches: u64::MAX,
            eager_lines_weak: 0.9,
            in_place: 0.5,
            again_rows: 0.001,
            vector_registers: 48,
            slots_narrow: 32,
            slots_one: 16,
            slots_two: 8,
            slots_some: 8,
            slots_many: 4,
            slots_in_place: 8,
            prefetch: true,
            large_prefetch: 64,
            steps_ahead: 4,
            blocks: 4,
            blocks_packed: 4,
            blocks_in_place: 2,
            blocks_resuming: 3,
            skip_rows: 1 << 20,
            filters_first: true,
            probe_cost: 1.05,
            far_probe_cost: 4.0,
            matches_cost: 1e3,
            text_cost: 8.0,
            weak_share: 0.5,
            looked_up_values: 32,
            tickets_per_warp: 4,
            launch_chunks: 0,
            small_tickets: 0.3,
            group_copies: 32,
            copies_bytes: 4 << 20,
            cached_rows: 1 << 20,
            cache_bytes: 12 << 10,
            private_bytes: 14 << 10,
            private_rows: 1 << 16,
            shared_bytes: 64 << 10,
            shared_rows: 64.0,
            dense_groups: 1 << 22,
            direct_places_per_row: 16,
            direct_places: 1 << 16,
            small_shared_bytes: 24 << 10,
            shared_codes: 16 << 10,
            ahead_bytes: 128.0,
            tile_registers: 12,
            blocks_runs: 4,
            run_vector_bytes: 64,
            run_rows: 1.25,
            in_place_runs: 0.25,
            run_keys: 8 << 10,
            run_bytes: 96 << 10,
            ordered_bytes: 32 << 20,
            direct_bytes: 8 << 30,
            group_slots: GROUP_SLOTS,
            expected_keys: 1 << 12,
            ordered_groups: true,
            whole_download_bytes: 64 << 10,
            passing_factor: 4.0,
            sampled_rows: 1 << 15,
            better_samples: 1024,
            saved_ms: 0.1,
            top_deviations: 6.0,
            top_room: 1.0,
            selected_rows_max: 1 << 20,
            early_launch: true,
            quick_builds: true,
            tiers: 1,
            yields: 1,
        }
    }
}

impl FromStr for Tuning {
    type Err = String;

    fn from_str(text: &str) -> Result<Tuning, String> {
        let mut tuning = Tuning::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').ok_or_else(|| format!("'{part}' is not name=value"))?;
            let refuse = || format!("'{value}' is no value for '{name}'");
            let share = || value.parse::<f64>().map_err(|_| refuse());
            let number = || value.parse::<u32>().map_err(|_| refuse());
            let slots = || match value {
                "4" | "8" | "16" | "32" => value.parse::<usize>().map_err(|_| refuse()),
                _ => Err(format!("{}: 4, 8, 16 or 32", refuse())),
            };
            let flag = || value.parse::<bool>().map_err(|_| refuse());
            match name {
                "counted_matches" => tuning.counted_matches = number()?.into(),
                "eager_lines" => tuning.eager_lines = share()?,
                "eager_lines_weak" => tuning.eager_lines_weak = share()?,
                "in_place" => tuning.in_place = share()?,
                "again_rows" => tuning.again_rows = share()?,
                "vector_registers" => tuning.vector_registers = number()? as usize,
                "slots_narrow" => tuning.slots_narrow = slots()?,
                "slots_in_place" => tuning.slots_in_place = slots()?,
                "slots_one" => tuning.slots_one = slots()?,
                "slots_two" => tuning.slots_two = slots()?,
                "slots_some" => tuning.slots_some = slots()?,
                "slots_many" => tuning.slots_many = slots()?,
                "prefetch" => tuning.prefetch = flag()?,
                "large_prefetch" => tuning.large_prefetch = number()? as usize,
                "steps_ahead" => tuning.steps_ahead = number()?.clamp(1, 8) as usize,
                "blocks" => tuning.blocks = number()?.clamp(1, 8),
                "blocks_packed" => tuning.blocks_packed = number()?.clamp(1, 8),
                "blocks_in_place" => tuning.blocks_in_place = number()?.clamp(1, 8),
                "blocks_resuming" => tuning.blocks_resuming = number()?.clamp(1, 8),
                "skip_rows" => tuning.skip_rows = number()?.into(),
                "filters_first" => tuning.filters_first = flag()?,
                "probe_cost" => tuning.probe_cost = share()?,
                "far_probe_cost" => tuning.far_probe_cost = share()?,
                "matches_cost" => tuning.matches_cost = share()?,
                "text_cost" => tuning.text_cost = share()?,
                "weak_share" => tuning.weak_share = share()?,
                "looked_up_values" => tuning.looked_up_values = number()?.into(),
                "tickets_per_warp" => tuning.tickets_per_warp = u64::from(number()?.max(1)),
                "launch_chunks" => tuning.launch_chunks = number()?,
                "small_tickets" => tuning.small_tickets = share()?,
                "group_copies" => tuning.group_copies = number()?.clamp(1, 64),
                "copies_bytes" => tuning.copies_bytes = number()? as usize,
                "cached_rows" => tuning.cached_rows = number()?.into(),
                "cache_bytes" => tuning.cache_bytes = number()? as usize,
                "private_bytes" => tuning.private_bytes = number()? as usize,
                "private_rows" => tuning.private_rows = number()?.into(),
                "shared_bytes" => tuning.shared_bytes = number()? as usize,
                "shared_rows" => tuning.shared_rows = share()?,
                "dense_groups" => tuning.dense_groups = number()?.into(),
                "direct_places_per_row" => tuning.direct_places_per_row = number()?.into(),
                "direct_places" => tuning.direct_places = number()?.into(),
                "small_shared_bytes" => tuning.small_shared_bytes = number()? as usize,
                "shared_codes" => tuning.shared_codes = number()? as usize,
                "ahead_bytes" => tuning.ahead_bytes = share()?,
                "tile_registers" => tuning.tile_registers = number()? as usize,
                "blocks_runs" => tuning.blocks_runs = number()?.clamp(1, 8),
                "run_vector_bytes" => tuning.run_vector_bytes = number()? as usize,
                "run_rows" => tuning.run_rows = share()?,
                "in_place_runs" => tuning.in_place_runs = share()?,
                "run_keys" => tuning.run_keys = number()?.into(),
                "run_bytes" => tuning.run_bytes = number()? as usize,
                "ordered_bytes" => tuning.ordered_bytes = number()?.into(),
                "direct_bytes" => tuning.direct_bytes = number()?.into(),
                "group_slots" => tuning.group_slots = number()?.into(),
                "expected_keys" => tuning.expected_keys = number()?.into(),
                "ordered_groups" => tuning.ordered_groups = flag()?,
                "whole_download_bytes" => tuning.whole_download_bytes = number()? as usize,
                "passing_factor" => tuning.passing_factor = share()?.max(1.0),
                "sampled_rows" => tuning.sampled_rows = number()?.into(),
                "better_samples" => tuning.better_samples = number()?.into(),
                "saved_ms" => tuning.saved_ms = share()?,
                "top_deviations" => tuning.top_deviations = share()?,
                "top_room" => tuning.top_room = share()?,
                "selected_rows_max" => tuning.selected_rows_max = number()?.into(),
                "early_launch" => tuning.early_launch = flag()?,
                "quick_builds" => tuning.quick_builds = flag()?,
                "tiers" => tuning.tiers = number()?.min(2),
                "yields" => tuning.yields = number()?.min(2),
                other => return Err(format!("nothing named '{other}' can be tuned")),
            }
        }
        Ok(tuning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_names_what_differs_from_the_defaults() {
        assert_eq!("".parse(), Ok(Tuning::default()));
        let tuning: Tuning = "slots_one=32, prefetch=false,eager_lines=0.25".parse().unwrap();
        assert_eq!(tuning, Tuning { slots_one: 32, prefetch: false, eager_lines: 0.25, ..Tuning::default() });
        let short: Tuning = "slots_narrow=4,slots_one=4,slots_two=4,slots_some=4".parse().unwrap();
        assert_eq!(short.step_rows_max(), 512, "a tile of GPU-DFOR");
        assert!("slots_one=5".parse::<Tuning>().unwrap_err().contains("4, 8, 16 or 32"));
        assert!("slotz=4".parse::<Tuning>().unwrap_err().contains("'slotz'"));
    }
}
