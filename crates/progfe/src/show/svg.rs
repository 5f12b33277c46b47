//! SVG drawing of a program's graph: a box for each block with a row for each output, and a line
//! for each link.
//!
//! - The text of a link is in the row where it starts, so there is no text between lines.
//! - Each port appears twice: at the left where it receives and at the right where it sends.
//! - Links without frames are grey. The width of other links increases with their traffic.
//! - The header of a block is darker for a higher cost.

use std::fmt::Write;

use super::layers::{Line, Size, layout};
use crate::program::{Program, base_id};
use crate::xml::escape;

/// Measured values of a running program, by index. Unknown values are omitted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Notes {
    /// Lines below the title.
    pub lines: Vec<String>,
    /// Values of each link.
    pub links: Vec<LinkNote>,
    /// Values of each block.
    pub blocks: Vec<BlockNote>,
}

/// Values of a link.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LinkNote {
    /// Short text, such as a rate.
    pub text: String,
    /// Traffic relative to the busiest link, 0 to 1.
    pub share: f64,
}

/// Values of a block.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BlockNote {
    /// Short text, such as the cost per frame.
    pub text: String,
    /// Cost relative to the most expensive block, 0 to 1.
    pub share: f64,
    /// Drops of the block, one per row.
    pub drops: Vec<String>,
}

const FONT: &str = "system-ui, 'DejaVu Sans', Helvetica, Arial, sans-serif";
const INK: &str = "#222222";
const FAINT: &str = "#666666";
const BUSY: &str = "#0072b2";
const IDLE: &str = "#b4b4b4";
const LOST: &str = "#d55e00";
/// Width of a character in the widest of the fonts, normal and bold.
const LETTER: f64 = 6.7;
const LETTER_BOLD: f64 = 7.9;
const HEAD: f64 = 34.0;
const ROW: f64 = 15.0;
const EDGE: f64 = 8.0;
const MARGIN: f64 = 20.0;
const TITLE: f64 = 30.0;
const NOTE: f64 = 16.0;

/// A box: a block, or the sending side of a port.
struct Drawn {
    name: String,
    class: String,
    cost: String,
    share: f64,
    /// Left text, right text, and whether the row describes drops.
    rows: Vec<(String, String, bool)>,
    size: Size,
}

impl Drawn {
    fn new(name: String, class: String, cost: String, share: f64) -> Drawn {
        let size = Size { width: 0.0, height: 0.0 };
        Drawn { name, class, cost, share, rows: Vec::new(), size }
    }

    fn measure(&mut self) {
        let letters = |text: &str| text.chars().count() as f64;
        let head = letters(&self.name) * LETTER_BOLD;
        let below = (letters(&self.class) + letters(&self.cost) + 2.0) * LETTER;
        let row = |(left, right, _): &(String, String, bool)| {
            let between = if right.is_empty() { 0.0 } else { 2.0 };
            (letters(left) + letters(right) + between) * LETTER
        };
        let width = self.rows.iter().map(row).fold(head.max(below), f64::max);
        let rows = self.rows.len() as f64 * ROW;
        let foot = if self.rows.is_empty() { 0.0 } else { 5.0 };
        self.size = Size { width: width + 2.0 * EDGE, height: HEAD + rows + foot };
    }

    fn below_top(&self, row: usize) -> f64 {
        HEAD + (row as f64 + 0.5) * ROW
    }
}

