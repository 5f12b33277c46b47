//! Replies of a ProGFE element: components of blocks, counters of links, and loading of programs.
//!
//! The element also processes requests of a bridge (addresses, ageing) if its program has exactly
//! one learning table. The static entries of that table are the addresses. It processes requests of
//! a router (neighbours, routes, interface addresses) if the program has blocks of the required
//! classes.

use dataplane::forwarder::Outputs;
use forces::Value as Held;
use forces::model::Target;
use packet::frame::PortNo;
use packet::time::Nanos;
use progfe::compile::Compiled;
use progfe::element::{Basis, Change, Prepared};
use progfe::executor::Enforcer;
use progfe::lfb::Lfb;
use progfe::program::Program;
use progfe::program::document::no_files;
use progfe::role::routing::{Neighbour, Route};
use progfe::role::{Routing, learning_table};
use progfe::xml::Source;
use serde_json::{Map, Value, json};

use super::{not_for, observed};
use crate::budget::Budget;
use crate::config;
use crate::control::request::{ComponentAt, MacEntry, ProgramSource, Request, Resource, Settings};
use crate::control::task::{self, Cursor, TaskOutcome};
use crate::datapath::Element;
use crate::program_compiler::CompileResult;

/// Component IDs of Ext-PG-LearnSearch.
const AGE_SECONDS: u32 = 5;
const ENTRIES: u32 = 8;

/// Processes a request that only an element supports. `mtu` returns the MTU of a port.
pub(super) fn answer(
    request: Request,
    element: &mut Element,
    mtu: &dyn Fn(PortNo) -> u32,
    out: &mut Outputs,
    now: Nanos,
) -> Result<Value, String> {
    match request {
        Request::Get(Resource::Program) => Ok(json!({ "text": element.program().to_xml() })),
        Request::GetComponent(at) => get(&at, element, now),
        Request::SetComponents(all) => set(&all, element, out, now),
        Request::Check(document) => {
            let source = Source::new(&document.name, &document.text);
            let (_, problems) = Program::load(&source, &no_files);
            let said = problems.to_string().trim_end().to_owned();
            if problems.refuses() { Err(said) } else { Ok(json!({ "problems": said })) }
        }
        Request::Plan(document) => observed::plan(&document, element, now),
        Request::MeasureCosts(asked) => observed::measure(asked, element, now),
        Request::Get(Resource::Costs) => observed::costs(element, now),
        Request::TraceNext(asked) => observed::trace_next(asked, element, now),
        Request::Traced(asked) => observed::traced(asked, element, now),
        Request::Load(document) => load(&document, element, out, now),
        Request::RollBack(_) if element.roll_back(now, out) => Ok(generation(element)),
        Request::RollBack(_) => Err("cannot roll back: no previous program".to_owned()),
        Request::Set(Settings { ageing_s }) => {
            let instance = learning_table(element.program())?;
            let value = Held::Unsigned(ageing_s);
            let change = Change::Set { instance, path: vec![AGE_SECONDS], value };
            changed(&[change], element, out, now)?;
            Ok(json!({ "ageing_s": ageing_s }))
        }
        Request::AddMac(mac) => add(&Request::AddMacs(vec![mac]), element, mtu, out, now),
        Request::AddMacs(_) | Request::AddNeighbours(_) | Request::AddRoutes(_) => {
            add(&request, element, mtu, out, now)
        }
        // The client receives events from now on.
        Request::Watch(_) => Ok(json!({ "watching": element.program().watches.len() })),
        Request::SetInterfaces(all) => {
            let addresses: Vec<_> = all.iter().map(|it| (it.port, it.mac.0)).collect();
            let routing = Routing::of(element.program())?;
            changed(&routing.interfaces(&addresses)?, element, out, now)?;
            Ok(json!({ "set": all.len() }))
        }
        other => Err(not_for("ProGFE element", &other)),
    }
}

fn generation(element: &Element) -> Value {
    let program = element.program();
    json!({ "program": program.name, "revision": program.revision, "generation": element.generation() })
}

/// Returns the instance and the numeric path.
fn path_of(at: &ComponentAt, program: &Program) -> Result<(usize, Vec<u32>), String> {
    let instance = program.find(&at.instance);
    let instance = instance.ok_or_else(|| format!("no instance {:?}", at.instance))?;
    let path = program.class_of(instance).path(&at.path);
    Ok((instance, path.map_err(|fault| format!("{}: {fault}", at.instance))?))
}

