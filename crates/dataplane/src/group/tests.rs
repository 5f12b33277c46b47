//! Tests of groups: choice of buckets, liveness, invalid commands and unchanged buckets.

use super::*;
use crate::action::Action;
use crate::rng::Rng;
use crate::table::Progress;

const AT: Nanos = Nanos::ZERO;

fn table() -> GroupTable {
    GroupTable::new(&[1, 2, 3, 4], GroupLimits::default(), 7)
}

impl GroupTable {
    pub(crate) fn add(&mut self, spec: GroupSpec, now: Nanos) -> Result<(), GroupError> {
        self.change(GroupChange::add(spec), now)
    }

    fn modify(&mut self, spec: GroupSpec) -> Result<(), GroupError> {
        self.change(GroupChange::modify(spec), AT)
    }

    fn insert_buckets(
        &mut self,
        number: GroupNo,
        place: BucketPlace,
        buckets: Vec<BucketSpec>,
    ) -> Result<(), GroupError> {
        self.change(GroupChange::insert(number, place, buckets), AT)
    }

    fn remove_buckets(&mut self, number: GroupNo, place: BucketPlace) -> Result<(), GroupError> {
        self.change(GroupChange::remove(number, place), AT)
    }
}

/// Deletes a group, or all, and returns the deleted numbers.
fn deleted(groups: &mut GroupTable, number: GroupNo) -> Result<Vec<GroupNo>, GroupError> {
    let gone = groups.delete(number)?;
    let (mut from, mut calls) = (0, 0);
    while !groups.release_some(&gone, &mut from, &mut 8).is_done() {
        calls += 1;
    }
    assert!(number != GROUPS_ALL || calls == 0);
    Ok(gone.groups.keys().copied().collect())
}

fn out(port: PortNo) -> Action {
    Action::Output { port }
}

fn group(number: GroupNo, kind: GroupKind, buckets: &[BucketSpec]) -> GroupSpec {
    GroupSpec { number, kind, buckets: buckets.to_vec() }
}

fn to_port(id: BucketNo, weight: u16, port: PortNo) -> BucketSpec {
    BucketSpec::new(id, weight, &[out(port)])
}

fn to_group(id: BucketNo, number: GroupNo) -> BucketSpec {
    BucketSpec::new(id, 0, &[Action::Group(number)])
}

fn watching(port: Option<PortNo>, group: Option<GroupNo>, to: PortNo) -> BucketSpec {
    BucketSpec { watch_port: port, watch_group: group, ..to_port(to, 0, to) }
}

