//! Who may ask: the holders of tokens, with what each may do.

use std::sync::Arc;
use std::time::Duration;

use warpcube_sql::{Connection, Database, MemoryShare, SqlError};

use crate::token::{DRAWN, Token};

/// Characters that a token has at least: with those of a hexadecimal number 128 bits.
const CHARACTERS_MIN: usize = 32;

/// A token that is given to the server, beside the one that it draws.
#[derive(Clone)]
pub struct TokenOptions {
    /// Its name, in lists and logs of statements.
    pub name: String,
    /// Its text.
    pub token: String,
    /// Whether its statements change nothing that others see.
    pub read_only: bool,
    /// Its statements that run at once; others of it wait for their turn.
    pub statements_max: Option<usize>,
    /// The longest time of a statement, where `warpcube.timeout` is not shorter.
    pub timeout: Option<Duration>,
    /// Rows of a result.
    pub rows_max: Option<u64>,
    /// Bytes of memory on the CPU that the operators of its statements have together.
    pub memory_max: Option<u64>,
}

impl TokenOptions {
    /// What keeps the token from being used; its text is not in it.
    ///
    /// # Errors
    /// A name that is that of the drawn token, and a text that is short or no word.
    pub fn check(&self) -> Result<(), String> {
        if self.name == DRAWN {
            return Err(format!("'{DRAWN}' is the token that the server draws; name this one otherwise"));
        }
        let is_word = self.token.bytes().all(|byte| byte.is_ascii_graphic());
        match is_word && self.token.len() >= CHARACTERS_MIN {
            true => Ok(()),
            false => Err(format!("token '{}' has to be {CHARACTERS_MIN} characters or more without blanks", self.name)),
        }
    }
}

/// The holder of a token.
pub(crate) struct Client {
    pub(crate) token: Token,
    pub(crate) name: Arc<str>,
    /// Its number, from 0.
    pub(crate) number: usize,
    read_only: bool,
    /// Its statements that run at once, where they are fewer than the server's.
    statements_max: Option<usize>,
    timeout: Option<Duration>,
    pub(crate) rows_max: Option<u64>,
    memory: Option<MemoryShare>,
}

impl Client {
    /// The holder of a token that may do all.
    fn free(token: Token, name: &str) -> Client {
        Client {
            token,
            name: name.into(),
            number: 0,
            read_only: false,
            statements_max: None,
            timeout: None,
            rows_max: None,
            memory: None,
        }
    }

    fn of(options: &TokenOptions) -> Client {
        let share = |most: u64| MemoryShare::new(&options.name, usize::try_from(most).unwrap_or(usize::MAX));
        Client {
            read_only: options.read_only,
            statements_max: options.statements_max,
            timeout: options.timeout,
            rows_max: options.rows_max,
            memory: options.memory_max.map(share),
            ..Client::free(Token::given(&options.token), &options.name)
        }
    }

    /// A connection with what the client may do.
    ///
    /// # Errors
    /// Settings of the database that contradict it.
    pub(crate) fn connect(&self, database: &Database) -> Result<Connection, SqlError> {
        let connection = database.connect_as(Some(self.name.clone()), self.memory.clone());
        if self.read_only {
            // Both would write files.
            connection.set("warpcube.dump_source", "off")?;
            if connection.settings().value("warpcube.encoded_files")? == "write" {
                connection.set("warpcube.encoded_files", "read")?;
            }
            connection.set("warpcube.read_only", "all")?;
        }
        if let Some(most) = self.timeout
            && connection.settings().timeout.is_none_or(|now| now > most)
        {
            connection.set("warpcube.timeout", &format!("{}ms", most.as_millis().max(1)))?;
        }
        Ok(connection)
    }
}

/// The holders of all tokens, that of the drawn one first.
pub(crate) struct Clients(Vec<Arc<Client>>);

impl Clients {
    /// The holder of the drawn token, and those of others.
    pub(crate) fn new(drawn: Token, others: &[TokenOptions]) -> Clients {
        let others = others.iter().map(Client::of);
        let all = std::iter::once(Client::free(drawn, DRAWN)).chain(others).enumerate();
        Clients(all.map(|(number, client)| Arc::new(Client { number, ..client })).collect())
    }

    /// The statements that each may have running at once, by their numbers.
    pub(crate) fn statements_max(&self) -> impl Iterator<Item = Option<usize>> {
        self.0.iter().map(|client| client.statements_max)
    }

    /// The drawn token.
    pub(crate) fn drawn(&self) -> &Token {
        &self.0[0].token
    }

    /// The holder of a token, in a time that does not tell which one it is, nor how much of it is right.
    pub(crate) fn of(&self, text: &[u8]) -> Option<Arc<Client>> {
        self.0.iter().fold(None, |found, client| if client.token.is(text) { Some(client.clone()) } else { found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(name: &str, token: &str) -> TokenOptions {
        let (name, token) = (name.to_string(), token.to_string());
        TokenOptions {
            name,
            token,
            read_only: true,
            statements_max: None,
            timeout: None,
            rows_max: None,
            memory_max: None,
        }
    }

    #[test]
    fn each_token_has_its_holder() {
        let other = options("reports", &"r".repeat(32));
        let clients = Clients::new(Token::given("drawn"), std::slice::from_ref(&other));
        let name = |text: &[u8]| clients.of(text).map(|client| client.name.to_string());
        assert_eq!(name(b"drawn").as_deref(), Some("default"));
        assert_eq!(name(other.token.as_bytes()).as_deref(), Some("reports"));
        assert_eq!((name(b""), name(b"drawn "), name(&other.token.as_bytes()[1..])), (None, None, None));
    }

    #[test]
    fn tokens_are_long_words_with_names_of_their_own() {
        assert!(options("a", &"x".repeat(32)).check().is_ok());
        for wrong in [options("a", &"x".repeat(31)), options("a", &"x y".repeat(32)), options(DRAWN, &"x".repeat(32))] {
            let told = wrong.check().unwrap_err();
            assert!(!told.contains(&wrong.token), "{told}");
        }
    }
}
