//! The one thing of a run that can outlive a crash: its private folder, and how it is swept.
//!
//! The folder holds sockets, logs and Open vSwitch's database. It says who made it (process number
//! and start time, boot, process namespace) and which processes it started, so that a later run can
//! tell what a dead run left from what a living one uses; and how many huge pages it reserved.
//!
//! Source: our own layout: `ROOT/run-PID-N/{owner,children,hugepages...}`, each line of the
//! first two "pid start_ticks", of the last a number of pages, below zero when given back.
//! Invariant: the sweep touches only folders whose owner is dead, and kills only processes whose
//! number and start time both match the record, or that carry the folder in their environment.

#![allow(unsafe_code)]

use crate::LabError;
use crate::hugepages;
use crate::pid_namespace::PidNamespace;
use crate::proc::{self, Identity};
use crate::process::FOLDER_VARIABLE;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// Paths of sockets must fit the kernel's 108 bytes with their closing zero.
const SOCKET_PATH_BYTES: usize = 107;
/// The bytes of an owner or children file that are read at most.
const RECORD_BYTES: u64 = 1 << 20;

static COUNT: AtomicU32 = AtomicU32::new(0);

/// How often processes are looked for that were started while others were killed.
const KILL_ROUNDS: u32 = 50;

/// A run's private folder, with the PID namespace of its processes; the last clone of this value
/// kills the processes and removes the folder.
#[derive(Debug, Clone)]
pub struct RunFolder {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    /// Created for the first process; none where the kernel allows none.
    processes: OnceLock<Option<PidNamespace>>,
}

/// What a sweep found and did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// Folders of dead runs, removed.
    pub removed: Vec<PathBuf>,
    /// Processes of dead runs, killed.
    pub killed: Vec<u32>,
    /// Huge pages that dead runs had reserved, given back.
    pub pages: u64,
    /// Folders of living runs, or of process namespaces that we cannot see into: left alone.
    pub kept: Vec<PathBuf>,
}

