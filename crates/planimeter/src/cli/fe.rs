//! `planimeter fe`: a temporary control element that reads or changes a forwarding element over
//! ForCES.
//!
//! It connects to an element, or waits for an element that connects. Components have the names that
//! programs use (`lpm.IPv4PrefixTable[3].HopSelector`), or class and instance number
//! (`IPv4UcastLPM:1.IPv4UcastLPMStats`). Elements that do not run our programs support only the
//! latter.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use channel::tls::Files;
use channel::{Tls, Url};
use forces::association::properties::{COUNT, HYSTERESIS, INTERVAL, REGISTRATION, THRESHOLD};
use forces::association::{CeEvent, CeSettings, Channel};
use forces::wire::{Data, Id, Operation, OperationKind, PathData, Select, TeardownReason, data};
use forces::{Catalog, Rows, Value};
use packet::time::Nanos;
use tester::control_element::{CeError, ControlElement, RealTime, WaitHook, rows_of};

use super::element::read;
use super::failure::Failure;
use super::output::say;
use progfe::control::program_lfb::{self, PART_OCTETS, component};

mod names;

use names::{ComponentName, Names};

/// Arguments of `planimeter fe`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Connect to an element: tcp:IP[:PORT], ssl:IP[:PORT] or unix:FILE
    #[arg(long, value_name = "URL", required_unless_present = "listen")]
    connect: Option<String>,
    /// Listen for an element: ptcp:[PORT][:IP], pssl:[PORT][:IP] or punix:FILE
    #[arg(long, value_name = "URL", conflicts_with = "connect")]
    listen: Option<String>,
    /// Id of this control element
    #[arg(long, value_name = "ID", default_value = "0x40000001")]
    id: String,
    /// Timeout of the association and of each reply
    #[arg(long = "timeout", value_name = "SECONDS", default_value_t = 10)]
    patience: u64,
    /// Class library in addition to the built-in ones
    #[arg(long, value_name = "FILE")]
    library: Vec<PathBuf>,
    /// Private key of --certificate, PEM
    #[arg(long, value_name = "FILE")]
    private_key: Option<PathBuf>,
    /// Certificate of this control element for ssl: and pssl:, PEM
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// CA certificate that verifies elements, PEM
    #[arg(long, value_name = "FILE")]
    ca_cert: Option<PathBuf>,
    /// Let other hosts connect to --listen without authentication
    #[arg(long)]
    insecure: bool,
    #[command(subcommand)]
    order: ElementOperation,
}

/// Examples at the end of the help.
const EXAMPLES: &str = "\
Examples:
  planimeter fe --connect tcp:127.0.0.1 get lpm.IPv4PrefixTable fdb.AgeSeconds
  planimeter fe --connect tcp:127.0.0.1 set fdb.AgeSeconds=60
  planimeter fe --listen ptcp:6704 watch fdb.EntryLearned --count 10";

