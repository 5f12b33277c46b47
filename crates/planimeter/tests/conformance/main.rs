//! Conformance tests: requirements of the OpenFlow specifications, case by case.
//!
//! They run on our switch in virtual time, with and without a model of zero cost, and on our switch
//! as a process over veth, with and without the fast path in the kernel. Open vSwitch is a second
//! implementation. Cases are text (`cases/*.case`, and those that `generate` makes from the table
//! of fields). `clauses/*.txt` lists the clauses that they cover; `differences.txt` explains where
//! Open vSwitch behaves differently.
//!
//! Arguments that are not options select cases by a part of their name. `--sim` omits tests that
//! need a kernel. `UPDATE=1` rewrites `docs/openflow-conformance.md`.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may panic at any place")]

mod act;
mod ask;
mod bytes;
mod case;
mod clauses;
mod connection;
mod differences;
mod features;
mod frame;
mod generate;
mod judge;
mod language;
#[path = "../common/one_by_one.rs"]
mod one_by_one;
mod orders;
mod player;
mod report;
mod subject;
mod words;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use case::Case;
use differences::Differences;
use one_by_one::must_not_skip;
use openflow::version::Version;
use report::Answers;
use subject::{FAST_PATH, Live, Simulated, Subject};
use testbed::requirement::{self, Requirement};
use testbed::topology::Lab;

/// Limit of failures that are printed in full.
const SHOWN_MAX: usize = 40;

