//! Files of a run on a server, for opening the run without its folder.
//!
//! The store has the files that a report needs: the record, the lines of an unfinished run, and
//! latency histograms. Logs, captures and report files stay in the folder. Invariants for data from
//! a server, which is untrusted:
//!
//! - File names do not leave the target folder.
//! - No file unpacks to more than its declared size.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::TeamError;
use crate::database::{Database, Value};
use crate::{RECORD_FILE, SourceTexts, TRIALS_FILE};
use record::Record;

/// Maximum packed size of a run's files. A larger run is stored without its histograms, or without
/// any files.
pub const PACKED_BYTES_MAX: usize = 64 << 20;

/// Maximum unpacked size of one file.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Maximum number of files of a run.
const FILES_MAX: i64 = 100_000;

/// Packed files of a run: name, size and contents.
#[derive(Debug, Default)]
pub(super) struct PackedFiles {
    files: Vec<(String, u64, Vec<u8>)>,
}

impl PackedFiles {
    /// Packs the files of a local run.
    pub(super) fn of(folder: &Path, record: &Record, texts: &SourceTexts) -> PackedFiles {
        let mut files = vec![(RECORD_FILE.to_string(), packed(texts.record.as_bytes()))];
        if !texts.lines.is_empty() {
            files.push((TRIALS_FILE.into(), packed(texts.lines.as_bytes())));
        }
        let bytes = |files: &[(String, (u64, Vec<u8>))]| -> usize {
            files.iter().map(|(_, (_, packed))| packed.len()).sum()
        };
        if bytes(&files) > PACKED_BYTES_MAX {
            return PackedFiles::default();
        }
        let (head, mut left) = (files.len(), PACKED_BYTES_MAX - bytes(&files));
        let latencies = record.trials.iter().filter_map(|it| it.latency.as_ref()?.file.as_deref());
        for name in latencies {
            // The report mentions a histogram that cannot be read.
            let Some(file) = crate::inside(folder, name).ok().and_then(|it| fs::read(it).ok())
            else {
                continue;
            };
            let file = packed(&file);
            match left.checked_sub(file.1.len()) {
                Some(rest) => left = rest,
                None => {
                    files.truncate(head);
                    break;
                }
            }
            files.push((name.to_string(), file));
        }
        let plain = |(name, (bytes, packed))| (name, bytes, packed);
        PackedFiles { files: files.into_iter().map(plain).collect() }
    }

    /// Whether the run is too large to store its files.
    pub(super) fn is_too_much(&self) -> bool {
        self.files.is_empty()
    }

    /// Total size in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.files.iter().map(|(.., packed)| packed.len()).sum()
    }

    /// Rows for the run with this number.
    pub(super) fn rows(self, run: i64) -> impl Iterator<Item = Vec<Value>> {
        self.files.into_iter().map(move |(name, bytes, packed)| {
            let (run, bytes) = (Value::Integer(run), Value::count(bytes));
            vec![run, Value::Text(name), bytes, Value::Bytes(packed)]
        })
    }
}

fn packed(bytes: &[u8]) -> (u64, Vec<u8>) {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    let written = packer.write_all(bytes).and_then(|()| packer.finish());
    (bytes.len() as u64, written.expect("memory takes all"))
}

/// Writes the files of the run with this number into a folder.
pub(super) fn fetch(database: &mut Database, run: i64, into: &Path) -> Result<(), TeamError> {
    let sizes =
        "SELECT count(*), coalesce(sum(length(packed)), 0)::bigint FROM contents WHERE run = $1";
    let row = database.query(sizes, &[Value::Integer(run)])?.into_iter().next();
    let (files, bytes) = match row {
        Some(mut row) => (row.integer()?, row.integer()?),
        None => (0, 0),
    };
    if files == 0 {
        return Err(TeamError::NotKept);
    }
    if files > FILES_MAX || bytes > PACKED_BYTES_MAX as i64 {
        return Err(TeamError::Odd(format!("its files exceed {PACKED_BYTES_MAX} bytes")));
    }
    let sql = "SELECT path, bytes, packed FROM contents WHERE run = $1";
    for mut row in database.query(sql, &[Value::Integer(run)])? {
        let (name, bytes, packed) = (row.text()?, row.integer()?, row.bytes()?);
        let odd = |why: &str| TeamError::Odd(format!("its file {name:?} {why}"));
        let bytes = u64::try_from(bytes).ok().filter(|it| *it <= FILE_BYTES_MAX);
        let bytes = bytes.ok_or_else(|| odd("is too large"))?;
        let is_known =
            [RECORD_FILE, TRIALS_FILE].contains(&name.as_str()) || name.ends_with(".hgrm");
        let path = crate::inside(into, &name).ok().filter(|_| is_known);
        let path = path.ok_or_else(|| odd("is not a file of a run"))?;
        let mut unpacked = Vec::new();
        let read = GzDecoder::new(packed.as_slice()).take(bytes + 1).read_to_end(&mut unpacked);
        if read.is_err() || unpacked.len() as u64 != bytes {
            return Err(odd("is damaged"));
        }
        let refused = |error| crate::StoreError::new("write", &path, error);
        let parent = path.parent().expect("a file in a folder has one");
        fs::create_dir_all(parent).map_err(refused)?;
        fs::write(&path, unpacked).map_err(refused)?;
    }
    Ok(())
}