fn get(at: &ComponentAt, element: &Element, now: Nanos) -> Result<Value, String> {
    let program = element.program();
    let (instance, path) = path_of(at, program)?;
    let value = element.get(instance, &path, now);
    let value = value.map_err(|error| format!("{}.{}: {error}", at.instance, at.path))?;
    let class = program.class_of(instance);
    match class.target(&path) {
        Ok(Target::Value { data_type, .. }) => {
            Ok(json!({ "value": data_type.show(&value).to_string() }))
        }
        _ => Err(format!("{}.{} is not a single value", at.instance, at.path)),
    }
}

fn set(
    all: &[ComponentAt],
    element: &mut Element,
    out: &mut Outputs,
    now: Nanos,
) -> Result<Value, String> {
    let program = element.program().clone();
    let change = |at: &ComponentAt| {
        let (instance, path) = path_of(at, &program)?;
        let Ok(Target::Value { data_type, .. }) = program.class_of(instance).target(&path) else {
            return Err(format!("{}.{} is not a single value", at.instance, at.path));
        };
        let value = data_type.parse(&at.value);
        let value = value.map_err(|fault| format!("{}.{}: {fault}", at.instance, at.path))?;
        Ok(Change::Set { instance, path, value })
    };
    let changes: Vec<Change> = all.iter().map(change).collect::<Result<_, String>>()?;
    changed(&changes, element, out, now)?;
    Ok(json!({ "set": changes.len(), "generation": element.generation() }))
}

fn load(
    document: &ProgramSource,
    element: &mut Element,
    out: &mut Outputs,
    now: Nanos,
) -> Result<Value, String> {
    let source = Source::new(&document.name, &document.text);
    let (program, problems) = Program::load(&source, &no_files);
    let program = program.ok_or_else(|| problems.to_string().trim_end().to_owned())?;
    let prepared = element.prepare(program);
    let prepared = prepared.map_err(|all| all.to_string().trim_end().to_owned())?;
    put_in_place((prepared, problems.to_string().trim_end()), element, out, now)
}

/// Swaps to a prepared program. `noted` has the warnings of its compilation.
pub fn put_in_place(
    (prepared, noted): (Prepared<Compiled>, &str),
    element: &mut Element,
    out: &mut Outputs,
    now: Nanos,
) -> Result<Value, String> {
    element.swap(prepared, now, out).map_err(|error| error.to_string())?;
    let mut told = generation(element);
    if !noted.is_empty() {
        told["problems"] = noted.into();
    }
    Ok(told)
}

/// Applies changes, all or none.
fn changed(
    changes: &[Change],
    element: &mut Element,
    out: &mut Outputs,
    now: Nanos,
) -> Result<(), String> {
    element.change(changes, now, out).map_err(|error| error.to_string())
}

fn neighbour(told: &config::Neighbour, mtu: &dyn Fn(PortNo) -> u32) -> Neighbour {
    let config::Neighbour { port, address, mac } = *told;
    Neighbour { port, address, mac: mac.0, mtu: mtu(port) }
}

fn route(told: &config::Route) -> Result<Route, String> {
    let config::Route { to, via, port } = *told;
    let via = via.ok_or_else(|| format!("{to}: no next hop (hint: set via)"))?;
    Ok(Route { network: to.address, length: to.bits, via, port })
}

/// Lists the addresses of the learning table from a position on, up to the budget. The list ends if
/// another program, without such a table, is loaded meanwhile.
pub(super) fn list_macs(
    from: Cursor,
    element: &Element,
    now: Nanos,
    budget: &mut Budget<'_>,
) -> TaskOutcome {
    let table = learning_table(element.program());
    let table = table.map(|instance| element.enforcer().block(instance));
    let table = match table {
        Ok(Some(Lfb::LearnSearch(table))) => table,
        Err(why) if from == Cursor::Place(0) => return TaskOutcome::Done(Err(why)),
        _ => return TaskOutcome::Rows(Vec::new(), None),
    };
    task::list_places((Resource::Macs, from, table.places_end()), budget, |place| {
        let (key, port, is_static) = table.entry(place, now)?;
        Some(json!({ "mac": key, "port": port, "static": is_static }))
    })
}

/// Adds entries, all or none.
fn add(
    request: &Request,
    element: &mut Element,
    mtu: &dyn Fn(PortNo) -> u32,
    out: &mut Outputs,
    now: Nanos,
) -> Result<Value, String> {
    let (changes, count) = additions(request, element.program(), mtu)?;
    changed(&changes, element, out, now)?;
    Ok(json!({ "added": count }))
}

