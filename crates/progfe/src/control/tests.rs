//! Tests that read and change an element by class, number and path, as an association does.

use forces::association::{Change as Staged, Element as _, Place as At};
use forces::model::value::Value;
use forces::wire::{Redirect, ResultCode};
use packet::frame::Batch;

use super::*;
use crate::compile::Compiled;
use crate::program::Program;
use crate::program::class_id::{COUNT, LEARN_SEARCH, MIRROR};
use crate::program::document::no_files;
use crate::xml::Source;
use dataplane::forwarder::Forwarder;

const PROGRAM: &str = r#"<fe xmlns="urn:progfe:fe:1" name="p" revision="3"><use library="BaseLFBLibrary"/>
    <use library="ProGFE"/><frames file="ethernet.frames.xml"/>
    <ports><port id="1"/><port id="2"/></ports><instances>
    <lfb id="phy" class="EtherPHYCop" instances="1..2"><set name="AdminStatus">Up</set></lfb>
    <lfb id="fdb" class="LearnSearch"><set name="LearnKey">Eth.src</set>
      <set name="LearnValue">meta:PHYPortID</set><set name="SearchKey">Eth.dst</set>
      <row table="Entries"><c n="Key">02:00:00:00:00:fe</c><c n="Value">2</c><c n="Static">true</c></row></lfb>
    <lfb id="all" class="Count"/><lfb id="inj" class="RedirectIn"/><lfb id="ce" class="RedirectOut"/>
    </instances><links>
    <link from="phy#*.EtherPHYOut" to="fdb.PktsIn"/><link from="fdb.UnknownOut" to="all.PktsIn"/>
    <link from="fdb.KnownOut" to="ce.PktsIn"/>
    <link from="all.PktsOut" to="phy#2.EtherPHYIn"/><link from="inj.PktsOut[0]" to="phy#1.EtherPHYIn"/>
    </links></fe>"#;

struct Rig {
    element: element::Element<Compiled>,
    control: Control,
    out: Outputs,
}

impl Rig {
    fn new() -> Rig {
        let (program, problems) = Program::load(&Source::new("p", PROGRAM), &no_files);
        let program = program.unwrap_or_else(|| panic!("{problems}"));
        let element = element::Element::start(program, 7).unwrap();
        Rig { element, control: Control::default(), out: Outputs::new(&[1, 2]) }
    }

    fn speaker(&mut self) -> Speaker<'_, Compiled> {
        let Rig { element, control, out } = self;
        Speaker { control, element, now: Nanos::from_secs(1), out }
    }

    fn get(&mut self, class: u32, instance: u32, path: &[u32]) -> Result<Value, ResultCode> {
        self.speaker().get(&place(class, instance, path))
    }

    /// Stages changes and commits them.
    fn commit(&mut self, changes: &[Staged]) -> ResultCode {
        let mut speaker = self.speaker();
        for change in changes {
            let code = speaker.stage(change.clone());
            if !code.is_success() {
                speaker.unstage();
                return code;
            }
        }
        speaker.commit()
    }

    /// Returns the number of frames that leave each port when one arrives at port 1.
    fn arrive(&mut self, to: u8) -> [usize; 2] {
        let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, 1, 0x90, 0];
        frame.resize(60, 0);
        let mut batch = Batch::new(1);
        batch.push_bytes(&frame);
        self.element.forward(1, &mut batch, Nanos::from_secs(1), &mut self.out);
        self.left()
    }

    fn left(&mut self) -> [usize; 2] {
        let queues = self.out.queues_mut();
        let counts: Vec<usize> = queues.iter_mut().map(|(_, queue)| queue.len()).collect();
        self.out.queues_mut().iter_mut().for_each(|(_, queue)| queue.clear());
        [counts[0], counts[1]]
    }
}

fn place(class: u32, instance: u32, path: &[u32]) -> At {
    At { class, instance, path: path.to_vec() }
}

fn set(class: u32, instance: u32, path: &[u32], value: Value) -> Staged {
    Staged::Set { place: place(class, instance, path), value }
}

