//! Runs of a team store: listed together with the local runs, and downloaded when a client opens
//! one.
//!
//! Invariants:
//! - Downloaded runs are in a private folder that is deleted when the server ends.
//! - Their number is limited.
//! - If the store does not respond, the page reports this and shows the local runs as usual.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use report::Run;
use store::Stored;
use store::database::address::Address;
use store::index::{Filter, Index, RunRow, TrendRow};
use store::postgres::{PostgresStore, TeamError};

use crate::cli::team_store;
use studies::papers;

/// Minimum length of a run id that names a downloaded run, in characters.
const RUN_ID_PREFIX_MIN: usize = 10;

/// Limit of downloaded runs.
const CACHED_RUNS_MAX: usize = 16;

/// A team store.
pub struct RemoteStore {
    /// Its address.
    pub address: Address,
    /// The command-line argument that named it.
    pub asked: Option<String>,
    /// The origin that the local runs have in the store.
    pub origin: String,
}

/// A team store together with the runs downloaded from it.
pub(super) struct RemoteCache {
    store: RemoteStore,
    brought: Mutex<DownloadedRuns>,
}

/// Downloaded runs.
#[derive(Default)]
struct DownloadedRuns {
    /// Their folder, once there is a download.
    folder: Option<PathBuf>,
    /// Folders of runs, in the order of their download.
    runs: VecDeque<String>,
}

/// Runs in a store.
pub(super) struct All {
    pub(super) rows: Vec<RunRow>,
    pub(super) trend: Vec<TrendRow>,
    /// The store's name for display.
    pub(super) place: String,
    /// Why the local runs could not be sent to the store.
    pub(super) trouble: Option<String>,
}

impl RemoteCache {
    pub(super) fn new(store: RemoteStore) -> RemoteCache {
        RemoteCache { store, brought: Mutex::default() }
    }

    /// Sends the local runs, then lists all runs of the store; returns the error if the store does
    /// not respond.
    pub(super) fn runs(
        &self,
        runs: &Path,
        index: &mut Index,
        filter: &Filter,
    ) -> Result<All, String> {
        let address = &self.store.address;
        let told = |error: TeamError| team_store::trouble(address, &error);
        let mut open = PostgresStore::open(address).map_err(told)?;
        let trouble = match open.send(runs, index, &self.store.origin) {
            Ok(_) => None,
            Err(error) if error.is_read_only() => Some(told(error)),
            Err(error) => return Err(told(error)),
        };
        let rows = open.runs(filter).map_err(told)?;
        let trend = match filter.metric() {
            Some(_) => open.trend(filter).map_err(told)?,
            None => Vec::new(),
        };
        Ok(All { rows, trend, place: address.to_string(), trouble })
    }

    /// Returns a run with its report: the parent folder, and the name of the run's folder in it.
    pub(super) fn brought(&self, name: &str) -> Result<(PathBuf, String), String> {
        let address = &self.store.address;
        let told = |error: TeamError| format!("store {address}: {error}");
        // Downloads are sequential; a second request for the same run then finds it.
        let mut brought = self.brought.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = match &brought.folder {
            Some(folder) => folder.clone(),
            None => {
                let name = format!("planimeter-serve-{}", std::process::id());
                let made = team_store::private_folder(&name)
                    .map_err(|error| format!("{name}: {error}"))?;
                brought.folder.insert(made).clone()
            }
        };
        let is_it = |known: &&String| name.len() >= RUN_ID_PREFIX_MIN && known.starts_with(name);
        if let Some(known) = brought.runs.iter().find(is_it) {
            return Ok((folder, known.clone()));
        }
        let mut open = PostgresStore::open(address).map_err(told)?;
        let (identity, _) = open.find(name).map_err(told)?;
        if brought.runs.contains(&identity) {
            return Ok((folder, identity));
        }
        let path = folder.join(&identity);
        let made = self.bring(&mut open, &identity, &path);
        if let Err(why) = made {
            let _ = fs::remove_dir_all(&path);
            return Err(why);
        }
        brought.runs.push_back(identity.clone());
        if brought.runs.len() > CACHED_RUNS_MAX
            && let Some(oldest) = brought.runs.pop_front()
        {
            let _ = fs::remove_dir_all(folder.join(oldest));
        }
        Ok((folder, identity))
    }

    fn bring(&self, open: &mut PostgresStore, identity: &str, path: &Path) -> Result<(), String> {
        let refused = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        if identity.is_empty() || !identity.bytes().all(|it| it.is_ascii_hexdigit()) {
            return Err("invalid run id from the store".into());
        }
        fs::create_dir(path).map_err(|error| refused(&error))?;
        let address = &self.store.address;
        open.fetch(identity, path).map_err(|error| format!("store {address}: {error}"))?;
        let Stored { mut record, is_behind, .. } =
            store::read_run(path).map_err(|error| error.to_string())?;
        if is_behind {
            report::finish(&mut record, &papers::claims()?);
        }
        let run = Run::of(record, path);
        let outputs = report::build(std::slice::from_ref(&run));
        store::write_outputs(path, &outputs).map_err(|error| error.to_string())
    }
}

impl Drop for RemoteCache {
    fn drop(&mut self) {
        let brought = self.brought.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = &brought.folder {
            let _ = fs::remove_dir_all(folder);
        }
    }
}
