//! The device libraries that generated source calls.

use warpcube_column::{PLAIN_LIBRARY, decoding_library};
use warpcube_gpu::Program;
use warpcube_gpu::prims::{KEYS, ONE_BLOCK};

/// The device library that generated kernels call.
const LIBRARY: &str = include_str!("../../kernels/scan.cuh");
/// What few of them call beside it, with the marks by which those are known.
const WIDE_KEYS: &str = include_str!("../../kernels/wide_keys.cuh");
const WIDE_KEYS_MARKS: [&str; 4] = ["wc_wide_", "wc_float_key", "nan_null", "wc_add_months"];
/// Exact sums of floats, with the mark by which programs are known that have some.
const FIXED: &str = include_str!("../../kernels/fixed.cuh");
const FIXED_MARK: &str = "wc_fixed";
/// Values of groups that another pipeline scans, and what is computed of integers in 128 and 256 bits, with marks.
const GROUP_VALUES: &str = include_str!("../../kernels/group_values.cuh");
const GROUP_VALUES_MARKS: [&str; 4] = ["wc_of_order", "wc_deviations", "wc_quotient", "wc_nearest_double"];
/// Windows, with the mark of the kernel that each has.
const WINDOWS: &str = include_str!("../../kernels/windows.cuh");
const WINDOWS_MARK: &str = "wc_window_span";
/// Preaggregation of runs, with its mark.
const RUNS: &str = include_str!("../../kernels/runs.cuh");
const RUNS_MARK: &str = "wc_find_runs";
/// Tests of strings without a dictionary, with their marks.
const TEXT_MATCH: &str = include_str!("../../kernels/text_match.cuh");
const TEXT_MATCH_MARKS: [&str; 2] = ["wc_match<", "wc_match_step<"];
/// Joins with several matches for a row, with their mark.
const EXPAND: &str = include_str!("../../kernels/expand.cuh");
const EXPAND_MARK: &str = "wc_each_match";
/// Scans that stop and go on, with their mark.
const STOPS: &str = include_str!("../../kernels/stops.cuh");
const STOPS_MARKS: [&str; 2] = ["wc_no_room", "wc_has_stopped"];
/// What kernels of a top-k call, with the marks by which they are known.
const TOPK: &str = include_str!("../../kernels/topk.cuh");
const TOPK_MARKS: [&str; 3] = ["wc_chunk_of_row", "wc_append_rank", "WcKey<"];

/// A program of generated source behind what it calls.
pub(crate) fn with_library(name: impl Into<String>, source: String) -> Program {
    let has = |marks: &[&str]| marks.iter().any(|mark| source.contains(mark));
    let mut library = vec![PLAIN_LIBRARY, LIBRARY];
    let is_topk = has(&TOPK_MARKS);
    for (text, is_called) in [
        (KEYS, is_topk),
        (ONE_BLOCK, is_topk),
        (TOPK, is_topk),
        (WIDE_KEYS, has(&WIDE_KEYS_MARKS)),
        (FIXED, has(&[FIXED_MARK])),
        (GROUP_VALUES, has(&GROUP_VALUES_MARKS)),
        (EXPAND, has(&[EXPAND_MARK])),
        (RUNS, has(&[RUNS_MARK])),
        (WINDOWS, has(&[WINDOWS_MARK])),
        (STOPS, has(&STOPS_MARKS)),
    ] {
        library.extend(is_called.then_some(text));
    }
    library.extend(decoding_library(&source));
    library.extend(has(&TEXT_MATCH_MARKS).then_some(TEXT_MATCH));
    Program::over(library, name, source)
}
