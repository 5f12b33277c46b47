//! Transactions of many changes: pipelined, then committed and completed, or aborted.

use forces::association::{CeEvent, Place};
use forces::model::DataType;
use forces::model::value::Value;
use forces::wire::{
    Data, Operation, OperationKind, PathData, Select, Selector, TLV_OCTETS_MAX, data,
};

use super::{CeError, ControlElement, WaitHook, done};

/// Maximum number of outstanding requests.
const AHEAD: usize = 16;
/// Maximum size of the rows in one message, in octets.
const PART_OCTETS: usize = TLV_OCTETS_MAX - 1024;

/// Rows of a table, by index.
pub type Rows = forces::Rows;

/// Encodes rows of a table as SET operations, each with as many rows as one TLV holds.
///
/// Each operation covers a range of the table (RFC 7391, section 3.1), so that rows need no field
/// ids. `data_type` is the table's type.
///
/// Fails at the first row that does not fit the table's type.
pub fn rows_of(
    table: &Place,
    data_type: &DataType,
    rows: &Rows,
) -> Result<Vec<Select>, forces::model::value::ValueFault> {
    let mut all = Vec::new();
    let (mut bytes, mut range): (Vec<u8>, Option<(u32, u32)>) = (Vec::new(), None);
    let mut close = |bytes: &mut Vec<u8>, range: &mut Option<(u32, u32)>| {
        let Some((first, last)) = range.take() else { return };
        let path = PathData {
            ids: table.path.clone(),
            selector: Some(Selector::Range { first, last }),
            data: Data::Full(std::mem::take(bytes)),
        };
        let operation = Operation::on(OperationKind::Set, vec![path]);
        all.push(Select::one(table.class, table.instance, operation));
    };
    for (index, row) in rows {
        let one = Value::Array([(*index, row.clone())].into());
        let Data::Full(row) = data::write(data_type, &one)? else { continue };
        if bytes.len() + row.len() > PART_OCTETS {
            close(&mut bytes, &mut range);
        }
        bytes.extend(row);
        range = Some((range.map_or(*index, |(first, _)| first), *index));
    }
    close(&mut bytes, &mut range);
    Ok(all)
}

impl ControlElement {
    /// Makes all of these changes in one transaction, or none: stage, commit, transaction complete.
    pub fn transact(
        &mut self,
        changes: impl IntoIterator<Item = Vec<Select>>,
        hook: &mut dyn WaitHook,
    ) -> Result<(), CeError> {
        let staged = self.stage(changes, hook);
        let committed = match staged {
            Ok(0) => return Ok(()),
            Ok(_) => {
                let correlator = self.ce.commit()?;
                self.answer(correlator, hook).and_then(|answer| done(&answer))
            }
            Err(error) => Err(error),
        };
        match committed {
            Ok(()) => {
                self.ce.complete()?;
                self.turn(hook.now())
            }
            Err(CeError::Failed(failures)) => {
                // After a failed commit the peer has already discarded the changes. Any reply to
                // the abort is fine.
                if let Ok(correlator) = self.ce.abort() {
                    let _ = self.answer(correlator, hook);
                }
                Err(CeError::Failed(failures))
            }
            Err(other) => Err(other),
        }
    }

    /// Stages changes. Returns the number of messages.
    fn stage(
        &mut self,
        changes: impl IntoIterator<Item = Vec<Select>>,
        hook: &mut dyn WaitHook,
    ) -> Result<usize, CeError> {
        let (mut open, mut count) = (std::collections::VecDeque::new(), 0);
        let mut failures = Vec::new();
        for selects in changes {
            while open.len() >= AHEAD {
                self.settle(&mut open, &mut failures, hook)?;
            }
            if !failures.is_empty() {
                break;
            }
            open.push_back(self.ce.transact(selects)?);
            count += 1;
        }
        while !open.is_empty() {
            self.settle(&mut open, &mut failures, hook)?;
        }
        match failures.is_empty() {
            true => Ok(count),
            false => Err(CeError::Failed(failures)),
        }
    }

    /// Waits for the oldest reply.
    fn settle(
        &mut self,
        open: &mut std::collections::VecDeque<u64>,
        failures: &mut Vec<(Place, forces::wire::ResultCode)>,
        hook: &mut dyn WaitHook,
    ) -> Result<(), CeError> {
        let Some(correlator) = open.pop_front() else { return Ok(()) };
        failures.extend(self.answer(correlator, hook)?.failures());
        Ok(())
    }

    /// Returns queued replies and events.
    pub fn waiting(&self) -> impl Iterator<Item = &CeEvent> {
        self.events.iter()
    }
}
