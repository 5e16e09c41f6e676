//! The progress bar: on a terminal, for work that takes longer than half a second, and nowhere else.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use warpcube_sql::Progress;

/// Shorter work has no bar.
const PATIENCE: Duration = Duration::from_millis(500);

/// A bar on the standard error.
pub(crate) struct Bar {
    what: String,
    started: Instant,
    bar: Option<ProgressBar>,
    wanted: bool,
}

impl Bar {
    /// A bar for `what`, drawn only if it takes long and the standard error is a terminal.
    pub(crate) fn new(what: &str) -> Bar {
        let wanted = std::io::stderr().is_terminal();
        Bar { what: what.to_string(), started: Instant::now(), bar: None, wanted }
    }

    /// Changes the text that names the work.
    pub(crate) fn name(&mut self, what: &str) {
        self.what = what.to_string();
    }

    /// Draws how far the work is.
    pub(crate) fn update(&mut self, progress: Progress) {
        if !self.wanted || self.started.elapsed() < PATIENCE {
            return;
        }
        let message = self.message(progress).to_string();
        let bar = self.bar.get_or_insert_with(|| ProgressBar::new(0).with_elapsed(self.started.elapsed()));
        let known = progress.total > 0 && progress.done <= progress.total;
        let template = match known {
            true => "{msg} {wide_bar} {percent:>3} % {elapsed_precise}",
            false => "{spinner} {msg} {elapsed_precise}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(message);
        bar.set_length(progress.total);
        bar.set_position(progress.done);
        bar.tick();
    }

    /// The text that names the work.
    fn message(&self, progress: Progress) -> &str {
        if progress.loading { "loading columns" } else { &self.what }
    }

    /// Takes the bar away for good if rows are about to be written to the same terminal.
    pub(crate) fn clear_for_output(&mut self) {
        if std::io::stdout().is_terminal() {
            self.clear();
            self.wanted = false;
        }
    }

    /// Takes the bar away.
    pub(crate) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_named_and_nothing_is_drawn_off_a_terminal() {
        let started = Instant::now() - 2 * PATIENCE;
        let mut bar = Bar { what: "running".into(), started, bar: None, wanted: false };
        let loading = Progress { done: 3, total: 10, loading: true };
        assert_eq!(bar.message(loading), "loading columns");
        assert_eq!(bar.message(Progress::default()), "running");
        bar.update(loading);
        assert!(bar.bar.is_none());
    }
}
