//! XML parser with size limits that records the place of each element.
//!
//! One pass over the text checks size, depth and attributes before the tree is built. A document
//! type declaration, which could define entities, is rejected. The cost of a document is therefore
//! at most a small multiple of its size. A table of line starts gives lines and columns.

use std::sync::Arc;

use roxmltree::{Document, Node, ParsingOptions};

use crate::diagnostic::{Code, Place, Problem, Problems};

/// Maximum size of a document in bytes.
pub const TEXT_BYTES_MAX: usize = 16 << 20;
/// Maximum nesting of elements.
pub const DEPTH_MAX: usize = 32;
/// Maximum number of attributes of an element.
pub const ATTRIBUTES_MAX: usize = 64;
/// Maximum number of elements, texts and comments in a document.
pub const NODES_MAX: u32 = 1 << 20;

/// The text of a document with its name and its line starts.
#[derive(Debug)]
pub struct Source<'a> {
    /// Name used in places.
    pub name: Arc<str>,
    /// The whole text.
    pub text: &'a str,
    lines: Vec<usize>,
}

impl<'a> Source<'a> {
    /// Creates a source from a text and its name.
    pub fn new(name: &str, text: &'a str) -> Source<'a> {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Source { name: name.into(), text, lines }
    }

    /// Returns line and column of a byte.
    pub fn place(&self, at: usize) -> Place {
        let line = self.lines.partition_point(|start| *start <= at) - 1;
        let start = self.lines[line];
        let before = self.text.as_bytes()[start..].iter().take(at.saturating_sub(start));
        // Counts characters: all bytes except UTF-8 continuation bytes.
        let column = before.filter(|byte| **byte & 0xc0 != 0x80).count();
        Place { file: self.name.clone(), line: line as u32 + 1, column: column as u32 + 1 }
    }

    /// Parses the text into a tree.
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

/// Removes the place from the end of the parser's message, because it is reported separately.
fn without_place(words: &str) -> String {
    words.split(" at ").next().unwrap_or(words).to_owned()
}

type Over = (Code, usize, String, &'static str);

/// Checks the limits before the tree is built.
fn bounded(text: &str) -> Result<(), Over> {
    if text.len() > TEXT_BYTES_MAX {
        let what =
            format!("the document has {} bytes, at most {TEXT_BYTES_MAX} are allowed", text.len());
        return Err((Code::XmlLimit, 0, what, "set large tables over ForCES"));
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
                let what = "unsupported document type or entity".to_owned();
                return Err((Code::XmlSyntax, start, what, "remove the <!DOCTYPE ...>"));
            } else if rest.starts_with("<?") {
                skip("?>")
            } else if rest.starts_with("</") {
                depth = depth.saturating_sub(1);
                skip(">")
            } else {
                let (length, attributes) = tag(&bytes[start..]);
                if attributes > ATTRIBUTES_MAX {
                    let what = format!("too many attributes: at most {ATTRIBUTES_MAX}");
                    return Err((Code::XmlLimit, start, what, ""));
                }
                if length < 2 || bytes[start + length - 2] != b'/' {
                    depth += 1;
                }
                if depth > DEPTH_MAX {
                    let what = format!("nesting too deep: at most {DEPTH_MAX} levels");
                    return Err((Code::XmlLimit, start, what, ""));
                }
                length
            };
    }
    Ok(())
}

/// Returns the length of a tag and its number of attributes.
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

/// Reader for the elements of a source. Missing and unknown items become problems with a place.
pub struct Reader<'s, 'a> {
    /// The text.
    pub source: &'s Source<'a>,
    /// Problems found so far.
    pub problems: Problems,
}

impl<'s, 'a> Reader<'s, 'a> {
    /// Creates a reader.
    pub fn new(source: &'s Source<'a>) -> Self {
        Reader { source, problems: Problems::default() }
    }

    /// Returns the place of an element.
    pub fn place(&self, node: Node<'_, '_>) -> Place {
        self.source.place(node.range().start)
    }

    /// Returns the place of an attribute's value, or of its element if the attribute is absent.
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

    /// Reports every attribute that is not in `known`.
    pub fn only(&mut self, node: Node<'_, '_>, known: &[&str]) {
        for attribute in node.attributes() {
            if attribute.namespace().is_none() && !known.contains(&attribute.name()) {
                let what = format!(
                    "<{}> has no attribute \"{}\"",
                    node.tag_name().name(),
                    attribute.name()
                );
                let hint = match known {
                    [] => "remove it".to_owned(),
                    known => format!("use one of {}", known.join(", ")),
                };
                let place = self.source.place(attribute.range().start);
                self.problems.add(Code::XmlAttribute, &place, "", what, hint);
            }
        }
    }

    /// Returns the value of a mandatory attribute.
    pub fn required<'n>(&mut self, node: Node<'n, '_>, attribute: &str) -> Option<&'n str> {
        let value = node.attribute(attribute);
        if value.is_none() {
            let what = format!("<{}> needs the attribute \"{attribute}\"", node.tag_name().name());
            self.wrong(Code::XmlAttribute, node, "", what, "");
        }
        value
    }

    /// Parses an integer in an optional attribute.
    pub fn number(&mut self, node: Node<'_, '_>, attribute: &str) -> Option<u128> {
        let text = node.attribute(attribute)?;
        let value = number(text);
        if value.is_none() {
            let what = format!("\"{text}\" is not an integer");
            self.wrong_value(node, attribute, what, "write it in decimal or as 0x...");
        }
        value
    }

    /// Parses a 32-bit integer in an optional attribute.
    pub fn number_u32(&mut self, node: Node<'_, '_>, attribute: &str) -> Option<u32> {
        let value = self.number(node, attribute)?;
        let small = u32::try_from(value).ok();
        if small.is_none() {
            let what = format!("{value} is more than {}", u32::MAX);
            self.wrong_value(node, attribute, what, "");
        }
        small
    }

    /// Returns the child elements. Text between them is a problem.
    pub fn children<'n, 'i>(&mut self, node: Node<'n, 'i>) -> Vec<Node<'n, 'i>> {
        let mut elements = Vec::new();
        for child in node.children() {
            if child.is_element() {
                elements.push(child);
            } else if child.text().is_some_and(|text| child.is_text() && !text.trim().is_empty()) {
                let what = format!("text in <{}>", node.tag_name().name());
                self.wrong(Code::XmlElement, child, "", what, "use only elements");
            }
        }
        elements
    }

    /// Reports an element that is not valid here.
    pub fn unknown(&mut self, node: Node<'_, '_>, known: &str) {
        let parent = node.parent_element().map_or("", |parent| parent.tag_name().name());
        let what = format!("unexpected <{}> in <{parent}>", node.tag_name().name());
        self.wrong(Code::XmlElement, node, "", what, known);
    }
}

/// Parses a decimal integer or, with `0x`, a hexadecimal one.
pub fn number(text: &str) -> Option<u128> {
    let text = text.trim();
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if !digits.starts_with('+') => u128::from_str_radix(digits, 16).ok(),
        None if !text.starts_with('+') => text.parse().ok(),
        _ => None,
    }
}

/// Escapes text for attributes and content.
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
    fn positions_are_lines_and_characters() {
        let source = Source::new("t.xml", "<a>\n é<b/></a>");
        let document = source.parse().unwrap();
        let inner = document.root_element().first_element_child().unwrap();
        assert_eq!(source.place(inner.range().start).to_string(), "t.xml:2:3");
    }

    #[test]
    fn expanding_documents_are_rejected() {
        let bomb = "<!DOCTYPE a [<!ENTITY b \"bb\">]><a>&b;</a>";
        assert!(
            refused(bomb).starts_with("t.xml:1:1: error[xml-syntax]: unsupported document type")
        );
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
    fn invalid_xml_is_rejected_with_its_position() {
        assert!(refused("<a>\n<b></a>").starts_with("t.xml:2:"));
        assert!(refused("").starts_with("t.xml:1:1: error[xml-syntax]"));
        assert!(refused("<a").contains("xml-syntax"));
        assert!(refused("<a>&b;</a>").contains("xml-syntax"));
    }
}
