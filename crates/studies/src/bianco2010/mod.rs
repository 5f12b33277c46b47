//! bianco2010: "OpenFlow switching: data plane performance" (Bianco, Birke, Giraudo, Palacin; IEEE ICC 2010, DOI
//! 10.1109/ICC.2010.5502016).
//!
//! The study compares OpenFlow switching, bridging and routing in a Linux PC under the load of a router tester on 1
//! Gbit/s links. Its throughput is the forwarding rate at full nominal load: one trial per point, averaged over
//! three runs of 60 seconds. This module contains the common parts of its figures: tables, their sizes, and the
//! frames of sections IV.B to IV.D.

pub mod entries;
pub mod fig2;
pub mod fig3;
pub mod fig4;
pub mod fig5;
pub mod fig6;
pub mod fig7;
pub mod table1;
pub mod fairness;
pub mod fig9;
pub mod fig10;

use experiments::sweep::{Sweep, SweepPoint};
use experiments::{Context, Method};
use workload::Setup;
use workload::Technology;
use workload::parameter::declaration::Parameter;
use workload::parameter::shared;
use workload::parameter::{Table, Traffic};

/// Frame sizes of figures 5 and 6 and table I.
pub const FRAMES_MULTI: Parameter = shared::FRAMES.with_default("96,128,256,512,1024,1500");

/// Frame sizes of figures with small frames only.
pub const FRAMES_SMALL: Parameter = shared::FRAMES.with_default("96");

/// Number of entries in the study's hash table.
pub const HASH_ENTRIES: Parameter =
    Parameter { help: "number of entries in the hash table", ..shared::SIZE }
        .with_default("131072");

/// Number of entries in the study's linear table.
pub const LINEAR_ENTRIES: u32 = 100;

/// Name of the curve of a hash table.
pub const HASH: &str = "hash_entries";

/// Name of the curve of a linear table.
pub const LINEAR: &str = "linear_entries";

/// Duration from which trials are long, in seconds.
///
/// Repeats of long trials are so far apart that a bridge would forget learned addresses within its ageing time of
/// an hour. Such trials are much longer than filling a table, so the table is filled again for each.
const LONG_TRIAL_S: f64 = 10.0;

/// Returns whether a target's table is filled again for each repeat.
fn renews(context: &Context) -> bool {
    context.parameters.seconds >= LONG_TRIAL_S && context.technology == Technology::Bridging
}

/// Creates a sweep of these points, repeat by repeat.
fn sweep(context: &Context, axis: &'static str, points: Vec<SweepPoint>) -> Box<dyn Method> {
    let sweep = Sweep::new(axis, points, context.parameters.repeats);
    Box::new(sweep.renewing(renews(context)))
}

/// Returns the setup of a full table with random hits, as each technology has it.
///
/// Entries are exact entries, C-class networks, or addresses learned from frames.
pub fn full_table(context: &Context, entries: u32) -> Setup {
    let table = match context.technology {
        Technology::Bridging => Table::Learned,
        _ => Table::Exact,
    };
    Setup { table, entries, traffic: Traffic::Random, ..context.setup() }
}

/// Returns the setup of a hash table with this number of exact entries and random hits.
fn hash_table(context: &Context, entries: u32) -> Setup {
    Setup { table: Table::Exact, entries, traffic: Traffic::Random, ..context.setup() }
}

/// Returns the setup of a linear table whose entries match both UDP ports only, with random hits.
fn linear_table(context: &Context, entries: u32) -> Setup {
    Setup { table: Table::Wildcard, ..hash_table(context, entries) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tester::procedure::Step;

    use super::*;
    use targets::name::TargetKind;
    use workload::Addresses;
    use workload::parameter::{Effort, Parameters};

    /// Returns the mean rate by table of a target in virtual time whose rate drifts.
    ///
    /// The rate falls by a tenth from the first trial to the last, in any order. Filling an entry
    /// takes 10 us and a trial half a second.
    fn drifting(make: fn(&Context) -> Box<dyn Method>, repeats: u32) -> Vec<f64> {
        let parameters = Parameters { repeats, ..Parameters::at(Effort::Quick) };
        assert!(parameters.seconds < LONG_TRIAL_S);
        let context = Context {
            kind: TargetKind::Switch,
            technology: Technology::OpenFlow,
            addresses: Addresses::numbered([2, 0, 0, 0, 0], [2, 0, 0, 0, 1]),
            capacity_bps: 1_000_000_000,
            parameters,
            seed: 1,
            ceiling_pps: None,
            has_throughputs: false,
        };
        let mut method = make(&context);
        let (mut now, mut table, mut moments) = (0.0, None, Vec::new());
        loop {
            match method.next(None) {
                Step::Install(setup) => {
                    now += f64::from(setup.entries) * 1e-5;
                    table = Some((setup.table, setup.entries));
                }
                Step::Trial { .. } => {
                    now += 0.5;
                    moments.push((format!("{:?}", table.unwrap()), now));
                }
                Step::Module { .. } => panic!("the study has trials only"),
                Step::Done => break,
            }
        }
        let mut rates: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (table, at) in moments {
            rates.entry(table).or_default().push(1.0 - 0.1 * at / now);
        }
        rates.into_values().map(|it| it.iter().sum::<f64>() / it.len() as f64).collect()
    }

    #[test]
    fn table_sizes_are_not_confounded_with_time() {
        for repeats in 2..=6 {
            for make in [fig5::method, table1::method, fig6::method] {
                let means = drifting(make, repeats);
                assert!(means.len() > 1, "several tables");
                let least = means.iter().copied().fold(f64::INFINITY, f64::min);
                let most = means.iter().copied().fold(0.0, f64::max);
                // In table-by-table order, the first differs from the last by at least 5 %.
                assert!(most / least < 1.015, "{repeats} repeats: {means:?}");
            }
        }
    }
}
