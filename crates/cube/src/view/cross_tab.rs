//! Cross-tabs as text: heads aligned with their columns, numbers to the right, elements indented below those that they
//! are part of.

use std::fmt::Write;
use std::ops::Range;

use unicode_width::UnicodeWidthStr;

use super::cell_text;
use crate::aggregate::CellValue;
use crate::ask::{CrossTabAnswer, Label, Page};
use crate::model::{CubeModel, NumberFormat};

/// Characters between columns.
const GAP: usize = 2;
/// Characters of an indented level.
const INDENT: usize = 2;

/// The text of a cross-tab, lines ended by a line feed. Where `width` characters do not hold all columns, they follow
/// in several blocks, each with the heads of the rows.
pub fn cross_tab_text(model: &CubeModel, answer: &CrossTabAnswer, width: Option<usize>) -> String {
    let mut text = String::new();
    let places = answer.heading.iter().map(|(axis, place, is_default)| {
        let default = if *is_default { " (default)" } else { "" };
        format!("{axis}: {place}{default}")
    });
    let heading = places.collect::<Vec<_>>().join(" · ");
    if !heading.is_empty() {
        text.push_str(&heading);
        text.push_str("\n\n");
    }
    let is_empty = |page: &Page| page.rows.is_empty() || page.columns.is_empty();
    if answer.pages.iter().all(is_empty) {
        text.push_str(match answer.texts {
            0 => "No cell of it is filled.\n",
            _ => "No cell of it has a number.\n",
        });
    }
    for page in answer.pages.iter().filter(|page| !is_empty(page)) {
        if !page.labels.is_empty() {
            let names = answer.page_axes.iter().zip(&page.labels);
            let names: Vec<String> = names.map(|(axis, label)| format!("{axis}: {}", label.caption)).collect();
            let _ = writeln!(text, "{}", names.join(" · "));
        }
        page_text(&mut text, model, answer, page, width);
        text.push('\n');
    }
    let counted = |(count, what): &(u64, &str)| format!("{count} {what}{}", if *count == 1 { "" } else { "s" });
    let hidden: Vec<String> = [(answer.hidden.0, "row"), (answer.hidden.1, "column")]
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(counted)
        .collect();
    if hidden.is_empty() && answer.rows_cut == 0 && text.ends_with("\n\n") {
        text.pop();
    }
    if answer.rows_cut > 0 {
        let _ = writeln!(text, "{} of a lower rank hidden", counted(&(answer.rows_cut, "row")));
    }
    if !hidden.is_empty() {
        let _ = writeln!(text, "{} without a value hidden (the option `empty` shows all)", hidden.join(" and "));
    }
    if answer.texts > 0 {
        let texts = if answer.texts == 1 { "1 text" } else { &format!("{} texts", answer.texts) };
        let _ = writeln!(text, "{texts} at these cells: --format csv shows texts");
    }
    text
}

