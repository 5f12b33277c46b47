//! Case files: commands and frames for a pipeline, and their expected results, in one text.
//!
//! A line that begins with `=` is a result of the command above it; `cases/language.rs` parses all
//! other lines. `UPDATE=1 cargo test -p dataplane --test cases` rewrites the `=` lines; review the
//! diff before you accept them.

#![allow(clippy::unwrap_used)]

#[path = "cases/language.rs"]
mod language;

use std::fs;
use std::path::{Path, PathBuf};

use dataplane::flow::{FlowFilter, FlowRecord, Part, Source};
use dataplane::forwarder::{Event, Forwarder, Outputs};
use dataplane::pipeline::{OnMiss, Pipeline, Settings};
use dataplane::rewrite::Context;
use dataplane::table::TableSettings;
use language::{Line, show_instructions, show_match};
use packet::frame::{Batch, Frame, PortNo};
use packet::show::Show;
use packet::time::Nanos;

#[test]
fn every_case_gives_its_expected_results() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files: Vec<PathBuf> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "case"));
    files.sort();
    assert!(files.len() >= 8, "cases are missing from {}", folder.display());
    files.iter().for_each(|path| check(path));
}

/// Runs one file and compares it with the results.
fn check(path: &Path) {
    let text = fs::read_to_string(path).unwrap();
    let mut case = Case::default();
    let mut reported = String::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('=')) {
        reported += &format!("{line}\n");
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let place = format!("{}:{}", path.display(), number + 1);
        for reply in case.run(&Line::new(line, &place)) {
            reported += &format!("= {reply}\n");
        }
    }
    if std::env::var_os("UPDATE").is_some() {
        return fs::write(path, &reported).unwrap();
    }
    for (number, (got, wanted)) in reported.lines().zip(text.lines()).enumerate() {
        assert_eq!(got, wanted, "{}:{}", path.display(), number + 1);
    }
    assert_eq!(reported.lines().count(), text.lines().count(), "{}", path.display());
}

/// State of a running case.
struct Case {
    pipeline: Pipeline,
    out: Outputs,
    now: Nanos,
}

impl Default for Case {
    fn default() -> Self {
        let ports = [1, 2, 3, 4];
        Case {
            pipeline: Pipeline::new(&ports, &Settings::default()),
            out: Outputs::new(&ports),
            now: Nanos::ZERO,
        }
    }
}

impl Case {
    /// Executes a line and returns its results.
    fn run(&mut self, line: &Line) -> Vec<String> {
        match line.command() {
            "switch" => self.make(line),
            "port" => {
                let port = line.number("number") as PortNo;
                return answer(self.pipeline.set_port(port, line.port_settings()));
            }
            "table" => {
                let table = line.number("number") as u8;
                return answer(self.pipeline.set_table(table, line.table_config()));
            }
            "egress" => {
                let first = line.has("first").then(|| line.number("first") as u8);
                return answer(self.pipeline.set_first_egress(first));
            }
            "watch" => self.pipeline.watch(true),
            "group" => return answer(self.pipeline.add_group(line.group(), self.now)),
            "ungroup" => {
                let (number, source) = (line.number("number") as u32, Source::default());
                let (now, out) = (self.now, &mut self.out);
                let gone = self.pipeline.delete_group(number, source, now, out);
                return answer(gone).into_iter().chain(self.left()).collect();
            }
            "add" => {
                let added = self.pipeline.add(&line.flow(), self.now, &mut self.out);
                return answer(added).into_iter().chain(self.left()).collect();
            }
            "modify" => {
                let (flow, filter) = (line.flow(), line.filter());
                let rules = line.rules();
                let (now, out) = (self.now, &mut self.out);
                let modified = self.pipeline.modify(&flow, &filter, rules, now, out);
                return answer(modified).into_iter().chain(self.left()).collect();
            }
            "delete" => {
                let filter = line.filter();
                let count = self.pipeline.delete(&filter, self.now, &mut self.out);
                return [format!("{count} deleted")].into_iter().chain(self.left()).collect();
            }
            "frame" => {
                let mut batch = Batch::new(1000);
                for _ in 0..line.number_or("times", 1) {
                    batch.push_bytes(&line.frame());
                }
                if line.has("and_label") {
                    batch.push_bytes(&line.frame_labelled("and_label"));
                }
                let port = line.number("from") as PortNo;
                self.pipeline.forward(port, &mut batch, self.now, &mut self.out);
            }
            "send" => {
                let mut frame = Frame::from_bytes(&line.frame());
                let port = line.number("from") as PortNo;
                let (begins, actions) = (Context::at(port), line.actions());
                self.pipeline.execute(&mut frame, begins, &actions, self.now, &mut self.out);
            }
            "at" => {
                self.now = line.moment();
                self.pipeline.tick(self.now, &mut self.out);
            }
            "flows" => return self.flows(&line.filter()),
            "tables" => return self.tables(),
            "drops" => {
                let drops = self.pipeline.drops();
                return drops
                    .occurred()
                    .map(|(why, frames)| format!("{} {frames}", why.name()))
                    .collect();
            }
            "queues" => {
                let egress = self.pipeline.egress();
                let queues = egress.queues();
                let show = |(port, queue, traffic)| format!("{port}:{queue} {traffic:?}");
                return queues.map(show).collect();
            }
            other => panic!("{}: no command {other}", line.place),
        }
        self.left()
    }