fn delete(class: u32, instance: u32, path: &[u32]) -> Staged {
    Staged::Delete { place: place(class, instance, path) }
}

fn numbers<const N: usize>(all: [u32; N]) -> Value {
    Value::struct_of((1..).zip(all.map(|it| Value::Unsigned(it.into()))))
}

/// Returns a row of LFBTopology.
fn link(from: (u32, u32), port: u32, index: u32, to: (u32, u32)) -> Value {
    let number = |number: u32| Value::Unsigned(number.into());
    let select = |(class, instance)| numbers([class, instance]);
    Value::struct_of([
        (1, select(from)),
        (2, number(port)),
        (3, number(index)),
        (4, select(to)),
        (5, number(0)),
        (6, number(0)),
    ])
}

#[test]
fn components_of_instances_are_read_and_set_by_path() {
    let mut rig = Rig::new();
    assert_eq!(rig.get(LEARN_SEARCH, 1, &[5]), Ok(Value::Unsigned(300)));
    assert_eq!(rig.get(LEARN_SEARCH, 2, &[5]), Err(ResultCode::COMPONENT_DOES_NOT_EXIST));
    assert_eq!(rig.get(LEARN_SEARCH, 1, &[8, 0, 2]), Ok(Value::Unsigned(2)));
    assert_eq!(rig.get(LEARN_SEARCH, 1, &[8, 7]), Err(ResultCode::COMPONENT_DOES_NOT_EXIST));
    // A commit applies all staged changes or none.
    let age = set(LEARN_SEARCH, 1, &[5], Value::Unsigned(60));
    assert_eq!(
        rig.commit(&[age.clone(), set(LEARN_SEARCH, 1, &[8, 0, 2], Value::Text("x".into()))]),
        ResultCode::INVALID_PARAMETERS
    );
    assert_eq!(rig.get(LEARN_SEARCH, 1, &[5]), Ok(Value::Unsigned(300)));
    assert!(rig.commit(&[age]).is_success());
    assert_eq!(rig.get(LEARN_SEARCH, 1, &[5]), Ok(Value::Unsigned(60)));
    rig.speaker().roll_back();
    assert_eq!(rig.get(LEARN_SEARCH, 1, &[5]), Ok(Value::Unsigned(300)));
    assert!(rig.commit(&[delete(LEARN_SEARCH, 1, &[8, 0])]).is_success());
    assert_eq!(rig.get(LEARN_SEARCH, 1, &[8]), Ok(Value::rows_of([])));
    // A completed transaction cannot be rolled back.
    rig.speaker().complete();
    rig.speaker().roll_back();
    assert_eq!(rig.get(LEARN_SEARCH, 1, &[8]), Ok(Value::rows_of([])));
}

#[test]
fn instances_and_links_are_created_and_deleted_while_frames_pass() {
    let mut rig = Rig::new();
    assert_eq!(rig.arrive(9), [0, 1]);
    let selectors = rig.get(FE_OBJECT, 1, &[2]).unwrap();
    let rows = selectors.rows().unwrap();
    let count = rows.iter().find(|(_, row)| **row == numbers([COUNT, 1])).map(|(index, _)| *index);
    // Replace the counter with a mirror.
    let output = |rig: &mut Rig, from: Value| {
        let links = rig.get(FE_OBJECT, 1, &[1]).unwrap();
        let mut rows = links.rows().unwrap().iter();
        rows.find(|(_, row)| row.step(1) == Some(&from)).map(|(index, _)| *index)
    };
    assert!(output(&mut rig, numbers([COUNT, 1])).is_some());
    let changes = [
        delete(FE_OBJECT, 1, &[2, count.unwrap()]),
        set(FE_OBJECT, 1, &[2, 40], numbers([MIRROR, 1])),
        set(FE_OBJECT, 1, &[1, 50], link((LEARN_SEARCH, 1), 1, 0, (MIRROR, 1))),
        set(FE_OBJECT, 1, &[1, 51], link((MIRROR, 1), 0, 0, (3, 1))),
        set(MIRROR, 1, &[1], Value::Unsigned(9)),
    ];
    assert_eq!(rig.commit(&changes), ResultCode::SUCCESS);
    assert_eq!(rig.arrive(9), [1, 0]);
    assert_eq!(rig.get(FE_OBJECT, 1, &[2, 40]), Ok(numbers([MIRROR, 1])));
    assert_eq!(rig.get(MIRROR, 1, &[1]), Ok(Value::Unsigned(9)));
    assert_eq!(output(&mut rig, numbers([COUNT, 1])), None, "its links were deleted with it");
    assert_eq!(rig.get(COUNT, 1, &[1]), Err(ResultCode::COMPONENT_DOES_NOT_EXIST));
    rig.speaker().roll_back();
    assert_eq!(rig.arrive(9), [0, 1]);
    assert_eq!(rig.get(FE_OBJECT, 1, &[2, 40]), Err(ResultCode::COMPONENT_DOES_NOT_EXIST));
    assert_eq!(rig.get(FE_OBJECT, 1, &[2, count.unwrap()]), Ok(numbers([COUNT, 1])));
}

