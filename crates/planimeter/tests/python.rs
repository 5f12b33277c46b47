//! Tests of Python scripts as modules: they measure the same as built-in modules, and every failure
//! becomes a report.
//!
//! They run in virtual time on our switch, except for one run in real time. A script is part of its
//! test, or is the repository's example.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod common;

use std::fs;
use std::path::Path;

use common::{Folder, planimeter};
use serde_json::Value;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/examples/barrier_gap.py");

/// Arguments of every run in virtual time.
const SIM: [&str; 8] =
    ["--on", "switch", "--link", "memory", "--set", "simulate=true", "--set", "repeats=1"];

/// Runs a script or an experiment in virtual time; returns the record, and the output.
fn measured(folder: &Path, what: &str, set: &[&str]) -> (Value, String) {
    let set = set.iter().flat_map(|it| ["--set", it]);
    let arguments: Vec<&str> =
        ["run", what, "--json", "--effort", "quick"].into_iter().chain(SIM).chain(set).collect();
    let result = planimeter(folder, &arguments);
    let record: Value = serde_json::from_str(&result.output).unwrap();
    let has_failed = module(&record)["ended"]["failed"].is_string();
    let code = if has_failed { 3 } else { 0 };
    assert_eq!(result.code, Some(code), "{}{}", result.output, result.errors);
    (record, result.errors)
}

/// Returns the module of the only trial.
fn module(record: &Value) -> &Value {
    let trials = record["trials"].as_array().unwrap();
    assert!(!trials.is_empty());
    &trials[0]["module"]
}

fn value(module: &Value, name: &str) -> Option<f64> {
    let rows = module["measured"].as_array().unwrap();
    rows.iter().find(|row| row["metric"] == name)?["value"].as_f64()
}

fn log(folder: &Path, module: &Value) -> String {
    let run = fs::read_dir(folder.join("runs")).unwrap().next().unwrap().unwrap().path();
    module["log"].as_str().map_or(String::new(), |log| fs::read_to_string(run.join(log)).unwrap())
}

/// Runs a module whose class has this body; returns its part of the record, its log, and its
/// output.
fn scripted(body: &str) -> (Value, String, String) {
    let folder = Folder::new();
    let script = folder.0.join("mine.py");
    let text =
        format!("from planimeter import *\n\nclass Mine(Module):\n    \"\"\"Mine.\"\"\"\n{body}");
    fs::write(&script, text).unwrap();
    let (record, errors) = measured(&folder.0, "mine.py", &[]);
    let module = module(&record).clone();
    let log = log(&folder.0, &module);
    (module, log, errors)
}

#[test]
fn the_example_agrees_with_rule_activation() {
    let folder = Folder::new();
    let set = ["rules_count=50", "probes_pps=50000"];
    let (theirs, _) = measured(&folder.0, EXAMPLE, &set);
    // The example sends one update, and rule-activation may send more with denser probes.
    let own = [&set[..], &["probes=before", "updates_max=1"]].concat();
    let (ours, _) = measured(&folder.0, "rule-activation", &own);
    let (theirs, ours) = (module(&theirs), module(&ours));
    assert_eq!((&theirs["ended"], &ours["ended"]), (&"completed".into(), &"completed".into()));
    for name in ["control_plane_ns", "data_plane_ns", "rules_active_ratio", "rules_premature_ratio"]
    {
        assert!(value(ours, name).is_some(), "{name}");
        assert_eq!(value(theirs, name), value(ours, name), "{name}");
    }
    assert!(value(theirs, "python_events_count").unwrap() > 100.0);
    assert!(value(theirs, "python_bytes").unwrap() > 1000.0);
    assert_eq!(value(theirs, "python_cpu_ns"), None, "Python takes no virtual time");
}

