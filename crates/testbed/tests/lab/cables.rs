//! Namespaces and cables: they carry all frames, count losses, and vanish.

use crate::fixture::{PATIENCE, Root, in_time, wiring};
use crate::raw::{Raw, frame, segment};
use std::time::Duration;
use testbed::account::Account;
use testbed::ethtool::{self, Offload};
use testbed::netlink::link::VethEnd;
use testbed::{LabError, Namespace, Wiring, affinity};

fn names(namespace: &Namespace) -> Vec<String> {
    let links = namespace.netlink().unwrap().links().unwrap();
    let mut names: Vec<String> = links.into_iter().map(|link| link.name).collect();
    names.sort();
    names
}

pub fn a_site_is_created_and_removed() {
    let root = Root::new();
    let lab = root.lab();
    let site = lab.site("here", &wiring()).unwrap();
    assert_eq!(names(&lab.instrument), ["here-1", "here-2", "lo"]);
    assert_eq!(names(&site.namespace), ["lo", "p1", "p2"]);
    for name in ["p1", "p2"] {
        let link = site.namespace.netlink().unwrap().link(name).unwrap();
        assert!(link.up && link.carrying && !link.bridged, "{link:?}");
    }
    let (raw, far) = (Raw::open(&site.instrument[1]), Raw::open(&site.target[1]));
    let sent = frame([0xff; 6], site.instrument[1].mac, 7);
    raw.send(&sent).unwrap();
    assert_eq!(far.receive(PATIENCE, |_| true).unwrap(), sent);
    drop((raw, far));
    let folder = lab.folder.path().to_owned();
    assert!(folder.join("here").is_dir());
    drop(site);
    assert_eq!(names(&lab.instrument), ["lo"]);
    drop(lab);
    assert!(!folder.exists());
}

pub fn a_cable_is_removed_with_its_namespace() {
    let (one, other) = (Namespace::create().unwrap(), Namespace::create().unwrap());
    assert_ne!(one.label(), other.label());
    let end = |namespace: &Namespace, name: &str, last| VethEnd {
        namespace: namespace.clone(),
        name: name.to_owned(),
        mac: [2, 0, 0, 0, 0, last],
    };
    one.netlink().unwrap().veth_add(&end(&one, "near", 1), &end(&other, "far", 2), 1500).unwrap();
    assert_eq!(names(&one), ["lo", "near"]);
    // Only the kernel can remove the cable, when its other end has no holder any more.
    drop(other);
    assert!(in_time(|| names(&one) == ["lo"]));
}

pub fn offloads_are_off() {
    let root = Root::new();
    let lab = root.lab();
    let site = lab.site("offload", &wiring()).unwrap();
    for interface in site.instrument.iter().chain(&site.target) {
        let is_on =
            |offload| ethtool::offload(&interface.namespace, &interface.name, offload).unwrap();
        for offload in [
            Offload::ReceiveChecksum,
            Offload::TransmitChecksum,
            Offload::ScatterGather,
            Offload::Tso,
            Offload::Gso,
        ] {
            assert!(!is_on(offload), "{offload:?} of {}", interface.name);
        }
        assert!(is_on(Offload::Gro), "{}: threads require it", interface.name);
    }
}

pub fn kernel_threads_run_on_their_core() {
    let root = Root::new();
    let lab = root.lab();
    let wiring = wiring();
    let site = lab.site("threads", &wiring).unwrap();
    for (ends, cores) in
        [(&site.instrument, &wiring.cores.instrument), (&site.target, &wiring.cores.target)]
    {
        for interface in ends {
            let found = interface.threads.as_ref().unwrap();
            assert!(found.pinned && !found.threads.is_empty());
            for thread in &found.threads {
                assert_eq!(&affinity::affinity(*thread).unwrap(), cores);
                let name = std::fs::read_to_string(format!("/proc/{thread}/comm")).unwrap();
                assert!(name.starts_with(&format!("napi/{}-", interface.name)), "{name}");
            }
        }
    }
    // The target's thread processes the frames that the tester sends.
    let thread = site.target[0].threads.as_ref().unwrap().threads[0];
    let before = testbed::proc::cpu_time(thread).unwrap();
    let raw = Raw::open(&site.instrument[0]);
    // Some frames may be rejected if the thread does not keep up.
    (0..1000).for_each(|_| drop(raw.send(&frame([0xff; 6], site.instrument[0].mac, 1))));
    assert!(in_time(|| testbed::proc::cpu_time(thread).unwrap() > before));
    drop(site);
    assert!(
        in_time(|| testbed::proc::cpu_time(thread).is_none()),
        "the thread ends with its cable"
    );
    let without = Wiring { target_threaded: false, instrument_threaded: false, ..wiring };
    let site = lab.site("plain", &without).unwrap();
    assert!(site.target_threads().is_empty());
    let first = &site.target[0];
    assert!(!ethtool::offload(&first.namespace, &first.name, Offload::Gro).unwrap());
}

