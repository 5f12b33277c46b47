//! Switches drawn from a seed: which matches use hardware or software, and which property reveals
//! that.
//!
//! A draw is not a copy of one of the study's switches. Base delays, tails, the cost of bytes,
//! rewrites and entries, capacity, and the types of match that a processor handles are drawn
//! independently. Hardware is fast and steady, and nothing costs it much. A processor has at least
//! one revealing property (a [`Sign`]), and may be as fast and steady as hardware in all others. No
//! sign is drawn that the measurements cannot show, since the path would be undecidable.

use std::fmt::Write;

use report::table::Way;

use super::super::common::Folder;
use super::super::models::modelled;
use targets::name::TargetKind;

/// The first draw of tests. The path decision (`report/src/table/costa2017/paths.rs`) was tuned
/// with draws from 0 to 999 only (`PATH_FIRST=0 PATH_CASES=1000`), and must never be tuned with
/// these.
pub const FRESH: u64 = 1_000_000;

/// Property that reveals a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// Its frames have a long delay.
    Slow,
    /// Some frames have a much longer delay than most.
    Tail,
    /// Delays vary.
    Wavering,
    /// Rewriting a frame takes time.
    Rewrites,
    /// Entries are searched linearly.
    Entries,
    /// The same device forwards faster without OpenFlow.
    Legacy,
}

const SIGNS: [Sign; 6] =
    [Sign::Slow, Sign::Tail, Sign::Wavering, Sign::Rewrites, Sign::Entries, Sign::Legacy];

/// Path of each type of match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// All in hardware.
    Hardware,
    /// All in software.
    Software,
    /// Exact matches in hardware, the others in software.
    Exact,
    /// Ports and MAC addresses in hardware.
    Layer2,
    /// Matches above layer 2 in hardware.
    Layer3,
}

/// A switch with known properties.
pub struct Drawn {
    /// Its name on the command line.
    pub kind: TargetKind,
    /// Path of each type of match.
    pub layout: Layout,
    /// The signs of its processor.
    pub signs: Vec<Sign>,
}

/// A small pseudorandom number generator.
struct Chance(u64);

impl Chance {
    fn new(seed: u64) -> Chance {
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x7061_7468);
        let _ = [chance.part(), chance.part(), chance.part()];
        chance
    }

    /// Returns a number from 0 to 1.
    fn part(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / f64::from(1u32 << 31)
    }

    fn between(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.part()
    }

    /// Returns a number uniformly by order of magnitude.
    fn scaled(&mut self, from: f64, to: f64) -> f64 {
        from * (to / from).powf(self.part())
    }

    fn happens(&mut self, share: f64) -> bool {
        self.part() < share
    }
}

impl Layout {
    fn draw(chance: &mut Chance) -> Layout {
        match chance.part() {
            part if part < 0.35 => Layout::Hardware,
            part if part < 0.64 => Layout::Software,
            part if part < 0.76 => Layout::Exact,
            part if part < 0.88 => Layout::Layer2,
            _ => Layout::Layer3,
        }
    }

    /// Returns the model's word for the layout, if there are two paths.
    fn word(self) -> Option<&'static str> {
        match self {
            Layout::Hardware | Layout::Software => None,
            Layout::Exact => Some("exact"),
            Layout::Layer2 => Some("layer2"),
            Layout::Layer3 => Some("layer3"),
        }
    }

    /// Returns the path of a type of match.
    pub fn way(self, word: &str) -> Way {
        let is_layer_2 = matches!(word, "port" | "MAC");
        let by_hardware = match self {
            Layout::Hardware => true,
            Layout::Software => false,
            Layout::Exact => word == "exact",
            Layout::Layer2 => is_layer_2,
            Layout::Layer3 => !is_layer_2,
        };
        if by_hardware { Way::Hardware } else { Way::Software }
    }

    /// Returns whether a sign is measurable: rewrites and entries use rules for addresses, which
    /// hardware handles here, and legacy mode is compared with the delay of all types.
    fn shows(self, sign: Sign) -> bool {
        match sign {
            Sign::Rewrites | Sign::Entries => self != Layout::Layer3,
            Sign::Legacy => self == Layout::Software,
            Sign::Slow | Sign::Tail | Sign::Wavering => true,
        }
    }
}