    fn make(&mut self, line: &Line) {
        let ports: Vec<PortNo> = line.numbers("ports").map(|port| port as PortNo).collect();
        let settings = Settings {
            tables: (0..line.number_or("tables", 1))
                .map(|_| {
                    TableSettings::of(
                        line.number_or("exact", 100) as usize,
                        line.number_or("wildcard", 100) as usize,
                    )
                })
                .collect(),
            on_miss: match line.text_or("miss", "controller") {
                "controller" => OnMiss::Controller,
                "drop" => OnMiss::Drop,
                "normal" => OnMiss::Normal,
                other => panic!("{}: unknown miss behavior {other}", line.place),
            },
            drop_fragments: line.has("drop_fragments"),
            normal: (!line.has("no_bridge")).then(dataplane::bridge::Settings::default),
            ..Settings::default()
        };
        self.pipeline = Pipeline::new(&ports, &settings);
        let attached = line.has("local").then_some(dataplane::action::LOCAL);
        self.out = Outputs::new(&ports.into_iter().chain(attached).collect::<Vec<_>>());
    }

    /// Returns what has left the pipeline since the last call, queues first, with equal adjacent
    /// lines merged.
    fn left(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for (port, queue) in self.out.queues_mut() {
            let name =
                if *port == dataplane::action::LOCAL { "local".into() } else { port.to_string() };
            lines.extend(
                queue.frames().iter().map(|frame| format!("{name}: {}", Show(frame.bytes()))),
            );
            queue.clear();
        }
        lines.extend(self.out.events.drain(..).map(|event| match event {
            Event::FlowReached { .. } => unreachable!("the pipeline looks at those itself"),
            Event::PacketIn { port, bytes_max, context, frame } => {
                let why = context.why;
                let limit = bytes_max.map_or(String::new(), |bytes| format!(" {bytes} bytes"));
                let mut from = port.to_string();
                if context.table > 0 {
                    from += &format!(" table {}", context.table);
                }
                if let Some(port) = context.actset_output {
                    from += &format!(" for {port}");
                }
                if context.fields.metadata > 0 {
                    from += &format!(" metadata {:#x}", context.fields.metadata);
                }
                format!("controller: {why:?}{limit} from {from}: {}", Show(frame.bytes()))
            }
            Event::FlowRemoved { flow, why } => format!("removed: {why:?} {}", show_flow(&flow)),
            Event::FlowChanged { flow, change, .. } => {
                format!("watched: {change:?} {}", show_flow(&flow))
            }
            Event::FlowTriggered { flow } => format!("triggered: {}", show_flow(&flow)),
            Event::Vacancy { table, down } => {
                format!("table {table}: {} room", if down { "less" } else { "more" })
            }
        }));
        collapse(&lines)
    }

    fn flows(&self, filter: &FlowFilter) -> Vec<String> {
        let records = self.pipeline.tables().records(filter, 0, self.now);
        let mut lines: Vec<String> = records.map(|record| show_flow(&record)).collect();
        lines.push(format!("{:?}", self.pipeline.tables().totals(filter)));
        lines
    }

    fn tables(&self) -> Vec<String> {
        let show = |id| format!("{id:?} {:?}", self.pipeline.tables().part_account(0, id));
        let mut lines = [Part::Exact, Part::Wildcard].map(show).to_vec();
        for table in 1..self.pipeline.tables().count_tables() {
            lines.push(format!("{table} {:?}", self.pipeline.tables().account(table as u8)));
        }
        lines
    }
}

fn answer(result: impl std::fmt::Debug) -> Vec<String> {
    vec![format!("{result:?}")]
}

fn collapse(lines: &[String]) -> Vec<String> {
    let runs = lines.chunk_by(|one, other| one == other);
    runs.map(|run| match run.len() {
        1 => run[0].clone(),
        count => format!("{} ({count} times)", run[0]),
    })
    .collect()
}

fn show_flow(flow: &FlowRecord) -> String {
    format!(
        "{}{:?} priority={} {} {} cookie={} frames={} bytes={} age={} idle={}",
        if flow.table > 0 { format!("{} ", flow.table) } else { String::new() },
        flow.part,
        flow.priority,
        show_match(&flow.matching),
        show_instructions(&flow.instructions),
        flow.cookie,
        flow.frames,
        flow.bytes,
        flow.age,
        flow.idle
    )
}
