//! Output of Open vSwitch 3.1.0 with DPDK 22.11.

use super::*;

const THREADS: &str = "\
pmd thread numa_id 0 core_id 1:
  packets received: 2466624
  packet recirculations: 3
  avg. datapath passes per packet: 1.00
  phwol hits: 0
  mfex opt hits: 0
  simple match hits: 2400000
  emc hits: 66600
  smc hits: 4
  megaflow hits: 15
  avg. subtable lookups per megaflow hit: 1.50
  miss with success upcall: 2
  miss with failed upcall: 3
  avg. packets per output batch: 32.00
  idle cycles: 3703613516 (46.76%)
  processing cycles: 4216242089 (53.24%)
  avg cycles per packet: 3210.81 (7919855605/2466624)
  avg processing cycles per packet: 1709.32 (4216242089/2466624)
main thread:
  packets received: 6
  packet recirculations: 0
  avg. datapath passes per packet: 0.00
  phwol hits: 0
  mfex opt hits: 0
  simple match hits: 0
  emc hits: 0
  smc hits: 0
  megaflow hits: 0
  avg. subtable lookups per megaflow hit: 0.00
  miss with success upcall: 0
  miss with failed upcall: 0
  avg. packets per output batch: 0.00
";

fn thread() -> ThreadStats {
    ThreadStats {
        core: Some(1),
        packets_received: 2_466_624,
        recirculations: 3,
        phwol_hits: 0,
        simple_match_hits: 2_400_000,
        emc_hits: 66_600,
        smc_hits: 4,
        megaflow_hits: 15,
        upcalls: 2,
        upcalls_lost: 3,
        cycles_idle: 3_703_613_516,
        cycles_busy: 4_216_242_089,
    }
}

#[test]
fn threads_are_parsed_one_by_one() {
    let main = ThreadStats { packets_received: 6, ..ThreadStats::default() };
    assert_eq!(parse_threads(THREADS), vec![thread(), main]);
    let found = thread();
    let places = found.simple_match_hits + found.emc_hits + found.smc_hits + found.megaflow_hits;
    assert_eq!(places + found.upcalls + found.upcalls_lost, found.packets_received);
}

#[test]
fn differences_between_two_readings() {
    let passed = thread().since(&ThreadStats { emc_hits: 600, cycles_busy: u64::MAX, ..thread() });
    let expected = ThreadStats { core: Some(1), emc_hits: 66_000, ..ThreadStats::default() };
    assert_eq!(passed, expected);
}

#[test]
fn damaged_threads_are_omitted() {
    for text in ["", "packets received: 5", "x:\n emc hits: 1", "emc hits: 1\nthread"] {
        assert_eq!(parse_threads(text), vec![], "{text:?}");
    }
    let odd = "pmd thread numa_id 0 core_id x:\n emc hits: -1\n smc hits: 99999999999999999999\n";
    assert_eq!(parse_threads(odd), vec![ThreadStats::default()]);
}

#[test]
fn totals_over_threads() {
    let totals = parse_datapath(THREADS);
    let check = |name: &str, wanted| assert_eq!(totals.get(name), wanted, "{name}");
    check("datapath.packets_received", Some(&2_466_630));
    check("datapath.miss_with_failed_upcall", Some(&3));
    check("datapath.idle_cycles", Some(&3_703_613_516));
    check("datapath.processing_cycles", Some(&4_216_242_089));
    assert!(totals.keys().all(|name| !name.contains("avg")), "{totals:?}");
    assert!(parse_datapath("odd\nx: -1\ny: 0.5\n").is_empty());
}

