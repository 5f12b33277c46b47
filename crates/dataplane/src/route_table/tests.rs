//! Tests of the table against a linear search for the longest prefix.

use proptest::prelude::*;

use super::*;

fn prefix(text: &str) -> Prefix {
    let (address, length) = text.split_once('/').expect("address/length");
    Prefix::new(address.parse().unwrap(), length.parse().unwrap()).expect("at most 32")
}

fn link(port: PortNo) -> NextHop {
    NextHop::Link { port }
}

fn find(table: &RouteTable, address: &str) -> Option<NextHop> {
    table.lookup(address.parse().unwrap()).map(|id| table.hop(id))
}

#[test]
fn a_prefix_clears_host_bits_and_has_a_last_address() {
    let net: Prefix = Prefix::new([10, 1, 2, 3].into(), 22).unwrap();
    assert_eq!((net.to_string(), net.last()), ("10.1.0.0/22".into(), [10, 1, 3, 255].into()));
    assert!(net.holds([10, 1, 3, 9].into()) && !net.holds([10, 1, 4, 0].into()));
    let all = Prefix::new([10, 1, 2, 3].into(), 0).unwrap();
    assert_eq!((all.to_string(), all.last()), ("0.0.0.0/0".into(), Ipv4Addr::BROADCAST));
    assert_eq!(<Prefix>::new([1, 2, 3, 4].into(), 33), None);
    assert_eq!(prefix("1.2.3.4/32").last(), Ipv4Addr::new(1, 2, 3, 4));
}

#[test]
fn the_longest_prefix_wins_at_every_level() {
    let mut table = RouteTable::new(100);
    for (net, port) in [
        ("0.0.0.0/0", 1),
        ("10.0.0.0/8", 2),
        ("10.1.0.0/16", 3),
        ("10.1.2.0/24", 4),
        ("10.1.2.128/25", 5),
        ("10.1.2.200/32", 6),
    ] {
        table.insert(prefix(net), link(port)).unwrap();
    }
    for (address, port) in [
        ("9.255.255.255", 1),
        ("10.0.0.0", 2),
        ("10.1.0.1", 3),
        ("10.1.2.127", 4),
        ("10.1.2.128", 5),
        ("10.1.2.200", 6),
        ("10.1.2.201", 5),
        ("10.2.0.0", 2),
        ("11.0.0.0", 1),
    ] {
        assert_eq!(find(&table, address), Some(link(port)), "{address}");
    }
    table.remove(prefix("0.0.0.0/0"));
    assert_eq!(find(&table, "11.0.0.0"), None);
}

#[test]
fn a_full_table_rejects_new_routes_and_still_replaces() {
    let mut table = RouteTable::new(2);
    table.insert(prefix("10.0.0.0/8"), link(1)).unwrap();
    table.insert(prefix("11.0.0.0/8"), link(1)).unwrap();
    assert_eq!(table.insert(prefix("12.0.0.0/8"), link(1)), Err(RouteTableFull(2)));
    assert_eq!(table.insert(prefix("11.0.0.0/8"), link(2)), Ok(()));
    assert_eq!(find(&table, "11.0.0.1"), Some(link(2)));
    assert_eq!((find(&table, "12.0.0.1"), table.len()), (None, 2));
}

#[test]
fn many_routes_take_moderate_memory_and_free_it() {
    let mut table: RouteTable = RouteTable::new(1 << 18);
    let nets = || (0..1u32 << 17).map(|net| Prefix::new((net << 8 | 10 << 25).into(), 24).unwrap());
    for (number, net) in nets().enumerate() {
        table.insert(net, link(number as PortNo & 0xff)).unwrap();
    }
    assert!(table.memory_bytes() < 1 << 20, "{} bytes for 131,072", table.memory_bytes());
    for (number, net) in nets().enumerate().step_by(97) {
        let found = table.lookup(net.last()).map(|id| table.hop(id));
        assert_eq!(found, Some(link(number as PortNo & 0xff)));
    }
    let before = table.memory_bytes();
    nets().skip(10).for_each(|net| assert!(table.remove(net).is_some()));
    assert!(table.memory_bytes() < before - (before - 262_144) / 2, "{before} before");
    assert_eq!((table.len(), table.hops_free.len()), (10, 246));
    let left: Vec<bool> = nets().map(|net| table.lookup(net.last()).is_some()).collect();
    assert!(left.iter().enumerate().all(|(number, found)| *found == (number < 10)));
}

