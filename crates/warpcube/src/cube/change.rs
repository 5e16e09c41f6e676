//! `warpcube cube change`: the dimensions of a live cube.

use std::path::Path;
use std::time::Instant;

use warpcube_cube::change::ChangeReport;
use warpcube_sql::{Connection, Progress};

use super::{defaults, defaults_kept, done, follow_change, nowhere, some_of, two_paths};
use crate::console::tell;
use crate::error::Result;
use crate::footer::{counted, time};
use crate::host::Host;

/// Changes a cube, or says what changes would do.
pub(super) fn run(folder: &Path, text: &str, check: bool, connection: &Connection, host: &Host) -> Result<()> {
    let started = Instant::now();
    let (connection, cube, text) = (connection.clone(), folder.to_path_buf(), text.to_string());
    let report = follow_change(host, "changing the cube", Progress::default, |statement| async move {
        Ok(connection.change_cube(&cube, &text, check, statement).await?)
    })?;
    let changes = counted(report.changes, "change");
    report.warnings.iter().for_each(|warning| tell(format_args!("warning: {warning}")));
    let line = match check {
        true => format!("{}: {changes} could be made", folder.display()),
        false => format!("{}: {changes} ({})", folder.display(), time(started.elapsed())),
    };
    done(&line, &notes(&report))
}

/// Effects of changes beyond their text.
fn notes(report: &ChangeReport) -> Vec<String> {
    let aside = report.facts_aside.iter().map(|aside| {
        let facts = counted(aside.facts, "fact");
        format!("{facts} of {} ({}) kept aside", aside.element, aside.dimension)
    });
    let texts = (report.texts_aside > 0).then(|| format!("{} kept aside", counted(report.texts_aside, "text")));
    let of_source = report.of_source.iter().map(|of_source| {
        let (dimension, names) = (&of_source.dimension, some_of(&of_source.names));
        format!("a refresh places {names} ({dimension}) as the source has it: change the source too")
    });
    let labels = report.labels_of_source.iter().map(|labels| {
        let (dimension, names) = (&labels.dimension, some_of(&labels.names));
        format!("a refresh sets {names} ({dimension}) as the definition or the source has it: change that too")
    });
    let unlinked = report.unlinked.iter().map(|unlinked| {
        let (dimension, names) = (&unlinked.dimension, some_of(&unlinked.names));
        format!("unlinked in {dimension} until change 'relink …', at a refresh and load too: {names}")
    });
    let of_nothing = report.nowhere.iter().map(|one| one.dimension.as_str());
    let exported = "captions, alternative names, attributes and default elements have no place in an export";
    let exported = report.is_not_exported.then(|| exported.to_string());
    let others = (!report.other_cubes.is_empty())
        .then(|| format!("removed from {} too: the dimensions are the database's", some_of(&report.other_cubes)));
    others
        .into_iter()
        .chain(aside)
        .chain(texts)
        .chain(unlinked)
        .chain(defaults(&report.defaults))
        .chain(report.nowhere.iter().map(|one| nowhere(&one.dimension, &one.names)))
        .chain(defaults_kept(&report.defaults_kept, of_nothing, &report.two_paths))
        .chain(two_paths(&report.two_paths))
        .chain(of_source)
        .chain(labels)
        .chain(exported)
        .collect()
}
