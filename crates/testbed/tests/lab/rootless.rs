//! The lab without root: a user namespace in which the run is root.

use crate::fixture::{PATIENCE, Root, wiring};
use crate::raw::{Raw, frame};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use testbed::namespace::{PrivilegeSource, enter_rootless};
use testbed::peer::Peer;
use testbed::peer::linux_bridge::LinuxBridge;
use testbed::peer::openvswitch::OpenVswitch;
use testbed::{Lab, requirement};

/// A forwarding bridge, without any privilege.
pub fn child(root: &Path) {
    assert!(!requirement::privileged());
    assert_eq!(enter_rootless(), Ok(PrivilegeSource::Rootless));
    assert!(requirement::privileged());
    assert_eq!(enter_rootless(), Ok(PrivilegeSource::Privileged));
    let lab = Lab::open(root).unwrap();
    let site = lab.site("rootless", &wiring()).unwrap();
    let threads: Vec<_> = site.target.iter().filter_map(|end| end.threads.clone()).collect();
    for found in &threads {
        // A kernel thread belongs to no user namespace: it works, but on any core.
        assert!(!found.pinned && found.refused.is_some(), "{found:?}");
    }
    assert_eq!(threads.len(), 2);
    let mut bridge = LinuxBridge::new(Duration::from_secs(300));
    bridge.start(&site).unwrap();
    bridge.ready(PATIENCE).unwrap();
    let (one, two) = (Raw::open(&site.instrument[0]), Raw::open(&site.instrument[1]));
    let sent = frame([0xff; 6], [2; 6], 1);
    one.send(&sent).unwrap();
    assert_eq!(two.receive(PATIENCE, |_| true).unwrap(), sent);
    assert!(site.account().unwrap().links["p1"].received > 0);
    let described = bridge.describe();
    assert_eq!(described.settings["receive_threads_pinned"], "false");
    assert!(described.settings.contains_key("receive_threads_refused"));
    bridge.stop().unwrap();
}

pub fn child_with_ovs(root: &Path) {
    enter_rootless().unwrap();
    let lab = Lab::open(root).unwrap();
    let site = lab.site("rootless", &wiring()).unwrap();
    let mut ovs = OpenVswitch::default();
    ovs.start(&site).unwrap();
    ovs.ready(PATIENCE).unwrap();
    ovs.stop().unwrap();
}

pub fn a_lab_works_without_root() {
    run("rootless");
}

pub fn open_vswitch_works_without_root() {
    run("rootless-ovs");
}

/// Runs a child as the user nobody, from a copy of the program that this user can execute.
///
/// Machines differ in whether all users may open `/dev/net/tun`. Here all users may, in a mount
/// namespace that ends with the child.
fn run(name: &str) {
    let root = Root::new();
    std::fs::create_dir(&root.0).unwrap();
    let program = root.0.join("child");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&root.0, PermissionsExt::from_mode(0o777)).unwrap();
    let runs = root.0.join("runs");
    let script = "mknod -m 666 \"$1\" c 10 200 && mount --bind \"$1\" /dev/net/tun && shift \
                  && exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$@\"";
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"])
        .arg(root.0.join("tun"))
        .arg(&program)
        .args(["--child", name])
        .arg(&runs)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    print!("{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(std::fs::read_dir(&runs).unwrap().count(), 0);
}
