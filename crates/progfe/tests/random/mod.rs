//! Random programs and random frames.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use progfe::program::Program;
use progfe::program::document::no_files;
use progfe::xml::Source;
use proptest::prelude::*;

/// Class, settings, outputs with their group sizes.
pub type Kind = (&'static str, &'static str, &'static [(&'static str, u32)]);

/// Blocks that accept any frames.
pub const BLOCKS: &[Kind] = &[
    ("Count", "", &[("PktsOut", 0)]),
    ("Replicate", r#"<set name="ExcludeMeta">PHYPortID</set>"#, &[("CopyOut", 3)]),
    ("Replicate", "", &[("CopyOut", 2)]),
    (
        "Match",
        r#"<row table="Rules" prio="2"><when>Eth.type lt 0x8000</when><c n="OutputIndex">0</c></row>
           <row table="Rules" prio="1"><when>Vlan or IPv4.ttl gt 9</when><c n="OutputIndex">1</c></row>"#,
        &[("HitOut", 2), ("MissOut", 0)],
    ),
    (
        "LearnSearch",
        r#"<set name="LearnKey">Eth.src</set><set name="LearnValue">meta:PHYPortID</set>
           <set name="SearchKey">Eth.dst</set><set name="MaxEntries">3</set>"#,
        &[("KnownOut", 0), ("UnknownOut", 0), ("SamePortOut", 0)],
    ),
    (
        "Edit",
        r#"<op do="push" frame="Vlan" after="Eth.src"/><op do="set" field="Vlan.vid" to="7"/>"#,
        &[("PktsOut", 0), ("ExceptionOut", 0)],
    ),
    ("Edit", r#"<op do="pop" frame="Vlan"/>"#, &[("PktsOut", 0), ("ExceptionOut", 0)]),
    ("Mirror", r#"<set name="Sample">2</set>"#, &[("PktsOut", 0), ("CopyOut", 0)]),
    ("Hash", r#"<set name="Key">Eth.src</set>"#, &[("PktsOut", 3)]),
    ("Meter", r#"<set name="RatePps">1</set>"#, &[("ConformOut", 0), ("ExceedOut", 0)]),
    (
        "Divert",
        r#"<set name="Agent">a</set><set name="RatePps">3</set><set name="Copy">true</set>"#,
        &[("PassOut", 0)],
    ),
    ("Divert", r#"<set name="Agent">a</set>"#, &[("PassOut", 0)]),
    ("GenericScheduler", "", &[("PktsOut", 0)]),
    ("RedirectOut", "", &[]),
    (
        "LearnSearch",
        r#"<set name="LearnKey">Eth.src</set><set name="LearnValue">meta:PHYPortID</set>
           <set name="SearchKey">Eth.dst</set><set name="ResultMeta">EgressPort</set>
           <set name="AgeSeconds">1</set><set name="ValueLimit">2</set>"#,
        &[("KnownOut", 0), ("UnknownOut", 0), ("SamePortOut", 0)],
    ),
    (
        "LearnSearch",
        r#"<set name="LearnKey">Eth.src Eth.type</set><set name="LearnValue">Eth.type</set>
           <set name="SearchKey">Eth.dst Eth.type</set><set name="MaxEntries">5</set>"#,
        &[("KnownOut", 0), ("UnknownOut", 0), ("SamePortOut", 0)],
    ),
    (
        "State",
        r#"<set name="Key">Eth.src</set><set name="IdleSeconds">1</set><set name="MaxEntries">3</set>
           <set name="DefaultIndex">0</set>
           <row table="Transitions"><c n="From">new</c><c n="On">in:0</c><c n="To">hit</c><c n="OutputIndex">0</c></row>
           <row table="Transitions"><c n="From">hit</c><c n="On">count ge 2</c><c n="To">new</c><c n="OutputIndex">1</c></row>"#,
        &[("PktsOut", 2)],
    ),
    (
        "Scan",
        r#"<row table="Patterns" index="1"><c n="Literal">\x00\x01</c><c n="Offset">4..7</c><c n="OutputIndex">1</c></row>
           <row table="Patterns" index="2"><c n="Literal">\x02\x00</c><c n="OutputIndex">0</c></row>
           <row table="Patterns" index="3"><c n="Literal">a</c><c n="NoCase">true</c><c n="OutputIndex">0</c></row>"#,
        &[("MatchOut", 2), ("CleanOut", 0)],
    ),
    (
        "Scan",
        r#"<set name="Scope">after:Vlan</set><set name="Depth">9</set>
           <row table="Patterns" index="4"><c n="Literal">\x08\x00</c><c n="OutputIndex">0</c></row>
           <row table="Patterns" index="5"><c n="Literal">b</c><c n="OutputIndex">1</c></row>"#,
        &[("MatchOut", 2), ("CleanOut", 0)],
    ),
    (
        "EtherMACIn",
        r#"<set name="AdminStatus">Up</set><set name="PromiscuousMode">true</set>"#,
        &[("NormalPathOut", 0)],
    ),
];

/// Watched events of such blocks.
const WATCHES: &[(&str, &str)] = &[
    ("Count", "PacketsOver"),
    ("LearnSearch", "EntryLearned"),
    ("LearnSearch", "EntryMoved"),
    ("State", "StateChanged"),
    ("Scan", "PatternHit"),
];

/// Number of ports of the element.
pub const PORTS: u32 = 3;

/// Builds a document from block indices in the list and a target for each output. Links only lead
/// forward.
pub fn document(blocks: &[usize], leads: &[u8]) -> String {
    let mut leads = leads.iter().cycle();
    let mut links = String::new();
    let mut link = |from: String, after: usize| {
        let room = blocks.len() - after;
        // A fifth of the outputs have no link, some lead to a port, most to a later block.
        let to = match usize::from(*leads.next().expect("the list is not empty")) {
            lead if lead % 5 == 0 => return,
            lead if lead % 5 == 1 || room == 0 => {
                format!("phy#{}.EtherPHYIn", 1 + lead as u32 % PORTS)
            }
            lead => {
                let at = after + lead / 5 % room;
                match BLOCKS[blocks[at]].0 {
                    "GenericScheduler" | "State" => format!("b{at}.PktsIn[{}]", lead % 2),
                    "EtherMACIn" => format!("b{at}.EtherPktsIn"),
                    _ => format!("b{at}.PktsIn"),
                }
            }
        };
        links.push_str(&format!(r#"<link from="{from}" to="{to}"/>"#));
    };
    let mut instances = String::new();
    let mut watches = String::new();
    for (at, block) in blocks.iter().enumerate().filter(|(at, _)| at % 2 == 0) {
        for (_, event) in WATCHES.iter().filter(|(class, _)| *class == BLOCKS[*block].0) {
            watches.push_str(&format!(r#"<watch lfb="b{at}" event="{event}"/>"#));
        }
    }
    for port in 1..=PORTS {
        link(format!("phy#{port}.EtherPHYOut"), 0);
    }
    for (at, block) in blocks.iter().enumerate() {
        let (class, settings, outputs) = BLOCKS[*block];
        instances.push_str(&format!(r#"<lfb id="b{at}" class="{class}">{settings}</lfb>"#));
        for (output, group) in outputs {
            if *group == 0 {
                link(format!("b{at}.{output}"), at + 1);
            }
            (0..*group).for_each(|index| link(format!("b{at}.{output}[{index}]"), at + 1));
        }
    }
    format!(
        r#"<fe xmlns="urn:progfe:fe:1" name="random" revision="1">
        <use library="BaseLFBLibrary"/><use library="ProGFE"/><frames file="ethernet.frames.xml"/>
        <ports><port id="1"/><port id="2"/><port id="3"/></ports><instances>
        <lfb id="phy" class="EtherPHYCop" instances="1..3"><set name="AdminStatus">Up</set></lfb>
        {instances}</instances><links>{links}</links>
        <agents><agent name="a" type="process"/></agents>{watches}</fe>"#
    )
}

pub fn program(text: &str) -> Option<Program> {
    Program::load(&Source::new("random", text), &no_files).0
}

pub fn frames() -> impl Strategy<Value = Vec<(u32, Vec<u8>)>> {
    let address = (0u8..4).prop_map(|last| [2, 0, 0, 0, 0, last]);
    let kind = prop_oneof![
        Just(vec![0x08, 0x00]),
        Just(vec![0x81, 0x00, 0x00, 0x07, 0x08, 0x00]),
        Just(vec![0x99, 0x99])
    ];
    let rest = proptest::collection::vec(any::<u8>(), 0..60);
    let frame = (address.clone(), address, kind, rest)
        .prop_map(|(to, from, kind, rest)| [&to[..], &from, &kind, &rest].concat());
    let any = proptest::collection::vec(any::<u8>(), 0..20);
    let frame = prop_oneof![9 => frame, 1 => any];
    proptest::collection::vec((1..=PORTS + 1, frame), 1..30)
}
