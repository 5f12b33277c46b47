//! Tests with random graphs and random frames. Every frame and copy is accounted for, and a program
//! change preserves counters and learned entries.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use dataplane::forwarder::{Forwarder, Outputs};
use forces::Value;
use packet::frame::{Batch, Frame};
use packet::time::Nanos;
use progfe::element::{Change, Element, ElementError};
use progfe::executor::Enforcer;
use progfe::lfb::Verdict;
use progfe::program::Program;
use proptest::prelude::*;

/// Random programs and random frames.
mod random;

use random::{BLOCKS, document, frames, program};

fn forward(element: &mut Element, out: &mut Outputs, frames: &[(u32, Vec<u8>)], now: Nanos) {
    for (port, bytes) in frames {
        let mut batch = Batch::new(1);
        batch.push_bytes(bytes);
        element.forward(*port, &mut batch, now, out);
        out.queues_mut().iter_mut().for_each(|(_, queue)| queue.clear());
        while element.next_told().is_some() {}
    }
}

fn is_even(element: &Element) -> bool {
    element.account().is_even(element.enforcer().held())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_frame_and_copy_is_accounted_for(
        blocks in proptest::collection::vec(0..BLOCKS.len(), 1..12),
        others in proptest::collection::vec(0..BLOCKS.len(), 1..12),
        leads in proptest::collection::vec(any::<u8>(), 1..40),
        frames in frames(),
    ) {
        let (text, other) = (document(&blocks, &leads), document(&others, &leads));
        let first = program(&text);
        prop_assume!(first.is_some());
        let mut element: Element = Element::start(first.unwrap(), 7).unwrap();
        let mut out = Outputs::new(&[1, 2, 3]);
        let mut now = Nanos::from_secs(1);
        forward(&mut element, &mut out, &frames, now);
        prop_assert!(is_even(&element), "{:?}\n{text}", element.account());
        prop_assert_eq!(element.account().received, frames.len() as u64);
        // A frame on a link into a block came out of a preceding block.
        let before = element.account();
        let links: Vec<_> = (0..element.program().links.len()).map(|at| element.link(at)).collect();
        // Another program and back: nothing is lost, and counters are preserved.
        if let Some(next) = program(&other) {
            let prepared = element.prepare(next).unwrap();
            now = Nanos::from_secs(2);
            element.swap(prepared, now, &mut out).unwrap();
            prop_assert_eq!(element.generation(), 2);
            prop_assert_eq!(element.account(), before);
            forward(&mut element, &mut out, &frames, now);
            prop_assert!(is_even(&element), "{:?}\n{other}", element.account());
            prop_assert!(element.roll_back(now, &mut out));
            prop_assert_eq!(element.generation(), 1);
            prop_assert!(!element.roll_back(now, &mut out), "no earlier program is stored");
            // The other program used links of the same name in between.
            let after = (0..links.len()).map(|at| element.link(at));
            for (before, after) in links.iter().zip(after) {
                prop_assert!(after.frames >= before.frames);
            }
            forward(&mut element, &mut out, &frames, now);
            prop_assert!(is_even(&element), "{:?}\n{text}", element.account());
        }
    }

    #[test]
    fn a_trace_follows_the_same_path(
        blocks in proptest::collection::vec(0..BLOCKS.len(), 1..12),
        leads in proptest::collection::vec(any::<u8>(), 1..40),
        frames in frames(),
    ) {
        let text = document(&blocks, &leads);
        prop_assume!(program(&text).is_some());
        let mut plain: Element = Element::start(program(&text).unwrap(), 7).unwrap();
        let mut traced: Element = Element::start(program(&text).unwrap(), 7).unwrap();
        let (mut out, mut other) = (Outputs::new(&[1, 2, 3]), Outputs::new(&[1, 2, 3]));
        let now = Nanos::from_secs(1);
        for (port, bytes) in &frames {
            forward(&mut plain, &mut out, &[(*port, bytes.clone())], now);
            let before = traced.account();
            let trace = traced.trace(*port, &mut Frame::from_bytes(bytes), now, &mut other);
            let left = trace.steps.iter().filter(|it| matches!(it.verdict, Verdict::Left(_))).count();
            prop_assert_eq!(traced.account().left - before.left, left as u64);
            traced.tick(now, &mut other);
            other.queues_mut().iter_mut().for_each(|(_, queue)| queue.clear());
            while traced.next_told().is_some() {}
            prop_assert_eq!(plain.account(), traced.account(), "{}", text);
        }
    }
}

