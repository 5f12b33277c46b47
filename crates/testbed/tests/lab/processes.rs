//! Processes: they run in the right place, report failures, and always end.

use crate::fixture::{PATIENCE, Root, in_time, processes_with};
use std::fs;
use std::time::Duration;
use testbed::process::{Process, ProcessSpec};
use testbed::{LabError, Namespace, RunFolder, affinity, proc};

fn shell(folder: &RunFolder, script: &str) -> ProcessSpec {
    ProcessSpec {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        environment: Vec::new(),
        log: folder.path().join("log"),
        namespace: None,
        cores: Vec::new(),
    }
}

pub fn an_exited_process_reports_its_last_output() {
    let root = Root::new();
    let folder = RunFolder::create(&root.0).unwrap();
    let script = "for i in 1 2 3 4 5 6 7; do echo line $i; done; exit 3";
    let mut process = Process::start(shell(&folder, script), &folder).unwrap();
    let error = process.wait_ready(PATIENCE, || false).unwrap_err();
    let LabError::Exited { program, status, last } = error else {
        panic!("{error}");
    };
    assert_eq!((program.as_str(), status.code()), ("sh", Some(3)));
    assert_eq!(last, ["line 3", "line 4", "line 5", "line 6", "line 7"]);
    let mut absent = shell(&folder, "");
    absent.program = "/no/such/program".into();
    let error = Process::start(absent, &folder).unwrap_err();
    assert_eq!(error.number(), Some(libc::ENOENT));
    assert!(error.to_string().contains("/no/such/program"), "{error}");
}

pub fn a_process_runs_in_its_namespace_and_on_its_core() {
    let root = Root::new();
    let folder = RunFolder::create(&root.0).unwrap();
    let namespace = Namespace::create().unwrap();
    let core = affinity::affinity(0).unwrap()[0];
    let script = "echo $PATH; set; exec sleep 100";
    let launch = ProcessSpec {
        namespace: Some(namespace.clone()),
        cores: vec![core],
        ..shell(&folder, script)
    };
    let mut process = Process::start(launch, &folder).unwrap();
    let pid = process.pid();
    let is_sleep = || fs::read_to_string(format!("/proc/{pid}/comm")).unwrap() == "sleep\n";
    process.wait_ready(PATIENCE, is_sleep).unwrap();
    let network = fs::read_link(format!("/proc/{pid}/ns/net")).unwrap();
    assert_eq!(network.to_string_lossy(), namespace.label());
    assert_eq!(affinity::affinity(pid).unwrap(), [core]);
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(status.contains(&format!("PPid:\t{}", std::process::id())));
    let recorded = fs::read_to_string(folder.path().join("children")).unwrap();
    assert!(recorded.starts_with(&format!("{pid} ")));
    assert!(process.cpu_time().unwrap() > Duration::ZERO);
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(!log.contains("HOME="), "the environment is not inherited: {log}");
    let ended = process.stop(PATIENCE).unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(libc::SIGTERM));
    assert_eq!(proc::Identity::of(pid), None);
    let dropped = Process::start(shell(&folder, "exec sleep 100"), &folder).unwrap();
    let pid = dropped.pid();
    drop(dropped);
    assert_eq!(proc::Identity::of(pid), None);
}

/// A process in its own session, whose parent has died, ends with the folder.
pub fn descendants_end_with_the_folder() {
    let root = Root::new();
    let folder = RunFolder::create(&root.0).unwrap();
    let name = root.0.display().to_string();
    let script = format!("(setsid sh -c 'while :; do sleep 1; done' {name} &)");
    for _ in 0..2 {
        let mut process = Process::start(shell(&folder, &script), &folder).unwrap();
        assert!(process.wait_end(PATIENCE).unwrap().success());
    }
    assert!(in_time(|| processes_with(&name).len() == 2), "{:?}", processes_with(&name));
    let process = Process::start(shell(&folder, "sleep 100"), &folder).unwrap();
    drop(folder);
    // A shell that starts `sleep` is listed twice until the copy of it has become `sleep`.
    assert!(in_time(|| processes_with(&name).len() == 2), "{:?}", processes_with(&name));
    drop(process);
    assert_eq!(processes_with(&name), Vec::<u32>::new());
}

pub fn a_process_that_ignores_sigterm_is_killed() {
    let root = Root::new();
    let folder = RunFolder::create(&root.0).unwrap();
    let script = "trap '' TERM; echo deaf; while :; do sleep 0.01; done";
    let mut process = Process::start(shell(&folder, script), &folder).unwrap();
    let log = folder.path().join("log");
    process.wait_ready(PATIENCE, || fs::read_to_string(&log).unwrap() == "deaf\n").unwrap();
    let error = process.wait_ready(Duration::from_millis(20), || false).unwrap_err();
    assert!(matches!(&error, LabError::NotReady { last, .. } if last == &["deaf"]), "{error}");
    let ended = process.stop(Duration::from_millis(50)).unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(libc::SIGKILL));
}

/// A suspended program uses no CPU time, continues when resumed, and ends on request while
/// suspended.
pub fn a_process_is_suspended_and_resumed() {
    let root = Root::new();
    let folder = RunFolder::create(&root.0).unwrap();
    let mut process = Process::start(shell(&folder, "while :; do :; done"), &folder).unwrap();
    let pid = process.pid();
    let state = || proc::threads(pid).first().map(|thread| thread.state);
    assert!(crate::fixture::in_time(|| process.cpu_time().unwrap() > Duration::ZERO));
    process.hold();
    assert!(crate::fixture::in_time(|| state() == Some('T')), "{:?}", state());
    let held = process.cpu_time().unwrap();
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(process.cpu_time().unwrap(), held);
    process.release();
    assert!(crate::fixture::in_time(|| process.cpu_time().unwrap() > held));
    process.hold();
    assert!(crate::fixture::in_time(|| state() == Some('T')), "{:?}", state());
    let ended = process.stop(PATIENCE).unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(libc::SIGTERM));
}
