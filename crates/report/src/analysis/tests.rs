//! Tests of cells, ratios and warnings of the sample run, with values calculated separately.

use super::*;
use crate::finish;
use record::{
    Answer, Bound, BoundCause, BoundSide, Disturbance, DisturbanceCause, Drop, Experiment,
    IntervalMethod, Limit, PollingWork, gathered,
};

fn changed(change: impl FnMut(&mut Trial)) -> Record {
    let mut record = sample::record();
    record.trials.iter_mut().for_each(change);
    finish(&mut record, &[]);
    record
}

fn cell_at<'a>(record: &'a Record, target: &'a str, metric: Metric, x: f64) -> &'a Cell {
    let mut cells = record.cells_of("bianco2010/fig2", target, metric);
    cells.find(|cell| cell.point.value == x).unwrap()
}

#[test]
fn deriving_twice_changes_nothing() {
    let once = sample::record();
    let mut twice = once.clone();
    finish(&mut twice, &sample::claims());
    assert_eq!(once, twice);
}

#[test]
fn intervals_stay_within_the_possible_range() {
    let [least, most] = [[0.0, 0.1, 0.3], [0.7, 0.9, 1.0]];
    let of = |samples| interval_of(Metric::LossRatio, samples, 95.0).unwrap();
    assert!(of(&least).low == 0.0 && of(&least).high < 0.6, "{:?}", of(&least));
    assert!(of(&most).high == 1.0 && of(&most).low > 0.4, "{:?}", of(&most));
    assert!(interval_of(Metric::RatePpsForwarded, &most, 95.0).unwrap().high > 1.2);
}

#[test]
fn a_rate_is_the_mean_of_its_repeats_over_the_longer_time() {
    let mut rates = [100_000u64, 110_000, 120_000].into_iter().cycle();
    let record = changed(|trial| {
        if trial.experiment == "bianco2010/fig2"
            && trial.target == "switch"
            && trial.point.value == 64.0
        {
            trial.frames_forwarded = rates.next().unwrap();
            // Half a second of drain must not raise the rate.
            trial.duration_ns_receiving = Some(trial.duration_ns_effective * 3 / 2);
        }
    });
    let cell = cell_at(&record, "switch", Metric::RatePpsForwarded, 64.0);
    let wanted = 110_000.0 / 1.5;
    assert!((cell.value - wanted).abs() < 1e-6 && cell.n == 3);
    assert_eq!((cell.repeats.as_slice(), cell.trials.len()), (&[1, 2, 3][..], 3));
    let interval = cell.interval.unwrap();
    let half = 4.302_652_73 * (10_000.0 / 1.5) / 3f64.sqrt();
    assert!((interval.high - wanted - half).abs() < 1e-3);
    assert_eq!(interval.method, IntervalMethod::StudentT);
}

#[test]
fn percentiles_of_repeats_are_never_averaged() {
    let mut tails = [10_000u64, 11_000, 90_000].into_iter().cycle();
    let record = changed(|trial| {
        if trial.target == "switch" {
            trial.latency.as_mut().unwrap().ns_p99 = tails.next();
        }
    });
    let cell = cell_at(&record, "switch", Metric::LatencyNsP99, 64.0);
    let interval = cell.interval.unwrap();
    assert_eq!(cell.samples.len(), 3);
    assert!(cell.samples.contains(&cell.value), "a median of three is one of them");
    assert_eq!((interval.method, interval.level_percent), (IntervalMethod::OrderStatistics, 75.0));
}

#[test]
fn warm_up_search_and_interrupted_trials_give_no_result() {
    let before = sample::record().cells.len();
    for change in [
        (|trial: &mut Trial| trial.role = Role::WarmUp) as fn(&mut Trial),
        |trial| trial.role = Role::Search,
        |trial| trial.flags.push(Flag::Interrupted),
        |trial| trial.flags.push(Flag::Retried),
    ] {
        assert!(changed(change).cells.is_empty());
    }
    let once = changed(|trial| {
        if trial.repeat > 1 {
            trial.role = Role::WarmUp;
        }
    });
    assert_eq!(once.cells.len(), before);
    assert!(once.cells.iter().all(|cell| cell.interval.is_none()));
    let few = Warning::FewSamples { n: 1, wanted: REPEATS_WANTED };
    assert!(once.cells.iter().all(|cell| cell.warnings.contains(&few)));
}

