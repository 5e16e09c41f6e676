//! `warpcube serve`: a server on this machine, until a signal ends it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use warpcube_server::{Server, ServerError, ServerOptions, TokenOptions, TokenPlace};
use warpcube_sql::Database;

use crate::console::tell;
use crate::error::{CliError, Result};
use crate::exit;
use crate::host::{self, Host};

/// The time that requests have to end after the first signal.
const DRAIN: Duration = Duration::from_secs(30);
/// Statements at once, where the command line does not say.
const STATEMENTS: usize = 16;
/// Bytes of the body of a request.
const BODY_MAX: usize = 16 << 20;

/// What to serve, and where.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Serve the catalog that is kept in this folder; a name with a slash at its end is made
    #[arg(value_name = "FOLDER")]
    pub(crate) catalog: Option<PathBuf>,
    /// Listen for HTTP here; loopback alone, port 0 is any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8432")]
    listen: SocketAddr,
    /// Listen for Arrow Flight SQL here; loopback alone, port 0 is any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8433")]
    flight_listen: SocketAddr,
    /// Write the token to this file; otherwise to one of the user's folder for the time of a session, or for caches
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Run at most so many statements at once; others wait for their turn
    #[arg(long, value_name = "NUMBER", default_value_t = STATEMENTS)]
    statements: usize,
    /// Once the device is lost, go on by the CPU, or exit with code 1 when all requests are answered, so that a
    /// supervisor starts the server anew
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = OnDeviceLoss::GoOn)]
    on_device_loss: OnDeviceLoss,
}

/// What follows the loss of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnDeviceLoss {
    /// Statements run on the CPU.
    GoOn,
    /// The server ends.
    Exit,
}

/// Serves a database to the holders of tokens until a signal ends the program. `file` is the configuration file.
pub(crate) fn run(
    args: &ServeArgs,
    tokens: Vec<TokenOptions>,
    file: Option<PathBuf>,
    database: &Database,
    host: &Arc<Host>,
) -> Result<()> {
    host.hold(database);
    let options = ServerOptions {
        http: args.listen,
        flight: args.flight_listen,
        token: token_place(args.token_file.as_deref())?,
        tokens,
        secret_files: file.into_iter().collect(),
        statements_max: args.statements,
        body_max: BODY_MAX,
    };
    let mut interrupts = host.interrupts()?;
    host.serve();
    let server = Server::start(database.clone(), host::working, &options)?;
    if database.device().may_open() {
        database.open_device_in_background();
    }
    tell(format_args!("HTTP: http://{}", server.http()));
    tell(format_args!("Flight SQL: grpc://{}", server.flight()));
    tell(format_args!("token: {}", server.token_file().display()));
    let is_lost = host.block_on(async {
        let is_lost = tokio::select! {
            _ = interrupts.recv() => false,
            () = server.device_lost(), if args.on_device_loss == OnDeviceLoss::Exit => true,
        };
        tell("the server ends when its requests have ended; Ctrl-C ends it now");
        tokio::select! {
            () = interrupts.interrupt() => {}
            is_drained = server.drain(DRAIN) => {
                if !is_drained {
                    tell(format_args!("statements that had not ended in {} s were cancelled", DRAIN.as_secs()));
                }
            }
        }
        is_lost
    });
    drop(server);
    exit::close(database);
    match is_lost {
        true => Err(ServerError::DeviceLost.into()),
        false => Ok(()),
    }
}

/// The place of the token: the file that is named, or a folder that is the user's alone.
fn token_place(file: Option<&Path>) -> Result<TokenPlace> {
    if let Some(file) = file {
        return Ok(TokenPlace::File(file.to_path_buf()));
    }
    let none = || CliError::Usage("there is no folder for the token; name a file by --token-file".into());
    let folder = dirs::runtime_dir().or_else(dirs::cache_dir).ok_or_else(none)?.join("warpcube");
    let failed = |error: std::io::Error| ServerError::Token { path: folder.clone(), reason: error.to_string() };
    std::fs::create_dir_all(&folder).map_err(failed)?;
    Ok(TokenPlace::Folder(folder))
}
