//! Checks XML elements against the order of the schema, and records faults with line and column.

use roxmltree::Node;

use super::CHILDREN_MAX;
use super::fault::{DocumentFault, DocumentProblem};
use crate::model::Location;
use crate::model::value::parse_number;

/// Maximum number of reported faults of a document.
const FAULTS_MAX: usize = 1000;
/// Maximum octets of invalid text that a fault quotes.
const REPEATED_OCTETS_MAX: usize = 60;

/// How many times an element may occur at its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Times {
    /// Exactly once.
    One,
    /// At most once.
    Maybe,
    /// At least once.
    Some,
    /// Any number of times.
    Any,
}

/// A position in a sequence: the allowed elements, and how many times they may occur.
pub(super) type Slot = (&'static [&'static str], Times);

/// A document while it is read.
pub(super) struct Document<'a> {
    /// Offset of each line.
    lines: Vec<usize>,
    text: &'a str,
    namespace: &'a str,
    pub(super) faults: Vec<DocumentFault>,
}

impl<'a> Document<'a> {
    pub(super) fn new(text: &'a str) -> Document<'a> {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(ends).collect();
        Document { lines, text, namespace: "", faults: Vec::new() }
    }

    /// Sets the namespace of the following elements.
    pub(super) fn set_namespace(&mut self, namespace: &'a str) {
        self.namespace = namespace;
    }

    /// Returns line and column of an octet of the document.
    pub(super) fn place_of(&self, octet: usize) -> Location {
        let line = self.lines.partition_point(|&start| start <= octet);
        let start = self.lines[line.saturating_sub(1)];
        // A line may be as long as the document, so columns far to the right count octets.
        let within = octet - start;
        let column = match self.text.get(start..octet) {
            Some(before) if within <= 4096 => before.chars().count(),
            _ => within,
        };
        Location { line: line as u32, column: column as u32 + 1 }
    }

    pub(super) fn place(&self, node: Node<'a, 'a>) -> Location {
        self.place_of(node.range().start)
    }

    pub(super) fn fault(&mut self, place: Location, problem: DocumentProblem) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(DocumentFault { place, problem });
        }
    }

    /// Records that a text is invalid.
    pub(super) fn wrong(
        &mut self,
        node: Node<'a, 'a>,
        what: &str,
        text: &str,
        expected: &'static str,
    ) {
        let mut end = text.len().min(REPEATED_OCTETS_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let (what, text) = (what.to_string(), text[..end].to_string());
        self.fault(self.place(node), DocumentProblem::Wrong { what, text, expected });
    }

    /// Returns the child elements of each slot in order. Records a fault for each element that does
    /// not fit, and omits it.
    pub(super) fn sequence(
        &mut self,
        node: Node<'a, 'a>,
        slots: &[Slot],
        attributes: &[&str],
    ) -> Vec<Vec<Node<'a, 'a>>> {
        self.attributes(node, attributes);
        let mut found: Vec<Vec<Node<'a, 'a>>> = vec![Vec::new(); slots.len()];
        let (mut reached, mut last) = (0, String::new());
        for child in self.children(node) {
            let name = child.tag_name().name();
            let Some(slot) = slots.iter().position(|(names, _)| names.contains(&name)) else {
                self.unexpected(child, node, slots);
                continue;
            };
            if slot < reached {
                let (element, behind) = (name.to_string(), last.clone());
                self.fault(self.place(child), DocumentProblem::Order { element, behind });
            }
            let once = matches!(slots[slot].1, Times::One | Times::Maybe);
            if once && !found[slot].is_empty() {
                let element = name.to_string();
                self.fault(self.place(child), DocumentProblem::Twice { element });
                continue;
            }
            found[slot].push(child);
            if slot >= reached {
                (reached, last) = (slot, name.to_string());
            }
        }
        for (slot, (names, times)) in slots.iter().enumerate() {
            if matches!(times, Times::One | Times::Some) && found[slot].is_empty() {
                let (element, within) = (names.join(" or "), word(node));
                self.fault(self.place(node), DocumentProblem::Missing { element, within });
            }
        }
        found
    }

    /// Returns the child elements of an element that may have no text.
    pub(super) fn children(&mut self, node: Node<'a, 'a>) -> Vec<Node<'a, 'a>> {
        let is_text = |it: &Node<'a, 'a>| {
            it.is_text() && it.text().is_some_and(|text| !text.trim().is_empty())
        };
        if let Some(text) = node.children().find(is_text) {
            self.fault(self.place(text), DocumentProblem::Text { within: word(node) });
        }
        let mut children: Vec<_> = node.children().filter(Node::is_element).collect();
        if children.len() > CHILDREN_MAX {
            let element = word(node);
            self.fault(self.place(node), DocumentProblem::TooMany { element });
            children.truncate(CHILDREN_MAX);
        }
        children.retain(|child| {
            let found = child.tag_name().namespace().unwrap_or_default();
            let ours = found == self.namespace;
            if !ours {
                let found = found.to_string();
                self.fault(self.place(*child), DocumentProblem::Namespace { found });
            }
            ours
        });
        children
    }

    pub(super) fn unexpected(&mut self, child: Node<'a, 'a>, node: Node<'a, 'a>, slots: &[Slot]) {
        let names: Vec<_> = slots.iter().flat_map(|(names, _)| *names).copied().collect();
        let (element, within, expected) = (word(child), word(node), names.join(", "));
        let problem = DocumentProblem::Unexpected { element, within, expected };
        self.fault(self.place(child), problem);
    }

    /// Checks the attributes. Ignores those of other namespaces, such as `xsi:schemaLocation`.
    fn attributes(&mut self, node: Node<'a, 'a>, known: &[&str]) {
        for attribute in node.attributes() {
            if attribute.namespace().is_none() && !known.contains(&attribute.name()) {
                let (attribute, element) = (attribute.name().to_string(), word(node));
                let problem = DocumentProblem::AttributeUnknown { attribute, element };
                self.fault(self.place(node), problem);
            }
        }
    }

    /// Returns the text of an element without child elements, with normalized white space; blank
    /// lines separate paragraphs.
    pub(super) fn text(&mut self, node: Node<'a, 'a>, attributes: &[&str]) -> String {
        self.attributes(node, attributes);
        if let Some(child) = node.children().find(Node::is_element) {
            self.unexpected(child, node, &[(&["text"], Times::One)]);
        }
        let all: String =
            node.children().filter_map(|it| it.text().filter(|_| it.is_text())).collect();
        let mut text = String::new();
        let mut open = false;
        for line in all.lines().map(str::trim) {
            if !line.is_empty() {
                text.push_str(match (text.is_empty(), open) {
                    (true, _) => "",
                    (false, true) => " ",
                    (false, false) => "\n\n",
                });
                let words: Vec<_> = line.split_whitespace().collect();
                text.push_str(&words.join(" "));
            }
            open = !line.is_empty();
        }
        text
    }

    /// Returns the text of the first element, if there is one.
    pub(super) fn text_of(&mut self, nodes: &[Node<'a, 'a>]) -> Option<String> {
        nodes.first().map(|node| self.text(*node, &[]))
    }

    /// Returns a required attribute.
    pub(super) fn needed(
        &mut self,
        node: Node<'a, 'a>,
        attribute: &'static str,
    ) -> Option<&'a str> {
        let found = node.attribute(attribute);
        if found.is_none() {
            let element = word(node);
            let problem = DocumentProblem::AttributeMissing { attribute, element };
            self.fault(self.place(node), problem);
        }
        found
    }

    /// Returns a required numeric attribute.
    pub(super) fn id(&mut self, node: Node<'a, 'a>, attribute: &'static str) -> Option<u32> {
        let text = self.needed(node, attribute)?;
        self.number(node, attribute, text)
    }

    /// Parses a 32-bit number.
    pub(super) fn number(&mut self, node: Node<'a, 'a>, what: &str, text: &str) -> Option<u32> {
        let number = parse_number(text.trim()).and_then(|number| u32::try_from(number).ok());
        if number.is_none() {
            self.wrong(node, what, text, "a number from 0 to 4294967295");
        }
        number
    }

    /// Returns whether an attribute is true; false if it is missing.
    pub(super) fn flag(&mut self, node: Node<'a, 'a>, attribute: &'static str) -> bool {
        match node.attribute(attribute).map(str::trim) {
            None | Some("false" | "0") => false,
            Some("true" | "1") => true,
            Some(text) => {
                self.wrong(node, attribute, text, "true or false");
                false
            }
        }
    }
}

/// Describes an element: its tag, and the name that it defines.
fn word(node: Node<'_, '_>) -> String {
    let tag = node.tag_name().name();
    // The name is among the first children, so the search is short even with thousands of them.
    let name = node.children().take(4).find(|child| child.tag_name().name() == "name");
    match name.and_then(|name| name.text()).map(str::trim) {
        Some(name) if name.len() <= REPEATED_OCTETS_MAX => format!("{tag} {name}"),
        _ => tag.to_string(),
    }
}
