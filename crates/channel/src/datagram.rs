//! Datagrams to and from one peer: by UDP, or in memory for simulations.
//!
//! Like channels, they never wait. `send` reports when there is no room. UDP may lose datagrams. An
//! ICMP port unreachable message from the peer's host is an error of the next call.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of datagrams that wait in memory for one end; further ones are lost.
pub const MEMORY_DATAGRAMS_MAX: usize = 256;

/// A datagram socket with one peer.
pub trait Datagrams: Send {
    /// Sends a datagram. Returns whether there was room.
    fn send(&mut self, datagram: &[u8]) -> Result<bool, DatagramError>;

    /// Receives a datagram into the front of `buffer` and returns its length. Longer datagrams are
    /// truncated.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, DatagramError>;

    /// Returns the name of the peer, for display and reports.
    fn peer(&self) -> &str;
}

/// Error of a datagram socket.
#[derive(Debug)]
pub enum DatagramError {
    /// The peer's host reports that no socket has this port.
    Refused(String),
    /// Any other failed system call: operation, peer and error.
    System {
        /// The operation.
        doing: &'static str,
        /// The peer.
        what: String,
        /// The error of the system call.
        error: std::io::Error,
    },
}

/// A UDP socket connected to one address.
pub struct Udp {
    socket: UdpSocket,
    peer: String,
}

impl Udp {
    /// Opens a socket that receives from this address only.
    pub fn connect(address: SocketAddr) -> Result<Udp, DatagramError> {
        let peer = format!("udp:{address}");
        let open = || -> std::io::Result<UdpSocket> {
            let socket = match address {
                SocketAddr::V4(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?,
                SocketAddr::V6(_) => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?,
            };
            socket.set_nonblocking(true)?;
            socket.connect(address)?;
            Ok(socket)
        };
        match open() {
            Ok(socket) => Ok(Udp { socket, peer }),
            Err(error) => Err(failed("open a socket to", &peer, error)),
        }
    }

    /// Returns the local address that the system's routing selected.
    pub fn from(&self) -> Option<IpAddr> {
        self.socket.local_addr().ok().map(|address| address.ip())
    }
}

fn failed(doing: &'static str, peer: &str, error: std::io::Error) -> DatagramError {
    let what = peer.to_owned();
    match error.kind() {
        ErrorKind::ConnectionRefused => DatagramError::Refused(what),
        _ => DatagramError::System { doing, what, error },
    }
}

impl Datagrams for Udp {
    fn send(&mut self, datagram: &[u8]) -> Result<bool, DatagramError> {
        match self.socket.send(datagram) {
            Ok(_) => Ok(true),
            Err(error) if is_not_now(&error) => Ok(false),
            Err(error) => Err(failed("send to", &self.peer, error)),
        }
    }

    fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, DatagramError> {
        match self.socket.recv(buffer) {
            Ok(count) => Ok(Some(count)),
            Err(error) if is_not_now(&error) => Ok(None),
            Err(error) => Err(failed("receive from", &self.peer, error)),
        }
    }

    fn peer(&self) -> &str {
        &self.peer
    }
}

fn is_not_now(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Returns two linked ends in one process.
pub fn pair(label: &str) -> (Memory, Memory) {
    let (there, back) = (Arc::new(Queue::default()), Arc::new(Queue::default()));
    let end = |peer: u8, out: &Arc<Queue>, inn: &Arc<Queue>| Memory {
        out: out.clone(),
        inn: inn.clone(),
        peer: format!("{label}.{peer}"),
    };
    (end(1, &there, &back), end(0, &back, &there))
}

type Queue = Mutex<VecDeque<Vec<u8>>>;

/// One end of a linked pair.
pub struct Memory {
    out: Arc<Queue>,
    inn: Arc<Queue>,
    peer: String,
}

fn lock(queue: &Queue) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Datagrams for Memory {
    fn send(&mut self, datagram: &[u8]) -> Result<bool, DatagramError> {
        if Arc::strong_count(&self.out) == 1 {
            return Err(DatagramError::Refused(self.peer.clone()));
        }
        let mut queue = lock(&self.out);
        let has_room = queue.len() < MEMORY_DATAGRAMS_MAX;
        if has_room {
            queue.push_back(datagram.to_vec());
        }
        Ok(has_room)
    }

    fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, DatagramError> {
        let Some(datagram) = lock(&self.inn).pop_front() else { return Ok(None) };
        let count = datagram.len().min(buffer.len());
        buffer[..count].copy_from_slice(&datagram[..count]);
        Ok(Some(count))
    }

    fn peer(&self) -> &str {
        &self.peer
    }
}

impl std::fmt::Display for DatagramError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DatagramError::Refused(peer) => write!(f, "cannot send to {peer}: connection refused"),
            DatagramError::System { doing, what, error } => {
                write!(f, "cannot {doing} {what}: {error}")
            }
        }
    }
}

impl std::error::Error for DatagramError {}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use os::clock;
    use packet::time::Nanos;

    use super::*;

    /// Returns the first datagram or error within 20 seconds.
    fn wait(way: &mut dyn Datagrams) -> Result<Vec<u8>, DatagramError> {
        let (until, mut buffer) = (clock::now() + Nanos::from_secs(20), [0; 64]);
        loop {
            if let Some(count) = way.receive(&mut buffer)? {
                return Ok(buffer[..count].to_vec());
            }
            assert!(clock::now() < until, "nothing comes");
            std::thread::yield_now();
        }
    }

    #[test]
    fn datagrams_pass_in_both_directions_and_a_missing_peer_is_an_error() {
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = other.local_addr().unwrap();
        let mut way = Udp::connect(address).unwrap();
        assert_eq!(way.peer(), format!("udp:{address}"));
        assert!(way.send(b"question").unwrap());
        let mut buffer = [0; 64];
        let (count, from) = other.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..count], b"question");
        other.send_to(b"answer", from).unwrap();
        assert_eq!(wait(&mut way).unwrap(), b"answer");
        drop(other);
        way.send(b"question").unwrap();
        assert!(matches!(wait(&mut way), Err(DatagramError::Refused(_))));
    }

    #[test]
    fn memory_stores_a_limited_number_of_datagrams() {
        let (mut near, mut far) = pair("agent");
        let sent = (0..300).filter(|_| near.send(b"x").unwrap()).count();
        assert_eq!(sent, MEMORY_DATAGRAMS_MAX);
        assert_eq!(wait(&mut far).unwrap(), b"x");
        drop(far);
        assert!(matches!(near.send(b"x"), Err(DatagramError::Refused(_))));
    }
}
