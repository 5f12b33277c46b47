//! Layout of the memory that the program and this process share.
//!
//! All numbers have the byte order of the machine, except addresses of Ethernet in a rewrite, which
//! are bytes of the frame. Offsets are in bytes unless stated otherwise.

/// Number of tables that programs search, a power of two.
pub const TABLES: usize = 8;

/// Maximum number of masks of all tables, each with its own tuple.
pub const TUPLES_MAX: usize = 128;

/// Maximum number of distinct rewrites of installed entries, and one unused.
pub const REWRITES_MAX: usize = 4096;

/// Maximum number of steps of a search: tuples and entries in the chains of their hashes.
pub const SEARCH_STEPS_MAX: i32 = 320;

/// Fields of the root, the state that a program reads first.
pub mod root {
    /// The state: the generation of entries from bit [`FLAG_BITS`] on, and flags below. One word,
    /// so that both change together.
    pub const STATE: i16 = 0;
    /// Numbers of the current list of tuples of each table.
    pub const LISTS: i16 = 8;
    /// Number of bits of the flags.
    pub const FLAG_BITS: u32 = 16;
    /// Flag: every frame escapes.
    pub const ESCAPE_ALL: u64 = 1;
    /// First of a flag for each table: frames that match no entry are dropped; otherwise they
    /// escape.
    pub const DROPS_MISSES_AT: u32 = 8;
    /// Size of the root.
    pub const BYTES: usize = 8 + 8 * super::TABLES;
}

/// Fields of a list of tuples.
pub mod list {
    use super::TUPLES_MAX;

    /// Number of tuples.
    pub const COUNT: i16 = 0;
    /// The first tuple.
    pub const TUPLES: i16 = 8;
    /// Size of a tuple as a power of two.
    pub const TUPLE_SHIFT: i32 = 6;
    /// In a tuple: the mask, four words.
    pub const MASK: i16 = 0;
    /// In a tuple: the highest order of an entry in this and later tuples.
    pub const BOUND: i16 = 32;
    /// In a tuple: its number, the low bits of the order of its entries.
    pub const NUMBER: i16 = 40;
    /// Number of lists of a table: the current one, and others that are prepared or still read.
    pub const LISTS: usize = 8;
    /// Size of a list.
    pub const BYTES: usize = TUPLES as usize + (TUPLES_MAX << TUPLE_SHIFT);
}

/// Fields of an entry, which fills one cache line.
pub mod entry {
    /// The masked key, four words.
    pub const KEY: i16 = 0;
    /// Precedence: see [`super::order`].
    pub const ORDER: i16 = 32;
    /// First generation in which the entry exists.
    pub const BORN: i16 = 40;
    /// First generation in which it does not exist.
    pub const DIED: i16 = 48;
    /// Action: see [`super::action`].
    pub const ACTION: i16 = 56;
    /// The next entry of the chain, or 0.
    pub const NEXT: i16 = 60;
    /// Size of an entry.
    pub const BYTES: usize = 64;
}

/// Fields of the counters of an entry.
pub mod count {
    /// Number of frames.
    pub const FRAMES: i16 = 0;
    /// Number of bytes.
    pub const BYTES_SUM: i16 = 8;
    /// Monotonic time of the last frame in nanoseconds.
    pub const LAST: i16 = 16;
    /// Size of the counters.
    pub const BYTES: usize = 32;
}

/// Fields of an order: the precedence of an entry among all entries that match a frame.
pub mod order {
    use super::TUPLES_MAX;

    /// Set in the order of every entry, so that no order is zero.
    const PRESENT: u64 = 1 << 60;
    /// Bit position of the rank.
    const RANK_SHIFT: u32 = 41;
    /// Set for entries that escape: they precede others of the same rank.
    pub const ESCAPES: u64 = 1 << ESCAPES_AT;
    /// Bit position of that: lower bits order entries of the same rank.
    pub const ESCAPES_AT: u32 = 40;
    /// Set for entries of the exact part: they precede others of the same rank.
    const EXACT: u64 = 1 << EXACT_AT;
    /// Bit position of that.
    pub const EXACT_AT: u32 = 39;
    /// Bit position of the complement of the arrival: earlier entries precede later ones.
    const ARRIVAL_SHIFT: u32 = 7;
    /// Bits of the number of the tuple.
    pub const TUPLE_MASK: u64 = TUPLES_MAX as u64 - 1;