/// Tests two switches in a row, and a script with a connection to both.
#[test]
fn a_script_uses_each_switch_of_a_topology() {
    let folder = Folder::new();
    let switch = |name: &str| format!("[[switch]]\nname = \"{name}\"\ntarget = \"switch\"\n");
    let chain = format!(
        "instrument = [\"a:1\", \"b:2\"]\n{}{}[[link]]\nbetween = [\"a:2\", \"b:1\"]\n",
        switch("a"),
        switch("b")
    );
    fs::write(folder.0.join("chain.toml"), chain).unwrap();
    let script = "from planimeter import *\n\n\
        class Mine(Module):\n    \"\"\"Mine.\"\"\"\n\
        \x20   def needs(self):\n\
        \x20       return Needs(limit_s=5, connections=[Connection(), Connection(switch=1)])\n\
        \x20   def start(self, facts):\n\
        \x20       self.facts, self.answers = facts, set()\n\
        \x20       for at in (0, 1):\n\
        \x20           self.send(\"barrier_request\", connection=at)\n\
        \x20   def message(self, message):\n\
        \x20       self.answers.add(message.connection)\n\
        \x20       if len(self.answers) == 2:\n\
        \x20           self.end()\n\
        \x20   def finish(self, ended):\n\
        \x20       ids = {it.datapath_id for it in self.facts.connections}\n\
        \x20       self.report(\"datapaths_count\", len(ids), 0)\n\
        \x20       self.report(\"answers_count\", len(self.answers), 0)\n\
        \x20       self.report(\"far_switch_count\", self.facts.ports[1].switch, 0)\n\
        \x20       self.report(\"far_port_count\", self.facts.ports[1].switch_port, 0)\n";
    fs::write(folder.0.join("mine.py"), script).unwrap();
    let words = "run mine.py --json --topology chain.toml --link memory --set simulate=true --set repeats=1";
    let result = planimeter(&folder.0, &words.split_whitespace().collect::<Vec<_>>());
    assert_eq!(result.code, Some(0), "{}{}", result.output, result.errors);
    let record: Value = serde_json::from_str(&result.output).unwrap();
    let module = module(&record);
    assert_eq!(module["ended"], "completed", "{}", result.errors);
    for (name, wanted) in [
        ("datapaths_count", 2.0),
        ("answers_count", 2.0),
        ("far_switch_count", 1.0),
        ("far_port_count", 2.0),
    ] {
        assert_eq!(value(module, name), Some(wanted), "{name}");
    }
}

/// Tests a controller's settings and messages that scripts formerly could not send.
#[test]
fn a_script_configures_the_switch_and_sends_groups_meters_and_bundles() {
    let (module, log, errors) = scripted(
        "    def start(self, facts):\n\
         \x20       self.send('get_config_request')\n\
         \x20       group = {'type': 'group_mod', 'group': 7, 'buckets': [{'actions': [{'output': 2}]}]}\n\
         \x20       meter = {'type': 'meter_mod', 'meter': 3, 'flags': ['pktps'], 'bands': [{'band': 'drop', 'rate': 1000}]}\n\
         \x20       self.send(group, meter, {'type': 'multipart_request', 'of': 'group_desc'},\n\
         \x20                 {'type': 'multipart_request', 'of': 'meter_config'})\n\
         \x20       rule = {'type': 'flow_mod', 'actions': [{'output': {'port': 'controller', 'max_len': 64}}]}\n\
         \x20       flags = ['atomic', 'ordered']\n\
         \x20       self.send({'type': 'bundle_control', 'bundle': 1, 'command': 'open', 'flags': flags},\n\
         \x20                 {'type': 'bundle_add', 'bundle': 1, 'flags': flags, 'message': rule},\n\
         \x20                 {'type': 'bundle_control', 'bundle': 1, 'command': 'commit', 'flags': flags},\n\
         \x20                 {'type': 'role_request', 'role': 'master', 'generation': 1},\n\
         \x20                 {'type': 'multipart_request', 'of': 'flow'}, 'barrier_request')\n\
         \x20       self.bodies = {}\n\
         \x20   def message(self, message):\n\
         \x20       self.bodies[message.body.get('of', message.kind)] = message.body\n\
         \x20       if message.kind == 'barrier_reply':\n\
         \x20           self.end()\n\
         \x20   def finish(self, ended):\n\
         \x20       got = self.bodies\n\
         \x20       assert 'error' not in got, got\n\
         \x20       assert got['get_config_reply']['miss_send_len'] == 65535, 'sent before the connection is up'\n\
         \x20       assert got['group_desc']['rows'][0]['buckets'][0]['actions'] == [{'output': 2}], got\n\
         \x20       assert got['meter_config']['rows'][0]['bands'][0]['rate'] == 1000, got\n\
         \x20       assert got['role_reply']['role'] == 'master', got\n\
         \x20       wanted = [{'apply_actions': [{'output': {'port': 'controller', 'max_len': 64}}]}]\n\
         \x20       assert got['flow']['rows'][0]['instructions'] == wanted, got\n\
         \x20       self.report('answers_count', len(got), 0)\n",
    );
    assert_eq!(module["ended"], "completed", "{log}{errors}");
    assert!(value(&module, "answers_count").is_some(), "{log}{errors}");
}

