//! Tests of claims files, and of verdicts on runs with known results.

mod made;
mod bianco2010;
mod costa2017;
mod gelberger2013;
mod oflops2018;

use super::*;
use crate::finding::{self, Finding};
use record::{Cell, Drop, DropPlace, Flag, Metric, Point, Role, Trial, Verdict};
use stats::conclude::Estimate;

#[test]
fn rows_are_parsed_or_rejected_with_their_line() {
    const HEADER: &str = "study,item,place,subject,condition,claim,value,unit,relation\n";
    let read = |row: &str| parse(&format!("{HEADER}{row}"));
    let claims = read("s,fig2,section V,\"a, b\",\"\"\"c\"\"\",is,40,percent,about\r\n").unwrap();
    assert_eq!((claims[0].subject.as_str(), claims[0].condition.as_str()), ("a, b", "\"c\""));
    assert_eq!(read("a,b,c"), Err(ClaimsError::Fields { line: 2, have: 3 }));
    assert_eq!(read("\na,\"b"), Err(ClaimsError::OpenQuote { line: 3 }));
    let odd = ClaimsError::Relation { line: 2, have: "maybe".into() };
    assert_eq!(read("a,b,c,d,e,f,g,h,maybe"), Err(odd));
    assert_eq!(parse("a,b"), Err(ClaimsError::Header));
}

/// Returns the verdicts of an item's claims that contain `text`, by target names.
fn answers(record: &Record, item: &str, text: &str) -> Vec<(String, Verdict)> {
    let of = |line: &&ClaimVerdict| line.claim.item == item && line.claim.claim.contains(text);
    let answer = |line: &ClaimVerdict| (line.targets.join(" "), line.verdict.clone());
    record.claims.iter().filter(of).map(answer).collect()
}

fn answer_for(record: &Record, item: &str, text: &str, targets: &str) -> Verdict {
    let found = answers(record, item, text);
    let one = found.iter().find(|(names, _)| names == targets);
    one.unwrap_or_else(|| panic!("no line for {targets} in {found:?}")).1.clone()
}

fn cannot(verdict: &Verdict, words: &str) -> bool {
    matches!(verdict, Verdict::Undecided(why) if why.contains(words))
}

/// Returns the sample run with some trials changed and its results derived again.
fn changed(change: impl Fn(&mut Trial)) -> Record {
    let mut record = sample::record();
    record.trials.iter_mut().for_each(change);
    crate::finish(&mut record, &sample::claims());
    record
}

/// B8: claims about a model of a study's own switch hold by construction.
#[test]
fn claims_about_a_model_of_the_same_study_do_not_count() {
    let mut record = sample::record();
    let is_about = |line: &ClaimVerdict| line.targets.iter().any(|name| name == "switch");
    let before = record.claims.iter().filter(|line| is_about(line)).count();
    assert!(before > 0 && record.claims.iter().all(|line| !line.is_by_construction));
    let ours = record.targets.iter_mut().find(|target| target.name == "switch").unwrap();
    ours.settings.insert(MODEL_STUDIES.into(), "oflops2018".into());
    crate::finish(&mut record, &sample::claims());
    assert!(record.claims.iter().all(|line| !line.is_by_construction), "a model of another study");
    let ours = record.targets.iter_mut().find(|target| target.name == "switch").unwrap();
    ours.settings.insert(MODEL_STUDIES.into(), "oflops2018 bianco2010".into());
    crate::finish(&mut record, &sample::claims());
    assert!(record.claims.iter().all(|line| line.is_by_construction == is_about(line)));
    let Some(Finding::Claims([confirmed, contradicted, open, _])) = finding::claims(&record) else {
        panic!("the record has claims")
    };
    let counted = confirmed + contradicted + open;
    assert_eq!(counted + before, record.claims.len());
}