/// Returns the changes of a program that add the entries of a request, and the number of entries.
pub fn additions(
    request: &Request,
    program: &Program,
    mtu: &dyn Fn(PortNo) -> u32,
) -> Result<(Vec<Change>, usize), String> {
    match request {
        Request::AddMacs(all) => Ok((addresses(all, program)?, all.len())),
        Request::AddNeighbours(all) => {
            let told: Vec<_> = all.iter().map(|it| neighbour(it, mtu)).collect();
            Ok((Routing::of(program)?.neighbours(program, &told)?, all.len()))
        }
        Request::AddRoutes(all) => {
            let told: Vec<Route> = all.iter().map(route).collect::<Result<_, String>>()?;
            Ok((Routing::of(program)?.routes(program, &told)?, all.len()))
        }
        other => Err(not_for("ProGFE element", other)),
    }
}

/// Prepares a program with the entries of a request, all or none. `mtus` has the MTUs of ports.
pub fn prepare_additions(
    request: &Request,
    program: &Program,
    mtus: &[(PortNo, u32)],
    basis: &Basis<Compiled>,
) -> CompileResult {
    let mtu = |number: PortNo| mtus.iter().find(|(port, _)| *port == number).map_or(0, |it| it.1);
    let (changes, _) = additions(request, program, &mtu)?;
    let prepared = basis.prepare_changes(program, changes);
    Ok((prepared.map_err(|error| error.to_string())?, String::new()))
}

/// Returns the change that adds static entries. They replace entries with the same address.
fn addresses(macs: &[MacEntry], program: &Program) -> Result<Vec<Change>, String> {
    let instance = learning_table(program)?;
    let set = program.instances[instance].components.get(&ENTRIES).cloned();
    let mut rows = set.as_ref().and_then(Held::rows).cloned().unwrap_or_default();
    let key_of = |row: &Held| row.step(1).and_then(Held::text).map(str::to_owned);
    let mut places: std::collections::HashMap<String, u32> =
        rows.iter().filter_map(|(index, row)| Some((key_of(row)?, *index))).collect();
    let mut next = rows.last_key_value().map_or(0, |(index, _)| index + 1);
    for mac in macs {
        let text = mac.mac.to_string();
        let place = *places.entry(text.clone()).or_insert_with(|| {
            next += 1;
            next - 1
        });
        let port = Held::Unsigned(mac.port.into());
        let row = [(1, Held::Text(text)), (2, port), (3, Held::Boolean(true))];
        rows.insert(place, Held::struct_of(row));
    }
    Ok(vec![Change::Set { instance, path: vec![ENTRIES], value: Held::Array(rows) }])
}

/// Adds the counters of an element: frames by outcome, links, and drops by block and reason.
pub(super) fn counters(element: &Element, all: &mut Value) {
    let program = element.program();
    let account = element.account();
    let links = program.links.iter().enumerate().map(|(at, link)| {
        let (from, to) = (program.output_name(link.from), program.input_name(link.to));
        let traffic = element.link(at);
        json!({ "from": from, "to": to, "frames": traffic.frames, "bytes": traffic.bytes })
    });
    let links: Vec<Value> = links.collect();
    let mut instances = Map::new();
    let mut reasons: std::collections::BTreeMap<&str, u64> = std::collections::BTreeMap::new();
    for (at, instance) in program.instances.iter().enumerate() {
        let mut drops = Map::new();
        for (reason, output, frames) in element.drops(at).iter() {
            let class = program.class_of(at);
            let name = match (reason, class.outputs.get(output as usize)) {
                (progfe::lfb::DropReason::Unlinked, Some(port)) => {
                    format!("unlinked {}", port.name)
                }
                _ => reason.name().to_owned(),
            };
            drops.insert(name, frames.into());
            *reasons.entry(reason.name()).or_default() += frames;
        }
        if !drops.is_empty() {
            instances.insert(instance.name.clone(), Value::Object(drops));
        }
    }
    for (reason, frames) in reasons {
        all["drops"][format!("block_{reason}")] = frames.into();
    }
    let mut told = generation(element);
    for (name, frames) in [
        ("received", account.received),
        ("injected", account.injected),
        ("copies", account.copies),
        ("left", account.left),
        ("told", account.told),
        ("dropped", account.dropped),
    ] {
        told[name] = frames.into();
    }
    if let Ok(table) = learning_table(program)
        && let Some(Lfb::LearnSearch(table)) = element.enforcer().block(table)
    {
        all["bridge"] = json!({ "macs": table.known() });
    }
    told["links"] = links.into();
    told["drops_by_block"] = Value::Object(instances);
    all["progfe"] = told;
}
