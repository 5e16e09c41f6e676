//! What servers answer, and what comes of it.

use std::time::Duration;

use datafusion::object_store::{Error, Result};

use crate::error::{SqlError, one_line};

/// How long a server may take for an answer, and for each part of it.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest part of a server's words that an error repeats.
const WORDS_MAX: usize = 300;
/// The name of the store in its errors.
const STORE: &str = "files elsewhere";

/// An error of ours as one of a store, of which it is read again.
pub(super) fn as_stores(source: SqlError) -> Error {
    Error::Generic { store: STORE, source: Box::new(source) }
}

/// Waits for a server, for so long.
pub(super) async fn patiently<T>(answer: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::timeout(PATIENCE, answer).await.unwrap_or_else(|_| {
        let source = format!("no answer in {} s", PATIENCE.as_secs()).into();
        Err(Error::Generic { store: STORE, source })
    })
}

/// The error of a server, or of the way to it; `url` is that of the file.
pub(super) fn refused(url: String, error: &Error) -> SqlError {
    const CREDENTIALS: &str = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY give credentials, AWS_REGION the region; \
                               AWS_SKIP_SIGNATURE=true reads public buckets without";
    let causes = || std::iter::successors(Some(error as &dyn std::error::Error), |cause| cause.source());
    if let Some(own) = causes().find_map(|cause| cause.downcast_ref::<SqlError>()) {
        return own.clone();
    }
    let whole = one_line(&error.to_string());
    let cause = causes().last().map(|cause| one_line(&cause.to_string())).unwrap_or_default();
    let cause: String = cause.chars().take(WORDS_MAX).collect();
    let status = cause.strip_prefix("Server returned non-2xx status code: ");
    let answer = |status: &str| format!("the server answers {}", status.trim_end_matches([':', ' ']));
    let said = status.map_or(cause.clone(), answer);
    let reason = match error {
        _ if whole.contains("NoSuchBucket") => "there is no such bucket".into(),
        Error::NotFound { .. } => return SqlError::FileMissing { path: url, nearest: None },
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } if url.starts_with("s3:") => {
            format!("{said}; {CREDENTIALS}")
        }
        _ if whole.contains("169.254.169.254") => format!("there are no credentials; {CREDENTIALS}"),
        _ if cause.contains("URL scheme is not allowed") => {
            format!("{said}; AWS_ALLOW_HTTP=true allows http:// of AWS_ENDPOINT_URL")
        }
        _ => said,
    };
    SqlError::FileElsewhere { url, reason }
}
