//! Ext-PG-State: a state machine per flow.
//!
//! - The values of Key identify a flow. It starts in the state `new`.
//! - Of the transitions from its state, the first by index whose trigger matches a frame changes
//!   the state and selects the output.
//! - Frames, bytes and seconds count from the time when the flow entered its state. They include
//!   the current frame. A further quantity is the time since the last frame.
//! - Frames without one of the key fields take the default output and create no flow.

use forces::Value;
use packet::time::Nanos;

use super::aged_table::{Keyed, key_text, read_key};
use super::{At, Block, Env, Packet, Setup, Verdict, meta_id};
use crate::condition::Operand;
use crate::program::text::{Quantity, Trigger};

const OUT: u32 = 0;
const FULL_OUT: u32 = 1;
/// Component ids.
const FLOWS: u32 = 6;
const FULL: u32 = 7;
/// Event ids.
const STATE_CHANGED: u32 = 1;
const TABLE_FULL: u32 = 2;
/// Maximum number of flows that one tick examines.
const AGE_STEPS: usize = 256;
/// Maximum capacity for flows.
pub const FLOWS_MAX: u32 = 1 << 24;

/// The State block.
#[derive(Debug)]
pub struct State {
    key: Vec<Operand>,
    /// Names of states; the first is `new`.
    states: Vec<String>,
    transitions: Vec<Transition>,
    default: u32,
    flows: Keyed<Flow>,
    full: u64,
    scratch: Vec<u128>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Transition {
    from: usize,
    on: Trigger,
    to: usize,
    output: u32,
}

/// State of a flow.
#[derive(Debug, Clone, Copy)]
struct Flow {
    state: usize,
    entered: Nanos,
    count: u64,
    bytes: u64,
}

impl Trigger {
    fn fits(&self, input: u32, flow: &Flow, touched: Nanos, now: Nanos) -> bool {
        let quantity = |quantity: Quantity| match quantity {
            Quantity::Count => flow.count,
            Quantity::Bytes => flow.bytes,
            Quantity::Age => now.since(flow.entered).0 / 1_000_000_000,
            Quantity::Idle => now.since(touched).0 / 1_000_000_000,
        };
        self.input.is_none_or(|wanted| wanted == input)
            && self.tests.iter().all(|(of, how, bound)| how.holds(quantity(*of), *bound))
    }
}

impl State {
    fn place_of(states: &mut Vec<String>, name: &str) -> usize {
        states.iter().position(|known| known == name).unwrap_or_else(|| {
            states.push(name.to_owned());
            states.len() - 1
        })
    }
}

impl Block for State {
    fn new(setup: &mut Setup<'_>) -> Self {
        let key = setup.key(1, false);
        let (mut states, mut transitions) = (vec!["new".to_owned()], Vec::new());
        for row in setup.rows(4) {
            let on = match Trigger::parse(row.text(2)) {
                Ok(on) => on,
                Err(what) => {
                    let path = [&row.path[..], &[2]].concat();
                    setup.wrong(&path, what, "write in:0, count ge 5, or several joined with and");
                    continue;
                }
            };
            let from = State::place_of(&mut states, row.text(1).trim());
            let to = State::place_of(&mut states, row.text(3).trim());
            transitions.push(Transition { from, on, to, output: row.number(4) });
        }
        let idle = setup.unsigned(2);
        let idle = (idle > 0).then(|| Nanos::from_secs(idle));
        let flows_max = setup.number(3).min(FLOWS_MAX) as usize;
        State {
            key,
            states,
            transitions,
            default: setup.number(5),
            flows: Keyed::new(flows_max, idle, setup.seed),
            full: 0,
            scratch: Vec::new(),
        }
    }

    fn process(&mut self, at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        let around = (env.frames, env.slots);
        if !read_key(&self.key, packet, around, &mut self.scratch) {
            return Verdict::Out(OUT, self.default);
        }
        let now = env.now;
        let place = self.flows.find(&self.scratch, now);
        let (mut flow, touched) = match place {
            Some(place) => (self.flows.entry(place).value, self.flows.entry(place).touched),
            None => (Flow { state: 0, entered: now, count: 0, bytes: 0 }, now),
        };
        flow.count += 1;
        flow.bytes += packet.bytes().len() as u64;
        let mut transitions = self.transitions.iter();
        let taken = transitions
            .find(|it| it.from == flow.state && it.on.fits(at.index, &flow, touched, now));
        let output = taken.map_or(self.default, |taken| taken.output);
        let moved = taken.filter(|taken| taken.to != flow.state);
        if let Some(taken) = moved {
            flow = Flow { state: taken.to, entered: now, count: 0, bytes: 0 };
        }
        match place {
            Some(place) => {
                let entry = self.flows.entry_mut(place);
                (entry.value, entry.touched) = (flow, now);
            }
            None if self.flows.insert(&self.scratch, flow, now, false).is_none() => {
                self.full += 1;
                env.event(TABLE_FULL, &[], Vec::new);
                return Verdict::Out(FULL_OUT, 0);
            }
            None => {}
        }
        if moved.is_some() {
            let (key, name) = (key_text(&self.key, &self.scratch), &self.states[flow.state]);
            env.event(STATE_CHANGED, &[], || {
                let flow = [(1, Value::Text(key)), (2, Value::Text(name.clone()))];
                vec![(vec![FLOWS], Value::struct_of(flow))]
            });
        }
        packet.set_meta(env.slots, meta_id::FLOW_STATE, flow.state as u128);
        Verdict::Out(OUT, output)
    }

    fn keep(&mut self, old: &mut Self) {
        std::mem::swap(&mut self.full, &mut old.full);
        // Names identify states; their indices may have changed.
        if self.key != old.key {
            return;
        }
        if self.states == old.states && self.flows.is_like(&old.flows) {
            std::mem::swap(&mut self.flows, &mut old.flows);
            return;
        }
        let place = |state: usize| self.states.iter().position(|name| *name == old.states[state]);
        for entry in old.flows.iter() {
            if let Some(state) = place(entry.value.state) {
                let flow = Flow { state, ..entry.value };
                self.flows.insert(&entry.key, flow, entry.touched, false);
            }
        }
    }

    fn tick(&mut self, env: &mut Env<'_>) -> Option<Nanos> {
        self.flows.age(env.now, AGE_STEPS, |_| {})
    }

    fn get(&self, component: u32, _now: Nanos) -> Option<Value> {
        let row = |entry: &super::aged_table::Entry<Flow>| {
            Value::struct_of([
                (1, Value::Text(key_text(&self.key, &entry.key))),
                (2, Value::Text(self.states[entry.value.state].clone())),
                (3, Value::Unsigned(entry.value.count)),
                (4, Value::Unsigned(entry.value.bytes)),
            ])
        };
        match component {
            FLOWS => Some(Value::rows_of(self.flows.iter().map(row))),
            FULL => Some(Value::Unsigned(self.full)),
            _ => None,
        }
    }

    fn reset(&mut self, component: u32) {
        if component == FULL {
            self.full = 0;
        }
    }
}
