//! `warpcube cube …` and `\cube …` of the shell: cubes made, filled, asked, imported and exported.

pub(crate) mod args;
mod bench;
mod change;
mod demo;
mod info;
mod query;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::{CommandFactory, Parser};
use warpcube_cube::aggregate;
use warpcube_cube::build::{BuildReport, DefaultMove, GivenName, NamedElements, OtherCase, RenamedElement, TakenName};
use warpcube_cube::define::StorageChoice;
use warpcube_cube::matrix_market::{self, IndexBase};
use warpcube_cube::model::TwoPaths;
use warpcube_cube::query::quoted;
use warpcube_cube::store;
use warpcube_palo::catalog::{self, Catalog, Import};
use warpcube_palo::{DATABASE_FILE_NAME, cube_file_name};
use warpcube_sql::{Connection, CubeDefinition, CubeLoad, OpenCube, Progress, SqlError, StatementReport, cube_info};

use crate::cli;
use crate::console::{self, tell};
use crate::error::{CliError, Result};
use crate::escape;
use crate::footer::{counted, grouped, time};
use crate::host::Host;
use crate::progress::Bar;
use args::{CubeCommand, ShellCube};

/// Most names that a message lists.
const NAMES_MAX: usize = 8;

/// Runs a command.
pub(crate) fn run(command: &CubeCommand, connection: &Connection, host: &Host) -> Result<()> {
    match command {
        CubeCommand::Demo { folder } => demo::run(folder, connection, host),
        CubeCommand::Define { definition, folder, check } => {
            define(definition, folder.as_deref(), *check, connection, host)
        }
        CubeCommand::Load { cube, definition } => {
            load(cube, definition.as_deref(), CubeLoad::Rebuild, connection, host)
        }
        CubeCommand::Refresh { cube } => load(cube, None, CubeLoad::Refresh, connection, host),
        CubeCommand::Change { cube, changes, check } => change::run(cube, &changes.join(" "), *check, connection, host),
        CubeCommand::Info { cube, json, storage } => info::run(cube, *json, *storage, connection, host),
        CubeCommand::Convert { cube, storage } => convert(cube, *storage, connection, host),
        CubeCommand::Query(query) => query::run(query, connection, host),
        CubeCommand::Bench(arguments) => bench::run(arguments, connection, host),
        CubeCommand::Import { source, folder, base } => import(source, folder, *base, connection, host),
        CubeCommand::Export { folder, target } => export(folder, target, connection, host),
        CubeCommand::Schema => console::print(&(warpcube_cube::define::schema() + "\n")),
    }
}

/// Runs a line of the shell, without `\cube`: a command, or a cube's folder and a query.
pub(crate) fn run_line(line: &str, connection: &Connection, host: &Host) -> Result<()> {
    if line.trim().is_empty() {
        let commands: Vec<String> = ShellCube::command().get_subcommands().map(|one| one.get_name().into()).collect();
        return Err(CliError::Command(format!("\\cube takes a command: {}", commands.join(", "))));
    }
    let (command, rest) = line.trim_start().split_once(char::is_whitespace).unwrap_or((line, ""));
    let has_text = ["query", "change"].contains(&command);
    let (before, rest) = if has_text { options_before(rest) } else { (Vec::new(), rest) };
    let text = if has_text { first_word(rest) } else { None };
    let words = match text {
        // Queries and changes have double quotes of their own.
        Some((cube, text)) if !text.is_empty() && !text.starts_with(['\'', '-']) => {
            let (text, options) = text.split_at(options_start(text));
            let command = [command.to_string()].into_iter().chain(before);
            command.chain([cube, text.trim().to_string()]).chain(split(options)?).collect()
        }
        _ => split(line)?,
    };
    let parsed = ShellCube::try_parse_from(words).map_err(|error| CliError::Command(cli::reason(&error)))?;
    run(&parsed.command, connection, host)
}

fn split(line: &str) -> Result<Vec<String>> {
    shlex::split(line).ok_or_else(|| CliError::Command("a quote of \\cube is not closed".into()))
}

