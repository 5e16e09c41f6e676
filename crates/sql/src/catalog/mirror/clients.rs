//! Clients of buckets and of web servers; the only module that needs the feature `remote`.

use std::sync::Arc;

use datafusion::object_store::ObjectStore;

use super::place::Place;
use crate::error::Result;

/// The clients that a database has made.
#[derive(Debug, Default)]
pub(super) struct Clients {
    #[cfg(feature = "remote")]
    made: remote::Made,
}

#[cfg(not(feature = "remote"))]
impl Clients {
    /// # Errors
    /// Always: this build has no clients.
    pub(super) fn of(&self, place: &Place) -> Result<Arc<dyn ObjectStore>> {
        let reason = "this build has no files elsewhere: it was made without the feature 'remote'".to_string();
        Err(crate::error::SqlError::FileElsewhere { url: place.url(), reason })
    }
}

#[cfg(feature = "remote")]
impl Clients {
    /// The client of a bucket, or of one URL of a web server.
    ///
    /// # Errors
    /// A variable of the environment with a value that it does not take.
    pub(super) fn of(&self, place: &Place) -> Result<Arc<dyn ObjectStore>> {
        self.made.of(place).map_err(|error| super::answers::refused(place.url(), &error))
    }
}

#[cfg(feature = "remote")]
mod remote {
    use std::collections::HashMap;
    use std::sync::Arc;
    use std::time::Duration;

    use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
    use object_store::client::{HttpClient, HttpConnector, ReqwestConnector};
    use object_store::http::HttpBuilder;
    use object_store::{ClientConfigKey, ClientOptions, ObjectStore, Result, RetryConfig};
    use parking_lot::Mutex;

    use super::Place;

    /// How long a server may take to accept a connection.
    const CONNECTED: Duration = Duration::from_secs(5);
    /// Requests that fail because of the server or the network are sent again so often.
    const RETRIES: usize = 3;
    /// How long they are sent again.
    const RETRIED: Duration = Duration::from_secs(20);
    /// No bound of a whole request: how long a part of it may take is bounded where it is read.
    const WHOLE_REQUEST: &str = "1day";
    const USER_AGENT: &str = concat!("warpcube/", env!("CARGO_PKG_VERSION"));

    #[derive(Debug, Default)]
    pub(super) struct Made {
        /// By bucket.
        buckets: Mutex<HashMap<String, Arc<dyn ObjectStore>>>,
        /// Connections to web servers, by scheme.
        connections: Mutex<HashMap<&'static str, HttpClient>>,
    }

    /// Hands out one client, so that requests share its connections.
    #[derive(Debug)]
    struct Shared(HttpClient);

    impl HttpConnector for Shared {
        fn connect(&self, _options: &ClientOptions) -> Result<HttpClient> {
            Ok(self.0.clone())
        }
    }

    impl Made {
        pub(super) fn of(&self, place: &Place) -> Result<Arc<dyn ObjectStore>> {
            if place.scheme != "s3" {
                return self.page(place);
            }
            let mut buckets = self.buckets.lock();
            if let Some(known) = buckets.get(&place.authority) {
                return Ok(known.clone());
            }
            let client = |key: ClientConfigKey| AmazonS3ConfigKey::Client(key);
            let store = AmazonS3Builder::from_env()
                .with_bucket_name(&place.authority)
                .with_config(client(ClientConfigKey::ConnectTimeout), format!("{}s", CONNECTED.as_secs()))
                .with_config(client(ClientConfigKey::Timeout), WHOLE_REQUEST)
                .with_config(client(ClientConfigKey::UserAgent), USER_AGENT)
                .with_retry(retries())
                .build()?;
            let store: Arc<dyn ObjectStore> = Arc::new(store);
            buckets.insert(place.authority.clone(), store.clone());
            Ok(store)
        }

        /// The client of one URL.
        fn page(&self, place: &Place) -> Result<Arc<dyn ObjectStore>> {
            // A server of https:// must not send a client to http://.
            let options = ClientOptions::new()
                .with_allow_http(place.scheme == "http")
                .with_connect_timeout(CONNECTED)
                .with_timeout_disabled()
                .with_config(ClientConfigKey::UserAgent, USER_AGENT);
            let mut connections = self.connections.lock();
            let client = match connections.get(place.scheme) {
                Some(known) => known.clone(),
                None => {
                    let new = ReqwestConnector::default().connect(&options)?;
                    connections.insert(place.scheme, new.clone());
                    new
                }
            };
            let builder = HttpBuilder::new().with_url(&place.request).with_client_options(options);
            Ok(Arc::new(builder.with_retry(retries()).with_http_connector(Shared(client)).build()?))
        }
    }

    fn retries() -> RetryConfig {
        RetryConfig { max_retries: RETRIES, retry_timeout: RETRIED, ..RetryConfig::default() }
    }
}
