//! Draws a chart as SVG: text in the reader's sans-serif font, light or dark as the reader's system is.
//!
//! Lengths are in pixels. The width of text is estimated, on the large side, so that labels never overlap: those of
//! names that are too wide for their place are turned, and the legend is broken into rows.

use std::f64::consts::PI;
use std::fmt::Write;

use super::chart::{Chart, Look, Panel, Series};
use super::scale::{Range, Scale};

const WIDTH: f64 = 880.0;
const PLOT_HEIGHT: f64 = 250.0;
/// Room at the left of each plot for its marks, and at the left of all for the axis' name.
const MARKS: f64 = 48.0;
const MARGIN: f64 = 26.0;
/// Room above the plots for title and note, and above each for its own title.
const HEAD: f64 = 52.0;
const PANEL_HEAD: f64 = 26.0;
/// Heights of text.
const FONT: f64 = 12.0;
const LINE: f64 = 18.0;
/// Width of a character in heights, at most on average.
const CHARACTER: f64 = 0.6;
/// Angle of turned labels.
const TURN: f64 = 35.0;

/// Colours that can be distinguished on white and on black, also without seeing red and green as different.
const COLOURS: [&str; 8] = ["#2b7bd3", "#e8590c", "#1f9d6b", "#c2419c", "#b8860b", "#0aa0b5", "#8557d6", "#7d8590"];
/// Dashes of computed lines.
const DASHES: [&str; 3] = ["6 4", "2 3", "10 3 2 3"];

const STYLE: &str = "text{font:12px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#24292f}\
    .title{font-weight:600;font-size:15px}.note{font-size:11px;fill:#57606a}.paper{fill:#fff}.grid{stroke:#d8dee4}\
    .axis{stroke:#57606a;fill:none}@media(prefers-color-scheme:dark){text{fill:#e6edf3}.note{fill:#9198a1}\
    .paper{fill:#0d1117}.grid{stroke:#30363d}.axis{stroke:#9198a1}}";

/// A chart as SVG.
pub(super) fn draw(chart: &Chart) -> String {
    let layout = Layout::new(chart);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\">\n<title>{}</title>\n<style>{STYLE}</style>\n\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\"/>\n",
        escaped(&chart.title),
        height = number(layout.height),
    );
    let mut text = |class: &str, x: f64, y: f64, content: &str| {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        put(&mut svg, format_args!("<text{class} x=\"{}\" y=\"{}\">{}</text>", number(x), number(y), escaped(content)));
    };
    text("title", MARGIN, 24.0, &chart.title);
    text("note", MARGIN, 42.0, &chart.note);
    for (at, panel) in chart.panels.iter().enumerate() {
        layout.panel(&mut svg, at, panel);
    }
    layout.legend(&mut svg);
    svg.push_str("</svg>\n");
    svg
}

/// Where things are.
struct Layout<'c> {
    chart: &'c Chart,
    x: Range<'c>,
    y: Range<'c>,
    columns: usize,
    /// Width of one plot, without its marks.
    plot_width: f64,
    /// Whether the names of the horizontal axis are turned, and the room for its marks.
    is_turned: bool,
    marks_height: f64,
    /// Height of a row of panels.
    row_height: f64,
    /// Places of the legend's entries.
    entries: Vec<(f64, f64)>,
    height: f64,
}