/// Draws a switch with this layout and these signs.
pub fn with(folder: &Folder, seed: u64, layout: Layout, signs: &[Sign]) -> Drawn {
    let chance = &mut Chance::new(seed);
    let has = |sign: Sign| signs.contains(&sign) && layout != Layout::Hardware;
    let rules = chance.between(60.0, 300.0).round();
    let mut keys = Keys::default();
    keys.say("capacity", &[("rules", rules)]);
    let hardware_ns = chance.scaled(3_000.0, 110_000.0);
    if let Some(word) = layout.word() {
        let line = format!("in_hardware = {{ value = \"{word}\", source = \"assumed\" }}\n");
        keys.0 += &format!("[tiers]\n{line}");
    }
    let mut base_ns = hardware_ns;
    if layout != Layout::Software {
        keys.say("path_hardware", &calm(chance, hardware_ns, rules));
    }
    if layout != Layout::Hardware {
        let both = layout.word().is_some();
        base_ns = match (has(Sign::Slow), both) {
            (true, _) => chance.scaled(180_000.0, 1_200_000.0),
            (false, true) => (hardware_ns * chance.between(1.3, 3.0)).min(125_000.0),
            (false, false) => chance.scaled(10_000.0, 110_000.0),
        };
        let mut path = calm(chance, base_ns, rules);
        let mut put = |name: &str, value: f64| {
            let found = path.iter_mut().find(|(known, _)| *known == name);
            found.expect("a path without signs is complete").1 = value;
        };
        if has(Sign::Tail) {
            put("slow_percent", chance.between(2.5, 12.0));
            put("slow_ns", base_ns * chance.scaled(0.4, 4.0));
        }
        if has(Sign::Wavering) {
            put("jitter_ns", base_ns * chance.scaled(0.9, 3.0));
        }
        if has(Sign::Rewrites) {
            put("rewrite_ns", base_ns * chance.scaled(0.16, 2.0));
        }
        if has(Sign::Entries) {
            put("rule_ps", 1e3 * base_ns * chance.scaled(0.16, 4.0) / rules);
        }
        keys.say(if both { "path_software" } else { "path_hardware" }, &path);
    }
    let legacy_ns = match has(Sign::Legacy) {
        true => base_ns / chance.scaled(2.6, 8.0),
        false => hardware_ns.min(base_ns) * chance.between(0.8, 1.2),
    };
    keys.say("path_legacy", &[("latency_ns", legacy_ns)]);
    Drawn { kind: modelled(folder, &keys.0), layout, signs: signs.to_vec() }
}

/// Returns the switch of a seed.
pub fn draw(folder: &Folder, seed: u64) -> Drawn {
    let chance = &mut Chance::new(!seed);
    let layout = Layout::draw(chance);
    let possible: Vec<Sign> = SIGNS.into_iter().filter(|sign| layout.shows(*sign)).collect();
    let mut signs = Vec::new();
    while layout != Layout::Hardware && signs.is_empty() {
        signs = possible.iter().copied().filter(|_| chance.happens(0.35)).collect();
    }
    with(folder, seed, layout, &signs)
}

/// Returns a path without signs: small variation, few slow frames that are only a little slower,
/// and low costs.
fn calm(chance: &mut Chance, latency_ns: f64, rules: f64) -> Vec<(&'static str, f64)> {
    let has_slow = chance.happens(0.3);
    let mut some = |most: f64| if chance.happens(0.6) { chance.between(0.0, most) } else { 0.0 };
    vec![
        ("latency_ns", latency_ns),
        ("byte_ps", some(latency_ns.min(1e6))),
        ("jitter_ns", some(0.15) * latency_ns),
        ("slow_percent", if has_slow { 1.0 } else { 0.0 }),
        ("slow_ns", if has_slow { 0.15 * latency_ns } else { 0.0 }),
        ("rewrite_ns", some(0.04) * latency_ns),
        ("rule_ps", some(0.04) * 1e3 * latency_ns / rules),
    ]
}

/// Lines of a model file.
#[derive(Default)]
struct Keys(String);

impl Keys {
    fn say(&mut self, section: &str, rows: &[(&'static str, f64)]) {
        let text = &mut self.0;
        writeln!(text, "[{section}]").expect("writing to a string succeeds");
        for (name, value) in rows.iter().filter(|(_, value)| *value >= 0.5) {
            writeln!(text, "{name} = {{ value = {value:.0}, source = \"assumed\" }}")
                .expect("writing to a string succeeds");
        }
    }
}
