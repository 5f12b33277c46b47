//! Configurations, queries and transactions (RFC 5810 sections 4.3.1, 7.6 and 7.7).
//!
//! - A message outside a transaction is staged and committed according to its execution mode.
//! - Messages of a transaction are staged until one commits them.
//! - The state before the commit remains until the CE completes the transaction. It is restored if
//!   the CE aborts it.
//! - A transaction that stays open too long times out.

use std::time::Duration;

use super::{
    Ack, Element, ElementContext, Fe, Flags, Header, Id, OperationKind, ResultCode, Select,
    protocol_objects,
};
use crate::association::operations::{self, OperationBuilder, Plan};
use crate::association::{Timestamp, fragmentation};
use crate::wire::{Content, Mode, Operation, Outcome, Phase};

/// Timeout of a transaction without messages.
pub const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(60);

/// A transaction that is open, or committed and not complete.
#[derive(Debug)]
pub(super) struct Transaction {
    /// The CE that started it.
    pub ce: Id,
    /// When it times out.
    pub until: Timestamp,
    /// Why it cannot be committed.
    failed: Option<ResultCode>,
    committed: bool,
}

/// Results of a message's operations.
struct OperationResults {
    /// For each instance, plan and results of each operation; no plan for those without paths.
    selects: Vec<(u32, u32, Vec<OperationOutcome>)>,
    failed: Option<ResultCode>,
}

struct OperationOutcome {
    kind: OperationKind,
    plan: Option<Plan>,
    results: Vec<ResultCode>,
}

impl ElementContext<'_> {
    fn stage_work(&mut self, work: OperationBuilder) -> ResultCode {
        match work {
            OperationBuilder::Refused(code) => code,
            OperationBuilder::Event(place, value) => self.subscriptions.stage(place, &value),
            OperationBuilder::Changes(changes) => {
                let codes = changes.into_iter().map(|change| self.stage(change));
                codes.fold(
                    ResultCode::SUCCESS,
                    |first, code| {
                        if first.is_success() { code } else { first }
                    },
                )
            }
        }
    }

    /// Stages the operations of a message. After a failure it continues only if the mode allows it.
    fn run(&mut self, selects: &[Select], mode: Mode) -> OperationResults {
        let mut done = OperationResults { selects: Vec::new(), failed: None };
        for select in selects {
            let mut ran = Vec::new();
            for operation in &select.operations {
                if operation.kind.is_empty() {
                    let (kind, results) = (operation.kind, Vec::new());
                    ran.push(OperationOutcome { kind, plan: None, results });
                    continue;
                }
                let mut plan = operations::plan(self, select, operation);
                let mut results = Vec::new();
                for work in std::mem::take(&mut plan.work) {
                    let code = match done.failed {
                        Some(_) if mode == Mode::UntilFailure => ResultCode::UNSPECIFIED,
                        _ => self.stage_work(work),
                    };
                    if !code.is_success() {
                        done.failed.get_or_insert(code);
                    }
                    results.push(code);
                }
                ran.push(OperationOutcome { kind: operation.kind, plan: Some(plan), results });
            }
            done.selects.push((select.class, select.instance, ran));
        }
        done
    }
}

impl OperationResults {
    /// Replaces the result codes of successful changes.
    fn undo(&mut self, code: ResultCode) {
        let all = self.selects.iter_mut().flat_map(|(_, _, ran)| ran);
        for result in all.flat_map(|ran| &mut ran.results).filter(|code| code.is_success()) {
            *result = code;
        }
        self.failed.get_or_insert(code);
    }

