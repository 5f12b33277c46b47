//! Port numbers changed in a message's bytes, where they stand: for somebody between a switch and a controller who
//! number the same ports differently.
//!
//! Source: OpenFlow Switch Specification 1.0.0 section 5, 1.1.0 to 1.3.5 appendix A or section 7, 1.4.1 and 1.5.1 section 7.
//! A number is replaced by one of the same width, so that a message keeps its length and its place in the stream, and
//! nothing is decoded or copied. What has port numbers: descriptions, statistics and changes of ports and
//! queues, packet-in and packet-out, matches, actions and instructions, groups, and messages in bundles and in forwards.
//! Left as they are: reserved numbers, frames, the bytes that an error quotes, and what experimenters define.
//! Invariant: bytes that are no whole message end the walk where they stop making sense; none is read or written beyond the end.

/// Bytes in front of each message's body.
const HEADER: usize = crate::header::HEADER_BYTES;

/// The first of the reserved numbers, by width.
const RESERVED_16: u16 = 0xff00;
const RESERVED_32: u32 = 0xffff_ff00;

/// Fields of [`OXM_BASIC`] whose values are ports: in_port, in_phy_port and, from 1.5 on, actset_output.
const OXM_PORTS: [u8; 3] = [0, 1, 43];

/// The class of the specification's own fields (1.2 section A.2.3.2).
const OXM_BASIC: u16 = 0x8000;

/// Bytes of a match in 1.0 and in 1.1.
const MATCH_1_0: usize = 40;
const MATCH_1_1: usize = 88;

/// Experimenter and type of the message for a bundle in 1.3.
const BUNDLE_ADD_1_3: [u8; 8] = [0x4f, 0x4e, 0x46, 0, 0, 0, 0x08, 0xfd];

/// Messages within messages that are looked into.
const DEPTH_MAX: u32 = 4;

/// What a port's number becomes. It is asked for numbers below the reserved ones only.
pub type Numbers<'a> = &'a dyn Fn(u32) -> u32;

/// Changes every port number in a message, or in what there is of one.
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

/// A message of 1.0.
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
        // Port-mod, and what is asked and answered about queues.
        15 | 20 | 21 => port_16(message, 8, to),
        // Statistics: request and reply.
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

/// A message of 1.1 to 1.5, whose wire numbers are 2 to 6.
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
        // Port-mod, and what is asked about queues before 1.4.
        16 | 22 => port_32(message, 8, to),
        23 => {
            port_32(message, 8, to);
            // A queue's port stands beside its number from 1.2 on.
            if version > 2 {
                long(behind(message, 16), 16, 8, |queue| port_32(queue, 4, to));
            }
        }
        // Statistics: request and reply.
        18 => asked(message, version, to),
        19 => answered(message, version, to),
        // A request that is forwarded, and a message for a bundle.
        32 => whole(behind(message, HEADER), to, depth - 1),
        // A message for a bundle; in 1.3 inside an experimenter message (ONF extension 230).
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

