//! Checks a document before parsing for limits that the parser does not have.
//!
//! These are nesting depth, attributes of an element and namespaces; the parser's cost for
//! attributes and namespaces is quadratic. The scan finds tags as a parser does. It runs in linear
//! time and leaves well-formedness to the parser.

use super::fault::DocumentProblem;
use super::{DOCUMENT_ATTRIBUTES_MAX, DOCUMENT_DEPTH_MAX, DOCUMENT_NAMESPACES_MAX};

/// Returns the first octet at which a limit is exceeded, and the problem.
pub(super) fn exceeds(xml: &str) -> Option<(usize, DocumentProblem)> {
    let bytes = xml.as_bytes();
    let (mut at, mut depth, mut namespaces) = (0, 0usize, 0);
    while let Some(found) = find(bytes, at, b"<") {
        let rest = &bytes[found..];
        at = match rest {
            _ if rest.starts_with(b"<!--") => find(bytes, found + 4, b"-->")? + 3,
            _ if rest.starts_with(b"<![CDATA[") => find(bytes, found + 9, b"]]>")? + 3,
            _ if rest.starts_with(b"<?") => find(bytes, found + 2, b"?>")? + 2,
            _ if rest.starts_with(b"</") => {
                depth = depth.saturating_sub(1);
                find(bytes, found, b">")? + 1
            }
            _ => {
                let tag = tag(bytes, found)?;
                namespaces += tag.namespaces;
                depth += usize::from(!tag.closes);
                if depth > DOCUMENT_DEPTH_MAX {
                    return Some((found, DocumentProblem::TooDeep));
                }
                let many = tag.attributes > DOCUMENT_ATTRIBUTES_MAX;
                if many || namespaces > DOCUMENT_NAMESPACES_MAX {
                    return Some((found, DocumentProblem::TooManyAttributes));
                }
                tag.end
            }
        };
    }
    None
}

struct Tag {
    end: usize,
    closes: bool,
    attributes: usize,
    namespaces: usize,
}

/// Scans a start tag: its end, whether it is self-closing, attributes and namespaces.
fn tag(bytes: &[u8], start: usize) -> Option<Tag> {
    let (mut at, mut attributes, mut namespaces) = (start + 1, 0, 0);
    loop {
        match *bytes.get(at)? {
            quote @ (b'"' | b'\'') => at = find(bytes, at + 1, &[quote])?,
            b'=' => attributes += 1,
            b'x' if bytes[at..].starts_with(b"xmlns") => namespaces += 1,
            b'>' => {
                let closes = bytes[at - 1] == b'/';
                return Some(Tag { end: at + 1, closes, attributes, namespaces });
            }
            _ => {}
        }
        at += 1;
    }
}

fn find(bytes: &[u8], from: usize, what: &[u8]) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(what.len()).position(|window| window == what).map(|at| from + at)
}
