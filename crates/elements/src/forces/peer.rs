//! One control element: opens its three channels actively or passively, and reopens them.

use std::os::fd::RawFd;

use ::forces::association::Channel;
use ::forces::wire::{Id, frame_octets};
use channel::framed::Framed;
use channel::multi::{Channels, Listeners, PATIENCE, PendingChannels};
use channel::{ChannelError, Source, Tls, Url};
use packet::time::Nanos;

/// Maximum bytes queued at a channel. Further messages stay with the association, which has its own
/// limits.
pub const OWED_MAX: usize = 1 << 20;

/// Maximum number of sources whose channels wait until the association requests them.
const WAITING_MAX: usize = 8;

/// Pause of listeners that cannot accept because descriptors or memory are exhausted.
const DOOR_REST: Nanos = Nanos::from_secs(1);

/// One control element.
pub struct Peer {
    /// Its CE ID.
    pub id: Id,
    /// The last connection error until a connection succeeds, so that the log has it once.
    pub trouble: Option<String>,
    /// Why its channels ended.
    pub why: Option<String>,
    urls: [Url; 3],
    connector: PeerConnector,
    /// Time at which the association requested channels; `None` without a pending request.
    wanted: Option<Nanos>,
    /// Accepted channels that the association has not requested yet, oldest first.
    ///
    /// Each source has at most one entry, so that a source that reconnects often does not exclude
    /// others.
    waiting: Vec<Channels>,
    /// Until when the listeners pause.
    rests_until: Option<Nanos>,
    /// Why the listeners cannot accept, until they can or the error is logged.
    shut: Option<String>,
    up: Option<[Framed; 3]>,
}

enum PeerConnector {
    Idle,
    Connecting(PendingChannels),
    Failed(ChannelError),
    Listening(Listeners),
}

/// Result of an attempt to open channels.
pub enum ConnectResult {
    /// The channels are open.
    Channels,
    /// The attempt failed. Has the reason if it is new.
    NotConnected(Option<String>),
}

/// Returns the length of the next message, once its header has arrived.
fn length(bytes: &[u8]) -> Result<Option<usize>, String> {
    frame_octets(bytes).map_err(|fault| format!("invalid ForCES message: {fault}"))
}

impl Peer {
    /// Creates a control element whose channels start at this address. `tls` has the credentials,
    /// if the address needs any.
    pub fn open(id: Id, url: &Url, tls: Option<&Tls>) -> Result<Peer, ChannelError> {
        let none = "no addresses for three channels (hint: use a lower port or a shorter path)";
        let urls = url.in_a_row().ok_or(ChannelError::BadUrl(url.to_string(), none))?;
        let connector = match url.is_passive() {
            true => PeerConnector::Listening(Listeners::open(&urls, tls)?),
            false => PeerConnector::Idle,
        };
        let (trouble, why, wanted, waiting, up) = (None, None, None, Vec::new(), None);
        let (rests_until, shut) = (None, None);
        Ok(Peer { id, trouble, why, urls, connector, wanted, waiting, rests_until, shut, up })
    }

    /// Sets the addresses of channels that are not consecutive.
    #[cfg(test)]
    pub fn set_urls(&mut self, urls: [Url; 3]) {
        self.urls = urls;
    }

    /// Returns the address of its high-priority channel.
    pub fn url(&self) -> &Url {
        &self.urls[0]
    }

    /// Returns the addresses on which the agent listens for it, if it does.
    pub fn addresses(&self) -> Vec<Url> {
        match &self.connector {
            PeerConnector::Listening(listeners) => listeners.addresses().into(),
            _ => Vec::new(),
        }
    }

    /// Returns its name for the log.
    pub fn name(&self) -> String {
        let peer = self.up.as_ref().map(|[high, ..]| high.peer().to_owned());
        let peer = peer.unwrap_or_else(|| self.urls[0].to_string());
        format!("{:#010x} at {peer}", self.id.0)
    }

    /// Starts to open channels for the association.
    pub fn want(&mut self, tls: Option<&Tls>, now: Nanos) {
        self.wanted = Some(now);
        if !matches!(self.connector, PeerConnector::Listening(_)) {
            self.connector = match PendingChannels::start(self.urls.clone(), tls, now) {
                Ok(pending) => PeerConnector::Connecting(pending),
                Err(error) => PeerConnector::Failed(error),
            };
        }
    }

    /// Continues to open channels. A control element without alternative has no deadline for
    /// incoming connections.
    pub fn meet(&mut self, is_alone: bool, now: Nanos) -> Option<ConnectResult> {
        let mut failed = None;
        match &mut self.connector {
            PeerConnector::Idle => {}
            PeerConnector::Failed(_) => {
                if let PeerConnector::Failed(error) =
                    std::mem::replace(&mut self.connector, PeerConnector::Idle)
                {
                    failed = Some(error);
                }
            }
            PeerConnector::Connecting(pending) => match pending.turn(now) {
                Ok(None) => {}
                Ok(Some(channels)) => {
                    self.waiting = vec![channels];
                    self.connector = PeerConnector::Idle;
                }
                Err(error) => {
                    self.connector = PeerConnector::Idle;
                    failed = Some(error);
                }
            },
            PeerConnector::Listening(_) if self.rests_until.is_some_and(|until| now < until) => {}
            PeerConnector::Listening(listeners) => {
                let turned = listeners.turn(now);
                self.looked(turned, now);
            }
        }
        let since = self.wanted?;
        if let Some(error) = failed {
            self.wanted = None;
            let why = error.to_string();
            let is_new = self.trouble.as_ref() != Some(&why);
            self.trouble = Some(why.clone());
            return Some(ConnectResult::NotConnected(is_new.then_some(why)));
        }
        if !self.waiting.is_empty() {
            self.wanted = None;
            let mut channels = self.waiting.remove(0);
            for (channel, kind) in channels.iter_mut().zip(Channel::ALL) {
                channel.label(kind.payload_protocol());
            }
            self.up = Some(channels.map(|channel| Framed::new(channel, length)));
            return Some(ConnectResult::Channels);
        }
        let is_late = matches!(self.connector, PeerConnector::Listening(_))
            && !is_alone
            && now >= since.saturating_add(PATIENCE);
        if is_late {
            self.wanted = None;
            return Some(ConnectResult::NotConnected(None));
        }
        None
    }

