//! XML documents, bounded before they are read, whose places are known.
//!
//! Size, depth and attributes are counted in one pass over the text before the tree is made, and a
//! document type (where entities would be defined) is refused, so that no document costs more than
//! a small multiple of its size. Lines and columns come from a table that is made once.

use std::sync::Arc;

use roxmltree::{Document, Node, ParsingOptions};

use crate::problem::{Code, Place, Problem, Problems};

/// Bytes of a document.
pub const TEXT_BYTES_MAX: usize = 16 << 20;
/// Elements within each other.
pub const DEPTH_MAX: usize = 32;
/// Attributes of one element.
pub const ATTRIBUTES_MAX: usize = 64;
/// Elements, texts and comments of a document.
pub const NODES_MAX: u32 = 1 << 20;

/// A document's text with its name and the starts of its lines.
#[derive(Debug)]
pub struct Source<'a> {
    /// The name by which places call it.
    pub name: Arc<str>,
    /// All of it.
    pub text: &'a str,
    lines: Vec<usize>,
}

impl<'a> Source<'a> {
    /// A text that was read from what `name` says.
    pub fn new(name: &str, text: &'a str) -> Source<'a> {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Source { name: name.into(), text, lines }
    }

    /// Line and column of a byte.
    pub fn place(&self, at: usize) -> Place {
        let line = self.lines.partition_point(|start| *start <= at) - 1;
        let start = self.lines[line];
        let before = self.text.as_bytes()[start..].iter().take(at.saturating_sub(start));
        // Every character but those that go on a previous byte's.
        let column = before.filter(|byte| **byte & 0xc0 != 0x80).count();
        Place { file: self.name.clone(), line: line as u32 + 1, column: column as u32 + 1 }
    }

    /// The tree of the text, or why there is none.
    pub fn parse(&self) -> Result<Document<'a>, Problem> {
        let (code, at, what, hint) = match bounded(self.text) {
            Err(over) => over,
            Ok(()) => {
                let options = ParsingOptions {
                    allow_dtd: false,
                    nodes_limit: NODES_MAX,
                    ..Default::default()
                };
                match Document::parse_with_options(self.text, options) {
                    Ok(document) => return Ok(document),
                    Err(error) => {
                        let position = error.pos();
                        let start = self.lines.get(position.row as usize - 1).copied();
                        let at = start.unwrap_or(0) + position.col as usize - 1;
                        let code = match error {
                            roxmltree::Error::NodesLimitReached => Code::XmlLimit,
                            _ => Code::XmlSyntax,
                        };
                        (code, at, without_place(&error.to_string()), "")
                    }
                }
            }
        };
        let place = self.place(at);
        Err(Problem { code, place, path: String::new(), what, hint: hint.to_owned() })
    }
}

/// The reader's words without the place at their end, which is told apart.
fn without_place(words: &str) -> String {
    words.split(" at ").next().unwrap_or(words).to_owned()
}

type Over = (Code, usize, String, &'static str);

/// Counts what a tree would cost.
fn bounded(text: &str) -> Result<(), Over> {
    if text.len() > TEXT_BYTES_MAX {
        let what = format!("the document has {} bytes, more than {TEXT_BYTES_MAX}", text.len());
        return Err((Code::XmlLimit, 0, what, "large tables are better set over ForCES"));
    }
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0usize);
    while let Some(found) = text[at..].find('<') {
        let start = at + found;
        let rest = &text[start..];
        let skip = |end: &str| rest.find(end).map_or(rest.len(), |length| length + end.len());
        at = start
            + if rest.starts_with("<!--") {
                skip("-->")
            } else if rest.starts_with("<![CDATA[") {
                skip("]]>")
            } else if rest.starts_with("<!") {
                let what = "document types and entities are not read".to_owned();
                return Err((Code::XmlSyntax, start, what, "remove the <!DOCTYPE ...>"));
            } else if rest.starts_with("<?") {
                skip("?>")
            } else if rest.starts_with("</") {
                depth = depth.saturating_sub(1);
                skip(">")
            } else {
                let (length, attributes) = tag(&bytes[start..]);
                if attributes > ATTRIBUTES_MAX {
                    let what = format!("an element with more than {ATTRIBUTES_MAX} attributes");
                    return Err((Code::XmlLimit, start, what, ""));
                }
                if length < 2 || bytes[start + length - 2] != b'/' {
                    depth += 1;
                }
                if depth > DEPTH_MAX {
                    let what = format!("more than {DEPTH_MAX} elements within each other");
                    return Err((Code::XmlLimit, start, what, ""));
                }
                length
            };
    }
    Ok(())
}

/// Bytes of a tag and how many attributes it has.
fn tag(bytes: &[u8]) -> (usize, usize) {
    let (mut quote, mut attributes) = (None, 0);
    for (at, byte) in bytes.iter().enumerate() {
        match (quote, byte) {
            (None, b'>') => return (at + 1, attributes),
            (None, b'"' | b'\'') => {
                quote = Some(*byte);
                attributes += 1;
            }
            (Some(open), byte) if open == *byte => quote = None,
            _ => {}
        }
    }
    (bytes.len(), attributes)
}

/// Reading elements of one source: what is missing or unknown becomes a problem with a place.
pub struct Reader<'s, 'a> {
    /// The text that is read.
    pub source: &'s Source<'a>,
    /// What was wrong so far.
    pub problems: Problems,
}

impl<'s, 'a> Reader<'s, 'a> {
    /// Nothing read, nothing wrong.
    pub fn new(source: &'s Source<'a>) -> Self {
        Reader { source, problems: Problems::default() }
    }

    /// Where an element begins.
    pub fn place(&self, node: Node<'_, '_>) -> Place {
        self.source.place(node.range().start)
    }

