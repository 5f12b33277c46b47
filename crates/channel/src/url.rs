//! Addresses of channels, in the syntax of Open vSwitch.
//!
//! - Connect: `tcp:IP[:PORT]`, `ssl:IP[:PORT]` and `unix:FILE`.
//! - Listen: `ptcp:[PORT][:IP]`, `pssl:[PORT][:IP]` and `punix:FILE`.
//! - `tls:` and `ptls:` are read as `ssl:` and `pssl:`.
//! - `sctp:` and `psctp:` are like `tcp:` and `ptcp:`, if the kernel supports SCTP.
//! - An IPv6 address is in brackets. The default port is 6653, which IANA assigned to OpenFlow.
//! - A listener without an address accepts connections on 127.0.0.1 only, whereas Open vSwitch
//!   accepts them on every address. Use `ptcp:6653:0.0.0.0` or `ptcp:6653:[::]` for that.
//! - Names are not resolved: a measurement must not depend on a resolver.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use super::ChannelError;

/// The default port.
pub const PORT_DEFAULT: u16 = 6653;

/// Longest path of a Unix socket address, in bytes.
pub const PATH_BYTES_MAX: usize = 107;

/// The address of one end of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Url {
    /// `tcp:IP:PORT`: connects by TCP.
    Tcp(SocketAddr),
    /// `ptcp:PORT:IP`: listens for TCP; the system chooses port 0, and the default address is
    /// 127.0.0.1.
    PassiveTcp(SocketAddr),
    /// `ssl:IP:PORT`: connects by TLS.
    Tls(SocketAddr),
    /// `pssl:PORT:IP`: listens for TLS; the system chooses port 0.
    PassiveTls(SocketAddr),
    /// `sctp:IP:PORT`: connects by SCTP.
    Sctp(SocketAddr),
    /// `psctp:PORT:IP`: listens for SCTP; the system chooses port 0.
    PassiveSctp(SocketAddr),
    /// `unix:FILE`: connects to this socket file.
    Unix(PathBuf),
    /// `punix:FILE`: listens on this socket file.
    PassiveUnix(PathBuf),
}

impl Url {
    /// Returns whether the address is one to listen on.
    pub fn is_passive(&self) -> bool {
        matches!(
            self,
            Url::PassiveTcp(_) | Url::PassiveTls(_) | Url::PassiveSctp(_) | Url::PassiveUnix(_)
        )
    }

    /// Parses an address with this default port.
    pub fn with_default_port(text: &str, port: u16) -> Result<Url, ChannelError> {
        parse(text, port).map_err(|why| ChannelError::BadUrl(text.to_owned(), why))
    }

    /// Returns whether the address uses TLS.
    pub fn is_tls(&self) -> bool {
        matches!(self, Url::Tls(_) | Url::PassiveTls(_))
    }
}

impl FromStr for Url {
    type Err = ChannelError;

    fn from_str(text: &str) -> Result<Self, ChannelError> {
        Url::with_default_port(text, PORT_DEFAULT)
    }
}

fn parse(text: &str, port: u16) -> Result<Url, &'static str> {
    let (scheme, rest) = text.split_once(':').ok_or(KNOWN)?;
    match scheme {
        "tcp" => active(rest, port).map(Url::Tcp),
        "ptcp" => passive(rest, port).map(Url::PassiveTcp),
        "sctp" => active(rest, port).map(Url::Sctp),
        "psctp" => passive(rest, port).map(Url::PassiveSctp),
        "unix" => file(rest).map(Url::Unix),
        "punix" => file(rest).map(Url::PassiveUnix),
        "ssl" | "tls" => active(rest, port).map(Url::Tls),
        "pssl" | "ptls" => passive(rest, port).map(Url::PassiveTls),
        _ => Err(KNOWN),
    }
}

const KNOWN: &str = "unknown scheme (hint: use tcp:IP:PORT, ssl:IP:PORT, sctp:IP:PORT, \
    ptcp:PORT[:IP], pssl:PORT[:IP], psctp:PORT[:IP], unix:FILE or punix:FILE)";

fn file(text: &str) -> Result<PathBuf, &'static str> {
    match text.len() {
        0 => Err("missing file"),
        1..=PATH_BYTES_MAX if !text.contains('\0') => Ok(PathBuf::from(text)),
        1..=PATH_BYTES_MAX => Err("zero byte in the file name"),
        _ => Err("socket path too long: at most 107 bytes"),
    }
}

fn active(text: &str, default: u16) -> Result<SocketAddr, &'static str> {
    let (address, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, rest) = rest.split_once(']').ok_or("missing closing bracket")?;
            match rest.strip_prefix(':') {
                Some(port) => (address, Some(port)),
                None if rest.is_empty() => (address, None),
                None => return Err("expected :PORT after the address in brackets"),
            }
        }
        None => match text.split_once(':') {
            Some((address, port)) => (address, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        Some(port) => number(port)?,
        None => default,
    };
    if port == 0 {
        return Err("port 0 is not a port to connect to");
    }
    Ok(SocketAddr::new(ip(address)?, port))
}

