//! Claims about the round trips of one switch: tables III, V and VI, figures 2 to 5.

use super::{Case, Evaluation, HOSTS_MS, is_equal, nothing, times};
use crate::claims::case::{is_below, is_within};
use crate::claims::verdict::{in_regime, is_greater};
use crate::table::costa2017::conformance::Came;
use crate::table::costa2017::sockets::{difference, pairs};
use record::number;
use record::{Target, Verdict};
use stats::conclude::Estimate;

/// "Close to" and "edging" a delay: within this share of it.
const ABOUT_SHARE: f64 = 0.25;

/// The sizes in bytes that figure 4 compares.
const SMALL_BYTES: f64 = 64.0;
const LARGE_BYTES: f64 = 256.0;

/// Percent to which a full table is full.
const FULL: f64 = 100.0;

/// The names of medians of round trips.
fn median(kind: &str) -> String {
    format!("{kind}_rtt_ns_p50")
}

impl Case<'_> {
    /// Table III: every type takes what a match by port takes.
    pub(super) fn types_are_alike(&self, target: &Target) -> Evaluation {
        let reading = "the median of each type over that by port is 1 within 5 %; an exact match on the HP is excepted, \
                       as in the study"
            .to_string();
        let is_hp = target.model().is_some_and(|(name, _)| name == "hp-2920");
        let types = ["mac", "ip", "udp_port", "exact"];
        let types = types.into_iter().filter(|kind| !(is_hp && *kind == "exact"));
        let found: Vec<(String, Estimate)> = types
            .filter_map(|kind| {
                let names = (&*median(kind), "port_rtt_ns_p50");
                Some((kind.replace('_', " "), self.against(target, names, (None, None))?))
            })
            .collect();
        let none = "no match type other than the match by port was measured";
        self.each_ratio(
            reading,
            "ratio to a match by port",
            &found,
            (|_: &str, it: &_| is_equal(it), none),
        )
    }

    /// Figure 2: a round trip takes 0.1 to 0.3 ms, hosts included.
    pub(super) fn is_fast(&self, target: &Target) -> Evaluation {
        let reading = "the median round trip by IP, with 0.1 ms for hosts, is within 0.1 to 0.3 ms";
        self.by_ip(target, reading.into(), (0.1, 0.3))
    }

    /// Figure 2: a round trip takes about so long, hosts included.
    pub(super) fn takes_about(&self, target: &Target) -> Evaluation {
        let claimed = self.claimed().unwrap_or(0.0);
        let band = (claimed * (1.0 - ABOUT_SHARE), claimed * (1.0 + ABOUT_SHARE));
        let reading = format!(
            "the median round trip by IP, with 0.1 ms for hosts, is within {} to {} ms",
            number::text(band.0),
            number::text(band.1)
        );
        self.by_ip(target, reading, band)
    }

    fn by_ip(&self, target: &Target, reading: String, (least, most): (f64, f64)) -> Evaluation {
        let Some(cell) = self.value(&target.name, "ip_rtt_ns_p50", None) else {
            return nothing(reading, "a match by IP was not measured");
        };
        let here =
            self.hosts_ms(target).map(|ms| format!("; hosts took {} ms here", number::text(ms)));
        let here = here.unwrap_or_default();
        let numbers = format!("{} ms without hosts{here}", number::text(cell.value / 1e6));
        let with_hosts = Estimate::of(cell).map(|ns| ns / 1e6 + HOSTS_MS);
        Evaluation { reading, numbers, verdict: is_within(&with_hosts, least, most) }
    }

    /// What a client and a server with sockets took of a round trip by IP here, where the run has both ways.
    fn hosts_ms(&self, target: &Target) -> Option<f64> {
        let both = ["ip_rtt_ns_mean", "ip_sockets_rtt_ns_mean"];
        let experiment = self.record.experiments.iter().find(|it| it.id == "costa2017/sockets")?;
        let (ports, sockets) = pairs(self.record, experiment, &target.name, both).next()?;
        Some(difference(sockets, ports)?.ns / 1e6)
    }

    /// Figure 3: an exact match takes about a fifth less.
    pub(super) fn exact_is_faster(&self, target: &Target) -> Evaluation {
        let claimed = self.claimed().unwrap_or(0.0);
        let (least, most) = (claimed - 10.0, claimed + 10.0);
        let reading = format!(
            "the mean of an exact match is {} to {} % below that by IP: the study compares means",
            number::text(least),
            number::text(most)
        );
        let names = ("exact_rtt_ns_mean", "ip_rtt_ns_mean");
        let Some(ratio) = self.against(target, names, (None, None)) else {
            return nothing(reading, "both were not measured");
        };
        let lower = ratio.map(|ratio| (1.0 - ratio) * 100.0);
        let numbers = format!("{} % less", number::text(lower.value));
        Evaluation { reading, numbers, verdict: is_within(&lower, least, most) }
    }

    /// Figure 4: large packets take longer.
    pub(super) fn grows_with_size(&self, target: &Target) -> Evaluation {
        let reading =
            "the median with 256-byte packets is above that with 64-byte packets, by more than 1 %";
        self.by_size(target, reading, is_greater)
    }

    /// Figure 4: large packets take as long.
    pub(super) fn same_for_each_size_here(&self, target: &Target) -> Evaluation {
        let reading =
            "the median with 256-byte packets over that with 64-byte packets is 1 within 5 %";
        self.by_size(target, reading, is_equal)
    }

    fn by_size(
        &self,
        target: &Target,
        reading: &str,
        judge: fn(&Estimate) -> Verdict,
    ) -> Evaluation {
        let name = median("exact");
        let at = (Some(LARGE_BYTES), Some(SMALL_BYTES));
        match self.against(target, (&name, &name), at) {
            None => nothing(reading, "both sizes were not measured"),
            Some(ratio) => Evaluation {
                reading: reading.into(),
                numbers: format!("{} times", times(&ratio)),
                verdict: judge(&ratio),
            },
        }
    }

    /// Figure 5: jitter stays below a millisecond.
    pub(super) fn is_steady(&self, target: &Target) -> Evaluation {
        let limit_ms = self.claimed().unwrap_or(1.0);
        let reading = format!("the greatest jitter is below {limit_ms} ms");
        let Some(cell) = self.value(&target.name, "exact_jitter_ns_max", None) else {
            return nothing(reading, "jitter was not measured");
        };
        let most = Estimate::of(cell).map(|ns| ns / 1e6);
        let numbers = format!("at most {} ms", number::text(most.value));
        Evaluation { reading, numbers, verdict: is_below(&most, limit_ms) }
    }

    /// Table V: a full table costs about so much.
    pub(super) fn full_table_costs(&self, target: &Target) -> Evaluation {
        let claimed_ms = self.claimed().unwrap_or(0.0);
        let (least, most) = (claimed_ms / 2.0, claimed_ms * 1.5);
        let reading = format!(
            "the mean with a full table is {} to {} ms above that with one rule: the study compares means; condition: the \
             table was full before the search ended",
            number::text(least),
            number::text(most)
        );
        let means = [0.0, FULL].map(|x| self.value(&target.name, "exact_rtt_ns_mean", Some(x)));
        let [Some(one), Some(full)] = means else {
            return nothing(reading, "both tables were not measured");
        };
        let more = Estimate::difference(full, one).map(|ns| ns / 1e6);
        let numbers = format!("{} ms more", number::text(more.value));
        let regime = self.full_table(target, "exact_", FULL);
        let verdict = in_regime(regime, || is_within(&more, least, most));
        Evaluation { reading, numbers, verdict }
    }

    /// Table V: a full table costs nothing to speak of.
    pub(super) fn full_table_is_free(&self, target: &Target) -> Evaluation {
        let reading = "with exact and with wildcard rules the median with a full table over that with one rule is 1 \
                       within 5 %; condition: the table was full before the search ended"
            .to_string();
        let at = (Some(FULL), Some(0.0));
        let found = ["exact", "wildcard"].into_iter().filter_map(|kind| {
            let name = median(kind);
            Some((kind.to_string(), self.against(target, (&name, &name), at)?))
        });
        let found: Vec<_> = found.collect();
        let none = "both tables were not measured";
        let judge = |kind: &str, ratio: &Estimate| {
            in_regime(self.full_table(target, &format!("{kind}_"), FULL), || is_equal(ratio))
        };
        self.each_ratio(reading, "ratio to one rule", &found, (judge, none))
    }

    /// Table VI: what is rewritten takes as long.
    pub(super) fn rewrites_are_free(&self, target: &Target) -> Evaluation {
        let reading = "the median with each rewrite that is done over that of like packets without is 1 within 5 %; \
                       condition: every packet is rewritten"
            .to_string();
        let kinds = [
            ("mac", "none"),
            ("ip", "none"),
            ("vlan_priority", "tagged_none"),
            ("ip_tos", "none"),
            ("udp_ports", "none"),
        ];
        let found = kinds.into_iter().filter_map(|(kind, plain)| {
            let value =
                |what: &str| Some(self.value(&target.name, &format!("{kind}_{what}"), None)?.value);
            let works = Came::of(value)?.works();
            let names = (&*median(kind), &*median(plain));
            let ratio = self.against(target, names, (None, None))?;
            works.then_some((kind.replace('_', " "), ratio))
        });
        let found: Vec<_> = found.collect();
        let none = "outside the condition of the claim: no rewrite was done and measured";
        self.each_ratio(
            reading,
            "ratio to no rewrite",
            &found,
            (|_: &str, it: &_| is_equal(it), none),
        )
    }
}
