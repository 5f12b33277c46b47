//! `planimeter serve`: the web interface.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use super::failure::Failure;
use super::output::{remark, say};
use super::{connections, run, signals, team_store, variables};
use crate::serve::{CONNECTIONS, RemoteStore, ServeOptions, Server, Token};

/// Arguments of `planimeter serve`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Folder of runs [default: runs, created if missing]
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Address to listen on; port 0 selects a free port; nothing is encrypted
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:7700")]
    pub(crate) listen: SocketAddr,
    /// Read the token from a file, instead of creating one
    #[arg(long = "token-file", value_name = "FILE")]
    pub(crate) token: Option<PathBuf>,
    /// Accept requests for this host name too
    #[arg(long = "server-name", value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Limits on connections.
    #[command(flatten)]
    pub(crate) connections: connections::ConnectionArguments,
    /// Show the runs of a team store, and send those of DIR to it:
    /// postgres://USER@HOST:PORT/DATABASE [env: PLANIMETER_STORE]
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
}

/// Examples at the end of the help.
const EXAMPLES: &str = "\
Examples:
  planimeter serve
  planimeter serve results --listen 127.0.0.1:0
  planimeter serve --listen 192.0.2.1:7700 --server-name lab.example.net --token-file token.txt";

/// Serves until it is stopped.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let folder = &run::out_folder(arguments.folder.as_ref());
    let store = team_store::asked(arguments.store.as_ref())?.map(|address| RemoteStore {
        address,
        asked: arguments.store.clone(),
        origin: team_store::origin(),
    });
    if !folder.is_dir() {
        // A missing folder that the user names may be a typing error.
        let created = match &arguments.folder {
            Some(_) => Err(std::io::ErrorKind::NotFound.into()),
            None => std::fs::create_dir(folder),
        };
        created.map_err(|error: std::io::Error| {
            Failure::usage(format!(
                "cannot serve {}: {error} (hint: create the folder, or name an existing one)",
                folder.display()
            ))
        })?;
    }
    let token = match &arguments.token {
        Some(file) => Token::of_file(file)
            .map_err(|error| Failure::usage(format!("--token-file {}: {error}", file.display())))?,
        None => Token::random()
            .map_err(|error| Failure::need(format!("cannot create a token: {error}")))?,
    };
    let stop = signals::flag()?;
    let program = variables::surroundings()?.program;
    let text = token.text().to_string();
    let both = store.as_ref().map(|store| format!(" and {}", store.address)).unwrap_or_default();
    let (names, limits) = (arguments.names.clone(), arguments.connections.limits(CONNECTIONS));
    let wanted = ServeOptions { folder: folder.clone(), token, program, store, names, limits };
    let server = Server::open(arguments.listen, wanted).map_err(|error| {
        Failure::usage(format!(
            "cannot listen on {}: {error} (hint: choose another address, such as --listen \
             127.0.0.1:0)",
            arguments.listen
        ))
    })?;
    let address = server.address();
    if !address.ip().is_loopback() {
        remark!(
            "planimeter: warning: --listen {address} is not encrypted; other hosts that learn the \
             token can start runs as this user (hint: listen on 127.0.0.1)"
        );
    }
    say!("http://{address}/?token={text}");
    remark!("serving runs in {}{both}; stop with Ctrl-C", folder.display());
    let left =
        server.run(&stop).map_err(|error| Failure::need(format!("cannot serve: {error}")))?;
    if let Some(process) = left {
        remark!(
            "a run that was started here continues (hint: run 'kill -INT {process}' to stop it)"
        );
    }
    Ok(ExitCode::SUCCESS)
}
