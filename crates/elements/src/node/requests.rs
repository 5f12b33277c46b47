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
use crate::control::task::Apart;
use crate::control::{Answered, Carried, Request, Task};
use crate::datapath::Plane;
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
    forward: &mut ForwardLoop<Plane>,
    workshop: Option<&mut ProgramCompiler>,
    now: Nanos,
    budget: &mut Budget<'_>,
) -> Carried {
    let is_large = task.entries() >= APART_MIN || matches!(task, Task::Apart(_));
    let (Plane::ProGfe(element), Some(workshop), true) =
        (&mut forward.forwarder, workshop, is_large)
    else {
        return carry(task, forward, now, budget);
    };
    let mut apart = match task {
        Task::Apart(apart) => apart,
        task => Apart { request: Arc::new(task.into_request()), number: None, retries: 0 },
    };
    let Some(number) = apart.number else {
        if !workshop.is_busy(now) {
            let (request, program) = (Arc::clone(&apart.request), Arc::clone(element.program()));
            let mtus: Vec<_> = forward.lanes.iter().map(|it| (it.number, mtu_of(it))).collect();
            let making = Box::new(move |basis: &Basis<Compiled>| {
                prepare_additions(&request, &program, &mtus, basis)
            });
            apart.number = workshop.make(making, element.basis());
        }
        return Carried::Later(Task::Apart(apart));
    };
    // If other changes keep replacing the program, the change is applied directly.
    if workshop.is_lost(number) || apart.retries == RETRIES_MAX {
        return carry(Task::Apart(apart), forward, now, budget);
    }
    let prepared = match workshop.fetch(number) {
        None => return Carried::Later(Task::Apart(apart)),
        Some(Err(why)) => return Carried::Done(Err(why)),
        Some(Ok((prepared, _))) => prepared,
    };
    // The new program has other timers.
    forward.due = Some(now);
    match element.swap(prepared, now, &mut forward.outputs) {
        Ok(()) => element.settle(),
        Err(ElementError::Stale) => {
            let Apart { request, retries, .. } = apart;
            let again = Apart { request, number: None, retries: retries + 1 };
            return Carried::Later(Task::Apart(again));
        }
        Err(error) => return Carried::Done(Err(error.to_string())),
    }
    let added = Task::from(Arc::unwrap_or_clone(apart.request)).entries();
    Carried::Done(Ok(json!({ "added": added })))
}

/// Processes a request like [`answer_for`], but compiles programs in the compile thread if there is
/// one.
pub(super) fn answer_or_wait(
    request: Request,
    forward: &mut ForwardLoop<Plane>,
    controlling: (Option<&Agent>, Option<&mut Services>, Listeners),
    workshop: Option<&mut ProgramCompiler>,
    now: Nanos,
) -> Answered {
    let (request, workshop) = match (request, workshop) {
        (Request::Load(document), Some(workshop)) => (document, workshop),
        (request, _) => return Answered::Now(answer_for(request, forward, controlling, now)),
    };
    let Plane::ProGfe(element) = &mut forward.forwarder else {
        return Answered::Now(answer_for(Request::Load(request), forward, controlling, now));
    };
    let mut document = request;
    let Some(number) = document.number else {
        if !workshop.is_busy(now) {
            let given = ProgramSource {
                number: None,
                name: document.name.clone(),
                text: std::mem::take(&mut document.text),
            };
            let making =
                Box::new(move |basis: &Basis<Compiled>| program_compiler::load(&given, basis));
            document.number = workshop.make(making, element.basis());
        }
        return Answered::Later(Request::Load(document));
    };
    match workshop.fetch(number) {
        None => Answered::Later(Request::Load(document)),
        Some(made) => Answered::Now(made.and_then(|(prepared, noted)| {
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
    forward: &mut ForwardLoop<Plane>,
    (agent, services, listeners): (Option<&Agent>, Option<&mut Services>, Listeners),
    now: Nanos,
) -> Result<Value, String> {
    let ForwardLoop { forwarder, outputs, .. } = forward;
    if let (Some(services), Plane::ProGfe(element)) = (services, forwarder) {
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