#[test]
fn an_invalid_graph_is_rejected_and_nothing_changes() {
    let mut rig = Rig::new();
    let cases = [
        (set(FE_OBJECT, 1, &[2, 40], numbers([0x4711, 1])), ResultCode::LFB_UNKNOWN),
        (set(FE_OBJECT, 1, &[2, 40], numbers([COUNT, 1])), ResultCode::EXISTS),
        (set(FE_OBJECT, 1, &[2, 0], numbers([COUNT, 9])), ResultCode::EXISTS),
        (set(FE_OBJECT, 1, &[2, 0, 2], Value::Unsigned(4)), ResultCode::NOT_SUPPORTED),
        (delete(FE_OBJECT, 1, &[2, 77]), ResultCode::NOT_FOUND),
        (set(FE_OBJECT, 1, &[1, 9], link((COUNT, 1), 0, 0, (3, 1))), ResultCode::EXISTS),
        (
            set(FE_OBJECT, 1, &[1, 9], link((COUNT, 5), 0, 0, (3, 1))),
            ResultCode::INSTANCE_NOT_FOUND,
        ),
        (set(FE_OBJECT, 1, &[1, 9], link((14, 1), 4, 0, (3, 1))), ResultCode::NOT_FOUND),
        (set(FE_OBJECT, 1, &[1, 9], link((14, 1), 0, 70_000, (3, 1))), ResultCode::NOT_FOUND),
        // A cycle without a queue: each row is valid, but the graph is not.
        (
            set(FE_OBJECT, 1, &[1, 9], link((LEARN_SEARCH, 1), 2, 0, (LEARN_SEARCH, 1))),
            ResultCode::INVALID_PARAMETERS,
        ),
    ];
    for (change, expected) in cases {
        let text = format!("{change:?}");
        assert_eq!(rig.commit(&[change]), expected, "{text}");
        assert_eq!(rig.element.generation(), 1, "{text}");
    }
    let problems = rig.get(program_lfb::CLASS, 1, &[program_lfb::component::PROBLEMS, 0]).unwrap();
    assert!(problems.text().unwrap().contains("cycle"), "{problems:?}");
    assert_eq!(rig.arrive(9), [0, 1]);
}

