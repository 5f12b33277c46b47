//! The claims of costa2017, read so that a number can decide.
//!
//! Source: section IV of the study. What it says of a switch is put to the model of that switch, and what it says
//! of all switches to every target; nothing that it says of one device is put to another. Invariants: delays are
//! those of packets one at a time; a round trip here has no hosts in it, of which the study's has some 0.1 ms,
//! so that absolute values are compared with that much less; what hosts take on this machine stands beside where it was
//! measured, and decides nothing: neither the study's hosts nor its switches are here.

use super::case::{Case, Finding, all, within};
use super::unread;
use crate::number;
use crate::record::{Cell, Claim, ClaimVerdict, Metric, Name, Record, Relation, Target, Verdict};
use crate::table::costa2017::conformance::Came;
use crate::table::costa2017::sockets::{difference, pairs};
use crate::table::costa2017::{Equivalence, equivalence};

/// What hosts take of a round trip in the study, as the models assume it.
const HOSTS_MS: f64 = 0.1;

/// Models of the switches that the study finds fast.
const FAST: [&str; 6] = [
    "extreme-x460",
    "extreme-x440",
    "pica8-p3297",
    "mikrotik-ar9344",
    "datacom-dm4001",
    "netfpga-openflow",
];

/// Those whose port statistics hang on the rules.
const INFLUENCED: [&str; 5] =
    ["extreme-x460", "extreme-x440", "pica8-p3297", "netfpga-openflow", "datacom-dm4001"];

/// Means within a quarter of each other count as alike where the study says similar.
const ALIKE_FACTOR: f64 = 1.25;

/// Delays that grow by half count as considerably higher.
const CONSIDERABLE_FACTOR: f64 = 1.5;

/// The lines for one claim.
pub(super) fn judge(record: &Record, experiment: &str, claim: &Claim) -> Vec<ClaimVerdict> {
    let case = Case { record, experiment, claim };
    let every = |_: &Target| true;
    let is_model = |names: &'static [&'static str]| {
        move |target: &Target| names.iter().any(|name| target.name == format!("ours:model={name}"))
    };
    match (claim.item.as_str(), &claim.relation, claim.subject.as_str()) {
        ("table3", ..) => case.put_to(every, Case::types_are_alike),
        ("fig2", Relation::Range, _) => case.put_to(is_model(&FAST), Case::is_fast),
        ("fig3", Relation::About, _) => case.put_to(is_model(&["hp-2920"]), Case::exact_is_faster),
        ("fig5", ..) => case.put_to(is_model(&["extreme-x460", "extreme-x440"]), Case::is_steady),
        ("fig6", Relation::About, _) => {
            case.put_to(is_model(&["hp-2920", "linksys-wrt54gl"]), Case::reaches_a_share)
        }
        ("fig6", Relation::Shape, _) => case.put_to(every, Case::modes_are_alike),
        ("table5", Relation::About, _) => {
            case.put_to(is_model(&["linksys-wrt54gl"]), Case::full_table_costs)
        }
        ("table5", ..) => {
            let other = |target: &Target| target.name != "ours:model=linksys-wrt54gl";
            case.put_to(other, Case::full_table_is_free)
        }
        ("table6", ..) => case.put_to(every, Case::rewrites_are_free),
        ("table7", ..) => case.put_to(every, Case::full_table_delays_flow_stats),
        ("table8", ..) => {
            let influenced = is_model(&INFLUENCED);
            case.put_to(move |target| !influenced(target), Case::port_stats_stay)
        }
        _ => vec![unread(claim)],
    }
}

fn metric(name: &str) -> Option<Metric> {
    Name::read(name).ok().map(Metric::Named)
}

fn cannot(reading: &str, why: &str) -> Finding {
    let (reading, numbers) = (reading.to_string(), String::new());
    Finding { reading, numbers, verdict: Verdict::CannotTell(why.into()) }
}

/// Whether the interval of a ratio lies within a band.
fn in_band(it: &Equivalence, least: f64, most: f64) -> Verdict {
    match it.interval {
        None => Verdict::CannotTell("one pair gives no interval".into()),
        Some(interval) => within(interval.low, interval.high, least, most),
    }
}

