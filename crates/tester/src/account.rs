//! Frame account: offered = received + drops, by place and reason, + unexplained.
//!
//! The remainder is signed and always reported. It is positive when frames disappeared without a
//! reported drop. It is negative when more frames arrived than the drops allow, for example when a
//! target copies frames or counts a drop twice. Over `memory` ports it is 0.

use std::collections::BTreeMap;

/// Frame account of one trial. Includes the warm-up, because targets count it too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// Frames that the tester's ports accepted for sending.
    pub offered: u64,
    /// Distinct frames received on any port, in any state.
    pub received: u64,
    /// Reported drops.
    pub drops: BTreeMap<Drop, u64>,
}

/// Drops in one place for one reason.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Drop {
    /// Where the drops occurred.
    pub place: DropLocation,
    /// Reason, as the counter is named: `receive_ring_full`, `no_match`...
    pub reason: String,
}

/// Where frames can be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropLocation {
    /// The tester itself.
    Tester,
    /// A link that is configured to lose frames, or is too slow.
    Link,
    /// The kernel, between tester and target.
    Kernel,
    /// The target.
    Target,
}

impl Account {
    /// Adds drops that `place` reports. Zero adds nothing.
    pub fn drop(&mut self, place: DropLocation, reason: impl Into<String>, frames: u64) {
        if frames > 0 {
            *self.drops.entry(Drop { place, reason: reason.into() }).or_default() += frames;
        }
    }

    /// Returns the drops in `place` for all reasons.
    pub fn dropped(&self, place: DropLocation) -> u64 {
        self.drops.iter().filter(|(drop, _)| drop.place == place).map(|(_, frames)| frames).sum()
    }

    /// Returns offered frames that were neither received nor reported as dropped.
    pub fn unexplained(&self) -> i64 {
        let known: u64 = self.received + self.drops.values().sum::<u64>();
        self.offered as i64 - known as i64
    }
}

impl std::fmt::Display for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} offered = {} received", self.offered, self.received)?;
        for (drop, frames) in &self.drops {
            write!(f, " + {frames} {} {}", drop.place, drop.reason)?;
        }
        write!(f, " + {} unexplained", self.unexplained())
    }
}

impl std::fmt::Display for DropLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            DropLocation::Tester => "tester",
            DropLocation::Link => "link",
            DropLocation::Kernel => "kernel",
            DropLocation::Target => "target",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unexplained_frames_are_signed_and_drops_are_listed_by_place() {
        let mut account = Account { offered: 100, received: 80, ..Account::default() };
        account.drop(DropLocation::Target, "no_match", 5);
        account.drop(DropLocation::Target, "no_match", 2);
        account.drop(DropLocation::Tester, "receive_ring_full", 3);
        account.drop(DropLocation::Kernel, "backlog", 0);
        assert_eq!((account.unexplained(), account.dropped(DropLocation::Target)), (10, 7));
        let shown = "100 offered = 80 received + 3 tester receive_ring_full \
                     + 7 target no_match + 10 unexplained";
        assert_eq!(account.to_string(), shown);
        account.drop(DropLocation::Kernel, "backlog", 14);
        assert_eq!(account.unexplained(), -4);
    }
}