/// Operations on an element.
#[derive(clap::Subcommand)]
enum ElementOperation {
    /// Print the values of components
    #[command(after_help = "Examples:\n  planimeter fe --connect tcp:127.0.0.1 get FEPO.CEID")]
    Get {
        /// Component, such as lpm.IPv4PrefixTable[3], FEPO.CEID or EtherMACIn:1.AdminStatus
        #[arg(required = true)]
        parts: Vec<String>,
    },
    /// Change components in one transaction
    #[command(
        after_help = "Examples:\n  planimeter fe --connect tcp:127.0.0.1 set fdb.AgeSeconds=60"
    )]
    Set {
        /// Assignment such as fdb.AgeSeconds=60; a name without = deletes a row or optional field
        #[arg(required_unless_present = "rows")]
        changes: Vec<String>,
        /// File with rows of a table, one per line: an index and the row's value
        #[arg(long, value_name = "TABLE=FILE")]
        rows: Vec<String>,
    },
    /// Print events as they arrive
    #[command(
        after_help = "Examples:\n  planimeter fe --connect tcp:127.0.0.1 watch fdb.EntryLearned"
    )]
    Watch {
        /// Event, such as fdb.EntryLearned
        #[arg(required = true)]
        events: Vec<String>,
        /// Stop after this number of events
        #[arg(long, value_name = "N")]
        count: Option<u64>,
        #[command(flatten)]
        filters: Filters,
    },
    /// Send a frame through the program, and print each step
    #[command(after_help = "Examples:\n  planimeter fe --connect tcp:127.0.0.1 \
                            trace --frame ffffffffffff0200000000010800")]
    Trace {
        /// Frame in hexadecimal, without frame check sequence
        #[arg(long, value_name = "HEX")]
        frame: String,
        /// Input port
        #[arg(long, value_name = "N", default_value_t = 1)]
        port: u32,
    },
    /// Replace the running program
    #[command(after_help = "Examples:\n  planimeter fe --connect tcp:127.0.0.1 load bridge.fe.xml")]
    Load {
        /// Program file
        file: PathBuf,
    },
}

/// Filters of events (RFC 5812, section 4.8.5).
#[derive(clap::Args)]
struct Filters {
    /// Report one of every N events; with --interval, an event that either option allows
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    every: Option<u32>,
    /// Report at most one event in this interval
    #[arg(long, value_name = "MS")]
    interval: Option<u32>,
    /// Report when the event's value crosses this threshold
    #[arg(long, value_name = "N")]
    threshold: Option<u32>,
    /// Distance by which the value must cross the threshold, and fall below it in between
    #[arg(long, value_name = "N")]
    hysteresis: Option<u32>,
}

impl Filters {
    /// Returns the properties of the subscription. All are set, because an element keeps those of
    /// an earlier control element.
    fn properties(&self) -> [(u32, u32); 5] {
        let Filters { every, interval, threshold, hysteresis } = self;
        let number = |said: &Option<u32>| said.unwrap_or(0);
        [
            (REGISTRATION, 1),
            (THRESHOLD, number(threshold)),
            (HYSTERESIS, number(hysteresis)),
            // The wire format has the number of events suppressed between two reports (section
            // 4.8.5.1).
            (COUNT, number(every).saturating_sub(1)),
            (INTERVAL, number(interval)),
        ]
    }
}

/// A connected control element.
struct ConnectedElement {
    element: ControlElement,
    names: Names,
    hook: RealTime,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let names = Names::new(catalog(&arguments.library)?);
    let mut work = ConnectedElement { element: associate(arguments)?, names, hook: RealTime };
    let done = match &arguments.order {
        ElementOperation::Get { parts } => work.get(parts),
        ElementOperation::Set { changes, rows } => work.set(changes, rows),
        ElementOperation::Watch { events, count, filters } => work.watch(events, *count, filters),
        ElementOperation::Trace { frame, port } => work.trace(frame, *port),
        ElementOperation::Load { file } => work.load(file),
    };
    work.element.leave(&mut work.hook);
    done.map(|()| ExitCode::SUCCESS)
}

