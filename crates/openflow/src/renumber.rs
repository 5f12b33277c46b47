//! Rewrites port numbers in encoded messages, for a proxy between a switch and a controller that
//! number the same ports differently.
//!
//! Source: OpenFlow Switch Specification 1.0.0 section 5, 1.1.0 to 1.3.5 appendix A or section 7,
//! 1.4.1 and 1.5.1 section 7.
//!
//! - A new number has the width of the old one, so a message keeps its length and its place in the
//!   stream. Nothing is decoded or copied.
//! - Rewritten: descriptions, statistics and changes of ports and queues, packet-in and packet-out,
//!   matches, actions and instructions, groups, and messages inside bundles and forwarded requests.
//! - Unchanged: reserved numbers, frames, the bytes that an error quotes, and experimenter data.
//! - Malformed or truncated bytes end the walk. The walk never reads or writes beyond the end.

/// Bytes in front of each message's body.
const HEADER: usize = crate::header::HEADER_BYTES;

/// The first reserved port number, by width.
const RESERVED_16: u16 = 0xff00;
const RESERVED_32: u32 = 0xffff_ff00;

/// Fields of [`OXM_BASIC`] whose values are ports: in_port, in_phy_port and, since 1.5,
/// actset_output.
const OXM_PORTS: [u8; 3] = [0, 1, 43];

/// The OXM class of the specification's own fields (1.2 section A.2.3.2).
const OXM_BASIC: u16 = 0x8000;

/// Bytes of a match in 1.0 and in 1.1.
const MATCH_1_0: usize = 40;
const MATCH_1_1: usize = 88;

/// Experimenter and type of the bundle-add message in 1.3.
const BUNDLE_ADD_1_3: [u8; 8] = [0x4f, 0x4e, 0x46, 0, 0, 0, 0x08, 0xfd];

/// Maximum nesting depth of messages within messages.
const DEPTH_MAX: u32 = 4;

/// Maps an old port number to a new one. Called only for numbers below the reserved ones.
pub type Numbers<'a> = &'a dyn Fn(u32) -> u32;

/// Rewrites every port number in a message, which may be incomplete.
pub fn renumber(message: &mut [u8], to: Numbers<'_>) {
    whole(message, to, DEPTH_MAX);
}

fn whole(message: &mut [u8], to: Numbers<'_>, depth: u32) {
    let (Some(&[version, kind, ..]), true) = (message.first_chunk::<4>(), depth > 0) else {
        return;
    };
    match version {
        1 => first(message, kind, to),
        2..=6 => later(message, version, kind, to, depth),
        _ => {}
    }
}

/// Rewrites a message of 1.0.
fn first(message: &mut [u8], kind: u8, to: Numbers<'_>) {
    match kind {
        // Features reply.
        6 => fixed(behind(message, 32), 48, |port| port_16(port, 0, to)),
        // Packet-in.
        10 => port_16(message, 14, to),
        // Flow-removed.
        11 => match_1_0(behind(message, HEADER), to),
        // Port-status.
        12 => port_16(message, 16, to),
        // Packet-out.
        13 => {
            port_16(message, 12, to);
            let length = number_16(message, 14);
            actions_1_0(part(message, 16, length), to);
        }
        // Flow-mod.
        14 => {
            match_1_0(behind(message, HEADER), to);
            port_16(message, 68, to);
            actions_1_0(behind(message, 72), to);
        }
        // Port-mod, and queue configuration request and reply.
        15 | 20 | 21 => port_16(message, 8, to),
        // Statistics request and reply.
        16 => match number_16(message, 8) {
            1 | 2 => {
                match_1_0(behind(message, 12), to);
                port_16(message, 12 + MATCH_1_0 + 2, to);
            }
            4 | 5 => port_16(message, 12, to),
            _ => {}
        },
        17 => {
            let rows = number_16(message, 8);
            let body = behind(message, 12);
            match rows {
                1 => long(body, 88, 0, |entry| {
                    match_1_0(behind(entry, 4), to);
                    actions_1_0(behind(entry, 88), to);
                }),
                4 => fixed(body, 104, |port| port_16(port, 0, to)),
                5 => fixed(body, 32, |queue| port_16(queue, 0, to)),
                _ => {}
            }
        }
        _ => {}
    }
}

