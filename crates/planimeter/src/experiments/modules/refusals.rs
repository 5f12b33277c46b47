//! Errors that the switch sent although nothing wrong was asked: how many, and what the first said.

use instrument::module::Measured;
use openflow::model::message::ErrorMessage;

/// Errors so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refusals {
    count: u64,
    first: Option<String>,
}

impl Refusals {
    /// One more.
    pub fn note(&mut self, error: &ErrorMessage) {
        self.count += 1;
        self.first.get_or_insert_with(|| error.code.to_string());
    }

    /// Tells them as `errors_count`.
    pub fn tell(&self, tell: &mut impl FnMut(Measured)) {
        let told = Measured::new("errors_count", "count", self.count as f64, 0.0);
        tell(match &self.first {
            Some(first) => told.noting(format!("the first was {first}")),
            None => told,
        });
    }
}
