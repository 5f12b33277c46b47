//! A script as an experiment: reads its description and creates its catalog entry.
//!
//! The script itself returns what its class declares (title, parameters with type, range, unit and
//! help, axis, figures), when it runs with `--describe`. Catalog entries live as long as the
//! program. So do those of scripts, of which a command names only a few.

use std::path::{Path, PathBuf};
use std::time::Duration;

use record::Name;
use serde::Deserialize;
use serde_json::{Value, json};
use testbed::pipe_process::PipeProcess;
use testbed::process::ProcessSpec;
use testbed::{LabError, RunFolder, requirement};

use super::module::PythonModule;
use super::package;
use experiments::control_plane::rounds::{ModulePoint, RepeatedModule};
use experiments::show::Chart;
use experiments::{Context, Method};
use studies::{CatalogEntry, External};
use targets::name::NameError;
use workload::Technology;
use workload::parameter::declaration::{Parameter, ValueType};

/// Time limit for a script to return its description, and its needs.
pub const PYTHON_START: Duration = Duration::from_secs(20);

/// The axis of a module without one.
const AXIS_NONE: &str = "module";

/// Assumed duration of a module, in seconds.
const SECONDS: f64 = 2.0;

/// A runnable script.
#[derive(Debug)]
pub struct Script {
    /// The file, as the user named it.
    pub path: PathBuf,
    /// The parameter over whose values it runs.
    axis: Option<&'static str>,
    parameters: &'static [Parameter],
    /// The root of run folders.
    root: PathBuf,
}

/// Error of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptFault {
    /// The file does not exist or is not readable.
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// It cannot be started.
    Start(String),
    /// It raised an exception.
    Raised {
        /// The script.
        path: PathBuf,
        /// The line in it, from 1, if the exception passed through one of its lines.
        line: Option<u64>,
        /// The exception's class and text.
        error: String,
        /// The whole traceback.
        traceback: String,
    },
    /// It sent an invalid command.
    Said {
        /// The script.
        path: PathBuf,
        /// The line in it, from 1, if it is known.
        line: Option<u64>,
        /// The error of the command.
        why: String,
    },
    /// It did not reply in time.
    Blocked {
        /// The script.
        path: PathBuf,
        /// The limit's name.
        limit: &'static str,
        /// The waiting time.
        waited: Duration,
        /// Its stack, as it printed it when it was ended.
        stack: String,
    },
    /// It exited early.
    Left {
        /// The script.
        path: PathBuf,
        /// Its last output.
        printed: String,
    },
}

/// Description of a script.
#[derive(Deserialize)]
struct ScriptDescription {
    title: String,
    method: String,
    axis: Option<String>,
    parameters: Vec<ParameterDescription>,
    charts: Vec<ChartDescription>,
}

#[derive(Deserialize)]
struct ParameterDescription {
    key: String,
    takes: Vec<Value>,
    default: String,
    unit: String,
    help: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChartDescription {
    title: String,
    #[serde(default)]
    y: Vec<String>,
    #[serde(default)]
    table: Vec<String>,
    #[serde(default)]
    series: Vec<String>,
    #[serde(default)]
    is_logarithmic: bool,
}

/// Returns whether a name is a script's.
pub fn is_script(name: &str) -> bool {
    name.ends_with(".py")
}

/// Finds the experiments for a name: a single one, all items of a study, or a Python script.
pub fn find(name: &str) -> Result<Vec<&'static CatalogEntry>, NameError> {
    if !is_script(name) {
        return studies::find(name);
    }
    entry(name).map(|entry| vec![entry]).map_err(|fault| {
        let details = fault.details().trim_end();
        let gap = if details.is_empty() { "" } else { "\n" };
        NameError::Script(format!("{fault}{gap}{details}"))
    })
}

/// Returns the experiment of a script.
fn entry(name: &str) -> Result<&'static CatalogEntry, ScriptFault> {
    let path = PathBuf::from(name);
    let file = |why: String| ScriptFault::File { path: path.clone(), why };
    if !path.is_file() {
        return Err(file("no such file".into()));
    }
    let root = crate::environment::run_root();
    // Before any thread exists. Without privileges, the script's processes cannot be grouped.
    let _ = testbed::namespace::enter_rootless();
    let described = describe(&path, &root)?;
    let said = |why: String| ScriptFault::Said { path: path.clone(), line: None, why };
    let parameters: Vec<Parameter> =
        described.parameters.iter().map(declared).collect::<Option<_>>().ok_or_else(|| {
            said(
                "invalid parameters (hint: create them with Integer, Integers, Number, Word or \
                 Words)"
                    .into(),
            )
        })?;
    if let Some(axis) = &described.axis {
        let is_axis =
            |it: &Parameter| it.key == axis && matches!(it.takes, ValueType::Integers(..));
        if !parameters.iter().any(is_axis) {
            return Err(said(format!(
                "invalid axis {axis:?} (hint: create this parameter with Integers)"
            )));
        }
    }
    let shows = described.charts.iter().map(chart).collect::<Result<Vec<_>, _>>().map_err(said)?;
    let id = path.file_name().unwrap_or_default().to_string_lossy();
    let id = leaked(&id);
    let axis = described.axis.as_deref().map(leaked);
    let parameters: &'static [Parameter] = Box::leak(parameters.into());
    let script = Script { path, axis, parameters, root };
    Ok(Box::leak(Box::new(CatalogEntry {
        id,
        title: leaked(&described.title),
        axis: axis.unwrap_or(AXIS_NONE),
        method: leaked(&described.method),
        technologies: &[Technology::OpenFlow],
        parameters,
        shows: Box::leak(shows.into()),
        external: Some(Box::leak(Box::new(script))),
        ..studies::WORKLOAD
    })))
}