/// A request for statistics in 1.1 and later.
fn asked(message: &mut [u8], version: u8, to: Numbers<'_>) {
    match number_16(message, 8) {
        1 | 2 | 17 => {
            port_32(message, 20, to);
            matching(behind(message, 48), version, to);
        }
        4 | 5 | 15 => port_32(message, 16, to),
        13 if version == 6 => port_32(message, 16, to),
        16 => {
            // Monitors: their length is that of the match behind 16 bytes.
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

/// A part of statistics in 1.1 and later.
fn answered(message: &mut [u8], version: u8, to: Numbers<'_>) {
    let rows = number_16(message, 8);
    let body = behind(message, 16);
    match rows {
        // Entries.
        1 if version == 6 => long(body, 24, 0, |entry| {
            let matched = matching(behind(entry, 24), version, to);
            // Counters: their length without padding stands behind two bytes.
            let counters = number_16(entry, 24 + matched + 2).next_multiple_of(8);
            instructions(behind(entry, 24 + matched + counters), to);
        }),
        1 => long(body, 48, 0, |entry| {
            let matched = matching(behind(entry, 48), version, to);
            instructions(behind(entry, 48 + matched), to);
        }),
        17 => long(body, 8, 0, |entry| match_alone(behind(entry, 8), version, to)),
        // Ports, and queues.
        4 if version > 4 => long(body, 8, 0, |port| port_32(port, 4, to)),
        4 => fixed(body, if version == 4 { 112 } else { 104 }, |port| port_32(port, 0, to)),
        5 if version > 4 => long(body, 12, 0, |queue| port_32(queue, 8, to)),
        5 => fixed(body, if version == 4 { 40 } else { 32 }, |queue| port_32(queue, 0, to)),
        // Groups' descriptions.
        7 if version == 6 => long(body, 16, 0, |group| {
            let length = number_16(group, 8);
            buckets(part(group, 16, length), version, to);
        }),
        7 => long(body, 8, 0, |group| buckets(behind(group, 8), version, to)),
        // Ports' descriptions, and queues'.
        13 if version > 4 => long(body, 8, 4, |port| port_32(port, 0, to)),
        13 => fixed(body, 64, |port| port_32(port, 0, to)),
        15 => long(body, 10, 8, |queue| port_32(queue, 0, to)),
        // News of entries; what is short or paused names no ports.
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
    // A port that does not matter is left alone.
    if bytes.len() >= MATCH_1_0 && bytes[3] & IN_PORT == 0 {
        port_16(bytes, 4, to);
    }
}

/// The match in front of these bytes; how many are its own, padding included.
fn matching(bytes: &mut [u8], version: u8, to: Numbers<'_>) -> usize {
    // Open vSwitch says in 1.1 with a row of Nicira's fields what the structure cannot say.
    const ROW_OF_FIELDS: usize = 1;
    if version == 2 && number_16(bytes, 0) != ROW_OF_FIELDS {
        // A port that does not matter is left alone.
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

/// The same where it does not matter what follows.
fn match_alone(bytes: &mut [u8], version: u8, to: Numbers<'_>) {
    matching(bytes, version, to);
}

fn fields(mut bytes: &mut [u8], to: Numbers<'_>) {
    while bytes.len() >= 4 {
        let (class, field) = (number_16(bytes, 0) as u16, bytes[2] >> 1);
        match (class, field, bytes[3]) {
            (OXM_BASIC, field, _) if OXM_PORTS.contains(&field) => port_32(bytes, 4, to),
            // Nicira's own has two bytes.
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

/// The bytes from here on; none where there are none.
fn behind(bytes: &mut [u8], at: usize) -> &mut [u8] {
    bytes.get_mut(at..).unwrap_or_default()
}

/// So many bytes from here on, or those there are.
fn part(bytes: &mut [u8], at: usize, length: usize) -> &mut [u8] {
    let rest = behind(bytes, at);
    let length = length.min(rest.len());
    &mut rest[..length]
}

/// Rows of one size; half a row is none.
fn fixed(bytes: &mut [u8], size: usize, each: impl FnMut(&mut [u8])) {
    bytes.chunks_exact_mut(size).for_each(each);
}

/// Rows that say how long they are, in two bytes at `length_at`; each has `least` bytes.
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

/// A number of two bytes; zero where they are not.
fn number_16(bytes: &[u8], at: usize) -> usize {
    let two = bytes.get(at..).and_then(|rest| rest.first_chunk::<2>());
    two.map_or(0, |two| usize::from(u16::from_be_bytes(*two)))
}

fn port_16(bytes: &mut [u8], at: usize, to: Numbers<'_>) {
    let Some(field) = behind(bytes, at).first_chunk_mut::<2>() else { return };
    let number = u16::from_be_bytes(*field);
    // What a version cannot say it is not told.
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