fn page_text(text: &mut String, model: &CubeModel, answer: &CrossTabAnswer, page: &Page, width: Option<usize>) {
    let heads = row_heads(answer, page);
    let head_widths: Vec<usize> =
        (0..answer.row_axes.len().max(1)).map(|axis| widest(heads.iter().map(|head| &head[axis]))).collect();
    let head_width = head_widths.iter().sum::<usize>() + GAP * (head_widths.len() - 1);
    let cells: Vec<Vec<String>> = page
        .rows
        .iter()
        .map(|row| {
            let of_row = format(&row.labels);
            let outside = format(&page.labels).or(answer.format.as_ref());
            let text = |(at, cell): (usize, &Option<CellValue>)| {
                let Some(cell) = *cell else { return String::new() };
                let of_element = of_row.or_else(|| format(&page.columns[at])).or(outside);
                cell_text(&model.measures()[row.measures[at]], of_element, cell)
            };
            row.cells.iter().enumerate().map(text).collect()
        })
        .collect();
    let widths = column_widths(&page.columns, &cells);
    for (number, block) in blocks(head_width, &widths, width).into_iter().enumerate() {
        if number > 0 {
            text.push('\n');
        }
        column_heads(text, answer, &page.columns, &widths, &block, head_width);
        let block_width: usize = head_width + block.clone().map(|column| widths[column] + GAP).sum::<usize>();
        let _ = writeln!(text, "{}", "─".repeat(block_width));
        for (head, row) in heads.iter().zip(&cells) {
            let mut line = String::new();
            for (axis, (label, width)) in head.iter().zip(&head_widths).enumerate() {
                let gap = if axis == 0 { 0 } else { GAP };
                let _ = write!(line, "{}{label}{}", " ".repeat(gap), " ".repeat(width - label.width()));
            }
            for column in block.clone() {
                push_right(&mut line, &row[column], widths[column] + GAP);
            }
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
}

/// The number format of the first head that has one, the innermost first.
fn format(labels: &[Label]) -> Option<&NumberFormat> {
    labels.iter().rev().find_map(|label| label.format.as_ref())
}

/// The heads of each row, one text an axis; an outer head that repeats is left out. Ranked rows are one list with all
/// heads.
fn row_heads(answer: &CrossTabAnswer, page: &Page) -> Vec<Vec<String>> {
    let axes = answer.row_axes.len();
    let mut heads: Vec<Vec<String>> = Vec::new();
    let mut last: Option<&Vec<Label>> = None;
    for row in &page.rows {
        if axes == 0 {
            heads.push(vec![String::new()]);
            continue;
        }
        let mut repeats = last.is_some();
        let texts = row.labels.iter().enumerate().map(|(axis, label)| {
            repeats &= axis + 1 < axes && !answer.is_ranked && last.is_some_and(|last| last[axis] == *label);
            if repeats {
                String::new()
            } else {
                format!("{}{}", " ".repeat(label.indent as usize * INDENT), label.caption)
            }
        });
        heads.push(texts.collect());
        last = Some(&row.labels);
    }
    heads
}

/// The width of each column: that of its cells and its innermost head; an outer head may lie over several columns.
fn column_widths(columns: &[Vec<Label>], cells: &[Vec<String>]) -> Vec<usize> {
    let head = |labels: &Vec<Label>| labels.last().map_or(0, |label| label.caption.width());
    let width = |(column, labels)| widest(cells.iter().map(|row| &row[column])).max(head(labels));
    let mut widths: Vec<usize> = columns.iter().enumerate().map(width).collect();
    let outer = columns.first().map_or(0, |labels| labels.len().saturating_sub(1));
    for axis in 0..outer {
        for span in spans(columns, axis, &(0..columns.len())) {
            let wanted = columns[span.start][axis].caption.width();
            let own = widths[span.clone()].iter().map(|width| width + GAP).sum::<usize>() - GAP;
            widths[span.end - 1] += wanted.saturating_sub(own);
        }
    }
    widths
}

/// Runs of columns of a block with the same head on an axis and those outside of it.
fn spans(columns: &[Vec<Label>], axis: usize, block: &Range<usize>) -> Vec<Range<usize>> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    for column in block.clone() {
        match spans.last_mut() {
            Some(span) if columns[span.start][..=axis] == columns[column][..=axis] => span.end = column + 1,
            _ => spans.push(Range { start: column, end: column + 1 }),
        }
    }
    spans
}

/// A line for each axis of the columns. Heads of the innermost axis stand right, as numbers do; others begin where
/// their columns begin.
fn column_heads(
    text: &mut String,
    answer: &CrossTabAnswer,
    columns: &[Vec<Label>],
    widths: &[usize],
    block: &Range<usize>,
    head_width: usize,
) {
    let axes = answer.column_axes.len();
    for axis in 0..axes {
        let mut line = " ".repeat(head_width);
        if axis + 1 == axes {
            for column in block.clone() {
                push_right(&mut line, &columns[column][axis].caption, widths[column] + GAP);
            }
        } else {
            for span in spans(columns, axis, block) {
                let caption = &columns[span.start][axis].caption;
                let own: usize = widths[span].iter().map(|width| width + GAP).sum();
                line.push_str(&" ".repeat(GAP));
                line.push_str(caption);
                line.push_str(&" ".repeat(own.saturating_sub(GAP + caption.width())));
            }
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

/// Runs of columns that fit beside the heads of rows; each has at least one.
fn blocks(head_width: usize, widths: &[usize], width: Option<usize>) -> Vec<Range<usize>> {
    let width = width.unwrap_or(usize::MAX);
    let (mut blocks, mut start, mut taken) = (Vec::new(), 0, head_width);
    for (column, own) in widths.iter().enumerate() {
        if column > start && taken + own + GAP > width {
            blocks.push(start..column);
            (start, taken) = (column, head_width);
        }
        taken += own + GAP;
    }
    blocks.push(start..widths.len());
    blocks
}

fn push_right(line: &mut String, text: &str, width: usize) {
    line.push_str(&" ".repeat(width.saturating_sub(text.width())));
    line.push_str(text);
}

fn widest<'a>(texts: impl Iterator<Item = &'a String>) -> usize {
    texts.map(|text| text.width()).max().unwrap_or(0)
}