#[test]
fn a_tester_limit_counts_only_if_the_target_carried_the_load() {
    let limited = |record: &Record, target| {
        let cell = cell_at(record, target, Metric::RatePpsForwarded, 64.0);
        cell.warnings.iter().any(Warning::makes_doubtful)
    };
    // The offered load at 64 bytes is too low, but every target lost frames and so shows its own
    // limit.
    let record = sample::record();
    assert!(record.trials[0].flags.contains(&Flag::TesterLimited));
    assert!(!limited(&record, "switch") && !record.is_doubtful());
    let easy = changed(|trial| trial.frames_forwarded = trial.frames_offered);
    assert!(limited(&easy, "switch") && easy.is_doubtful());
    let deaf = changed(|trial| {
        trial.drops = vec![Drop {
            place: DropPlace::Tester,
            at: "port 2".into(),
            reason: "receive ring full".into(),
            frames: trial.frames_offered / 4,
        }];
    });
    assert!(limited(&deaf, "switch"));
}

#[test]
fn a_maximum_limited_by_the_tester_is_reported() {
    let reported = |frames_lost: u64| {
        let record = changed(|trial| {
            if trial.experiment == "bianco2010/fig2"
                && trial.target == "switch"
                && trial.repeat == 1
            {
                trial.role = Role::Maximum;
                trial.frames_forwarded =
                    trial.frames_offered - frames_lost.min(trial.frames_offered);
            }
        });
        let about = "bianco2010/fig2 on switch, its maximum";
        record.warnings.iter().any(|it| it.about == about && it.warning.makes_doubtful())
    };
    assert!(reported(0), "all offered frames were forwarded");
    assert!(!reported(u64::MAX));
}

#[test]
fn missing_frames_of_one_trial_are_not_made_up_for_by_another() {
    let frames = |unexplained: [i64; 3]| {
        let record = changed(|trial| {
            let is_it = trial.experiment == "bianco2010/fig2" && trial.point.value == 64.0;
            let frames = unexplained[trial.repeat as usize - 1];
            trial.frames_unexplained = if is_it { frames } else { 0 };
        });
        let cell = cell_at(&record, "switch", Metric::RatePpsForwarded, 64.0);
        cell.warnings.iter().find_map(|warning| match warning {
            Warning::UnexplainedFrames { frames } => Some(*frames),
            _ => None,
        })
    };
    assert_eq!(frames([2, -2, 0]), Some(2));
    assert_eq!((frames([-1, -2, 0]), frames([0; 3])), (Some(-3), None));
}

/// The forwarding rate of changed trials, as a method reads it from them and as the trials' own.
fn read_as(metric: Metric, change: impl Fn(&mut Trial)) -> [Cell; 2] {
    let mut record = sample::record();
    for trial in record.trials.iter_mut().filter(|it| it.experiment == "bianco2010/fig2") {
        change(trial);
        let is_limited = trial.flags.contains(&Flag::TesterLimited);
        record.outcomes.push(Outcome {
            experiment: trial.experiment.clone(),
            target: trial.target.clone(),
            link: None,
            repeat: trial.repeat,
            point: trial.point.clone(),
            metric,
            value: trial.rate_pps_forwarded().unwrap(),
            resolution: None,
            bound: None,
            trials: vec![trial.id],
            flags: is_limited.then_some(Flag::TesterLimited).into_iter().collect(),
            goal: None,
        });
    }
    finish(&mut record, &[]);
    [metric, Metric::RatePpsForwarded].map(|it| cell_at(&record, "switch", it, 64.0).clone())
}

