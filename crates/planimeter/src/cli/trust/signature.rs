//! The signature of a stored run: this user began it on this host, so that what it names may run again.
//!
//! Whoever unpacks an archive owns its files, so an owner proves nothing. Invariants:
//!
//! - The key is made on this host and is in the user's state folder, where only the user can read it. No archive carries it.
//! - A signature covers the text that says what runs, this machine and the file that it lies beside. A copy of a folder, and one that
//!   was edited, has no valid signature.
//! - Where no key can be kept, nothing is signed, and `--trust` has to be given.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use results::store::campaign::CAMPAIGN_FILE;
use results::store::{TRIALS_FILE, unfinished_name};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

use crate::cli::place;

/// The file in a run's folder, or a campaign's. A bundle does not carry it.
pub const SIGNATURE_FILE: &str = "signature";

/// The key's file below the user's state folder.
const KEY_FILE: &str = "planimeter/key";

/// Bytes of the key.
const KEY_BYTES: usize = 32;

/// Signs what a folder says is to be run. Where that is not possible, the folder stays without signature.
pub fn sign(folder: &Path, text: &str) {
    let signature = key(true).and_then(|key| Some(hmac::sign(&key, &message(folder, text)?)));
    if let Some(signature) = signature {
        let path = folder.join(SIGNATURE_FILE);
        let beside = unfinished_name(&path);
        let hex: String = signature.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let _ = fs::write(&beside, hex + "\n").and_then(|()| fs::rename(&beside, &path));
    }
}

/// Whether this user signed this text in this folder on this host.
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

/// What is signed: each part with its length, so that no two lists of parts are one message.
fn message(folder: &Path, text: &str) -> Option<Vec<u8>> {
    let files = [CAMPAIGN_FILE, TRIALS_FILE].map(|name| folder.join(name));
    // Neither file is ever replaced, so that the number stays; nobody chooses it.
    let inode = files.iter().find_map(|path| fs::metadata(path).ok())?.ino().to_string();
    let machine = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let mut message = Vec::new();
    for part in ["planimeter run 1", machine.trim(), &inode, text] {
        message.extend((part.len() as u64).to_be_bytes());
        message.extend(part.as_bytes());
    }
    Some(message)
}

/// The user's key; made where it is missing and asked for.
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

/// The key as it is stored, unless others could have read it or written it.
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

/// Makes a key, unless another process has made one meanwhile.
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

/// Where programs keep state of this user (XDG Base Directory Specification 0.8).
fn state_folder() -> Option<PathBuf> {
    let absolute = |name| place::variable(name).map(PathBuf::from).filter(|it| it.is_absolute());
    absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
}
