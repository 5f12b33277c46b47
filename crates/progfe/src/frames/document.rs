//! Reader and writer for definitions in XML.
//!
//! ```xml
//! <frames start="Eth">
//!   <frame name="Opt" total="len">
//!     <f n="ver" b="4" is="1"/><f n="more" b="1"/><f n="rsvd" b="3"/><f n="kind" b="8" set="7"/><f n="len" b="16"/>
//!     <f n="mark" b="32" when="more"/>
//!     <f n="sum" b="16" checksum="inet-all"/>
//!     <repeat n="tlv" bytes="len - 8" max="40"><f n="t" b="8"/><f n="l" b="8"/><f n="v" bytes="l"/></repeat>
//!     <next on="kind" unless="more"><case v="1..3" frame="Eth"/><default frame="Rest"/></next>
//!   </frame>
//!   <extend frame="Eth"><case v="0x88b5" frame="Opt"/></extend>
//! </frames>
//! ```
//!
//! - `f` has the width `b` (bits), `bytes` (an expression over earlier fields) or `rest="true"`.
//!   `is` is a constant, `set` the initial value in a pushed header. `when` makes the field
//!   optional, and `pseudo="true"` adds it to pseudo-headers.
//! - `next` tests a field (`on`), the bits after the header (`peek`), or nothing (`frame`). `like`
//!   takes the cases of another frame's first `next`.
//! - `extend` adds cases to a frame that another document defines.
//!
//! Documents of a set are read in order. Names are resolved after all documents.

use roxmltree::Node;

use super::{
    CASES_MAX, Case, ETHERNET, FORMATS_MAX, Format, FormatId, FrameSet, ITEMS_MAX, Item, Next, On,
    check,
};
use crate::diagnostic::{Code, Place, Problems};
use crate::literal;
use crate::xml::{Reader, Source};

mod fields;
mod write;

use fields::{expression, field, is_name, repeat};

/// XML namespace of frame definitions and programs.
pub const NAMESPACE: &str = "urn:progfe:fe:1";

/// A set that is being read.
#[derive(Debug, Default)]
pub struct Draft {
    formats: Vec<Format>,
    follows: Vec<Follow>,
    extensions: Vec<(String, Place, Vec<Follow>)>,
    start: Option<(String, Place)>,
}

/// A name that some values lead to.
#[derive(Debug)]
struct Follow {
    format: usize,
    next: usize,
    values: Option<(u128, u128)>,
    kind: Kind,
    frame: String,
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Case,
    Default,
    Like,
}

impl FrameSet {
    /// Reads documents with the root `<frames>` as one set.
    pub fn read(sources: &[Source<'_>]) -> (FrameSet, Problems) {
        let mut problems = Problems::default();
        let mut draft = Draft::default();
        for source in sources {
            match source.parse() {
                Err(problem) => problems.push(problem),
                Ok(document) => {
                    let mut reader = Reader::new(source);
                    let root = document.root_element();
                    if root.tag_name().name() == "frames" {
                        draft.read(&mut reader, root);
                    } else {
                        let what = format!("<{}> is not <frames>", root.tag_name().name());
                        reader.wrong(Code::XmlElement, root, "", what, "");
                    }
                    problems.extend(reader.problems);
                }
            }
        }
        let set = draft.finish(&mut problems);
        (set, problems)
    }

    /// Returns the built-in definitions.
    pub fn ethernet() -> FrameSet {
        let (set, problems) = FrameSet::read(&[Source::new("ethernet.frames.xml", ETHERNET)]);
        debug_assert!(problems.is_empty(), "{problems}");
        set
    }
}

impl Draft {
    /// Returns true if nothing was read.
    pub fn is_empty(&self) -> bool {
        self.formats.is_empty()
    }

    /// Reads a `<frames>` element.
    pub fn read(&mut self, reader: &mut Reader<'_, '_>, node: Node<'_, '_>) {
        reader.only(node, &["start", "file"]);
        if let Some(name) = node.attribute("start") {
            self.start = Some((name.to_owned(), reader.place_of(node, "start")));
        }
        for child in reader.children(node) {
            match child.tag_name().name() {
                "frame" => self.frame(reader, child),
                "extend" => self.extend(reader, child),
                _ => reader.unknown(child, "use <frame> or <extend>"),
            }
        }
    }

