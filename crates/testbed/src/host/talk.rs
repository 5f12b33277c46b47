//! A client that sends a datagram and waits for its echo, and the server that returns it, on two
//! hosts.
//!
//! - This follows studies with a client and a server program: one datagram outstanding, blocking
//!   calls, monotonic clock readings around them.
//! - Both threads run on the cores of the calling thread.
//! - The first eight bytes of a datagram are its number, so that a late echo or another sender's
//!   datagram is not mistaken for the expected one.
//!
//! Invariant: every sent datagram has returned or is lost; no wait exceeds its timeout.

#![allow(clippy::disallowed_methods)]

use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::Host;
use crate::LabError;

/// Bytes of a datagram's number.
const NUMBER_BYTES: usize = 8;

/// Largest UDP payload over IPv4 in a packet of 1,500 bytes.
const PAYLOAD_BYTES_MAX: usize = 1472;

/// Interval at which an idle server checks whether it must end.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Parameters of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExchangeSettings {
    /// Bytes of a datagram's payload, 8 to 1,472.
    pub payload_bytes: usize,
    /// Number of datagrams.
    pub packets: u64,
    /// Timeout after which a datagram is lost.
    pub wait: Duration,
    /// Number of consecutive losses that end the exchange.
    pub lost_in_a_row_max: u64,
}

/// A returned datagram; times are relative to the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Its number, from 0.
    pub number: u64,
    /// Time immediately before the client sent it.
    pub sent_at: Duration,
    /// Time immediately after the server received it.
    pub came_at: Duration,
    /// Time immediately before the server sent it back.
    pub answered_at: Duration,
    /// Time immediately after the client received the echo.
    pub back_at: Duration,
}

/// Result of an exchange.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExchangeResult {
    /// Returned datagrams, in order.
    pub returned: Vec<Exchange>,
    /// Number of sent datagrams; the others are lost.
    pub sent: u64,
    /// Whether too many consecutive datagrams were lost.
    pub is_given_up: bool,
}

/// The server's record of a datagram: its number, time of receipt, time of the echo.
type EchoedDatagram = (u64, Duration, Duration);

/// Runs an exchange between a client and a server until all datagrams are sent, too many are lost,
/// or `stop` is set.
pub fn talk(
    client: &Host,
    server: &Host,
    terms: &ExchangeSettings,
    stop: &AtomicBool,
) -> Result<ExchangeResult, LabError> {
    if !(NUMBER_BYTES..=PAYLOAD_BYTES_MAX).contains(&terms.payload_bytes) {
        let value = terms.payload_bytes.to_string();
        return Err(LabError::Argument { what: "datagram size in bytes", value });
    }
    let sockets = [opened(client, server, terms.wait)?, opened(server, client, POLL_INTERVAL)?];
    let [near, far] = &sockets;
    let (begun, is_over) = (Instant::now(), AtomicBool::new(false));
    let (said, answered) = thread::scope(|scope| {
        let serving = scope.spawn(|| serve(far, begun, &is_over));
        let said = say(near, terms, begun, stop);
        is_over.store(true, Ordering::Relaxed);
        (said, serving.join().expect("the server thread does not panic"))
    });
    let failed = |what: &'static str, host: &Host| {
        let subject = host.socket_address().to_string();
        move |error| LabError::system(what, subject, error)
    };
    let (rows, sent, is_given_up) = said.map_err(failed("send datagrams from", client))?;
    let answered = answered.map_err(failed("return datagrams at", server))?;
    Ok(ExchangeResult { returned: joined(&rows, &answered), sent, is_given_up })
}

/// Opens a host's socket that receives only from the other host.
fn opened(host: &Host, peer: &Host, patience: Duration) -> Result<UdpSocket, LabError> {
    let open = || -> io::Result<UdpSocket> {
        let socket = UdpSocket::bind(host.socket_address())?;
        socket.connect(peer.socket_address())?;
        socket.set_read_timeout(Some(patience))?;
        Ok(socket)
    };
    let subject = || host.socket_address().to_string();
    let opened = host.namespace().run(open)?;
    opened.map_err(|error| LabError::system("open a socket at", subject(), error))
}

/// The client's record: number, time sent and time returned per datagram; how many were sent;
/// whether it gave up.
type ClientRecord = (Vec<(u64, Duration, Duration)>, u64, bool);

