//! The seal of tickets: a keyed hash (HMAC, RFC 2104) with a key that no client has.

use std::fs::File;
use std::io::{self, Read};

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Bytes of the hash.
const HASH: usize = 32;
/// Bytes of a block of the hash, which the key fills.
const BLOCK: usize = 64;

/// Seals texts, and opens those that it has sealed.
pub(crate) struct Seal([u8; BLOCK]);

impl Seal {
    /// A seal with a new key.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub(crate) fn new() -> io::Result<Seal> {
        let mut key = [0; BLOCK];
        File::open("/dev/urandom")?.read_exact(&mut key)?;
        Ok(Seal(key))
    }

    /// A text with its hash in front.
    pub(crate) fn close(&self, text: &str) -> Vec<u8> {
        let mut sealed = self.hash(text.as_bytes()).to_vec();
        sealed.extend_from_slice(text.as_bytes());
        sealed
    }

    /// The text that this has sealed.
    pub(crate) fn open(&self, sealed: &[u8]) -> Option<String> {
        let (hash, text) = sealed.split_at_checked(HASH)?;
        let is_ours: bool = self.hash(text).ct_eq(hash).into();
        is_ours.then(|| String::from_utf8(text.to_vec()).ok()).flatten()
    }

    fn hash(&self, text: &[u8]) -> [u8; HASH] {
        let keyed = |with: u8| Sha256::new().chain_update(self.0.map(|byte| byte ^ with));
        let inner = keyed(0x36).chain_update(text).finalize();
        keyed(0x5c).chain_update(inner).finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_opens_what_it_has_sealed() {
        let (seal, other) = (Seal::new().unwrap(), Seal::new().unwrap());
        let sealed = seal.close("SELECT 1");
        assert_eq!(seal.open(&sealed).as_deref(), Some("SELECT 1"));
        assert_eq!(other.open(&sealed), None);
        let mut changed = sealed.clone();
        *changed.last_mut().unwrap() = b'2';
        assert_eq!(seal.open(&changed), None);
        assert_eq!(seal.open(b"SELECT 1"), None);
    }

    #[test]
    fn the_hash_is_that_of_the_standard() {
        // RFC 4231, test case 2: the key "Jefe".
        let mut key = [0; BLOCK];
        key[..4].copy_from_slice(b"Jefe");
        let hash = Seal(key).hash(b"what do ya want for nothing?");
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }
}
