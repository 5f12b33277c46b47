//! Writer of bundle files; each entry consists of its name and bytes only.
//!
//! Source: POSIX.1-2024, volume XCU, pax, "ustar Interchange Format". Invariants:
//! - No entry contains an owner, permissions or times of the machine.
//! - An incomplete bundle is removed.
//! - An existing file is not overwritten.

use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use record::{Bundle, SCHEMA, Tool};
use store::campaign::PLAN_FILE;
use tar::{Builder, EntryType, Header};

use super::contents::{Contents, without_dots};
use super::unpack::{DEPTH_MAX, ENTRIES_MAX, is_plain};
use super::{FACTS_FILE, FILES_FOLDER, RUN_FOLDER, refused};
use crate::cli::failure::Failure;
use crate::cli::trust::signature::SIGNATURE_FILE;

/// Writer of a bundle.
pub struct Packer {
    out: PathBuf,
    tar: Option<Builder<GzEncoder<BufWriter<File>>>>,
}

impl Packer {
    /// Creates the file.
    pub fn create(out: &Path) -> Result<Packer, Failure> {
        let file = File::options().write(true).create_new(true).open(out);
        let file = file.map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => refused(
                out,
                "the file exists already (hint: choose another one with --output FILE)",
            ),
            _ => refused(out, error),
        })?;
        let packed = GzEncoder::new(BufWriter::new(file), Compression::default());
        Ok(Packer { out: out.to_path_buf(), tar: Some(Builder::new(packed)) })
    }

    /// Adds an entry.
    pub fn add(&mut self, path: &str, bytes: u64, from: impl Read) -> Result<(), Failure> {
        let mut header = Header::new_ustar();
        let named = header.set_path(path);
        named.map_err(|error| refused(Path::new(path), error))?;
        header.set_entry_type(EntryType::Regular);
        header.set_mode(0o644);
        header.set_size(bytes);
        header.set_mtime(0);
        header.set_cksum();
        let tar = self.tar.as_mut().expect("a bundle is finished once");
        // A file that still grows contributes only the announced number of bytes.
        tar.append(&header, from.take(bytes)).map_err(|error| refused(&self.out, error))
    }

    /// Adds an entry from memory.
    pub fn add_bytes(&mut self, path: &str, bytes: &[u8]) -> Result<(), Failure> {
        self.add(path, bytes.len() as u64, bytes)
    }

    /// Flushes and closes the file.
    pub fn finish(mut self) -> Result<(), Failure> {
        let tar = self.tar.take().expect("a bundle is finished once");
        let written =
            tar.into_inner().and_then(GzEncoder::finish).and_then(|mut file| file.flush());
        written.map_err(|error| {
            let _ = fs::remove_file(&self.out);
            refused(&self.out, error)
        })
    }
}

impl Drop for Packer {
    fn drop(&mut self) {
        if self.tar.take().is_some() {
            let _ = fs::remove_file(&self.out);
        }
    }
}

/// Describes a bundle of these contents.
pub fn facts(contents: &Contents) -> Bundle {
    let names = |changed: bool| {
        let files = contents.files.iter().filter(move |it| it.has_changed || !changed);
        files.map(|it| it.path.clone()).collect()
    };
    Bundle {
        schema: SCHEMA,
        tool: Tool { name: "planimeter".into(), version: crate::VERSION.into() },
        created: runner::environment::wall_clock(),
        run: contents.name.clone(),
        masked: false,
        files: names(false),
        changed: names(true),
        left_out: contents.left_out.clone(),
    }
}

/// Formats the description for `bundle.json`.
pub fn facts_text(facts: &Bundle) -> String {
    let mut text = serde_json::to_string_pretty(facts).expect("facts are plain data");
    text.push('\n');
    text
}

/// Writes a bundle without anonymization.
pub fn packed(contents: &Contents, out: &Path) -> Result<Bundle, Failure> {
    let mut facts = facts(contents);
    let (found, strange) = files_below(&contents.folder)?;
    facts.left_out.extend(strange);
    let mut packer = Packer::create(out)?;
    packer.add_bytes(FACTS_FILE, facts_text(&facts).as_bytes())?;
    packer.add_bytes(PLAN_FILE, contents.plan.as_bytes())?;
    for input in &contents.files {
        let path = format!("{FILES_FOLDER}/{}", without_dots(&input.path));
        packer.add_bytes(&path, &input.bytes)?;
    }
    for path in found {
        let from = contents.folder.join(&path);
        let file = File::open(&from).map_err(|error| refused(&from, error))?;
        let bytes = file.metadata().map_err(|error| refused(&from, error))?.len();
        packer.add(&format!("{RUN_FOLDER}/{path}"), bytes, file)?;
    }
    packer.finish()?;
    Ok(facts)
}

/// Returns the files below a folder, sorted, and all other entries.
pub fn files_below(folder: &Path) -> Result<(Vec<String>, Vec<String>), Failure> {
    let (mut files, mut strange) = (Vec::new(), Vec::new());
    let mut folders = vec![String::new()];
    while let Some(inner) = folders.pop() {
        let at = folder.join(&inner);
        for entry in fs::read_dir(&at).map_err(|error| refused(&at, error))? {
            let entry = entry.map_err(|error| refused(&at, error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // A signature is valid on this host only, and an unfinished file is not part of the
            // run.
            if name == SIGNATURE_FILE || name.ends_with(".part") {
                continue;
            }
            let path = if inner.is_empty() { name } else { format!("{inner}/{name}") };
            let kind = entry.file_type().map_err(|error| refused(&entry.path(), error))?;
            let is_deep = path.split('/').count() + 2 > DEPTH_MAX;
            if kind.is_dir() && !is_deep {
                folders.push(path);
            } else if kind.is_file() && is_plain(&path) {
                files.push(path);
            } else {
                strange.push(format!("{path}: not a regular file"));
            }
            if files.len() + 10 > ENTRIES_MAX {
                return Err(refused(
                    folder,
                    format!("the folder has too many files: a bundle has at most {ENTRIES_MAX}"),
                ));
            }
        }
    }
    files.sort();
    Ok((files, strange))
}