fn associate(arguments: &Arguments) -> Result<ControlElement, Failure> {
    let text = arguments.connect.as_ref().or(arguments.listen.as_ref());
    let text = text.map(String::as_str).unwrap_or_default();
    let usage = |error: &dyn std::fmt::Display| Failure::usage(error.to_string());
    let url = Url::with_default_port(text, Channel::High.port()).map_err(|error| usage(&error))?;
    if url.is_passive() != arguments.listen.is_some() {
        let hint = "wrong kind of address (hint: use tcp:, ssl: or unix: for --connect, and ptcp:, \
                    pssl: or punix: for --listen)";
        return Err(Failure::usage(format!("{url}: {hint}")));
    }
    let digits = arguments.id.trim_start_matches("0x");
    let id = u32::from_str_radix(digits, 16).ok().map(Id).filter(|id| id.is_ce());
    let id = id.ok_or_else(|| {
        Failure::usage(format!(
            "--id {}: invalid id (hint: use 0x40000000 to 0x7fffffff)",
            arguments.id
        ))
    })?;
    let files = Files {
        private_key: arguments.private_key.clone(),
        certificate: arguments.certificate.clone(),
        ca_cert: arguments.ca_cert.clone(),
    };
    let tls = if files.is_empty() { None } else { Some(Tls::load(&files)) };
    let tls = tls.transpose().map_err(|error| usage(&error))?;
    let checked = url.require_authentication(files.ca_cert.is_some(), arguments.insecure);
    checked.map_err(|error| usage(&error))?;
    let patience = arguments.patience.clamp(1, 3600);
    let mut settings = CeSettings::new(id);
    settings.gives = Some(Id(1));
    settings.answer_timeout = Duration::from_secs(patience);
    let patience = Nanos::from_secs(patience);
    ControlElement::associate(&url, tls.as_ref(), settings, patience, &mut RealTime)
        .map_err(|error| Failure::usage(format!("{url}: {error}")))
}

/// Returns the built-in classes, and those of further libraries.
fn catalog(files: &[PathBuf]) -> Result<Catalog, Failure> {
    let mut libraries = progfe::program::document::shipped();
    let first = |file: &PathBuf, fault: Option<String>| {
        Failure::usage(format!("{}: {}", file.display(), fault.unwrap_or_default()))
    };
    for file in files {
        let library = forces::library::read(&read(file)?);
        let library = library.map_err(|all| first(file, all.first().map(ToString::to_string)))?;
        libraries.push(library);
    }
    Catalog::new(libraries)
        .map_err(|all| Failure::usage(all.first().map(ToString::to_string).unwrap_or_default()))
}

fn failed(error: CeError) -> Failure {
    Failure::usage(error.to_string())
}

impl ConnectedElement {
    /// Reads a component's value, once it exists.
    fn value(&mut self, part: &ComponentName) -> Result<Value, Failure> {
        let answer = self.element.get(&part.place, &mut self.hook).map_err(failed)?;
        if let Some((_, code)) = answer.failures().first() {
            return Err(Failure::usage(format!("{}: {code}", part.text)));
        }
        let values = answer.values(&self.names.catalog);
        let values = values.map_err(|fault| Failure::usage(format!("{}: {fault}", part.text)))?;
        let value = values.into_values().next();
        value.ok_or_else(|| Failure::usage(format!("{}: the element returned no value", part.text)))
    }

    fn whole(&mut self, id: u32) -> Result<Value, Failure> {
        let part = ComponentName::of_program(id);
        self.value(&part)
    }

    /// Reads the names of instances, if the element has any.
    fn learn(&mut self) {
        if self.names.instances.is_empty()
            && let Ok(rows) = self.whole(component::INSTANCES)
        {
            self.names.learn(&rows);
        }
    }

    fn part(&mut self, text: &str) -> Result<ComponentName, Failure> {
        if !self.names.is_numbered(text) {
            self.learn();
        }
        self.names.part(text).map_err(Failure::usage)
    }

    fn get(&mut self, parts: &[String]) -> Result<(), Failure> {
        for text in parts {
            let part = self.part(text)?;
            let value = self.value(&part)?;
            let data_type = self.names.type_of(&part).map_err(Failure::usage)?;
            say!("{text} = {}", data_type.show(&value));
        }
        Ok(())
    }

