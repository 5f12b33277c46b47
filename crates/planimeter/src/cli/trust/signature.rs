//! Signature of a stored run: proves that this user began it on this host, so that its external
//! code may run again.
//!
//! The user who unpacks an archive owns its files, so ownership proves nothing. Invariants:
//! - The key is created on this host and is in the user's state folder, readable by the user only.
//!   No archive contains it.
//! - A signature covers the text of the run, this machine and the file next to it. A copied or
//!   edited folder has no valid signature.
//! - If no key can be stored, nothing is signed, and `--allow-commands` is required.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use store::campaign::CAMPAIGN_FILE;
use store::{TRIALS_FILE, unfinished_name};

use crate::cli::variables;

/// The file in a run's or a campaign's folder. A bundle does not contain it.
pub const SIGNATURE_FILE: &str = "signature";

/// The key's file below the user's state folder.
const KEY_FILE: &str = "planimeter/key";

/// Length of the key, in bytes.
const KEY_BYTES: usize = 32;

/// Signs the text of a folder's run. If that is not possible, the folder stays unsigned.
pub fn sign(folder: &Path, text: &str) {
    let signature = key(true).and_then(|key| Some(hmac::sign(&key, &message(folder, text)?)));
    if let Some(signature) = signature {
        let path = folder.join(SIGNATURE_FILE);
        let beside = unfinished_name(&path);
        let hex: String = signature.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let _ = fs::write(&beside, hex + "\n").and_then(|()| fs::rename(&beside, &path));
    }
}

/// Returns whether this user signed this text in this folder on this host.
pub fn is_own(folder: &Path, text: &str) -> bool {
    let valid = || {
        let mut hex = String::new();
        // A signature has 64 digits; a file may have any length.
        File::open(folder.join(SIGNATURE_FILE)).ok()?.take(100).read_to_string(&mut hex).ok()?;
        let hex = hex.trim().as_bytes();
        let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok();
        let tag: Vec<u8> = hex.chunks(2).map(byte).collect::<Option<_>>()?;
        hmac::verify(&key(false)?, &message(folder, text)?, &tag).ok()
    };
    valid().is_some()
}

/// Returns the signed message: each part with its length, so that different lists of parts give
/// different messages.
fn message(folder: &Path, text: &str) -> Option<Vec<u8>> {
    let files = [CAMPAIGN_FILE, TRIALS_FILE].map(|name| folder.join(name));
    // Neither file is ever replaced, so the inode stays the same; it cannot be chosen.
    let inode = files.iter().find_map(|path| fs::metadata(path).ok())?.ino().to_string();
    let machine = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let mut message = Vec::new();
    for part in ["planimeter run 1", machine.trim(), &inode, text] {
        message.extend((part.len() as u64).to_be_bytes());
        message.extend(part.as_bytes());
    }
    Some(message)
}

/// Returns the user's key; creates a missing one if `is_made` is set.
fn key(is_made: bool) -> Option<hmac::Key> {
    let path = state_folder()?.join(KEY_FILE);
    let bytes = match stored_key(&path) {
        None if is_made => {
            make_key(&path)?;
            stored_key(&path)
        }
        stored => stored,
    };
    Some(hmac::Key::new(hmac::HMAC_SHA256, &bytes?))
}

/// Reads the stored key, unless other users could have read or written it.
fn stored_key(path: &Path) -> Option<[u8; KEY_BYTES]> {
    let mut file = File::open(path).ok()?;
    let facts = file.metadata().ok()?;
    let is_private =
        facts.uid() == rustix::process::geteuid().as_raw() && facts.mode() & 0o077 == 0;
    let mut bytes = [0; KEY_BYTES];
    let is_whole = facts.is_file() && facts.len() == KEY_BYTES as u64;
    (is_private && is_whole).then(|| file.read_exact(&mut bytes).ok())??;
    Some(bytes)
}

/// Creates a key, unless another process has just created one.
fn make_key(path: &Path) -> Option<()> {
    let mut bytes = [0; KEY_BYTES];
    SystemRandom::new().fill(&mut bytes).ok()?;
    DirBuilder::new().recursive(true).mode(0o700).create(path.parent()?).ok()?;
    let beside = unfinished_name(path);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside);
    let written = file.and_then(|mut file| file.write_all(&bytes));
    // A link, because a rename would replace the key of another process.
    let linked = written.and_then(|()| fs::hard_link(&beside, path));
    let _ = fs::remove_file(&beside);
    match linked {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => None,
        _ => Some(()),
    }
}

/// Returns the folder for state of this user (XDG Base Directory Specification 0.8).
fn state_folder() -> Option<PathBuf> {
    let absolute =
        |name| variables::variable(name).map(PathBuf::from).filter(|it| it.is_absolute());
    absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
}
