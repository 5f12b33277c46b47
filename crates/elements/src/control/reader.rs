//! Incremental parser of requests in the bytes of a client.
//!
//! A line up to [`WHOLE_BYTES_MAX`] is parsed completely in one call. A longer line that adds a
//! list of entries is parsed entry by entry as it arrives, up to the budget. Its text is discarded.
//! Entries are added only after the end of the line, so that an invalid line changes nothing. Other
//! long lines (programs) are parsed completely in one call.

use serde::Deserialize;

use super::LINE_BYTES_MAX;
use super::request::{MacEntry, Request};
use crate::budget::{Budget, MESSAGE_STEPS};
use crate::config::{Neighbour, Route};

/// Maximum length of a line that is always parsed completely.
pub const WHOLE_BYTES_MAX: usize = 16 << 10;

/// Maximum bytes of one entry of a longer list.
const ENTRY_BYTES_MAX: usize = 4 << 10;

/// Received bytes of a client, and the parser's position.
#[derive(Debug, Default)]
pub struct Reader {
    input: Vec<u8>,
    /// Bytes that were parsed.
    used: usize,
    /// Position up to which no further end of line exists.
    searched: usize,
    /// The list of the current line.
    list: Option<List>,
    /// Whether to skip the rest of the line.
    skips: bool,
}

/// Result of parsing.
#[derive(Debug, PartialEq)]
pub enum ReadResult {
    /// A request, or why the line is invalid.
    Request(Result<Request, String>),
    /// No complete request: more bytes are needed.
    Incomplete,
    /// The budget is spent.
    Spent,
    /// A line is longer than [`LINE_BYTES_MAX`].
    TooLong,
}

/// The entries of a list so far.
#[derive(Debug)]
enum Entries {
    Macs(Vec<MacEntry>),
    Routes(Vec<Route>),
    Neighbours(Vec<Neighbour>),
}

/// A list that was parsed in part.
#[derive(Debug)]
struct List {
    entries: Entries,
    count: usize,
    /// Bytes of the line that were parsed before those in the buffer.
    bytes: usize,
    place: ReadPosition,
    /// Bytes of the current entry that were scanned.
    seen: usize,
    /// Nesting depth of brackets in the entry.
    depth: usize,
    in_string: bool,
    escaped: bool,
}

/// Position of the parser in the line.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ReadPosition {
    Entry,
    BehindList,
    BehindRequest,
}

impl Reader {
    /// Returns the allocated bytes.
    #[cfg(test)]
    pub fn bytes_held(&self) -> usize {
        self.input.capacity()
    }

    /// Appends received bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        if self.used > 0 {
            // This also frees the memory of a long line.
            self.input = self.input.split_off(self.used);
            (self.searched, self.used) = (self.searched.saturating_sub(self.used), 0);
        }
        self.input.extend_from_slice(bytes);
    }

    /// Returns the next request, up to the budget.
    pub fn next(&mut self, budget: &mut Budget<'_>) -> ReadResult {
        if self.skips && !self.skip_line() {
            return ReadResult::Incomplete;
        }
        if self.list.is_some() {
            return self.read_list(budget);
        }
        let end = self.input[self.searched..].iter().position(|&byte| byte == b'\n');
        let length = end.map_or(self.input.len(), |at| self.searched + at) - self.used;
        if length > LINE_BYTES_MAX {
            return ReadResult::TooLong;
        }
        if length > WHOLE_BYTES_MAX
            && let Some((entries, head)) = list_head(&self.input[self.used..])
        {
            self.used += head;
            self.list = Some(List::new(entries, head));
            return self.read_list(budget);
        }
        match end {
            Some(at) => {
                let end = self.searched + at;
                let request = Request::read(&self.input[self.used..end]);
                (self.used, self.searched) = (end + 1, end + 1);
                budget.spend(MESSAGE_STEPS);
                ReadResult::Request(request)
            }
            None => {
                self.searched = self.input.len();
                ReadResult::Incomplete
            }
        }
    }

    /// Skips the bytes up to the end of the line. Returns false if that has not arrived.
    fn skip_line(&mut self) -> bool {
        let end = self.input[self.used..].iter().position(|&byte| byte == b'\n');
        self.used = end.map_or(self.input.len(), |at| self.used + at + 1);
        self.searched = self.used;
        self.skips = end.is_none();
        !self.skips
    }

    fn read_list(&mut self, budget: &mut Budget<'_>) -> ReadResult {
        let list = self.list.as_mut().expect("a list is being read");
        let (used, found) = list.read(&self.input[self.used..], budget);
        self.used += used;
        list.bytes += used;
        self.searched = self.used;
        if list.bytes > LINE_BYTES_MAX {
            return ReadResult::TooLong;
        }
        if let ReadResult::Request(outcome) = &found {
            let is_at_end = self.input[..self.used].last() == Some(&b'\n');
            self.skips = outcome.is_err() && !is_at_end;
            self.list = None;
        }
        found
    }
}