#[test]
fn removing_routes_frees_their_levels() {
    let mut table = RouteTable::new(10_000);
    table.insert(prefix("0.0.0.0/0"), link(1)).unwrap();
    let host = |number: u32| Prefix::new((number << 16 | 7).into(), 32).unwrap();
    let empty = table.memory_bytes();
    let sizes: Vec<usize> = (0..5000)
        .map(|number| {
            table.insert(host(number), link(2)).unwrap();
            table.memory_bytes()
        })
        .collect();
    for number in (0..5000).rev() {
        assert_eq!(table.memory_bytes(), sizes[number as usize]);
        assert_eq!(table.remove(host(number)), Some(link(2)));
    }
    assert_eq!(table.memory_bytes(), empty);
}

#[test]
fn a_flush_takes_effect_immediately_and_frees_memory_in_steps() {
    let mut table = RouteTable::new(10_000);
    let own = (prefix("10.0.0.0/8"), link(1));
    table.insert(own.0, own.1).unwrap();
    for number in 0..5000u32 {
        let host = Prefix::new((number << 16 | 7).into(), 32).unwrap();
        table.insert(host, link(2 + number % 3)).unwrap();
    }
    let generation = table.generation;
    let mut left = table.keep_only(&[own]);
    assert!(table.generation > generation);
    assert_eq!(
        (table.len(), find(&table, "10.0.0.7"), find(&table, "0.9.0.7")),
        (1, Some(link(1)), None)
    );
    let mut turns = 0;
    loop {
        let (before, mut steps) = (left.len(), 100);
        let is_left = left.dismantle(&mut steps);
        assert!(before - left.len() <= 100 && steps == 0);
        turns += 1;
        if !is_left {
            break;
        }
    }
    // 5,001 routes and 4 next hops in turns of 100; the last turn frees the first of 3 pieces of
    // memory.
    assert_eq!(turns, 51 + 3);
}

#[test]
fn adding_and_removing_routes_leaks_no_levels() {
    let mut table = RouteTable::new(100);
    table.insert(prefix("0.0.0.0/0"), link(1)).unwrap();
    // One host in each of more networks than there are levels for.
    for number in 0..300_000u32 {
        let host = Prefix::new((number << 12 | 7).into(), 32).unwrap();
        table.insert(host, link(2)).expect("removed routes free their levels");
        assert_eq!(find(&table, &host.address().to_string()), Some(link(2)));
        assert_eq!(table.remove(host), Some(link(2)));
        assert_eq!(find(&table, &host.address().to_string()), Some(link(1)));
    }
    assert!(table.memory_bytes() < 10 << 20, "{}", table.memory_bytes());
}

/// Finds the longest prefix that contains the address by linear search.
fn naive(routes: &[(Prefix, NextHop)], address: Ipv4Addr) -> Option<NextHop> {
    let holding = routes.iter().filter(|(prefix, _)| prefix.holds(address));
    holding.max_by_key(|(prefix, _)| prefix.length()).map(|&(_, hop)| hop)
}

/// Draws prefixes that often cover one another.
fn any_prefix() -> impl Strategy<Value = Prefix> {
    let bits = prop_oneof![Just(0u32), Just(0xff), any::<u32>()];
    (0u32..3, 0u32..3, bits, 0u8..=32).prop_map(|(a, b, low, length)| {
        Prefix::new((a << 24 | b << 16 | low & 0x3_ffff).into(), length).expect("at most 32")
    })
}

