//! The sweep removes leftover resources of dead runs and nothing else.

use super::*;
use std::process::Command;

/// A root for one test, removed afterwards.
struct Root(PathBuf);

impl Root {
    fn new(name: &str) -> Root {
        let own = std::process::id();
        let path = std::env::temp_dir().join(format!("planimeter-test-{own}-{name}"));
        private_folder(&path).unwrap();
        Root(path)
    }

    fn put(&self, name: &str, owner: &str, children: &str) -> PathBuf {
        let path = self.0.join(name);
        private_folder(&path).unwrap();
        fs::write(path.join("owner"), owner).unwrap();
        fs::write(path.join("children"), children).unwrap();
        path
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the owner record of a dead process, with its own start time.
fn dead() -> FolderOwner {
    let mut child = Command::new("sleep").arg("100").spawn().unwrap();
    let identity = Identity::of(child.id()).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    FolderOwner { identity, ..FolderOwner::own() }
}

#[test]
fn owner_records_round_trip() {
    let owner = FolderOwner::own();
    assert_eq!(FolderOwner::parse(&owner.text()), Some(owner.clone()));
    assert_eq!(owner.fate(), FolderFate::Alive);
    for text in ["", "1", "x y\nb\nn\n", "5 6\nboot"] {
        assert_eq!(FolderOwner::parse(text), None, "{text:?}");
    }
}

#[test]
fn a_running_owner_is_not_swept() {
    let root = Root::new("running");
    let folder = RunFolder::create(&root.0).unwrap();
    let swept = sweep(&root.0).unwrap();
    assert_eq!(swept.kept, vec![folder.path().to_owned()]);
    assert!(swept.removed.is_empty() && folder.path().join("owner").is_file());
    let path = folder.path().to_owned();
    drop(folder.clone());
    assert!(path.exists());
    drop(folder);
    assert!(!path.exists());
}

#[test]
fn a_dead_run_is_swept_with_its_children_only() {
    let root = Root::new("dead");
    let mut child = Command::new("sleep").arg("100").spawn().unwrap();
    let mut stranger = Command::new("sleep").arg("100").spawn().unwrap();
    let child_is = Identity::of(child.id()).unwrap();
    let stranger_is = Identity::of(stranger.id()).unwrap();
    // The other process has the number of a recorded child, but another start time.
    let children = format!(
        "{} {}\n{} {}\n0 0\n1 0\n",
        child_is.pid,
        child_is.start_ticks,
        stranger_is.pid,
        stranger_is.start_ticks + 1
    );
    let path = root.put("run-1-0", &dead().text(), &children);
    let swept = sweep(&root.0).unwrap();
    assert_eq!(swept.killed, vec![child_is.pid]);
    assert_eq!(swept.removed, vec![path.clone()]);
    assert!(!path.exists());
    assert!(!child.wait().unwrap().success());
    assert!(stranger_is.lives());
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

/// A descendant of a child is recorded only by its environment.
#[test]
fn a_dead_run_is_swept_with_processes_that_name_its_folder() {
    let root = Root::new("marked");
    let path = root.put("run-1-0", &dead().text(), "");
    let start = |folder: &Path| {
        let mut command = Command::new("sleep");
        command.arg("100").env(FOLDER_VARIABLE, folder).spawn().unwrap()
    };
    let (mut marked, mut other) = (start(&path), start(&path.join("other")));
    let swept = sweep(&root.0).unwrap();
    assert_eq!(swept.killed, vec![marked.id()]);
    assert!(!marked.wait().unwrap().success());
    assert!(Identity::of(other.id()).is_some());
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn the_name_of_a_folder_identifies_its_owner() {
    let cases =
        [("/a/run-12-3", Some(12)), ("/a/new-12-3", None), ("/a/run-x-3", None), ("", None)];
    for (path, pid) in cases {
        assert_eq!(owner_pid(Path::new(path)), pid, "{path:?}");
    }
}

#[test]
fn children_of_another_boot_or_pid_namespace_are_not_killed() {
    let root = Root::new("other-root");
    let other_boot = FolderOwner { boot: "another".into(), ..FolderOwner::own() };
    let elsewhere = FolderOwner { namespace: "pid:[1]".into(), ..dead() };
    let own = Identity::own();
    let children = format!("{} {}\n", own.pid, own.start_ticks);
    let gone = root.put("run-2-0", &other_boot.text(), &children);
    let kept = root.put("run-3-0", &elsewhere.text(), &children);
    let swept = sweep(&root.0).unwrap();
    // If the sweep trusted the children of another boot, it would have killed this test.
    assert_eq!(
        swept,
        CleanupReport { removed: vec![gone], killed: vec![], kept: vec![kept], pages: 0 }
    );
}

#[test]
fn drafts_are_swept_and_unrelated_files_are_not() {
    let root = Root::new("drafts");
    let (own, gone) = (Identity::own(), dead().identity);
    let living = root.put(&format!("new-{}-{}-7", own.pid, own.start_ticks), "", "");
    let dead = root.put(&format!("new-{}-{}-7", gone.pid, gone.start_ticks), "", "");
    let other = root.put("something-else", "", "");
    fs::write(root.0.join("run-file"), "not a folder").unwrap();
    let swept = sweep(&root.0).unwrap();
    assert_eq!(
        swept,
        CleanupReport { removed: vec![dead], killed: vec![], kept: vec![living], pages: 0 }
    );
    assert!(other.exists() && root.0.join("run-file").exists());
}

#[test]
fn a_root_writable_by_others_is_rejected() {
    use std::os::unix::fs::PermissionsExt;
    let root = Root::new("shared");
    fs::set_permissions(&root.0, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(RunFolder::create(&root.0), Err(LabError::Argument { .. })));
    assert!(matches!(sweep(&root.0), Err(LabError::Argument { .. })));
    let link = root.0.join("link");
    std::os::unix::fs::symlink("/tmp", &link).unwrap();
    assert!(matches!(RunFolder::create(&link), Err(LabError::Argument { .. })));
}

#[test]
fn long_socket_paths_are_rejected() {
    assert!(checked_socket_path(Path::new(&"x".repeat(107))).is_ok());
    assert!(checked_socket_path(Path::new(&"x".repeat(108))).is_err());
}

#[test]
fn unreleased_huge_pages_stay_in_the_record() {
    let check = |text: &str, wanted| assert_eq!(parse_pages(text), wanted, "{text:?}");
    check("128\n32\n-32\n", 128);
    check("128\n-128\n", 0);
    check("-5\n", 0);
    check("x\n\n7\n9223372036854775807\n", i64::MAX as u64);
    check("", 0);
}
