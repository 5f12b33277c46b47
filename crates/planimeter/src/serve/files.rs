//! Files of a run that the server delivers: only those that a run or its report writes, inside the
//! folder of runs.
//!
//! Invariants:
//! - A path consists of plain names only.
//! - The file is inside the folder after all symbolic links are resolved.
//! - The response is the same for every kind of invalid path.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use store::campaign;

/// Size limit of a delivered file, in bytes.
pub(super) const FILE_BYTES_MAX: u64 = 256 << 20;

/// File name extensions and their content types.
const KINDS: [(&str, &str); 9] = [
    ("html", "text/html; charset=utf-8"),
    ("svg", "image/svg+xml"),
    ("csv", "text/csv; charset=utf-8"),
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("md", "text/plain; charset=utf-8"),
    ("hgrm", "text/plain; charset=utf-8"),
    ("parquet", "application/vnd.apache.parquet"),
    ("pcapng", "application/octet-stream"),
];

/// Returns whether a text is a valid name of one folder.
pub(super) fn is_name(text: &str) -> bool {
    let mut parts = Path::new(text).components();
    let one = parts.next();
    matches!(one, Some(Component::Normal(name)) if name == text) && parts.next().is_none()
}

/// Returns the folder of a run, or of a campaign's run by both names, if it exists there.
pub(super) fn run(folder: &Path, name: &str) -> Option<PathBuf> {
    let parts: Vec<&str> = name.split('/').collect();
    if parts.len() > 2 || !parts.iter().all(|part| is_name(part)) || text_is_odd(name) {
        return None;
    }
    let root = folder.canonicalize().ok()?;
    // A folder inside a run is not a run.
    if parts.len() == 2 && !campaign::is_campaign(&root.join(parts[0])) {
        return None;
    }
    let path = root.join(name).canonicalize().ok()?;
    let lies_there = path.ancestors().nth(parts.len()) == Some(root.as_path());
    (lies_there && path.is_dir()).then_some(path)
}

/// Reads a file of a run: its content type and its content.
pub(super) fn read(folder: &Path, name: &str, path: &str) -> Option<(&'static str, Vec<u8>)> {
    let run = run(folder, name)?;
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    if path.is_empty() || text_is_odd(path) || !Path::new(path).components().all(is_plain) {
        return None;
    }
    let end = path.rsplit_once('.')?.1;
    let (_, kind) = KINDS.iter().find(|(known, _)| *known == end)?;
    let file = run.join(path).canonicalize().ok()?;
    let facts = fs::metadata(&file).ok()?;
    if !file.starts_with(&run) || !facts.is_file() || facts.len() > FILE_BYTES_MAX {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(&file).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some((kind, bytes))
}

fn text_is_odd(text: &str) -> bool {
    text.contains(['\0', '\\']) || text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_files_of_runs_are_served() {
        let base = std::env::temp_dir().join(format!("planimeter-files-{}", std::process::id()));
        let runs = base.join("runs");
        fs::create_dir_all(runs.join("one/figures")).unwrap();
        fs::create_dir_all(base.join("outside")).unwrap();
        for file in ["runs/one/report.html", "runs/one/figures/a.svg", "runs/one/secret.key"] {
            fs::write(base.join(file), "inside").unwrap();
        }
        fs::write(base.join("outside/record.json"), "outside").unwrap();
        fs::write(base.join("record.json"), "outside").unwrap();
        symlink(base.join("outside"), runs.join("linked")).unwrap();
        symlink(base.join("record.json"), runs.join("one/record.json")).unwrap();
        symlink(base.join("outside"), runs.join("one/out")).unwrap();
        let found = |run: &str, path: &str| read(&runs, run, path).map(|(_, bytes)| bytes);
        assert_eq!(found("one", "report.html").unwrap(), b"inside");
        assert_eq!(found("one", "figures/a.svg").unwrap(), b"inside");
        for (run, path) in [
            ("..", "record.json"),
            (".", "one/report.html"),
            ("", "record.json"),
            ("one", "../../record.json"),
            ("one", "figures/../../../record.json"),
            ("one", "/etc/hostname.json"),
            ("one", "record.json"),
            ("one", "out/record.json"),
            ("one", "secret.key"),
            ("one", "report.html\0"),
            ("one", ""),
            ("one", "figures"),
            ("one", "nothing.html"),
            ("linked", "record.json"),
            ("one/figures", "a.svg"),
            ("../outside", "record.json"),
        ] {
            assert_eq!(found(run, path), None, "{run:?} {path:?}");
        }
        fs::remove_dir_all(&base).unwrap();
    }
}
