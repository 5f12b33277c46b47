//! By hardware or by software: what is said of targets of which that is known.

use planimeter::target::name::TargetKind;
use results::record::{Record, Verdict};
use results::table::{Way, sheets, ways};

use super::super::common::Folder;
use super::super::{measure, plan};

/// The study's switches, and what it says of their matches: of all, and of exact ones.
const NINE: [(&str, Way, Way); 9] = [
    ("extreme-x460", Way::Hardware, Way::Hardware),
    ("extreme-x440", Way::Hardware, Way::Hardware),
    ("netfpga-openflow", Way::Hardware, Way::Hardware),
    ("datacom-dm4001", Way::Hardware, Way::Hardware),
    ("pica8-p3297", Way::Hardware, Way::Hardware),
    ("mikrotik-ar9344", Way::Hardware, Way::Hardware),
    ("ovs-2.3", Way::Software, Way::Software),
    ("hp-2920", Way::Software, Way::Hardware),
    ("linksys-wrt54gl", Way::Software, Way::Software),
];

fn known(name: &str) -> TargetKind {
    format!("ours:model={name}").parse().unwrap()
}

/// Whether every type goes the way that it is known to go.
fn is_right(record: &Record, kind: TargetKind, (others, exact): (Way, Way)) -> bool {
    let target = record.targets.iter().find(|it| it.name == kind.name()).unwrap();
    let judged = ways(record, target);
    let wanted = |word: &str| if word == "exact" { exact } else { others };
    judged.len() > 1 && judged.iter().all(|it| it.way == wanted(it.word))
}

#[test]
fn the_way_of_every_match_is_told_of_the_nine_switches() {
    let kinds: Vec<TargetKind> = NINE.iter().map(|(name, ..)| known(name)).collect();
    let set = ["packets=100", "open_pps=0", "match_types=port,mac,ip,udp_port,exact", "repeats=2"];
    let items = ["costa2017/table3", "costa2017/discussion"];
    let record = measure(&plan(&items, &kinds, &set, 1));
    for ((name, others, exact), kind) in NINE.into_iter().zip(kinds) {
        assert!(is_right(&record, kind, (others, exact)), "{name}");
    }
    let titles: Vec<_> =
        sheets(&record, &record.experiments[1]).iter().map(|sheet| sheet.title).collect();
    let wanted =
        ["Where does your switch stand?", "By hardware or by software?", "What it really has"];
    assert_eq!(titles, wanted);
}

/// A number from a small generator of its own, from one to another.
fn drawn(state: &mut u64, from: f64, to: f64) -> f64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    from + (to - from) * ((*state >> 33) as f64 / f64::from(1u32 << 31))
}

/// One of the nine with other delays: those of hardware are calm, those of software waver.
fn perturbed(folder: &Folder, number: u64) -> (TargetKind, (Way, Way)) {
    let state = &mut number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (_, others, exact) = NINE[(number % 9) as usize];
    let base = [
        12_500.0, 15_500.0, 49_500.0, 49_750.0, 49_250.0, 76_000.0, 203_000.0, 504_000.0, 467_000.0,
    ];
    let latency = base[(number % 9) as usize] * drawn(state, 0.7, 1.4);
    let path = |way: Way, latency: f64, state: &mut u64, name: &str| {
        let jitter = match way {
            Way::Hardware => drawn(state, 0.0, 0.1),
            Way::Software => drawn(state, 0.1, 0.5),
        };
        let slow = match way {
            Way::Hardware => (0.0, 0.0),
            Way::Software => (drawn(state, 2.0, 10.0), drawn(state, 0.3, 2.0)),
        };
        format!(
            "[path_{name}]\n\
             latency_ns = {{ value = {:.0}, source = \"assumed\" }}\n\
             jitter_ns = {{ value = {:.0}, source = \"assumed\" }}\n\
             slow_percent = {{ value = {:.0}, source = \"assumed\" }}\n\
             slow_ns = {{ value = {:.0}, source = \"assumed\" }}\n",
            latency,
            latency * jitter,
            slow.0,
            latency * slow.1
        )
    };
    let mut keys = String::new();
    if others == exact {
        keys += &path(exact, latency, state, "hardware");
    } else {
        keys += "[tiers]\nin_hardware = { value = \"exact\", source = \"assumed\" }\n";
        let faster = latency * drawn(state, 0.6, 0.8);
        keys += &path(Way::Hardware, faster, state, "hardware");
        keys += &path(Way::Software, latency, state, "software");
    }
    (super::super::models::modelled(folder, &keys), (others, exact))
}

#[test]
fn of_switches_with_other_delays_nine_in_ten_are_told_right() {
    let cases = std::env::var("PATH_CASES").map_or(18, |text| text.parse().unwrap());
    let folders: Vec<Folder> = (0..cases).map(|_| Folder::new()).collect();
    let truths: Vec<_> =
        (1000..).zip(&folders).map(|(number, folder)| perturbed(folder, number)).collect();
    let set = ["packets=1000", "open_pps=0", "match_types=port,exact", "repeats=2", "wait=0.02"];
    let all: Vec<TargetKind> = truths.iter().map(|(kind, _)| *kind).collect();
    let record = measure(&plan(&["costa2017/discussion"], &all, &set, 1));
    let wrong: Vec<_> =
        truths.iter().filter(|(kind, truth)| !is_right(&record, *kind, *truth)).collect();
    assert!(10 * wrong.len() <= truths.len(), "{wrong:?}");
}

#[test]
fn claims_are_put_to_the_models_of_their_switches() {
    let kinds = ["hp-2920", "hp-2920,mode=legacy", "extreme-x460"].map(known);
    let set = ["packets=100", "open_pps=0", "wait=0.02", "repeats=3", "rewrites=published"];
    let items = [
        "costa2017/table3",
        "costa2017/fig2",
        "costa2017/fig3",
        "costa2017/fig5",
        "costa2017/fig6",
    ];
    let items = [&items[..], &["costa2017/table6"]].concat();
    let record = measure(&plan(&items, &kinds, &set, 1));
    let told = |item: &str, target: &str| {
        let name = format!("ours:model={target}");
        let of = |line: &&results::record::ClaimVerdict| {
            line.claim.item == item && line.targets.contains(&name)
        };
        let found: Vec<_> = record.claims.iter().filter(of).map(|line| &line.verdict).collect();
        assert!(!found.is_empty(), "no claim of {item} is put to {target}");
        found.contains(&&Verdict::Holds)
    };
    for (item, target) in [
        ("table3", "hp-2920"),
        ("table3", "extreme-x460"),
        ("fig2", "extreme-x460"),
        ("fig3", "hp-2920"),
        ("fig5", "extreme-x460"),
        ("fig6", "hp-2920"),
        ("table6", "hp-2920"),
    ] {
        assert!(told(item, target), "{item} on {target}: {:?}", record.claims);
    }
}
