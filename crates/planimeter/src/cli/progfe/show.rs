//! `planimeter progfe show`: draws a program's graph; for a running element also rates on links,
//! drops in blocks, and the cost of a frame in each block.

use std::path::PathBuf;
use std::process::ExitCode;

use progfe::show::{Note, Notes, dot};
use serde_json::{Value, json};

use super::live::{Costs, Live, look, short};
use super::{load, milliseconds};
use crate::cli::failure::Failure;
use crate::cli::output::say;

/// Arguments of `show`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Program file
    #[arg(required_unless_present = "control", conflicts_with = "control")]
    file: Option<PathBuf>,
    /// Control socket of a running element
    #[arg(long = "control-socket", value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// Output format; text needs --control-socket [default: text with --control-socket, otherwise dot]
    #[arg(long = "as", value_name = "FORM")]
    form: Option<ShowFormat>,
    /// Observation time of a running element
    #[arg(long = "duration", value_name = "SECONDS", requires = "control", default_value_t = 1.0)]
    seconds: f64,
    /// Measure the costs of blocks with one of every N frames
    #[arg(long, value_name = "N", requires = "control", default_value_t = elements::control::request::EVERY)]
    sample: u64,
}

/// Examples at the end of the help.
const EXAMPLES: &str = "\
Examples:
  planimeter progfe show bridge.fe.xml
  planimeter progfe show --control-socket element.sock --duration 5";

/// In which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ShowFormat {
    Text,
    Dot,
    Json,
}

/// Shows a program or a running element.
pub fn show(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Arguments { file, control, form, seconds, sample } = arguments;
    let text = match (control, file) {
        (Some(control), _) => {
            let live = look(control, milliseconds("--duration", *seconds)?, *sample)?;
            match form.unwrap_or(ShowFormat::Text) {
                ShowFormat::Text => text(&live),
                ShowFormat::Dot => dot(&live.program, &notes(&live)),
                ShowFormat::Json => live.json().to_string(),
            }
        }
        (None, file) => {
            let program = load(file.as_deref().unwrap_or("".as_ref()))?;
            match form.unwrap_or(ShowFormat::Dot) {
                ShowFormat::Dot => dot(&program, &Notes::default()),
                ShowFormat::Json => graph(&program).to_string(),
                ShowFormat::Text => {
                    let what =
                        "--as text needs a running element (hint: add --control-socket SOCKET)";
                    return Err(Failure::usage(what.to_owned()));
                }
            }
        }
    };
    say!("{}", text.trim_end());
    Ok(ExitCode::SUCCESS)
}

/// Returns a program's blocks and links.
fn graph(program: &progfe::program::Program) -> Value {
    let links = program.links.iter();
    let links = links
        .map(|it| json!({ "from": program.output_name(it.from), "to": program.input_name(it.to) }));
    let blocks = program.instances.iter().enumerate();
    let blocks =
        blocks.map(|(at, it)| json!({ "instance": it.name, "class": program.class_of(at).name }));
    json!({
        "program": program.name,
        "revision": program.revision,
        "blocks": blocks.collect::<Vec<_>>(),
        "links": links.collect::<Vec<_>>(),
    })
}

fn rate(live: &Live, link: usize) -> String {
    let flow = live.links[link];
    match flow.frames {
        0 => "0".to_owned(),
        _ => format!("{}/s, {}", short(flow.frames_per_s), short(flow.frames as f64)),
    }
}

fn cost(costs: &Costs, at: usize) -> Option<String> {
    let (_, median, _) = costs.blocks[at]?;
    Some(match costs.unit.as_str() {
        "ns" => format!("{median} ns"),
        unit => format!("{median} {unit}, {:.0} ns", median as f64 * costs.ns),
    })
}

/// Returns the labels of the drawing.
fn notes(live: &Live) -> Notes {
    let most = live.links.iter().map(|flow| flow.frames_per_s).fold(0.0, f64::max);
    let link = |(at, flow): (usize, &super::live::Flow)| Note {
        lines: vec![rate(live, at)],
        share: if most > 0.0 { flow.frames_per_s / most } else { 0.0 },
    };
    let medians = |costs: &Costs| costs.blocks.iter().flatten().map(|it| it.1).max();
    let dearest = live.costs.as_ref().and_then(medians).unwrap_or(0).max(1);
    let block = |at: usize| {
        let costs = live.costs.as_ref();
        let median = costs.and_then(|costs| costs.blocks[at]).map_or(0, |it| it.1);
        let drops = live.drops[at].iter().map(|(why, flow)| {
            format!("drops, {why}: {}/s, {}", short(flow.frames_per_s), short(flow.frames as f64))
        });
        Note {
            lines: costs.and_then(|costs| cost(costs, at)).into_iter().chain(drops).collect(),
            share: median as f64 / dearest as f64,
        }
    };
    let mut lines = live.summary();
    lines.push("at each link: frames per second, and total frames".to_owned());
    Notes {
        lines,
        links: live.links.iter().enumerate().map(link).collect(),
        blocks: (0..live.program.instances.len()).map(block).collect(),
    }
}

/// Formats all values for a terminal.
fn text(live: &Live) -> String {
    let program = &live.program;
    let mut lines = vec![format!("{}, revision {}", program.name, program.revision)];
    lines.extend(live.summary());
    let mut rows = Vec::new();
    for (link, flow) in program.links.iter().zip(&live.links) {
        rows.push([
            format!("{} -> {}", program.output_name(link.from), program.input_name(link.to)),
            short(flow.frames_per_s),
            short(flow.bits_per_s),
            flow.frames.to_string(),
        ]);
    }
    lines.push(String::new());
    lines.extend(table(["link", "frames/s", "bit/s", "frames"], &rows));
    let mut rows = Vec::new();
    for (at, instance) in program.instances.iter().enumerate() {
        for (why, flow) in &live.drops[at] {
            let name = format!("{}: {why}", instance.name);
            rows.push([name, short(flow.frames_per_s), String::new(), flow.frames.to_string()]);
        }
    }
    if !rows.is_empty() {
        lines.push(String::new());
        lines.extend(table(["dropped", "frames/s", "", "frames"], &rows));
    }
    if let Some(costs) = &live.costs {
        let mut rows = Vec::new();
        for (at, instance) in program.instances.iter().enumerate() {
            if let Some((visits, median, mean)) = costs.blocks[at] {
                let name = format!("{} ({})", instance.name, program.short_class(at));
                rows.push([name, median.to_string(), format!("{mean:.0}"), visits.to_string()]);
            }
        }
        if !rows.is_empty() {
            lines.push(String::new());
            let unit = format!("median {}", costs.unit);
            lines.extend(table(["block", &unit, "mean", "visits"], &rows));
        }
    }
    lines.join("\n")
}

/// Formats rows in columns: the first left-aligned, the others right-aligned.
fn table(head: [&str; 4], rows: &[[String; 4]]) -> Vec<String> {
    let width = |at: usize| {
        let words = rows.iter().map(|row| row[at].chars().count());
        words.chain([head[at].chars().count()]).max().unwrap_or(0)
    };
    let widths = [width(0), width(1), width(2), width(3)];
    let line = |row: [&str; 4]| {
        let [a, b, c, d] = widths;
        let text = format!("{:<a$}  {:>b$}  {:>c$}  {:>d$}", row[0], row[1], row[2], row[3]);
        text.trim_end().to_owned()
    };
    let rows = rows.iter().map(|row| line([&row[0], &row[1], &row[2], &row[3]]));
    std::iter::once(line(head)).chain(rows).collect()
}
