//! Where every frame went: offered = received + drops, by place and reason, + unexplained.
//!
//! The remainder is signed and always shown: positive when frames vanished without anyone saying
//! so, negative when more came back than the drops allow (a target that copies frames, or counts
//! a drop twice). Over `memory` ports it is 0.

use std::collections::BTreeMap;

/// One trial's frames, warm-up included, because a target counts those too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// Frames that the tester's ports accepted for sending.
    pub offered: u64,
    /// Different frames that came back on any port, in whatever state.
    pub received: u64,
    /// Frames that someone says were lost.
    pub drops: BTreeMap<Drop, u64>,
}

/// Frames lost in one place for one reason.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Drop {
    /// Who lost them.
    pub place: Place,
    /// Why, in the words of whoever counted them: `receive_ring_full`, `no_match`...
    pub reason: String,
}

/// Who can lose a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The tester itself.
    Tester,
    /// A link that loses frames because it was told to, or is too slow.
    Link,
    /// The kernel, on the way between tester and target.
    Kernel,
    /// The target.
    Target,
}

impl Account {
    /// Adds frames that `place` says it lost; zero adds nothing.
    pub fn drop(&mut self, place: Place, reason: impl Into<String>, frames: u64) {
        if frames > 0 {
            *self.drops.entry(Drop { place, reason: reason.into() }).or_default() += frames;
        }
    }

    /// Frames lost in `place`, for all reasons.
    pub fn dropped(&self, place: Place) -> u64 {
        self.drops.iter().filter(|(drop, _)| drop.place == place).map(|(_, frames)| frames).sum()
    }

    /// Offered frames that neither came back nor are anyone's drop.
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

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Place::Tester => "tester",
            Place::Link => "link",
            Place::Kernel => "kernel",
            Place::Target => "target",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remainder_is_signed_and_places_are_kept_apart() {
        let mut account = Account { offered: 100, received: 80, ..Account::default() };
        account.drop(Place::Target, "no_match", 5);
        account.drop(Place::Target, "no_match", 2);
        account.drop(Place::Tester, "receive_ring_full", 3);
        account.drop(Place::Kernel, "backlog", 0);
        assert_eq!((account.unexplained(), account.dropped(Place::Target)), (10, 7));
        let shown = "100 offered = 80 received + 3 tester receive_ring_full \
                     + 7 target no_match + 10 unexplained";
        assert_eq!(account.to_string(), shown);
        account.drop(Place::Kernel, "backlog", 14);
        assert_eq!(account.unexplained(), -4);
    }
}