/// The options in front of the cube of a query or change, with their values, and the rest of the line.
fn options_before(line: &str) -> (Vec<String>, &str) {
    const WITHOUT_VALUE: [&str; 2] = ["--timing", "--check"];
    let (mut options, mut rest) = (Vec::new(), line);
    while rest.trim_start().starts_with('-') {
        let Some((option, behind)) = first_word(rest) else { break };
        rest = behind;
        let is_whole = option.contains('=') || WITHOUT_VALUE.contains(&option.as_str());
        options.push(option);
        if let Some((value, behind)) = first_word(rest).filter(|_| !is_whole) {
            options.push(value);
            rest = behind;
        }
    }
    (options, rest)
}

/// Where the options behind a query or change begin: at the first word outside of double quotes that is `-o` or starts
/// with `--`.
fn options_start(text: &str) -> usize {
    let (mut is_quoted, mut is_word) = (false, true);
    for (at, c) in text.char_indices() {
        let is_option = |rest: &str| rest.starts_with("--") || rest.split_whitespace().next() == Some("-o");
        if !is_quoted && !is_word && is_option(&text[at..]) {
            return at;
        }
        is_quoted ^= c == '"';
        is_word = !c.is_whitespace();
    }
    text.len()
}

/// The first word of a line, without its quotes, and the rest.
fn first_word(line: &str) -> Option<(String, &str)> {
    let line = line.trim_start();
    let mut ends = line.char_indices().filter(|(_, c)| c.is_whitespace()).map(|(at, _)| at).chain([line.len()]);
    ends.find_map(|end| match shlex::split(&line[..end])?.as_slice() {
        [word] => Some((word.clone(), line[end..].trim())),
        _ => None,
    })
}

/// Makes the cube of a definition.
fn define(definition: &Path, given: Option<&Path>, check: bool, connection: &Connection, host: &Host) -> Result<()> {
    let read = CubeDefinition::read(definition)?;
    let name = read.parse()?.cube;
    let folder = given.map_or_else(|| PathBuf::from(format!("{name}.cube")), Path::to_path_buf);
    if check {
        if let Some(folder) = given {
            connection.check_write(folder, "a load of a cube")?;
            store::check_new(folder).map_err(|error| SqlError::CubeFolder(error.to_string()))?;
        }
        let scratch = tempfile::tempdir().map_err(|error| CliError::writing("a temporary folder", &error))?;
        let report = fill(Some(read), &scratch.path().join("cube"), CubeLoad::Create, connection, host)?;
        return done(&format!("The definition is right: {}", rows(&report)), &notes(&report));
    }
    let started = Instant::now();
    let report = fill(Some(read), &folder, CubeLoad::Create, connection, host)?;
    told(&report, &folder, started)
}

/// Fills a cube again from its source.
fn load(cube: &Path, definition: Option<&Path>, kind: CubeLoad, connection: &Connection, host: &Host) -> Result<()> {
    let read = definition.map(CubeDefinition::read).transpose()?;
    let started = Instant::now();
    let report = fill(read, cube, kind, connection, host)?;
    told(&report, cube, started)
}

pub(super) fn fill(
    definition: Option<CubeDefinition>,
    folder: &Path,
    load: CubeLoad,
    connection: &Connection,
    host: &Host,
) -> Result<BuildReport> {
    let progress = Arc::new(aggregate::Progress::new());
    let (connection, folder, followed) = (connection.clone(), folder.to_path_buf(), progress.clone());
    let how_far = move || Progress { done: followed.done(), total: 0, loading: false };
    follow_change(host, "reading facts", how_far, |report| async move {
        Ok(connection.load_cube(definition, &folder, load, progress, report).await?)
    })
}

/// Does work on the working threads with a bar, until it ends or the user interrupts it.
pub(super) fn follow<T: Send + 'static>(
    host: &Host,
    what: &str,
    how_far: impl Fn() -> Progress,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    follow_change(host, what, how_far, |_| work)
}

