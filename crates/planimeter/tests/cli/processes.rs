//! Tests that all processes of a run end with it, for any starter and any end of the run.
//!
//! Each run has a command (`--setup`) and a Python module that both leave a process in a separate
//! session, and a target. The runs differ in the privileges of the program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::common::{CommandResult, Folder, command};

/// Time limit of any wait; only a failure takes this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// Privileges of a run, and their source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rights {
    /// Those of this test: root's, or those in the program's own user namespace.
    Inherited,
    /// An ordinary user's, with the program's own user namespace.
    Rootless,
    /// An ordinary user's, with file capabilities of the program, as in the Debian package.
    File,
    /// Root's in a user namespace that permits no PID namespace.
    NoPidNamespace,
}

/// A folder with a world-executable copy of the program, and a script.
struct Place {
    folder: Folder,
    rights: Rights,
}

impl Place {
    /// Creates the folder; `None` if this machine does not support these privileges.
    fn new(rights: Rights, script_ends: bool) -> Option<Place> {
        // Not in a memory file system, where files may hold no capabilities.
        let name = format!("planimeter-processes-{rights:?}-{script_ends}-{}", std::process::id());
        let folder = Folder(std::env::temp_dir().join(name));
        fs::create_dir(&folder.0).unwrap();
        let place = Place { folder, rights };
        fs::copy(env!("CARGO_BIN_EXE_planimeter"), place.program()).unwrap();
        for (path, mode) in [(place.path(), 0o777), (&place.program(), 0o755)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        if rights == Rights::File {
            let given = Command::new("/usr/sbin/setcap")
                .arg("cap_net_admin,cap_net_raw,cap_sys_admin,cap_dac_override,cap_ipc_lock=p")
                .arg(place.program())
                .output();
            if !given.as_ref().is_ok_and(|output| output.status.success()) {
                println!("skipped, requires root and setcap (libcap2-bin): {given:?}");
                return None;
            }
        }
        let works = place.command(&["--version"]).output();
        if !works.as_ref().is_ok_and(|output| output.status.success()) {
            println!("{rights:?} skipped: {works:?}");
            return None;
        }
        let end = if script_ends { "self.end()" } else { "pass" };
        let script = format!(
            "import subprocess\nfrom planimeter import *\n\n\
             class Mine(Module):\n    \"\"\"Mine.\"\"\"\n\
             \x20   def needs(self):\n        return Needs(limit_s=600)\n\
             \x20   def start(self, facts):\n\
             \x20       subprocess.run(['sh', '-c', {:?}])\n\
             \x20       {end}\n",
            place.daemon("script")
        );
        fs::write(place.path().join("mine.py"), script).unwrap();
        Some(place)
    }

    fn path(&self) -> &Path {
        &self.folder.0
    }

    fn program(&self) -> PathBuf {
        self.path().join("planimeter")
    }

    /// Returns a shell command that leaves a process in a separate session, with this name in its
    /// arguments.
    fn daemon(&self, name: &str) -> String {
        let path = self.path().display();
        format!(
            "(setsid sh -c 'while :; do sleep 1; done' {path}/{name} </dev/null >/dev/null 2>&1 &)"
        )
    }

    fn command(&self, words: &[&str]) -> Command {
        let as_user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
        let limit = "echo 0 > /proc/sys/user/max_pid_namespaces && exec \"$0\" \"$@\"";
        let before: &[&str] = match self.rights {
            Rights::Inherited => &["env"],
            Rights::Rootless | Rights::File => &as_user,
            Rights::NoPidNamespace => &["unshare", "--user", "--map-root-user", "sh", "-c", limit],
        };
        let mut command = Command::new(before[0]);
        command.args(&before[1..]).arg(self.program()).args(words).current_dir(self.path());
        command.env("XDG_RUNTIME_DIR", self.path().join("processes"));
        command
    }

    /// Starts a run; its output goes to `printed`.
    fn run(&self) -> Child {
        let before = self.daemon("command");
        let words = ["run", "mine.py", "--on", "switch", "--link", "veth", "--effort", "quick"];
        let mut command = self.command(&words);
        let printed = fs::File::create(self.path().join("printed")).unwrap();
        command.args(["--set", "repeats=1", "--setup", &before]).stdin(Stdio::null());
        command.stdout(printed.try_clone().unwrap()).stderr(printed).spawn().unwrap()
    }

    fn printed(&self) -> String {
        fs::read_to_string(self.path().join("printed")).unwrap_or_default()
    }

    /// The command lines of the processes that name the folder.
    fn processes(&self) -> Vec<String> {
        let path = self.path().display().to_string();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let line = |entry: fs::DirEntry| fs::read(entry.path().join("cmdline")).ok();
        let lines =
            entries.filter_map(line).map(|line| String::from_utf8_lossy(&line).into_owned());
        lines.filter(|line| line.contains(&path)).map(|line| line.replace('\0', " ")).collect()
    }

    fn has(&self, part: &str) -> bool {
        self.processes().iter().any(|line| line.contains(part))
    }
}

/// Returns whether the condition becomes true within the time limit.
fn in_time(mut is_true: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !is_true() {
        if begun.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

fn ends_whole(rights: Rights) {
    let Some(place) = Place::new(rights, true) else { return };
    let status = place.run().wait().unwrap();
    assert!(status.success(), "{rights:?}: {}", place.printed());
    assert_eq!(place.processes(), Vec::<String>::new(), "{rights:?}");
}

/// A run whose command, script and target have all started.
fn killed(place: &Place) {
    let mut run = place.run();
    let parts = ["/script", "/command", "planimeter switch", "planimeter.protocol"];
    let is_up = in_time(|| parts.iter().all(|part| place.has(part)));
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(is_up, "{:?}: {}", place.rights, place.printed());
}

fn dies_whole(rights: Rights) {
    let Some(place) = Place::new(rights, false) else { return };
    killed(&place);
    assert!(in_time(|| place.processes().is_empty()), "{rights:?}: {:?}", place.processes());
}

#[test]
fn processes_end_with_their_run() {
    ends_whole(Rights::Inherited);
}

#[test]
fn processes_end_with_their_run_without_root() {
    ends_whole(Rights::Rootless);
}

#[test]
fn processes_end_with_their_run_with_file_capabilities() {
    ends_whole(Rights::File);
}

#[test]
fn processes_end_with_their_run_without_a_pid_namespace() {
    ends_whole(Rights::NoPidNamespace);
}

#[test]
fn processes_end_with_a_killed_run() {
    dies_whole(Rights::Inherited);
}

#[test]
fn processes_end_with_a_killed_run_without_root() {
    dies_whole(Rights::Rootless);
}

#[test]
fn processes_end_with_a_killed_run_with_file_capabilities() {
    dies_whole(Rights::File);
}

/// Tests that without a PID namespace the kernel ends the run's children, and the doctor ends their
/// children.
#[test]
fn doctor_ends_leftover_processes_of_a_killed_run_without_a_pid_namespace() {
    let Some(place) = Place::new(Rights::NoPidNamespace, false) else { return };
    killed(&place);
    let has_child = || place.has("planimeter switch") || place.has("planimeter.protocol");
    assert!(in_time(|| !has_child()), "{:?}", place.processes());
    let mut doctor = command(place.path(), &["doctor", "--clean", "--json"]);
    doctor.env("XDG_RUNTIME_DIR", place.path().join("processes"));
    let result: CommandResult = doctor.output().unwrap().into();
    assert_eq!(result.code, Some(0), "{}", result.errors);
    let swept: Value = serde_json::from_str(&result.output).unwrap();
    assert!(swept["killed"].as_array().unwrap().len() >= 2, "{swept}");
    assert!(in_time(|| place.processes().is_empty()), "{:?}", place.processes());
}

/// Tests that a process started by a command can measure: its `/proc` shows its own process IDs.
#[test]
fn a_command_can_run_the_program() {
    let folder = Folder::new();
    let program = env!("CARGO_BIN_EXE_planimeter");
    let inner = format!(
        "{program} run latency --on switch --link memory --set simulate=true --output inner"
    );
    let words = ["run", "latency", "--on", "switch", "--link", "memory", "--set", "simulate=true"];
    let before = format!("{inner} --set repeats=1 --set seconds=0.01 --setup 'kill -0 $$'");
    let set = ["--set", "repeats=1", "--set", "seconds=0.01", "--setup", &before];
    let output = command(&folder.0, &[&words[..], &set].concat()).output().unwrap();
    let result: CommandResult = output.into();
    assert_eq!(result.code, Some(0), "{}", result.errors);
    assert!(folder.0.join("inner").is_dir());
}