    fn frame(&mut self, reader: &mut Reader<'_, '_>, node: Node<'_, '_>) {
        reader.only(node, &["name", "total", "ends"]);
        let Some(name) = reader.required(node, "name") else { return };
        let place = reader.place(node);
        if self.formats.len() == FORMATS_MAX {
            let what = format!("too many frames: at most {FORMATS_MAX}");
            return reader.wrong(Code::XmlLimit, node, name, what, "");
        }
        if !is_name(name) {
            let what = format!("invalid name \"{name}\"");
            reader.wrong(
                Code::FrameName,
                node,
                name,
                what,
                "use letters, digits and _, but no keyword of conditions",
            );
        }
        if let Some(other) = self.formats.iter().find(|format| format.name == name) {
            let what = format!("the frame \"{name}\" is already defined at {}", other.place);
            reader.wrong(Code::FrameName, node, name, what, "use <extend> to add cases to a frame");
            return;
        }
        let mut items: Vec<Item> = Vec::new();
        let mut nexts = Vec::new();
        for child in reader.children(node) {
            if items.len() == ITEMS_MAX {
                let what = format!("too many fields: at most {ITEMS_MAX}");
                reader.wrong(Code::XmlLimit, child, name, what, "");
                break;
            }
            match child.tag_name().name() {
                "f" => items.extend(field(reader, child, &items, None).map(Item::Field)),
                "repeat" => items.extend(repeat(reader, child, &items).map(Item::Repeat)),
                "next" => nexts.push(child),
                _ => reader.unknown(child, "use <f>, <repeat> or <next>"),
            }
        }
        let format = self.formats.len();
        let [total, ends] =
            ["total", "ends"].map(|attribute| expression(reader, node, attribute, &items, None));
        let mut next = Vec::new();
        for node in nexts {
            let found = self.next(reader, node, &items, (format, next.len()));
            next.extend(found);
        }
        self.formats.push(Format { name: name.to_owned(), items, total, ends, next, place });
    }

    /// Reads a `<next>`. Its names are resolved at the end.
    fn next(
        &mut self,
        reader: &mut Reader<'_, '_>,
        node: Node<'_, '_>,
        items: &[Item],
        (format, next): (usize, usize),
    ) -> Option<Next> {
        reader.only(node, &["on", "peek", "frame", "like", "unless"]);
        let unless = expression(reader, node, "unless", items, None);
        let given: Vec<&str> =
            ["on", "peek", "frame"].into_iter().filter(|name| node.has_attribute(*name)).collect();
        let on = match given[..] {
            ["on"] => {
                let name = node.attribute("on").unwrap_or_default();
                let at = items.iter().position(|item| {
                    item.name() == name && item.field().is_some_and(|f| f.number_bits().is_some())
                });
                let Some(at) = at else {
                    let what = format!("no field \"{name}\" of at most 128 bits");
                    let place = reader.place_of(node, "on");
                    reader.problems.add(Code::FrameUnknown, &place, name, what, "");
                    return None;
                };
                On::Field(at as u16)
            }
            ["peek"] => match reader.number(node, "peek")? {
                bits @ 1..=64 => On::Peek(bits as u8),
                _ => {
                    reader.wrong_value(
                        node,
                        "peek",
                        "peek is not between 1 and 64 bits".into(),
                        "",
                    );
                    return None;
                }
            },
            ["frame"] => {
                let frame = node.attribute("frame").unwrap_or_default().to_owned();
                let place = reader.place_of(node, "frame");
                let kind = Kind::Default;
                self.follows.push(Follow { format, next, values: None, kind, frame, place });
                On::Always
            }
            _ => {
                let what = "<next> needs one of on, peek and frame".to_owned();
                reader.wrong(Code::XmlAttribute, node, "", what, "");
                return None;
            }
        };
        if let Some(frame) = node.attribute("like") {
            let (frame, place) = (frame.to_owned(), reader.place_of(node, "like"));
            self.follows.push(Follow {
                format,
                next,
                values: None,
                kind: Kind::Like,
                frame,
                place,
            });
        }
        let found = follows(reader, node, (format, next));
        self.follows.extend(found);
        let place = reader.place(node);
        Some(Next { on, unless, cases: Vec::new(), default: None, like: None, place })
    }

    fn extend(&mut self, reader: &mut Reader<'_, '_>, node: Node<'_, '_>) {
        reader.only(node, &["frame"]);
        let Some(frame) = reader.required(node, "frame") else { return };
        let found = follows(reader, node, (0, 0));
        self.extensions.push((frame.to_owned(), reader.place_of(node, "frame"), found));
    }

