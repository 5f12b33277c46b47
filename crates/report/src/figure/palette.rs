//! Styles of targets: colour and marker by technology, line and fill by family.
//!
//! Source: the colours of Okabe and Ito. With the markers they are distinguishable under common
//! colour blindness and in greyscale. Invariant: the targets of a record have different styles as
//! long as there are enough, and a target has the same style in all figures of its record.

use record::{Target, Technology};

/// Colour of offered loads and other references.
pub(super) const REFERENCE: &str = "#555555";

/// Colours with their fixed markers: blue, vermilion, green, purple, sky blue, dark yellow, black.
const LOOKS: [(&str, Marker); 7] = [
    ("#0072b2", Marker::Circle),
    ("#d55e00", Marker::Square),
    ("#009e73", Marker::Triangle),
    ("#aa4499", Marker::Diamond),
    ("#2a9fd6", Marker::Down),
    ("#b58900", Marker::Cross),
    ("#000000", Marker::Plus),
];

/// Style of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Colour in HTML notation.
    pub colour: &'static str,
    /// Shape of its points.
    pub marker: Marker,
    /// Whether its points are filled.
    pub filled: bool,
    /// Dash pattern of its line in pixels; empty for a solid line.
    pub dashes: &'static str,
}

impl Style {
    /// Style of references: dashed, grey, without markers.
    pub const REFERENCE: Style =
        Style { colour: REFERENCE, marker: Marker::None, filled: false, dashes: "7 5" };

    /// Style of a target's curve number `place`. The first has the target's style; others have
    /// their own markers and dashes. Colour and fill still identify the target.
    pub(super) fn variant(self, place: usize) -> Style {
        if place == 0 {
            return self;
        }
        let own = LOOKS.iter().position(|(_, marker)| *marker == self.marker).unwrap_or(0);
        let (_, marker) = LOOKS[(own + place) % LOOKS.len()];
        let dashes = if self.filled { ["9 4", "9 3 2 3"] } else { ["1 6", "1 4 8 4"] };
        Style { marker, dashes: dashes[(place - 1) % dashes.len()], ..self }
    }
}

/// Shape of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    /// No point, only the line.
    None,
    /// A circle.
    Circle,
    /// A square.
    Square,
    /// A triangle on its base.
    Triangle,
    /// A square on its corner.
    Diamond,
    /// A triangle on its tip.
    Down,
    /// Two diagonal strokes.
    Cross,
    /// Two strokes.
    Plus,
}

/// The style of each target, in order.
pub fn styles(targets: &[Target]) -> Vec<Style> {
    let mut taken: Vec<(usize, bool)> = Vec::new();
    for target in targets {
        let ours = target.family == "planimeter";
        let usual = match target.technology {
            Technology::Openflow => 0,
            Technology::Bridging => 1,
            Technology::Routing => 2,
            Technology::Programmable => 3,
            Technology::Tagging => 4,
            Technology::Cable => 6,
        };
        let others = [4, 5, 3, 6, 2, 1, 0];
        let look = std::iter::once(usual)
            .chain(others)
            .find(|&look| !taken.contains(&(look, ours)))
            .unwrap_or(usual);
        taken.push((look, ours));
    }
    let style = |(look, ours): (usize, bool)| {
        let (colour, marker) = LOOKS[look];
        Style { colour, marker, filled: ours, dashes: if ours { "" } else { "2 4" } }
    };
    taken.into_iter().map(style).collect()
}