/// A bridge with a table of this capacity.
fn bridge(entries: u32, reset: bool) -> Program {
    let reset = if reset { r#" reset="true""# } else { "" };
    let text = format!(
        r#"<fe xmlns="urn:progfe:fe:1" name="bridge" revision="1">
        <use library="BaseLFBLibrary"/><use library="ProGFE"/><frames file="ethernet.frames.xml"/>
        <ports><port id="1"/><port id="2"/></ports><instances>
        <lfb id="phy" class="EtherPHYCop" instances="1..2"><set name="AdminStatus">Up</set></lfb>
        <lfb id="fdb" class="LearnSearch"{reset}><set name="LearnKey">Eth.src</set>
          <set name="LearnValue">meta:PHYPortID</set><set name="SearchKey">Eth.dst</set>
          <set name="MaxEntries">{entries}</set></lfb>
        <lfb id="c" class="Count"/></instances>
        <links><link from="phy#*.EtherPHYOut" to="fdb.PktsIn"/><link from="fdb.KnownOut" to="c.PktsIn"/>
        </links></fe>"#
    );
    program(&text).expect("the program is valid")
}

#[test]
fn learned_entries_and_counters_survive_unless_reset() {
    let mut element: Element = Element::start(bridge(100, false), 7).unwrap();
    let mut out = Outputs::new(&[1, 2]);
    // Long after the epoch of its clock; learned entries must not seem old.
    let now = Nanos::from_secs(100_000);
    let a = [[2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]].concat();
    let known = |element: &Element| {
        let fdb = element.program().find("fdb").unwrap();
        let entries = element.get(fdb, &[8], now).unwrap();
        let learned = element.get(fdb, &[9], now).unwrap();
        (entries.rows().map_or(0, |rows| rows.len()), learned.unsigned())
    };
    forward(&mut element, &mut out, &[(1, [&a[..], &[0x99, 0x99]].concat())], now);
    assert_eq!(known(&element), (1, Some(1)));
    for (entries, reset, expected) in
        [(100, false, (1, Some(1))), (7, false, (1, Some(1))), (9, true, (0, Some(0)))]
    {
        let prepared = element.prepare(bridge(entries, reset)).unwrap();
        element.swap(prepared, now, &mut out).unwrap();
        assert_eq!(known(&element), expected, "{entries} {reset}");
    }
}

#[test]
fn changes_are_atomic_and_bound_to_their_program() {
    let mut element: Element = Element::start(bridge(100, false), 7).unwrap();
    let mut out = Outputs::new(&[1, 2]);
    let now = Nanos::from_secs(1);
    let fdb = element.program().find("fdb").unwrap();
    let age =
        |value: u64| Change::Set { instance: fdb, path: vec![5], value: Value::Unsigned(value) };
    let wrong =
        Change::Set { instance: fdb, path: vec![1], value: Value::Text("Eth.nothing".into()) };
    let refused = element.change(&[age(7), wrong], now, &mut out);
    assert!(matches!(refused, Err(ElementError::Refused(_))), "{refused:?}");
    assert_eq!(element.get(fdb, &[5], now).unwrap(), Value::Unsigned(300));
    let read_only = Change::Set { instance: 0, path: vec![1], value: Value::Unsigned(9) };
    assert!(matches!(element.change(&[read_only], now, &mut out), Err(ElementError::Access)));
    let mistyped = Change::Set { instance: fdb, path: vec![5], value: Value::Boolean(true) };
    assert!(matches!(element.change(&[mistyped], now, &mut out), Err(ElementError::Value(_))));
    let nowhere = Change::Delete { instance: fdb, path: vec![8, 3] };
    assert!(matches!(element.change(&[nowhere], now, &mut out), Err(ElementError::NotThere)));
    let early = element.prepare_changes(&[age(5)]).unwrap();
    element.change(&[age(6)], now, &mut out).unwrap();
    assert_eq!(element.get(fdb, &[5], now).unwrap(), Value::Unsigned(6));
    assert!(matches!(element.swap(early, now, &mut out), Err(ElementError::Stale)));
    assert_eq!(element.get(fdb, &[5], now).unwrap(), Value::Unsigned(6));
}

#[test]
fn a_watch_reports_one_of_several_events() {
    let text = r#"<fe xmlns="urn:progfe:fe:1" name="w" revision="1">
        <use library="BaseLFBLibrary"/><use library="ProGFE"/><frames file="ethernet.frames.xml"/>
        <ports><port id="1"/></ports><instances>
        <lfb id="phy" class="EtherPHYCop"><set name="AdminStatus">Up</set></lfb><lfb id="c" class="Count"/>
        </instances><links><link from="phy.EtherPHYOut" to="c.PktsIn"/></links>
        <watch lfb="c" event="PacketsOver" threshold="3"/></fe>"#;
    let mut element: Element = Element::start(program(text).unwrap(), 7).unwrap();
    let mut out = Outputs::new(&[1]);
    for _ in 0..9 {
        forward(&mut element, &mut out, &[(1, vec![0; 20])], Nanos::ZERO);
    }
    let report = element.next_report().expect("the fourth frame exceeds three");
    assert_eq!(report.happening.reports, [(vec![1], Value::Unsigned(4))]);
    assert_eq!(element.next_report(), None, "crossing the threshold is reported once");
}
