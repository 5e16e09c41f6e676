//! What a connection refuses a client of another process: what would be done here, and the client would not see.

use datafusion::logical_expr::LogicalPlan;

use super::Connection;
use crate::error::{Result, SqlError};
use crate::locations::local_path;
use crate::outputs::Destination;

impl Connection {
    /// Refuses a COPY into a stream or a device: those are of this process and its machine.
    pub(super) fn check_output(&self, plan: &LogicalPlan) -> Result<()> {
        match plan {
            LogicalPlan::Analyze(analyze) => self.check_output(&analyze.input),
            LogicalPlan::Copy(copy) if self.inner.session.is_some() => {
                let found = local_path(&copy.output_url).map(|path| Destination::of(&path));
                match found {
                    Some(Ok(Destination::Special(_))) => Err(SqlError::Unsupported(format!(
                        "COPY TO '{}', a stream or a device of the server: read the rows of the query, or write a file",
                        copy.output_url
                    ))),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Refuses SET GLOBAL of a setting whose value of the server's start counts more.
    pub(super) fn check_outranked(&self, name: &str, value: &str) -> Result<()> {
        let origin = self.inner.database.shared.start.origins.get(name).filter(|origin| origin.outranks_catalog());
        match origin.filter(|_| self.inner.session.is_some()) {
            Some(origin) => Err(SqlError::SettingLocked {
                name: name.to_string(),
                value: value.to_string(),
                reason: format!("it is given by {origin}, which counts more than SET GLOBAL"),
                origin: None,
            }),
            None => Ok(()),
        }
    }
}
