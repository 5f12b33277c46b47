//! Tests with malicious and damaged bundles.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, Header};

use super::*;

/// A temporary folder, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let name = format!("planimeter-unpack-{}-{test}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("inner/into")).unwrap();
        Folder(path)
    }

    fn inner(&self) -> PathBuf {
        self.0.join("inner/into")
    }

    /// Returns every file below, except the bundle.
    fn files(&self) -> Vec<String> {
        let (files, _) = crate::cli::bundle::pack::files_below(&self.0).unwrap();
        files.into_iter().filter(|it| it != "b.tar.gz").collect()
    }

    /// Writes a bundle with these entries between valid ones, and unpacks it.
    fn unpacked(&self, entries: &[(EntryType, &str, &[u8])]) -> Result<OpenedBundle, BundleFault> {
        let facts = serde_json::json!({
            "schema": SCHEMA, "tool": { "name": "planimeter", "version": "0" }, "created": "", "run": "a",
        });
        let facts = facts.to_string();
        let mut all = vec![
            (EntryType::Regular, FACTS_FILE, facts.as_bytes()),
            (EntryType::Regular, PLAN_FILE, b"run = \"latency\"\n".as_slice()),
        ];
        all.extend(entries);
        all.push((EntryType::Regular, "files/last.toml", b"last"));
        let file = self.0.join("b.tar.gz");
        fs::write(&file, packed(&all)).unwrap();
        unpack_up_to(10_000, &file, FILES_FOLDER, &self.inner())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns a tar file with names written unchanged.
fn packed(entries: &[(EntryType, &str, &[u8])]) -> Vec<u8> {
    let mut tar = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (kind, name, bytes) in entries {
        let mut header = Header::new_ustar();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        header.set_size(bytes.len() as u64);
        if kind.is_symlink() || kind.is_hard_link() {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        tar.append(&header, *bytes).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

#[test]
fn a_valid_bundle_is_unpacked_or_only_the_requested_folder() {
    let folder = Folder::new("sound");
    let entries: &[(EntryType, &str, &[u8])] = &[
        (EntryType::Regular, "files/a/b.xml", b"program"),
        (EntryType::Regular, "run/record.json", b"{}"),
    ];
    let opened = folder.unpacked(entries).unwrap();
    assert_eq!((opened.facts.run.as_str(), opened.plan.as_str()), ("a", "run = \"latency\"\n"));
    assert_eq!(folder.files(), ["inner/into/a/b.xml", "inner/into/last.toml"]);
}

#[test]
fn no_file_outside_and_no_link_is_created() {
    for (number, (kind, name)) in [
        (EntryType::Regular, "../x"),
        (EntryType::Regular, "files/../../x"),
        (EntryType::Regular, "files/../../../x"),
        (EntryType::Regular, "/tmp/planimeter-unpacked"),
        (EntryType::Regular, "files//x"),
        (EntryType::Regular, "files/./x"),
        (EntryType::Regular, "files/a\\..\\x"),
        (EntryType::Regular, "files/c:x"),
        (EntryType::Regular, "files/a\nb"),
        (EntryType::Regular, "files/a/b/c/d/e/f/g/h/i"),
        (EntryType::Regular, "files"),
        (EntryType::Regular, "files/"),
        (EntryType::Regular, "other/x"),
        (EntryType::Regular, "record.json"),
        (EntryType::Symlink, "files/x"),
        (EntryType::Link, "files/x"),
        (EntryType::Directory, "files/x"),
        (EntryType::Char, "files/x"),
        (EntryType::Fifo, "files/x"),
        (EntryType::GNULongName, "files/x"),
        (EntryType::XHeader, "files/x"),
        (EntryType::GNUSparse, "files/x"),
    ]
    .into_iter()
    .enumerate()
    {
        let folder = Folder::new(&format!("hostile-{number}"));
        let Err(fault) = folder.unpacked(&[(kind, name, b"")]) else {
            panic!("{name:?} was unpacked");
        };
        let line = fault.to_string();
        assert!(matches!(fault, BundleFault::Name(_) | BundleFault::Kind(..)), "{name:?}: {line}");
        assert!(!line.contains('\n') && line.contains("invalid bundle"), "{line}");
        assert_eq!(folder.files(), Vec::<String>::new(), "{name:?}");
        assert!(!Path::new("/tmp/planimeter-unpacked").exists());
    }
}

#[test]
fn duplicate_names_and_excessive_sizes_are_rejected() {
    let twice = Folder::new("twice");
    let entry = (EntryType::Regular, "files/x", b"1".as_slice());
    assert!(matches!(twice.unpacked(&[entry, entry]), Err(BundleFault::Twice(_))));
    let large = Folder::new("large");
    let zeros = vec![0; 5_000];
    let entries =
        [(EntryType::Regular, "files/x", &zeros[..]), (EntryType::Regular, "run/y", &zeros[..])];
    assert!(matches!(large.unpacked(&entries), Err(BundleFault::Bytes(10_000))));
    // A wrong size in a header allocates no memory and no disk space.
    let mut bytes = Vec::new();
    let mut header = Header::new_ustar();
    header.as_mut_bytes()[..7].copy_from_slice(b"files/x");
    header.set_size(u64::MAX / 2);
    header.set_cksum();
    bytes.extend(header.as_bytes());
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(&bytes).unwrap();
    let file = large.0.join("c.tar.gz");
    fs::write(&file, packer.finish().unwrap()).unwrap();
    assert!(unpack(&file, FILES_FOLDER, &large.inner()).is_err());
}

#[test]
fn a_truncated_bundle_is_an_error() {
    let folder = Folder::new("cut");
    folder.unpacked(&[(EntryType::Regular, "files/x", b"x")]).unwrap();
    let file = folder.0.join("b.tar.gz");
    let whole = fs::read(&file).unwrap();
    for cut in 0..whole.len() {
        fs::remove_dir_all(folder.inner()).unwrap();
        fs::create_dir_all(folder.inner()).unwrap();
        fs::write(&file, &whole[..cut]).unwrap();
        let Err(fault) = unpack(&file, FILES_FOLDER, &folder.inner()) else {
            panic!("cut at {cut} of {} it was unpacked", whole.len());
        };
        assert!(!fault.to_string().contains('\n'), "{fault}");
    }
}
