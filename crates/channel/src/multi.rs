//! Several channels to one peer, each for messages of one priority.
//!
//! One end connects them one after the other, the last one first. The other end listens, and groups
//! the channels of one host in the order of their arrival. Invariant: there is at most one
//! connection attempt. There are at most [`GUESTS`] accepted channels of incomplete
//! groups, none for longer than [`PATIENCE`].

use std::os::fd::RawFd;

use packet::time::Nanos;

use super::admission::{AdmissionResult, AdmittedConnection, ConnectionLimits, Source};
use super::{Channel, ChannelError, Connecting, Listener, Progress, Tls, Url};

/// Number of channels to one peer.
pub const CHANNELS: usize = 3;
/// Timeout for the connection of all channels.
pub const PATIENCE: Nanos = Nanos::from_secs(5);
/// Limits on channels of incomplete groups. A further channel replaces the oldest one of its
/// source, or of the source with the most.
pub const GUESTS: ConnectionLimits = ConnectionLimits { total: 64, per_source: 12 };
/// Maximum number of channels that are accepted in one turn.
const ACCEPTS_A_TURN: usize = 16;

/// The channels to one peer, the highest priority first.
pub type Channels = [Box<dyn Channel>; CHANNELS];

/// Channels being connected.
pub struct PendingChannels {
    urls: [Url; CHANNELS],
    tls: Option<Tls>,
    /// Connected channels, the last one first.
    made: Vec<Box<dyn Channel>>,
    attempt: Option<Connecting>,
    until: Nanos,
}

impl PendingChannels {
    /// Starts to connect to active addresses.
    pub fn start(
        urls: [Url; CHANNELS],
        tls: Option<&Tls>,
        now: Nanos,
    ) -> Result<PendingChannels, ChannelError> {
        let until = now.saturating_add(PATIENCE);
        let tls = tls.cloned();
        let mut dialling = PendingChannels { urls, tls, made: Vec::new(), attempt: None, until };
        dialling.next(now)?;
        Ok(dialling)
    }

    fn next(&mut self, now: Nanos) -> Result<(), ChannelError> {
        let url = &self.urls[CHANNELS - 1 - self.made.len()];
        let patience = Nanos(self.until.0.saturating_sub(now.0));
        self.attempt = Some(Connecting::start_with(url, self.tls.as_ref(), now, patience)?);
        Ok(())
    }

    /// Returns all channels once they are connected; `None` before that.
    pub fn turn(&mut self, now: Nanos) -> Result<Option<Channels>, ChannelError> {
        while let Some(attempt) = &mut self.attempt {
            let Some(channel) = attempt.finish(now)? else { return Ok(None) };
            self.made.push(channel);
            self.attempt = None;
            if self.made.len() < CHANNELS {
                self.next(now)?;
            }
        }
        let mut made = std::mem::take(&mut self.made);
        made.reverse();
        Ok(made.try_into().ok())
    }

    /// Returns the descriptor that becomes writable when the current attempt has ended.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.attempt.as_ref().and_then(Connecting::descriptor)
    }

    /// Returns when the connection times out.
    pub fn deadline(&self) -> Nanos {
        self.until
    }
}

/// Listeners for groups of channels.
pub struct Listeners {
    listeners: [Listener; CHANNELS],
    guests: Vec<PendingPeer>,
    /// Channels that were closed because their group stayed incomplete, or because of the limits.
    pub turned_away: u64,
}

struct PendingPeer {
    number: usize,
    source: Option<Source>,
    since: Nanos,
    channel: Box<dyn Channel>,
}

impl Listeners {
    /// Listens on passive addresses.
    pub fn open(urls: &[Url; CHANNELS], tls: Option<&Tls>) -> Result<Listeners, ChannelError> {
        let [first, second, third] = urls;
        let open = |url| Listener::open_with(url, tls);
        let listeners = [open(first)?, open(second)?, open(third)?];
        Ok(Listeners { listeners, guests: Vec::new(), turned_away: 0 })
    }

    /// Accepts waiting connections. Returns all channels of a peer once they are complete.
    pub fn turn(&mut self, now: Nanos) -> Result<Option<Channels>, ChannelError> {
        let before = self.guests.len();
        self.guests.retain(|guest| now < guest.since.saturating_add(PATIENCE));
        self.turned_away += (before - self.guests.len()) as u64;
        for (number, listener) in self.listeners.iter_mut().enumerate() {
            for _ in 0..ACCEPTS_A_TURN {
                let Some(channel) = listener.accept()? else { break };
                let source = channel.source();
                match GUESTS.room_for(&held(&self.guests), source) {
                    AdmissionResult::Free => {}
                    AdmissionResult::InsteadOf(at) => {
                        self.guests.remove(at);
                        self.turned_away += 1;
                    }
                    AdmissionResult::Refused(_) => unreachable!("every guest is still incomplete"),
                }
                self.guests.push(PendingPeer { number, source, since: now, channel });
            }
        }
        Ok(self.complete())
    }

    /// Returns the channels of the first complete group.
    fn complete(&mut self) -> Option<Channels> {
        let place = |guests: &[PendingPeer], number, source| {
            guests.iter().position(|guest| guest.number == number && guest.source == source)
        };
        let first = self.guests.iter().filter(|guest| guest.number == 0);
        let source = first.map(|guest| guest.source).find(|source| {
            (1..CHANNELS).all(|number| place(&self.guests, number, *source).is_some())
        })?;
        let mut channels = Vec::new();
        for number in 0..CHANNELS {
            let at = place(&self.guests, number, source)?;
            channels.push(self.guests.remove(at).channel);
        }
        channels.try_into().ok()
    }

