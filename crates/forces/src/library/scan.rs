//! A look at a document before it is parsed, for what the parser does not bound: nesting, attributes
//! of an element and namespaces, whose cost there grows with their square.
//!
//! Whether it is well-formed the parser says; this only finds tags as a parser would, and never
//! takes longer than the document is.

use super::fault::DocumentProblem;
use super::{DOCUMENT_ATTRIBUTES_MAX, DOCUMENT_DEPTH_MAX, DOCUMENT_NAMESPACES_MAX};

/// The first octet at which a bound is exceeded, and which.
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

/// A start tag: where it ends, whether it closes itself, and what is in it.
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