/// Where a mean lies, in milliseconds.
fn ends_ms(cell: &Cell) -> Option<(f64, f64)> {
    let interval = cell.interval?;
    Some((interval.low / 1e6, interval.high / 1e6))
}

fn times(it: &Equivalence) -> String {
    number::text(it.ratio)
}

impl<'a> Case<'a> {
    /// A line for each target that the claim speaks of.
    fn put_to(
        &self,
        is_meant: impl Fn(&Target) -> bool,
        judge: impl Fn(&Self, &Target) -> Finding,
    ) -> Vec<ClaimVerdict> {
        let meant = self.measured().filter(|target| is_meant(target));
        let lines: Vec<ClaimVerdict> =
            meant.map(|target| self.line(vec![target.name.clone()], judge(self, target))).collect();
        if lines.is_empty() { vec![self.nothing_measured()] } else { lines }
    }

    /// A mean of packets one at a time, or of statistics, at a place of the axis.
    fn mean(&self, target: &str, name: &str, x: Option<f64>) -> Option<&'a Cell> {
        let found = self.cells(target, metric(name)?);
        found.into_iter().find(|cell| {
            let curve = cell.point.within.as_ref().map_or(0.0, |within| within.value);
            curve == 0.0 && x.is_none_or(|x| cell.point.value == x)
        })
    }

    /// One mean over another, repeat by repeat.
    fn against(
        &self,
        target: &Target,
        (of, base): (&str, &str),
        (x, x_base): (Option<f64>, Option<f64>),
    ) -> Option<Equivalence> {
        equivalence(self.mean(&target.name, of, x)?, self.mean(&target.name, base, x_base)?)
    }

    /// Table III: every type takes what a match by port takes.
    fn types_are_alike(&self, target: &Target) -> Finding {
        let reading = "the mean of each type over that by port lies within 5 %, with its interval; an exact match \
                       on the model of the HP is left out, as there";
        let is_hp = target.name == "ours:model=hp-2920";
        let types = ["mac", "ip", "udp_port", "exact"];
        let types = types.into_iter().filter(|kind| !(is_hp && *kind == "exact"));
        let found: Vec<(&str, Equivalence)> = types
            .filter_map(|kind| {
                let names = (&*format!("{kind}_rtt_ns_mean"), "port_rtt_ns_mean");
                Some((kind, self.against(target, names, (None, None))?))
            })
            .collect();
        let numbers = found.iter().map(|(kind, it)| format!("{kind} {}", times(it)));
        let numbers = format!("times that by port: {}", numbers.collect::<Vec<_>>().join(", "));
        let verdicts = found.iter().map(|(_, it)| in_band(it, 0.95, 1.05));
        let verdict = all(verdicts, "no type was measured beside that by port");
        Finding { reading: reading.into(), numbers, verdict }
    }

    /// Figure 2: a round trip takes 0.1 to 0.3 ms, hosts included.
    fn is_fast(&self, target: &Target) -> Finding {
        let reading = "the mean round trip by IP, with 0.1 ms for hosts, lies within 0.1 to 0.3 ms";
        let Some(cell) = self.mean(&target.name, "ip_rtt_ns_mean", None) else {
            return cannot(reading, "a match by IP was not measured");
        };
        let here =
            self.hosts_ms(target).map(|ms| format!(", which took {} ms here", number::text(ms)));
        let here = here.unwrap_or_default();
        let numbers = format!("{} ms and hosts{here}", number::text(cell.value / 1e6));
        let verdict = match ends_ms(cell) {
            None => Verdict::CannotTell("it was measured once".into()),
            Some((low, high)) => within(low + HOSTS_MS, high + HOSTS_MS, 0.1, 0.3),
        };
        Finding { reading: reading.into(), numbers, verdict }
    }

    /// What a client and a server with sockets took of a round trip by IP here, where the run has both ways.
    fn hosts_ms(&self, target: &Target) -> Option<f64> {
        let both = ["ip_rtt_ns_mean", "ip_sockets_rtt_ns_mean"];
        let experiment = self.record.experiments.iter().find(|it| it.id == "costa2017/sockets")?;
        let (ports, sockets) = pairs(self.record, experiment, &target.name, both).next()?;
        Some(difference(sockets, ports)?.ns / 1e6)
    }

    /// Figure 3: an exact match takes about a fifth less.
    fn exact_is_faster(&self, target: &Target) -> Finding {
        let reading = "an exact match takes 11 to 31 % less than one by IP";
        let names = ("exact_rtt_ns_mean", "ip_rtt_ns_mean");
        let Some(it) = self.against(target, names, (None, None)) else {
            return cannot(reading, "both were not measured");
        };
        let numbers = format!("{} % less", number::text((1.0 - it.ratio) * 100.0));
        Finding { reading: reading.into(), numbers, verdict: in_band(&it, 0.69, 0.89) }
    }

    /// Figure 5: jitter stays below a millisecond.
    fn is_steady(&self, target: &Target) -> Finding {
        let reading = "the greatest jitter of every repeat lies below 1 ms";
        let Some(cell) = self.mean(&target.name, "exact_jitter_ns_max", None) else {
            return cannot(reading, "jitter was not measured");
        };
        let most = cell.samples.iter().copied().fold(0.0, f64::max);
        let verdict = if most < 1e6 { Verdict::Holds } else { Verdict::DoesNot };
        let numbers = format!("at most {} ms", number::text(most / 1e6));
        Finding { reading: reading.into(), numbers, verdict }
    }

    /// Legacy time over OpenFlow time of one device, where both were measured: by its model as a bridge, or by
    /// a rule that hands on to the switch itself.
    fn speed_up(&self, target: &Target) -> Option<Equivalence> {
        let openflow = self.mean(&target.name, "port_rtt_ns_mean", None)?;
        let bridge = format!("{},mode=legacy", target.name);
        let legacy = self.mean(&bridge, "legacy_rtt_ns_mean", None);
        let is_model = target.name.contains(":model=");
        let normal = || self.mean(&target.name, "normal_rtt_ns_mean", None);
        let legacy = if is_model { legacy } else { legacy.or_else(normal) };
        equivalence(legacy?, openflow)
    }

    /// Figure 6: OpenFlow reaches about a fifth of legacy mode's performance.
    fn reaches_a_share(&self, target: &Target) -> Finding {
        let reading = "legacy time over OpenFlow time of 64-byte packets lies within 0.1 to 0.3";
        match self.speed_up(target) {
            None => cannot(reading, "legacy mode was not measured beside it (MODEL,mode=legacy)"),
            Some(it) => Finding {
                reading: reading.into(),
                numbers: times(&it),
                verdict: in_band(&it, 0.1, 0.3),
            },
        }
    }

    /// Figure 6: both modes perform alike.
    fn modes_are_alike(&self, target: &Target) -> Finding {
        let reading = "legacy time over OpenFlow time of 64-byte packets lies within 0.8 to 1.25";
        let is_slow = ["hp-2920", "linksys-wrt54gl"].iter().any(|it| target.name.contains(it));
        if is_slow {
            return cannot(reading, "the study excepts this one");
        }
        match self.speed_up(target) {
            None => cannot(reading, "two modes of it were not measured"),
            Some(it) => Finding {
                reading: reading.into(),
                numbers: times(&it),
                verdict: in_band(&it, 1.0 / ALIKE_FACTOR, ALIKE_FACTOR),
            },
        }
    }

    /// Table V: a full table costs about so much.
    fn full_table_costs(&self, target: &Target) -> Finding {
        let reading = "the mean with a full table lies 0.1 to 0.3 ms above that with one rule";
        let means = [0.0, 100.0].map(|x| self.mean(&target.name, "exact_rtt_ns_mean", Some(x)));
        let [Some(one), Some(full)] = means else {
            return cannot(reading, "both tables were not measured");
        };
        let more = (full.value - one.value) / 1e6;
        let verdict = match ends_ms(one).zip(ends_ms(full)) {
            None => Verdict::CannotTell("it was measured once".into()),
            Some((one, full)) => within(full.0 - one.1, full.1 - one.0, 0.1, 0.3),
        };
        let numbers = format!("{} ms more", number::text(more));
        Finding { reading: reading.into(), numbers, verdict }
    }

    /// Table V: a full table costs nothing to speak of.
    fn full_table_is_free(&self, target: &Target) -> Finding {
        let reading = "with exact and with wildcard rules the mean with a full table lies within 5 % of that with \
                       one rule";
        let at = (Some(100.0), Some(0.0));
        let found = ["exact", "wildcard"].into_iter().filter_map(|kind| {
            let name = format!("{kind}_rtt_ns_mean");
            Some((kind, self.against(target, (&name, &name), at)?))
        });
        let found: Vec<_> = found.collect();
        let numbers = found.iter().map(|(kind, it)| format!("{kind} {}", times(it)));
        let numbers = format!("times that with one: {}", numbers.collect::<Vec<_>>().join(", "));
        let verdicts = found.iter().map(|(_, it)| in_band(it, 0.95, 1.05));
        let verdict = all(verdicts, "both tables were not measured");
        Finding { reading: reading.into(), numbers, verdict }
    }

    /// Table VI: what is rewritten takes as long.
    fn rewrites_are_free(&self, target: &Target) -> Finding {
        let reading =
            "the mean of each rewrite that is done lies within 5 % of that of like packets without";
        let kinds = [
            ("mac", "none"),
            ("ip", "none"),
            ("vlan_priority", "tagged_none"),
            ("ip_tos", "none"),
            ("udp_ports", "none"),
        ];
        let found = kinds.into_iter().filter_map(|(kind, plain)| {
            let value =
                |what: &str| Some(self.mean(&target.name, &format!("{kind}_{what}"), None)?.value);
            let works = Came::of(value)?.works();
            let names = (&*format!("{kind}_rtt_ns_mean"), &*format!("{plain}_rtt_ns_mean"));
            let it = self.against(target, names, (None, None))?;
            works.then_some((kind, it))
        });
        let found: Vec<_> = found.collect();
        let numbers =
            found.iter().map(|(kind, it)| format!("{} {}", kind.replace('_', " "), times(it)));
        let numbers = format!("times that without: {}", numbers.collect::<Vec<_>>().join(", "));
        let verdicts = found.iter().map(|(_, it)| in_band(it, 0.95, 1.05));
        let verdict = all(verdicts, "no rewrite was done and measured");
        Finding { reading: reading.into(), numbers, verdict }
    }

    /// How much longer statistics take over a nearly full table, under both loads.
    fn statistics(&self, target: &Target, word: &str) -> Vec<(&'static str, Equivalence)> {
        let found = ["light", "heavy"].into_iter().filter_map(|load| {
            let name = format!("{load}_{word}_reply_ns_mean");
            Some((load, self.against(target, (&name, &name), (Some(90.0), Some(0.0)))?))
        });
        found.collect()
    }

    /// Table VII: flow statistics take considerably longer.
    fn full_table_delays_flow_stats(&self, target: &Target) -> Finding {
        let reading = "under both loads flow statistics over the nearly full table take at least half as long again";
        self.judged(reading, &self.statistics(target, "flow"), |it| {
            in_band(it, CONSIDERABLE_FACTOR, f64::INFINITY)
        })
    }

    /// Table VIII: port statistics take as long.
    fn port_stats_stay(&self, target: &Target) -> Finding {
        let reading = "under both loads port statistics beside the nearly full table take 0.8 to 1.25 times as long";
        self.judged(reading, &self.statistics(target, "port"), |it| {
            in_band(it, 1.0 / ALIKE_FACTOR, ALIKE_FACTOR)
        })
    }

    fn judged(
        &self,
        reading: &str,
        found: &[(&'static str, Equivalence)],
        judge: impl Fn(&Equivalence) -> Verdict,
    ) -> Finding {
        let numbers = found.iter().map(|(load, it)| format!("{load} load {}", times(it)));
        let numbers = format!("times as long: {}", numbers.collect::<Vec<_>>().join(", "));
        let verdicts = found.iter().map(|(_, it)| judge(it));
        let verdict = all(verdicts, "both tables were not answered for");
        Finding { reading: reading.into(), numbers, verdict }
    }
}