    /// Returns the order of an entry, without the number of its tuple.
    pub fn of(rank: u32, escapes: bool, is_exact: bool, arrival: u32) -> u64 {
        let (escapes, is_exact) =
            (if escapes { ESCAPES } else { 0 }, if is_exact { EXACT } else { 0 });
        PRESENT
            | u64::from(rank) << RANK_SHIFT
            | escapes
            | is_exact
            | u64::from(!arrival) << ARRIVAL_SHIFT
    }
}

/// Kinds of actions, in the upper 16 bits of an action. The lower 16 bits are an index.
pub mod action {
    /// The frame escapes.
    pub const ESCAPE: u32 = 0;
    /// The frame is dropped.
    pub const DROP: u32 = 1;
    /// The frame leaves by the port with this index.
    pub const OUTPUT: u32 = 2;
    /// The frame leaves by the ingress port.
    pub const IN_PORT: u32 = 3;
    /// The frame is changed by the rewrite with this index, and leaves.
    pub const REWRITE: u32 = 4;
    /// The frame is looked up in the table with this index. No entry before changed it.
    pub const GOTO: u32 = 5;
    /// Bit position of the kind.
    pub const KIND_SHIFT: u32 = 16;
}

/// Fields of a rewrite.
pub mod rewrite {
    /// Which changes apply.
    pub const FLAGS: i16 = 0;
    /// Action that follows: an [`OUTPUT`](super::action::OUTPUT) or
    /// [`IN_PORT`](super::action::IN_PORT).
    pub const THEN: i16 = 4;
    /// Ethernet destination, bytes.
    pub const ETH_DST: i16 = 8;
    /// Ethernet source, bytes.
    pub const ETH_SRC: i16 = 16;
    /// IPv4 source and destination: bits to keep, and bits to set, 4 bytes each.
    pub const ADDRESSES: [i16; 2] = [24, 32];
    /// Bits of the first 16 bits of the IPv4 header to keep, and to set.
    pub const SERVICE: i16 = 40;
    /// Bits of the 16 bits with the TTL to keep, and to set.
    pub const TTL: i16 = 44;
    /// Source and destination port: bits to keep, and bits to set, 2 bytes each.
    pub const PORTS: [i16; 2] = [48, 52];
    /// Type of a pushed tag.
    pub const TAG_TYPE: i16 = 56;
    /// Bits of the tag's control information to keep, and to set.
    pub const TAG: i16 = 58;
    /// Size of a rewrite.
    pub const BYTES: usize = 64;

    /// Sets the Ethernet destination.
    pub const SETS_DST: u32 = 1;
    /// Sets the Ethernet source.
    pub const SETS_SRC: u32 = 1 << 1;
    /// Changes fields of the IPv4 header, or after it.
    pub const CHANGES_IP: u32 = 1 << 2;
    /// Decrements the TTL.
    pub const DECREMENTS: u32 = 1 << 3;
    /// Changes ports of TCP.
    pub const CHANGES_TCP: u32 = 1 << 4;
    /// Changes ports of UDP.
    pub const CHANGES_UDP: u32 = 1 << 5;
    /// Changes the outermost tag, if there is one.
    pub const SETS_TAG: u32 = 1 << 6;
    /// Changes the outermost tag, or pushes one if there is none.
    pub const NEEDS_TAG: u32 = 1 << 7;
    /// Pushes a tag with the contents of the outermost one, and changes it.
    pub const PUSHES: u32 = 1 << 8;
    /// Pops the outermost tag, if there is one.
    pub const POPS: u32 = 1 << 9;
}

/// Fields of the state of one CPU, and of its counters of each port.
pub mod cpu {
    use crate::ports::PORTS_MAX;

