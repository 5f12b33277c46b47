//! Reader for programs in XML.
//!
//! The root of a document is `<fe>`, with the children `use`, `frames`, `ports`, `instances`,
//! `links`, `agents` and `watch`. The reader reports every problem of names, values and structure
//! with its place. [`check`](crate::check) then checks the graph of the resulting program. If a
//! problem is an error, there is no program.

use std::sync::Arc;

use forces::{Catalog, Library};
use roxmltree::Node;

use super::{
    Agent, AgentSetting, LIBRARY, PARTS_MAX, PortDecl, Program, Source as Teller, Use, Watch,
};
use crate::diagnostic::{Code, Place, Problems};
use crate::frames::document::{Draft, NAMESPACE};
use crate::frames::{ETHERNET, FrameSet};
use crate::xml::{Reader, Source};

mod instances;
mod settings;
mod links;

/// Loads the text of a file that a document refers to, or returns the reason for a failure.
pub type Load<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// A loader for documents that refer only to built-in files.
pub fn no_files(_: &str) -> Result<String, String> {
    Err("files are not loaded here".to_owned())
}

impl Program {
    /// Reads a document. `load` returns the text of files that it refers to.
    pub fn read(source: &Source<'_>, load: Load<'_>) -> (Option<Program>, Problems) {
        let (program, problems) = Program::read_what_can_be(source, load);
        (program.filter(|_| !problems.refuses()), problems)
    }

    /// Reads a document as far as possible, without the parts that have problems.
    pub(crate) fn read_what_can_be(
        source: &Source<'_>,
        load: Load<'_>,
    ) -> (Option<Program>, Problems) {
        let document = match source.parse() {
            Ok(document) => document,
            Err(problem) => {
                let mut problems = Problems::default();
                problems.push(problem);
                return (None, problems);
            }
        };
        let mut reader = Reader::new(source);
        let program = fe(&mut reader, document.root_element(), load);
        (program, reader.problems)
    }
}

/// Returns the built-in libraries, including that of this crate.
pub fn shipped() -> Vec<Library> {
    let mut libraries = forces::library::shipped();
    libraries.push(forces::library::read(LIBRARY).expect("tests check the shipped library"));
    libraries
}

fn fe(reader: &mut Reader<'_, '_>, root: Node<'_, '_>, load: Load<'_>) -> Option<Program> {
    if root.tag_name().name() != "fe" || root.tag_name().namespace() != Some(NAMESPACE) {
        let what = format!("the document is not <fe xmlns=\"{NAMESPACE}\">");
        reader.wrong(Code::XmlElement, root, "", what, "");
        return None;
    }
    reader.only(root, &["name", "revision", "feID"]);
    let name = reader.required(root, "name").unwrap_or_default().to_owned();
    let revision = reader.number_u32(root, "revision").unwrap_or(1);
    let fe_id = reader.number_u32(root, "feID");
    let place = reader.place(root);
    let mut parts = Parts::default();
    for child in reader.children(root) {
        let list = match child.tag_name().name() {
            "use" => &mut parts.uses,
            "frames" => &mut parts.frames,
            "ports" => &mut parts.ports,
            "instances" => &mut parts.instances,
            "links" => &mut parts.links,
            "agents" => &mut parts.agents,
            "watch" => &mut parts.watches,
            _ => {
                let known =
                    "use <use>, <frames>, <ports>, <instances>, <links>, <agents> or <watch>";
                reader.unknown(child, known);
                continue;
            }
        };
        if list.len() == PARTS_MAX {
            let what = format!("too many elements of this kind: at most {PARTS_MAX}");
            reader.wrong(Code::XmlLimit, child, "", what, "");
            break;
        }
        list.push(child);
    }
    let uses = uses(reader, &parts.uses);
    let catalog = catalog(reader, &uses, load);
    let frames = frames(reader, &parts.frames, load);
    let ports = ports(reader, &parts.ports);
    let mut program = Program {
        name,
        revision,
        fe_id,
        uses,
        catalog,
        frames: Arc::new(frames),
        ports,
        instances: Vec::new(),
        links: Vec::new(),
        agents: agents(reader, &parts.agents),
        watches: Vec::new(),
        place,
    };
    let groups = instances::read(reader, &mut program, &parts.instances);
    links::read(reader, &mut program, &groups, &parts.links);
    watches(reader, &mut program, &groups, &parts.watches);
    Some(program)
}