#[test]
fn wire_speed_is_evaluated_for_every_size_from_256_bytes() {
    let record = sample::record();
    let judged = |target| answer_for(&record, "fig2", "full wire speed", target);
    assert_eq!(judged("switch"), Verdict::Holds);
    // 415,000 frames/s at 64 bytes become 410,000 at 256, where the wire carries 452,899.
    assert_eq!(judged("linux-bridge"), Verdict::Contradicted);
    assert_eq!(answers(&record, "fig2", "full wire speed").len(), 6);

    let half = changed(|trial| {
        trial.frames_offered /= 2;
        trial.frames_forwarded = trial.frames_forwarded.min(trial.frames_offered);
    });
    let verdict = answer_for(&half, "fig2", "full wire speed", "switch");
    assert!(cannot(&verdict, "the tester offered 50 % of 1 Gbit/s"), "{verdict:?}");
}

#[test]
fn pairs_are_compared_within_a_family_and_by_interval() {
    let record = sample::record();
    let bridge = |targets| answer_for(&record, "fig2", "about", targets);
    // In the sample run, 415 against 690 thousand is lower by 40 %; ours is the faster one.
    assert_eq!(bridge("linux-bridge linux-router"), Verdict::Holds);
    assert_eq!(bridge("bridge router"), Verdict::Contradicted);
    let of_bridge = |line: &&ClaimVerdict| line.targets == ["bridge", "router"];
    let numbers = &record.claims.iter().find(of_bridge).unwrap().numbers;
    assert!(numbers.starts_with("higher by 11"), "{numbers}");
    let across = answers(&record, "fig2", "about");
    assert!(across.iter().all(|(names, _)| names != "linux-bridge router"));

    let easy = changed(|trial| {
        trial.frames_forwarded = trial.frames_offered;
        trial.flags.clear();
    });
    let verdict = answer_for(&easy, "fig2", "about", "linux-bridge linux-router");
    assert!(cannot(&verdict, "lost no frames"), "{verdict:?}");

    let once =
        changed(|trial| trial.role = if trial.repeat == 1 { Role::Measure } else { Role::WarmUp });
    let verdict = answer_for(&once, "fig2", "about", "linux-bridge linux-router");
    assert!(cannot(&verdict, "it was measured once"), "{verdict:?}");
}

#[test]
fn a_rate_that_falls_under_overload_is_detected() {
    let judged = |record: &Record| answer_for(record, "fig3", "does not fall", "ovs");
    assert_eq!(judged(&sample::record()), Verdict::Holds);
    let falling = changed(|trial| {
        if trial.target == "ovs" && trial.point.value > 75.0 {
            trial.frames_forwarded /= 2;
        }
    });
    assert_eq!(judged(&falling), Verdict::Contradicted);
    assert_eq!(answer_for(&falling, "fig3", "does not fall", "switch"), Verdict::Holds);
    let easy = changed(|trial| trial.frames_forwarded = trial.frames_offered);
    assert!(cannot(&judged(&easy), "no frames were lost"));
    let barely = changed(|trial| {
        if trial.experiment.ends_with("fig3") && trial.point.value < 100.0 {
            trial.frames_forwarded = trial.frames_offered;
        }
    });
    assert!(cannot(&judged(&barely), "at a load of 100 % alone"));
    let limited = changed(|trial| {
        trial.flags.push(Flag::TesterLimited);
        trial.drops.push(Drop {
            place: DropPlace::Tester,
            at: String::new(),
            reason: String::new(),
            frames: trial.frames_offered / 10,
        });
    });
    assert!(cannot(&judged(&limited), "tester"));
}

#[test]
fn latency_is_evaluated_only_without_loss() {
    let record = sample::record();
    let below = |target| answer_for(&record, "fig4", "slightly less", target);
    assert_eq!(below("switch"), Verdict::Holds);
    assert_eq!(below("linux-bridge"), Verdict::Contradicted);
    assert_eq!(answer_for(&record, "fig4", "similar", "switch bridge router"), Verdict::Holds);
    let lossy = changed(|trial| trial.frames_forwarded = trial.frames_offered / 2);
    let verdict = answer_for(&lossy, "fig4", "slightly less", "switch");
    assert!(cannot(&verdict, "less than 0.1 %"), "{verdict:?}");
}