#[test]
fn a_complete_program_is_a_component_in_parts() {
    let mut rig = Rig::new();
    let [name, document] = [program_lfb::component::NAME, program_lfb::component::DOCUMENT];
    let other = PROGRAM.replace("name=\"p\"", "name=\"q\"").replace(
        "<link from=\"all.PktsOut\" to=\"phy#2.EtherPHYIn\"/>",
        "<link from=\"all.PktsOut\" to=\"phy#1.EtherPHYIn\"/>",
    );
    let parts: Vec<Staged> = (0..)
        .zip(other.as_bytes().chunks(100))
        .map(|(index, part)| {
            set(program_lfb::CLASS, 1, &[document, index], Value::Bytes(part.to_vec()))
        })
        .collect();
    assert_eq!(rig.commit(&parts[1..]), ResultCode::INVALID_PARAMETERS);
    let problems = rig.get(program_lfb::CLASS, 1, &[program_lfb::component::PROBLEMS, 0]).unwrap();
    assert!(problems.text().unwrap().contains("Document:1:1"), "{problems:?}");
    let [count] = [set(COUNT, 1, &[1], Value::Unsigned(0))];
    let mut both = parts.clone();
    both.push(count);
    assert_eq!(rig.commit(&both), ResultCode::NOT_SUPPORTED, "two programs in one commit");
    assert_eq!(rig.get(program_lfb::CLASS, 1, &[name]), Ok(Value::Text("p".into())));
    assert!(rig.commit(&parts).is_success());
    assert_eq!(rig.get(program_lfb::CLASS, 1, &[name]), Ok(Value::Text("q".into())));
    assert_eq!(rig.arrive(9), [1, 0]);
    // The running document can be read, and setting it again gives the same program.
    let reported = rig.get(program_lfb::CLASS, 1, &[document]).unwrap();
    assert!(rig.commit(&[set(program_lfb::CLASS, 1, &[document], reported.clone())]).is_success());
    assert_eq!(rig.get(program_lfb::CLASS, 1, &[document]), Ok(reported));
    rig.speaker().roll_back();
    assert_eq!(rig.element.program().name, "q");
}

#[test]
fn a_frame_that_is_set_is_traced() {
    let mut rig = Rig::new();
    let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 0x90, 0];
    frame.resize(60, 0);
    let asked = Value::struct_of([(1, Value::Unsigned(1)), (2, Value::Bytes(frame))]);
    assert!(
        rig.commit(&[set(program_lfb::CLASS, 1, &[program_lfb::component::TRACE_FRAME], asked)])
            .is_success()
    );
    let steps = rig.get(program_lfb::CLASS, 1, &[program_lfb::component::TRACE]).unwrap();
    let steps: Vec<&str> =
        steps.rows().unwrap().values().filter_map(|row| row.step(3)?.text()).collect();
    let expected = [
        "EtherPHYOut -> fdb.PktsIn",
        "UnknownOut -> all.PktsIn",
        "PktsOut -> phy#2.EtherPHYIn",
        "sent on port 2",
    ];
    assert_eq!(steps, expected);
    assert_eq!(rig.left(), [0, 1], "it was forwarded");
    assert_eq!(rig.element.generation(), 1, "the program is unchanged");
}

#[test]
fn packets_enter_by_redirect_in_and_leave_by_redirect_out() {
    let mut rig = Rig::new();
    let packet = vec![7u8; 60];
    let redirect = |index: u32| Redirect {
        metadata: vec![(crate::lfb::meta_id::REDIRECT_INDEX, index.to_be_bytes().to_vec())],
        packet: Some(packet.clone()),
    };
    rig.speaker().redirect(redirect(0));
    assert_eq!(rig.left(), [1, 0]);
    rig.speaker().redirect(redirect(9));
    assert_eq!(rig.left(), [0, 0], "no such output");
    rig.speaker().redirect(Redirect { packet: Some(vec![0; 70_000]), ..redirect(0) });
    let account = rig.get(program_lfb::CLASS, 1, &[program_lfb::component::ACCOUNT]).unwrap();
    assert_eq!(account.step(2), Some(&Value::Unsigned(2)));
    assert_eq!(account.step(8), Some(&Value::Unsigned(1)));
    assert_eq!(rig.arrive(0xfe), [0, 0]);
    let reported = rig.element.next_told().unwrap();
    let redirect = notifications::redirect(rig.element.program(), &reported);
    assert_eq!(redirect.packet.unwrap()[..6], [2, 0, 0, 0, 0, 0xfe]);
    assert!(redirect.metadata.contains(&(1, vec![0, 0, 0, 1])), "{:?}", redirect.metadata);
}