impl List {
    fn new(entries: Entries, bytes: usize) -> List {
        List {
            entries,
            count: 0,
            bytes,
            place: ReadPosition::Entry,
            seen: 0,
            depth: 0,
            in_string: false,
            escaped: false,
        }
    }

    /// Continues to parse. Returns how many bytes are no longer needed, and the result.
    fn read(&mut self, input: &[u8], budget: &mut Budget<'_>) -> (usize, ReadResult) {
        let mut start = 0;
        while let Some(&byte) = input.get(start + self.seen) {
            if byte == b'\n' {
                let end = start + self.seen + 1;
                return (end, ReadResult::Request(self.ended()));
            }
            if self.place == ReadPosition::Entry && self.is_inside(byte) {
                self.seen += 1;
                if self.seen > ENTRY_BYTES_MAX {
                    let why = format!("more than {ENTRY_BYTES_MAX} bytes");
                    return (start + self.seen, self.wrong(&why));
                }
                continue;
            }
            let entry = &input[start..start + self.seen];
            start += self.seen + 1;
            self.seen = 0;
            match (self.place, byte) {
                (ReadPosition::Entry, b',' | b']') => {
                    let is_empty = self.count == 0 && byte == b']' && entry.trim_ascii().is_empty();
                    if !is_empty {
                        if let Err(error) = self.entries.push(entry) {
                            return (start, self.wrong(&error.to_string()));
                        }
                        self.count += 1;
                    }
                    if byte == b']' {
                        self.place = ReadPosition::BehindList;
                    }
                    budget.spend(MESSAGE_STEPS);
                    if budget.is_spent() {
                        return (start, ReadResult::Spent);
                    }
                }
                (ReadPosition::BehindList, b'}') => self.place = ReadPosition::BehindRequest,
                (ReadPosition::BehindList | ReadPosition::BehindRequest, byte)
                    if byte.is_ascii_whitespace() => {}
                (_, byte) => {
                    let why = format!("unexpected {:?} after the list", char::from(byte));
                    return (start, self.wrong(&why));
                }
            }
        }
        (start, ReadResult::Incomplete)
    }

    /// Whether a byte belongs to the current entry. Tracks strings and brackets.
    fn is_inside(&mut self, byte: u8) -> bool {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return true;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b',' | b']' if self.depth == 0 => return false,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        true
    }

    fn wrong(&self, why: &str) -> ReadResult {
        ReadResult::Request(Err(format!("invalid request: entry {}: {why}", self.count + 1)))
    }

    fn ended(&mut self) -> Result<Request, String> {
        if self.place != ReadPosition::BehindRequest {
            return Err("invalid request: the line ends within the list".to_owned());
        }
        Ok(match &mut self.entries {
            Entries::Macs(all) => Request::AddMacs(std::mem::take(all)),
            Entries::Routes(all) => Request::AddRoutes(std::mem::take(all)),
            Entries::Neighbours(all) => Request::AddNeighbours(std::mem::take(all)),
        })
    }
}

impl Entries {
    fn push(&mut self, entry: &[u8]) -> serde_json::Result<()> {
        fn add<'a, T: Deserialize<'a>>(
            all: &mut Vec<T>,
            entry: &'a [u8],
        ) -> serde_json::Result<()> {
            all.push(serde_json::from_slice(entry)?);
            Ok(())
        }
        match self {
            Entries::Macs(all) => add(all, entry),
            Entries::Routes(all) => add(all, entry),
            Entries::Neighbours(all) => add(all, entry),
        }
    }
}

/// Returns the list that a line adds and the bytes before its first entry, or `None` for other
/// requests.
fn list_head(line: &[u8]) -> Option<(Entries, usize)> {
    let mut rest = after(line, b'{')?;
    let (name, entries) = [
        (&b"\"add_macs\""[..], Entries::Macs(Vec::new())),
        (b"\"add_routes\"", Entries::Routes(Vec::new())),
        (b"\"add_neighbours\"", Entries::Neighbours(Vec::new())),
    ]
    .into_iter()
    .find(|(name, _)| rest.trim_ascii_start().starts_with(name))?;
    rest = &rest.trim_ascii_start()[name.len()..];
    rest = after(after(rest, b':')?, b'[')?;
    Some((entries, line.len() - rest.len()))
}