/// As [`follow`], for work that changes cubes: an interrupt cancels it by the switch of its report until its changes
/// take their places, and its warnings are written at once.
pub(super) fn follow_change<T: Send + 'static, W: Future<Output = Result<T>> + Send + 'static>(
    host: &Host,
    what: &str,
    how_far: impl Fn() -> Progress,
    work: impl FnOnce(Arc<StatementReport>) -> W,
) -> Result<T> {
    let (mut bar, report, mut told) = (Bar::new(what), StatementReport::new(), 0);
    let mut tell_new = |bar: &mut Bar| {
        let warnings = report.summary().warnings;
        if warnings.len() > told {
            bar.clear();
            warnings[told..].iter().for_each(|warning| tell(format_args!("warning: {warning}")));
            told = warnings.len();
        }
    };
    let tick = || {
        tell_new(&mut bar);
        bar.update(how_far());
    };
    let done = host.run_and(work(report.clone()), tick, || report.cancel().cancel());
    tell_new(&mut bar);
    bar.clear();
    done
}

/// The cube in a folder.
pub(super) fn open(folder: &Path, connection: &Connection, host: &Host) -> Result<Arc<OpenCube>> {
    let (connection, name) = (connection.clone(), folder.display().to_string());
    host.run(async move { Ok(connection.cube(&name).await?) })
}

/// Stores the facts of a cube in another scheme.
fn convert(cube: &Path, storage: StorageChoice, connection: &Connection, host: &Host) -> Result<()> {
    let started = Instant::now();
    let (connection, folder) = (connection.clone(), cube.to_path_buf());
    let [before, after] = follow_change(host, "converting", Progress::default, |report| async move {
        Ok(connection.convert_cube(&folder, storage, report).await?)
    })?;
    let size = |manifest: &store::Manifest| {
        format!("{} with an index of {} bytes", manifest.facts.scheme.to_lowercase(), grouped(manifest.index_bytes()))
    };
    let line = match before.generation == after.generation {
        true => format!("{} stays {}", cube.display(), size(&after)),
        false => {
            let took = time(started.elapsed());
            format!("{}: from {} to {} ({took})", cube.display(), size(&before), size(&after))
        }
    };
    done(&line, &[])
}

/// Imports a database or a file.
fn import(source: &Path, folder: &Path, base: Option<u8>, connection: &Connection, host: &Host) -> Result<()> {
    connection.check_write(folder, "an import of cubes")?;
    connection.check_read(source)?;
    // The file of a database stands for its folder.
    let is_database = source.is_file() && source.file_name().is_some_and(|name| name == DATABASE_FILE_NAME);
    let source = match source.parent().filter(|_| is_database) {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => source,
    };
    connection.check_read(source)?;
    std::fs::metadata(source)
        .map_err(|error| CliError::Input { path: source.to_path_buf(), reason: error.to_string() })?;
    // Files of a database may be links that lead elsewhere.
    for entry in std::fs::read_dir(source).into_iter().flatten().flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "csv") {
            connection.check_read(&entry.path())?;
        }
    }
    let (from, to) = (source.to_path_buf(), folder.to_path_buf());
    let (lines, notes) = follow_change(host, "importing", Progress::default, |report| async move {
        let done = tokio::task::spawn_blocking(move || import_into(&from, &to, base, &report)).await;
        done.map_err(|error| SqlError::Internal(error.to_string()))?
    })?;
    lines.iter().try_for_each(|line| done(line, &[]))?;
    print_notes(&notes)
}