    /// 0 while no program runs; then [`STARTING`]; then [`FIRST`] plus the generation that the
    /// program uses.
    pub const RUNS: i16 = 0;
    /// The program is about to read the generation.
    pub const STARTING: i32 = 1;
    /// Value for generation 0.
    pub const FIRST: i32 = 2;
    /// Scratch: the next tuple of a search.
    pub const TUPLE: i16 = 8;
    /// Scratch: the next entry of a search, or 0.
    pub const NEXT: i16 = 16;
    /// Scratch: offset of the network header.
    pub const NETWORK: i16 = 24;
    /// Scratch: the current table.
    pub const TABLE: i16 = 32;
    /// Scratch: number of entries of earlier tables that matched.
    pub const TRAIL_COUNT: i16 = 40;
    /// Scratch: number of steps of a search.
    pub const STEPS: i16 = 48;
    /// Scratch: flags and generation, as in the root.
    pub const STATE: i16 = 56;
    /// Scratch: the generation.
    pub const GENERATION: i16 = 64;
    /// Scratch: order of the best entry so far, or 0.
    pub const BEST: i16 = 72;
    /// Scratch: action of that entry.
    pub const ACTION: i16 = 80;
    /// Scratch: slot of that entry.
    pub const SLOT: i16 = 88;
    /// Scratch: number of tuples.
    pub const TUPLES: i16 = 96;
    /// Scratch: number of the current tuple.
    pub const NUMBER: i16 = 104;
    /// Scratch: control information of a pushed tag.
    pub const CONTROL: i16 = 112;
    /// Scratch: the current chain.
    pub const CHAIN: i16 = 120;
    /// Scratch: the key, four words.
    pub const KEY: i16 = 128;
    /// Scratch: the masked key, four words.
    pub const MASKED: i16 = 160;
    /// Scratch: the slots of entries of earlier tables, each with the offset of the counter of its
    /// part.
    pub const TRAIL: i16 = 192;
    /// Of each table, the numbers of frames that matched an entry of the other part and of the
    /// exact part, and of those that matched none.
    pub const TABLES: i16 = TRAIL + 8 * super::TABLES as i16;
    /// Size of the counters of a table as a power of two.
    pub const TABLE_SHIFT: i32 = 5;
    /// Offset of the counter of frames that matched none.
    pub const MISSED: i16 = 16;
    /// Counters of the first port.
    pub const PORTS: i32 = TABLES as i32 + ((super::TABLES as i32) << TABLE_SHIFT);
    /// Size of the counters of a port.
    pub const PORT_BYTES: usize = 64;
    /// Size of the state.
    pub const BYTES: usize = PORTS as usize + PORTS_MAX * PORT_BYTES;

    /// Number of frames dropped by an entry.
    pub const BY_FLOW: i32 = 0;
    /// Number of frames dropped because they match no entry.
    pub const NO_MATCH: i32 = 8;
    /// Number of frames dropped because an output is the ingress port.
    pub const BACK: i32 = 16;
    /// Number of frames dropped because they could not be sent after they were changed.
    pub const BROKEN: i32 = 24;
    /// Number of bytes of dropped frames.
    pub const DROPPED_BYTES: i32 = 32;
    /// Number of frames that escaped.
    pub const ESCAPED: i32 = 40;
    /// Number of bytes by which tags made frames longer that were sent to the port.
    pub const GROWTH: i32 = 48;
}

/// Bits of the state of a port.
pub mod port {
    /// Frames from the port go to the tables.
    pub const RECEIVES: u64 = 1;
    /// Frames for the port leave at once.
    pub const SENDS: u64 = 2;
}

/// Constants of the hash of a masked key.
pub mod hash {
    /// Multiplier of each step.
    pub const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    /// Number of bits by which each step mixes upper bits into lower ones.
    pub const SHIFT: i32 = 32;

    /// Returns the hash of a masked key.
    pub fn of(words: &[u64; 4], seed: u64) -> u64 {
        words.iter().fold(seed, |hash, word| {
            let hash = (hash ^ word).wrapping_mul(FACTOR);
            hash ^ hash >> SHIFT
        })
    }
}