    /// Returns the instances of the response, with COMMIT's result; optionally only failures.
    fn response(
        &self,
        extended: bool,
        only_failures: bool,
        commit: Option<ResultCode>,
    ) -> Vec<Select> {
        let operation = |ran: &OperationOutcome| {
            let kind = ran.kind.response()?;
            let content = match &ran.plan {
                Some(plan) => Content::Paths(plan.response(&ran.results, extended, only_failures)),
                None => Content::Outcome(Outcome::of(commit?, extended)),
            };
            (content != Content::Paths(Vec::new())).then_some(Operation { kind, content })
        };
        let select = |(class, instance, ran): &(u32, u32, Vec<OperationOutcome>)| {
            let operations: Vec<_> = ran.iter().filter_map(operation).collect();
            let (class, instance) = (*class, *instance);
            (!operations.is_empty()).then_some(Select { class, instance, operations })
        };
        self.selects.iter().filter_map(select).collect()
    }
}

impl Fe {
    /// Responds to a query; ignores its execution mode.
    pub(super) fn query(
        &mut self,
        ce: Id,
        header: &Header,
        selects: &[Select],
        element: &mut dyn Element,
    ) {
        self.note_stands();
        let extended = self.own.is_extended();
        let (own, subscriptions) = (&mut self.own, &mut self.subscriptions);
        let world = ElementContext { own, subscriptions, element };
        let answer = |select: &Select| {
            let operations = select.operations.iter();
            let operations =
                operations.map(|operation| operations::answer(&world, select, operation, extended));
            Select {
                class: select.class,
                instance: select.instance,
                operations: operations.collect(),
            }
        };
        let selects: Vec<_> = selects.iter().map(answer).collect();
        let header = self.response_header(ce, header);
        let catalog = element.catalog();
        let types =
            |select: &Select, path: &[u32]| protocol_objects::type_at(catalog, select.class, path);
        for message in fragmentation::messages(header, selects, &types) {
            self.queue(ce, &message);
        }
    }

    fn response_header(&self, ce: Id, request: &Header) -> Header {
        let Flags { priority, atomic, phase, .. } = request.flags;
        Header {
            source: self.id,
            destination: ce,
            correlator: request.correlator,
            flags: Flags { priority, atomic, phase, ..Flags::default() },
        }
    }

    /// Executes a configuration, and responds according to its ACK flag.
    pub(super) fn config(
        &mut self,
        ce: Id,
        header: &Header,
        selects: &[Select],
        element: &mut dyn Element,
    ) {
        let before = (self.own.primary(), self.own.state());
        let has = |kind: OperationKind| {
            let all = selects.iter().flat_map(|select| &select.operations);
            all.clone().any(|operation| operation.kind == kind)
        };
        if has(OperationKind::Complete) {
            // There is no response (RFC 5810 section 4.3.1.2.2).
            if self.transaction.take_if(|transaction| transaction.committed).is_some() {
                element.complete();
            }
            return;
        }
        let commits = has(OperationKind::Commit);
        let (done, commit) = match header.flags.atomic {
            true => self.transact(ce, header, selects, commits, element),
            false => (self.at_once(header, selects, element), None),
        };
        let failed = done.failed.is_some() || commit.is_some_and(|code| !code.is_success());
        let wanted = match header.flags.ack {
            Ack::Never => false,
            Ack::Success => !failed,
            Ack::Failure => failed,
            Ack::Always => true,
        };
        if wanted {
            let only_failures = header.flags.ack == Ack::Failure;
            let selects = done.response(self.own.is_extended(), only_failures, commit);
            // In the response, these flags mark several messages, not the transaction of the
            // request.
            let mut header = self.response_header(ce, header);
            (header.flags.atomic, header.flags.phase) = (false, Phase::Start);
            for message in fragmentation::responses(header, selects) {
                self.queue(ce, &message);
            }
        }
        self.follow(before, element);
    }

    /// Executes a message outside a transaction.
    fn at_once(
        &mut self,
        header: &Header,
        selects: &[Select],
        element: &mut dyn Element,
    ) -> OperationResults {
        let busy = self.transaction.is_some();
        let (own, subscriptions) = (&mut self.own, &mut self.subscriptions);
        let mut world = ElementContext { own, subscriptions, element };
        if busy {
            let mut done = refused(&world, selects, ResultCode::BUSY);
            done.failed = Some(ResultCode::BUSY);
            return done;
        }
        let mode = header.flags.mode;
        let mut done = world.run(selects, mode);
        let keeps = matches!(mode, Mode::Continue | Mode::UntilFailure);
        if done.failed.is_some() && !keeps {
            world.unstage();
            done.undo(ResultCode::UNSPECIFIED);
            return done;
        }
        let code = world.commit();
        match code.is_success() {
            true => world.complete(),
            false => done.undo(code),
        }
        done
    }

