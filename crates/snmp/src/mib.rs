//! Names of standard objects, and tables built from responses.
//!
//! Source: IF-MIB (RFC 2863), HOST-RESOURCES-MIB (RFC 2790), SNMPv2-MIB (RFC 3418), and the reports
//! of SNMP-USER-BASED-SM-MIB (RFC 3414, section 5).

use std::collections::BTreeMap;

use crate::{Binding, Oid, Value};

fn oid(arcs: &[u32]) -> Oid {
    Oid::new(arcs).expect("a standard name is valid")
}

/// Returns the name of the system description (sysDescr).
pub fn system_description() -> Oid {
    oid(&[1, 3, 6, 1, 2, 1, 1, 1, 0])
}

/// Returns the name of the agent's uptime in hundredths of a second (sysUpTime).
pub fn up_time() -> Oid {
    oid(&[1, 3, 6, 1, 2, 1, 1, 3, 0])
}

/// Returns the name of each processor's load over the last minute, in percent (hrProcessorLoad).
pub fn processor_load() -> Oid {
    oid(&[1, 3, 6, 1, 2, 1, 25, 3, 3, 1, 2])
}

/// Interfaces, with 32-bit counters.
const IF_TABLE: [u32; 9] = [1, 3, 6, 1, 2, 1, 2, 2, 1];

/// Interfaces, with 64-bit counters.
const IF_X_TABLE: [u32; 10] = [1, 3, 6, 1, 2, 1, 31, 1, 1, 1];

/// A column of the interface tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    /// Name in `ifTable`.
    Description,
    /// Interface type.
    Kind,
    /// Short name in `ifXTable`.
    Name,
    /// Received unicast frames, 32 bits.
    UnicastIn,
    /// Discarded received frames.
    DiscardsIn,
    /// Received frames with errors.
    ErrorsIn,
    /// Sent unicast frames, 32 bits.
    UnicastOut,
    /// Discarded frames on output.
    DiscardsOut,
    /// Frames with errors on output.
    ErrorsOut,
    /// Received frames, 64 bits: unicast, multicast, broadcast.
    WideIn(u32),
    /// Sent frames, 64 bits: unicast, multicast, broadcast.
    WideOut(u32),
    /// Received multicast and broadcast frames, 32 bits.
    ManyIn(u32),
    /// Sent multicast and broadcast frames, 32 bits.
    ManyOut(u32),
}

impl Column {
    /// All columns that are requested: 64 bits before 32.
    pub const ALL: [Column; 19] = [
        Column::Description,
        Column::Kind,
        Column::Name,
        Column::WideIn(7),
        Column::WideIn(8),
        Column::WideIn(9),
        Column::WideOut(11),
        Column::WideOut(12),
        Column::WideOut(13),
        Column::UnicastIn,
        Column::ManyIn(2),
        Column::ManyIn(3),
        Column::UnicastOut,
        Column::ManyOut(4),
        Column::ManyOut(5),
        Column::DiscardsIn,
        Column::ErrorsIn,
        Column::DiscardsOut,
        Column::ErrorsOut,
    ];

    /// Returns the name of the column; the interface numbers follow it.
    pub fn root(self) -> Oid {
        let plain = |number| oid(&[&IF_TABLE[..], &[number]].concat());
        let wide = |number| oid(&[&IF_X_TABLE[..], &[number]].concat());
        match self {
            Column::Description => plain(2),
            Column::Kind => plain(3),
            Column::UnicastIn => plain(11),
            Column::DiscardsIn => plain(13),
            Column::ErrorsIn => plain(14),
            Column::UnicastOut => plain(17),
            Column::DiscardsOut => plain(19),
            Column::ErrorsOut => plain(20),
            Column::Name => wide(1),
            Column::WideIn(number)
            | Column::WideOut(number)
            | Column::ManyIn(number)
            | Column::ManyOut(number) => wide(number),
        }
    }
}

/// Type of a loopback interface.
const LOOPBACK: u64 = 24;