pub fn idle_interfaces_send_nothing() {
    let root = Root::new();
    let lab = root.lab();
    let site = lab.site("quiet", &wiring()).unwrap();
    let all: Vec<Raw> = site.instrument.iter().chain(&site.target).map(Raw::open).collect();
    // Long enough for IPv6 address detection and router solicitation, if they were enabled.
    std::thread::sleep(Duration::from_millis(1500));
    for raw in &all {
        assert_eq!(raw.drain(), Vec::<Vec<u8>>::new());
    }
    let disabled = site.namespace.setting("net/ipv6/conf/p1/disable_ipv6").unwrap();
    assert_eq!(disabled, "1");
}

pub fn a_direct_site_has_one_cable() {
    let root = Root::new();
    let lab = root.lab();
    let site = lab.direct("direct", &wiring()).unwrap();
    assert_eq!(names(&lab.instrument), ["direct-1", "direct-2", "lo"]);
    let (one, two) = (Raw::open(&site.instrument[0]), Raw::open(&site.instrument[1]));
    let sent = frame(site.instrument[1].mac, site.instrument[0].mac, 9);
    one.send(&sent).unwrap();
    assert_eq!(two.receive(PATIENCE, |_| true).unwrap(), sent);
}

/// Sends more than a cable, and then a socket, can hold, and finds every frame in a counter.
pub fn every_lost_frame_is_counted() {
    let root = Root::new();
    let lab = root.lab();
    // Sender and receiving thread share one core, so that the ring between them overflows.
    let mut wiring = wiring();
    wiring.cores.target = vec![wiring.cores.instrument[0]];
    let site = lab.site("loss", &wiring).unwrap();
    let near = || Account::of(&lab.instrument).unwrap();
    let (slow, raw) = (Raw::open(&site.target[0]), Raw::open(&site.instrument[0]));
    slow.set(libc::SOL_SOCKET, libc::SO_RCVBUF, 4096);
    let (near_before, far_before) = (near(), site.account().unwrap());
    let bytes = frame([0xff; 6], site.instrument[0].mac, 3);
    let sent = std::thread::scope(|scope| {
        let body = || {
            affinity::pin(0, &wiring.cores.target).unwrap();
            (0..50_000).filter(|_| raw.send(&bytes).is_ok()).count() as u64
        };
        scope.spawn(body).join().unwrap()
    });
    let lost_on_cable = |near: &Account| near.since(&near_before).links["loss-1"].transmit_dropped;
    let arrived = || site.account().unwrap().since(&far_before).links["p1"].received;
    assert!(in_time(|| lost_on_cable(&near()) + arrived() >= 50_000), "{:?}", near());
    let lost = near().since(&near_before);
    let far = site.account().unwrap().since(&far_before);
    println!("  sent {sent}: cable lost {:?}, socket lost {:?}", lost.losses(), far.losses());
    assert_eq!(lost_on_cable(&near()) + arrived(), 50_000);
    let in_socket = u64::from(far.sockets.iter().map(|socket| socket.dropped).sum::<u32>());
    let kept = slow.drain().len() as u64;
    assert!(in_socket > 0, "a queue of 4 KiB cannot hold what arrived");
    assert_eq!(kept + in_socket, far.links["p1"].received);
    assert_eq!(far.losses().get("p1 socket_dropped"), Some(&in_socket));
}

/// GRO is on because the threads require it, but it must not merge frames.
pub fn frames_are_not_merged() {
    let root = Root::new();
    let lab = root.lab();
    // Sender and receiving thread share one core, so that many frames wait when the thread runs.
    let mut wiring = wiring();
    wiring.cores.target = vec![wiring.cores.instrument[0]];
    let site = lab.site("merge", &wiring).unwrap();
    let (raw, far) = (Raw::open(&site.instrument[0]), Raw::open(&site.target[0]));
    let segments: Vec<Vec<u8>> = (0..200).map(|n| segment(site.target[0].mac, n)).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            affinity::pin(0, &wiring.cores.target).unwrap();
            segments.iter().for_each(|bytes| raw.send(bytes).unwrap());
        });
    });
    for expected in &segments {
        assert_eq!(&far.receive(PATIENCE, |_| true).unwrap(), expected);
    }
}

pub fn invalid_names_are_rejected() {
    let root = Root::new();
    let lab = root.lab();
    for name in ["", "thirteen-long", "a/b", "ü"] {
        let refused = lab.site(name, &wiring()).unwrap_err();
        assert!(matches!(refused, LabError::Argument { .. }), "{name:?}: {refused}");
    }
    for ports in [0, 65] {
        assert!(lab.site("ports", &Wiring { ports, ..wiring() }).is_err());
    }
    let missing = lab.instrument.netlink().unwrap().link("absent").unwrap_err();
    assert!(missing.to_string().contains("absent"), "{missing}");
    let twice = lab.site("twice", &wiring()).unwrap();
    let refused = lab.site("twice", &wiring()).unwrap_err();
    assert_eq!(refused.number(), Some(libc::EEXIST), "{refused}");
    drop(twice);
    // Partial results are removed too.
    assert!(in_time(|| names(&lab.instrument) == ["lo"]));
}
