//! Many changes in one transaction: said ahead of the answers, committed, completed or taken back.

use forces::association::{CeEvent, Place};
use forces::model::DataType;
use forces::value::Value;
use forces::wire::{
    Data, Operation, OperationKind, PathData, Select, Selector, TLV_OCTETS_MAX, data,
};

use super::{CeError, ControlElement, Meanwhile, done};

/// Requests that may wait for their answers while more are said.
const AHEAD: usize = 16;
/// Octets of rows in one message.
const PART_OCTETS: usize = TLV_OCTETS_MAX - 1024;

/// Rows of a table, by index.
pub type Rows = forces::Rows;

/// Sets that make rows of a table what they are given as, each of as many as one TLV holds: a range of
/// the table each (RFC 7391 section 3.1), so that rows are sent without names of their fields.
/// `data_type` is the table's.
///
/// Errors with the first row that is none of the table's.
pub fn rows_of(
    table: &Place,
    data_type: &DataType,
    rows: &Rows,
) -> Result<Vec<Select>, forces::value::ValueFault> {
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
    /// Does all of these changes in one transaction, or none: they are staged, committed, and said to be
    /// complete.
    pub fn transact(
        &mut self,
        changes: impl IntoIterator<Item = Vec<Select>>,
        meanwhile: &mut dyn Meanwhile,
    ) -> Result<(), CeError> {
        let staged = self.stage(changes, meanwhile);
        let committed = match staged {
            Ok(0) => return Ok(()),
            Ok(_) => {
                let correlator = self.ce.commit()?;
                self.answer(correlator, meanwhile).and_then(|answer| done(&answer))
            }
            Err(error) => Err(error),
        };
        match committed {
            Ok(()) => {
                self.ce.complete()?;
                self.turn(meanwhile.now())
            }
            Err(CeError::Failed(failures)) => {
                // What failed to commit is over there already; whatever it answers, nothing is staged.
                if let Ok(correlator) = self.ce.abort() {
                    let _ = self.answer(correlator, meanwhile);
                }
                Err(CeError::Failed(failures))
            }
            Err(other) => Err(other),
        }
    }

    /// Stages changes; how many messages that took.
    fn stage(
        &mut self,
        changes: impl IntoIterator<Item = Vec<Select>>,
        meanwhile: &mut dyn Meanwhile,
    ) -> Result<usize, CeError> {
        let (mut open, mut count) = (std::collections::VecDeque::new(), 0);
        let mut failures = Vec::new();
        for selects in changes {
            while open.len() >= AHEAD {
                self.settle(&mut open, &mut failures, meanwhile)?;
            }
            if !failures.is_empty() {
                break;
            }
            open.push_back(self.ce.transact(selects)?);
            count += 1;
        }
        while !open.is_empty() {
            self.settle(&mut open, &mut failures, meanwhile)?;
        }
        match failures.is_empty() {
            true => Ok(count),
            false => Err(CeError::Failed(failures)),
        }
    }

    /// Waits for the oldest answer.
    fn settle(
        &mut self,
        open: &mut std::collections::VecDeque<u64>,
        failures: &mut Vec<(Place, forces::wire::ResultCode)>,
        meanwhile: &mut dyn Meanwhile,
    ) -> Result<(), CeError> {
        let Some(correlator) = open.pop_front() else { return Ok(()) };
        failures.extend(self.answer(correlator, meanwhile)?.failures());
        Ok(())
    }

    /// Answers and events that came and that nobody has asked for.
    pub fn waiting(&self) -> impl Iterator<Item = &CeEvent> {
        self.events.iter()
    }
}
