//! bianco2010: "OpenFlow switching: data plane performance" (Bianco, Birke, Giraudo, Palacin;
//! IEEE ICC 2010, DOI 10.1109/ICC.2010.5502016).
//!
//! The study compares OpenFlow switching, bridging and routing in a Linux PC under the load of a
//! router tester on 1 Gbit/s links. What it calls throughput is the forwarding rate at full
//! nominal load: one trial a point, averaged over three runs of 60 seconds. Here is what several of its
//! figures have in common: tables, their sizes, and the frames of its section IV.B to IV.D.

/// Forwarding rate of one flow against frame size.
pub mod fig2;
/// Forwarding rate of one flow of 64-byte frames against offered load.
pub mod fig3;
/// Latency of one flow of 64-byte frames against offered load.
pub mod fig4;
/// Forwarding rate against frame size with large tables.
pub mod fig5;
/// Hash table against linear table.
pub mod fig6;
/// A mix of traffic for both tables.
pub mod fig7;
/// Time in the switch.
pub mod table1;
/// Two flows that share a target.
pub mod fairness;
/// Fairness with one input port.
pub mod fig9;
/// Fairness with two input ports.
pub mod fig10;

use super::sweep::{Sweep, SweepPoint};
use super::{Context, Method};
use crate::parameter::own::Declared;
use crate::parameter::shared;
use crate::parameter::{Table, Traffic};
use crate::target::name::Technology;
use crate::workload::Setup;

/// Frame sizes of figures 5 and 6 and table I.
pub const FRAMES_MULTI: Declared = shared::FRAMES.with_default("96,128,256,512,1024,1500");

/// Frame sizes where only small ones are measured.
pub const FRAMES_SMALL: Declared = shared::FRAMES.with_default("96");

/// Entries that the study's hash table holds.
pub const HASH_ENTRIES: Declared =
    Declared { help: "how many entries the hash table holds", ..shared::SIZE }
        .with_default("131072");

/// Entries that the study's linear table holds.
pub const LINEAR_ENTRIES: u32 = 100;

/// Name of the curve of a hash table.
pub const HASH: &str = "hash_entries";

/// Name of the curve of a linear table.
pub const LINEAR: &str = "linear_entries";

/// Trials from this long on, in seconds, are repeated so slowly that a bridge would forget between the
/// first and the last repeat what it learned, in the hour that it keeps addresses. They take so much longer
/// than filling a table that it may well be filled for each.
const LONG_TRIAL_S: f64 = 10.0;

/// Whether a target's table is filled anew for each repeat.
fn renews(context: &Context) -> bool {
    context.parameters.seconds >= LONG_TRIAL_S && context.technology == Technology::Bridging
}

/// These points: all repeats over one table before the next, or long trials repeat by repeat.
fn sweep(context: &Context, axis: &'static str, points: Vec<SweepPoint>) -> Box<dyn Method> {
    let repeats = context.parameters.repeats;
    Box::new(match context.parameters.seconds < LONG_TRIAL_S {
        true => Sweep::table_by_table(axis, points, repeats),
        false => Sweep::new(axis, points, repeats).renewing(renews(context)),
    })
}

/// A full table of so many entries as each technology has it, hit at random: exact entries, C-class
/// networks, or addresses learned from frames.
pub fn full_table(context: &Context, entries: u32) -> Setup {
    let table = match context.technology {
        Technology::Bridging => Table::Learned,
        _ => Table::Exact,
    };
    Setup { table, entries, traffic: Traffic::Random, ..context.setup() }
}

/// So many exact entries, hit at random.
fn hash_table(context: &Context, entries: u32) -> Setup {
    Setup { table: Table::Exact, entries, traffic: Traffic::Random, ..context.setup() }
}

/// So many entries that name both UDP ports and nothing else, hit at random.
fn linear_table(context: &Context, entries: u32) -> Setup {
    Setup { table: Table::Wildcard, ..hash_table(context, entries) }
}