impl RunFolder {
    /// A new folder under `root`, which is made (mode 0700) if it is missing and must belong to us.
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
            fs::write(draft.join("owner"), Owner::own().text())?;
            File::create(draft.join("children"))?;
            fs::rename(&draft, &path)
        };
        make()
            .map_err(|error| LabError::system("make the run's folder", path_text(&path), error))?;
        Ok(RunFolder { inner: Arc::new(Inner { path, processes: OnceLock::new() }) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// A folder within it, made if it is missing.
    pub fn folder(&self, name: &str) -> Result<PathBuf, LabError> {
        let path = self.path().join(name);
        match private_folder(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(LabError::system("make a folder", path_text(&path), error))
            }
            _ => Ok(path),
        }
    }

    /// The PID namespace of the folder's processes; none where the kernel allows none.
    pub(crate) fn pid_namespace(&self) -> Option<&PidNamespace> {
        self.inner.processes.get_or_init(|| PidNamespace::create().ok()).as_ref()
    }

    /// Notes huge pages added to the machine's (or, below zero, given back): what is left of them
    /// is given back should this run die before it does so.
    pub(crate) fn record_pages(&self, pages: i64) -> Result<(), LabError> {
        let path = self.path().join("hugepages");
        let append = || {
            let mut file = File::options().create(true).append(true).open(&path)?;
            file.write_all(format!("{pages}\n").as_bytes())
        };
        append().map_err(|error| LabError::system("record huge pages", path_text(&path), error))
    }

    /// Notes a process as one to be killed should this run die without stopping it.
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
        // What cannot be removed now is swept by the next run.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Checks that a path can be that of a Unix socket.
pub fn checked_socket_path(path: &Path) -> Result<&Path, LabError> {
    if path.as_os_str().len() <= SOCKET_PATH_BYTES {
        return Ok(path);
    }
    Err(LabError::Argument { what: "a socket path of over 107 bytes", value: path_text(path) })
}

/// Removes what dead runs left under `root`: their folders and the processes they recorded.
pub fn sweep(root: &Path) -> Result<Swept, LabError> {
    let mut swept = Swept::default();
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

fn sweep_folder(path: &Path, name: &str, swept: &mut Swept) -> Result<(), LabError> {
    let owner = match name.strip_prefix("new-") {
        Some(draft) => Owner::of_draft(draft),
        None => read_record(&path.join("owner")).ok().and_then(|text| Owner::parse(&text)),
    };
    match owner.map_or(Fate::Dead, |owner| owner.fate()) {
        Fate::Alive | Fate::Unknown => {
            swept.kept.push(path.to_owned());
            return Ok(());
        }
        Fate::Dead => {
            let children = read_record(&path.join("children")).unwrap_or_default();
            let living = parse_children(&children).into_iter().filter(|child| kill(*child));
            swept.killed.extend(living.map(|child| child.pid));
            swept.killed.extend(kill_marked(path));
            let pages = parse_pages(&read_record(&path.join("hugepages")).unwrap_or_default());
            if hugepages::give_back(pages).is_ok() {
                swept.pages += pages;
            }
        }
        Fate::OtherBoot => {}
    }
    remove_if_there(path)
        .map_err(|error| LabError::system("remove a dead run", path_text(path), error))?;
    swept.removed.push(path.to_owned());
    Ok(())
}

/// Who made a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owner {
    identity: Identity,
    boot: String,
    namespace: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Alive,
    Dead,
    OtherBoot,
    Unknown,
}

impl Owner {
    fn own() -> Owner {
        Owner { identity: Identity::own(), boot: proc::boot_id(), namespace: proc::pid_namespace() }
    }

    fn of_draft(name: &str) -> Option<Owner> {
        let mut parts = name.split('-').map(str::parse::<u64>);
        let pid = u32::try_from(parts.next()?.ok()?).ok()?;
        let start_ticks = parts.next()?.ok()?;
        Some(Owner { identity: Identity { pid, start_ticks }, ..Owner::own() })
    }

    fn text(&self) -> String {
        let Identity { pid, start_ticks } = self.identity;
        format!("{pid} {start_ticks}\n{}\n{}\n", self.boot, self.namespace)
    }

    fn parse(text: &str) -> Option<Owner> {
        let mut lines = text.lines();
        let identity = parse_children(lines.next()?).first().copied()?;
        let (boot, namespace) = (lines.next()?.to_owned(), lines.next()?.to_owned());
        Some(Owner { identity, boot, namespace })
    }

    fn fate(&self) -> Fate {
        if self.boot != proc::boot_id() {
            Fate::OtherBoot
        } else if self.namespace != proc::pid_namespace() || !proc::shows_own_namespace() {
            Fate::Unknown
        } else if self.identity.lives() {
            Fate::Alive
        } else {
            Fate::Dead
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

/// The pages a run had reserved and not given back when it died: the sum of its record.
fn parse_pages(text: &str) -> u64 {
    let changes = text.lines().filter_map(|line| line.parse::<i64>().ok());
    changes.fold(0_i64, i64::saturating_add).try_into().unwrap_or(0)
}

/// Kills the processes that carry a folder in their environment; says which.
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

/// The process that made a folder, by the folder's name.
pub(crate) fn owner_pid(folder: &Path) -> Option<u32> {
    let name = folder.file_name()?.to_str()?.strip_prefix("run-")?;
    name.split_once('-')?.0.parse().ok()
}

/// Kills a process if it still is the one recorded; says whether it did. A descriptor of the
/// process is taken before its start time is compared, so that the number cannot change hands in
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

/// The root must be a folder of ours that nobody else can write to: in `/tmp`, anyone could have
/// put a link there.
fn checked_root(root: &Path) -> Result<(), LabError> {
    let refused = |error| LabError::system("use the folder for runs", path_text(root), error);
    match DirBuilder::new().recursive(true).mode(0o700).create(root) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(refused(error)),
        _ => {}
    }
    let found = fs::symlink_metadata(root).map_err(refused)?;
    // SAFETY: geteuid takes and touches nothing.
    let own = found.uid() == unsafe { libc::geteuid() };
    if found.is_dir() && own && found.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(LabError::Argument {
        what: "the folder for runs (it must be ours, and writable by us only)",
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