/// Builds an IPv4 UDP frame of a flow.
fn frame(flow: u64) -> Vec<u8> {
    let mut bytes = vec![2; 60];
    bytes[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
    bytes[26..34].copy_from_slice(&(0x0a00_0001_0a00_0002 + flow).to_be_bytes());
    bytes[34..38].copy_from_slice(&((flow * 40_503) as u32).to_be_bytes());
    bytes
}

fn chosen(groups: &mut GroupTable, flow: u64) -> BucketNo {
    let Chosen::One(place) = groups.choose(1, &frame(flow)) else { panic!("nothing chosen") };
    groups.records(1, AT)[0].spec.buckets[place].id
}

/// Returns the buckets chosen for flows, by number and independent of position.
fn choices(groups: &mut GroupTable, flows: u64) -> Vec<BucketNo> {
    (0..flows).map(|flow| chosen(groups, flow)).collect()
}

#[test]
fn a_select_group_distributes_flows_by_weight() {
    let mut groups = table();
    let buckets = [to_port(0, 1, 1), to_port(1, 2, 2), to_port(2, 5, 3), to_port(3, 0, 4)];
    groups.add(group(1, GroupKind::Select, &buckets), AT).unwrap();
    let mut counts = [0u32; 4];
    choices(&mut groups, 8_000).into_iter().for_each(|id| counts[id as usize] += 1);
    let chi_square: f64 = [1000.0, 2000.0, 5000.0]
        .iter()
        .zip(counts)
        .map(|(expected, count)| (f64::from(count) - expected).powi(2) / expected)
        .sum();
    // Two degrees of freedom: 0.1 % of fair distributions exceed 13.8.
    assert!(chi_square < 13.8 && counts[3] == 0, "{counts:?}: {chi_square}");
}

#[test]
fn removing_a_bucket_or_port_moves_only_its_flows() {
    let mut dice = Rng::new(11);
    for _ in 0..20 {
        let mut groups = GroupTable::new(&[1, 2, 3, 4], GroupLimits::default(), dice.roll(1000));
        let buckets: Vec<BucketSpec> =
            (0..4).map(|at| to_port(at * 10, 1 + dice.roll(9) as u16, at + 1)).collect();
        groups.add(group(1, GroupKind::Select, &buckets), AT).unwrap();
        let before = choices(&mut groups, 400);
        let leaving = dice.roll(4) as u32;
        let check = |groups: &mut GroupTable| {
            for (before, after) in before.iter().zip(choices(groups, 400)) {
                assert_ne!(after, leaving * 10);
                assert!(*before == after || *before == leaving * 10, "{before} went to {after}");
            }
        };
        groups.set_port_live(leaving + 1, false);
        check(&mut groups);
        groups.set_port_live(leaving + 1, true);
        assert_eq!(choices(&mut groups, 400), before);
        groups.remove_buckets(1, BucketPlace::Id(leaving * 10)).unwrap();
        check(&mut groups);
        // Reinserted at another position, and with all buckets replaced: the choices are the same.
        groups
            .insert_buckets(1, BucketPlace::Last, vec![buckets[leaving as usize].clone()])
            .unwrap();
        assert_eq!(choices(&mut groups, 400), before);
        let mut turned = buckets.clone();
        turned.reverse();
        groups.modify(group(1, GroupKind::Select, &turned)).unwrap();
        assert_eq!(choices(&mut groups, 400), before);
    }
}

#[test]
fn a_flow_keeps_its_bucket_when_other_header_fields_differ() {
    let plain = frame(5);
    let word = |bytes: &[u8]| flow::word(bytes, 3);
    let with = |at: usize, byte: u8| {
        let mut bytes = plain.clone();
        bytes[at] = byte;
        word(&bytes)
    };
    // ECN, identification, TTL, checksum, payload.
    assert!([15, 18, 22, 24, 45].into_iter().all(|at| with(at, 1) == word(&plain)));
    // Addresses, protocol, ports.
    assert!([0, 7, 23, 26, 33, 34, 37].into_iter().all(|at| with(at, 1) != word(&plain)));
    // The fragments of a datagram are in one flow: bytes at the position of ports are ignored.
    let part = |flags: u8, offset: u8, port: u8| {
        let mut bytes = plain.clone();
        (bytes[20], bytes[21], bytes[35]) = (flags, offset, port);
        word(&bytes)
    };
    assert_eq!(part(0x20, 0, 1), part(0, 9, 2));
    // The labels of all MPLS entries down to the bottom of stack are part of the flow.
    let mpls = |entries: [[u8; 4]; 3]| {
        let mut bytes = plain.clone();
        bytes[12..14].copy_from_slice(&[0x88, 0x47]);
        bytes[14..26].copy_from_slice(entries.as_flattened());
        word(&bytes)
    };
    let (top, bottom) = ([0, 1, 0x20, 64], [0, 2, 0x11, 64]);
    let stack = mpls([top, bottom, [7; 4]]);
    assert_eq!(stack, mpls([[0, 1, 0x2e, 9], [0, 2, 0x1f, 8], [8; 4]]));
    assert!(stack != mpls([[0, 1, 0x30, 64], bottom, [7; 4]]));
    assert!(stack != mpls([top, [0, 2, 0x21, 64], [7; 4]]));
    // A tag's identifier is part of the flow, its priority is not; any bytes have a hash.
    let tag = |control: [u8; 2]| {
        let mut bytes = plain.clone();
        bytes.splice(12..12, [0x81, 0, control[0], control[1]]);
        word(&bytes)
    };
    assert!(tag([0, 5]) == tag([0xe0, 5]) && tag([0, 5]) != tag([0, 6]));
    for length in 0..plain.len() {
        word(&plain[..length]);
    }
}

#[test]
fn a_fast_failover_group_uses_its_first_live_bucket() {
    let mut groups = table();
    groups.add(group(5, GroupKind::Indirect, &[to_port(0, 0, 3)]), AT).unwrap();
    let buckets =
        [watching(Some(1), None, 1), watching(Some(2), None, 2), watching(None, Some(5), 3)];
    groups.add(group(1, GroupKind::FastFailover, &buckets), AT).unwrap();
    assert_eq!(groups.choose(1, &[0; 60]), Chosen::One(0));
    groups.set_port_live(1, false);
    assert_eq!(groups.choose(1, &[0; 60]), Chosen::One(1));
    groups.set_port_live(2, false);
    // The watch group is live while the port that this group sends to is live.
    assert_eq!(groups.choose(1, &[0; 60]), Chosen::One(2));
    groups.set_port_live(3, false);
    assert_eq!(groups.choose(1, &[0; 60]), Chosen::None);
    assert!(!groups.is_live(1) && !groups.is_live(5) && !groups.is_live(9));
    groups.set_port_live(2, true);
    assert_eq!(groups.choose(1, &[0; 60]), Chosen::One(1));
    let record = &groups.records(1, AT)[0];
    assert_eq!(record.traffic, Traffic { frames: 5, bytes: 300 });
}

#[test]
fn each_group_type_chooses_its_buckets_and_counts() {
    let mut groups = table();
    let two = [to_port(0, 0, 1), to_port(1, 0, 2)];
    groups.add(group(1, GroupKind::All, &two), AT).unwrap();
    groups.add(group(2, GroupKind::Indirect, &two[..1]), AT).unwrap();
    groups.add(group(3, GroupKind::All, &[]), AT).unwrap();
    groups.add(group(4, GroupKind::Select, &[]), AT).unwrap();
    let chosen = [1, 2, 3, 4, 5].map(|number| groups.choose(number, &[0; 60]));
    let (all, one) = (Chosen::All(2), Chosen::One(0));
    assert_eq!(chosen, [all, one, Chosen::None, Chosen::None, Chosen::NoGroup]);
    assert_eq!(groups.open(1, 1, 100).as_deref(), Some(&[out(2)][..]));
    assert_eq!(groups.open(1, 2, 100), None);
    let record = groups.records(1, Nanos(9)).remove(0);
    assert_eq!(record.buckets, [Traffic::default(), Traffic { frames: 1, bytes: 100 }]);
    assert_eq!((record.age, groups.records(GROUPS_ALL, AT).len()), (Nanos(9), 4));
}

#[test]
fn loops_are_rejected_however_they_arise() {
    let mut groups = table();
    let own = group(1, GroupKind::All, &[to_group(0, 1)]);
    assert_eq!(groups.add(own, AT), Err(GroupError::Loop(1)));
    let unknown = group(1, GroupKind::All, &[to_group(0, 2)]);
    assert_eq!(groups.add(unknown, AT), Err(GroupError::BadOutGroup(2)));
    groups.add(group(1, GroupKind::All, &[]), AT).unwrap();
    groups.add(group(2, GroupKind::All, &[to_group(0, 1)]), AT).unwrap();
    let watch = watching(None, Some(2), 1);
    groups.add(group(3, GroupKind::FastFailover, &[watch]), AT).unwrap();
    for number in [1, 2, 3] {
        let back = group(1, GroupKind::All, &[to_port(0, 0, 1), to_group(1, number)]);
        assert!(matches!(groups.modify(back), Err(GroupError::Loop(_))), "{number}");
        let inserted = groups.insert_buckets(1, BucketPlace::Last, vec![to_group(1, number)]);
        assert!(matches!(inserted, Err(GroupError::Loop(_))), "{number}");
    }
    assert_eq!(groups.records(1, AT)[0].spec.buckets, []);
}

#[test]
fn chains_are_accepted_up_to_the_maximum_length() {
    let mut groups = table();
    groups.add(group(1, GroupKind::All, &[]), AT).unwrap();
    for number in 2..=CHAIN_MAX as u32 {
        groups.add(group(number, GroupKind::All, &[to_group(0, number - 1)]), AT).unwrap();
    }
    let long = GroupError::ChainTooLong(CHAIN_MAX);
    let above = group(90, GroupKind::All, &[to_group(0, CHAIN_MAX as u32)]);
    assert_eq!(groups.add(above, AT), Err(long));
    // Also at its other end.
    groups.add(group(91, GroupKind::All, &[]), AT).unwrap();
    assert_eq!(groups.modify(group(1, GroupKind::All, &[to_group(0, 91)])), Err(long));
}

#[test]
fn a_referenced_group_cannot_be_deleted_alone() {
    let mut groups = table();
    groups.add(group(1, GroupKind::All, &[]), AT).unwrap();
    groups.add(group(2, GroupKind::All, &[to_group(0, 1), to_group(1, 1)]), AT).unwrap();
    assert_eq!(deleted(&mut groups, 1), Err(GroupError::ChainedGroup(1)));
    let references = |groups: &GroupTable| groups.records(1, AT)[0].references;
    assert_eq!(references(&groups), 1);
    groups.modify(group(2, GroupKind::All, &[])).unwrap();
    assert_eq!(references(&groups), 0);
    assert_eq!(deleted(&mut groups, 1), Ok(vec![1]));
    assert_eq!(deleted(&mut groups, 1), Ok(vec![]));
    assert_eq!(deleted(&mut groups, u32::MAX), Err(GroupError::InvalidGroup(u32::MAX)));
    groups.add(group(1, GroupKind::All, &[]), AT).unwrap();
    groups.modify(group(2, GroupKind::All, &[to_group(0, 1)])).unwrap();
    assert_eq!(deleted(&mut groups, GROUPS_ALL), Ok(vec![1, 2]));
    assert_eq!(groups.count(), 0);
}

#[test]
fn buckets_are_inserted_and_removed_while_others_keep_their_counters() {
    let mut groups = table();
    groups.add(group(1, GroupKind::All, &[to_port(5, 0, 1), to_port(6, 0, 2)]), AT).unwrap();
    groups.open(1, 1, 60);
    let ids = |groups: &GroupTable| {
        let record = groups.records(1, AT).remove(0);
        let frames = record.buckets.iter().map(|traffic| traffic.frames);
        record.spec.buckets.iter().map(|bucket| bucket.id).zip(frames).collect::<Vec<_>>()
    };
    groups.insert_buckets(1, BucketPlace::First, vec![to_port(1, 0, 1)]).unwrap();
    groups.insert_buckets(1, BucketPlace::Last, vec![to_port(9, 0, 1)]).unwrap();
    let more = vec![to_port(7, 0, 1), to_port(8, 0, 1)];
    groups.insert_buckets(1, BucketPlace::Id(6), more).unwrap();
    assert_eq!(ids(&groups), [(1, 0), (5, 0), (6, 1), (7, 0), (8, 0), (9, 0)]);
    for place in [BucketPlace::First, BucketPlace::Last, BucketPlace::Id(7)] {
        groups.remove_buckets(1, place).unwrap();
    }
    assert_eq!(ids(&groups), [(5, 0), (6, 1), (8, 0)]);
    let insert = |groups: &mut GroupTable, place| {
        groups.insert_buckets(1, place, vec![to_port(8, 0, 1)]).unwrap_err()
    };
    assert_eq!(insert(&mut groups, BucketPlace::Last), GroupError::BucketExists(8));
    assert_eq!(insert(&mut groups, BucketPlace::All), GroupError::BadBucket(u32::MAX));
    assert_eq!(insert(&mut groups, BucketPlace::Id(7)), GroupError::UnknownBucket(Some(7)));
    groups.remove_buckets(1, BucketPlace::All).unwrap();
    let empty = groups.remove_buckets(1, BucketPlace::First);
    assert_eq!(empty, Err(GroupError::UnknownBucket(None)));
    let nowhere = groups.remove_buckets(2, BucketPlace::All);
    assert_eq!(nowhere, Err(GroupError::UnknownGroup(2)));
}

#[test]
fn removing_one_of_two_equal_buckets_moves_only_its_flows() {
    let mut groups = table();
    let twins = [to_port(1, 1, 2), to_port(2, 1, 2), to_port(3, 1, 3)];
    groups.add(group(1, GroupKind::Select, &twins), AT).unwrap();
    let before = choices(&mut groups, 500);
    groups.remove_buckets(1, BucketPlace::Id(1)).unwrap();
    let after = choices(&mut groups, 500);
    assert!(before.contains(&1) && before.contains(&2));
    for (old, new) in before.iter().zip(&after).filter(|(old, _)| **old != 1) {
        assert_eq!(old, new, "its bucket is still there");
    }
    groups.insert_buckets(1, BucketPlace::First, vec![to_port(4, 1, 2)]).unwrap();
    let again = choices(&mut groups, 500);
    assert!(again.iter().zip(&after).all(|(new, old)| [*old, 4].contains(new)));
    assert!(again.contains(&4) && again.contains(&2), "equal buckets are distinct");
}

#[test]
fn invalid_commands_are_rejected_without_effect() {
    let limits = GroupLimits { groups_max: 2, buckets_max: 3, group_buckets_max: 2 };
    let mut groups = GroupTable::new(&[1], limits, 0);
    let three = [to_port(0, 0, 1), to_port(1, 0, 1), to_port(2, 0, 1)];
    let mut add = |number, kind, buckets: &[BucketSpec]| {
        groups.add(group(number, kind, buckets), AT).inspect_err(|why| {
            assert!(!groups.contains(number) || *why == GroupError::GroupExists(number));
        })
    };
    use GroupKind::{All, FastFailover, Indirect, Select};
    let invalid = Err(GroupError::InvalidGroup(1));
    assert_eq!(add(GROUPS_ALL, All, &[]), Err(GroupError::InvalidGroup(GROUPS_ALL)));
    assert_eq!(add(1, Indirect, &[]), invalid);
    assert_eq!(add(1, Indirect, &three[..2]), invalid);
    assert_eq!(add(1, All, &[to_port(0, 1, 1)]), invalid);
    assert_eq!(add(1, FastFailover, &three[..1]), invalid);
    let watch = |port, group| [BucketSpec { id: 0, ..watching(port, group, 1) }];
    assert_eq!(add(1, FastFailover, &watch(Some(9), None)), Err(GroupError::BadWatchPort(9)));
    assert_eq!(add(1, Select, &watch(None, Some(9))), Err(GroupError::BadWatchGroup(9)));
    assert_eq!(add(1, FastFailover, &watch(None, Some(1))), Err(GroupError::Loop(1)));
    let id = BUCKET_NO_MAX + 1;
    assert_eq!(add(1, Select, &[to_port(id, 1, 1)]), Err(GroupError::BadBucket(id)));
    let twins = [to_port(4, 1, 1), to_port(4, 1, 1)];
    assert_eq!(add(1, Select, &twins), Err(GroupError::BucketExists(4)));
    assert_eq!(add(1, All, &three), Err(GroupError::OutOfBuckets(2)));
    assert_eq!(add(1, All, &three[..2]), Ok(()));
    assert_eq!(add(1, All, &three[..2]), Err(GroupError::GroupExists(1)));
    assert_eq!(add(2, All, &three[..2]), Err(GroupError::OutOfBuckets(3)));
    assert_eq!(add(2, All, &three[..1]), Ok(()));
    assert_eq!(add(3, All, &[]), Err(GroupError::OutOfGroups(2)));
    assert_eq!(groups.modify(group(3, All, &[])), Err(GroupError::UnknownGroup(3)));
    assert_eq!(groups.modify(group(2, All, &three[..2])), Err(GroupError::OutOfBuckets(3)));
    // A select group with several buckets needs a weight.
    assert_eq!(groups.modify(group(1, Select, &three[1..])), invalid);
    // Replaced buckets do not count against the limit.
    let weighted = [to_port(1, 0, 1), to_port(2, 1, 1)];
    assert_eq!(groups.modify(group(1, Select, &weighted)), Ok(()));
    assert_eq!(groups.modify(group(1, Select, &three[..1])), Ok(()));
}

/// Creates groups in layers; each group sends to all groups of the layer below.
fn layered(layers: u32, width: u32) -> GroupTable {
    let mut groups = table();
    for number in 0..layers * width {
        let below = (number / width).checked_sub(1).map(|layer| layer * width);
        let below = below.into_iter().flat_map(|first| first..first + width);
        let buckets: Vec<_> = below.zip(0..).map(|(to, id)| to_group(id, to + 1)).collect();
        groups.add(group(number + 1, GroupKind::All, &buckets), AT).unwrap();
    }
    groups
}

#[test]
fn a_group_change_checks_chains_within_its_budget() {
    const STEPS: usize = 100;
    let mut groups = layered(14, 40);
    groups.add(group(700, GroupKind::All, &[]), AT).unwrap();
    for number in 701..=703 {
        groups.add(group(number, GroupKind::All, &[to_group(0, number - 1)]), AT).unwrap();
    }
    let mut run = |spec: GroupSpec| {
        let (mut change, mut calls) = (GroupChange::modify(spec), 0);
        loop {
            calls += 1;
            let mut budget = STEPS;
            let outcome = groups.change_some(&mut change, AT, &mut budget);
            if !matches!(outcome, Ok(Progress::More)) {
                return (outcome, calls);
            }
            assert_eq!(budget, 0, "each step uses its complete budget");
        }
    };
    let first = |to: u32| group(1, GroupKind::All, &[to_group(0, to)]);
    // The check examines every chain that starts above: 13 layers of 40 groups with 40 references
    // each.
    let (outcome, calls) = run(first(700));
    assert_eq!(outcome, Ok(Progress::Done));
    assert!(calls > 200, "{calls} calls");
    let (outcome, calls) = run(first(703));
    assert_eq!(outcome, Err(GroupError::ChainTooLong(CHAIN_MAX)));
    assert!(calls > 10, "{calls} calls");
    let (outcome, _) = run(first(14 * 40));
    assert!(matches!(outcome, Err(GroupError::Loop(_))), "{outcome:?}");
    let (outcome, calls) = run(group(1, GroupKind::All, &[to_port(0, 0, 1)]));
    assert_eq!((outcome, calls), (Ok(Progress::Done), 1), "it sends to no group");
    let (outcome, calls) = run(group(14 * 40, GroupKind::All, &[to_group(0, 700)]));
    // It sent to 40 groups, whose references are removed.
    assert!(outcome == Ok(Progress::Done) && calls <= 5, "no group sends to it: {calls} calls");
}

/// Executes a command in calls with a budget of `steps`. Returns the outcome and the number of
/// calls. Before the last calls the group is as before.
fn change_in_steps(
    groups: &mut GroupTable,
    mut change: GroupChange,
    number: GroupNo,
    steps: usize,
) -> (Result<(), GroupError>, usize) {
    let before = groups.records(number, AT);
    let (mut calls, mut is_installed) = (0, false);
    loop {
        calls += 1;
        let mut budget = steps;
        let outcome = groups.change_some(&mut change, AT, &mut budget);
        is_installed |= groups.records(number, AT) != before;
        match outcome {
            Ok(Progress::More) => assert_eq!(budget, 0, "it goes on as far as it may"),
            Ok(Progress::Done) => return (Ok(()), calls),
            Err(why) => {
                assert!(!is_installed, "a command that fails changes nothing");
                return (Err(why), calls);
            }
        }
    }
}

#[test]
fn a_group_of_many_buckets_is_created_a_bounded_number_of_buckets_at_a_time() {
    const STEPS: usize = 200;
    let mut groups = table();
    let targets = 2..=1025;
    for number in targets.clone() {
        groups.add(group(number, GroupKind::Indirect, &[to_port(0, 0, 1)]), AT).unwrap();
    }
    let buckets: Vec<BucketSpec> = targets.zip(0..).map(|(to, id)| to_group(id, to)).collect();
    let spec = |buckets: &[BucketSpec]| group(1, GroupKind::All, buckets);
    let run = |groups: &mut GroupTable, change| match change_in_steps(groups, change, 1, STEPS) {
        (Ok(()), calls) => calls,
        (Err(why), _) => panic!("{why}"),
    };
    let references =
        |groups: &GroupTable| [2, 500, 1025].map(|number| groups.count_referrers(number));
    // Each bucket takes 17 steps, and 8 for its reference.
    let calls = run(&mut groups, GroupChange::add(spec(&buckets)));
    assert!(calls >= 120, "adding takes {calls} calls");
    assert_eq!(
        (groups.records(1, AT)[0].spec.clone(), references(&groups)),
        (spec(&buckets), [1; 3])
    );
    groups.open(1, 1023, 60);
    // Buckets that stay take 8 steps.
    let calls = run(&mut groups, GroupChange::remove(1, BucketPlace::Id(498)));
    assert!(calls >= 40, "removing takes {calls} calls");
    assert_eq!(references(&groups), [1, 0, 1]);
    let change = GroupChange::insert(1, BucketPlace::Id(497), buckets[498..499].to_vec());
    let calls = run(&mut groups, change);
    assert!(calls >= 40, "inserting takes {calls} calls");
    let record = groups.records(1, AT).remove(0);
    assert_eq!((record.spec, references(&groups)), (spec(&buckets), [1; 3]));
    assert_eq!(record.buckets[1023].frames, 1, "buckets that stay keep their counters");
    let few = [to_port(0, 0, 1)];
    let calls = run(&mut groups, GroupChange::modify(spec(&few)));
    assert!(calls >= 40, "the references of the old group are removed in {calls} calls");
    assert_eq!((groups.records(1, AT)[0].spec.clone(), references(&groups)), (spec(&few), [0; 3]));
    // What fails at the last bucket changes nothing.
    let mut wrong = buckets;
    wrong.push(to_port(0, 0, 1));
    wrong.remove(7);
    let (outcome, calls) =
        change_in_steps(&mut groups, GroupChange::modify(spec(&wrong)), 1, STEPS);
    assert!(
        outcome == Err(GroupError::BucketExists(0)) && calls > 80,
        "{outcome:?}, {calls} calls"
    );
    assert_eq!((groups.records(1, AT)[0].spec.clone(), references(&groups)), (spec(&few), [0; 3]));
}

#[test]
fn commands_in_steps_have_the_outcome_of_commands_at_once() {
    for seed in 0..20 {
        let mut dice = Rng::new(seed);
        let (mut at_once, mut in_steps) = (table(), table());
        for turn in 0..300 {
            let number = 1 + dice.roll(4) as u32;
            let mut bucket = || match dice.roll(4) {
                0 => to_group(dice.roll(8) as u32, 1 + dice.roll(5) as u32),
                _ => to_port(dice.roll(8) as u32, 0, 1 + dice.roll(5) as u32),
            };
            let buckets: Vec<BucketSpec> = (0..turn % 5).map(|_| bucket()).collect();
            let place = match dice.roll(5) {
                0 => BucketPlace::First,
                1 => BucketPlace::Last,
                2 => BucketPlace::All,
                _ => BucketPlace::Id(dice.roll(8) as u32),
            };
            let spec = group(number, GroupKind::All, &buckets);
            let kind = dice.roll(5);
            let change = || match kind {
                0 | 1 => GroupChange::add(spec.clone()),
                2 => GroupChange::modify(spec.clone()),
                3 => GroupChange::insert(number, place, buckets.clone()),
                _ => GroupChange::remove(number, place),
            };
            if dice.roll(20) == 0 {
                let outcome = deleted(&mut at_once, number);
                assert_eq!(deleted(&mut in_steps, number), outcome);
            }
            let wanted = at_once.change(change(), AT);
            let (outcome, _) = change_in_steps(&mut in_steps, change(), number, 10);
            assert_eq!(outcome, wanted, "seed {seed}, turn {turn}");
            let records = at_once.records(GROUPS_ALL, AT);
            assert_eq!(in_steps.records(GROUPS_ALL, AT), records, "seed {seed}, turn {turn}");
            let sums = records.iter().map(|record| record.spec.buckets.len()).sum::<usize>();
            assert_eq!((at_once.buckets, in_steps.buckets), (sums, sums));
        }
    }
}

#[test]
fn liveness_is_computed_only_for_the_group_of_the_frame() {
    let mut groups = table();
    for number in 1..=4000 {
        let buckets = [watching(Some(1), None, 1), watching(Some(2), None, 2)];
        groups.add(group(number, GroupKind::FastFailover, &buckets), AT).unwrap();
    }
    let lives = |groups: &GroupTable| groups.live.len();
    assert_eq!(chosen(&mut groups, 1), 1);
    groups.set_port_live(1, false);
    assert_eq!((chosen(&mut groups, 1), lives(&groups)), (2, 1));
}

#[test]
fn cloning_and_deleting_cost_only_the_groups_that_differ() {
    let mut groups = table();
    for number in 1..=4000 {
        groups.add(group(number, GroupKind::All, &[to_port(0, 0, 1)]), AT).unwrap();
    }
    let mut next = groups.clone();
    next.modify(group(7, GroupKind::All, &[to_port(0, 0, 2)])).unwrap();
    assert!(next.free_some(&mut 200), "the clone shares all but a few groups");
    let mut gone = groups.delete(GROUPS_ALL).unwrap();
    assert_eq!((groups.count(), gone.count()), (0, 4000));
    assert!(gone.contains(4000) && !groups.contains(4000));
    let mut calls = 1;
    while !gone.free_some(&mut 500) {
        calls += 1;
    }
    // One step for each group and for each bucket.
    assert_eq!(calls, 17);
}
