//! The private folder of a run, which can outlive a crash, and the sweep that removes it.
//!
//! The folder contains sockets, logs and Open vSwitch's database. It records its owner (process
//! number, start time, boot, PID namespace), the processes that the owner started, and its reserved
//! huge pages. A later run can thus distinguish leftover resources of a dead run from those of a
//! running one.
//!
//! Layout: `ROOT/run-PID-N/{owner,children,hugepages...}`. Each line of the first two is "pid
//! start_ticks". Each line of the last is a number of pages, negative when released.
//!
//! Invariant: the sweep removes only folders with a dead owner. It kills only processes whose
//! number and start time both match the record, or that have the folder in their environment.

#![allow(unsafe_code)]

use crate::LabError;
use crate::hugepages;
use crate::pid_namespace::PidNamespace;
use crate::proc::{self, Identity};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// Environment variable with the run's folder, for a program and its descendants, if the run has no
/// PID namespace.
pub const FOLDER_VARIABLE: &str = "PLANIMETER_PROCESS_FOLDER";

/// Paths of sockets must fit into the kernel's 108 bytes with their final zero.
const SOCKET_PATH_BYTES: usize = 107;
/// Maximum number of bytes that are read from an owner or children file.
const RECORD_BYTES: u64 = 1 << 20;

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Maximum number of repeated searches for processes that started while others were killed.
const KILL_ROUNDS: u32 = 50;

/// A run's private folder, with the PID namespace of its processes. The last clone kills the
/// processes and removes the folder.
#[derive(Debug, Clone)]
pub struct RunFolder {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    /// Created for the first process; none if the kernel does not allow it.
    processes: OnceLock<Option<PidNamespace>>,
}

/// Result of a sweep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CleanupReport {
    /// Removed folders of dead runs.
    pub removed: Vec<PathBuf>,
    /// Killed processes of dead runs.
    pub killed: Vec<u32>,
    /// Released huge pages of dead runs.
    pub pages: u64,
    /// Untouched folders: of running runs, or of PID namespaces that are not visible.
    pub kept: Vec<PathBuf>,
}

impl RunFolder {
    /// Creates a folder under `root`. Creates `root` (mode 0700) if it is missing; it must belong
    /// to this user.
    pub fn create(root: &Path) -> Result<RunFolder, LabError> {
        checked_root(root)?;
        let own = Identity::own();
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        // Written under another name first, so that no sweep sees a folder without an owner.
        let draft = root.join(format!("new-{}-{}-{number}", own.pid, own.start_ticks));
        let path = root.join(format!("run-{}-{number}", own.pid));
        let make = || {
            remove_if_there(&draft)?;
            remove_if_there(&path)?;
            private_folder(&draft)?;
            fs::write(draft.join("owner"), FolderOwner::own().text())?;
            File::create(draft.join("children"))?;
            fs::rename(&draft, &path)
        };
        make().map_err(|error| {
            LabError::system("create the run's folder", path_text(&path), error)
        })?;
        Ok(RunFolder { inner: Arc::new(Inner { path, processes: OnceLock::new() }) })
    }