/// Sections of a document.
#[derive(Default)]
struct Parts<'n, 'i> {
    uses: Vec<Node<'n, 'i>>,
    frames: Vec<Node<'n, 'i>>,
    ports: Vec<Node<'n, 'i>>,
    instances: Vec<Node<'n, 'i>>,
    links: Vec<Node<'n, 'i>>,
    agents: Vec<Node<'n, 'i>>,
    watches: Vec<Node<'n, 'i>>,
}

fn uses(reader: &mut Reader<'_, '_>, nodes: &[Node<'_, '_>]) -> Vec<Use> {
    let mut uses: Vec<Use> = Vec::new();
    for node in nodes {
        reader.only(*node, &["library", "location"]);
        let Some(library) = reader.required(*node, "library") else { continue };
        if uses.iter().any(|known| known.library == library) {
            let what = format!("the library \"{library}\" is used twice");
            reader.wrong(Code::Duplicate, *node, "", what, "");
            continue;
        }
        let location = node.attribute("location").map(str::to_owned);
        uses.push(Use { library: library.to_owned(), location, place: reader.place(*node) });
    }
    uses
}

/// Returns the classes and metadata of the built-in libraries and of files that the program refers
/// to.
fn catalog(reader: &mut Reader<'_, '_>, uses: &[Use], load: Load<'_>) -> Arc<Catalog> {
    let mut libraries = shipped();
    for one in uses {
        if libraries.iter().any(|library| library.provides == one.library) {
            continue;
        }
        let hint = "set location, except for shipped libraries";
        let mut refuse = |what: String| {
            reader.problems.add(Code::UnknownLibrary, &one.place, &one.library, what, hint);
        };
        let Some(location) = &one.location else {
            refuse(format!("\"{}\" is not a shipped library", one.library));
            continue;
        };
        let text = match load(location) {
            Ok(text) => text,
            Err(why) => {
                refuse(format!("cannot read \"{location}\": {why}"));
                continue;
            }
        };
        match forces::library::read(&text) {
            Ok(library) if library.provides == one.library => libraries.push(library),
            Ok(library) => {
                refuse(format!("\"{location}\" contains the library \"{}\"", library.provides))
            }
            Err(faults) => {
                for fault in faults.iter().take(100) {
                    let place = Place {
                        file: location.as_str().into(),
                        line: fault.place.line,
                        column: fault.place.column,
                    };
                    let what = fault.problem.to_string();
                    reader.problems.add(Code::UnknownLibrary, &place, &one.library, what, "");
                }
            }
        }
    }
    match Catalog::new(libraries) {
        Ok(catalog) => Arc::new(catalog),
        Err(faults) => {
            for fault in faults.iter().take(100) {
                let user = uses.iter().find(|one| one.library == fault.library);
                let file = user.and_then(|one| one.location.clone()).unwrap_or_default();
                let place =
                    Place { file: file.into(), line: fault.place.line, column: fault.place.column };
                let (path, what) = (fault.within.clone(), fault.problem.to_string());
                reader.problems.add(Code::UnknownLibrary, &place, path, what, "");
            }
            Arc::new(Catalog::new(shipped()).expect("the shipped libraries are consistent"))
        }
    }
}

/// Returns the frame definitions of files and of the document, as one set.
fn frames(reader: &mut Reader<'_, '_>, nodes: &[Node<'_, '_>], load: Load<'_>) -> FrameSet {
    let mut draft = Draft::default();
    for node in nodes {
        if let Some(file) = node.attribute("file") {
            let text = match file {
                "ethernet.frames.xml" => Ok(ETHERNET.to_owned()),
                other => load(other),
            };
            let place = reader.place_of(*node, "file");
            match text {
                Err(why) => {
                    let what = format!("cannot read \"{file}\": {why}");
                    reader.problems.add(Code::FrameUnknown, &place, "", what, "");
                }
                Ok(text) => {
                    let inner = Source::new(file, &text);
                    match inner.parse() {
                        Err(problem) => reader.problems.push(problem),
                        Ok(document) => {
                            let mut file_reader = Reader::new(&inner);
                            let root = document.root_element();
                            if root.tag_name().name() == "frames" {
                                draft.read(&mut file_reader, root);
                            } else {
                                let what = format!("\"{file}\" does not contain <frames>");
                                file_reader.wrong(Code::XmlElement, root, "", what, "");
                            }
                            reader.problems.extend(file_reader.problems);
                        }
                    }
                }
            }
        }
        draft.read(reader, *node);
    }
    draft.finish(&mut reader.problems)
}