#[test]
fn values_of_one_trial_are_bounded_and_disturbed_as_its_own_rate_is() {
    let metric = gelberger2013::named("bridge_rate_pps");
    let quality = |share_forwarded: f64, stalled: Option<u32>| {
        let cells = read_as(metric, |trial| {
            trial.flags = vec![Flag::TesterLimited];
            trial.flags.extend(stalled.filter(|it| *it == trial.repeat).map(|_| Flag::Stall));
            trial.frames_forwarded = (trial.frames_offered as f64 * share_forwarded) as u64;
        });
        cells.map(|cell| (cell.bound.is_some(), cell.disturbances))
    };
    let disturbed = Disturbance { cause: DisturbanceCause::Descheduled, repeats: vec![2] };
    assert_eq!(quality(1.0, None), [(true, vec![]), (true, vec![])]);
    assert_eq!(quality(0.5, Some(2)), [(false, vec![disturbed.clone()]), (false, vec![disturbed])]);
    assert_eq!(quality(0.5, None), [(false, vec![]), (false, vec![])], "the target lost half");
    let filled = |trial: &mut Trial| {
        trial.flags.clear();
        trial.frames_offered = trial.frames_intended;
        trial.frames_forwarded = trial.frames_intended;
    };
    let cause = BoundCause::LinkLimit;
    assert_eq!(
        read_as(metric, filled).map(|cell| cell.bound),
        [Some(Bound { side: BoundSide::Lower, cause }); 2]
    );
}

#[test]
fn a_percentile_of_a_short_trial_is_not_a_missing_repeat() {
    let mut first = true;
    let record = changed(|trial| {
        let latency = trial.latency.as_mut().unwrap();
        latency.ns_p9999 = std::mem::take(&mut first).then_some(latency.ns_max);
    });
    assert!(record.cells.iter().any(|cell| cell.metric == Metric::LatencyNsP9999 && cell.n == 1));
    let is_few = |notice: &WarningEntry| matches!(notice.warning, Warning::FewSamples { .. });
    assert!(!record.warnings.iter().any(is_few));
}

#[test]
fn similar_notices_about_one_experiment_are_merged() {
    let notice = |about: &str, warning| WarningEntry { about: about.into(), warning };
    let limited = |rate_pps_intended, rate_pps_offered| Warning::TesterLimited {
        rate_pps_intended,
        rate_pps_offered,
    };
    let unexplained = |frames| Warning::UnexplainedFrames { frames };
    let shown = gathered(&[
        notice("run", Warning::UserSpaceStamps),
        notice("a/fig1 on switch", Warning::Stall { trials: 2 }),
        notice("a/fig1 on switch", limited(100.0, 90.0)),
        notice("a/fig1 on ovs", Warning::Stall { trials: 3 }),
        notice("a/fig1 on ovs", limited(200.0, 50.0)),
        notice("a/fig2 on ovs", Warning::Stall { trials: 1 }),
        notice("a/fig2 on ovs", unexplained(4)),
        notice("a/fig2 on switch", unexplained(-4)),
        notice("a/fig3 on ovs", Warning::Stall { trials: 1 }),
        notice("b/fig3 on ovs", Warning::Stall { trials: 1 }),
    ]);
    let wanted = [
        notice("run", Warning::UserSpaceStamps),
        notice("a/fig1 on switch, ovs", Warning::Stall { trials: 5 }),
        notice("a/fig1 on switch, ovs", limited(200.0, 50.0)),
        notice("a/fig2, fig3 on ovs", Warning::Stall { trials: 1 }),
        notice("a/fig2 on ovs", unexplained(4)),
        notice("a/fig2 on switch", unexplained(-4)),
        notice("b/fig3 on ovs", Warning::Stall { trials: 1 }),
    ];
    assert_eq!(shown, wanted);
}

