//! Processing of client requests: immediately, in parts, or with a program that the compile thread
//! prepares.

use std::sync::Arc;

use channel::admission::AdmissionCounters;
use packet::time::Nanos;
use progfe::compile::Compiled;
use progfe::element::{Basis, ElementError};
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::budget::Budget;
use crate::control::answer::element::{prepare_additions, put_in_place};
use crate::control::answer::{answer, carry, connections, controllers, mtu_of};
use crate::control::request::{ProgramSource, Resource};
use crate::control::task::BackgroundChange;
use crate::control::{Request, RequestOutcome, Task, TaskOutcome};
use crate::datapath::DataPlane;
use crate::forward::ForwardLoop;
use crate::program_compiler::{self, ProgramCompiler};
use crate::services::Services;

/// Minimum number of entries for which the compile thread prepares the changed tables of an
/// element.
const APART_MIN: usize = 256;

/// Maximum number of repeated preparations because another change came first.
const RETRIES_MAX: u32 = 3;

/// Admission counters of the listeners for clients, where they exist.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listeners {
    /// The control socket.
    pub control: Option<AdmissionCounters>,
    /// The HTTP server.
    pub http: Option<AdmissionCounters>,
}

/// Processes a task up to the budget. If there is a compile thread, it prepares large additions to
/// an element's tables.
pub(super) fn carry_or_wait(
    task: Task,
    forward: &mut ForwardLoop<DataPlane>,
    compiler: Option<&mut ProgramCompiler>,
    now: Nanos,
    budget: &mut Budget<'_>,
) -> TaskOutcome {
    let is_large = task.entries() >= APART_MIN || matches!(task, Task::Background(_));
    let (DataPlane::ProGfe(element), Some(compiler), true) =
        (&mut forward.forwarder, compiler, is_large)
    else {
        return carry(task, forward, now, budget);
    };
    let mut apart = match task {
        Task::Background(apart) => apart,
        task => {
            BackgroundChange { request: Arc::new(task.into_request()), number: None, retries: 0 }
        }
    };
    let Some(number) = apart.number else {
        if !compiler.is_busy(now) {
            let (request, program) = (Arc::clone(&apart.request), Arc::clone(element.program()));
            let mtus: Vec<_> =
                forward.forward_ports.iter().map(|it| (it.number, mtu_of(it))).collect();
            let making = Box::new(move |basis: &Basis<Compiled>| {
                prepare_additions(&request, &program, &mtus, basis)
            });
            apart.number = compiler.make(making, element.basis());
        }
        return TaskOutcome::Later(Task::Background(apart));
    };
    // If other changes keep replacing the program, the change is applied directly.
    if compiler.is_lost(number) || apart.retries == RETRIES_MAX {
        return carry(Task::Background(apart), forward, now, budget);
    }
    let prepared = match compiler.fetch(number) {
        None => return TaskOutcome::Later(Task::Background(apart)),
        Some(Err(why)) => return TaskOutcome::Done(Err(why)),
        Some(Ok((prepared, _))) => prepared,
    };
    // The new program has other timers.
    forward.due = Some(now);
    match element.swap(prepared, now, &mut forward.outputs) {
        Ok(()) => element.settle(),
        Err(ElementError::Stale) => {
            let BackgroundChange { request, retries, .. } = apart;
            let again = BackgroundChange { request, number: None, retries: retries + 1 };
            return TaskOutcome::Later(Task::Background(again));
        }
        Err(error) => return TaskOutcome::Done(Err(error.to_string())),
    }
    let added = Task::from(Arc::unwrap_or_clone(apart.request)).entries();
    TaskOutcome::Done(Ok(json!({ "added": added })))
}

/// Processes a request like [`answer_for`], but compiles programs in the compile thread if there is
/// one.
pub(super) fn answer_or_wait(
    request: Request,
    forward: &mut ForwardLoop<DataPlane>,
    controlling: (Option<&Agent>, Option<&mut Services>, Listeners),
    compiler: Option<&mut ProgramCompiler>,
    now: Nanos,
) -> RequestOutcome {
    let (request, compiler) = match (request, compiler) {
        (Request::Load(document), Some(compiler)) => (document, compiler),
        (request, _) => return RequestOutcome::Now(answer_for(request, forward, controlling, now)),
    };
    let DataPlane::ProGfe(element) = &mut forward.forwarder else {
        return RequestOutcome::Now(answer_for(Request::Load(request), forward, controlling, now));
    };
    let mut document = request;
    let Some(number) = document.number else {
        if !compiler.is_busy(now) {
            let given = ProgramSource {
                number: None,
                name: document.name.clone(),
                text: std::mem::take(&mut document.text),
            };
            let making =
                Box::new(move |basis: &Basis<Compiled>| program_compiler::load(&given, basis));
            document.number = compiler.make(making, element.basis());
        }
        return RequestOutcome::Later(Request::Load(document));
    };
    match compiler.fetch(number) {
        None => RequestOutcome::Later(Request::Load(document)),
        Some(made) => RequestOutcome::Now(made.and_then(|(prepared, noted)| {
            let out = &mut forward.outputs;
            let told = put_in_place((prepared, &noted), element, out, now);
            // The new program has other timers.
            forward.due = Some(now);
            told
        })),
    }
}

/// Returns the data plane's reply. For counters it adds those of the agent and the listeners.
pub(super) fn answer_for(
    request: Request,
    forward: &mut ForwardLoop<DataPlane>,
    (agent, services, listeners): (Option<&Agent>, Option<&mut Services>, Listeners),
    now: Nanos,
) -> Result<Value, String> {
    let ForwardLoop { forwarder, outputs, .. } = forward;
    if let (Some(services), DataPlane::ProGfe(element)) = (services, forwarder) {
        match &request {
            Request::Get(Resource::Agents) => return Ok(services.agents(now)),
            Request::AskAgent(it) => {
                return services.ask(&it.agent, &it.ask(), (element, outputs), now);
            }
            _ => {}
        }
    }
    let is_counters = request == Request::Get(Resource::Counters);
    let mut answer = answer(request, forward, now)?;
    if let Some(agent) = agent.filter(|_| is_counters) {
        answer["controllers"] = controllers(agent);
    }
    for (name, counters) in [("control", listeners.control), ("http", listeners.http)] {
        if let Some(counters) = counters.filter(|_| is_counters) {
            answer[name] = connections(counters);
        }
    }
    Ok(answer)
}