impl<'c> Layout<'c> {
    fn new(chart: &'c Chart) -> Layout<'c> {
        let columns = match chart.panels.len() {
            count @ 1..=3 => count,
            _ => 2,
        };
        let plot_width = (WIDTH - 2.0 * MARGIN) / columns as f64 - MARKS;
        let x = Range::of(&chart.x.scale, chart.points().map(|(x, _)| x));
        let y = Range::of(&chart.y.scale, chart.points().map(|(_, y)| y));
        let (mut is_turned, mut marks_height) = (false, LINE);
        if let Scale::Names(names) = &chart.x.scale {
            let widest = names.iter().map(|name| width(name)).fold(0.0, f64::max);
            is_turned = widest + 6.0 > plot_width / names.len() as f64;
            if is_turned {
                marks_height = widest * (TURN * PI / 180.0).sin() + LINE;
            }
        }
        let row_height = PANEL_HEAD + PLOT_HEIGHT + marks_height + 1.5 * LINE;
        let rows = chart.panels.len().div_ceil(columns);
        let below = HEAD + rows as f64 * row_height + LINE;
        let (mut entries, mut place) = (Vec::new(), (MARGIN, below));
        for (name, _) in chart.legend() {
            let wide = 34.0 + width(name) + 16.0;
            if place.0 + wide > WIDTH - MARGIN && place.0 > MARGIN {
                place = (MARGIN, place.1 + LINE);
            }
            entries.push(place);
            place.0 += wide;
        }
        let height = place.1 + LINE;
        Layout { chart, x, y, columns, plot_width, is_turned, marks_height, row_height, entries, height }
    }

    fn panel(&self, svg: &mut String, at: usize, panel: &Panel) {
        let left = MARGIN + (at % self.columns) as f64 * (self.plot_width + MARKS) + MARKS;
        let top = HEAD + (at / self.columns) as f64 * self.row_height + PANEL_HEAD;
        let plot = Plot { layout: self, left, top };
        put(
            svg,
            format_args!("<text x=\"{}\" y=\"{}\">{}</text>", number(left), number(top - 8.0), escaped(&panel.title)),
        );
        plot.axes(svg, at % self.columns == 0);
        for series in panel.series.iter().filter(|series| series.look == Look::Computed) {
            plot.computed(svg, series, self.index(series));
        }
        let measured: Vec<&Series> = panel.series.iter().filter(|series| series.look == Look::Measured).collect();
        for (place, series) in measured.iter().enumerate() {
            let aside = place as f64 - (measured.len() - 1) as f64 / 2.0;
            plot.measured(svg, series, self.index(series), aside / measured.len() as f64);
        }
    }

    /// The place of a series among those of its look in the legend.
    fn index(&self, series: &Series) -> usize {
        let legend = self.chart.legend().into_iter().filter(|(_, look)| *look == series.look);
        legend.take_while(|(name, _)| *name != series.name).count()
    }

    fn legend(&self, svg: &mut String) {
        let names = self.chart.legend();
        let measured = names.iter().filter(|(_, look)| *look == Look::Measured).count();
        for (at, ((name, look), (x, y))) in names.iter().zip(&self.entries).enumerate() {
            let (from, to, middle) = (number(*x), number(x + 26.0), number(y - 4.0));
            match look {
                Look::Measured => {
                    let path = format!("M{from} {middle}H{to}");
                    put(svg, format_args!("<path d=\"{path}\" {}/>", stroke(at)));
                    put(svg, format_args!("<path d=\"{}\" {}/>", marker(at, x + 13.0, y - 4.0), ink(at)));
                }
                Look::Computed => {
                    let dash = DASHES[(at - measured) % DASHES.len()];
                    put(
                        svg,
                        format_args!("<path class=\"axis\" d=\"M{from} {middle}H{to}\" stroke-dasharray=\"{dash}\"/>"),
                    );
                }
            }
            put(svg, format_args!("<text x=\"{}\" y=\"{}\">{}</text>", number(x + 34.0), number(*y), escaped(name)));
        }
    }
}

/// One panel's place.
struct Plot<'l> {
    layout: &'l Layout<'l>,
    left: f64,
    top: f64,
}

