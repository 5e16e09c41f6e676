//! Who may ask: the holders of tokens, with what each may do.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use warpcube_sql::{Connection, Database, SqlError};

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
    read_only: bool,
    /// Places of its statements that run, where they are fewer than the server's.
    pub(crate) places: Option<Arc<Semaphore>>,
    timeout: Option<Duration>,
    pub(crate) rows_max: Option<u64>,
}

impl Client {
    /// The holder of a token that may do all.
    fn free(token: Token, name: &str) -> Client {
        Client { token, name: name.into(), read_only: false, places: None, timeout: None, rows_max: None }
    }

    fn of(options: &TokenOptions) -> Client {
        let places = options.statements_max.map(|most| Arc::new(Semaphore::new(most.max(1))));
        Client {
            read_only: options.read_only,
            places,
            timeout: options.timeout,
            rows_max: options.rows_max,
            ..Client::free(Token::given(&options.token), &options.name)
        }
    }

    /// A connection with what the client may do.
    ///
    /// # Errors
    /// Settings of the database that contradict it.
    pub(crate) fn connect(&self, database: &Database) -> Result<Connection, SqlError> {
        let connection = database.connect_as(Some(self.name.clone()));
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
        Clients(std::iter::once(Client::free(drawn, DRAWN)).chain(others).map(Arc::new).collect())
    }

    /// The drawn token.
    pub(crate) fn drawn(&self) -> &Token {
        &self.0[0].token
    }

    /// The holder of a token, in a time that does not tell which one it is, nor how much of it is right.
    pub(crate) fn of(&self, text: &[u8]) -> Option<Arc<Client>> {
        self.0.iter().fold(None, |found, client| if client.token.is(text) { Some(client.clone()) } else { found })
    }

    /// Refuses statements that wait for a place of their client.
    pub(crate) fn close(&self) {
        self.0.iter().filter_map(|client| client.places.as_ref()).for_each(|places| places.close());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(name: &str, token: &str) -> TokenOptions {
        let (name, token) = (name.to_string(), token.to_string());
        TokenOptions { name, token, read_only: true, statements_max: None, timeout: None, rows_max: None }
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