/// Rewrites a message of 1.1 to 1.5, whose wire versions are 2 to 6.
fn later(message: &mut [u8], version: u8, kind: u8, to: Numbers<'_>, depth: u32) {
    match kind {
        // Features reply, which lists ports before 1.3.
        6 if version < 4 => fixed(behind(message, 32), 64, |port| port_32(port, 0, to)),
        // Packet-in.
        10 => match version {
            2 => {
                port_32(message, 12, to);
                port_32(message, 16, to);
            }
            3 => match_alone(behind(message, 16), version, to),
            _ => match_alone(behind(message, 24), version, to),
        },
        // Flow-removed.
        11 => {
            let at = if version == 6 { 24 } else { 48 };
            matching(behind(message, at), version, to);
        }
        // Port-status.
        12 => port_32(message, 16, to),
        // Packet-out.
        13 if version == 6 => {
            let length = number_16(message, 12);
            let matched = matching(behind(message, 16), version, to);
            actions(part(message, 16 + matched, length), to);
        }
        13 => {
            port_32(message, 12, to);
            let length = number_16(message, 16);
            actions(part(message, 24, length), to);
        }
        // Flow-mod.
        14 => {
            port_32(message, 36, to);
            let matched = matching(behind(message, 48), version, to);
            instructions(behind(message, 48 + matched), to);
        }
        // Group-mod.
        15 if version == 6 => {
            let length = number_16(message, 16);
            buckets(part(message, 24, length), version, to);
        }
        15 => buckets(behind(message, 16), version, to),
        // Port-mod, and the queue configuration request before 1.4.
        16 | 22 => port_32(message, 8, to),
        23 => {
            port_32(message, 8, to);
            // Since 1.2 a queue has its port next to its number.
            if version > 2 {
                long(behind(message, 16), 16, 8, |queue| port_32(queue, 4, to));
            }
        }
        // Multipart request and reply.
        18 => asked(message, version, to),
        19 => answered(message, version, to),
        // Forwarded request; bundle-add message.
        32 => whole(behind(message, HEADER), to, depth - 1),
        // Bundle-add message; in 1.3 inside an experimenter message (ONF extension 230).
        4 if version == 4 && message.get(HEADER..24 - HEADER) == Some(&BUNDLE_ADD_1_3) => {
            let length = number_16(message, 26);
            whole(part(message, 24, length), to, depth - 1);
        }
        34 => {
            let length = number_16(message, 18);
            whole(part(message, 16, length), to, depth - 1);
        }
        _ => {}
    }
}

/// Rewrites a multipart request of 1.1 and later.
fn asked(message: &mut [u8], version: u8, to: Numbers<'_>) {
    match number_16(message, 8) {
        1 | 2 | 17 => {
            port_32(message, 20, to);
            matching(behind(message, 48), version, to);
        }
        4 | 5 | 15 => port_32(message, 16, to),
        13 if version == 6 => port_32(message, 16, to),
        16 => {
            // Flow monitors: 16 bytes and a match of variable length.
            let mut rest = behind(message, 16);
            while rest.len() > 16 {
                port_32(rest, 4, to);
                let matched = matching(behind(rest, 16), version, to);
                if matched == 0 {
                    return;
                }
                rest = behind(rest, 16 + matched);
            }
        }
        _ => {}
    }
}