#[test]
fn one_seed_gives_one_result_for_any_run_time_of_python() {
    let folder = Folder::new();
    let set = ["rules_count=20", "probes_pps=50000"];
    let [once, again] = [0, 1].map(|_| measured(&folder.0, EXAMPLE, &set).0);
    assert_eq!((&once["trials"], &once["outcomes"]), (&again["trials"], &again["outcomes"]));
}

#[test]
fn the_example_measures_in_real_time() {
    let folder = Folder::new();
    let set = ["rules_count=50", "probes_pps=5000", "repeats=1"];
    let set = set.iter().flat_map(|it| ["--set", it]);
    let arguments = ["run", EXAMPLE, "--json", "--on", "switch", "--link", "memory"];
    let arguments: Vec<&str> = arguments.into_iter().chain(set).collect();
    let result = planimeter(&folder.0, &arguments);
    assert_eq!(result.code, Some(0), "{}{}", result.output, result.errors);
    let record: Value = serde_json::from_str(&result.output).unwrap();
    let module = module(&record);
    assert_eq!(module["ended"], "completed", "{}", result.errors);
    assert_eq!(value(module, "rules_active_ratio"), Some(1.0));
    for name in ["control_plane_ns", "data_plane_ns", "python_answer_ns_max", "python_cpu_ns"] {
        assert!(value(module, name).is_some_and(|ns| ns > 0.0), "{name}: {module}");
    }
}