    /// Where an attribute's value begins, or its element if there is none.
    pub fn place_of(&self, node: Node<'_, '_>, attribute: &str) -> Place {
        let found = node.attribute_node(attribute).map(|found| found.range_value().start);
        self.source.place(found.unwrap_or(node.range().start))
    }

    /// Adds a problem at an element.
    pub fn wrong(&mut self, code: Code, node: Node<'_, '_>, path: &str, what: String, hint: &str) {
        let place = self.place(node);
        self.problems.add(code, &place, path, what, hint);
    }

    /// Adds a problem at an attribute's value.
    pub fn wrong_value(&mut self, node: Node<'_, '_>, attribute: &str, what: String, hint: &str) {
        let place = self.place_of(node, attribute);
        self.problems.add(Code::XmlAttribute, &place, "", what, hint);
    }

    /// Names every attribute that is not `known`.
    pub fn only(&mut self, node: Node<'_, '_>, known: &[&str]) {
        for attribute in node.attributes() {
            if attribute.namespace().is_none() && !known.contains(&attribute.name()) {
                let what = format!(
                    "<{}> has no attribute \"{}\"",
                    node.tag_name().name(),
                    attribute.name()
                );
                let hint = format!("it has: {}", known.join(", "));
                let place = self.source.place(attribute.range().start);
                self.problems.add(Code::XmlAttribute, &place, "", what, hint);
            }
        }
    }

    /// The value of an attribute that must be there.
    pub fn required<'n>(&mut self, node: Node<'n, '_>, attribute: &str) -> Option<&'n str> {
        let value = node.attribute(attribute);
        if value.is_none() {
            let what = format!("<{}> needs the attribute \"{attribute}\"", node.tag_name().name());
            self.wrong(Code::XmlAttribute, node, "", what, "");
        }
        value
    }

    /// A whole number in an attribute, if the attribute is there and readable.
    pub fn number(&mut self, node: Node<'_, '_>, attribute: &str) -> Option<u128> {
        let text = node.attribute(attribute)?;
        let value = number(text);
        if value.is_none() {
            let what = format!("\"{text}\" is no whole number");
            self.wrong_value(node, attribute, what, "write it in decimal or as 0x...");
        }
        value
    }

    /// A whole number of at most 32 bits in an attribute.
    pub fn number_u32(&mut self, node: Node<'_, '_>, attribute: &str) -> Option<u32> {
        let value = self.number(node, attribute)?;
        let small = u32::try_from(value).ok();
        if small.is_none() {
            let what = format!("{value} is more than {}", u32::MAX);
            self.wrong_value(node, attribute, what, "");
        }
        small
    }

    /// The elements in an element; text between them is a problem.
    pub fn children<'n, 'i>(&mut self, node: Node<'n, 'i>) -> Vec<Node<'n, 'i>> {
        let mut elements = Vec::new();
        for child in node.children() {
            if child.is_element() {
                elements.push(child);
            } else if child.text().is_some_and(|text| child.is_text() && !text.trim().is_empty()) {
                let what = format!("text in <{}>", node.tag_name().name());
                self.wrong(Code::XmlElement, child, "", what, "only elements stand here");
            }
        }
        elements
    }

    /// Says that an element means nothing here.
    pub fn unknown(&mut self, node: Node<'_, '_>, known: &str) {
        let parent = node.parent_element().map_or("", |parent| parent.tag_name().name());
        let what = format!("<{}> means nothing in <{parent}>", node.tag_name().name());
        self.wrong(Code::XmlElement, node, "", what, known);
    }
}

/// A whole number in decimal or, with `0x`, in hexadecimal.
pub fn number(text: &str) -> Option<u128> {
    let text = text.trim();
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if !digits.starts_with('+') => u128::from_str_radix(digits, 16).ok(),
        None if !text.starts_with('+') => text.parse().ok(),
        _ => None,
    }
}

/// Text as it stands in an attribute or between tags.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' | '\r' => escaped.push_str(&format!("&#{};", u32::from(character))),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Source::new("t.xml", text).parse().expect_err("this must be refused").to_string()
    }

    #[test]
    fn places_are_lines_and_characters() {
        let source = Source::new("t.xml", "<a>\n é<b/></a>");
        let document = source.parse().unwrap();
        let inner = document.root_element().first_element_child().unwrap();
        assert_eq!(source.place(inner.range().start).to_string(), "t.xml:2:3");
    }

    #[test]
    fn what_costs_more_than_its_size_is_refused() {
        let bomb = "<!DOCTYPE a [<!ENTITY b \"bb\">]><a>&b;</a>";
        assert!(refused(bomb).starts_with("t.xml:1:1: error[xml-syntax]: document types"));
        let deep = "<a>".repeat(DEPTH_MAX + 1);
        assert!(refused(&deep).contains("xml-limit"));
        let broad = (0..=ATTRIBUTES_MAX).map(|n| format!(" a{n}='>'")).collect::<String>();
        assert!(refused(&format!("<a{broad}/>")).contains("attributes"));
        let large = format!("<a>{}</a>", " ".repeat(TEXT_BYTES_MAX));
        assert!(refused(&large).contains("bytes"));
        let many = format!("<a>{}</a>", "<b/>".repeat(NODES_MAX as usize));
        assert!(refused(&many).contains("xml-limit"));
    }

    #[test]
    fn text_that_is_no_xml_is_refused_with_its_place() {
        assert!(refused("<a>\n<b></a>").starts_with("t.xml:2:"));
        assert!(refused("").starts_with("t.xml:1:1: error[xml-syntax]"));
        assert!(refused("<a").contains("xml-syntax"));
        assert!(refused("<a>&b;</a>").contains("xml-syntax"));
    }
}