#[test]
fn ratios_refer_to_the_first_target_and_are_paired() {
    let record = sample::record();
    let ratio = |target: &str, metric| {
        let mut found = record.ratios.iter().filter(|ratio| {
            ratio.experiment == "bianco2010/fig2"
                && ratio.target == target
                && ratio.metric == metric
        });
        found.next().unwrap().clone()
    };
    let bridge = ratio("bridge", Metric::RatePpsForwarded);
    assert_eq!((bridge.base.as_str(), bridge.n, bridge.answer), ("switch", 3, Answer::Higher));
    assert!((bridge.ratio - 1_120.0 / 905.0).abs() < 0.02);
    assert_eq!(ratio("linux-bridge", Metric::RatePpsForwarded).answer, Answer::Lower);
    assert!(record.ratios.iter().all(|ratio| ratio.target != "switch"));
    // A pair needs both trials: without the first round, two pairs remain.
    let lost = changed(|trial| {
        if trial.repeat == 1 && trial.target == "switch" {
            trial.role = Role::WarmUp;
        }
    });
    assert!(lost.ratios.iter().all(|ratio| ratio.n == 2));
}

#[test]
fn an_experiment_can_use_the_trials_of_another() {
    let mut record = sample::record();
    record.trials.retain(|trial| trial.experiment != "bianco2010/fig4");
    let shared = |experiment: &mut Experiment| {
        if experiment.id == "bianco2010/fig4" {
            experiment.shares_trials_with = Some("bianco2010/fig3".into());
        }
    };
    record.experiments.iter_mut().for_each(shared);
    finish(&mut record, &[]);
    let cells = |id| record.cells.iter().filter(|cell| cell.experiment == id).count();
    assert!(cells("bianco2010/fig4") > 0);
    assert_eq!(cells("bianco2010/fig4"), cells("bianco2010/fig3"));
}

#[test]
fn warnings_name_their_subject() {
    let mut record = sample::record();
    let about = |record: &Record, wanted: &str| -> Vec<Warning> {
        let here = record.warnings.iter().filter(|notice| notice.about == wanted);
        here.map(|notice| notice.warning.clone()).collect()
    };
    assert_eq!(
        about(&record, "bianco2010/fig2 on bridge"),
        [Warning::UnexplainedFrames { frames: 3 }]
    );
    record.partial = true;
    record.trials_planned = Some(500);
    record.environment.virtualised = None;
    record.environment.cpu_cores = Some(8);
    record.environment.cpu_governor = Some("powersave".into());
    finish(&mut record, &[]);
    assert_eq!(
        about(&record, "run"),
        [
            Warning::Partial { trials: 414, planned: Some(500) },
            Warning::FrequencyScaling { governor: "powersave".into() }
        ]
    );
}

#[test]
fn the_limit_of_a_rate_is_classified() {
    let limit_in =
        |record: &Record| cell_at(record, "switch", Metric::RatePpsForwarded, 64.0).limit;
    let limit = |change: fn(&mut Trial)| limit_in(&changed(change));
    assert_eq!(limit(|_| {}), Some(Limit::Target));
    let carried: fn(&mut Trial) = |trial| {
        trial.frames_offered = trial.frames_intended;
        trial.frames_forwarded = trial.frames_offered;
        trial.flags.clear();
    };
    assert_eq!(limit(carried), Some(Limit::Load));
    let taken: fn(&mut Trial) = |trial| {
        trial.frames_offered = trial.frames_intended / 2;
        trial.frames_forwarded = trial.frames_offered;
        trial.flags.clear();
    };
    assert_eq!(limit(taken), Some(Limit::Target), "the target accepts frames only at its own rate");
    assert_eq!(limit(|trial| trial.frames_forwarded = trial.frames_offered), Some(Limit::Tester));
    let kept_waiting: fn(&mut Trial) = |trial| {
        trial.drops.iter_mut().for_each(|it| it.reason = RING_TO_TESTER_FULL.into());
    };
    assert_eq!(limit(kept_waiting), Some(Limit::Tester));
    let work =
        |cycles_busy| Some(PollingWork { cycles_busy, cycles_idle: 1000 - cycles_busy, frames: 1 });
    let sending = |trial: &mut Trial| (trial.duration_ns_warmup, trial.duration_ns_drain) = (0, 0);
    let busy = changed(|trial| {
        sending(trial);
        trial.work = work(900);
    });
    assert_eq!(limit_in(&busy), Some(Limit::Target));
    let idle = changed(|trial| {
        sending(trial);
        trial.work = work(700);
    });
    assert_eq!(limit_in(&idle), Some(Limit::Tester), "the target polled without frames");
    let mut record = changed(|trial| {
        if trial.target == "bridge" {
            trial.target = "testpmd".into();
        }
    });
    let bridge = record.targets.iter_mut().find(|target| target.name == "bridge").unwrap();
    bridge.name = "testpmd".into();
    finish(&mut record, &[]);
    let limit = |target| cell_at(&record, target, Metric::RatePpsForwarded, 64.0).limit;
    assert_eq!([limit("testpmd"), limit("switch")], [Some(Limit::Wire), Some(Limit::Target)]);
    let none = cell_at(&record, "switch", Metric::LossRatio, 64.0).limit;
    assert_eq!(none, None);
}

