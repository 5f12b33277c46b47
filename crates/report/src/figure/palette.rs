//! Styles of targets: one colour and marker for each target, solid lines for ours.
//!
//! Source: the colours of Okabe and Ito with three further ones. With the markers and dashes they
//! are distinguishable under common colour blindness and in greyscale. Invariant: ten targets of a
//! record have different colours and markers, and a target has the same style in all its figures.

use record::{Target, Technology};

/// Colour of offered loads and other references, on a light and on a dark background.
const REFERENCE: Colour = Colour { light: "#555555", dark: "#9aa4ae" };

/// Colours with their fixed markers: blue, vermilion, green, purple, sky blue, dark yellow, olive,
/// violet, wine, black.
const LOOKS: [(Colour, Marker); 10] = [
    (Colour { light: "#0072b2", dark: "#5c95ff" }, Marker::Circle),
    (Colour { light: "#d55e00", dark: "#f0803c" }, Marker::Square),
    (Colour { light: "#009e73", dark: "#1fbf8f" }, Marker::Triangle),
    (Colour { light: "#aa4499", dark: "#cf6fc0" }, Marker::Diamond),
    (Colour { light: "#2a9fd6", dark: "#6fd3f5" }, Marker::Down),
    (Colour { light: "#b58900", dark: "#d9b13b" }, Marker::Cross),
    (Colour { light: "#6b8e23", dark: "#a5c65a" }, Marker::Left),
    (Colour { light: "#7d7fc9", dark: "#a9abf0" }, Marker::Star),
    (Colour { light: "#882255", dark: "#e0709f" }, Marker::Right),
    (Colour { light: "#000000", dark: "#e8ebee" }, Marker::Plus),
];

/// Dashes of targets that are not ours, in their order.
const DASHES: [&str; 5] = ["2 4", "8 4", "8 3 2 3", "4 2", "14 4 2 4"];

/// Dashes of our targets whose colour another one has already.
const REUSED: &str = "18 3";

/// A colour on two backgrounds, in HTML notation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour {
    /// On a light background and on paper.
    pub light: &'static str,
    /// On a dark background.
    pub dark: &'static str,
}

/// Style of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Colour of its lines and points.
    pub colour: Colour,
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

    /// Style of the load of the nominal link: grey and dotted, without markers.
    pub(super) const NOMINAL: Style = Style { dashes: "1 4", ..Style::REFERENCE };

    /// Markers of the values that a study prints, in their order.
    const PRINTED: [Marker; 4] =
        [Marker::Diamond, Marker::Square, Marker::Triangle, Marker::Circle];

    /// Style of printed values: grey, with the hollow marker of their number.
    pub(super) fn printed(place: usize) -> Style {
        Style { marker: Style::PRINTED[place % Style::PRINTED.len()], ..Style::REFERENCE }
    }

    /// Whether it is the style of references or of printed values.
    pub(super) fn is_reference(&self) -> bool {
        self.colour == REFERENCE
    }

    /// Style of a target's curve number `place`. The first has the target's style; others have
    /// their own markers and dashes. The colour still identifies the target.
    pub(super) fn variant(self, place: usize) -> Style {
        if place == 0 {
            return self;
        }
        let own = LOOKS.iter().position(|(_, marker)| *marker == self.marker).unwrap_or(0);
        let (_, marker) = LOOKS[(own + place) % LOOKS.len()];
        let dashes = if self.dashes.is_empty() { ["9 4", "9 3 2 3"] } else { ["1 6", "1 4 8 4"] };
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
    /// A triangle that points to the left.
    Left,
    /// A triangle that points to the right.
    Right,
    /// Two diagonal strokes.
    Cross,
    /// Two strokes.
    Plus,
    /// Four strokes.
    Star,
}

/// The style of each target, in order.
pub fn styles(targets: &[Target]) -> Vec<Style> {
    let mut taken: Vec<usize> = Vec::new();
    let mut foreign = 0;
    let style = |target: &Target| {
        let is_ours = target.family == "planimeter";
        let usual = match (target.technology, is_ours) {
            (Technology::Openflow, true) => 0,
            (Technology::Bridging, true) => 1,
            (Technology::Routing, true) => 2,
            (Technology::Programmable, _) => 3,
            (Technology::Openflow, false) => 4,
            (Technology::Bridging, false) => 5,
            (Technology::Routing, false) => 6,
            (Technology::Tagging, false) => 7,
            (Technology::Tagging, true) => 8,
            (Technology::Cable, _) => 9,
        };
        let uses = |look: &usize| taken.iter().filter(|it| *it == look).count();
        let looks = std::iter::once(usual).chain([8, 7, 3, 6, 9, 5, 1, 2, 4, 0]);
        let look = looks.min_by_key(uses).expect("there are looks");
        // From the eleventh target on, the fill distinguishes targets of one colour.
        let filled = uses(&look) % 2 == 0;
        taken.push(look);
        let dashes = match (is_ours, filled) {
            (false, _) => DASHES[foreign % DASHES.len()],
            (true, true) => "",
            // Dense curves have no markers.
            (true, false) => REUSED,
        };
        foreign += usize::from(!is_ours);
        let (colour, marker) = LOOKS[look];
        Style { colour, marker, filled, dashes }
    };
    targets.iter().map(style).collect()
}
