//! Places the names of few curves next to them.
//!
//! A name is right-aligned above or below a point of its curve, preferably the last one. Invariant:
//! a name covers no curve, no interval and no other name; a curve without such a place has its name
//! in the legend only.

use super::Series;
use super::draw::{DENSE_POINTS, Frame, LEFT, LETTER, PLOT_HEIGHT, RIGHT, WIDTH};
use super::marks::MARKER;

/// Number of curves up to which each has its name.
const NAMED_CURVES: usize = 3;
/// Height of a name above its baseline, and below it.
const RISE: f64 = 12.0;
const FALL: f64 = 4.0;
/// Distance of a name from the lines and marks of its curve.
const APART: f64 = 8.0;

/// A line between two positions.
type Line = [(f64, f64); 2];

/// The place of a name.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Place {
    left: f64,
    right: f64,
    /// Baseline of the letters.
    base: f64,
}

impl Place {
    fn top(self) -> f64 {
        self.base - RISE
    }

    fn bottom(self) -> f64 {
        self.base + FALL
    }

    fn is_inside(self, frame: &Frame) -> bool {
        let is_high = self.top() < frame.top || self.bottom() > frame.top + PLOT_HEIGHT;
        self.left >= LEFT && self.right <= WIDTH - RIGHT && !is_high
    }

    fn overlaps(self, other: Place) -> bool {
        let across = self.left < other.right && other.left < self.right;
        across && self.top() < other.bottom() && other.top() < self.bottom()
    }

    /// Whether a line crosses it (Liang and Barsky).
    fn is_crossed(self, [from, to]: Line) -> bool {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let (mut first, mut last) = (0.0f64, 1.0f64);
        for (step, room) in [
            (-dx, from.0 - self.left),
            (dx, self.right - from.0),
            (-dy, from.1 - self.top()),
            (dy, self.bottom() - from.1),
        ] {
            if step == 0.0 {
                if room < 0.0 {
                    return false;
                }
                continue;
            }
            let at = room / step;
            if step < 0.0 { first = first.max(at) } else { last = last.min(at) }
        }
        first <= last
    }
}

impl Frame {
    /// The right end of each curve's name and its baseline; none for many curves, or if there is no
    /// free place.
    pub(super) fn names(&self, drawn: &[&Series]) -> Vec<Option<(f64, f64)>> {
        if drawn.len() > NAMED_CURVES {
            return vec![None; drawn.len()];
        }
        let lines: Vec<Vec<Line>> = drawn.iter().map(|one| self.lines(one)).collect();
        let mut taken: Vec<Place> = Vec::new();
        let name = |(index, one): (usize, &&Series)| {
            let is_free = |place: &Place| {
                let is_crossed = lines.iter().flatten().any(|line| place.is_crossed(*line));
                place.is_inside(self) && !is_crossed && !taken.iter().any(|it| it.overlaps(*place))
            };
            let found = self.places(one, &lines[index]).into_iter().find(is_free)?;
            taken.push(found);
            Some((found.right, found.base))
        };
        drawn.iter().enumerate().map(name).collect()
    }

    /// The lines of a curve with its intervals and markers.
    fn lines(&self, series: &Series) -> Vec<Line> {
        let points = self.points(series);
        let at = |x: f64, y: f64| (self.x(x), self.y(y));
        let joined = points.windows(2).map(|pair| [0, 1].map(|end| at(pair[end].x, pair[end].y)));
        let upright = points.iter().map(|point| {
            let ends = [point.range, point.interval].into_iter().flatten();
            let ends =
                ends.fold((point.y, point.y), |(low, high), it| (low.min(it.0), high.max(it.1)));
            let [(x, low), (_, high)] = [at(point.x, ends.0), at(point.x, ends.1)];
            [(x, low + MARKER), (x, high - MARKER)]
        });
        let wide = points.iter().map(|point| {
            let (x, y) = at(point.x, point.y);
            [(x - MARKER, y), (x + MARKER, y)]
        });
        joined.chain(upright).chain(wide).collect()
    }