#[test]
fn polling_threads_are_parsed() {
    let text = "\
Time: 02:57:48.974
Measurement duration: 3.107 s

pmd thread numa_id 0 core_id 1:

  Iterations:              7028904  (0.44 us/it)
  - Used TSC cycles:    8065240013  ( 99.8 % of total cycles)
  - idle iterations:       6951726  ( 46.6 % of used cycles)
  - busy iterations:         77178  ( 53.4 % of used cycles)
  - sleep iterations:            0  (  0.0 % of iterations)
  Sleep time (us):               0  (  0 us/iteration avg.)
  Rx packets:              2469696  (795 Kpps, 1743 cycles/pkt)
  Datapath passes:         2469696  (1.00 passes/pkt)
  - PHWOL hits:                  0  (  0.0 %)
  - MFEX Opt hits:               0  (  0.0 %)
  - Simple Match hits:     2469695  (100.0 %)
  - EMC hits:                    0  (  0.0 %)
  - SMC hits:                    0  (  0.0 %)
  - Megaflow hits:               0  (  0.0 %, 0.00 subtbl lookups/hit)
  - Upcalls:                     1  (  0.0 %, 12.5 us/upcall)
  - Lost upcalls:                0  (  0.0 %)
  Tx packets:              2469696  (795 Kpps)
  Tx batches:                77178  (32.00 pkts/batch)
";
    let expected = Polling {
        iterations: 7_028_904,
        iterations_busy: 77_178,
        packets_sent: 2_469_696,
        bursts_sent: 77_178,
        upcall_us_mean: 12.5,
    };
    assert_eq!(parse_polling(text), expected);
    let twice = Polling { iterations: 14_057_808, ..expected };
    assert_eq!(parse_polling(&format!("{text}{text}")).iterations, twice.iterations);
    assert_eq!(parse_polling("Iterations: x\n- Upcalls: 1 (\n"), Polling::default());
}

#[test]
fn flows_and_their_limit_are_parsed() {
    let text = "\
netdev@ovs-netdev:
  flows         : (current 1) (avg 0) (max 3) (limit 10000)
  dump duration : 8ms
  ufid enabled : true

  7: (keys 1)
";
    assert_eq!(parse_flows(text), Flows { current: 1, most: 3, limit: 10_000, round_ms: 8 });
    assert_eq!(parse_flows("  flows : (current"), Flows::default());
}

#[test]
fn port_counters_are_named_by_position() {
    let text = "\
netdev@ovs-netdev:
  lookups: hit:0 missed:0 lost:0
  flows: 1
  port 0: ovs-netdev (tap)
    RX packets:0 errors:0 dropped:0 overruns:0 frame:0
    TX packets:0 errors:0 dropped:0 aborted:0 carrier:0
    collisions:0
    RX bytes:0  TX bytes:0
  port 2: p2 (dpdk: configured_rx_queues=1, configured_rxq_descriptors=2048)
    RX packets:4 errors:1 dropped:2 overruns:? frame:?
    TX packets:0 errors:0 dropped:1180448 aborted:? carrier:?
    collisions:?
    RX bytes:0  TX bytes:0
";
    let ports = ["p1".to_owned(), "p2".to_owned()];
    let expected = [
        ("port.2.received", 4),
        ("port.2.receive_errors", 1),
        ("port.2.receive_dropped", 2),
        ("port.2.sent", 0),
        ("port.2.transmit_errors", 0),
        ("port.2.transmit_dropped", 1_180_448),
    ];
    let expected = expected.map(|(name, count)| (name.to_owned(), count));
    assert_eq!(parse_ports(text, &ports), expected.into());
    assert!(parse_ports("port 1: p1\n RX packets:x\n RX\n", &ports).is_empty());
}

#[test]
fn a_port_without_counters_does_not_get_those_of_another() {
    let text = "\
  port 2: p2 (dpdkvhostuser: configured_rx_queues=1, configured_tx_queues=1, mtu=0)
, could not retrieve stats (Protocol error)  port 3: p1 (dpdkvhostuser: mtu=0)
    RX packets:7 errors:0 dropped:0 overruns:0 frame:0
";
    let counters = parse_ports(text, &["p1".to_owned(), "p2".to_owned()]);
    assert_eq!(counters.get("port.1.received"), Some(&7));
    assert!(counters.keys().all(|name| name.starts_with("port.1.")), "{counters:?}");
}

#[test]
fn coverage_totals_are_parsed() {
    let text = "Event coverage, avg rate over last: 5 seconds, last minute, last hour, hash=1\n\
        netdev_sent                0.0/sec     1.500/sec        0.0250/sec   total: 1234\n\
        datapath_drop_upcall_error 0.0/sec     0.000/sec        0.0000/sec   total: 5\n\
        odd total: x\n total: 7\n97 events never hit\n";
    let expected = [("coverage.netdev_sent", 1234), ("coverage.datapath_drop_upcall_error", 5)];
    assert_eq!(parse_coverage(text), expected.map(|(name, n)| (name.to_owned(), n)).into());
}

#[test]
fn the_number_of_learned_addresses_is_parsed() {
    let text = "Statistics for bridge \"br0\":\n  Current/maximum MAC entries in the table: \
                131/262144\n  Current static MAC entries in the table : 7\n  Total number of \
                learned MAC entries     : 900\n";
    assert_eq!(parse_addresses(text), Some(131));
    assert_eq!(parse_addresses("no such bridge"), None);
}