    /// Executes a message of a transaction; the second value is the result of its COMMIT.
    fn transact(
        &mut self,
        ce: Id,
        header: &Header,
        selects: &[Select],
        commits: bool,
        element: &mut dyn Element,
    ) -> (OperationResults, Option<ResultCode>) {
        let until = self.now + TRANSACTION_TIMEOUT;
        let phase = header.flags.phase;
        if phase == Phase::Start {
            match &self.transaction {
                Some(transaction) if transaction.committed => {}
                _ => {
                    let (own, subscriptions) = (&mut self.own, &mut self.subscriptions);
                    ElementContext { own, subscriptions, element }.unstage();
                    let (failed, committed) = (None, false);
                    self.transaction = Some(Transaction { ce, until, failed, committed });
                }
            }
        }
        let (own, subscriptions) = (&mut self.own, &mut self.subscriptions);
        let mut world = ElementContext { own, subscriptions, element };
        let Some(transaction) = &mut self.transaction else {
            let code = ResultCode::INVALID_FLAGS;
            return (refused(&world, selects, code), commits.then_some(code));
        };
        transaction.until = until;
        if phase == Phase::Abort {
            match transaction.committed {
                true => world.roll_back(),
                false => world.unstage(),
            }
            self.transaction = None;
            let done = refused(&world, selects, ResultCode::UNSPECIFIED);
            return (OperationResults { failed: None, ..done }, Some(ResultCode::SUCCESS));
        }
        if transaction.committed {
            let code = ResultCode::BUSY;
            return (refused(&world, selects, code), commits.then_some(code));
        }
        let done = match header.flags.mode {
            Mode::AllOrNone => world.run(selects, Mode::AllOrNone),
            // Any other mode fails the whole transaction (RFC 5810 section 4.3.1.2.2).
            _ => refused(&world, selects, ResultCode::INVALID_FLAGS),
        };
        if transaction.failed.is_none() {
            transaction.failed = done.failed;
        }
        if !(phase == Phase::End && commits) {
            return (done, commits.then_some(ResultCode::INVALID_FLAGS));
        }
        let code = match transaction.failed {
            Some(code) => code,
            None => world.commit(),
        };
        match code.is_success() {
            true => transaction.committed = true,
            false => {
                world.unstage();
                self.transaction = None;
            }
        }
        (done, Some(code))
    }

    /// Ends a transaction: discards staged changes, keeps committed ones.
    pub(super) fn end_transaction(&mut self, element: &mut dyn Element) {
        let Some(transaction) = self.transaction.take() else { return };
        let (own, subscriptions) = (&mut self.own, &mut self.subscriptions);
        let mut world = ElementContext { own, subscriptions, element };
        match transaction.committed {
            true => world.complete(),
            false => world.unstage(),
        }
    }
}

/// Returns the results of a message that is rejected as a whole.
fn refused(world: &ElementContext<'_>, selects: &[Select], code: ResultCode) -> OperationResults {
    let mut failed = None;
    let select = |select: &Select| {
        let operation = |operation: &Operation| {
            let kind = operation.kind;
            if kind.is_empty() {
                return OperationOutcome { kind, plan: None, results: Vec::new() };
            }
            let plan = operations::plan(world, select, operation);
            let results = vec![code; plan.work.len()];
            OperationOutcome { kind, plan: Some(plan), results }
        };
        (select.class, select.instance, select.operations.iter().map(operation).collect())
    };
    let selects = selects.iter().map(select).collect();
    failed.get_or_insert(code);
    OperationResults { selects, failed }
}
