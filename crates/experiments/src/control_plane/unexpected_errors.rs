//! Errors from the switch without an invalid request: their number, and the text of the first.

use openflow::model::message::ErrorMessage;
use tester::module::MeasuredValue;

/// Errors so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnexpectedErrors {
    count: u64,
    first: Option<String>,
}

impl UnexpectedErrors {
    /// Adds an error.
    pub fn note(&mut self, error: &ErrorMessage) {
        self.count += 1;
        self.first.get_or_insert_with(|| error.code.to_string());
    }

    /// Reports them as `errors_count`.
    pub fn tell(&self, tell: &mut impl FnMut(MeasuredValue)) {
        let told = MeasuredValue::new("errors_count", "count", self.count as f64, 0.0);
        tell(match &self.first {
            Some(first) => told.noting(format!("first error: {first}")),
            None => told,
        });
    }
}