#[test]
fn cold_cache_trials_are_marked_and_excluded_from_ratios() {
    let record = changed(|trial| {
        if trial.target == "ovs" && trial.repeat == 2 {
            trial.flags.push(Flag::ColdCaches);
            trial.frames_forwarded /= 2;
        }
    });
    let cell = cell_at(&record, "ovs", Metric::RatePpsForwarded, 64.0);
    assert!(cell.warnings.contains(&Warning::ColdCaches { trials: 1 }), "{:?}", cell.warnings);
    assert!(record.is_doubtful());
    let ratio = |record: &Record| {
        let is_it = |ratio: &&Ratio| {
            ratio.target == "ovs"
                && ratio.metric == Metric::RatePpsForwarded
                && ratio.point.value == 64.0
        };
        record.ratios.iter().find(is_it).unwrap().clone()
    };
    let (before, after) = (ratio(&sample::record()), ratio(&record));
    assert_eq!((before.n, after.n), (3, 2));
    assert!((before.ratio / after.ratio - 1.0).abs() < 0.02, "{before:?} {after:?}");
}

#[test]
fn a_disturbed_repeat_does_not_widen_the_resolution() {
    let metric = gelberger2013::named("activation_ns_p50");
    let measured = |disturbed: &[u32]| {
        let mut record = sample::record();
        record.outcomes.clear();
        for trial in record.trials.iter_mut().filter(|it| it.experiment == "bianco2010/fig2") {
            if disturbed.contains(&trial.repeat) {
                trial.flags.push(Flag::Irregular);
            }
            record.outcomes.push(Outcome {
                experiment: trial.experiment.clone(),
                target: trial.target.clone(),
                link: None,
                repeat: trial.repeat,
                point: trial.point.clone(),
                metric,
                value: 5e6,
                // The second repeat resolves least.
                resolution: Some(if trial.repeat == 2 { 9e6 } else { 1e5 }),
                bound: None,
                trials: vec![trial.id],
                flags: Vec::new(),
                goal: None,
            });
        }
        finish(&mut record, &[]);
        let cell = cell_at(&record, "switch", metric, 64.0);
        (cell.resolution, cell.bound.is_some())
    };
    assert_eq!(measured(&[]), (Some(9e6), true));
    assert_eq!(measured(&[2]), (Some(1e5), false));
    assert_eq!(measured(&[1, 2, 3]), (Some(9e6), true), "every repeat is disturbed");
}

#[test]
fn cycles_per_frame_use_the_frames_of_the_trial() {
    let record = changed(|trial| {
        let work = PollingWork { cycles_busy: 900, cycles_idle: 50, frames: 3 };
        trial.work = (trial.target == "switch").then_some(work);
    });
    assert_eq!(cell_at(&record, "switch", Metric::CyclesBusyPerFrame, 64.0).value, 300.0);
    assert!(
        record
            .cells
            .iter()
            .all(|cell| { cell.target == "switch" || cell.metric != Metric::CyclesBusyPerFrame })
    );
}