impl External for Script {
    fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the method on one target: the module at each value of its axis, repeatedly.
    fn method(&'static self, context: &Context) -> Box<dyn Method> {
        let own = &context.parameters.own;
        let values: Vec<(&'static str, String)> =
            self.parameters.iter().map(|it| (it.key, own.text(it).to_string())).collect();
        let axis = self.parameters.iter().find(|it| Some(it.key) == self.axis);
        let places = axis.map_or(vec![None], |it| own.integers(it).into_iter().map(Some).collect());
        let stream = super::module::stream_of(context);
        let seed = context.seed;
        let spot = |place: Option<u64>| {
            let (values, stream) = (values.clone(), stream.clone());
            let make = move |repeat: u32| {
                let mut parameters = serde_json::Map::new();
                for (key, text) in &values {
                    let at = place.filter(|_| Some(*key) == self.axis);
                    let text = at.map_or_else(|| text.clone(), |value| value.to_string());
                    parameters.insert((*key).into(), text.into());
                }
                let init = json!({
                    "parameters": parameters, "seed": seed, "repeat": repeat, "stream": stream,
                });
                Box::new(PythonModule::new(self, init)) as Box<_>
            };
            ModulePoint::new(place.unwrap_or(1) as f64, SECONDS, make)
        };
        let spots = places.into_iter().map(spot).collect();
        Box::new(RepeatedModule::new(context, self.axis.unwrap_or(AXIS_NONE), spots))
    }
}

impl Script {
    /// Starts it for an exchange of events.
    pub(super) fn talk(&self) -> Result<(PipeProcess, RunFolder), ScriptFault> {
        start(&self.path, &self.root, &[])
    }
}

/// Starts Python with a script.
fn start(
    path: &Path,
    root: &Path,
    arguments: &[&str],
) -> Result<(PipeProcess, RunFolder), ScriptFault> {
    let failed = |error: LabError| ScriptFault::Start(error.to_string());
    let program = requirement::tool("python3", "python3")
        .map_err(|need| ScriptFault::Start(need.to_string()))?;
    let folder = RunFolder::create(root).map_err(failed)?;
    package::lay_out(&folder).map_err(failed)?;
    let script = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut words = vec!["-m".into(), "planimeter.protocol".into(), script.into()];
    words.extend(arguments.iter().map(Into::into));
    let set = |name: &str, value: &str| (name.into(), value.into());
    let launch = ProcessSpec {
        program,
        arguments: words,
        environment: vec![
            ("PYTHONPATH".into(), folder.path().into()),
            set("PYTHONDONTWRITEBYTECODE", "1"),
            set("PYTHONUTF8", "1"),
            set("PYTHONHASHSEED", "0"),
        ],
        log: PathBuf::new(),
        namespace: None,
        cores: Vec::new(),
    };
    Ok((PipeProcess::start(launch, &folder).map_err(failed)?, folder))
}

/// Reads a script's description.
fn describe(path: &Path, root: &Path) -> Result<ScriptDescription, ScriptFault> {
    let (mut talk, _folder) = start(path, root, &["--describe"])?;
    let said = |why: String| ScriptFault::Said { path: path.into(), line: None, why };
    let (_, row) = match talk.wait_line(PYTHON_START) {
        Ok(Some(line)) => ScriptFault::checked(path, &line)?,
        Ok(None) => {
            return Err(ScriptFault::blocked(path, "PYTHON_START", PYTHON_START, &mut talk));
        }
        Err(_) => return Err(ScriptFault::left(path, &mut talk)),
    };
    let described = row.into_iter().nth(1).unwrap_or_default();
    serde_json::from_value(described).map_err(|error| said(format!("invalid description: {error}")))
}

impl ScriptFault {
    /// Parses a line from a script into a row, with the line of the script that sent it; an error
    /// if the row reports one.
    pub(super) fn checked(
        path: &Path,
        text: &[u8],
    ) -> Result<(Option<u64>, Vec<Value>), ScriptFault> {
        let row: Vec<Value> = serde_json::from_slice(text).map_err(|error| ScriptFault::Said {
            path: path.into(),
            line: None,
            why: format!("invalid row of commands: {error}"),
        })?;
        let mut row = row.into_iter();
        let line = row.next().and_then(|line| line.as_u64());
        let row: Vec<Value> = row.collect();
        if row.first().and_then(Value::as_str) != Some("error") {
            return Ok((line, row));
        }
        let told = row.get(1).unwrap_or(&Value::Null);
        let text = |key: &str| told[key].as_str().unwrap_or_default().to_string();
        let (kind, message) = (text("kind"), text("message"));
        Err(ScriptFault::Raised {
            path: path.into(),
            line: told["line"].as_u64(),
            error: if message.is_empty() { kind } else { format!("{kind}: {message}") },
            traceback: text("traceback"),
        })
    }