/// Rewrites one multipart reply of 1.1 and later.
fn answered(message: &mut [u8], version: u8, to: Numbers<'_>) {
    let rows = number_16(message, 8);
    let body = behind(message, 16);
    match rows {
        // Flow entries.
        1 if version == 6 => long(body, 24, 0, |entry| {
            let matched = matching(behind(entry, 24), version, to);
            // Counters: their length without padding is at offset 2.
            let counters = number_16(entry, 24 + matched + 2).next_multiple_of(8);
            instructions(behind(entry, 24 + matched + counters), to);
        }),
        1 => long(body, 48, 0, |entry| {
            let matched = matching(behind(entry, 48), version, to);
            instructions(behind(entry, 48 + matched), to);
        }),
        17 => long(body, 8, 0, |entry| match_alone(behind(entry, 8), version, to)),
        // Statistics of ports and queues.
        4 if version > 4 => long(body, 8, 0, |port| port_32(port, 4, to)),
        4 => fixed(body, if version == 4 { 112 } else { 104 }, |port| port_32(port, 0, to)),
        5 if version > 4 => long(body, 12, 0, |queue| port_32(queue, 8, to)),
        5 => fixed(body, if version == 4 { 40 } else { 32 }, |queue| port_32(queue, 0, to)),
        // Group descriptions.
        7 if version == 6 => long(body, 16, 0, |group| {
            let length = number_16(group, 8);
            buckets(part(group, 16, length), version, to);
        }),
        7 => long(body, 8, 0, |group| buckets(behind(group, 8), version, to)),
        // Descriptions of ports and queues.
        13 if version > 4 => long(body, 8, 4, |port| port_32(port, 0, to)),
        13 => fixed(body, 64, |port| port_32(port, 0, to)),
        15 => long(body, 10, 8, |queue| port_32(queue, 0, to)),
        // Flow updates; abbreviated and paused ones have no port numbers.
        16 => long(body, 4, 0, |news| {
            if number_16(news, 2) < 3 {
                let matched = matching(behind(news, 24), version, to);
                instructions(behind(news, 24 + matched), to);
            }
        }),
        _ => {}
    }
}

fn match_1_0(bytes: &mut [u8], to: Numbers<'_>) {
    const IN_PORT: u8 = 1;
    // Keep a wildcarded port.
    if bytes.len() >= MATCH_1_0 && bytes[3] & IN_PORT == 0 {
        port_16(bytes, 4, to);
    }
}

/// Rewrites the match at the start of these bytes and returns its length with padding.
fn matching(bytes: &mut [u8], version: u8, to: Numbers<'_>) -> usize {
    // With 1.1, Open vSwitch encodes as Nicira fields what the fixed structure cannot express.
    const ROW_OF_FIELDS: usize = 1;
    if version == 2 && number_16(bytes, 0) != ROW_OF_FIELDS {
        // Keep a wildcarded port.
        if number_16(bytes, 10) & 1 == 0 {
            port_32(bytes, 4, to);
        }
        return MATCH_1_1;
    }
    let length = number_16(bytes, 2);
    if length < 4 || length > bytes.len() {
        return 0;
    }
    fields(&mut bytes[4..length], to);
    length.next_multiple_of(8)
}

/// Rewrites a match whose length the caller does not need.
fn match_alone(bytes: &mut [u8], version: u8, to: Numbers<'_>) {
    matching(bytes, version, to);
}

fn fields(mut bytes: &mut [u8], to: Numbers<'_>) {
    while bytes.len() >= 4 {
        let (class, field) = (number_16(bytes, 0) as u16, bytes[2] >> 1);
        match (class, field, bytes[3]) {
            (OXM_BASIC, field, _) if OXM_PORTS.contains(&field) => port_32(bytes, 4, to),
            // Nicira's in_port has two bytes.
            (0, 0, 2) => port_16(bytes, 4, to),
            _ => {}
        }
        let next = 4 + usize::from(bytes[3]);
        bytes = behind(bytes, next);
    }
}

