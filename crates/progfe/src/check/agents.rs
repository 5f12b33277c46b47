//! Service agents: types, settings and watched events.

use crate::agent::{KINDS, made};
use crate::diagnostic::{Code, Problems};
use crate::program::{Program, Source};

/// Adds problems of agents.
pub fn check(program: &Program, problems: &mut Problems) {
    for agent in &program.agents {
        made(program, agent, problems);
    }
    for watch in &program.watches {
        let Source::Agent(name) = &watch.source else { continue };
        let agent = program.agents.iter().find(|agent| agent.name == *name);
        let kind = agent.and_then(|agent| KINDS.iter().find(|(kind, _)| *kind == agent.kind));
        let Some((kind, events)) = kind else { continue };
        if !events.contains(&watch.event.as_str()) {
            let what = format!("an agent of type {kind} has no event \"{}\"", watch.event);
            let hint = match events {
                [] => "remove the watch, as there are no events".to_owned(),
                events => format!("use one of {}", events.join(", ")),
            };
            problems.add(Code::UnknownEvent, &watch.place, format!("agent {name}"), what, hint);
        }
    }
}