    /// Possible places of a curve's name, best first.
    fn places(&self, series: &Series, own: &[Line]) -> Vec<Place> {
        let points = self.points(series);
        if points.len() > DENSE_POINTS {
            return Vec::new();
        }
        let width = LETTER * series.name.chars().count() as f64;
        let mut found = Vec::new();
        for (index, point) in points.iter().enumerate().rev() {
            let x = self.x(point.x);
            let is_last = index + 1 == points.len();
            let right = if is_last { x - APART } else { x + width / 2.0 };
            let left = right - width;
            // The heights of its own curve within the width of the name.
            let near = own.iter().filter(|[a, b]| a.0.max(b.0) > left && a.0.min(b.0) < right);
            let clipped = |[a, b]: &Line| {
                let height = |x: f64| match b.0 == a.0 {
                    true => a.1,
                    false => a.1 + (x - a.0) / (b.0 - a.0) * (b.1 - a.1),
                };
                match b.0 == a.0 {
                    true => [a.1, b.1],
                    false => [height(a.0.max(left)), height(b.0.min(right))],
                }
            };
            let heights: Vec<f64> = near.flat_map(clipped).chain([self.y(point.y)]).collect();
            let above = heights.iter().copied().fold(f64::INFINITY, f64::min);
            let below = heights.iter().copied().fold(0.0, f64::max);
            let bases = [above - FALL - APART / 2.0, below + RISE + APART / 2.0];
            found.extend(bases.map(|base| Place { left, right, base }));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Axis, AxisKind, Figure, FigurePoint, Style};

    fn series(name: &str, heights: &[f64]) -> Series {
        let point = |(x, y): (f64, &f64)| FigurePoint {
            x,
            y: *y,
            interval: Some((y * 0.9, y * 1.1)),
            ..FigurePoint::default()
        };
        let points = (0..).map(f64::from).zip(heights).map(point).collect();
        Series { name: name.into(), style: Style::REFERENCE, points, choice: None }
    }

    fn figure(series: Vec<Series>) -> Figure {
        let axis = Axis { label: "a".into(), kind: AxisKind::Linear };
        Figure { x: axis.clone(), y: axis, series, ..Figure::default() }
    }

    #[test]
    fn names_cover_no_curve_and_no_other_name() {
        for heights in [
            [[1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0], [2.5, 2.5, 2.5, 2.5]],
            // Curves that end together, as with a plain and a complex program.
            [[10.0, 10.0, 10.5, 10.2], [10.1, 10.4, 10.0, 10.0], [9.9, 9.0, 9.8, 10.1]],
            [[0.0, 0.0, 0.0, 9.0], [9.0, 9.0, 9.0, 0.0], [0.0, 9.0, 0.0, 9.0]],
        ] {
            let names = ["planimeter bridge", "progfe:bridge", "progfe:bridge-complex"];
            let all = names.iter().zip(&heights).map(|(name, it)| series(name, it)).collect();
            let figure = figure(all);
            let frame = Frame::new(&figure, 60.0);
            let drawn: Vec<&Series> = figure.series.iter().collect();
            let places = frame.names(&drawn);
            let place = |(one, end): (&&Series, &Option<(f64, f64)>)| {
                let (right, base) = (*end)?;
                let width = LETTER * one.name.chars().count() as f64;
                Some(Place { left: right - width, right, base })
            };
            let found: Vec<Place> = drawn.iter().zip(&places).filter_map(place).collect();
            for (index, one) in found.iter().enumerate() {
                assert!(one.is_inside(&frame), "{one:?}");
                assert!(!found[..index].iter().any(|other| other.overlaps(*one)), "{found:?}");
                for line in drawn.iter().flat_map(|one| frame.lines(one)) {
                    assert!(!one.is_crossed(line), "{one:?} {line:?}");
                }
            }
        }
    }

    #[test]
    fn curves_with_room_have_their_names_at_their_ends() {
        let figure = figure(vec![series("low", &[1.0, 1.0]), series("high", &[9.0, 9.0])]);
        let frame = Frame::new(&figure, 60.0);
        let drawn: Vec<&Series> = figure.series.iter().collect();
        for name in frame.names(&drawn) {
            assert!(name.is_some_and(|(right, _)| right > WIDTH / 2.0), "{name:?}");
        }
    }

    #[test]
    fn a_line_crosses_a_place_if_any_of_its_points_is_inside() {
        let place = Place { left: 0.0, right: 10.0, base: RISE };
        for (line, is) in [
            ([(-5.0, 5.0), (15.0, 5.0)], true),
            ([(2.0, 2.0), (3.0, 3.0)], true),
            ([(-5.0, 0.0), (5.0, 20.0)], true),
            ([(-5.0, 20.0), (15.0, 20.0)], false),
            ([(11.0, 0.0), (11.0, 10.0)], false),
            ([(5.0, -3.0), (5.0, -1.0)], false),
        ] {
            assert_eq!(place.is_crossed(line), is, "{line:?}");
        }
    }
}