fn actions_1_0(bytes: &mut [u8], to: Numbers<'_>) {
    const OUTPUT: usize = 0;
    const ENQUEUE: usize = 11;
    long(bytes, 8, 2, |action| {
        if matches!(number_16(action, 0), OUTPUT | ENQUEUE) {
            port_16(action, 4, to);
        }
    });
}

fn actions(bytes: &mut [u8], to: Numbers<'_>) {
    const OUTPUT: usize = 0;
    const SET_FIELD: usize = 25;
    long(bytes, 8, 2, |action| match number_16(action, 0) {
        OUTPUT => port_32(action, 4, to),
        SET_FIELD => fields(behind(action, 4), to),
        _ => {}
    });
}

fn instructions(bytes: &mut [u8], to: Numbers<'_>) {
    const WRITE_ACTIONS: usize = 3;
    const APPLY_ACTIONS: usize = 4;
    long(bytes, 8, 2, |instruction| {
        if matches!(number_16(instruction, 0), WRITE_ACTIONS | APPLY_ACTIONS) {
            actions(behind(instruction, 8), to);
        }
    });
}

fn buckets(bytes: &mut [u8], version: u8, to: Numbers<'_>) {
    const WATCH_PORT: usize = 1;
    if version < 6 {
        return long(bytes, 16, 0, |bucket| {
            port_32(bucket, 4, to);
            actions(behind(bucket, 16), to);
        });
    }
    long(bytes, 8, 0, |bucket| {
        let length = number_16(bucket, 2);
        actions(part(bucket, 8, length), to);
        long(behind(bucket, 8 + length), 8, 2, |property| {
            if number_16(property, 0) == WATCH_PORT {
                port_32(property, 4, to);
            }
        });
    });
}

/// Returns the bytes from offset `at` on; empty if there are none.
fn behind(bytes: &mut [u8], at: usize) -> &mut [u8] {
    bytes.get_mut(at..).unwrap_or_default()
}

/// Returns at most `length` bytes from offset `at` on.
fn part(bytes: &mut [u8], at: usize, length: usize) -> &mut [u8] {
    let rest = behind(bytes, at);
    let length = length.min(rest.len());
    &mut rest[..length]
}

/// Calls `each` for every row of `size` bytes; ignores an incomplete last row.
fn fixed(bytes: &mut [u8], size: usize, each: impl FnMut(&mut [u8])) {
    bytes.chunks_exact_mut(size).for_each(each);
}

/// Calls `each` for every row of at least `least` bytes, whose own length is at offset `length_at`.
fn long(mut bytes: &mut [u8], least: usize, length_at: usize, mut each: impl FnMut(&mut [u8])) {
    while bytes.len() >= least {
        let length = number_16(bytes, length_at);
        if length < least || length > bytes.len() {
            return;
        }
        let (row, rest) = bytes.split_at_mut(length);
        each(row);
        bytes = rest;
    }
}

/// Reads the two-byte number at offset `at`; 0 beyond the end.
fn number_16(bytes: &[u8], at: usize) -> usize {
    let two = bytes.get(at..).and_then(|rest| rest.first_chunk::<2>());
    two.map_or(0, |two| usize::from(u16::from_be_bytes(*two)))
}

fn port_16(bytes: &mut [u8], at: usize, to: Numbers<'_>) {
    let Some(field) = behind(bytes, at).first_chunk_mut::<2>() else { return };
    let number = u16::from_be_bytes(*field);
    // Keep the old number if the new one does not fit the 16-bit field.
    if let (true, Ok(new)) = (number < RESERVED_16, u16::try_from(to(number.into())))
        && new < RESERVED_16
    {
        *field = new.to_be_bytes();
    }
}

fn port_32(bytes: &mut [u8], at: usize, to: Numbers<'_>) {
    let Some(field) = behind(bytes, at).first_chunk_mut::<4>() else { return };
    let number = u32::from_be_bytes(*field);
    if number < RESERVED_32 {
        *field = to(number).to_be_bytes();
    }
}