    /// Processes the result of polling the listeners.
    pub fn looked(&mut self, met: Result<Option<Channels>, ChannelError>, now: Nanos) {
        let was_shut = self.rests_until.take().is_some();
        match met {
            Ok(None) => {}
            Ok(Some(channels)) => self.keep_waiting(channels),
            Err(error) => {
                // A pending connection makes the listener readable all the time. Without a pause
                // this would busy-loop.
                self.rests_until = Some(now.saturating_add(DOOR_REST));
                if !was_shut {
                    self.shut = Some(error.to_string());
                }
            }
        }
    }

    /// Keeps accepted channels until the association requests them.
    ///
    /// They replace older ones of the same source, which may belong to a peer that is gone.
    /// Otherwise they queue behind those of other sources. When the queue is full, they are closed.
    fn keep_waiting(&mut self, channels: Channels) {
        let source = |channels: &Channels| channels[0].source().map(Source::counted);
        let new = source(&channels);
        match self.waiting.iter().position(|waiting| source(waiting) == new) {
            Some(at) => self.waiting[at] = channels,
            None if self.waiting.len() < WAITING_MAX => self.waiting.push(channels),
            None => {}
        }
    }

    /// Returns why the listeners cannot accept, once.
    pub fn take_shut(&mut self) -> Option<String> {
        self.shut.take()
    }

    /// Whether channels were accepted before the association requested them.
    pub fn has_come(&self) -> bool {
        !self.waiting.is_empty() && self.wanted.is_none()
    }

    /// Returns one of its channels, if they are open.
    pub fn channel(&mut self, channel: Channel) -> Option<&mut Framed> {
        self.up.as_mut().map(|up| &mut up[channel as usize])
    }

    /// Closes its channels.
    pub fn part(&mut self) {
        self.up = None;
        self.wanted = None;
        if let PeerConnector::Connecting(_) | PeerConnector::Failed(_) = self.connector {
            self.connector = PeerConnector::Idle;
        }
    }

    /// Returns the descriptors to poll, each with whether to poll for writing as well.
    pub fn descriptors(&self, hears: bool) -> Vec<(RawFd, bool)> {
        let mut all = Vec::new();
        match &self.connector {
            PeerConnector::Connecting(pending) => {
                all.extend(pending.descriptor().map(|at| (at, true)))
            }
            PeerConnector::Listening(_) if self.rests_until.is_some() => {}
            PeerConnector::Listening(listeners) => {
                all.extend(listeners.descriptors().map(|at| (at, false)))
            }
            PeerConnector::Idle | PeerConnector::Failed(_) => {}
        }
        let up = self.up.iter().flatten().filter_map(Framed::descriptor);
        all.extend(up.filter(|(_, writable)| hears || *writable));
        all
    }

    /// Returns the time of the next work that does not depend on received data.
    pub fn next_event(&self, now: Nanos) -> Option<Nanos> {
        let held = self.up.iter().flatten().any(Framed::holds_received);
        let soon = held
            || matches!(self.connector, PeerConnector::Failed(_))
            || !self.waiting.is_empty() && self.wanted.is_some();
        let connector = match &self.connector {
            PeerConnector::Connecting(pending) => Some(pending.deadline()),
            PeerConnector::Listening(listeners) => {
                let late = self.wanted.map(|since| since.saturating_add(PATIENCE));
                // The only control element has no deadline.
                let late = late.filter(|late| *late > now);
                [listeners.next_event(), late, self.rests_until].into_iter().flatten().min()
            }
            PeerConnector::Idle | PeerConnector::Failed(_) => None,
        };
        [connector, soon.then_some(now)].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use channel::{Connecting, Listener};

    use super::*;

    /// Opens channels to a listener at this address. The source is that of the address.
    fn channels(url: &str) -> Channels {
        let listener = Listener::open(&url.parse().unwrap()).unwrap();
        let to = listener.address_to_connect();
        [(); 3].map(|()| Connecting::wait(&to, PATIENCE).unwrap())
    }

    #[test]
    fn waiting_channels_of_one_source_are_limited_and_do_not_block_others() {
        let url: Url = "ptcp:0".parse().unwrap();
        let mut peer = Peer::open(Id(0x4000_0001), &url, None).unwrap();
        let socket = std::env::temp_dir().join(format!("peer-{}.sock", std::process::id()));
        let user = format!("punix:{}", socket.display());
        peer.keep_waiting(channels("ptcp:0"));
        peer.keep_waiting(channels(&user));
        let latest = channels("ptcp:0:[::1]");
        let name = latest[0].peer().to_owned();
        peer.keep_waiting(latest);
        let waiting: Vec<&str> = peer.waiting.iter().map(|channels| channels[0].peer()).collect();
        assert_eq!(waiting, [name.as_str(), &user[1..]]);
        assert!(peer.has_come());
    }
}