/// Lines of what an import made, and what it found.
fn import_into(
    source: &Path,
    folder: &Path,
    base: Option<u8>,
    report: &StatementReport,
) -> Result<(Vec<String>, Vec<String>)> {
    let failed = |error: String| CliError::from(SqlError::CubeImport(error));
    if source.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("mtx")) {
        let file = std::fs::File::open(source)
            .map_err(|error| CliError::Input { path: source.to_path_buf(), reason: error.to_string() })?;
        store::check_new(folder).map_err(|error| SqlError::CubeFolder(error.to_string()))?;
        let base = base.map(|base| if base == 0 { IndexBase::Zero } else { IndexBase::One });
        let name = source.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let read = matrix_market::read(std::io::BufReader::new(file), &name, base);
        let (model, facts) = read.map_err(|error| failed(format!("{}: {error}", source.display())))?;
        let cells = facts.len();
        let stored = store::StoredCube::new(model, facts);
        let mut commit = |step: store::Step<'_>| match step {
            store::Step::Rename(_) => report.commit().map_err(|error| std::io::Error::other(error.to_string())),
            _ => Ok(()),
        };
        let created = store::create_in_steps(folder, &stored, &mut commit);
        created.map_err(|error| SqlError::CubeFolder(error.to_string()))?;
        return Ok((vec![format!("{}: {}", folder.display(), counted(cells as u64, "cell"))], Vec::new()));
    }
    if base.is_some() {
        return Err(CliError::Usage("--base goes with a Matrix Market file (.mtx)".into()));
    }
    let imported = catalog::import_unless(source, folder, &|| report.commit().is_ok());
    let imported = imported.map_err(|error| failed(error.to_string()))?;
    let found = |found: &catalog::Finding| format!("{}, line {}: {}", found.file, found.line, found.text);
    Ok((lines(&imported, source), imported.findings.iter().map(found).collect()))
}

/// What an import of the database in a folder made, a line a cube; cubes of the system, whose names begin with `#_`,
/// are counted.
fn lines(imported: &Import, source: &Path) -> Vec<String> {
    let (system, own): (Vec<_>, Vec<_>) = imported.catalog.cubes().iter().partition(|cube| cube.name.starts_with("#_"));
    let line = |cube: &catalog::CatalogCube| {
        let skipped = imported.skipped.iter().find(|(name, _)| *name == cube.name);
        let skipped = skipped
            .map_or(String::new(), |(_, skipped)| format!(", {} kept as in the file", counted(skipped.count, "cell")));
        let file = cube_file_name(cube.number);
        match (&cube.folder, &cube.reason) {
            (Some(folder), _) => {
                let folder = imported.catalog.folder().join(folder);
                let cells = match source.join(&file).exists() {
                    true => cube_info(&folder).map_or(0, |manifest| manifest.facts.cells),
                    false => {
                        return format!("{}: no cells, as {file} is not beside {DATABASE_FILE_NAME}", folder.display());
                    }
                };
                format!("{}: {}{skipped}", folder.display(), counted(cells, "cell"))
            }
            (None, reason) => format!("{}: kept as it stands: {}", cube.name, reason.as_deref().unwrap_or_default()),
        }
    };
    let mut lines: Vec<String> = own.into_iter().map(line).collect();
    if !system.is_empty() {
        lines.push(format!("{} of the system, to be exported again", counted(system.len() as u64, "cube")));
    }
    lines
}

fn export(folder: &Path, target: &Path, connection: &Connection, host: &Host) -> Result<()> {
    connection.check_write(target, "an export of cubes")?;
    connection.check_read(folder)?;
    std::fs::metadata(folder)
        .map_err(|error| CliError::Input { path: folder.to_path_buf(), reason: error.to_string() })?;
    let (from, to) = (folder.to_path_buf(), target.to_path_buf());
    follow_change(host, "exporting", Progress::default, |report| async move {
        let export = move || Catalog::open(&from)?.export_unless(&to, &|| report.commit().is_ok());
        let done = tokio::task::spawn_blocking(export).await;
        let done = done.map_err(|error| SqlError::Internal(error.to_string()))?;
        Ok(done.map_err(|error| SqlError::CubeImport(error.to_string()))?)
    })?;
    done(&format!("written to {}", target.display()), &[])
}

/// Says what a load did.
pub(super) fn told(report: &BuildReport, folder: &Path, started: Instant) -> Result<()> {
    let line = format!("{}: {} ({})", folder.display(), rows(report), time(started.elapsed()));
    done(&line, &notes(report))
}