/// Returns the text after this byte, if it is the next one.
fn after(text: &[u8], byte: u8) -> Option<&[u8]> {
    let (first, rest) = text.trim_ascii_start().split_first()?;
    (*first == byte).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTE: &str = r#"{"to":"10.200.100.0/24","via":"10.1.0.2","port":2}"#;

    /// Returns all requests of a text that arrives in pieces, and the maximum number of entries
    /// parsed in one turn.
    fn requests(text: &str, piece: usize, steps: u64) -> (Vec<Result<Request, String>>, usize) {
        let (mut reader, mut all, mut most) = (Reader::default(), Vec::new(), 0);
        let count = |reader: &Reader| reader.list.as_ref().map_or(0, |list| list.count);
        for bytes in text.as_bytes().chunks(piece) {
            reader.add(bytes);
            loop {
                let before = count(&reader);
                match reader.next(&mut Budget::of_steps(steps)) {
                    ReadResult::Request(request) => all.push(request),
                    ReadResult::Incomplete => break,
                    ReadResult::Spent => {}
                    ReadResult::TooLong => panic!("no line is too long"),
                }
                most = most.max(count(&reader).saturating_sub(before));
                assert!(reader.input.len() - reader.used <= 2 * piece + 2 * WHOLE_BYTES_MAX);
            }
        }
        (all, most)
    }

    #[test]
    fn a_long_list_is_parsed_over_several_turns() {
        let list = format!("{{ \"add_routes\" : [{}] }}\n", vec![ROUTE; 5000].join(" , "));
        let text = format!("{list}{{\"get\":\"macs\"}}\n{list}");
        for piece in [7, 1000, 64 << 10, 1 << 20] {
            let (all, most) = requests(&text, piece, 10 * u64::from(MESSAGE_STEPS));
            assert_eq!(all.len(), 3);
            for place in [0, 2] {
                let Ok(Request::AddRoutes(routes)) = &all[place] else {
                    panic!("{:?}", all[place])
                };
                assert_eq!(routes.len(), 5000);
            }
            assert_eq!(all[1], Request::read(b"{\"get\":\"macs\"}"));
            assert!(most <= 10, "{most} entries in one turn");
        }
    }

    #[test]
    fn a_long_invalid_line_is_reported_and_skipped() {
        let good = vec![ROUTE; 1000].join(",");
        let nothing = "{\"get\":\"macs\"}\n";
        for (line, why) in [
            (format!("{{\"add_routes\":[{good},{{\"to\":1}}]}}\n"), "entry 1001: invalid type"),
            (format!("{{\"add_routes\":[{good},]}}\n"), "entry 1001: EOF"),
            (format!("{{\"add_routes\":[{good}]\n"), "the line ends within the list"),
            (format!("{{\"add_routes\":[{good}\n"), "the line ends within the list"),
            (format!("{{\"add_routes\":[{good}],\"get\":1}}\n"), "unexpected ',' after the list"),
            (format!("{{\"add_routes\":[{good}]}} x\n"), "unexpected 'x' after the list"),
            (format!("{{\"add_routes\":[{good}}}]}}\n"), "entry 1000: trailing characters"),
            (format!("{{\"add_macs\":[{good}]}}\n"), "entry 1: unknown field"),
            (format!("{{\"add_routes\":[\"{}\"]}}\n", "]},".repeat(9000)), "more than 4096 bytes"),
        ] {
            for piece in [100, 1 << 20] {
                let (all, _) = requests(&format!("{line}{nothing}"), piece, 1 << 40);
                let [Err(error), Ok(Request::Get(_))] = &all[..] else { panic!("{all:?}") };
                assert!(error.starts_with("invalid request: ") && error.contains(why), "{error}");
            }
        }
    }

    #[test]
    fn a_long_list_is_limited() {
        let mut reader = Reader::default();
        reader.add(format!("{{\"add_routes\":[{ROUTE}").as_bytes());
        let more = format!(",{ROUTE}").repeat(1000);
        let mut sent = 0;
        loop {
            reader.add(more.as_bytes());
            sent += more.len();
            match reader.next(&mut Budget::of_steps(1 << 40)) {
                ReadResult::Incomplete => assert!(sent <= LINE_BYTES_MAX),
                found => break assert_eq!(found, ReadResult::TooLong),
            }
        }
    }
}
