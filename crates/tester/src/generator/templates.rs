//! Frame templates of streams with several sizes: one per size, and the size of each frame.

use std::sync::Arc;

use crate::generator::field_writer::Group;
use crate::generator::template::Template;
use crate::stream::{Arrival, Field, Headers, Stream, TAG_BYTES};

/// The templates of a stream: one per size, and the index for each frame.
#[derive(Debug, Clone)]
pub struct Templates {
    /// The only template of most streams, accessible without indirection.
    first: Template,
    others: Vec<Template>,
    turns: Arc<[u8]>,
}

impl Templates {
    /// Creates the templates of a valid stream's sent frames, signed with the run's `key`.
    pub fn leaving(stream: &Stream, key: u64) -> Self {
        Templates::new(stream, &stream.headers, &[], 0, key)
    }

    /// Creates the templates of a stream's sent and of its expected frames, which share stored
    /// values.
    pub fn both(stream: &Stream, key: u64) -> [Self; 2] {
        let leaving = Templates::leaving(stream, key);
        let arriving = match stream.arrival {
            Arrival::Unchanged => leaving.clone(),
            _ => Templates::arriving(stream, key),
        };
        [leaving, arriving]
    }

    /// Creates the templates of a stream's expected frames.
    pub fn arriving(stream: &Stream, key: u64) -> Self {
        const TAG: isize = TAG_BYTES as isize;
        match stream.arrival {
            Arrival::Unchanged => Templates::leaving(stream, key),
            Arrival::Routed { mac_source, mac_destination } => {
                let ttl = stream.headers.ttl.saturating_sub(1);
                let headers =
                    Headers { mac_source, mac_destination, ttl, ..stream.headers.clone() };
                let constant = [Field::MacSource, Field::MacDestination];
                Templates::new(stream, &headers, &constant, 0, key)
            }
            Arrival::Tagged(ref tags) => {
                let tagged = stream.tagged(tags);
                Templates::new(&tagged, &tagged.headers, &[], TAG, key)
            }
            Arrival::Untagged => {
                let bare = stream.untagged();
                let gone = [Field::VlanId, Field::VlanTag];
                Templates::new(&bare, &bare.headers, &gone, -TAG, key)
            }
            Arrival::Answered => {
                let answer = stream.answer();
                Templates::new(stream, &answer, &[], 0, key)
            }
        }
    }

    /// Creates templates with these headers and constant fields, with sizes changed by `longer`
    /// bytes.
    fn new(
        stream: &Stream,
        headers: &Headers,
        constant: &[Field],
        longer: isize,
        key: u64,
    ) -> Self {
        let group = |vary| Group::new(vary, constant, headers);
        let groups: Vec<Group> = stream.vary.iter().map(group).collect();
        let sized = |&size: &usize| {
            let size = size.saturating_add_signed(longer);
            Template::new(stream, headers, groups.clone(), size, key)
        };
        let (first, others) = stream.sizes().split_first().unwrap_or((&stream.frame_bytes, &[]));
        let turns = stream.genome.as_ref().map(|genome| Arc::clone(genome.turns()));
        Templates {
            first: sized(first),
            others: others.iter().map(sized).collect(),
            turns: turns.unwrap_or_default(),
        }
    }

    /// Returns the template of frame `number`.
    #[inline]
    pub fn of(&self, number: u64) -> &Template {
        if self.others.is_empty() { &self.first } else { self.of_turn(number) }
    }

    fn of_turn(&self, number: u64) -> &Template {
        let turn = usize::from(self.turns[(number % self.turns.len() as u64) as usize]);
        turn.checked_sub(1).map_or(&self.first, |other| &self.others[other])
    }

    /// Returns whether all frames have the same bytes except number, send time and an Internet
    /// checksum.
    pub fn are_alike(&self) -> bool {
        self.others.is_empty() && self.groups() == 0 && !self.first.has_crc()
    }

    /// Returns all templates.
    pub fn all(&self) -> impl Iterator<Item = &Template> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Returns the stream id.
    pub fn stream(&self) -> u16 {
        self.first.stream()
    }

    /// Returns the number of indices that [`Template::draw`] appends.
    #[inline]
    pub fn groups(&self) -> usize {
        self.first.groups()
    }

    /// Returns the offset of the signature.
    pub fn signature_at(&self) -> usize {
        self.first.signature_at()
    }

    /// Returns whether these bytes resemble a damaged frame of this stream (see
    /// [`Template::resembles`]).
    pub fn resembles(&self, bytes: &[u8]) -> bool {
        self.all().any(|template| template.resembles(bytes))
    }
}