/// An interface as an agent reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interface {
    /// Interface number.
    pub index: u32,
    /// Interface name.
    pub name: String,
    /// Whether this is a loopback interface.
    pub is_loopback: bool,
    /// Whether the counters have 64 bits; otherwise they wrap after 4294967295.
    pub is_wide: bool,
    /// Received frames.
    pub frames_in: u64,
    /// Sent frames.
    pub frames_out: u64,
    /// Discarded frames on input and output.
    pub discards: [u64; 2],
    /// Frames with errors on input and output.
    pub errors: [u64; 2],
}

impl Interface {
    /// Returns the counts since `before`; 32-bit counters may have wrapped once.
    pub fn since(&self, before: &Interface) -> Interface {
        let bits = if self.is_wide && before.is_wide { u64::MAX } else { u64::from(u32::MAX) };
        let count = |now: u64, before: u64| now.wrapping_sub(before) & bits;
        // Discards and errors always have 32 bits.
        let small = |now: u64, before: u64| now.wrapping_sub(before) & u64::from(u32::MAX);
        let both =
            |now: [u64; 2], before: [u64; 2]| [small(now[0], before[0]), small(now[1], before[1])];
        Interface {
            frames_in: count(self.frames_in, before.frames_in),
            frames_out: count(self.frames_out, before.frames_out),
            discards: both(self.discards, before.discards),
            errors: both(self.errors, before.errors),
            ..self.clone()
        }
    }
}

/// Builds the interfaces from bindings, ordered by number. A 64-bit counter takes precedence over
/// the 32-bit one.
pub fn interfaces<'a>(bindings: impl IntoIterator<Item = &'a Binding>) -> Vec<Interface> {
    let roots: Vec<(Column, Oid)> = Column::ALL.iter().map(|it| (*it, it.root())).collect();
    let mut cells: BTreeMap<u32, BTreeMap<Column, &Value>> = BTreeMap::new();
    for binding in bindings {
        for (column, root) in &roots {
            if let Some(&[index]) = binding.name.below(root)
                && !binding.value.is_absent()
            {
                cells.entry(index).or_default().insert(*column, &binding.value);
            }
        }
    }
    cells.into_iter().map(|(index, row)| interface(index, &row)).collect()
}

fn interface(index: u32, row: &BTreeMap<Column, &Value>) -> Interface {
    let count = |column| row.get(&column).and_then(|value| value.count());
    let text = |column| row.get(&column).and_then(|value| value.text());
    let sum =
        |columns: [Column; 3]| columns.into_iter().filter_map(count).fold(0u64, u64::wrapping_add);
    let is_wide = count(Column::WideIn(7)).is_some() && count(Column::WideOut(11)).is_some();
    let (frames_in, frames_out) = match is_wide {
        true => (sum([7, 8, 9].map(Column::WideIn)), sum([11, 12, 13].map(Column::WideOut))),
        false => (
            sum([Column::UnicastIn, Column::ManyIn(2), Column::ManyIn(3)]),
            sum([Column::UnicastOut, Column::ManyOut(4), Column::ManyOut(5)]),
        ),
    };
    let both = |columns: [Column; 2]| columns.map(|column| count(column).unwrap_or(0));
    Interface {
        index,
        name: text(Column::Name)
            .filter(|name| !name.is_empty())
            .or_else(|| text(Column::Description))
            .unwrap_or_else(|| index.to_string()),
        is_loopback: count(Column::Kind) == Some(LOOPBACK),
        is_wide,
        frames_in,
        frames_out,
        discards: both([Column::DiscardsIn, Column::DiscardsOut]),
        errors: both([Column::ErrorsIn, Column::ErrorsOut]),
    }
}

