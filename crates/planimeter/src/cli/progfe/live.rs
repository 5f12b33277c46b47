//! Observation of a running element over time: traffic on its links, drops in its blocks, and the
//! cost of a frame in each block.
//!
//! Counters are read at both ends of the time, so rates include all frames. Costs are of sampled
//! frames, which pass block by block (see `progfe::observe`). The element does not report costs
//! while another client measures them.

use std::collections::BTreeMap;
use std::path::Path;

use os::clock;
use packet::time::Nanos;
use progfe::program::Program;
use serde_json::{Map, Value, json};

use super::agent::ControlClient;
use crate::cli::failure::Failure;
use crate::cli::output::remark;

/// Observation of a running element.
pub struct Live {
    /// The running program.
    pub program: Program,
    /// Its generation in the element.
    pub generation: u64,
    /// Duration of the observation.
    pub seconds: f64,
    /// Flow on each link.
    pub links: Vec<Flow>,
    /// Frames dropped by each block, by reason.
    pub drops: Vec<BTreeMap<String, Flow>>,
    /// Flows of the whole element, by counter name.
    pub account: Vec<(&'static str, Flow)>,
    /// Cycles of the forwarding loop per frame; `None` without frames.
    pub cycles_per_frame: Option<f64>,
    /// Costs of blocks.
    pub costs: Option<Costs>,
}

/// A flow of frames.
#[derive(Debug, Clone, Copy, Default)]
pub struct Flow {
    /// Total since the counter began.
    pub frames: u64,
    /// Total bytes, if they are counted.
    pub bytes: u64,
    /// Frames per second.
    pub frames_per_s: f64,
    /// Bits per second.
    pub bits_per_s: f64,
}

/// Costs of blocks.
pub struct Costs {
    /// Unit of the element's cycle counter.
    pub unit: String,
    /// Nanoseconds per unit.
    pub ns: f64,
    /// Number of sampled frames.
    pub frames: u64,
    /// Sampling interval, after the first frames.
    pub every: u64,
    /// Cost of reading the counter, which is subtracted.
    pub reading: u64,
    /// For each block: visits, median and mean; `None` without frames.
    pub blocks: Vec<Option<(u64, u64, f64)>>,
}

/// Counters at both ends of the time, and its length.
struct CounterSpan<'v>([&'v Value; 2], f64);

impl CounterSpan<'_> {
    fn flow(&self, read: impl Fn(&Value) -> (u64, u64)) -> Flow {
        let [(frames_before, bytes_before), (frames, bytes)] = self.0.map(read);
        let rate = |before: u64, after: u64| after.saturating_sub(before) as f64 / self.1;
        Flow {
            frames,
            bytes,
            frames_per_s: rate(frames_before, frames),
            bits_per_s: rate(bytes_before, bytes) * 8.0,
        }
    }
}

/// Observes an element for some time, with one frame in `every` sampled.
pub fn look(control: &Path, for_ms: u64, every: u64) -> Result<Live, Failure> {
    let mut asking = ControlClient::open(control)?;
    let program = asking.program()?;
    let begun = asking.ask(&json!({ "measure_costs": { "every": every, "for_ms": for_ms } }));
    if let Err(why) = &begun {
        remark!("warning: no costs of blocks: {why}");
    }
    let before = asking.ask(&json!({ "get": "counters" }))?;
    clock::sleep_until(clock::now().saturating_add(Nanos::from_millis(for_ms)));
    let after = asking.ask(&json!({ "get": "counters" }))?;
    let costs = match begun {
        Ok(begun) => Some(costs(&program, &begun, &asking.ask(&json!({ "get": "costs" }))?)),
        Err(_) => None,
    };
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let seconds = number(&after["at_ns"]).saturating_sub(number(&before["at_ns"])) as f64 / 1e9;
    let span = CounterSpan([&before, &after], seconds.max(1e-9));
    let link = |value: &Value, at: usize| {
        let link = &value["progfe"]["links"][at];
        (number(&link["frames"]), number(&link["bytes"]))
    };
    let named = |value: &Value| -> Vec<(String, String)> {
        let links = value["progfe"]["links"].as_array().into_iter().flatten();
        let name = |link: &Value, end: &str| link[end].as_str().unwrap_or_default().to_owned();
        links.map(|link| (name(link, "from"), name(link, "to"))).collect()
    };
    let wanted = program.links.iter();
    let wanted: Vec<_> =
        wanted.map(|it| (program.output_name(it.from), program.input_name(it.to))).collect();
    if named(&before) != wanted || named(&after) != wanted {
        let what = "the program was replaced during the observation (hint: run the command again)";
        return Err(Failure::usage(what.to_owned()));
    }
    let drops = program.instances.iter().map(|instance| {
        let reasons = after["progfe"]["drops_by_block"][&instance.name].as_object();
        let reasons = reasons.into_iter().flatten().map(|(reason, _)| {
            let read =
                |all: &Value| number(&all["progfe"]["drops_by_block"][&instance.name][reason]);
            (reason.clone(), span.flow(|all| (read(all), 0)))
        });
        reasons.collect()
    });
    let drops = drops.collect();
    let of_element = ["received", "injected", "copies", "left", "told", "dropped"];
    let account = of_element.map(|name| (name, span.flow(|all| (number(&all["progfe"][name]), 0))));
    let busy = span.flow(|all| (number(&all["cycles_busy"]), 0)).frames_per_s;
    let received = account[0].1.frames_per_s;
    Ok(Live {
        generation: number(&after["progfe"]["generation"]),
        links: (0..wanted.len()).map(|at| span.flow(|all| link(all, at))).collect(),
        drops,
        account: account.to_vec(),
        cycles_per_frame: (received > 0.0).then(|| busy / received),
        seconds,
        costs,
        program,
    })
}