    /// Resolves names, checks everything and returns the set.
    pub fn finish(mut self, problems: &mut Problems) -> FrameSet {
        let find = |formats: &[Format], name: &str| formats.iter().position(|f| f.name == name);
        for (name, place, mut follows) in std::mem::take(&mut self.extensions) {
            match find(&self.formats, &name).filter(|at| !self.formats[*at].next.is_empty()) {
                Some(at) => {
                    follows.iter_mut().for_each(|follow| follow.format = at);
                    self.follows.append(&mut follows);
                }
                None => {
                    let what = format!("no frame \"{name}\" with a <next> to extend");
                    problems.add(Code::FrameUnknown, &place, &name, what, "");
                }
            }
        }
        let mut likes = Vec::new();
        for follow in std::mem::take(&mut self.follows) {
            let Some(target) = find(&self.formats, &follow.frame) else {
                let what = format!("no frame \"{}\"", follow.frame);
                let path = &self.formats[follow.format].name;
                problems.add(
                    Code::FrameUnknown,
                    &follow.place,
                    path,
                    what,
                    "define it in <frames>",
                );
                continue;
            };
            // An invalid `next` already has a problem.
            let Some(next) = self.formats[follow.format].next.get_mut(follow.next) else {
                continue;
            };
            let format = FormatId(target as u16);
            match (follow.kind, follow.values) {
                (Kind::Case, Some((low, high))) => {
                    next.cases.push(Case { low, high, format, own: true });
                }
                (Kind::Like, _) => {
                    next.like = Some(format);
                    likes.push((follow.format, follow.next, target, follow.place));
                }
                _ => next.default = Some(format),
            }
        }
        self.take_over(&likes, problems);
        let start = match self.start.take() {
            None => (!self.formats.is_empty()).then_some(FormatId(0)),
            Some((name, place)) => {
                let found = find(&self.formats, &name);
                if found.is_none() {
                    let what = format!("no frame \"{name}\"");
                    problems.add(Code::FrameUnknown, &place, "", what, "");
                }
                found.map(|at| FormatId(at as u16))
            }
        };
        let set = FrameSet::of(self.formats, start);
        check::check(&set, problems);
        set
    }

    /// Gives every `like` the cases that the other format itself defines.
    fn take_over(&mut self, likes: &[(usize, usize, usize, Place)], problems: &mut Problems) {
        let mut cases =
            self.formats.iter().flat_map(|f| &f.next).map(|n| n.cases.len()).sum::<usize>();
        for (format, next, target, place) in likes {
            let path = self.formats[*format].name.clone();
            let source =
                self.formats[*target].next.first().filter(|_| (target, &0) != (format, next));
            let Some(source) = source.filter(|source| source.like.is_none()) else {
                let other = &self.formats[*target].name;
                let what = format!("\"{other}\" defines no cases itself");
                problems.add(
                    Code::FrameNext,
                    place,
                    path,
                    what,
                    "name the frame that defines the cases",
                );
                continue;
            };
            let taken: Vec<Case> = source.cases.iter().filter(|c| c.own).copied().collect();
            let default = source.default;
            cases += taken.len();
            if cases > CASES_MAX {
                let what = format!("too many cases: at most {CASES_MAX} in total");
                return problems.add(Code::XmlLimit, place, path, what, "");
            }
            let Some(next) = self.formats[*format].next.get_mut(*next) else { continue };
            next.cases.extend(taken.into_iter().map(|case| Case { own: false, ..case }));
            next.default = next.default.or(default);
        }
        for next in self.formats.iter_mut().flat_map(|format| &mut format.next) {
            next.cases.sort_by_key(|case| (case.low, case.high));
        }
    }
}

/// Reads the cases and the default in an element.
fn follows(reader: &mut Reader<'_, '_>, node: Node<'_, '_>, at: (usize, usize)) -> Vec<Follow> {
    let mut found = Vec::new();
    for child in reader.children(node) {
        let kind = match child.tag_name().name() {
            "case" => Kind::Case,
            "default" => Kind::Default,
            _ => {
                reader.unknown(child, "use <case> or <default>");
                continue;
            }
        };
        let known: &[&str] = if kind == Kind::Case { &["v", "frame"] } else { &["frame"] };
        reader.only(child, known);
        let values = match kind {
            Kind::Case => {
                let Some(text) = reader.required(child, "v") else { continue };
                let values = span(text);
                if values.is_none() {
                    let what = format!("\"{text}\" is neither a value nor a range");
                    reader.wrong_value(child, "v", what, "write it like 17, 0x8100 or 0..1500");
                    continue;
                }
                values
            }
            _ => None,
        };
        let Some(frame) = reader.required(child, "frame") else { continue };
        let (frame, place) = (frame.to_owned(), reader.place(child));
        found.push(Follow { format: at.0, next: at.1, values, kind, frame, place });
        if found.len() > CASES_MAX {
            reader.wrong(
                Code::XmlLimit,
                child,
                "",
                format!("too many cases: at most {CASES_MAX}"),
                "",
            );
            break;
        }
    }
    found
}

/// Parses a value, or a range with `..`.
fn span(text: &str) -> Option<(u128, u128)> {
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    let (low, high) = (literal::read(low.trim())?.value, literal::read(high.trim())?.value);
    (low <= high).then_some((low, high))
}
