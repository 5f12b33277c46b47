//! Links, and outputs without one.
//!
//! An output leads to one input (RFC 5812 section 3.2.1). An input may have several links. Frames
//! at an output without a link are dropped. This is intended for failure outputs and after Count;
//! any other unlinked output causes a warning.

use std::collections::BTreeMap;

use forces::Value;

use crate::diagnostic::{Code, Problems};
use crate::program::{End, Program, base_id, class_id};

/// Outputs at which drops are intended.
const DROPS: &[&str] = &[
    "ExceptionOut",
    "FailOut",
    "MissOut",
    "FullOut",
    "SamePortOut",
    "ExceedOut",
    "PassOut",
    "ECMPOut",
];

/// Adds problems of links.
pub fn check(program: &Program, problems: &mut Problems) {
    let mut first: BTreeMap<End, usize> = BTreeMap::new();
    for (at, link) in program.links.iter().enumerate() {
        if let Some(before) = first.get(&link.from) {
            let other = &program.links[*before];
            let what =
                format!("already linked to {} ({})", program.input_name(other.to), other.place);
            let hint = "use Replicate to copy to several inputs";
            problems.add(Code::LinkSecond, &link.place, program.output_name(link.from), what, hint);
        } else {
            first.insert(link.from, at);
        }
    }
    let linked = |instance: usize, port: u32| {
        let from = End { instance, port, index: 0 };
        let until = End { instance, port, index: u32::MAX };
        first.range(from..=until).next().is_some()
    };
    for instance in 0..program.instances.len() {
        let class = program.class_of(instance);
        for (port, output) in (0..).zip(&class.outputs) {
            let meant = DROPS.contains(&output.name.as_str())
                || class.id == class_id::COUNT
                || (class.id == base_id::MAC_IN && is_off(program, instance, &output.name));
            if meant || linked(instance, port) {
                continue;
            }
            let path = format!("{}.{}", program.instances[instance].name, output.name);
            let what = "not linked: frames of this output are dropped".to_owned();
            let hint = "link it, for example to a Count";
            let place = &program.instances[instance].place;
            problems.add(Code::Unconnected, place, path, what, hint);
        }
    }
}

/// Returns true if an output of EtherMACIn is not in use.
fn is_off(program: &Program, instance: usize, output: &str) -> bool {
    let enabled = program.component(instance, "L2BridgingPathEnable");
    output == "L2BridgingPathOut" && enabled != Some(Value::Boolean(true))
}
