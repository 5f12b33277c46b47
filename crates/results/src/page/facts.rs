//! The last part of the page: tester, targets, machine, reproduction and explanations.
//!
//! Invariant: an unknown value is omitted, never guessed.

use maud::{Markup, html};

use crate::links;
use crate::number;
use crate::record::{Calibration, ClockFacts, Distribution, Record};
use crate::report::words;

/// Calibration of the tester.
pub(super) fn tester(record: &Record) -> Markup {
    let micro = |distribution: &Option<Distribution>, of: fn(&Distribution) -> Option<u64>| {
        let ns = distribution.as_ref().and_then(of);
        ns.map_or("–".to_string(), |ns| number::text(ns as f64 / 1e3))
    };
    let mean = |one: &Calibration| {
        let error = one.latency_ns_error.map(|ns| format!(" ± {}", number::text(ns / 1e3)));
        let mean = one.latency.as_ref().map(|found| number::text(found.ns_mean / 1e3));
        mean.map_or("–".to_string(), |mean| format!("{mean}{}", error.unwrap_or_default()))
    };
    html! {
        @if !record.calibrations.is_empty() {
            section {
                h2 { "The tester by itself" }
                p { "Looped without a target before anything else: what it can carry without loss (its \
                     ceiling), what it offers when asked for more, and what it adds." }
                div.wide tabindex="0" role="group" aria-label="Table" {
                    table {
                        thead { tr {
                            th { "link" } th { "packet size, bytes" } th { "ceiling, frames/s" } th { "saturated, frames/s" }
                            th { "own latency p50, µs" } th { "p99, µs" } th { "mean, µs" }
                            th { "pacing error p50, µs" } th { "p99, µs" } th { "stamps by" }
                        } }
                        tbody {
                            @for one in &record.calibrations {
                                tr {
                                    td { (one.link) }
                                    td.n { (one.frame_bytes) }
                                    td.n { (number::text(one.rate_pps_ceiling as f64)) }
                                    td.n { (number::text(one.rate_pps_saturated as f64)) }
                                    td.n { (micro(&one.latency, |found| found.ns_p50)) }
                                    td.n { (micro(&one.latency, |found| found.ns_p99)) }
                                    td.n { (mean(one)) }
                                    td.n { (micro(&one.pacing_error, |found| found.ns_p50)) }
                                    td.n { (micro(&one.pacing_error, |found| found.ns_p99)) }
                                    td { (one.clock.words()) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The devices under test.
pub(super) fn targets(record: &Record) -> Markup {
    let has_links = links::are_several(record);
    html! {
        section {
            h2 { "Targets" }
            div.wide tabindex="0" role="group" aria-label="Table" {
                table {
                    thead { tr {
                        th { "name" } th { "asked for as" } th { "does" } th { "family" }
                        @if has_links { th { "link" } }
                        th { "version" } th { "settings" }
                    } }
                    tbody {
                        @for target in &record.targets {
                            tr {
                                td { (target.name) }
                                td { (target.spec) }
                                td { (target.technology.word()) }
                                td { (target.family) }
                                @if has_links { td { (links::of(record, &target.name)) } }
                                td { (target.version.as_deref().unwrap_or("–")) }
                                td { (pairs(target.settings.iter())) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The machine of the run.
pub(super) fn machine(record: &Record) -> Markup {
    let machine = &record.environment;
    let memory =
        machine.memory_bytes.map(|bytes| format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0));
    let facts: [(&str, Option<String>); 10] = [
        ("system", machine.system.clone()),
        ("kernel", machine.kernel.clone()),
        ("processor", machine.cpu_model.clone()),
        ("cores", machine.cpu_cores.map(|cores| cores.to_string())),
        ("governor", machine.cpu_governor.clone()),
        ("clock source", machine.clock_source.clone()),
        ("clock", machine.clock.as_ref().map(ClockFacts::words)),
        ("memory", memory),
        ("hypervisor", machine.virtualised.clone()),
        ("versions", Some(pairs(machine.versions.iter())).filter(|text| !text.is_empty())),
    ];
    html! {
        section {
            h2 { "Machine" }
            dl {
                @for (name, value) in facts {
                    @if let Some(value) = value { dt { (name) } dd { (value) } }
                }
                @if machine.simulated { dt { "time" } dd { "simulated" } }
            }
        }
    }
}

/// How to repeat the run.
pub(super) fn again(record: &Record, id: &str) -> Markup {
    html! {
        section id=(id) {
            h2 { "To do it again" }
            pre { (record.command_line) }
            @if let Some(hint) = words::effort_hint(record) { p { (hint) } }
            dl {
                dt { "seed" } dd { (record.seed) }
                dt { "effort" } dd { (words::effort(record)) }
                dt { "link" } dd { (record.link) }
                @let text = pairs(record.parameters.iter());
                @if !text.is_empty() { dt { "parameters" } dd { (text) } }
            }
            p {
                "Every number here comes from trials, which it leads to; " code { "record.json" } " beside this page \
                 holds them, and " code { "*.csv" } " the same numbers with all their digits."
            }
        }
    }
}

/// Explanation of the numbers, once per page.
pub(super) fn reading() -> Markup {
    html! {
        h2 { "How to read it" }
        p {
            "Packet sizes count the frame check sequence, so 64 bytes are 60 in memory. The forwarding rate \
             is what came out where it belongs under the load offered; Mbit/s are 10⁶ bit/s of the link \
             layer, without preamble and gap. Rates and mean latencies are means of the repeats with \
             Student's t interval; percentiles are medians of the repeats, never means, between two of \
             their sorted values: with three repeats that is their whole range, which holds the median \
             with 75 % confidence only. A percentile stands only where at least ten samples lie above \
             it. A ratio is taken within interleaved pairs; where its interval lies within 1 % of 1 the answer is alike, and where \
             it holds 1 otherwise, unclear. What was not measured is left empty."
        }
    }
}

fn pairs<N: std::fmt::Display, V: std::fmt::Display>(
    values: impl Iterator<Item = (N, V)>,
) -> String {
    values.map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ")
}