fn main() -> ExitCode {
    // While there is one thread only: without root, this process becomes root in a namespace.
    let entered = testbed::namespace::enter_rootless();
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    let cases = all_cases(&folder);
    let clauses = clauses::read(&folder.join("clauses"), &cases);
    let differences = Differences::read(&folder.join("differences.txt"), &cases);
    let is_wanted =
        |case: &&Case| wanted.is_empty() || wanted.iter().any(|part| case.name.contains(part));
    let chosen: Vec<&Case> = cases.iter().filter(is_wanted).collect();
    let mut run = Run { answers: Answers::default(), failed: 0, shown: 0 };

    let every = |case: &Case| case.versions.clone();
    run.all("sim", &chosen, every, &mut || Ok(Box::new(Simulated::new())));
    let mut modelled = || Ok(Box::new(Simulated::like(Some("honest"))) as Box<dyn Subject>);
    run.all("sim:model=honest", &chosen, every, &mut modelled);
    if std::env::args().any(|word| word == "--sim") {
        return if run.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    match entered.map(drop).and_then(|()| live_needs()) {
        Err(need) if must_not_skip() => {
            println!("FAILED: the live part may not be skipped, but {need}");
            run.failed += 1;
        }
        Err(need) => println!("the live part is skipped: {need}"),
        Ok(()) => run.live(&chosen, &differences),
    }
    if wanted.is_empty() {
        run.failed += report::check(&cases, &clauses, &run.answers, &differences);
    }
    if run.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns the cases of the files and the generated ones, each with a unique name.
fn all_cases(folder: &Path) -> Vec<Case> {
    let mut files: Vec<_> =
        std::fs::read_dir(folder.join("cases")).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let mut texts: Vec<(String, String)> = files
        .iter()
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    texts.push(("generated".to_owned(), generate::text()));
    let mut cases = Vec::new();
    for (file, text) in texts {
        match language::cases(&file, &text) {
            Ok(some) => cases.extend(some),
            Err(why) => panic!("{why}"),
        }
    }
    let mut names = std::collections::BTreeSet::new();
    for case in &cases {
        assert!(names.insert(case.name.clone()), "two cases are called {}", case.name);
        assert!(
            !case.covers.is_empty() && !case.clauses.is_empty(),
            "{} is about nothing",
            case.name
        );
    }
    cases
}

/// Progress of the suite.
struct Run {
    answers: Answers,
    failed: usize,
    shown: usize,
}

type Make<'a> = dyn FnMut() -> Result<Box<dyn Subject>, String> + 'a;

impl Run {
    /// Plays each case in each of these versions; any error is a failure.
    fn all(
        &mut self,
        name: &'static str,
        cases: &[&Case],
        versions: fn(&Case) -> Vec<Version>,
        make: &mut Make,
    ) {
        let started = Instant::now();
        let mut subject = None;
        let (mut played, mut failed) = (0, 0);
        for case in cases {
            for version in &versions(case) {
                let outcome = play_on(&mut subject, make, case, *version, true);
                played += 1;
                self.answers.note(name, case, *version, outcome.is_ok());
                if let Err(why) = outcome {
                    failed += 1;
                    self.show(&format!("{name} {version} {}: {why}", case.name));
                }
            }
        }
        self.failed += failed;
        let seconds = started.elapsed().as_secs_f32();
        println!("{name}: {played} plays, {failed} failed, {seconds:.1} s");
    }

    /// Plays cases on real switches: ours must pass, Open vSwitch may differ where an explanation
    /// exists.
    fn live(&mut self, cases: &[&Case], differences: &Differences) {
        let root = std::env::temp_dir().join("planimeter-conformance");
        std::fs::create_dir_all(&root).unwrap();
        let lab = Lab::open(&root).expect("a laboratory");
        let program = Path::new(env!("CARGO_BIN_EXE_planimeter"));
        let mut ours = || Ok(Box::new(Live::ours(&lab, program, false)?) as Box<dyn Subject>);
        self.all("switch", cases, live_versions, &mut ours);
        let is_possible = Live::ours(&lab, program, true).map(drop);
        match is_possible {
            Ok(()) => {
                let mut ours =
                    || Ok(Box::new(Live::ours(&lab, program, true)?) as Box<dyn Subject>);
                self.all(FAST_PATH, cases, live_versions, &mut ours);
            }
            Err(why) => {
                println!("the fast path is not tested: {why}");
                self.failed += usize::from(must_not_skip());
            }
        }
        if let Err(need) = requirement::tool("ovs-vswitchd", "openvswitch-switch") {
            println!("Open vSwitch is not tested: {need}");
            self.failed += usize::from(must_not_skip());
            return;
        }
        let peers = |case: &&Case| !case.ours_only && !case.fresh;
        let cases: Vec<&Case> = cases.iter().copied().filter(peers).collect();
        self.second_answer(&lab, &cases, differences);
    }

    fn second_answer(&mut self, lab: &Lab, cases: &[&Case], differences: &Differences) {
        let started = Instant::now();
        let mut make = || Ok(Box::new(Live::open_vswitch(lab)?) as Box<dyn Subject>);
        let mut subject = None;
        let mut count: BTreeMap<&str, usize> = BTreeMap::new();
        for case in cases {
            for version in &live_versions(case) {
                let explained = differences.explains(&case.name, *version);
                let outcome = play_on(&mut subject, &mut make, case, *version, !explained);
                // An explained difference counts as different, even if it depends on a race.
                self.answers.note("ovs", case, *version, outcome.is_ok() && !explained);
                *count
                    .entry(match (&outcome, explained) {
                        (Ok(()), _) => "agree",
                        (Err(_), true) => "differ as explained",
                        (Err(_), false) => "differ without explanation",
                    })
                    .or_default() += 1;
                match (outcome, explained) {
                    (Err(why), false) => {
                        self.failed += 1;
                        self.show(&format!("ovs {version} {}: {why}", case.name));
                    }
                    (Ok(()), true) => println!("ovs {version} {} agrees after all", case.name),
                    _ => {}
                }
            }
        }
        let reported: Vec<_> =
            count.iter().map(|(what, plays)| format!("{plays} {what}")).collect();
        println!("ovs: {}, {:.1} s", reported.join(", "), started.elapsed().as_secs_f32());
    }

    fn show(&mut self, text: &str) {
        self.shown += 1;
        if self.shown <= SHOWN_MAX || std::env::var_os("ALL").is_some() {
            println!("{text}");
        }
    }
}

/// Plays a case on the current subject. Uses a new subject if that is spent, or if the previous
/// case left it in an unknown state.
fn play_on(
    kept: &mut Option<Box<dyn Subject>>,
    make: &mut Make,
    case: &Case,
    version: Version,
    again: bool,
) -> Result<(), String> {
    let mut subject = match kept.take() {
        Some(subject) => subject,
        None => make()?,
    };
    let mut outcome = player::play(case, version, subject.as_mut());
    if !subject.is_spent() {
        // On a busy kernel a frame may arrive after its step. A real error occurs twice, also on a
        // subject without frames in flight.
        if outcome.is_err() && again {
            outcome = player::play(case, version, subject.as_mut());
        }
        if again && let Err(why) = &outcome {
            println!("{version} {} is played on a new subject, for: {why}", case.name);
            drop(subject);
            subject = make()?;
            outcome = player::play(case, version, subject.as_mut());
        }
        *kept = Some(subject);
    }
    outcome
}

/// Returns the versions in which a case is played on real switches: 1.0 and 1.3, or its last one.
fn live_versions(case: &Case) -> Vec<Version> {
    if case.fresh {
        return Vec::new();
    }
    let both = [Version::V1_0, Version::V1_3];
    let chosen: Vec<Version> =
        both.into_iter().filter(|version| case.versions.contains(version)).collect();
    if chosen.is_empty() { case.versions.last().copied().into_iter().collect() } else { chosen }
}

fn live_needs() -> Result<(), Requirement> {
    if requirement::privileged() { Ok(()) } else { Err(Requirement::Privilege) }
}