#[test]
fn the_declarations_of_a_script_are_listed_and_checked() {
    let folder = Folder::new();
    let result = planimeter(&folder.0, &["list", EXAMPLE]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    let row = "--set rules_count=1 to 10000 rules, comma-separated";
    assert!(
        result.output.contains("barrier_gap.py") && result.output.contains(row),
        "{}",
        result.output
    );
    let wrong = ["run", EXAMPLE, "--on", "switch", "--set", "rules_count=0"];
    let result = planimeter(&folder.0, &wrong);
    assert_eq!(result.code, Some(2), "{}", result.errors);
    assert!(result.errors.contains("rules_count"), "{}", result.errors);
}

#[test]
fn an_unusable_script_is_rejected_with_file_and_line() {
    let folder = Folder::new();
    let refused = |text: &str, wanted: &str| {
        fs::write(folder.0.join("wrong.py"), text).unwrap();
        let result = planimeter(&folder.0, &["run", "wrong.py", "--on", "switch"]);
        assert_eq!(result.code, Some(2), "{}", result.errors);
        assert!(result.errors.contains(wanted), "{wanted}: {}", result.errors);
    };
    refused("x = (\n", "wrong.py:1: SyntaxError");
    refused("import nowhere\n", "wrong.py:1: ModuleNotFoundError");
    refused("x = 1\n", "must have one class derived from planimeter.Module");
    let head = "from planimeter import *\nclass A(Module):\n";
    let default = format!("{head}    parameters = [Number('a', 0, 1, default=2)]\n");
    refused(&default, "wrong.py:3: ValueError: the default 2 of a is not within 0 to 1");
    refused(&format!("{head}    axis = 'b'\n"), "invalid axis \"b\"");
    refused(&format!("{head}    charts = [{{'title': 'x', 'y': ['gap']}}]\n"), "no unit");
    let result = planimeter(&folder.0, &["run", "nowhere.py", "--on", "switch"]);
    assert_eq!((result.code, result.errors.contains("no such file")), (Some(2), true));
}

#[test]
fn an_exception_is_reported_with_its_traceback_and_results_are_stored() {
    let (module, log, errors) = scripted(
        "    def start(self, facts):\n        self.report('kept_ns', 7, 1)\n        self.timer_in(1000)\n\
         \x20   def timer(self, timer):\n        print('about to')\n        1 / 0\n",
    );
    let failed = module["ended"]["failed"].as_str().unwrap();
    assert!(failed.starts_with("mine.py:10: ZeroDivisionError: division by zero\n"), "{failed}");
    assert!(failed.contains("in timer\n    1 / 0"), "{failed}");
    assert_eq!(value(&module, "kept_ns"), Some(7.0));
    assert!(log.contains("about to") && log.contains("python_fault"), "{log}");
    assert!(errors.contains("ZeroDivisionError"), "{errors}");
}

#[test]
fn a_module_that_blocks_ends_by_a_named_limit_with_its_position() {
    let (module, ..) = scripted(
        "    def needs(self):\n        return Needs(callback_timeout_s=0.5)\n\
         \x20   def start(self, facts):\n        self.report('kept_ns', 7, 1)\n        self.timer_in(1000)\n\
         \x20   def timer(self, timer):\n        while True: pass\n",
    );
    let failed = module["ended"]["failed"].as_str().unwrap();
    let wanted = "mine.py did not reply within 0.5 s (PYTHON_ANSWER)\n";
    assert!(failed.starts_with(wanted), "{failed}");
    assert!(failed.contains("mine.py\", line 11 in timer"), "{failed}");
    assert_eq!(value(&module, "kept_ns"), Some(7.0));
}

#[test]
fn a_module_that_grows_exits_or_sends_invalid_data_is_reported() {
    for (body, wanted) in [
        ("all = []\n        while True: all.append(bytearray(1 << 20))", "MemoryError"),
        (
            "import os; print('gone', flush=True); os._exit(3)",
            "mine.py exited before its end was requested",
        ),
        (
            "self.send({'type': 'flow_mod', 'prioriti': 1})",
            "mine.py:7: invalid message: flow_mod does not support \"prioriti\"",
        ),
        ("self.report('gap', 1)", "has no unit"),
        ("self.prepare(id=1, rate_pps=1)", "mine.py:7: invalid stream"),
        ("self.watch('first')", "mine.py:7: invalid command: [\"watch\",\"first\",\"probes\"]"),
        ("self.watch(0, 'proto=nothing')", "mine.py:7: invalid filter: "),
        ("raise SystemExit('enough')", "SystemExit: enough"),
    ] {
        let body = format!("    memory_mib = 64\n    def start(self, facts):\n        {body}\n");
        let (module, ..) = scripted(&body);
        let failed = module["ended"]["failed"].as_str().unwrap();
        assert!(failed.contains(wanted), "{wanted}: {failed}");
    }
}

#[test]
fn messages_frames_and_streams_reach_a_script() {
    let (module, log, errors) = scripted(
        "    def start(self, facts):\n\
         \x20       assert facts.is_simulated and facts.connections[0].version == '1.5', facts\n\
         \x20       self.watch(1, 'proto=udp')\n\
         \x20       self.prepare(id=3, frame_bytes=64, rate_pps=1000)\n\
         \x20       self.send({'type': 'flow_mod', 'match': {'in_port': 1}, 'actions': [{'output': 2}]})\n\
         \x20       self.echo = self.send({'type': 'echo_request', 'data': 'abcd'})\n\
         \x20   def needs(self):\n\
         \x20       return Needs(limit_s=1, frame_data=True)\n\
         \x20   def message(self, message):\n\
         \x20       if message.kind == 'echo_reply':\n\
         \x20           assert message.request == self.echo and message.body == {'data': 'abcd'}, message\n\
         \x20           out = {'type': 'packet_out', 'actions': [{'output': 2}]}\n\
         \x20           self.send({**out, 'data': {'stream': 3, 'number': 5}})\n\
         \x20           self.begin(3, frames=2)\n\
         \x20       elif message.kind == 'multipart_reply':\n\
         \x20           row = message.body['rows'][0]\n\
         \x20           self.log('flow', packets=row['packets'], match=str(row['match']))\n\
         \x20           self.counters()\n\
         \x20       elif message.kind == 'error':\n\
         \x20           raise ValueError(message)\n\
         \x20   def stream_ended(self, stream):\n\
         \x20       self.timer_in(100_000_000)\n\
         \x20   def timer(self, timer):\n\
         \x20       self.send({'type': 'multipart_request', 'of': 'flow'})\n\
         \x20   def frame(self, frame):\n\
         \x20       self.log('frame', number=frame.probe.number, bytes=len(frame.data))\n\
         \x20   def port_counters(self, ports):\n\
         \x20       self.report('back_frames', ports[1].rx_frames, 0)\n\
         \x20       self.end()\n",
    );
    assert_eq!(module["ended"], "completed", "{errors}{log}");
    assert_eq!(value(&module, "back_frames"), Some(3.0), "{log}");
    for wanted in ["\"number\":5,\"bytes\":60", "\"number\":0", "\"number\":1", "\"packets\":2"] {
        assert!(log.contains(wanted), "{wanted}: {log}");
    }
}

#[test]
fn earlier_names_work_and_the_log_names_the_present_ones() {
    let (module, log, errors) = scripted(
        "    shows = [{'title': 'x', 'drawn': ['kept_ns'], 'beside': ['said_count']}]\n\
         \x20   def prepared(self):\n        self.kept = 7\n\
         \x20   def needs(self):\n        return Needs(limit_s=1, answer_s=5, ends_when_lost=True)\n\
         \x20   def start(self, facts):\n        self.echo = self.send('echo_request')\n\
         \x20   def message(self, message):\n\
         \x20       self.measured('said_count', int(message.said == self.echo), 0)\n\
         \x20       self.counters()\n\
         \x20   def counted(self, ports):\n\
         \x20       self.measured('kept_ns', self.kept, 1)\n        self.end()\n",
    );
    assert_eq!(module["ended"], "completed", "{errors}{log}");
    assert_eq!(value(&module, "kept_ns"), Some(7.0), "{log}");
    assert_eq!(value(&module, "said_count"), Some(1.0), "{log}");
    for hint in ["Mine.counted is now port_counters", "Message.said is now request"] {
        assert!(log.contains(hint), "{hint}: {log}");
    }
}

#[test]
fn a_script_queries_an_snmp_agent_and_reads_wire_timestamps() {
    let folder = Folder::new();
    let text = "from planimeter import *\n\nclass Mine(Module):\n    \"\"\"Mine.\"\"\"\n\
        \x20   def start(self, facts):\n\
        \x20       assert facts.agents == ['agent.1 (v2c)'], facts\n\
        \x20       self.get = self.snmp('1.3.6.1.2.1.1.1.0', '1.3.6.1.9')\n\
        \x20       self.walk = self.snmp('1.3.6.1.2.1.31.1.1.1.1', kind='walk')\n\
        \x20       self.absent = self.snmp('1.3.6', agent=5)\n\
        \x20       self.answers = {}\n\
        \x20   def snmp_reply(self, answer):\n\
        \x20       self.answers[answer.request] = answer\n\
        \x20       if len(self.answers) == 3:\n\
        \x20           get, walk = self.answers[self.get], self.answers[self.walk]\n\
        \x20           values = {'1.3.6.1.2.1.1.1.0': 'a simulated switch', '1.3.6.1.9': None}\n\
        \x20           assert get.values == values and get.rounds == 1, get\n\
        \x20           self.report('answer_ns', get.at - get.sent)\n\
        \x20           assert list(walk.values.values()) == ['port1', 'port2'], walk\n\
        \x20           assert self.answers[self.absent].reason == 'no such agent'\n\
        \x20           self.send('barrier_request')\n\
        \x20   def sent(self, sent):\n\
        \x20       assert sent.wire == sent.first, sent\n\
        \x20   def message(self, message):\n\
        \x20       assert message.wire == message.at, message\n\
        \x20       self.end()\n";
    fs::write(folder.0.join("mine.py"), text).unwrap();
    let set = ["snmp=lab", "control_capture=timestamps"];
    let (record, errors) = measured(&folder.0, "mine.py", &set);
    let module = module(&record);
    assert_eq!(module["ended"], "completed", "{errors}");
    assert_eq!(
        value(module, "answer_ns"),
        Some(200_000.0),
        "as long as the simulated agent thinks"
    );
}
