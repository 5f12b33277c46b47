//! Diagram of the tester and its targets; a script writes the rates of the ports into it.
//!
//! Each target has a row, with one wire for sent frames and one for received frames. The switches
//! of a network are in sequence.

use maud::{Markup, html};

use runner::live::event::{NetworkWiring, TargetStatus};
use runner::live::state::RunState;

/// Width of the diagram, and positions of tester and targets.
const WIDTH: usize = 760;
const INSTRUMENT: usize = 110;
const TARGETS: usize = 330;

/// Height of a row, and of a network's row.
const ROW: usize = 66;
const ROW_NETWORK: usize = 150;

/// Length limit of a name, in characters.
const LETTERS_MAX: usize = 44;

/// Renders the diagram.
pub(super) fn svg(picture: &RunState) -> Markup {
    let targets = &picture.begun.targets;
    let height_of = |target: &TargetStatus| match &target.network {
        Some(_) => ROW_NETWORK,
        None => ROW,
    };
    let height = targets.iter().map(height_of).sum::<usize>().max(ROW);
    let mut top = 0;
    let rows = targets.iter().map(|target| {
        let at = top;
        top += height_of(target);
        (at, target)
    });
    let rows: Vec<(usize, &TargetStatus)> = rows.collect();
    html! {
        svg.topology viewBox=(format!("0 0 {WIDTH} {}", height + 8)) role="img" aria-label=(words(targets)) {
            rect.box x="2" y="4" width=(INSTRUMENT - 2) height=(height - 4) rx="8" {}
            text x=(INSTRUMENT / 2) y=(height / 2 + 6) text-anchor="middle" { "tester" }
            @for (at, target) in rows {
                g data-target=(target.name) {
                    @match &target.network {
                        Some(network) => (switches(at, target, network)),
                        None => (single(at, target)),
                    }
                }
            }
        }
    }
}

/// Describes the diagram as text.
fn words(targets: &[TargetStatus]) -> String {
    let one = |it: &TargetStatus| format!("{}, {}, over {}", it.name, it.is, it.link);
    format!("tester connected to: {}", targets.iter().map(one).collect::<Vec<_>>().join("; "))
}

fn short(text: &str) -> String {
    match text.char_indices().nth(LETTERS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.into(),
    }
}

fn single(at: usize, target: &TargetStatus) -> Markup {
    let (out, back) = (at + 24, at + 48);
    html! {
        @for (number, y) in [(1, out), (2, back)] {
            line.wire x1=(INSTRUMENT) y1=(y) x2=(TARGETS) y2=(y) {}
            text.soft x=(INSTRUMENT + 8) y=(y - 5) { "port " (number) " " tspan data-port=(number - 1) {} }
        }
        rect.box x=(TARGETS) y=(at + 8) width=(WIDTH - TARGETS - 2) height=(ROW - 12) rx="8" {}
        text x=(TARGETS + 14) y=(at + 33) { (short(&target.name)) }
        text.soft x=(TARGETS + 14) y=(at + 51) { (target.is) " over " (target.link) }
    }
}

/// Draws switches in a row, their links as arcs below, and the tester's wires from above.
fn switches(at: usize, target: &TargetStatus, network: &NetworkWiring) -> Markup {
    let count = network.switches.len().max(1);
    let span = (WIDTH - TARGETS + 60) / count;
    let middle = |switch: usize| TARGETS - 60 + span * switch.min(count - 1) + span / 2;
    let letters = (span / 8).max(4);
    let name = |name: &str| name.chars().take(letters).collect::<String>();
    let (high, low) = (at + 62, at + 96);
    html! {
        text x=(TARGETS - 50) y=(at + 18) { (short(&target.name)) tspan.soft { "  over " (target.link) } }
        @for (port, (switch, _)) in network.instrument.iter().enumerate() {
            @let y = at + 34 + 14 * port.min(1);
            path.wire d=(format!("M{INSTRUMENT} {y} H{} V{high}", middle(*switch) + 6 * port)) {}
            text.soft x=(INSTRUMENT + 8) y=(y - 3) { "port " (port + 1) " " tspan data-port=(port) {} }
        }
        @for [(one, _), (other, _)] in &network.links {
            @let (from, to) = (middle(*one), middle(*other));
            path.wire d=(format!("M{from} {low} C{from} {0} {to} {0} {to} {low}", low + 34)) {}
        }
        @for (switch, label) in network.switches.iter().enumerate() {
            @let x = middle(switch);
            rect.box x=(x.saturating_sub(span * 2 / 5)) y=(high) width=(span * 4 / 5) height=(low - high) rx="6" {}
            text x=(x) y=(high + 22) text-anchor="middle" { (name(label)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_markup_is_escaped() {
        let mut picture = runner::live::example::picture();
        picture.begun.targets[0].name = "<script>x</script>".into();
        let network = NetworkWiring {
            switches: vec!["first (switch)".into(), "second (ovs)".into()],
            links: vec![[(0, 2), (1, 1)]],
            instrument: vec![(0, 1), (9_999, 2)],
        };
        picture.begun.targets[1].network = Some(network);
        let text = svg(&picture).into_string();
        assert!(!text.contains("<script>") && text.contains("&lt;script&gt;"), "{text}");
        assert!(text.contains("first (switch)") && text.contains("data-port=\"1\""), "{text}");
    }

    #[test]
    fn a_run_without_targets_and_a_network_without_switches_are_drawn() {
        let mut picture = RunState::default();
        assert!(svg(&picture).into_string().contains("tester"));
        let network = Some(NetworkWiring { instrument: vec![(0, 1)], ..NetworkWiring::default() });
        picture.begun.targets = vec![TargetStatus { network, ..TargetStatus::default() }];
        assert!(svg(&picture).into_string().contains("port 1"));
    }
}