impl Plot<'_> {
    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let Layout { x: across, y: up, plot_width, .. } = self.layout;
        (self.left + across.place(x) * plot_width, self.top + (1.0 - up.place(y)) * PLOT_HEIGHT)
    }

    /// The width of a name's place, where the axis has names.
    fn slot(&self) -> Option<f64> {
        match &self.layout.chart.x.scale {
            Scale::Names(names) => Some(self.layout.plot_width / names.len() as f64),
            _ => None,
        }
    }

    fn axes(&self, svg: &mut String, is_first: bool) {
        let Layout { chart, x, y, plot_width, is_turned, marks_height, .. } = self.layout;
        let (right, bottom) = (self.left + plot_width, self.top + PLOT_HEIGHT);
        for (value, text) in y.ticks(9) {
            let height = self.top + (1.0 - y.place(value)) * PLOT_HEIGHT;
            let line = format!("M{} {}H{}", number(self.left), number(height), number(right));
            put(svg, format_args!("<path class=\"grid\" d=\"{line}\"/>"));
            let (at, base) = (number(self.left - 6.0), number(height + 4.0));
            put(svg, format_args!("<text text-anchor=\"end\" x=\"{at}\" y=\"{base}\">{text}</text>"));
        }
        for (value, text) in x.ticks((plot_width / 56.0) as usize) {
            let at = self.left + x.place(value) * plot_width;
            put(svg, format_args!("<path class=\"axis\" d=\"M{} {}v4\"/>", number(at), number(bottom)));
            let (at, base, text) = (number(at), number(bottom + 17.0), escaped(&text));
            match is_turned {
                true => put(
                    svg,
                    format_args!(
                        "<text text-anchor=\"end\" transform=\"translate({at} {base})rotate(-{TURN})\">{text}</text>"
                    ),
                ),
                false => put(svg, format_args!("<text text-anchor=\"middle\" x=\"{at}\" y=\"{base}\">{text}</text>")),
            }
        }
        let frame = format!("M{} {}V{}H{}", number(self.left), number(self.top), number(bottom), number(right));
        put(svg, format_args!("<path class=\"axis\" d=\"{frame}\"/>"));
        let (middle, base) = (number(self.left + plot_width / 2.0), number(bottom + marks_height + LINE));
        put(svg, format_args!("<text text-anchor=\"middle\" x=\"{middle}\" y=\"{base}\">{}</text>", chart.x.label));
        if is_first {
            let (at, middle) = (number(MARGIN - 8.0), number(self.top + PLOT_HEIGHT / 2.0));
            put(
                svg,
                format_args!(
                    "<text text-anchor=\"middle\" transform=\"translate({at} {middle})rotate(-90)\">{}</text>",
                    chart.y.label
                ),
            );
        }
    }

    /// A line, or a dash over each name.
    fn computed(&self, svg: &mut String, series: &Series, index: usize) {
        let half = self.slot().map(|slot| slot * 0.45);
        let mut path = String::new();
        for (place, point) in series.points.iter().enumerate() {
            let (x, y) = self.at(*point);
            path += &match half {
                Some(half) => format!("M{} {}H{}", number(x - half), number(y), number(x + half)),
                None => format!("{}{} {}", if place == 0 { 'M' } else { 'L' }, number(x), number(y)),
            };
        }
        let dash = DASHES[index % DASHES.len()];
        put(svg, format_args!("<path class=\"axis\" d=\"{path}\" stroke-dasharray=\"{dash}\"/>"));
    }

    /// Markers, joined where x is a number. Over names they stand side by side, `aside` of a place from its middle.
    fn measured(&self, svg: &mut String, series: &Series, index: usize, aside: f64) {
        let shift = self.slot().map_or(0.0, |slot| slot * 0.8 * aside);
        let points = series.points.iter().map(|point| self.at(*point)).map(|(x, y)| (x + shift, y));
        let points: Vec<(f64, f64)> = points.collect();
        let mut path = String::new();
        for (place, (x, y)) in points.iter().enumerate() {
            let is_stem = self.slot().is_some() && self.layout.chart.y.scale == Scale::Linear;
            path += &match (self.slot(), is_stem, place) {
                (_, true, _) => format!("M{} {}V{}", number(*x), number(self.top + PLOT_HEIGHT), number(*y)),
                (Some(_), ..) => continue,
                (None, _, 0) => format!("M{} {}", number(*x), number(*y)),
                (None, ..) => format!("L{} {}", number(*x), number(*y)),
            };
        }
        if !path.is_empty() {
            put(svg, format_args!("<path d=\"{path}\" {}/>", stroke(index)));
        }
        let markers: String = points.iter().map(|(x, y)| marker(index, *x, *y)).collect();
        put(svg, format_args!("<path d=\"{markers}\" {}/>", ink(index)));
    }
}

