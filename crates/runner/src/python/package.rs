//! The Python package that scripts import, embedded in the program and written to disk for each
//! run.
//!
//! Invariant: a script imports the package of the program that runs it, regardless of other
//! installed packages.

use std::io;
use std::path::Path;

use testbed::{LabError, RunFolder};

/// Its files.
const FILES: [(&str, &str); 6] = [
    ("__init__.py", include_str!("../../../../python/planimeter/__init__.py")),
    ("events.py", include_str!("../../../../python/planimeter/events.py")),
    ("module.py", include_str!("../../../../python/planimeter/module.py")),
    ("parameters.py", include_str!("../../../../python/planimeter/parameters.py")),
    ("protocol.py", include_str!("../../../../python/planimeter/protocol.py")),
    ("renamed.py", include_str!("../../../../python/planimeter/renamed.py")),
];

/// Writes it into a run's folder, where Python then finds it.
pub fn lay_out(folder: &RunFolder) -> Result<(), LabError> {
    let path = folder.folder("planimeter")?;
    let write = |path: &Path| -> io::Result<()> {
        FILES.iter().try_for_each(|(name, text)| std::fs::write(path.join(name), text))
    };
    write(&path).map_err(|error| {
        LabError::system("write the Python package to", path.display().to_string(), error)
    })
}