#[test]
fn events_of_subscribed_instances_are_reported() {
    let mut rig = Rig::new();
    rig.arrive(9);
    assert!(rig.element.poll_event().is_none());
    rig.element.watch_also([(LEARN_SEARCH, 1)].into());
    // After a program change the subscription to the same instance remains.
    assert!(rig.commit(&[set(LEARN_SEARCH, 1, &[5], Value::Unsigned(60))]).is_success());
    rig.element.settle();
    let mut batch = Batch::new(1);
    batch.push_bytes(
        &[[2u8, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 5, 0x90, 0].as_slice(), &[0; 46]].concat(),
    );
    rig.element.forward(1, &mut batch, Nanos::from_secs(1), &mut rig.out);
    let event = rig.element.poll_event().unwrap();
    assert_eq!(rig.element.next_report(), None, "no watch of the program matches it");
    assert_eq!((event.class, event.instance, event.event), (LEARN_SEARCH, 1, 1));
    assert_eq!(event.reported[0].step(1), Some(&Value::Text("02:00:00:00:00:05".into())));
}

#[test]
fn a_learned_entry_is_a_row_and_can_be_deleted() {
    let mut rig = Rig::new();
    rig.arrive(9);
    let learnt = |rig: &mut Rig| {
        let entries = rig.get(LEARN_SEARCH, 1, &[8]).unwrap();
        let rows = entries.rows().unwrap();
        let found = rows.iter().find(|(_, row)| row.step(3) == Some(&Value::Boolean(false)));
        (found.map(|(index, _)| *index), rows.len())
    };
    let (Some(index), 2) = learnt(&mut rig) else { panic!("one entry is static, one is learned") };
    let key = Value::struct_of([(1, Value::Text("02:00:00:00:00:01".into()))]);
    assert_eq!(rig.speaker().find(&place(LEARN_SEARCH, 1, &[8]), 1, &key), Ok(index));
    // A staged deletion has no effect before the commit.
    assert!(rig.speaker().stage(delete(LEARN_SEARCH, 1, &[8, index])).is_success());
    assert_eq!(learnt(&mut rig), (Some(index), 2));
    assert!(rig.speaker().commit().is_success());
    assert_eq!(learnt(&mut rig), (None, 1));
    assert_eq!(rig.commit(&[delete(LEARN_SEARCH, 1, &[8, index])]), ResultCode::NOT_FOUND);
    assert_eq!(
        rig.get(LEARN_SEARCH, 1, &[8, 0, 2]),
        Ok(Value::Unsigned(2)),
        "the static entry stays"
    );
    rig.arrive(9);
    assert!(learnt(&mut rig).0.is_some(), "the entry is learned again");
}

#[test]
fn a_stopped_element_counts_received_frames() {
    let mut rig = Rig::new();
    rig.speaker().set_forwarding(false);
    assert_eq!(rig.arrive(9), [0, 0]);
    rig.speaker().set_forwarding(true);
    assert_eq!(rig.arrive(9), [0, 1]);
    let account = rig.get(program_lfb::CLASS, 1, &[program_lfb::component::ACCOUNT]).unwrap();
    assert_eq!([1, 7].map(|id| account.step(id).unwrap().unsigned()), [Some(2), Some(1)]);
}

#[test]
fn changes_staged_for_another_program_are_not_committed() {
    let mut rig = Rig::new();
    let age = set(LEARN_SEARCH, 1, &[5], Value::Unsigned(60));
    assert!(rig.speaker().stage(age).is_success());
    let change = element::Change::Set { instance: 2, path: vec![6], value: Value::Unsigned(100) };
    rig.element.change(&[change], Nanos::from_secs(1), &mut Outputs::new(&[1, 2])).unwrap();
    assert_eq!(rig.speaker().commit(), ResultCode::BUSY);
    assert_eq!(rig.get(LEARN_SEARCH, 1, &[6]), Ok(Value::Unsigned(100)));
    assert_eq!(rig.get(LEARN_SEARCH, 1, &[5]), Ok(Value::Unsigned(300)));
}

/// IPv4UcastLPM.
const LPM: u32 = 10;

/// Creates an element with the example router.
fn router() -> Rig {
    let text = include_str!("../../../../examples/progfe/router.fe.xml");
    let (program, problems) = Program::load(&Source::new("router", text), &no_files);
    let program = program.unwrap_or_else(|| panic!("{problems}"));
    let element = element::Element::start(program, 7).unwrap();
    Rig { element, control: Control::default(), out: Outputs::new(&[1, 2]) }
}