/// Says what a command did, which is its result: a line, and notes below it.
pub(super) fn done(line: &str, notes: &[String]) -> Result<()> {
    console::print(&format!("{}\n", escape::line(line)))?;
    print_notes(notes)
}

fn print_notes(notes: &[String]) -> Result<()> {
    console::print(&notes.iter().map(|note| format!("  {}\n", escape::line(note))).collect::<String>())
}

/// Effects of a load that the user may not have meant.
fn notes(report: &BuildReport) -> Vec<String> {
    let of = |what: &'static str, all: &[NamedElements]| {
        let note = |one: &NamedElements| format!("{what} {}: {}", one.dimension, some_of(&one.names));
        all.iter().map(note).collect::<Vec<_>>()
    };
    let mut notes = of("added to", &report.added);
    notes.extend(of("gone from", &report.removed));
    let mut moved: Vec<(&str, Vec<String>)> = Vec::new();
    for element in &report.moved {
        let parents = |names: &[String]| if names.is_empty() { "none".to_string() } else { names.join(" and ") };
        let text = format!("{} from {} to {}", element.element, parents(&element.before), parents(&element.after));
        match moved.last_mut().filter(|(dimension, _)| *dimension == element.dimension) {
            Some((_, texts)) => texts.push(text),
            None => moved.push((&element.dimension, vec![text])),
        }
    }
    notes.extend(moved.iter().map(|(dimension, texts)| format!("moved in {dimension}: {}", some_of(texts))));
    let renamed = |one: &RenamedElement| {
        let RenamedElement { dimension, before, after } = one;
        format!("{after} ({dimension}) was named {before}: more or fewer elements have its value in the source now")
    };
    notes.extend(report.renamed.iter().take(NAMES_MAX).map(renamed));
    if report.renamed.len() > NAMES_MAX {
        notes.push(format!("{} more were named otherwise", grouped((report.renamed.len() - NAMES_MAX) as u64)));
    }
    notes.extend(report.taken.iter().map(|TakenName { dimension, name, element }| {
        format!("{name} is an element of {dimension} made by hand, and in the source a name of {element}, too")
    }));
    notes.extend(report.given.iter().map(|GivenName { dimension, name, element }| {
        format!(
            "{name} is another element of {dimension} in the source: {element}, which a change had given the name, \
             gets it again once it is free"
        )
    }));
    notes.extend(of("made by hand, and the source's now, in", &report.adopted));
    notes.extend(report.away.iter().map(|NamedElements { dimension, names }| {
        let names = some_of(names);
        format!("what was made by hand in {dimension} comes back with elements that are gone: {names}")
    }));
    notes.extend(report.dropped.iter().map(|NamedElements { dimension, names }| {
        let (count, names) = (counted(names.len() as u64, "thing"), some_of(names));
        format!("{count} made by hand in {dimension} dropped: {names}")
    }));
    notes.extend(report.unlinked.iter().map(|NamedElements { dimension, names }| {
        format!(
            "stays unlinked in {dimension} until change 'relink …', by which it may count twice: {}",
            some_of(names)
        )
    }));
    notes.extend(report.nowhere.iter().map(|one| nowhere(&one.dimension, &one.names)));
    notes.extend(report.alike.iter().map(|NamedElements { dimension, names }| {
        format!("elements of {dimension} that differ in case alone are elements of their own: {}", some_of(names))
    }));
    let respelled = |one: &RenamedElement| {
        let RenamedElement { dimension, before, after } = one;
        format!("{after} ({dimension}) was {before} in the source before, which differs in case alone: it is the same")
    };
    notes.extend(report.respelled.iter().take(NAMES_MAX).map(respelled));
    if report.respelled.len() > NAMES_MAX {
        let more = grouped((report.respelled.len() - NAMES_MAX) as u64);
        notes.push(format!("{more} more are written in another case"));
    }
    notes.extend(report.reordered.iter().map(|NamedElements { dimension, names }| {
        format!("the order of {dimension} is another one in the source now: {}", names.join(", "))
    }));
    notes.extend(defaults(&report.defaults));
    let unlinked = report.nowhere.iter().map(|one| one.dimension.as_str());
    notes.extend(defaults_kept(&report.defaults_kept, unlinked, &report.two_paths));
    notes.extend(two_paths(&report.two_paths));
    notes.extend(report.other_case.iter().map(|OtherCase { dimension, table, rows, names }| {
        let (rows, names) = (counted(*rows, "row"), some_of(names));
        match table {
            Some(table) => format!("{rows} of {table} with parents in {dimension} in another case: {names}"),
            None => format!("{rows} with elements of {dimension} in another case: {names}"),
        }
    }));
    if report.texts_lost > 0 {
        notes.push(format!("{} of elements that are gone dropped", counted(report.texts_lost, "text")));
    }
    notes.extend(report.rows_renamed.iter().map(|(dimension, rows)| {
        let rows = counted(*rows, "row");
        format!("{rows} without an element of {dimension}, for which the one counts that unknown: names")
    }));
    notes.extend(report.values_rounded.iter().map(|(measure, values)| {
        let values = counted(*values, "value");
        format!("{values} of {measure} with more digits than its type or a double has, rounded")
    }));
    notes
}