fn ports(reader: &mut Reader<'_, '_>, nodes: &[Node<'_, '_>]) -> Vec<PortDecl> {
    let mut ports = Vec::new();
    for list in nodes {
        reader.only(*list, &[]);
        for node in reader.children(*list) {
            if node.tag_name().name() != "port" || ports.len() == PARTS_MAX {
                reader.unknown(node, "use <port id=\"1\" dev=\"eth1\"/>, up to 4096 times");
                continue;
            }
            reader.only(node, &["id", "dev"]);
            if reader.required(node, "id").is_none() {
                continue;
            }
            let Some(number) = reader.number_u32(node, "id") else { continue };
            let device = node.attribute("dev").unwrap_or_default().to_owned();
            ports.push(PortDecl { number, device, place: reader.place(node) });
        }
    }
    ports
}

fn agents(reader: &mut Reader<'_, '_>, nodes: &[Node<'_, '_>]) -> Vec<Agent> {
    let attributes = |node: Node<'_, '_>, known: &[&str]| {
        let all = node.attributes().filter(|attribute| !known.contains(&attribute.name()));
        all.map(|attribute| (attribute.name().to_owned(), attribute.value().to_owned())).collect()
    };
    let mut agents: Vec<Agent> = Vec::new();
    for list in nodes {
        for node in reader.children(*list) {
            if node.tag_name().name() != "agent" || agents.len() == PARTS_MAX {
                reader.unknown(node, "use <agent name=\"...\" type=\"...\">");
                continue;
            }
            let name = reader.required(node, "name").unwrap_or_default().to_owned();
            let kind = reader.required(node, "type").unwrap_or_default().to_owned();
            if agents.iter().any(|agent| agent.name == name) {
                let what = format!("duplicate agent \"{name}\"");
                reader.wrong(Code::Duplicate, node, &name, what, "");
                continue;
            }
            let children = reader.children(node);
            let settings = children.into_iter().map(|child| AgentSetting {
                name: child.tag_name().name().to_owned(),
                attributes: attributes(child, &[]),
                place: reader.place(child),
            });
            let settings = settings.collect();
            let (attributes, place) = (attributes(node, &["name", "type"]), reader.place(node));
            agents.push(Agent { name, kind, attributes, settings, place });
        }
    }
    agents
}

fn watches(
    reader: &mut Reader<'_, '_>,
    program: &mut Program,
    groups: &instances::Groups,
    nodes: &[Node<'_, '_>],
) {
    for node in nodes {
        reader.only(*node, &["lfb", "agent", "event", "interval", "count", "threshold"]);
        let Some(event) = reader.required(*node, "event") else { continue };
        let [interval_ms, count, threshold] =
            ["interval", "count", "threshold"].map(|name| reader.number_u32(*node, name));
        let place = reader.place(*node);
        let mut tellers = Vec::new();
        match (node.attribute("lfb"), node.attribute("agent")) {
            (Some(name), None) => match groups.find(name) {
                Err(what) => {
                    let place = reader.place_of(*node, "lfb");
                    reader.problems.add(Code::UnknownInstance, &place, name, what, "");
                }
                Ok(found) => {
                    let class = found.first().map(|at| program.class_of(*at).clone());
                    if class.is_some_and(|class| class.event(event).is_none()) {
                        let what = format!("the class has no event \"{event}\"");
                        let place = reader.place_of(*node, "event");
                        reader.problems.add(Code::UnknownEvent, &place, name, what, "");
                        continue;
                    }
                    tellers.extend(found.into_iter().map(Teller::Instance));
                }
            },
            (None, Some(name)) if program.agents.iter().any(|agent| agent.name == name) => {
                tellers.push(Teller::Agent(name.to_owned()));
            }
            (None, Some(name)) => {
                let place = reader.place_of(*node, "agent");
                let what = format!("no agent \"{name}\"");
                reader.problems.add(Code::UnknownAgent, &place, name, what, "");
            }
            _ => {
                let what = "<watch> needs either lfb or agent".to_owned();
                reader.wrong(Code::XmlAttribute, *node, "", what, "");
            }
        }
        program.watches.extend(tellers.into_iter().map(|source| Watch {
            source,
            event: event.to_owned(),
            interval_ms,
            count,
            threshold,
            place: place.clone(),
        }));
    }
}