    fn set(&mut self, changes: &[String], rows: &[String]) -> Result<(), Failure> {
        let mut all: Vec<Vec<Select>> = Vec::new();
        for text in changes {
            let (name, value) = match text.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (text.as_str(), None),
            };
            let part = self.part(name)?;
            let data_type = self.names.type_of(&part).map_err(Failure::usage)?;
            let wrong = |fault: forces::model::value::ValueFault| {
                Failure::usage(format!("{name}: {fault}"))
            };
            let (kind, said) = match value {
                Some(value) => {
                    let value = data_type.parse(value).map_err(wrong)?;
                    (OperationKind::Set, data::write(&data_type, &value).map_err(wrong)?)
                }
                None => (OperationKind::Delete, Data::None),
            };
            let path = PathData::with(part.place.path.clone(), said);
            let operation = Operation::on(kind, vec![path]);
            all.push(vec![Select::one(part.place.class, part.place.instance, operation)]);
        }
        for text in rows {
            all.extend(self.rows(text)?);
        }
        self.transact(all)
    }

    /// Parses the rows of a file into sets of components.
    fn rows(&mut self, text: &str) -> Result<Vec<Vec<Select>>, Failure> {
        let (name, file) = text.split_once('=').ok_or_else(|| {
            Failure::usage(format!(
                "--rows {text}: invalid value (hint: use TABLE=FILE, such as \
                 lpm.IPv4PrefixTable=routes.txt)"
            ))
        })?;
        let part = self.part(name)?;
        let table = self.names.type_of(&part).map_err(Failure::usage)?;
        let array = table.array();
        let array = array.ok_or_else(|| Failure::usage(format!("{name} is not a table")))?;
        let mut rows = Rows::new();
        for (at, line) in read(file.as_ref())?.lines().enumerate() {
            let wrong = |what: String| Failure::usage(format!("{file}:{}: {what}", at + 1));
            if line.trim().is_empty() {
                continue;
            }
            let (index, row) = line.trim().split_once(char::is_whitespace).unwrap_or((line, ""));
            let index = index
                .parse()
                .map_err(|_| wrong("invalid line (hint: write an index and a row)".into()))?;
            let row = array.element.parse(row).map_err(|fault| wrong(fault.to_string()))?;
            rows.insert(index, row);
        }
        let all = rows_of(&part.place, &table, &rows);
        let all = all.map_err(|fault| Failure::usage(format!("{file}: {fault}")))?;
        Ok(all.into_iter().map(|select| vec![select]).collect())
    }

    fn transact(&mut self, all: Vec<Vec<Select>>) -> Result<(), Failure> {
        match self.element.transact(all, &mut self.hook) {
            Ok(()) => Ok(()),
            Err(CeError::Failed(failures)) => {
                let mut lines: Vec<String> = failures
                    .iter()
                    .take(20)
                    .map(|(place, code)| self.names.failure(place, *code))
                    .collect();
                // The element reports more details about a rejected program.
                if let Ok(problems) = self.whole(component::PROBLEMS) {
                    let rows = problems.rows().into_iter().flat_map(|rows| rows.values());
                    lines.extend(rows.filter_map(|row| Some(row.text()?.to_owned())));
                }
                Err(Failure::usage(lines.join("\n")))
            }
            Err(other) => Err(failed(other)),
        }
    }

    fn watch(
        &mut self,
        events: &[String],
        count: Option<u64>,
        filters: &Filters,
    ) -> Result<(), Failure> {
        let stop = super::signals::flag()?;
        for text in events {
            self.subscribe(text, &filters.properties())?;
        }
        if self.tell_events(count, &stop)? {
            // A later control element would receive these events too.
            events.iter().try_for_each(|text| self.subscribe(text, &[(REGISTRATION, 0)]))?;
        }
        Ok(())
    }

    fn subscribe(&mut self, text: &str, properties: &[(u32, u32)]) -> Result<(), Failure> {
        let part = self.part(text)?;
        let asked = self.element.ce().subscribe(&part.place, properties);
        let correlator = asked.map_err(|refused| Failure::usage(format!("{text}: {refused}")))?;
        let answer = self.element.answer(correlator, &mut self.hook).map_err(failed)?;
        match answer.failures().first() {
            Some((_, code)) => Err(Failure::usage(format!("{text}: {code}"))),
            None => Ok(()),
        }
    }

    /// Prints events as they arrive, up to a limit; returns whether the element is still connected.
    fn tell_events(&mut self, count: Option<u64>, stop: &AtomicBool) -> Result<bool, Failure> {
        let mut told = 0;
        while count.is_none_or(|count| told < count) && !stop.load(Ordering::Relaxed) {
            while let Some(event) = self.element.next_event() {
                match event {
                    CeEvent::Notified(selects) => {
                        // Several may arrive together, some of them beyond the limit.
                        let left = count.map_or(u64::MAX, |count| count - told);
                        let lines = self.names.notification(&selects);
                        for line in lines.iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
                            say!("{line}");
                            told += 1;
                        }
                    }
                    CeEvent::Down(TeardownReason::NORMAL) => return Ok(false),
                    CeEvent::Down(reason) => return Err(failed(CeError::Down(reason))),
                    _ => {}
                }
            }
            self.element.turn(self.hook.now()).map_err(failed)?;
            let soon = self.hook.now().saturating_add(Nanos::from_millis(100));
            self.element.rest(soon, &mut self.hook);
        }
        Ok(true)
    }

    fn trace(&mut self, hex: &str, port: u32) -> Result<(), Failure> {
        let frame = super::progfe::bytes_of(hex)?;
        let asked = Value::struct_of([(1, Value::Unsigned(port.into())), (2, Value::Bytes(frame))]);
        let part = ComponentName::of_program(component::TRACE_FRAME);
        let data_type = self.names.type_of(&part).map_err(Failure::usage)?;
        let said = data::write(&data_type, &asked);
        let said = said.map_err(|fault| Failure::usage(format!("--frame: {fault}")))?;
        let path = PathData::with(part.place.path, said);
        let operation = Operation::on(OperationKind::Set, vec![path]);
        let select = Select::one(program_lfb::CLASS, 1, operation);
        self.element.configure(vec![select], &mut self.hook).map_err(failed)?;
        let steps = self.whole(component::TRACE)?;
        for step in steps.rows().into_iter().flat_map(|rows| rows.values()) {
            let text = |id| step.step(id).and_then(Value::text).unwrap_or_default();
            let copy = step.step(1).and_then(Value::unsigned).unwrap_or(0);
            let copy = if copy > 0 { format!("copy {copy} ") } else { String::new() };
            say!("{copy}{}: {}", text(2), text(3));
            for set in text(4).split_whitespace() {
                say!("    {}", set.replacen('=', " = ", 1));
            }
        }
        Ok(())
    }

    fn load(&mut self, file: &std::path::Path) -> Result<(), Failure> {
        let text = read(file)?;
        let part = ComponentName::of_program(component::DOCUMENT);
        let data_type = self.names.type_of(&part).map_err(Failure::usage)?;
        let parts = text.as_bytes().chunks(PART_OCTETS);
        let rows: Rows = (0..).zip(parts.map(|part| Value::Bytes(part.to_vec()))).collect();
        let all = rows_of(&part.place, &data_type, &rows);
        let all = all.map_err(|fault| Failure::usage(format!("{}: {fault}", file.display())))?;
        self.transact(all.into_iter().map(|select| vec![select]).collect())?;
        let [name, generation] = [self.whole(component::NAME)?, self.whole(component::GENERATION)?];
        let name = name.text().unwrap_or_default();
        say!("running {name}, program number {}", generation.unsigned().unwrap_or(0));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_filter_passes_one_of_n() {
        let count = |every| {
            let filters = Filters { every, interval: None, threshold: None, hysteresis: None };
            filters.properties().into_iter().find(|(id, _)| *id == COUNT).unwrap().1
        };
        assert_eq!([None, Some(1), Some(2), Some(10)].map(count), [0, 0, 1, 9]);
    }
}
