//! Options of `planimeter progfe --program` for services other than ports and control socket.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use elements::config::ProGfeConfig;
use elements::services::http::{CONNECTIONS, HttpConfig};
use packet::frame::PortNo;

use crate::cli::connections;
use crate::cli::element::read;
use crate::cli::failure::Failure;

/// Minimum length of a token, in characters.
const TOKEN_BYTES_MIN: usize = 16;

/// The flags.
#[derive(clap::Args)]
pub struct Services {
    /// Accept programs by HTTP, such as at 127.0.0.1:8080
    #[arg(long, value_name = "ADDRESS")]
    http: Option<String>,
    /// File with the bearer token that HTTP clients must send
    #[arg(long = "http-token-file", value_name = "FILE", requires = "http")]
    http_token: Option<PathBuf>,
    /// Accept HTTP requests for this host name too
    #[arg(long = "server-name", value_name = "NAME", requires = "http")]
    names: Vec<String>,
    #[command(flatten)]
    connections: connections::ConnectionArguments,
    /// Accept programs in frames of EtherType 0x88b6 at this port
    #[arg(long, value_name = "N")]
    ethernet: Option<PortNo>,
    /// Folder of the sockets (NAME.sock) of agents of type "process"
    #[arg(long = "agent-socket-dir", value_name = "FOLDER")]
    agents: Option<PathBuf>,
}

impl Services {
    /// Adds the services to an element's configuration.
    pub fn tell(&self, config: &mut ProGfeConfig, is_insecure: bool) -> Result<(), Failure> {
        config.agents.clone_from(&self.agents);
        config.http = self.http(is_insecure)?;
        config.ethernet = self.ethernet;
        Ok(())
    }

    /// A port without an address means this host.
    fn http(&self, is_insecure: bool) -> Result<Option<HttpConfig>, Failure> {
        let Some(text) = &self.http else { return Ok(None) };
        let port = text.parse().map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let address: SocketAddr = port.or_else(|_| text.parse()).map_err(|_| {
            Failure::usage(format!(
                "--http {text}: invalid address (hint: use ADDRESS:PORT, such as 127.0.0.1:8080)"
            ))
        })?;
        let token = self.http_token.as_deref().map(read).transpose()?;
        let token = token.map(|token| token.trim().to_owned());
        if token.as_deref().is_some_and(|token| token.len() < TOKEN_BYTES_MIN) {
            let what = format!(
                "--http-token-file: the token is too short (hint: use at least {TOKEN_BYTES_MIN} \
                 characters)"
            );
            return Err(Failure::usage(what));
        }
        let (names, limits) = (self.names.clone(), self.connections.limits(CONNECTIONS));
        Ok(Some(HttpConfig { address, token, names, limits, is_insecure }))
    }
}