/// Draws the graph.
pub fn svg(program: &Program, notes: &Notes) -> String {
    let mut boxes: Vec<Drawn> =
        (0..program.instances.len()).map(|at| head(program, at, notes)).collect();
    let mut lines = Vec::new();
    let mut order: Vec<usize> = (0..program.links.len()).collect();
    order.sort_by_key(|at| (program.links[*at].from.port, program.links[*at].from.index));
    let mut sends: Vec<Option<usize>> = vec![None; program.instances.len()];
    for at in order {
        let link = &program.links[at];
        let note = notes.links.get(at);
        let name = program.output_name(link.from);
        let name = name.split_once('.').map_or("", |(_, port)| port).to_owned();
        let text = note.map(|note| note.text.clone()).unwrap_or_default();
        let from = &mut boxes[link.from.instance];
        from.rows.push((name, text, false));
        let row = from.rows.len() - 1;
        let below_top = from.below_top(row);
        let to = link.to.instance;
        let to = match program.class_of(to).is_a(base_id::PHY) {
            true => *sends[to].get_or_insert_with(|| {
                let name = boxes[to].name.clone();
                boxes.push(Drawn::new(name, "sends".to_owned(), String::new(), 0.0));
                boxes.len() - 1
            }),
            false => to,
        };
        lines.push((Line { from: link.from.instance, below_top, to }, note));
    }
    for (drawn, note) in boxes.iter_mut().zip(&notes.blocks) {
        drawn.rows.extend(note.drops.iter().map(|text| (text.clone(), String::new(), true)));
    }
    boxes.iter_mut().for_each(Drawn::measure);
    let sizes: Vec<Size> = boxes.iter().map(|it| it.size).collect();
    let ends: Vec<Line> = lines.iter().map(|(line, _)| *line).collect();
    let layout = layout(&sizes, &ends);
    let longest = notes.lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let width = layout.width.max(longest as f64 * LETTER) + 2.0 * MARGIN;
    let above = MARGIN + TITLE + notes.lines.len() as f64 * NOTE;
    let mut text = opening(program, notes, (width, above + layout.height + MARGIN));
    let _ = writeln!(text, "<g transform=\"translate({MARGIN} {above:.1})\">");
    for (points, (_, note)) in layout.lines.iter().zip(&lines) {
        curve(&mut text, points, *note);
    }
    for (drawn, place) in boxes.iter().zip(&layout.boxes) {
        draw(&mut text, drawn, *place);
    }
    text.push_str("</g>\n</svg>\n");
    text
}

fn head(program: &Program, at: usize, notes: &Notes) -> Drawn {
    let note = notes.blocks.get(at);
    let cost = note.map(|note| note.text.clone()).unwrap_or_default();
    let name = program.instances[at].name.clone();
    let class = program.short_class(at).to_owned();
    Drawn::new(name, class, cost, note.map_or(0.0, |note| note.share))
}

fn opening(program: &Program, notes: &Notes, (width, height): (f64, f64)) -> String {
    let name = escape(&program.name);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" font-family=\"{FONT}\" font-size=\"11\">\n\
         <title>{name}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{MARGIN}\" y=\"{:.0}\" font-size=\"16\" font-weight=\"600\" fill=\"{INK}\">{name}, revision {}</text>\n",
        MARGIN + 12.0,
        program.revision,
    );
    for (at, line) in notes.lines.iter().enumerate() {
        let y = MARGIN + TITLE + at as f64 * NOTE;
        let _ = writeln!(
            text,
            "<text x=\"{MARGIN}\" y=\"{y:.0}\" fill=\"{FAINT}\">{}</text>",
            escape(line)
        );
    }
    text
}

/// Draws a curve through points, horizontal where it passes a layer.
fn curve(text: &mut String, points: &[(f64, f64)], note: Option<&LinkNote>) {
    let share = note.map_or(0.0, |note| note.share.clamp(0.0, 1.0));
    let (colour, width) = match note {
        None => (FAINT, 1.2),
        Some(_) if share > 0.0 => (BUSY, 1.2 + 2.8 * share),
        Some(_) => (IDLE, 1.0),
    };
    let (x, y) = points[0];
    let mut path = format!("M{x:.1} {y:.1}");
    for (at, pair) in points.windows(2).enumerate() {
        let [(x0, y0), (x1, y1)] = [pair[0], pair[1]];
        if points.len() > 2 && at % 2 == 1 {
            let _ = write!(path, "L{x1:.1} {y1:.1}");
        } else if x1 > x0 {
            let by = (x1 - x0) * 0.5;
            let _ = write!(path, "C{:.1} {y0:.1} {:.1} {y1:.1} {x1:.1} {y1:.1}", x0 + by, x1 - by);
        } else {
            // A line that leads back goes around: right, bottom, left.
            let _ = write!(
                path,
                "C{:.1} {:.1} {:.1} {:.1} {x1:.1} {y1:.1}",
                x0 + 90.0,
                y0 + 120.0,
                x1 - 90.0,
                y1 + 120.0
            );
        }
    }
    let (x, y) = points[points.len() - 1];
    let _ = writeln!(
        text,
        "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width:.1}\"/>\
         <path d=\"M{x:.1} {y:.1}l-7 -3.5v7z\" fill=\"{colour}\"/>"
    );
}

