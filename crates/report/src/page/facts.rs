//! The last part of the page: tester, targets, machine, reproduction and explanations.
//!
//! Invariant: an unknown value is omitted, never guessed.

use maud::{Markup, html};

use crate::finding;
use record::links;
use record::number;
use record::target_name::label;
use record::{Calibration, ClockFacts, Distribution, Record};

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
                h2 { "Tester calibration" }
                p { "Measured in a loop without a target, before all trials: the highest rate without \
                     loss (ceiling), the offered rate at saturation, and the tester's own latency." }
                div.wide tabindex="0" role="group" aria-label="Table" {
                    table {
                        thead { tr {
                            th { "link" } th { "packet size, bytes" } th { "ceiling, frames/s" } th { "saturated, frames/s" }
                            th { "own latency p50, µs" } th { "p99, µs" } th { "mean, µs" }
                            th { "pacing error p50, µs" } th { "p99, µs" } th { "time stamps" }
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
                        th { "name" } th { "specification" } th { "technology" } th { "family" }
                        @if has_links { th { "link" } }
                        th { "version" } th { "settings" }
                    } }
                    tbody {
                        @for target in &record.targets {
                            tr {
                                td { (label(&target.name)) }
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
            h2 { "Reproduce this run" }
            pre { (record.command_line) }
            @if let Some(hint) = finding::first_look(record) { p { (hint.sentence().to_string()) } }
            dl {
                dt { "seed" } dd { (record.seed) }
                dt { "effort" } dd { (finding::effort(record.effort)) }
                dt { "link" } dd { (record.link) }
                @let text = pairs(record.parameters.iter());
                @if !text.is_empty() { dt { "parameters" } dd { (text) } }
            }
            p {
                "Each number links to its trials. In the folder of this page, " code { "record.json" }
                " contains the trials, and " code { "*.csv" } " the same numbers with all digits."
            }
        }
    }
}

/// Explanation of the numbers, once per page.
pub(super) fn reading() -> Markup {
    html! {
        h2 { "Notes on the numbers" }
        p {
            "Packet sizes include the frame check sequence: 64 bytes are 60 bytes in memory. The \
             forwarding rate counts frames that arrive at the correct port under the offered load. \
             1 Mbit/s is 10⁶ bit/s of the link layer, without preamble and gap. Rates and mean \
             latencies are means of the repeats with a Student's t interval. Percentiles are medians \
             of the repeats, never means. Their interval lies between two of the sorted values. With \
             three repeats it is the whole range, which contains the median with only 75 % \
             confidence. A percentile requires at least ten samples above it. Ratios are computed \
             within interleaved pairs. If the interval is within 1 % of 1, the values are equivalent; \
             if it contains 1 otherwise, the order is undecided. Intervals of module values include \
             the resolution. Values that were not measured are empty."
        }
    }
}

fn pairs<N: std::fmt::Display, V: std::fmt::Display>(
    values: impl Iterator<Item = (N, V)>,
) -> String {
    values.map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ")
}