    /// Returns the listen addresses, with the ports that the system chose.
    pub fn addresses(&self) -> [Url; CHANNELS] {
        self.listeners.each_ref().map(|listener| listener.address().clone())
    }

    /// Returns the addresses for connections from this host.
    pub fn addresses_to_connect(&self) -> [Url; CHANNELS] {
        self.listeners.each_ref().map(Listener::address_to_connect)
    }

    /// Returns the descriptors that become readable when connections wait.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.listeners.iter().map(Listener::descriptor)
    }

    /// Returns when the next incomplete group times out.
    pub fn next_event(&self) -> Option<Nanos> {
        self.guests.iter().map(|guest| guest.since.saturating_add(PATIENCE)).min()
    }
}

/// Returns the accepted channels for the limits, the oldest first.
fn held(guests: &[PendingPeer]) -> Vec<AdmittedConnection> {
    let guests = guests.iter().enumerate();
    let pending = |at| Some((Progress::Silent, at as u64));
    guests
        .map(|(at, guest)| AdmittedConnection {
            id: at,
            source: guest.source,
            pending: pending(at),
        })
        .collect()
}

impl Url {
    /// Returns the addresses of several channels from that of the first.
    ///
    /// These are consecutive ports (0 stays 0), or files with the suffixes `.1` and `.2`. Returns
    /// `None` if there are no more ports, or the name becomes too long.
    pub fn in_a_row(&self) -> Option<[Url; CHANNELS]> {
        let one = |at: usize| -> Option<Url> {
            let mut url = self.clone();
            match &mut url {
                Url::Tcp(address)
                | Url::PassiveTcp(address)
                | Url::Sctp(address)
                | Url::PassiveSctp(address)
                | Url::Tls(address)
                | Url::PassiveTls(address) => {
                    let port = address.port();
                    let port = if port == 0 { 0 } else { port.checked_add(at as u16)? };
                    address.set_port(port);
                }
                Url::Unix(path) | Url::PassiveUnix(path) if at > 0 => {
                    path.as_mut_os_string().push(format!(".{at}"));
                    if path.as_os_str().len() > super::url::PATH_BYTES_MAX {
                        return None;
                    }
                }
                Url::Unix(_) | Url::PassiveUnix(_) => {}
            }
            Some(url)
        };
        Some([one(0)?, one(1)?, one(2)?])
    }
}

#[cfg(test)]
mod tests {
    use os::clock;

    use super::*;

    fn met(doors: &mut Listeners, mut dialling: PendingChannels) -> (Channels, Channels) {
        let (mut near, mut far) = (None, None);
        let until = clock::now() + Nanos::from_secs(20);
        while near.is_none() || far.is_none() {
            assert!(clock::now() < until, "the channels do not connect");
            let now = clock::now();
            if near.is_none() {
                near = dialling.turn(now).unwrap();
            }
            if far.is_none() {
                far = doors.turn(now).unwrap();
            }
        }
        (near.unwrap(), far.unwrap())
    }

    #[test]
    fn each_channel_connects_to_its_counterpart() {
        let folder = std::env::temp_dir().join(format!("planimeter-group-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for url in ["ptcp:0:127.0.0.1".to_owned(), format!("punix:{}/s", folder.display())] {
            let urls = url.parse::<Url>().unwrap().in_a_row().unwrap();
            let mut doors = Listeners::open(&urls, None).unwrap();
            let to = doors.addresses_to_connect();
            let dialling = PendingChannels::start(to.clone(), None, clock::now()).unwrap();
            let (mut near, mut far) = met(&mut doors, dialling);
            for (at, channel) in near.iter_mut().enumerate() {
                channel.transmit(&[at as u8]).unwrap();
            }
            for (at, channel) in far.iter_mut().enumerate() {
                let mut byte = [9];
                while channel.receive(&mut byte).unwrap() == 0 {
                    std::thread::yield_now();
                }
                assert_eq!(usize::from(byte[0]), at, "{url}");
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn an_incomplete_group_of_connections_times_out() {
        let urls = "ptcp:0:127.0.0.1".parse::<Url>().unwrap().in_a_row().unwrap();
        let mut doors = Listeners::open(&urls, None).unwrap();
        let to = doors.addresses_to_connect();
        let _one = Connecting::wait(&to[0], PATIENCE).unwrap();
        let now = clock::now();
        while doors.guests.is_empty() {
            assert!(doors.turn(now).unwrap().is_none());
        }
        let due = doors.next_event().unwrap();
        assert!(doors.turn(due).unwrap().is_none());
        assert_eq!((doors.guests.len(), doors.turned_away), (0, 1));
        // Their number is bounded.
        let strangers: Vec<_> =
            (0..GUESTS.total + 5).map(|_| Connecting::wait(&to[1], PATIENCE).unwrap()).collect();
        for _ in 0..100 {
            assert!(doors.turn(now).unwrap().is_none());
        }
        assert!(doors.guests.len() <= GUESTS.per_source, "one source has no more connections");
        drop(strangers);
    }

    #[test]
    fn addresses_are_consecutive() {
        for (text, all) in [
            (
                "tcp:1.2.3.4:6704",
                Some(["tcp:1.2.3.4:6704", "tcp:1.2.3.4:6705", "tcp:1.2.3.4:6706"]),
            ),
            ("unix:/x", Some(["unix:/x", "unix:/x.1", "unix:/x.2"])),
            ("tcp:1.2.3.4:65534", None),
        ] {
            let urls = text.parse::<Url>().unwrap().in_a_row();
            assert_eq!(
                urls.map(|urls| urls.map(|url| url.to_string())),
                all.map(|all| all.map(str::to_owned))
            );
        }
    }
}
