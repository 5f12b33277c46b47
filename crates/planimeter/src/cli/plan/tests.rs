//! Tests of plans and of their error messages.

use super::file;
use super::steps::{self, Step, StepOptions};
use super::text::Faults;
use crate::cli::run::EffortArgument;

fn read(text: &str) -> (Vec<Step>, Vec<String>) {
    let mut faults = Faults::default();
    let written = file::read(text, &mut faults);
    let steps = steps::of(&written, StepOptions::default(), &mut faults);
    (steps, faults.lines("plan.toml", text))
}

#[test]
fn a_step_inherits_the_common_settings_unless_overridden() {
    let (steps, faults) = read(
        "on = [\"switch\", \"bridge\"]\nlink = [\"memory\", \"bridge=veth\"]\neffort = \"quick\"\nbefore = \"true\"\n\
         [set]\nframe = [64, 1518]\nseconds = 0.5\n\
         [[step]]\nrun = \"throughput\"\n\
         [[step]]\nname = \"half\"\nrun = [\"latency\"]\non = \"switch\"\nseed = 7\neffort = \"full\"\n\
         set = { load = 50, seconds = 1 }\n",
    );
    assert_eq!(faults, Vec::<String>::new());
    let [one, two] = steps.as_slice() else { panic!("{} steps", steps.len()) };
    assert_eq!((one.name.as_str(), two.name.as_str()), ("throughput", "half"));
    assert_eq!(one.arguments.targets, ["switch", "bridge"]);
    assert_eq!(one.arguments.links, ["memory", "bridge=veth"]);
    assert_eq!(one.arguments.set, ["frame=64,1518", "seconds=0.5"]);
    assert_eq!(two.arguments.targets, ["switch"]);
    assert_eq!(two.arguments.links, ["memory"]);
    assert_eq!(two.arguments.set, ["frame=64,1518", "load=50", "seconds=1"]);
    assert_eq!(two.arguments.seed, Some(7));
    assert!(one.arguments.effort == Some(EffortArgument::Quick));
    assert!(two.arguments.effort == Some(EffortArgument::Full));
    assert_eq!(two.arguments.before.as_deref(), Some("true"));
}

#[test]
fn a_common_parameter_applies_to_steps_that_declare_it() {
    let (steps, faults) = read(
        "on = \"switch\"\nset = { rules = \"either\", seconds = 10, rules_count = 10 }\n\
         [[step]]\nrun = \"latency\"\n[[step]]\nrun = \"rule-activation\"\n",
    );
    assert_eq!(faults, Vec::<String>::new());
    assert_eq!(steps[0].arguments.set, ["rules=either", "seconds=10"]);
    assert_eq!(steps[1].arguments.set, ["rules_count=10"]);
}

#[test]
fn every_fault_is_reported_with_its_position_and_the_nearest_name() {
    let (_, faults) = read(
        "efort = \"quick\"\non = [\"switch\", \"swich\"]\nseed = -1\nlink = 7\nstrict = \"yes\"\n\
         [set]\nsconds = 1\nframe = 63\n\
         [[step]]\nrun = \"latncy\"\ncolour = \"red\"\n\
         [[step]]\nname = \"a/b\"\nrun = \"latency\"\nset = { loda = 3 }\n\
         [[step]]\non = \"switch\"\n\
         [[gate]]\nmetric = \"throughput_pps\"\n\
         [[gate]]\nmetric = \"speed\"\nratio = 0.9\n\
         [[gate]]\nmetric = \"throughput_pps\"\nratio = \"<=0.9\"\nbase = \"switch\"\n",
    );
    let wanted = [
        ("plan.toml:1:1:", "did you mean \"effort\"?"),
        ("plan.toml:2:17:", "did you mean \"switch\"?"),
        ("plan.toml:3:8:", "non-negative integer"),
        ("plan.toml:4:8:", "not this integer"),
        ("plan.toml:5:10:", "true or false"),
        ("plan.toml:7:1:", "did you mean \"seconds\"?"),
        ("plan.toml:8:1:", "64 to 1518"),
        ("plan.toml:10:7:", "did you mean \"latency\"?"),
        ("plan.toml:11:1:", "a step has no key \"colour\""),
        ("plan.toml:13:8:", "invalid name \"a/b\""),
        ("plan.toml:15:9:", "did you mean \"load\"?"),
        ("plan.toml:16:1:", "add run"),
        ("plan.toml:18:1:", "a gate needs ratio"),
        ("plan.toml:21:10:", "unknown metric \"speed\""),
        ("plan.toml:25:9:", "write throughput_pps>=0.9"),
    ];
    assert_eq!(faults.len(), wanted.len(), "{faults:#?}");
    for (line, (place, words)) in faults.iter().zip(wanted) {
        assert!(line.starts_with(place) && line.contains(words), "{place} {words}: {line}");
    }
}

#[test]
fn invalid_toml_is_reported_and_the_preceding_part_is_read() {
    let (steps, faults) = read("run = \"latency\"\non = [\"switch\"\nseed 7\n");
    assert!(faults[0].starts_with("plan.toml:"), "{faults:?}");
    assert_eq!(steps[0].arguments.experiments, ["latency"]);
    let (_, faults) = read("run = \"latency\"\n[[step]]\nrun = \"throughput\"\n");
    assert!(faults[0].starts_with("plan.toml:1:7: run is set outside the steps"), "{faults:?}");
}

#[test]
fn a_gate_needs_only_a_ratio_and_derives_its_direction() {
    let mut faults = Faults::default();
    let text = "run = \"latency\"\n[[gate]]\nmetric = \"latency_ns_p99\"\nratio = 1.1\n\
                [[gate]]\nmetric = \"throughput_pps\"\nratio = 0.97\nnew = \"ovs\"\n";
    let written = file::read(text, &mut faults);
    assert!(faults.is_empty(), "{faults:?}");
    let gates: Vec<String> = written.gates.iter().map(|it| it.gate.to_string()).collect();
    assert_eq!(gates, ["latency_ns_p99<=1.1", "throughput_pps>=0.97"]);
}

/// Checks that the parser ends on any plan, and that errors have positions inside the text.
#[test]
fn damaged_plans_give_errors_and_never_panic() {
    let whole = "on = [\"switch\"]\n[set]\nframe = [64]\n[[step]]\nrun = \"latency\"\n[[gate]]\nmetric = \"é\"\nratio = 1\n";
    for cut in (0..whole.len()).filter(|at| whole.is_char_boundary(*at)) {
        let _ = read(&whole[..cut]);
        let put = format!("{}\u{1}[[\"{}", &whole[..cut], &whole[cut..]);
        let (_, faults) = read(&put);
        assert!(!faults.is_empty() && faults.iter().all(|line| !line.contains('\n')), "{faults:?}");
    }
}