proptest! {
    #[test]
    fn lookups_agree_with_a_linear_search(
        changes in proptest::collection::vec((any_prefix(), 0u32..5, 0u8..4), 0..60),
        addresses in proptest::collection::vec(any_prefix(), 40),
    ) {
        let mut table = RouteTable::new(1000);
        let mut routes: Vec<(Prefix, NextHop)> = Vec::new();
        for (prefix, port, action) in changes {
            let known = routes.iter().position(|(other, _)| *other == prefix);
            // One step in four removes, and preferably a known route.
            if action == 0 && !routes.is_empty() {
                let at = known.unwrap_or(port as usize % routes.len());
                let (gone, hop) = routes.swap_remove(at);
                prop_assert_eq!(table.remove(gone), Some(hop));
            } else {
                table.insert(prefix, link(port)).expect("room");
                match known {
                    Some(at) => routes[at].1 = link(port),
                    None => routes.push((prefix, link(port))),
                }
            }
            let ends = addresses.iter().flat_map(|net| [net.address(), net.last()]);
            let probes: Vec<Ipv4Addr> = ends.collect();
            for probes in probes.chunks(SIGHTS_MAX - 1) {
                let mut hops = [Some(HopId(99)); SIGHTS_MAX];
                table.lookup_many(probes, &mut hops);
                for (&probe, hop) in probes.iter().zip(hops) {
                    let found = table.lookup(probe).map(|id| table.hop(id));
                    prop_assert_eq!(found, naive(&routes, probe), "{}", probe);
                    prop_assert_eq!(hop.map(|id| table.hop(id)), found, "{}", probe);
                }
            }
        }
        prop_assert_eq!(table.len(), routes.len());
        for (prefix, _) in routes {
            prop_assert!(table.remove(prefix).is_some());
        }
        for probe in addresses.iter().flat_map(|net| [net.address(), net.last()]) {
            prop_assert_eq!(table.lookup(probe), None);
        }
        prop_assert_eq!(table.hops_free.len(), table.hops.len());
    }
}

/// Draws addresses of a few networks and hosts of both families, in trie format.
fn any_wide() -> impl Strategy<Value = Address> {
    let few = || 0u128..3;
    (few(), few(), few(), any::<u16>()).prop_map(|(a, b, c, low)| {
        a << 120 | b << 104 | c << 96 | u128::from(low & 0x301) << 64 | u128::from(low & 3)
    })
}

/// A change of the active version, or of a staged copy.
type Step = (Address, u8, u16);

/// Checks that alternating versions equal a newly built table.
fn check_versions<A: Net + fmt::Debug>(steps: &[Vec<(Step, bool)>], ends: &[u8]) {
    let make = |known: &BTreeMap<Prefix<A>, NextHop>| {
        let mut table = RouteTable::new(1000);
        known.iter().for_each(|(prefix, hop)| table.insert(*prefix, *hop).expect("room"));
        table
    };
    let mut known: BTreeMap<Prefix<A>, NextHop> = BTreeMap::new();
    let mut table = make(&known);
    let probes = || steps.iter().flatten().map(|((wide, ..), _)| A::of_wide(*wide | 1));
    let found = |table: &RouteTable<NextHop, A>| -> Vec<Option<NextHop>> {
        probes().map(|it| table.lookup(it).map(|id| table.hop(id))).collect()
    };
    for (steps, end) in steps.iter().zip(ends) {
        let (before, known_before) = (found(&table), known.clone());
        let mut apart = table.part().expect("no other version exists");
        assert!(table.part().is_none(), "two versions cannot both be changed");
        for ((wide, length, port), removes) in steps {
            let prefix = Prefix::within(A::of_wide(*wide), length % (A::BITS + 1));
            let hop = link((*port).into());
            if *removes {
                assert_eq!(apart.remove(prefix), known.remove(&prefix));
            } else {
                apart.insert(prefix, hop).expect("room");
                known.insert(prefix, hop);
            }
        }
        let fresh = make(&known);
        assert_eq!(found(&apart), found(&fresh), "the staged version");
        assert!(apart.iter().eq(fresh.iter()), "its list");
        assert_eq!(found(&table), before, "the previous version");
        if *end == 0 {
            // The staged copy is discarded.
            known = known_before;
        } else {
            table = apart;
        }
    }
}

proptest! {
    // Prefixes of length zero write a complete first level each.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn staged_versions_equal_newly_built_tables(
        steps in proptest::collection::vec(
            proptest::collection::vec(
                ((any_wide(), any::<u8>(), 0u16..4), any::<bool>()), 0..20),
            1..8),
        ends in proptest::collection::vec(0u8..3, 8),
    ) {
        check_versions::<Ipv4Addr>(&steps, &ends);
        check_versions::<Ipv6Addr>(&steps, &ends);
    }
}