fn route(number: u32, hop: u32) -> Value {
    let address = (0x0b00_0000 + (number << 8)).to_be_bytes().to_vec();
    Value::struct_of([
        (1, Value::Bytes(address)),
        (2, Value::Unsigned(24)),
        (3, Value::Boolean(false)),
        (4, Value::Boolean(false)),
        (5, Value::Unsigned(0)),
        (6, Value::Unsigned(hop.into())),
    ])
}

/// Asserts that the block looks up exactly the configured rows.
fn is_as_set(rig: &mut Rig) {
    let program = rig.element.program().clone();
    let at = program.place_of_instance(LPM, 1).unwrap();
    let rows = program.instances[at].components[&1].rows().unwrap();
    let number = |row: &Value, id| row.step(id).unwrap().unsigned().unwrap() as u32;
    let set: std::collections::BTreeSet<(Vec<u8>, u32, u32)> = rows
        .values()
        .map(|row| (row.step(1).unwrap().bytes().unwrap().to_vec(), number(row, 2), number(row, 6)))
        .collect();
    use crate::executor::Enforcer;
    let Some(crate::lfb::Lfb::Ipv4Lpm(block)) = rig.element.enforcer().block(at) else {
        panic!("the block exists");
    };
    let known = block.routes().iter().map(|(prefix, hop)| {
        // Lookups match the listed routes.
        let found = block.routes().lookup(prefix.last()).map(|id| block.routes().hop(id));
        assert_eq!(found, Some(hop), "{prefix}");
        (prefix.address().octets().to_vec(), prefix.length().into(), hop.selector)
    });
    assert_eq!(known.collect::<std::collections::BTreeSet<_>>(), set);
}

#[test]
fn a_prefix_table_follows_commits_and_rollbacks_of_its_rows() {
    let mut rig = router();
    let table = |rows: std::ops::Range<u32>, hop: u32| Staged::Merge {
        place: place(LPM, 1, &[1]),
        value: Value::Array(rows.map(|number| (number + 10, route(number, hop))).collect()),
    };
    is_as_set(&mut rig);
    // More rows than one step in advance, with overlap.
    assert!(rig.commit(&[table(0..3000, 7), table(2000..5000, 6)]).is_success());
    is_as_set(&mut rig);
    rig.speaker().roll_back();
    is_as_set(&mut rig);
    assert!(rig.commit(&[table(0..3000, 7)]).is_success());
    rig.speaker().complete();
    is_as_set(&mut rig);
    // Staging and unstaging repeatedly leaves the table unchanged.
    for _ in 0..3 {
        assert!(rig.speaker().stage(table(0..3000, 6)).is_success());
        rig.speaker().unstage();
        is_as_set(&mut rig);
        assert!(
            rig.commit(&[delete(LPM, 1, &[1, 10]), set(LPM, 1, &[1, 11, 6], Value::Unsigned(6))])
                .is_success()
        );
        is_as_set(&mut rig);
        rig.speaker().roll_back();
        is_as_set(&mut rig);
        assert!(rig.commit(&[set(LPM, 1, &[1, 11, 6], Value::Unsigned(6))]).is_success());
        rig.speaker().complete();
        is_as_set(&mut rig);
    }
    // Two rows that swap prefixes, and two that would become equal.
    let swapped = [set(LPM, 1, &[1, 20], route(11, 7)), set(LPM, 1, &[1, 21], route(10, 7))];
    assert!(rig.commit(&swapped).is_success());
    rig.speaker().complete();
    is_as_set(&mut rig);
    let twice = [set(LPM, 1, &[1, 20], route(50, 7))];
    assert_eq!(rig.commit(&twice), ResultCode::INVALID_PARAMETERS);
    is_as_set(&mut rig);
    let problems = rig.get(program_lfb::CLASS, 1, &[program_lfb::component::PROBLEMS, 0]).unwrap();
    assert!(problems.text().unwrap().contains("two rows have this prefix"), "{problems:?}");
}
