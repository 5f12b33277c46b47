//! Team store for commands: its address, upload of local runs, and download of remote runs.
//!
//! Invariants: a password comes from a place that other users cannot read, and no message contains
//! one. A problem with a store is reported in one line and never makes a measurement fail.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

pub use store::campaign;
use store::database::address::{Address, AddressDefaults};
use store::index::Index;
use store::postgres::{PostgresStore, TeamError, UploadResult};

use super::failure::Failure;
use super::output::remark;
use super::variables::variable;
use runner::environment::STORE_VARIABLE;

/// The option with the store's address.
const FLAG: &str = "--store";

/// Limit of names that are tried for a folder.
const FOLDERS_MAX: u32 = 1000;

/// Limit of runs without files that are listed individually.
const TOLD_MAX: usize = 3;

/// Returns the store that a command uses, if any.
pub fn asked(given: Option<&String>) -> Result<Option<Address>, Failure> {
    let (text, from) = match given {
        Some(text) => (text.clone(), FLAG),
        None => match variable(STORE_VARIABLE).filter(|text| !text.is_empty()) {
            Some(text) => (text, STORE_VARIABLE),
            None => return Ok(None),
        },
    };
    let path = |name| variable(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let beside = AddressDefaults {
        user: variable("USER").or_else(|| variable("LOGNAME")).unwrap_or_else(|| "root".into()),
        password: variable("PGPASSWORD"),
        passwords: path("PGPASSFILE"),
        home: path("HOME"),
    };
    let (address, has_password) = Address::read(&text, &beside)
        .map_err(|error| Failure::usage(format!("{from}: {error}")))?;
    if has_password && from == FLAG {
        return Err(Failure::usage(format!(
            "{FLAG}: other users of this machine can see a password on the command line (hint: use \
             {address}, and put the password into ~/.pgpass or PGPASSWORD, or the whole address \
             into {STORE_VARIABLE})"
        )));
    }
    Ok(Some(address))
}

/// Returns the origin of runs from here: `ann@lab1`.
pub fn origin() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let user = variable("USER").or_else(|| variable("LOGNAME")).unwrap_or_else(|| "root".into());
    format!("{user}@{}", host.trim())
}

/// Formats a problem with a store, and its effect on the run.
pub fn trouble(address: &Address, error: &TeamError) -> String {
    let then = match error {
        _ if error.is_read_only() => {
            "runs stay in their folder (hint: ask the owner of the database for write access; the \
             next command with this store sends them)"
        }
        _ if error.is_lasting() => {
            "runs stay in their folder; the next command with this store sends them"
        }
        _ => {
            "runs stay in their folder; they are sent when the store replies, or by the next \
             command with this store"
        }
    };
    format!("store {address}: {error}; {then}")
}

/// Returns the parent folder of a run, and the run's name in it: both names for a run of a
/// campaign.
pub fn place_of(folder: &Path) -> (PathBuf, String) {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
    let name = |path: &Path| {
        path.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let parent = folder.parent().unwrap_or(Path::new("/")).to_path_buf();
    match parent.parent().filter(|_| campaign::is_campaign(&parent)) {
        Some(root) => (root.to_path_buf(), format!("{}/{}", name(&parent), name(&folder))),
        None => (parent, name(&folder)),
    }
}

/// Uploads the runs in a folder that the store does not have yet.
pub fn send(address: &Address, team: &mut PostgresStore, runs: &Path) -> Result<(), TeamError> {
    let (mut index, _) = Index::open(runs)?;
    let sent = team.send(runs, &mut index, &origin())?;
    told(address, &sent);
    Ok(())
}

/// Uploads new runs over a separate connection, after a measurement.
pub fn send_all(address: &Address, runs: &Path) -> Result<(), TeamError> {
    send(address, &mut PostgresStore::open(address)?, runs)
}

fn told(address: &Address, sent: &UploadResult) {
    if sent.runs > 0 {
        let runs = if sent.runs == 1 { "run" } else { "runs" };
        remark!("store {address}: sent {} {runs}", sent.runs);
    }
    for name in sent.without_files.iter().take(TOLD_MAX) {
        remark!("store {address}: stored only the results of {name}: its files are too large");
    }
    for (name, why) in sent.unreadable.iter().take(TOLD_MAX) {
        remark!("store {address}: cannot send {name}: {why}");
    }
}

/// Connects for a command that shows the store's runs, and uploads the local runs first.
pub fn opened(address: &Address, runs: &Path) -> Result<PostgresStore, Failure> {
    let failed = |error: TeamError| Failure::need(format!("store {address}: {error}"));
    let mut team = PostgresStore::open(address).map_err(failed)?;
    if runs.is_dir() {
        match send(address, &mut team, runs) {
            Ok(()) => {}
            // A read-only user can still read.
            Err(error) if error.is_read_only() => remark!("{}", trouble(address, &error)),
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(team)
}

/// Creates a private folder for downloads.
pub fn private_folder(name: &str) -> std::io::Result<PathBuf> {
    let folder = |more: u32| std::env::temp_dir().join(format!("{name}-{more}"));
    let mut builder = fs::DirBuilder::new();
    builder.mode(0o700);
    // An existing folder belongs to another process, or was left by a crash.
    let is_free = |more: &u32| match builder.create(folder(*more)) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => None,
        done => Some(done.map(|()| folder(*more))),
    };
    let taken = || std::io::Error::from(std::io::ErrorKind::AlreadyExists);
    (1..FOLDERS_MAX).find_map(|more| is_free(&more)).unwrap_or_else(|| Err(taken()))
}

/// A run downloaded from a store, in a folder that is removed on drop.
pub struct DownloadedRun {
    folder: PathBuf,
    name: String,
}

impl DownloadedRun {
    /// Downloads a run.
    pub fn of(address: &Address, name: &str) -> Result<DownloadedRun, Failure> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let own = format!("planimeter-fetched-{}-{number}", std::process::id());
        let folder = private_folder(&own)
            .map_err(|error| Failure::usage(format!("cannot create {own}: {error}")))?;
        let mut fetched = DownloadedRun { folder, name: String::new() };
        let mut bring = || -> Result<(), TeamError> {
            let mut team = PostgresStore::open(address)?;
            let (identity, its_name) = team.find(name)?;
            fetched.name = its_name;
            team.fetch(&identity, &fetched.folder)
        };
        bring().map_err(|error| {
            let line = format!("{name} is not a local folder, and not in store {address}: {error}");
            match error {
                TeamError::Server { .. } => Failure::need(line),
                _ => Failure::usage(line),
            }
        })?;
        Ok(fetched)
    }

    /// Returns the name of its folder where it was measured.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its local folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for DownloadedRun {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