/// The marker of a series: a shape that no series of its colour has.
fn marker(index: usize, x: f64, y: f64) -> String {
    let place = format!("M{} {}", number(x), number(y));
    let shape = match (index + index / COLOURS.len()) % 8 {
        0 => "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
        1 => "m-3.5-3.5h7v7h-7z",
        2 => "m0-4.5l4.5 8h-9z",
        3 => "m0-5l5 5l-5 5l-5-5z",
        4 => "m0 4.5l4.5-8h-9z",
        5 => "m-4-1.2h2.8v-2.8h2.4v2.8h2.8v2.4h-2.8v2.8h-2.4v-2.8h-2.8z",
        6 => "m-4.5-2h9v4h-9z",
        _ => "m-2-4.5h4v9h-4z",
    };
    place + shape
}

fn stroke(index: usize) -> String {
    format!("stroke=\"{}\" stroke-width=\"1.6\" fill=\"none\"", COLOURS[index % COLOURS.len()])
}

fn ink(index: usize) -> String {
    format!("fill=\"{}\"", COLOURS[index % COLOURS.len()])
}

/// The width of a text, estimated.
fn width(text: &str) -> f64 {
    text.chars().count() as f64 * FONT * CHARACTER
}

/// A length with a digit behind the point, if it is not whole.
fn number(length: f64) -> String {
    let text = format!("{length:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_string()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn put(svg: &mut String, element: std::fmt::Arguments<'_>) {
    // Writing to a text does not fail.
    let _ = writeln!(svg, "{element}");
}

#[cfg(test)]
mod tests {
    use super::super::chart::Axis;
    use super::*;

    fn chart(x: Scale, names: &[&str], look: Look) -> Chart {
        let points = vec![(0.0, 1.0), (1.0, 2.0)];
        let series = names.iter().map(|name| Series { name: name.to_string(), look, points: points.clone() });
        let panel = Panel { title: "all & <one>".into(), series: series.collect() };
        let (x, y) = (Axis { label: "x", scale: x }, Axis { label: "y", scale: Scale::Linear });
        Chart { title: "T".into(), note: "N".into(), x, y, panels: vec![panel] }
    }

    #[test]
    fn every_series_has_a_look_of_its_own() {
        let names: Vec<String> = (0..20).map(|at| format!("series {at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let svg = draw(&chart(Scale::Linear, &names, Look::Measured));
        assert!(names.iter().all(|name| svg.contains(&format!(">{name}</text>"))));
        let looks: std::collections::BTreeSet<(String, String)> =
            (0..20).map(|at| (ink(at), marker(at, 0.0, 0.0))).collect();
        assert_eq!(looks.len(), 20);
        assert!(svg.contains("all &amp; &lt;one&gt;") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn names_that_are_too_wide_are_turned() {
        let short = Scale::Names(vec!["a".into(), "b".into()]);
        assert!(!draw(&chart(short, &["s"], Look::Measured)).contains("rotate(-35)"));
        let wide = Scale::Names(vec!["a".repeat(60), "b".into()]);
        let svg = draw(&chart(wide, &["s"], Look::Measured));
        assert_eq!(svg.matches("rotate(-35)").count(), 2);
    }

    #[test]
    fn computed_series_are_dashed_and_have_no_marker() {
        let svg = draw(&chart(Scale::Linear, &["floor"], Look::Computed));
        assert_eq!(svg.matches("stroke-dasharray").count(), 2);
        assert!(!svg.contains("stroke-width=\"1.6\""));
    }
}
