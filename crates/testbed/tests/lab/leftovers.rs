//! A killed run leaves only its folder, and the next run removes it.

use crate::fixture::{PATIENCE, Root, in_time, processes_with, wiring};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use testbed::netlink::Netlink;
use testbed::peer::Peer;
use testbed::peer::openvswitch::OpenVswitch;
use testbed::proc::Identity;
use testbed::{Lab, runfolder};

/// A complete run that reports its start and then waits to be killed.
pub fn child(root: &Path) {
    let lab = Lab::open(root).unwrap();
    let site = lab.site("doomed", &wiring()).unwrap();
    let mut ovs = OpenVswitch::default();
    ovs.start(&site).unwrap();
    ovs.ready(PATIENCE).unwrap();
    // 0 means no thread: invisible threads are not waited for.
    println!("up {}", site.target_threads().first().unwrap_or(&0));
    std::io::stdout().flush().unwrap();
    std::thread::sleep(PATIENCE);
}

/// Starts this program as a run of this name, waits until it is up, and kills it with its children.
pub fn killed(name: &str, root: &Path) {
    let mut child = start(name, root);
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "up");
    child.kill().unwrap();
    child.wait().unwrap();
    let path = root.display().to_string();
    assert!(in_time(|| processes_with(&path).is_empty()), "the kernel ends the children");
}

fn start(name: &str, root: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--child", name])
        .arg(root)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

pub fn a_killed_run_is_cleaned_up() {
    let root = Root::new();
    let mut child = start("killed", &root.0);
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let thread: u32 = line.trim().strip_prefix("up ").unwrap().parse().unwrap();
    let path = root.0.display().to_string();
    // The run itself has the path on its command line too.
    assert_eq!(processes_with(&path).len(), 3);
    let living = runfolder::sweep(&root.0).unwrap();
    assert_eq!((living.removed.len(), living.kept.len()), (0, 1));
    let children: Vec<_> = processes_with(&path).into_iter().filter_map(Identity::of).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    let lives = || children.iter().any(|child| child.lives());
    assert!(in_time(|| !lives()), "the kernel ends the children");
    assert!(in_time(|| testbed::proc::cpu_time(thread).is_none()), "and the namespaces");
    let lab = root.lab();
    assert_eq!(lab.swept.removed.len(), 1);
    assert_eq!(lab.swept.killed, Vec::<u32>::new(), "no process was left to kill");
    drop(lab);
    assert_eq!(std::fs::read_dir(&root.0).unwrap().count(), 0);
}

/// As root on a development machine everything but the module is available; the checks leave
/// nothing behind.
pub fn checking_requirements_leaves_nothing_behind() {
    let own = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = own();
    let findings = testbed::survey();
    for finding in &findings {
        println!("  {}: {:?}", finding.name, finding.result);
        assert!(finding.optional || finding.result.is_ok(), "{finding:?}");
        if let Err(need) = &finding.result {
            assert!(!need.mend().is_empty());
        }
    }
    assert!(findings.iter().any(|finding| finding.name == "privilege" && finding.result.is_ok()));
    assert!(in_time(|| processes_with("napi/try").is_empty()));
    assert_eq!(own(), before, "a descriptor leaked");
    let links = Netlink::open().unwrap().links().unwrap();
    assert!(links.iter().all(|link| !link.name.starts_with("try")));
}