    /// Returns the folder's path.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Returns a directory inside the folder, created if it is missing.
    pub fn folder(&self, name: &str) -> Result<PathBuf, LabError> {
        let path = self.path().join(name);
        match private_folder(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(LabError::system("create a folder", path_text(&path), error))
            }
            _ => Ok(path),
        }
    }

    /// Returns the PID namespace of the folder's processes; none if the kernel does not allow it.
    pub(crate) fn pid_namespace(&self) -> Option<&PidNamespace> {
        self.inner.processes.get_or_init(|| PidNamespace::create().ok()).as_ref()
    }

    /// Records huge pages added to the machine's number (negative: released). If this run dies
    /// first, the sweep releases the rest.
    pub(crate) fn record_pages(&self, pages: i64) -> Result<(), LabError> {
        let path = self.path().join("hugepages");
        let append = || {
            let mut file = File::options().create(true).append(true).open(&path)?;
            file.write_all(format!("{pages}\n").as_bytes())
        };
        append().map_err(|error| LabError::system("record huge pages", path_text(&path), error))
    }

    /// Records a process, to be killed if this run dies without stopping it.
    pub fn record_child(&self, child: Identity) -> Result<(), LabError> {
        let path = self.path().join("children");
        let append = || {
            let mut file = File::options().append(true).open(&path)?;
            file.write_all(format!("{} {}\n", child.pid, child.start_ticks).as_bytes())
        };
        append().map_err(|error| LabError::system("record a process", path_text(&path), error))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if matches!(self.processes.take(), Some(None)) {
            kill_marked(&self.path);
        }
        // If this fails, the next run's sweep removes it.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Checks that a path is valid for a Unix socket.
pub fn checked_socket_path(path: &Path) -> Result<&Path, LabError> {
    if path.as_os_str().len() <= SOCKET_PATH_BYTES {
        return Ok(path);
    }
    Err(LabError::Argument { what: "socket path (at most 107 bytes)", value: path_text(path) })
}

/// Removes leftover resources of dead runs under `root`: their folders and their recorded
/// processes.
pub fn sweep(root: &Path) -> Result<CleanupReport, LabError> {
    let mut swept = CleanupReport::default();
    if !root.exists() {
        return Ok(swept);
    }
    checked_root(root)?;
    let refused = |error| LabError::system("sweep", path_text(root), error);
    for entry in fs::read_dir(root).map_err(refused)? {
        let entry = entry.map_err(refused)?;
        let is_folder = entry.file_type().map_err(refused)?.is_dir();
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_folder && (name.starts_with("run-") || name.starts_with("new-")) {
            sweep_folder(&entry.path(), &name, &mut swept)?;
        }
    }
    Ok(swept)
}

fn sweep_folder(path: &Path, name: &str, swept: &mut CleanupReport) -> Result<(), LabError> {
    let owner = match name.strip_prefix("new-") {
        Some(draft) => FolderOwner::of_draft(draft),
        None => read_record(&path.join("owner")).ok().and_then(|text| FolderOwner::parse(&text)),
    };
    match owner.map_or(FolderFate::Dead, |owner| owner.fate()) {
        FolderFate::Alive | FolderFate::Unknown => {
            swept.kept.push(path.to_owned());
            return Ok(());
        }
        FolderFate::Dead => {
            let children = read_record(&path.join("children")).unwrap_or_default();
            let living = parse_children(&children).into_iter().filter(|child| kill(*child));
            swept.killed.extend(living.map(|child| child.pid));
            swept.killed.extend(kill_marked(path));
            let pages = parse_pages(&read_record(&path.join("hugepages")).unwrap_or_default());
            if hugepages::give_back(pages).is_ok() {
                swept.pages += pages;
            }
        }
        FolderFate::OtherBoot => {}
    }
    remove_if_there(path)
        .map_err(|error| LabError::system("remove a leftover run", path_text(path), error))?;
    swept.removed.push(path.to_owned());
    Ok(())
}

/// Owner of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FolderOwner {
    identity: Identity,
    boot: String,
    namespace: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FolderFate {
    Alive,
    Dead,
    OtherBoot,
    Unknown,
}

impl FolderOwner {
    fn own() -> FolderOwner {
        FolderOwner {
            identity: Identity::own(),
            boot: proc::boot_id(),
            namespace: proc::pid_namespace(),
        }
    }

    fn of_draft(name: &str) -> Option<FolderOwner> {
        let mut parts = name.split('-').map(str::parse::<u64>);
        let pid = u32::try_from(parts.next()?.ok()?).ok()?;
        let start_ticks = parts.next()?.ok()?;
        Some(FolderOwner { identity: Identity { pid, start_ticks }, ..FolderOwner::own() })
    }

    fn text(&self) -> String {
        let Identity { pid, start_ticks } = self.identity;
        format!("{pid} {start_ticks}\n{}\n{}\n", self.boot, self.namespace)
    }

    fn parse(text: &str) -> Option<FolderOwner> {
        let mut lines = text.lines();
        let identity = parse_children(lines.next()?).first().copied()?;
        let (boot, namespace) = (lines.next()?.to_owned(), lines.next()?.to_owned());
        Some(FolderOwner { identity, boot, namespace })
    }

    fn fate(&self) -> FolderFate {
        if self.boot != proc::boot_id() {
            FolderFate::OtherBoot
        } else if self.namespace != proc::pid_namespace() || !proc::shows_own_namespace() {
            FolderFate::Unknown
        } else if self.identity.lives() {
            FolderFate::Alive
        } else {
            FolderFate::Dead
        }
    }
}

fn parse_children(text: &str) -> Vec<Identity> {
    let parse = |line: &str| {
        let (pid, start) = line.split_once(' ')?;
        Some(Identity { pid: pid.parse().ok()?, start_ticks: start.parse().ok()? })
    };
    text.lines().filter_map(parse).filter(|child| child.pid > 1).collect()
}

/// Returns the pages that a dead run had not released: the sum of its record.
fn parse_pages(text: &str) -> u64 {
    let changes = text.lines().filter_map(|line| line.parse::<i64>().ok());
    changes.fold(0_i64, i64::saturating_add).try_into().unwrap_or(0)
}

/// Kills the processes that have a folder in their environment, and returns their numbers.
fn kill_marked(folder: &Path) -> Vec<u32> {
    let mut killed = Vec::new();
    for _ in 0..KILL_ROUNDS {
        let mut found = proc::with_variable(FOLDER_VARIABLE, folder.as_os_str());
        found.retain(|process| process.pid != std::process::id() && kill(*process));
        if found.is_empty() {
            break;
        }
        killed.extend(found.iter().map(|process| process.pid));
    }
    killed.sort_unstable();
    killed.dedup();
    killed
}

/// Returns the process that created a folder, from the folder's name.
pub(crate) fn owner_pid(folder: &Path) -> Option<u32> {
    let name = folder.file_name()?.to_str()?.strip_prefix("run-")?;
    name.split_once('-')?.0.parse().ok()
}

/// Kills a process if it is still the recorded one, and returns whether it did.
///
/// A pidfd is opened before the start time is compared, so that the number cannot be reused in
/// between.
fn kill(child: Identity) -> bool {
    // SAFETY: pidfd_open takes no pointers.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, child.pid, 0) } as i32;
    if descriptor < 0 {
        return false;
    }
    let null = std::ptr::null::<libc::siginfo_t>();
    let killed = child.lives()
        // SAFETY: the descriptor is open and no signal information is given.
        && unsafe {
            libc::syscall(libc::SYS_pidfd_send_signal, descriptor, libc::SIGKILL, null, 0)
        } == 0;
    // SAFETY: the descriptor was opened above and is used nowhere else.
    unsafe { libc::close(descriptor) };
    killed
}

/// Checks that the root is a directory of this user that no other user can write to: in `/tmp`,
/// another user could have placed a link there.
fn checked_root(root: &Path) -> Result<(), LabError> {
    let refused = |error| LabError::system("use the folder for runs", path_text(root), error);
    match DirBuilder::new().recursive(true).mode(0o700).create(root) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(refused(error)),
        _ => {}
    }
    let found = fs::symlink_metadata(root).map_err(refused)?;
    // SAFETY: geteuid has no arguments and touches no memory.
    let own = found.uid() == unsafe { libc::geteuid() };
    if found.is_dir() && own && found.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(LabError::Argument {
        what: "folder for runs (hint: use one that only this user can write to)",
        value: path_text(root),
    })
}

fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn read_record(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(RECORD_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

fn path_text(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests;
