//! What reaches an element beside its ports and its control socket: flags of `planimeter progfe --program`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use packet::frame::PortNo;
use switch::config::ProGfeConfig;
use switch::services::http::HttpConfig;

use crate::cli::element::read;
use crate::cli::failure::Failure;

/// Characters of a token.
const TOKEN_BYTES_MIN: usize = 16;

/// The flags.
#[derive(clap::Args)]
pub struct Services {
    /// Take programs in frames of EtherType 0x88b6 that come in on this port
    #[arg(long, value_name = "N")]
    ethernet: Option<PortNo>,
    /// Agents of type "process" have their sockets in this folder, as NAME.sock
    #[arg(long, value_name = "FOLDER")]
    agents: Option<PathBuf>,
    /// Take programs by HTTP at this address and port, such as 127.0.0.1:8080
    #[arg(long, value_name = "ADDRESS")]
    http: Option<String>,
    /// A file with the token that who asks by HTTP has to show
    #[arg(long, value_name = "FILE", requires = "http")]
    http_token: Option<PathBuf>,
}

impl Services {
    /// Tells an element.
    pub fn tell(&self, config: &mut ProGfeConfig) -> Result<(), Failure> {
        config.agents.clone_from(&self.agents);
        config.http = self.http()?;
        config.ethernet = self.ethernet;
        Ok(())
    }

    /// A port alone is one of this host. Whoever reaches another address could program the element, and
    /// needs a token.
    fn http(&self) -> Result<Option<HttpConfig>, Failure> {
        let Some(text) = &self.http else { return Ok(None) };
        let port = text.parse().map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let address: SocketAddr = port.or_else(|_| text.parse()).map_err(|_| {
            Failure::usage(format!("--http {text}: write ADDRESS:PORT, such as 127.0.0.1:8080"))
        })?;
        let token = self.http_token.as_deref().map(read).transpose()?;
        let token = token.map(|token| token.trim().to_owned());
        if token.as_deref().is_some_and(|token| token.len() < TOKEN_BYTES_MIN) {
            let what = format!("--http-token: a token has at least {TOKEN_BYTES_MIN} characters");
            return Err(Failure::usage(what));
        }
        if token.is_none() && !address.ip().is_loopback() {
            return Err(Failure::usage(format!(
                "--http {text}: others than this host reach that address, and could program the \
                 element; name a file with a token by --http-token"
            )));
        }
        Ok(Some(HttpConfig { address, token }))
    }
}
