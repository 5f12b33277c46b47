//! Claims of the study with their verdicts by target.
//!
//! Invariant: a value from the study is marked as such and is separate from measurements.

use maud::{Markup, html};

use super::{Place, said};
use crate::finding::{claim_numbers, claim_setting, claim_targets, statement};
use crate::sentence::Sentence;
use record::number;
use record::{Cell, ClaimVerdict, Experiment, Record, Verdict};

/// The claims about an experiment, and the values printed in its study.
pub(super) fn of(record: &Record, experiment: &Experiment, place: Place<'_>) -> Markup {
    let about = |line: &&ClaimVerdict| {
        experiment.study.as_ref() == Some(&line.claim.study)
            && experiment.item.as_ref() == Some(&line.claim.item)
    };
    let lines: Vec<&ClaimVerdict> = record.claims.iter().filter(about).collect();
    let has_values = record.published.iter().any(|value| {
        experiment.study.as_ref() == Some(&value.study)
            && experiment.item.as_ref() == Some(&value.item)
    });
    let is_drawn = experiment.item.as_ref().is_some_and(|item| item.starts_with("fig"));
    html! {
        @if !lines.is_empty() {
            h3 { "Claims of " (lines[0].claim.study) " about its " (lines[0].claim.item) }
            div.wide.claims tabindex="0" role="group" aria-label="Claims of the study" { table { (groups(&lines, (record, experiment), place)) } }
        }
        @if is_drawn && !has_values {
            p.soft {
                "The study prints no values for this item, so the figures have no series of the study."
            }
        }
        (published(record, experiment))
    }
}

/// The verdicts, grouped by claim and interpretation.
fn groups(lines: &[&ClaimVerdict], about: (&Record, &Experiment), place: Place<'_>) -> Markup {
    let same = |a: &&ClaimVerdict, b: &&ClaimVerdict| a.claim == b.claim && a.reading == b.reading;
    html! {
        @for group in lines.chunk_by(same) {
            tbody {
                tr.claim {
                    th colspan="3" scope="rowgroup" {
                        (statement(&group[0].claim))
                        span { (claim_setting(group[0])) }
                    }
                }
                @for line in group {
                    tr {
                        td { (claim_targets(line)) }
                        td {
                            (chip(&line.verdict))
                            @let is_open = matches!(line.verdict, Verdict::Undecided(_));
                            @if line.is_by_construction && !is_open { " by construction" }
                        }
                        td { (said(&rests_on(line, about), place)) }
                    }
                }
            }
        }
    }
}

fn chip(verdict: &Verdict) -> Markup {
    html! {
        @match verdict {
            Verdict::Holds => span.chip.yes { "confirmed" },
            Verdict::Contradicted => span.chip.no { "contradicted" },
            Verdict::Undecided(_) => span.chip.open { "undecided" },
        }
    }
}

/// The numbers of a verdict with their trials: all trials of its targets in the experiment of the
/// claim.
fn rests_on(line: &ClaimVerdict, (record, experiment): (&Record, &Experiment)) -> Sentence {
    let numbers = claim_numbers(line);
    if line.numbers.is_empty() {
        return numbers.into();
    }
    let of = |cell: &&Cell| cell.experiment == experiment.id && line.targets.contains(&cell.target);
    let cells = record.cells.iter().filter(of);
    let trials: Vec<u64> = cells.flat_map(|cell| cell.trials.iter().copied()).collect();
    Sentence::default().number(numbers, &trials)
}

fn published(record: &Record, experiment: &Experiment) -> Markup {
    let values: Vec<_> = record
        .published
        .iter()
        .filter(|value| {
            experiment.study.as_ref() == Some(&value.study)
                && experiment.item.as_ref() == Some(&value.item)
        })
        .collect();
    let has_curves = values.iter().any(|value| value.point.within.is_some());
    html! {
        @if !values.is_empty() {
            details {
                summary { "Values printed in the study" }
                div.wide tabindex="0" role="group" aria-label="Values printed in the study" {
                    table {
                        thead { tr {
                            th { "subject" } th { (number::axis(&values[0].point.name)) }
                            @if has_curves { th { "curve" } }
                            th { "quantity" } th { "value" }
                        } }
                        tbody {
                            @for value in values {
                                tr {
                                    td { (value.subject) }
                                    td.n { (number::setting(value.point.value)) }
                                    @if has_curves {
                                        td {
                                            @if let Some(curve) = &value.point.within {
                                                (number::curve(curve))
                                            }
                                        }
                                    }
                                    td { (value.metric.replace('_', " ")) }
                                    @match &value.text {
                                        Some(text) => td { (text) },
                                        None => td.n { (number::setting(value.value)) },
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
