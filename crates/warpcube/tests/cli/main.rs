//! The built program, run as users run it: arguments, formats, scripts, settings, files that change and files that are
//! bad. One test binary for all, because each one links the whole engine.

mod bad_input;
mod bench;
mod catalogs;
mod changing_files;
mod cube_access;
mod cube_cases;
mod cube_changes;
mod cube_errors;
mod cube_kills;
mod cube_places;
mod cube_sources;
mod cube_text;
mod cubes;
mod data;
mod depth;
#[cfg(feature = "remote")]
mod elsewhere;
mod endings;
mod formats;
mod harness;
mod outputs;
mod pipes;
mod scripts;
mod serve;
#[cfg(feature = "remote")]
mod server;
mod settings;
mod shell;
mod suites;
mod terminal;
