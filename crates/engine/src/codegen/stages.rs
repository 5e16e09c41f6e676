//! Rows with several matches, in kernel source: the matches of a warp's rows are shared out among all its lanes.
//!
//! A stage ends in a probe with several matches: it leaves their places, `first` and `count`. The next stage has a
//! match a lane, with the row that it belongs to, and reads again what it needs of the row.

use std::fmt::Write;

/// What the warp's rows `row0` do that are `valid0`: statements up to each probe that may have several matches, with
/// the name of the table's row numbers, then the last ones. Of a scan that resumes, all lanes take a match each for a
/// number of times (`calls`); those that an earlier launch has taken are skipped. Where matches are counted, those of
/// the last stage are (`matches`).
pub(super) fn of_matches(
    stages: &[(String, String)],
    last_statements: &str,
    (control, resumes, counts): (&str, bool, bool),
) -> String {
    let names = |stage: usize| -> String {
        let matched = |of: usize| format!("const uint32_t match{of} = match{of}_{stage}; (void)match{of};\n");
        let matched: String = (0..stage).map(matched).collect();
        format!("const uint32_t row = row{stage}; (void)row;\n{matched}")
    };
    let mut text = String::new();
    for (stage, (statements, order)) in stages.iter().enumerate() {
        let next = stage + 1;
        let give = if stage > 0 { "return " } else { "" };
        let counted =
            if counts && next == stages.len() { format!("matches += count{stage};\n") } else { String::new() };
        let _ = write!(
            text,
            "uint32_t first{stage} = 0, count{stage} = 0;
if (valid{stage}) [&]() {{
uint32_t& first = first{stage}; uint32_t& count = count{stage};
{}{statements}}}();
{counted}{give}wc_each_match({control}, first{stage}, count{stage},
[&](uint32_t owner, uint32_t place, const bool valid{next}) {{
const uint32_t row{next} = __shfl_sync(WC_FULL_MASK, row{stage}, owner);
const uint32_t match{stage}_{next} = valid{next} && place != WC_NO_MATCH ? {order}[place] : WC_NO_MATCH;
",
            names(stage)
        );
        for of in 0..stage {
            let _ = writeln!(
                text,
                "const uint32_t match{of}_{next} = __shfl_sync(WC_FULL_MASK, match{of}_{stage}, owner);"
            );
        }
    }
    let last = stages.len();
    let body = format!("[&]() {{\n{}{}}}();", names(last), last_statements);
    let _ = match resumes {
        false => writeln!(text, "if (valid{last}) {body}\nreturn false;"),
        // Lanes that have taken their match before do not take it again.
        true => writeln!(
            text,
            "const uint32_t call = calls++;
if (call < skipped_calls) return false;
if (valid{last} && (call != skipped_calls || (owing_lanes >> lane & 1u))) {body}
if (!__any_sync(WC_FULL_MASK, unplaced != 0)) return false;
skipped_calls = call;
return true;"
        ),
    };
    text.push_str(&"});\n".repeat(last));
    text
}