/// Returns bindings that describe interfaces, for [`interfaces`] to read; the simulated agent uses
/// them.
pub fn bindings(interfaces: &[Interface]) -> Vec<Binding> {
    let cell = |it: &Interface, column: Column, value| Binding {
        name: column.root().child(&[it.index]).expect("a column's name is short enough"),
        value,
    };
    let small = |count: u64| Value::Counter32(count as u32);
    let row = |it: &Interface| {
        vec![
            cell(it, Column::Description, Value::Octets(it.name.clone().into_bytes())),
            cell(it, Column::Kind, Value::Integer(if it.is_loopback { 24 } else { 6 })),
            cell(it, Column::UnicastIn, small(it.frames_in)),
            cell(it, Column::DiscardsIn, small(it.discards[0])),
            cell(it, Column::ErrorsIn, small(it.errors[0])),
            cell(it, Column::UnicastOut, small(it.frames_out)),
            cell(it, Column::DiscardsOut, small(it.discards[1])),
            cell(it, Column::ErrorsOut, small(it.errors[1])),
            cell(it, Column::Name, Value::Octets(it.name.clone().into_bytes())),
            cell(it, Column::WideIn(7), Value::Counter64(it.frames_in)),
            cell(it, Column::WideOut(11), Value::Counter64(it.frames_out)),
        ]
    };
    interfaces.iter().flat_map(row).collect()
}

/// Returns the error of a version 3 message for the name in a report, if it is a standard one.
pub fn report(name: &Oid) -> Option<Refusal> {
    const STATISTICS: [u32; 9] = [1, 3, 6, 1, 6, 3, 15, 1, 1];
    match name.below(&oid(&STATISTICS))? {
        [1, 0] => Some(Refusal::SecurityLevel),
        [2, 0] => Some(Refusal::TimeWindow),
        [3, 0] => Some(Refusal::UnknownUser),
        [4, 0] => Some(Refusal::UnknownEngine),
        [5, 0] => Some(Refusal::WrongDigest),
        [6, 0] => Some(Refusal::Decryption),
        _ => None,
    }
}

/// Reason why an agent rejects a message of version 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The security level is not supported for the user.
    SecurityLevel,
    /// The message is too old, or the engine's clock differs.
    TimeWindow,
    /// The user is unknown.
    UnknownUser,
    /// The engine identifier differs.
    UnknownEngine,
    /// The authentication code does not match the user's key.
    WrongDigest,
    /// Decryption failed.
    Decryption,
}

impl Refusal {
    /// Returns the name of the report.
    pub fn name(self) -> Oid {
        oid(&[1, 3, 6, 1, 6, 3, 15, 1, 1, self as u32 + 1, 0])
    }

    /// Returns a message with a hint for the user.
    pub fn words(self) -> &'static str {
        match self {
            Refusal::SecurityLevel => "the agent does not support this security level for the user",
            Refusal::TimeWindow => "the message is outside the agent's time window",
            Refusal::UnknownUser => "the user is unknown to the agent",
            Refusal::UnknownEngine => "the agent has another engine ID",
            Refusal::WrongDigest => "the agent rejects the auth_password or its protocol",
            Refusal::Decryption => "the agent cannot decrypt (hint: check the privacy_password)",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_round_trip_and_32_bit_counters_wrap() {
        let port = |index: u32, frames_in: u64| Interface {
            index,
            name: format!("port{index}"),
            is_wide: true,
            frames_in,
            frames_out: 7,
            errors: [0, 3],
            ..Interface::default()
        };
        let all = [port(1, 5_000_000_000), port(2, 9)];
        assert_eq!(interfaces(&bindings(&all)), all);
        // An agent with 32-bit counters only; one of them wrapped.
        let wide: Vec<Oid> = [7, 11].map(|it| Column::WideIn(it).root()).to_vec();
        let narrow = |frames| {
            let mut bindings = bindings(&[port(1, frames)]);
            bindings.retain(|it| wide.iter().all(|root| it.name.below(root).is_none()));
            interfaces(&bindings).remove(0)
        };
        let (before, after) = (narrow((1 << 32) - 10), narrow((1 << 32) + 5));
        assert!(!before.is_wide && before.frames_in > after.frames_in);
        assert_eq!(after.since(&before).frames_in, 15);
        assert_eq!(all[1].since(&all[1]).frames_in, 0);
    }

    #[test]
    fn reports_are_recognized_by_their_names() {
        for refusal in [Refusal::SecurityLevel, Refusal::TimeWindow, Refusal::Decryption] {
            assert_eq!(report(&refusal.name()), Some(refusal));
        }
        assert_eq!(report(&system_description()), None);
    }
}
