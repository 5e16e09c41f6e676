//! A chart as data: axes, panels that share them, and series of points.

use super::scale::Scale;

/// Panels side by side over the same axes, with one legend.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Chart {
    /// What it shows.
    pub(super) title: String,
    /// Device, sizes and date.
    pub(super) note: String,
    /// The horizontal axis.
    pub(super) x: Axis,
    /// The vertical axis.
    pub(super) y: Axis,
    /// At least one.
    pub(super) panels: Vec<Panel>,
}

/// An axis. All panels of a chart have the same range.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    pub(super) label: &'static str,
    pub(super) scale: Scale,
}

/// One plot.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Panel {
    /// Empty in a chart of one.
    pub(super) title: String,
    pub(super) series: Vec<Series>,
}

/// Points of one name. Series of the same name look the same in all panels.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) look: Look,
    /// By x, ascending.
    pub(super) points: Vec<(f64, f64)>,
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// Measured: markers, joined by a line where x is a number.
    Measured,
    /// Computed: a dashed line without markers.
    Computed,
}

impl Chart {
    /// Names of all series with their look, in order of first appearance: measured ones first.
    pub(super) fn legend(&self) -> Vec<(&str, Look)> {
        let mut names: Vec<(&str, Look)> = Vec::new();
        for series in self.panels.iter().flat_map(|panel| &panel.series) {
            if !names.iter().any(|(name, _)| *name == series.name) {
                names.push((&series.name, series.look));
            }
        }
        names.sort_by_key(|(_, look)| *look == Look::Computed);
        names
    }

    /// All points.
    pub(super) fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.panels.iter().flat_map(|panel| &panel.series).flat_map(|series| series.points.iter().copied())
    }
}
