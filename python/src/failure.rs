//! Converts the program's errors to Python exceptions with the same text.

use planimeter::cli::failure::{Failure, FailureKind};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Creates the exception for a failure. `planimeter.errors` defines the class for each exit code.
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
        // Without its exception classes the package is broken, but the message is still available.
        made.map_or_else(|_| PyRuntimeError::new_err(failure.line.clone()), PyErr::from_value)
    })
}

/// Creates the exception for invalid input.
pub fn usage(line: impl Into<String>) -> PyErr {
    raised(&Failure::usage(line))
}