fn say(
    socket: &UdpSocket,
    terms: &ExchangeSettings,
    begun: Instant,
    stop: &AtomicBool,
) -> io::Result<ClientRecord> {
    let (mut datagram, mut buffer) = (vec![0; terms.payload_bytes], [0; PAYLOAD_BYTES_MAX]);
    let (mut rows, mut lost_in_a_row, mut sent) = (Vec::new(), 0, 0);
    while sent < terms.packets && !stop.load(Ordering::Relaxed) {
        let number = sent;
        datagram[..NUMBER_BYTES].copy_from_slice(&number.to_be_bytes());
        let sent_at = begun.elapsed();
        socket.send(&datagram)?;
        sent += 1;
        match echo(socket, number, &mut buffer, begun, sent_at + terms.wait)? {
            Some(back_at) => {
                rows.push((number, sent_at, back_at));
                lost_in_a_row = 0;
            }
            None => lost_in_a_row += 1,
        }
        if lost_in_a_row >= terms.lost_in_a_row_max {
            return Ok((rows, sent, true));
        }
    }
    Ok((rows, sent, false))
}

/// Returns when the echo with this number arrived, if it did in time.
fn echo(
    socket: &UdpSocket,
    number: u64,
    buffer: &mut [u8],
    begun: Instant,
    deadline: Duration,
) -> io::Result<Option<Duration>> {
    loop {
        let came = received(socket, buffer)?;
        let at = begun.elapsed();
        if came == Some(number) {
            return Ok(Some(at));
        }
        if at >= deadline {
            return Ok(None);
        }
    }
}

/// Returns the number of the next datagram, or none on a timeout.
fn received(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Option<u64>> {
    match socket.recv(buffer) {
        Ok(count) => {
            let number = buffer[..count].first_chunk::<NUMBER_BYTES>();
            Ok(number.map(|bytes| u64::from_be_bytes(*bytes)))
        }
        Err(error) if is_silence(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns whether the error means a timeout, a signal, or an earlier datagram that found no socket
/// at the other host.
fn is_silence(error: &io::Error) -> bool {
    let kinds = [
        ErrorKind::WouldBlock,
        ErrorKind::TimedOut,
        ErrorKind::Interrupted,
        ErrorKind::ConnectionRefused,
    ];
    kinds.contains(&error.kind())
}

fn serve(
    socket: &UdpSocket,
    begun: Instant,
    is_over: &AtomicBool,
) -> io::Result<Vec<EchoedDatagram>> {
    let (mut buffer, mut rows) = ([0; PAYLOAD_BYTES_MAX], Vec::new());
    while !is_over.load(Ordering::Relaxed) {
        let count = match socket.recv(&mut buffer) {
            Ok(count) => count,
            Err(error) if is_silence(&error) => continue,
            Err(error) => return Err(error),
        };
        let came_at = begun.elapsed();
        let Some(number) = buffer[..count].first_chunk::<NUMBER_BYTES>() else { continue };
        let number = u64::from_be_bytes(*number);
        let answered_at = begun.elapsed();
        match socket.send(&buffer[..count]) {
            Ok(_) => rows.push((number, came_at, answered_at)),
            Err(error) if is_silence(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(rows)
}

/// Joins the times of both ends per returned datagram. If a switch duplicated a datagram, the first
/// one counts.
fn joined(said: &[(u64, Duration, Duration)], answered: &[EchoedDatagram]) -> Vec<Exchange> {
    let mut answers = answered.iter().copied().peekable();
    let mut row = |&(number, sent_at, back_at): &(u64, Duration, Duration)| {
        while answers.next_if(|(other, ..)| *other < number).is_some() {}
        let (_, came_at, answered_at) = *answers.peek().filter(|(other, ..)| *other == number)?;
        Some(Exchange { number, sent_at, came_at, answered_at, back_at })
    };
    said.iter().filter_map(&mut row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_both_ends_are_joined_by_number() {
        let at = Duration::from_micros;
        let requests = [(0, at(0), at(9)), (2, at(20), at(29)), (3, at(30), at(39))];
        let answered =
            [(0, at(3), at(4)), (1, at(13), at(14)), (2, at(23), at(24)), (2, at(25), at(26))];
        let found = joined(&requests, &answered);
        let rows: Vec<_> = found.iter().map(|it| (it.number, it.came_at, it.back_at)).collect();
        // A datagram that the server did not record has no times there.
        assert_eq!(rows, [(0, at(3), at(9)), (2, at(23), at(29))]);
    }
}
