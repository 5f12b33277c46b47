//! Tests of the decision between hardware and software path, on targets whose path is known.

use record::{Record, Verdict};
use report::table::{Judged, Way, ways};
use targets::name::TargetKind;

use super::super::common::Folder;
use super::super::{claims_with_rates, measure, plan};
use super::drawn::{Drawn, FRESH, Layout, Sign, draw, with};

/// The study's switches, and their known paths: of all matches, and of exact ones.
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
    format!("switch:model={name}").parse().unwrap()
}

/// The items that decide the path, except the delays by type of match.
const ITEMS: [&str; 4] =
    ["costa2017/table3", "costa2017/table5", "costa2017/table6", "costa2017/discussion"];

fn judged(record: &Record, kind: TargetKind) -> Vec<Judged> {
    let target = record.targets.iter().find(|it| it.name == kind.name()).unwrap();
    ways(record, target)
}

#[test]
fn the_path_of_every_match_is_decided_for_the_nine_switches() {
    let kinds: Vec<TargetKind> = NINE.iter().map(|(name, ..)| known(name)).collect();
    let types = "match_types=port,mac,ip,udp_port,exact";
    // More than the HP's hardware holds, so that the last rule is not in hardware.
    let filling = ["rules_bound=2500", "wildcard_entries_max=5000", "rewrites=published"];
    let set = [&["packets=100", "open_pps=0", types, "repeats=2"], &filling[..]].concat();
    let few = measure(&plan(&["costa2017/table3", "costa2017/discussion"], &kinds, &set[..4], 1));
    let all = measure(&plan(&ITEMS, &kinds, &set, 1));
    for record in [&few, &all] {
        for ((name, others, exact), kind) in NINE.into_iter().zip(&kinds) {
            let judged = judged(record, *kind);
            assert_eq!(judged.len(), 5, "{name}");
            for it in &judged {
                let wanted = if it.word == "exact" { exact } else { others };
                assert_eq!(it.way, wanted, "{name}: {it:?}");
            }
        }
    }
    let sheets = report::table::sheets(&few, few.experiments.last().unwrap());
    let titles: Vec<_> = sheets.iter().map(|sheet| sheet.title).collect();
    let wanted =
        ["Rank among the study's switches", "Hardware or software path", "Supported features"];
    assert_eq!(titles, wanted);
    let spoken = judged(&all, known("hp-2920")).pop().unwrap().evidence.join("; ");
    assert!(spoken.contains("some did not fit"), "{spoken}");
}

/// Runs all measurements that decide the path, on all of these switches.
fn examined(drawn: &[Drawn]) -> Record {
    let mut kinds: Vec<TargetKind> = drawn.iter().map(|it| it.kind).collect();
    for it in drawn.iter().filter(|it| it.signs.contains(&Sign::Legacy)) {
        kinds.push(format!("{},mode=legacy", it.kind.name()).parse().unwrap());
    }
    let types = "match_types=port,mac,ip,udp_port,exact";
    // With fewer packets there is no 99th percentile. With fewer repeats its interval may contain
    // the limit, and the path is undecided.
    let set = ["packets=1000", "open_pps=0", types, "repeats=5", "wait=0.05"];
    let filling = ["rules_bound=400", "wildcard_entries_max=5000", "rewrites=published"];
    measure(&plan(&ITEMS, &kinds, &[&set[..], &filling].concat(), 1))
}

/// Returns the types of a switch whose decision differs from its true path.
fn wrong(record: &Record, drawn: &Drawn) -> Vec<Judged> {
    let judged = judged(record, drawn.kind);
    assert_eq!(judged.len(), 5, "every type was measured");
    judged.into_iter().filter(|it| it.way != drawn.layout.way(it.word)).collect()
}

#[test]
fn nine_of_ten_unknown_switches_are_classified_correctly() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let cases = number("PATH_CASES").unwrap_or(12);
    let first = number("PATH_FIRST").unwrap_or(FRESH);
    let seeds = first..first + cases;
    let (mut faults, mut right) = (Vec::new(), 0);
    // In chunks, because a record of all switches is long.
    for some in seeds.clone().collect::<Vec<_>>().chunks(20) {
        let folders: Vec<Folder> = some.iter().map(|_| Folder::new()).collect();
        let drawn: Vec<Drawn> =
            some.iter().zip(&folders).map(|(seed, folder)| draw(folder, *seed)).collect();
        let record = examined(&drawn);
        for (seed, drawn) in some.iter().zip(&drawn) {
            let wrong = wrong(&record, drawn);
            right += u64::from(wrong.is_empty());
            let reported = || format!("{seed} {:?} {:?}: {wrong:?}", drawn.layout, drawn.signs);
            faults.extend((!wrong.is_empty()).then(reported));
        }
    }
    println!("draws {seeds:?}: {right} of {cases} correct\n{}", faults.join("\n"));
    assert!(cases > 0 && 10 * right >= 9 * cases, "{right} of {cases}:\n{}", faults.join("\n"));
}

#[test]
fn one_sign_alone_is_sufficient_and_named() {
    let cases = [
        (Sign::Slow, "one way"),
        (Sign::Tail, "99th percentile"),
        (Sign::Wavering, "99th percentile"),
        (Sign::Rewrites, "with a rewrite"),
        (Sign::Entries, "with a full table"),
        (Sign::Legacy, "without OpenFlow"),
    ];
    let folders: Vec<Folder> = (0..=cases.len()).map(|_| Folder::new()).collect();
    let mut drawn: Vec<Drawn> = (FRESH..)
        .zip(cases.iter().zip(&folders))
        .map(|(seed, ((sign, _), folder))| with(folder, seed, Layout::Software, &[*sign]))
        .collect();
    drawn.push(with(&folders[cases.len()], FRESH, Layout::Hardware, &[]));
    let record = examined(&drawn);
    for ((sign, words), drawn) in cases.into_iter().zip(&drawn) {
        assert!(wrong(&record, drawn).is_empty(), "{sign:?}");
        for it in judged(&record, drawn.kind) {
            let is_named = |other: &&str| it.evidence.iter().any(|text| text.contains(*other));
            assert!(is_named(&words), "{sign:?}: {it:?}");
            let others = cases.iter().map(|(_, other)| other).filter(|other| **other != words);
            assert_eq!(others.filter(|other| is_named(other)).count(), 0, "{sign:?}: {it:?}");
        }
    }
    assert!(wrong(&record, drawn.last().unwrap()).is_empty(), "hardware");
}

#[test]
fn claims_are_evaluated_for_the_models_of_their_switches() {
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
    let claims = claims_with_rates(&record);
    let fast = record.claims.iter().find(|line| line.claim.item == "fig2").unwrap();
    assert!(
        matches!(fast.verdict, Verdict::Undecided(_)),
        "simulated time decides no delay: {fast:?}"
    );
    let reported = |item: &str, target: &str| {
        let name = format!("switch:model={target}");
        let of =
            |line: &&record::ClaimVerdict| line.claim.item == item && line.targets.contains(&name);
        let found: Vec<_> = claims.iter().filter(of).map(|line| &line.verdict).collect();
        assert!(!found.is_empty(), "no claim of {item} is evaluated for {target}");
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
        assert!(reported(item, target), "{item} on {target}: {claims:?}");
    }
}
