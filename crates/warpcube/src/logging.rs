//! Logs and spans, on the standard error, only when asked for.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::error::{CliError, Result};

/// Starts logging as the filter says, for example `info` or `warpcube_sql=debug`; spans are written when they close,
/// with their times.
pub(crate) fn start(filter: Option<&str>) -> Result<()> {
    let Some(filter) = filter.filter(|filter| !filter.is_empty()) else { return Ok(()) };
    let filter: EnvFilter =
        filter.parse().map_err(|error| CliError::Usage(format!("--log {filter}: not a filter: {error}")))?;
    let colour = std::io::IsTerminal::is_terminal(&std::io::stderr());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(std::io::stderr)
        .with_ansi(colour)
        // A closed standard error is ignored.
        .log_internal_errors(false)
        .init();
    Ok(())
}