fn costs(program: &Program, begun: &Value, told: &Value) -> Costs {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let between = |name: &str| number(&told[name]).saturating_sub(number(&begun[name])) as f64;
    let block = |name: &str| {
        let visits = told["blocks"].get(name)?;
        let count = number(&visits["frames"]).max(1);
        Some((count, number(&visits["median"]), number(&visits["total"]) as f64 / count as f64))
    };
    Costs {
        unit: told["unit"].as_str().unwrap_or_default().to_owned(),
        ns: between("at_ns") / between("counter").max(1.0),
        frames: number(&told["frames"]),
        every: number(&told["every"]),
        reading: number(&told["reading"]),
        blocks: program.instances.iter().map(|instance| block(&instance.name)).collect(),
    }
}

impl Flow {
    fn json(&self, with_bytes: bool) -> Value {
        let mut told = json!({ "frames": self.frames, "frames_per_s": self.frames_per_s });
        if with_bytes {
            told["bytes"] = self.bytes.into();
            told["bits_per_s"] = self.bits_per_s.into();
        }
        told
    }
}

impl Costs {
    /// Describes the sampling in a sentence.
    pub fn method(&self) -> String {
        format!(
            "cost of a block: median over {} frames that were interpreted block by block (the \
             first {}, then one of {}), without {} {} to read the counter; a compiled program \
             needs less in total",
            self.frames,
            progfe::observe::cost::FIRST,
            self.every,
            self.reading,
            self.unit,
        )
    }
}

impl Live {
    /// Formats the values of the element as a whole, a line each.
    pub fn summary(&self) -> Vec<String> {
        let rate = |(name, flow): &(&str, Flow)| format!("{name} {}/s", short(flow.frames_per_s));
        let rates = self.account.iter().filter(|(_, flow)| flow.frames > 0).map(rate);
        let rates: Vec<String> = rates.collect();
        let rates = if rates.is_empty() { "no frames yet".to_owned() } else { rates.join(", ") };
        let mut lines = vec![format!(
            "running element, program number {}, observed for {:.2} s: {rates}",
            self.generation, self.seconds
        )];
        let unit = self.costs.as_ref().map_or("cycles", |costs| &costs.unit);
        if let Some(cycles) = self.cycles_per_frame {
            let ns = self.costs.as_ref().map(|costs| format!(" ({:.0} ns)", cycles * costs.ns));
            lines.push(format!(
                "{cycles:.0} {unit}{} per frame, with receiving and sending",
                ns.unwrap_or_default()
            ));
        }
        lines.extend(self.costs.iter().map(Costs::method));
        lines
    }

    /// Returns all values as JSON.
    pub fn json(&self) -> Value {
        let program = &self.program;
        let links = program.links.iter().zip(&self.links).map(|(link, flow)| {
            let mut told = flow.json(true);
            told["from"] = program.output_name(link.from).into();
            told["to"] = program.input_name(link.to).into();
            told
        });
        let blocks = program.instances.iter().enumerate().map(|(at, instance)| {
            let drops = self.drops[at].iter().map(|(why, flow)| (why.clone(), flow.json(false)));
            let mut told = json!({
                "instance": instance.name,
                "class": program.class_of(at).name,
                "drops": drops.collect::<Map<String, Value>>(),
            });
            if let Some(costs) = &self.costs
                && let Some((visits, median, mean)) = costs.blocks[at]
            {
                told["cost"] = json!({
                    "visits": visits,
                    "median": median,
                    "mean": mean,
                    "median_ns": median as f64 * costs.ns,
                });
            }
            told
        });
        let costs = self.costs.as_ref().map(|costs| {
            json!({
                "unit": costs.unit,
                "unit_ns": costs.ns,
                "frames": costs.frames,
                "one_of": costs.every,
                "first": progfe::observe::cost::FIRST,
                "reading": costs.reading,
                "method": costs.method(),
            })
        });
        let account = self.account.iter();
        json!({
            "program": program.name,
            "revision": program.revision,
            "generation": self.generation,
            "seconds": self.seconds,
            "cycles_per_frame": self.cycles_per_frame,
            "account": account.map(|(name, flow)| ((*name).to_owned(), flow.json(false))).collect::<Map<_, _>>(),
            "links": links.collect::<Vec<_>>(),
            "blocks": blocks.collect::<Vec<_>>(),
            "costs": costs,
        })
    }
}

/// Formats a number briefly: 1.23M.
pub fn short(number: f64) -> String {
    let (number, unit) = match number {
        n if n >= 1e9 => (n / 1e9, "G"),
        n if n >= 1e6 => (n / 1e6, "M"),
        n if n >= 1e3 => (n / 1e3, "k"),
        n => (n, ""),
    };
    let digits = match number {
        n if n == n.round() && unit.is_empty() => 0,
        n if n >= 100.0 => 0,
        n if n >= 10.0 => 1,
        _ => 2,
    };
    format!("{number:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_printed_compactly() {
        let all = [0.0, 7.0, 0.5, 12.34, 1234.0, 56_789.0, 1.5e6, 2.5e9].map(short);
        assert_eq!(all, ["0", "7", "0.50", "12.3", "1.23k", "56.8k", "1.50M", "2.50G"]);
    }
}