    /// Ends a script that does not reply; it prints its stack.
    pub(super) fn blocked(
        path: &Path,
        limit: &'static str,
        waited: Duration,
        talk: &mut PipeProcess,
    ) -> ScriptFault {
        talk.abort(Duration::from_millis(500));
        ScriptFault::Blocked { path: path.into(), limit, waited, stack: talk.take_print().0 }
    }

    /// Returns the error of a script that exited.
    pub(super) fn left(path: &Path, talk: &mut PipeProcess) -> ScriptFault {
        let _ = talk.end(Duration::from_millis(500));
        ScriptFault::Left { path: path.into(), printed: talk.take_print().0 }
    }

    /// Returns the text below the first line: the location.
    pub fn details(&self) -> &str {
        match self {
            ScriptFault::Raised { traceback, .. } => traceback,
            ScriptFault::Blocked { stack, .. } => stack,
            ScriptFault::Left { printed, .. } => printed,
            _ => "",
        }
    }
}

/// Converts a module's parameter; `None` if no kind of parameter fits.
fn declared(it: &ParameterDescription) -> Option<Parameter> {
    let (kind, bounds) = it.takes.split_first()?;
    let whole = |place: usize| bounds.get(place).and_then(Value::as_u64);
    let number = |place: usize| bounds.get(place).and_then(Value::as_f64);
    let words = || -> Option<&'static [&'static str]> {
        let words: Option<Vec<&'static str>> =
            bounds.iter().map(|word| word.as_str().map(leaked)).collect();
        Some(Box::leak(words?.into()))
    };
    let takes = match kind.as_str()? {
        "integer" => ValueType::Integer(whole(0)?, whole(1)?),
        "integers" => ValueType::Integers(whole(0)?, whole(1)?),
        "number" => ValueType::Number(number(0)?, number(1)?),
        "word" => ValueType::Word(words()?),
        "words" => ValueType::Words(words()?),
        _ => return None,
    };
    let [key, default, unit, help] =
        [&it.key, &it.default, &it.unit, &it.help].map(|it| leaked(it));
    takes.admits(default).then_some(Parameter { key, takes, default, unit, help })
}

/// Converts a figure; an error if a name is not a metric's.
fn chart(it: &ChartDescription) -> Result<Chart, String> {
    let named = |names: &[String]| -> Result<&'static [&'static str], String> {
        let name = |text: &String| {
            Name::read(text).map(Name::text).map_err(|problem| format!("invalid chart: {problem}"))
        };
        Ok(Box::leak(names.iter().map(name).collect::<Result<Vec<_>, _>>()?.into()))
    };
    let series: Vec<&'static str> = it.series.iter().map(|name| leaked(name)).collect();
    Ok(Chart {
        title: leaked(&it.title),
        drawn: named(&it.y)?,
        beside: named(&it.table)?,
        series: Box::leak(series.into()),
        is_logarithmic: it.is_logarithmic,
        ..Chart::values("", &[], &[])
    })
}

/// Leaks a text, so that it lives as long as the program.
fn leaked(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

impl std::fmt::Display for ScriptFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ScriptFault::File { path, why } => write!(f, "{}: {why}", path.display()),
            ScriptFault::Start(why) => write!(f, "cannot start Python: {why}"),
            ScriptFault::Raised { path, line: Some(line), error, .. } => {
                write!(f, "{}:{line}: {error}", path.display())
            }
            ScriptFault::Raised { path, error, .. } => write!(f, "{}: {error}", path.display()),
            ScriptFault::Said { path, line: Some(line), why } => {
                write!(f, "{}:{line}: {why}", path.display())
            }
            ScriptFault::Said { path, why, .. } => write!(f, "{}: {why}", path.display()),
            ScriptFault::Blocked { path, limit, waited, .. } => {
                let path = path.display();
                write!(f, "{path} did not reply within {} s ({limit})", waited.as_secs_f64())
            }
            ScriptFault::Left { path, .. } => {
                write!(f, "{} exited before its end was requested", path.display())
            }
        }
    }
}

impl std::error::Error for ScriptFault {}