fn draw(text: &mut String, drawn: &Drawn, (x, y): (f64, f64)) {
    let Size { width, height } = drawn.size;
    // From white to the colour of high cost.
    let shade = |full: f64| (255.0 - (255.0 - full) * drawn.share.clamp(0.0, 1.0)) as u8;
    let fill = format!("#{:02x}{:02x}{:02x}", shade(250.0), shade(200.0), shade(120.0));
    let _ = writeln!(
        text,
        "<g transform=\"translate({x:.1} {y:.1})\"><rect width=\"{width:.1}\" height=\"{height:.1}\" rx=\"4\" fill=\"#ffffff\"/>\
         <path d=\"M0 {HEAD}V4a4 4 0 0 1 4 -4H{:.1}a4 4 0 0 1 4 4V{HEAD}z\" fill=\"{fill}\"/>\
         <rect width=\"{width:.1}\" height=\"{height:.1}\" rx=\"4\" fill=\"none\" stroke=\"{INK}\"/>\
         <text x=\"{EDGE}\" y=\"14\" font-size=\"12\" font-weight=\"600\" fill=\"{INK}\">{}</text>\
         <text x=\"{EDGE}\" y=\"28\" fill=\"{FAINT}\">{}</text>\
         <text x=\"{:.1}\" y=\"28\" text-anchor=\"end\" fill=\"{INK}\">{}</text>",
        width - 8.0,
        escape(&drawn.name),
        escape(&drawn.class),
        width - EDGE,
        escape(&drawn.cost),
    );
    for (row, (left, right, is_lost)) in drawn.rows.iter().enumerate() {
        let y = drawn.below_top(row) + 4.0;
        let ink = if *is_lost { LOST } else { INK };
        let _ = writeln!(
            text,
            "<text x=\"{EDGE}\" y=\"{y:.1}\" fill=\"{ink}\">{}</text>\
             <text x=\"{:.1}\" y=\"{y:.1}\" text-anchor=\"end\" fill=\"{BUSY}\">{}</text>",
            escape(left),
            width - EDGE,
            escape(right),
        );
    }
    text.push_str("</g>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::document::no_files;
    use crate::xml::Source;

    #[test]
    fn every_block_output_and_loss_is_in_the_figure() {
        for text in [
            include_str!("../../../../examples/progfe/bridge.fe.xml"),
            include_str!("../../../../examples/progfe/bridge-complex.fe.xml"),
        ] {
            let (program, _) = Program::load(&Source::new("a.fe.xml", text), &no_files);
            let mut program = program.unwrap();
            program.name = "<&\">".to_owned();
            let links = vec![LinkNote { text: "5/s".to_owned(), share: 0.5 }; program.links.len()];
            let mut blocks = vec![BlockNote::default(); program.instances.len()];
            blocks[0].drops.push("disabled: 3".to_owned());
            let notes = Notes { lines: vec!["one second".to_owned()], links, blocks };
            let picture = svg(&program, &notes);
            assert_eq!(picture.matches(">5/s<").count(), program.links.len());
            let has = |what: &str| assert!(picture.contains(what), "{what}: {picture}");
            program.instances.iter().for_each(|it| has(&format!(">{}<", it.name)));
            ["disabled: 3", "one second", "&lt;&amp;"].iter().for_each(|what| has(what));
            assert!(!picture.contains("NaN") && !picture.contains("inf"));
        }
    }
}