/// A claim about ten places, at each of which the true value is the limit.
#[test]
fn a_claim_about_many_places_is_as_seldom_contradicted_by_chance_as_one_about_a_single_place() {
    use case::{every, is_within};
    use rand_core::{RngCore, SeedableRng};
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(5);
    // The sum of twelve even values is close to normal.
    let mut noise = || (0..12).map(|_| f64::from(random.next_u32()) / 2f64.powi(32)).sum::<f64>();
    let [mut alone, mut among] = [0, 0];
    let mut made = made::Made::of("bianco2010", "fig3");
    for _ in 0..1000 {
        made.record.cells.clear();
        for load in 0..10 {
            let samples: Vec<f64> = (0..5).map(|_| 100.0 + noise() - 6.0).collect();
            let point = Point::new("load_percent", f64::from(load));
            made.add_samples("switch", Metric::RatePpsForwarded, point, &samples);
        }
        let judge = |places: Option<usize>| {
            let inside = |cell: &Cell, all: usize| {
                let estimate = Estimate::of(cell).among(places.unwrap_or(all));
                is_within(&estimate, 100.0, f64::INFINITY)
            };
            usize::from(every(&made.record.cells, inside, "") == Verdict::Contradicted)
        };
        alone += judge(Some(1));
        among += judge(None);
    }
    assert!(alone > 20, "{alone} of 1000 by the interval of a single place");
    assert!(among <= 10, "{among} of 1000");
}

#[test]
fn a_place_that_does_not_hold_or_is_undecided_decides() {
    use case::every;
    let judge = |verdicts: &[Verdict]| every(verdicts, |verdict, _| verdict.clone(), "nothing");
    let open = || Verdict::Undecided("why".into());
    assert_eq!(judge(&[Verdict::Holds, open(), Verdict::Contradicted]), Verdict::Contradicted);
    assert_eq!(judge(&[open(), open()]), open());
    assert!(cannot(
        &judge(&[Verdict::Holds, open()]),
        "undecided at 1 of 2 points (at the first: why)"
    ));
    assert!(cannot(&judge(&[]), "nothing"));
    let by_chance =
        every(&[1, 2], |_, places| if places == 1 { Verdict::Contradicted } else { open() }, "");
    assert!(cannot(&by_chance, "may be chance"), "{by_chance:?}");
}

#[test]
fn an_item_that_was_not_run_has_no_line() {
    let mut record = sample::record();
    record.experiments.retain(|experiment| experiment.id == "bianco2010/fig3");
    let lines = judge(&record, &sample::claims());
    assert!(!lines.is_empty() && lines.iter().all(|line| line.claim.item == "fig3"));
    record.targets.retain(|target| target.technology == record::Technology::Cable);
    let lines = judge(&record, &sample::claims());
    assert!(cannot(&lines[0].verdict, "no target"), "{lines:?}");
}

#[test]
fn every_claim_has_a_rule_and_a_position_in_the_paper() {
    let claims = sample::claims();
    for claim in &claims {
        assert!(!claim.place.is_empty(), "{claim:?}");
        let made = made::Made::of(&claim.study, &claim.item);
        let lines = judge(&made.record, std::slice::from_ref(claim));
        let is_unread = lines.iter().any(|line| cannot(&line.verdict, "no rule reads"));
        assert!(!is_unread, "{claim:?}");
        let holds = lines.iter().any(|line| !matches!(line.verdict, Verdict::Undecided(_)));
        assert!(!holds, "{claim:?} is decided without a measurement");
    }
    let mut unique: Vec<_> = claims
        .iter()
        .map(|it| (&it.study, &it.item, &it.subject, &it.condition, &it.claim))
        .collect();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), claims.len());
}