/// Default elements that a change, a refresh or a load left where they were. Other notes have the reason in dimensions
/// with elements below nothing or over two paths.
fn defaults_kept<'a>(
    kept: &[DefaultMove],
    unlinked: impl Iterator<Item = &'a str>,
    two_paths: &'a [TwoPaths],
) -> Vec<String> {
    let told: Vec<&str> = unlinked.chain(two_paths.iter().map(|one| one.dimension.as_str())).collect();
    let others = kept.iter().filter(|kept| !told.contains(&kept.dimension.as_str()));
    let note = |DefaultMove { dimension, before, after }: &DefaultMove| {
        format!("default of {dimension} stays {before}; by the rule it would be {after}: change 'default …' sets it")
    };
    others.map(note).collect()
}

/// Elements that lie below nothing, as edges of the source to their parents were taken away.
fn nowhere(dimension: &str, names: &[String]) -> String {
    let (names, first) = (some_of(names), names.first().map(|name| quoted(name)).unwrap_or_default());
    format!(
        "unlinked in {dimension} and below no element, which counts them: {names}; change 'relink {first}' mends it"
    )
}

/// Base elements that may count twice.
fn two_paths(found: &[TwoPaths]) -> impl Iterator<Item = String> {
    found.iter().map(|TwoPaths { dimension, elements, examples }| {
        let mut shown: Vec<String> = examples.iter().map(|(base, above)| format!("{base} below {above}")).collect();
        if *elements > shown.len() as u64 {
            shown.push("…".to_string());
        }
        let (count, shown) = (counted(*elements, "base element"), shown.join(", "));
        let lie = if *elements == 1 { "lies" } else { "lie" };
        format!("{count} of {dimension} {lie} below an element over two paths, and may count twice there: {shown}")
    })
}

/// Default elements that a change or refresh moved: queries that name none of the dimension mean another cell now.
fn defaults(moves: &[DefaultMove]) -> impl Iterator<Item = String> {
    moves
        .iter()
        .map(|DefaultMove { dimension, before, after }| format!("default of {dimension} is now {after}, was {before}"))
}

/// The first of some names, and how many more there are.
fn some_of(names: &[String]) -> String {
    let shown = names[..names.len().min(NAMES_MAX)].join(", ");
    match names.len() - names.len().min(NAMES_MAX) {
        0 => shown,
        more => format!("{shown} and {} more", grouped(more as u64)),
    }
}

fn rows(report: &BuildReport) -> String {
    let mut text = format!("{}, {}", counted(report.rows, "row"), counted(report.cells, "cell"));
    if report.rows_aside > 0 {
        text.push_str(&format!(", {} kept aside", counted(report.rows_aside, "row")));
    }
    text
}