fn passive(text: &str, default: u16) -> Result<SocketAddr, &'static str> {
    let (port, address) = match text.split_once(':') {
        Some((port, address)) => (port, Some(address)),
        None => (text, None),
    };
    let port = if port.is_empty() { default } else { number(port)? };
    let address = match address {
        None => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Some(text) => {
            let inside = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            ip(inside.unwrap_or(text))?
        }
    };
    Ok(SocketAddr::new(address, port))
}

fn number(text: &str) -> Result<u16, &'static str> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits).ok_or("invalid port (hint: use a number from 0 to 65535)")
}

fn ip(text: &str) -> Result<IpAddr, &'static str> {
    text.parse().map_err(
        |_| "not an IP address (hint: use an address, IPv6 in brackets; names are not resolved)",
    )
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Url::Tcp(address) => write!(f, "tcp:{address}"),
            Url::Tls(address) => write!(f, "ssl:{address}"),
            Url::Sctp(address) => write!(f, "sctp:{address}"),
            Url::PassiveSctp(address) => write_passive(f, "psctp", *address),
            Url::PassiveTcp(address) => write_passive(f, "ptcp", *address),
            Url::PassiveTls(address) => write_passive(f, "pssl", *address),
            Url::Unix(path) => write!(f, "unix:{}", path.display()),
            Url::PassiveUnix(path) => write!(f, "punix:{}", path.display()),
        }
    }
}

fn write_passive(f: &mut fmt::Formatter<'_>, scheme: &str, address: SocketAddr) -> fmt::Result {
    match address.ip() {
        IpAddr::V4(ip) => write!(f, "{scheme}:{}:{ip}", address.port()),
        IpAddr::V6(ip) => write!(f, "{scheme}:{}:[{ip}]", address.port()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip() {
        for (text, back) in [
            ("tcp:127.0.0.1:6633", "tcp:127.0.0.1:6633"),
            ("tcp:127.0.0.1", "tcp:127.0.0.1:6653"),
            ("tcp:[::1]:1", "tcp:[::1]:1"),
            ("tcp:[::1]", "tcp:[::1]:6653"),
            ("ptcp:6653", "ptcp:6653:127.0.0.1"),
            ("ptcp:", "ptcp:6653:127.0.0.1"),
            ("ptcp:6653:0.0.0.0", "ptcp:6653:0.0.0.0"),
            ("ptcp:0:127.0.0.1", "ptcp:0:127.0.0.1"),
            ("ptcp:1:[::]", "ptcp:1:[::]"),
            ("ptcp::127.0.0.1", "ptcp:6653:127.0.0.1"),
            ("ssl:127.0.0.1:6633", "ssl:127.0.0.1:6633"),
            ("tls:[::1]", "ssl:[::1]:6653"),
            ("pssl:", "pssl:6653:127.0.0.1"),
            ("ptls:0:[::1]", "pssl:0:[::1]"),
            ("sctp:127.0.0.1:6704", "sctp:127.0.0.1:6704"),
            ("psctp:6704", "psctp:6704:127.0.0.1"),
            ("unix:/run/x.sock", "unix:/run/x.sock"),
            ("punix:a:b", "punix:a:b"),
        ] {
            let url: Url = text.parse().unwrap();
            assert_eq!(url.to_string(), back);
            assert_eq!(back.parse::<Url>().unwrap(), url);
            assert_eq!(url.is_passive(), text.starts_with('p'));
        }
    }

    #[test]
    fn invalid_addresses_are_rejected_with_a_reason() {
        let long = format!("unix:{}", "x".repeat(108));
        for (text, word) in [
            ("", "known"),
            ("127.0.0.1", "known"),
            ("http:1.2.3.4", "known"),
            ("ssl:", "IP address"),
            ("pssl:x", "port"),
            ("tcp:", "IP address"),
            ("tcp:localhost:1", "IP address"),
            ("tcp:::1:6653", "port"),
            ("tcp:1.2.3.4:", "port"),
            ("tcp:1.2.3.4:+5", "port"),
            ("tcp:1.2.3.4:70000", "port"),
            ("tcp:1.2.3.4:0", "port 0"),
            ("tcp:[::1", "bracket"),
            ("tcp:[::1]6653", ":PORT"),
            ("ptcp:x", "port"),
            ("ptcp:1:y", "IP address"),
            ("unix:", "missing"),
            ("unix:a\0b", "zero"),
            (long.as_str(), "107"),
        ] {
            let error = text.parse::<Url>().unwrap_err().to_string();
            assert!(error.contains(word), "{text:?} gives {error:?}, which lacks {word:?}");
        }
    }
}
