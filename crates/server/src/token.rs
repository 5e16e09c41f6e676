//! The token that every request has: made when the server starts, in a file that its user alone reads.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;

/// Bytes of randomness.
const BYTES: usize = 32;
/// The time that a wrong token takes.
pub(crate) const WRONG: Duration = Duration::from_millis(250);
/// Wrong tokens that may wait.
const WAITING_MAX: usize = 64;

/// The name of the token that the server draws, in lists and logs of statements.
pub(crate) const DRAWN: &str = "default";

/// The token; no text of it is ever written but to its file.
pub(crate) struct Token(String);

impl Token {
    /// A token that was made elsewhere.
    pub(crate) fn given(text: &str) -> Token {
        Token(text.to_string())
    }

    /// Draws a token and writes it to a file of mode 0600, in one step: no one reads a part of it, and a former file
    /// keeps no reader.
    ///
    /// # Errors
    /// The file cannot be written, or is there and has no token: it is another's.
    pub(crate) fn create(path: &Path) -> io::Result<Token> {
        let mut bytes = [0; BYTES];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let token = Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect());
        if path.symlink_metadata().is_ok_and(|_| !has_token(path)) {
            return Err(io::Error::other("it is there and has no token; name another file by --token-file"));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Files of this kind have mode 0600 from their first moment.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        writeln!(file, "{}", token.0)?;
        file.persist(path)?;
        Ok(token)
    }

    /// Whether a text is this token, in a time that does not tell how much of it is right.
    pub(crate) fn is(&self, text: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(text).into()
    }

    /// Its text, for a client that has shown it.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Removes the file, if it still has this token.
    pub(crate) fn remove(&self, path: &Path) {
        if std::fs::read(path).is_ok_and(|text| self.is(text.trim_ascii_end())) {
            // What cannot be removed has a token that opens nothing.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Whether a file has nothing but a token.
fn has_token(path: &Path) -> bool {
    let is_token = |text: &[u8]| text.len() == BYTES * 2 && text.iter().all(u8::is_ascii_hexdigit);
    std::fs::read(path).is_ok_and(|text| is_token(text.trim_ascii_end()))
}

/// The turnstile of wrong tokens: one passes after the other, and few wait.
pub(crate) struct Turnstile {
    one: Semaphore,
    waiting: AtomicUsize,
    time: Duration,
}

impl Turnstile {
    /// A turnstile that a wrong token takes so long to pass.
    pub(crate) fn new(time: Duration) -> Turnstile {
        Turnstile { one: Semaphore::new(1), waiting: AtomicUsize::new(0), time }
    }

    /// Waits for the turn of a wrong token; false if too many wait.
    pub(crate) async fn pass(&self) -> bool {
        let is_full = self.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING_MAX;
        let _waiting = Waiting(&self.waiting);
        if is_full {
            return false;
        }
        let _turn = self.one.acquire().await;
        tokio::time::sleep(self.time).await;
        true
    }
}

/// Counts one less when it is dropped.
struct Waiting<'t>(&'t AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_token_is_in_a_file_of_its_user_and_replaces_tokens_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let first = Token::create(&path).unwrap();
        let second = Token::create(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(second.is(text.trim_end().as_bytes()) && !first.is(text.trim_end().as_bytes()));
        assert!(!second.is(b"") && !second.is(&text.as_bytes()[..10]) && !second.is(text.as_bytes()));
        first.remove(&path);
        assert!(path.exists(), "another server's");
        second.remove(&path);
        assert!(!path.exists());
        std::fs::write(&path, "a list of things\n").unwrap();
        assert!(Token::create(&path).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a list of things\n");
    }

    #[tokio::test]
    async fn wrong_tokens_pass_one_by_one_and_few_wait() {
        let time = Duration::from_millis(2);
        let turnstile = Turnstile::new(time);
        let start = tokio::time::Instant::now();
        let passed = futures::future::join_all((0..WAITING_MAX + 10).map(|_| turnstile.pass())).await;
        assert_eq!(passed.iter().filter(|passed| **passed).count(), WAITING_MAX);
        assert!(start.elapsed() >= time * WAITING_MAX as u32);
        assert!(turnstile.pass().await);
    }
}
