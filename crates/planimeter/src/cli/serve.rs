//! `planimeter serve`: the web interface.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use super::failure::Failure;
use super::out::{remark, say};
use super::{connections, place, stop, team};
use crate::serve::{CONNECTIONS, Elsewhere, Server, Token, Wanted};

/// Arguments of `planimeter serve`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The folder in which runs lie
    #[arg(value_name = "DIR", default_value = "runs")]
    pub folder: PathBuf,
    /// Where to listen; with port 0, at one that is free. An address other than this machine's own lets others in who have the
    /// token, which passes unencrypted
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:7700")]
    pub listen: SocketAddr,
    /// Take the token from this file instead of making one at each start, such as for Prometheus
    #[arg(long, value_name = "FILE")]
    pub token: Option<PathBuf>,
    /// Answer requests that call this server by this name, besides its addresses and localhost
    #[arg(long = "server-name", value_name = "NAME")]
    pub names: Vec<String>,
    /// Limits on connections.
    #[command(flatten)]
    pub connections: connections::ConnectionArguments,
    /// Show the runs of all who use this store for teams, to which those of DIR are sent, and those that begin here:
    /// postgres://USER@HOST:PORT/DATABASE; PLANIMETER_STORE unless said
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
}

/// Serves until it is stopped.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let folder = &arguments.folder;
    let store = team::asked(arguments.store.as_ref())?.map(|address| Elsewhere {
        address,
        asked: arguments.store.clone(),
        origin: team::origin(),
    });
    if !folder.is_dir() {
        std::fs::create_dir(folder).map_err(|error| {
            Failure::usage(format!(
                "{}: {error}; name the folder in which runs lie",
                folder.display()
            ))
        })?;
    }
    let token = match &arguments.token {
        Some(file) => Token::of_file(file)
            .map_err(|error| Failure::usage(format!("--token {}: {error}", file.display())))?,
        None => Token::random()
            .map_err(|error| Failure::need(format!("random numbers for a token: {error}")))?,
    };
    let stop = stop::flag()?;
    let program = place::surroundings()?.program;
    let text = token.text().to_string();
    let both = store.as_ref().map(|store| format!(" and {}", store.address)).unwrap_or_default();
    let (names, limits) = (arguments.names.clone(), arguments.connections.limits(CONNECTIONS));
    let wanted = Wanted { folder: folder.clone(), token, program, store, names, limits };
    let server = Server::open(arguments.listen, wanted).map_err(|error| {
        Failure::usage(format!(
            "--listen {}: {error}; choose another, such as --listen 127.0.0.1:0",
            arguments.listen
        ))
    })?;
    let address = server.address();
    if !address.ip().is_loopback() {
        remark!(
            "planimeter: --listen {address}: whoever can reach it and sees the token pass can start runs as this user; \
             nothing is encrypted"
        );
    }
    say!("http://{address}/?token={text}");
    remark!("runs in {}{both}; Ctrl-C ends", folder.display());
    let left = server.run(&stop).map_err(|error| Failure::need(format!("serving: {error}")))?;
    if let Some(process) = left {
        remark!("the run that was begun here goes on: kill -INT {process} ends it");
    }
    Ok(ExitCode::SUCCESS)
}
