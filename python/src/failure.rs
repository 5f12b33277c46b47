//! Errors of the program as exceptions of the package, with the same text.

use planimeter::cli::failure::{Failure, FailureKind};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// The exception for this failure: the class is `planimeter.errors`' for its exit code.
pub fn raised(failure: &Failure) -> PyErr {
    let class = match failure.kind {
        FailureKind::Usage => "UsageError",
        FailureKind::Irregular => "IrregularError",
        FailureKind::Need => "NeedMissing",
        FailureKind::Interrupted => "Interrupted",
    };
    Python::attach(|py| {
        let made = py
            .import("planimeter.errors")
            .and_then(|errors| errors.getattr(class))
            .and_then(|class| class.call1((failure.line.as_str(),)));
        // Without its own classes the package is broken, but what went wrong is still told.
        made.map_or_else(|_| PyRuntimeError::new_err(failure.line.clone()), PyErr::from_value)
    })
}

/// The exception for what somebody wrote wrongly.
pub fn usage(line: impl Into<String>) -> PyErr {
    raised(&Failure::usage(line))
}
