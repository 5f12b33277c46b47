//! Cases generated from the tables of fields and actions: for each field a hit, a miss, masks,
//! prerequisites, invalid values, and the effect of set-field on a frame.
//!
//! They are text in the language of the case files, so that each can be read and played separately.
//! Source: the table of fields in OpenFlow 1.3.5 section 7.2.3.7 and its successors.

use std::fmt::Write;

use packet::field::Field;

/// A field, a frame that has it, its value in the frame, another value, and the prerequisites of
/// the match.
struct Row {
    field: Field,
    frame: &'static str,
    has: &'static str,
    other: &'static str,
    /// Bits to match in both values, if a mask is allowed.
    mask: &'static str,
    needs: &'static str,
    /// Words of the frame with the other value, if the field can be set.
    set: Option<&'static str>,
    /// Versions that have it.
    versions: &'static str,
}

macro_rules! rows {
    ($( $field:ident $versions:literal [$needs:literal] $frame:literal
        $has:literal $other:literal / $mask:literal $(=> $set:literal)?; )*) => {
        &[$( Row {
            field: Field::$field,
            frame: $frame,
            has: $has,
            other: $other,
            mask: $mask,
            needs: $needs,
            set: rows!(@set $($set)?),
            versions: $versions,
        }, )*]
    };
    (@set) => { None };
    (@set $set:literal) => { Some($set) };
}

const ROWS: &[Row] = rows! {
    InPort "1.0+" [""] "udp" "1" "3" / "";
    InPhyPort "1.2-1.4" ["in_port=1"] "udp" "1" "3" / "";
    EthDst "1.0+" [""] "udp" "02:00:00:00:00:02" "02:00:00:00:00:f1" / "00:00:00:00:00:0f"
        => "udp eth_dst=02:00:00:00:00:f1";
    EthSrc "1.0+" [""] "udp" "02:00:00:00:00:01" "02:00:00:00:00:f2" / "00:00:00:00:00:0f"
        => "udp eth_src=02:00:00:00:00:f2";
    EthType "1.0+" [""] "udp" "0x0800" "0x0806" / "";
    VlanVid "1.0+" [""] "udp vlan=5/3" "5" "6" / "0x1003" => "udp vlan=6/3";
    VlanPcp "1.0+" ["vlan_vid=any"] "udp vlan=5/3" "3" "4" / "" => "udp vlan=5/4";
    IpDscp "1.0+" ["eth_type=0x0800"] "udp ip_dscp=10" "10" "46" / "" => "udp ip_dscp=46";
    IpDscp "1.0 1.2+" ["eth_type=0x86dd"] "udp6 ip_dscp=10" "10" "46" / "" => "udp6 ip_dscp=46";
    IpEcn "1.2+" ["eth_type=0x0800"] "udp ip_ecn=1" "1" "2" / "" => "udp ip_ecn=2";
    IpEcn "1.2+" ["eth_type=0x86dd"] "udp6 ip_ecn=1" "1" "2" / "" => "udp6 ip_ecn=2";
    IpProto "1.0+" ["eth_type=0x0800"] "udp" "17" "6" / "" => "udp ip_proto=6";
    IpProto "1.0 1.2+" ["eth_type=0x86dd"] "tcp6" "6" "17" / "" => "tcp6 ip_proto=17";
    Ipv4Src "1.0+" ["eth_type=0x0800"] "udp" "10.0.0.1" "10.0.0.242" / "0.0.0.15"
        => "udp ipv4_src=10.0.0.242";
    Ipv4Dst "1.0+" ["eth_type=0x0800"] "tcp" "10.0.0.2" "10.0.0.241" / "0.0.0.15"
        => "tcp ipv4_dst=10.0.0.241";
    TcpSrc "1.0+" ["eth_type=0x0800 ip_proto=6"] "tcp" "1000" "1001" / "" => "tcp tcp_src=1001";
    TcpDst "1.0+" ["eth_type=0x0800 ip_proto=6"] "tcp" "2000" "2001" / "" => "tcp tcp_dst=2001";
    TcpDst "1.0 1.2+" ["eth_type=0x86dd ip_proto=6"] "tcp6" "2000" "2001" / ""
        => "tcp6 tcp_dst=2001";
    UdpSrc "1.0+" ["eth_type=0x0800 ip_proto=17"] "udp" "1000" "1001" / "" => "udp udp_src=1001";
    UdpDst "1.0+" ["eth_type=0x0800 ip_proto=17"] "udp" "2000" "2001" / "" => "udp udp_dst=2001";
    UdpSrc "1.0 1.2+" ["eth_type=0x86dd ip_proto=17"] "udp6" "1000" "1001" / ""
        => "udp6 udp_src=1001";
    SctpSrc "1.1+" ["eth_type=0x0800 ip_proto=132"] "sctp" "1000" "1001" / ""
        => "sctp sctp_src=1001";
    SctpDst "1.1+" ["eth_type=0x0800 ip_proto=132"] "sctp" "2000" "2001" / ""
        => "sctp sctp_dst=2001";
    SctpDst "1.2+" ["eth_type=0x86dd ip_proto=132"] "sctp6" "2000" "2001" / ""
        => "sctp6 sctp_dst=2001";
    Icmpv4Type "1.0+" ["eth_type=0x0800 ip_proto=1"] "icmp" "8" "13" / "";
    Icmpv4Code "1.0+" ["eth_type=0x0800 ip_proto=1"] "icmp icmpv4_code=3" "3" "4" / "";
    ArpOp "1.0+" ["eth_type=0x0806"] "arp" "1" "2" / "";
    ArpSpa "1.0+" ["eth_type=0x0806"] "arp" "10.0.0.1" "10.0.0.242" / "0.0.0.15";
    ArpTpa "1.0+" ["eth_type=0x0806"] "arp" "10.0.0.2" "10.0.0.241" / "0.0.0.15";
    ArpSha "1.2+" ["eth_type=0x0806"] "arp" "02:00:00:00:00:01" "02:00:00:00:00:f2"
        / "00:00:00:00:00:0f" => "arp arp_sha=02:00:00:00:00:f2";
    ArpTha "1.2+" ["eth_type=0x0806"] "arp arp_tha=02:00:00:00:00:02" "02:00:00:00:00:02"
        "02:00:00:00:00:f1" / "00:00:00:00:00:0f" => "arp arp_tha=02:00:00:00:00:f1";
    Ipv6Src "1.2+" ["eth_type=0x86dd"] "udp6" "fd00::1" "fd00::f2" / "::f"
        => "udp6 ipv6_src=fd00::f2";
    Ipv6Dst "1.2+" ["eth_type=0x86dd"] "icmp6" "fd00::2" "fd00::f1" / "::f"
        => "icmp6 ipv6_dst=fd00::f1";
    Ipv6Flabel "1.2+" ["eth_type=0x86dd"] "udp6 ipv6_flabel=0x12345" "0x12345" "0x12346"
        / "" => "udp6 ipv6_flabel=0x12346";
    Icmpv6Type "1.0 1.2+" ["eth_type=0x86dd ip_proto=58"] "icmp6" "128" "129" / ""
        => "icmp6 icmpv6_type=129";
    Icmpv6Code "1.0 1.2+" ["eth_type=0x86dd ip_proto=58"] "icmp6 icmpv6_code=3" "3" "4" / ""
        => "icmp6 icmpv6_code=4";
    Ipv6NdTarget "1.2+" ["eth_type=0x86dd ip_proto=58 icmpv6_type=135"] "ns" "fd00::9"
        "fd00::8" / "" => "ns ipv6_nd_target=fd00::8";
    Ipv6NdSll "1.2+" ["eth_type=0x86dd ip_proto=58 icmpv6_type=135"] "ns"
        "02:00:00:00:00:07" "02:00:00:00:00:08" / "" => "ns ipv6_nd_sll=02:00:00:00:00:08";
    Ipv6NdTll "1.2+" ["eth_type=0x86dd ip_proto=58 icmpv6_type=136"] "na"
        "02:00:00:00:00:07" "02:00:00:00:00:08" / "" => "na ipv6_nd_tll=02:00:00:00:00:08";
    MplsLabel "1.1+" ["eth_type=0x8847"] "udp mpls=77/5/33" "77" "78" / ""
        => "udp mpls=78/5/33";
    MplsTc "1.1+" ["eth_type=0x8847"] "udp mpls=77/5/33" "5" "6" / "" => "udp mpls=77/6/33";
    MplsBos "1.3+" ["eth_type=0x8847"] "udp mpls=77/5/33" "1" "0" / ""
        => "udp mpls=77/5/33/0x8847/0";
    PbbIsid "1.3+" ["eth_type=0x88e7"] "udp pbb=0x123456" "0x123456" "0x123457" / "0x00000f"
        => "udp pbb=0x123457";
    TunnelId "1.3+" [""] "udp" "0" "5" / "";
    Ipv6Exthdr "1.3+" ["eth_type=0x86dd"] "udp6 ext=hop" "0x040" "0x004" / "0x040";
    PbbUca "1.4+" ["eth_type=0x88e7"] "udp pbb=0x123456/1" "1" "0" / ""
        => "udp pbb=0x123456/0";
    TcpFlags "1.5" ["eth_type=0x0800 ip_proto=6"] "tcp tcp_flags=0x012" "0x012" "0x010"
        / "0x002";
    PacketType "1.5" [""] "udp" "0" "0x10800" / "";
};

/// Returns all cases as the text of a case file.
pub fn text() -> String {
    let mut out = String::new();
    for (number, row) in ROWS.iter().enumerate() {
        matching(row, number, &mut out);
        setting(row, number, &mut out);
        refusing(row, number, &mut out);
    }
    out
}

fn head(out: &mut String, name: &str, clauses: &str, versions: &str, covers: &str) {
    let written =
        write!(out, "\ncase {name}\nclause {clauses}\nversions {versions}\ncovers {covers}\n");
    written.expect("writing to a string succeeds");
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

const CLAUSES: &str = "1.0.1/3.4 1.3.5/5.3 1.3.5/7.2.3";

fn matching(row: &Row, number: usize, out: &mut String) {
    let Row { field, frame, has, other, needs, versions, .. } = row;
    let covers = format!("field:{field}");
    head(out, &format!("match_{field}_{number}"), CLAUSES, versions, &covers);
    line(out, "flow add priority=0 match");
    line(out, &format!("flow add priority=9 match {needs} {field}={has} do output:2"));
    line(out, &format!("frame 1 {frame}"));
    line(out, &format!("expect 2 {frame}"));
    // A priority below the first one, so that only the entry's removal makes a difference.
    line(out, &format!("flow delete_strict priority=9 match {needs} {field}={has}"));
    line(out, &format!("frame 1 {frame}"));
    head(out, &format!("no_match_{field}_{number}"), CLAUSES, versions, &covers);
    line(out, "flow add priority=0 match");
    line(out, &format!("flow add priority=9 match {needs} {field}={other} do output:2"));
    line(out, &format!("frame 1 {frame}"));
    line(out, "ask flow");
    line(out, "expect rows 2");
    line(out, &format!("expect row priority=9 {field}="));
    if !row.mask.is_empty() {
        masked(row, number, &covers, out);
    }
}

fn masked(row: &Row, number: usize, covers: &str, out: &mut String) {
    let Row { field, frame, has, other, mask, needs, .. } = row;
    let versions = match field {
        Field::Ipv4Src | Field::Ipv4Dst | Field::EthDst | Field::EthSrc => "1.1+",
        Field::ArpSpa | Field::ArpTpa | Field::VlanVid => "1.2+",
        _ => row.versions,
    };
    let masks = |text: &str| -> Option<u128> {
        let value = crate::words::value(*field, text).ok()?;
        Some(value & crate::words::value(*field, mask).ok()?)
    };
    let (Some(hit), Some(miss)) = (masks(has), masks(other)) else {
        panic!("{field} has an invalid mask")
    };
    for (name, bits, hits) in [("masked", hit, true), ("masked_miss", miss, false)] {
        head(out, &format!("match_{field}_{name}_{number}"), CLAUSES, versions, covers);
        line(out, "flow add priority=0 match");
        let wanted = format!("{needs} {field}={bits:#x}/{mask}");
        line(out, &format!("flow add priority=9 match {wanted} do output:2"));
        line(out, &format!("frame 1 {frame}"));
        if hits {
            line(out, &format!("expect 2 {frame}"));
        }
    }
}

fn setting(row: &Row, number: usize, out: &mut String) {
    let Row { field, frame, other, needs, set: Some(set), .. } = row else { return };
    let covers = format!("set_field:{field} action:set_field");
    // OpenFlow 1.0 and 1.1 have a separate action for some fields only.
    let old = match field {
        Field::EthDst | Field::EthSrc | Field::Ipv4Src | Field::Ipv4Dst => "1.0+",
        Field::IpDscp if *frame == "udp ip_dscp=10" => "1.0+",
        Field::MplsLabel | Field::MplsTc | Field::IpEcn if *frame != "udp6 ip_ecn=1" => "1.1+",
        _ if row.versions < "1.2" => "1.2+",
        _ => row.versions,
    };
    let clauses = "1.0.1/3.3 1.3.5/5.12 1.3.5/7.2.5";
    let act = format!("set_field:{field}={other}");
    let tag = if matches!(field, Field::VlanVid) { "vlan_vid=any" } else { needs };
    for (form, versions, words) in [
        ("apply", old, format!("do {act} output:2")),
        ("write", if old < "1.1" { "1.1+" } else { old }, format!("set {act} output:2")),
    ] {
        head(out, &format!("set_{field}_{form}_{number}"), clauses, versions, &covers);
        line(out, &format!("flow add priority=9 match {tag} {words}"));
        line(out, &format!("frame 1 {frame}"));
        line(out, &format!("expect 2 {set}"));
    }
}

/// The field's number in its class.
fn oxm_number(field: Field) -> u32 {
    match field {
        Field::PbbUca => 41,
        Field::TcpFlags => 42,
        Field::ActsetOutput => 43,
        Field::PacketType => 44,
        field => field as u32,
    }
}

/// Bytes of the field's value.
fn oxm_bytes(field: Field) -> u32 {
    match field {
        Field::Ipv6Flabel | Field::MplsLabel => 4,
        field => field.bits().div_ceil(8),
    }
}

/// The bytes of one field in hexadecimal, with lengths that may be wrong.
fn oxm(field: Field, value: u128, mask: Option<u128>) -> String {
    let bytes = oxm_bytes(field);
    let digits = bytes as usize * 2;
    let length = if mask.is_some() { 2 * bytes } else { bytes };
    let header = 0x8000_0000 | oxm_number(field) << 9 | u32::from(mask.is_some()) << 8 | length;
    let mask = mask.map_or(String::new(), |mask| format!("{mask:0digits$x}"));
    format!("{header:08x}{value:0digits$x}{mask}")
}

/// Returns the bytes of the field's prerequisites.
fn needed(row: &Row) -> String {
    row.needs
        .split_whitespace()
        .map(|word| {
            let wanted =
                crate::words::field_match(word).expect("the table has valid hexadecimal values");
            let mask = (!wanted.is_exact()).then_some(wanted.mask);
            oxm(wanted.field, wanted.value, mask)
        })
        .collect()
}

fn refusing(row: &Row, number: usize, out: &mut String) {
    let Row { field, has, versions, .. } = row;
    let versions = if *versions < "1.2" { "1.2+" } else { versions };
    let clauses = "1.3.5/7.2.3 1.3.5/7.4.4";
    let Ok(value) = crate::words::value(*field, has) else { panic!("{has} is invalid") };
    let needed = needed(row);
    let mut case = |name: &str, error: &str, bytes: String| {
        let covers = format!("field:{field} error:{error}");
        head(out, &format!("{name}_{field}_{number}"), clauses, versions, &covers);
        line(out, &format!("oxm {bytes}"));
        line(out, &format!("expect error {error}"));
    };
    let plain = oxm(*field, value, None);
    case("duplicate", "bad_match/duplicate_field", format!("{needed}{plain}{plain}"));
    if !needed.is_empty() {
        case("without_prerequisite", "bad_match/bad_prerequisite", plain.clone());
    }
    if !field.maskable() && field.bits() > 1 {
        // A mask of all ones would be the same as none.
        let mask = field.ones() & !1;
        let bytes = format!("{needed}{}", oxm(*field, value & mask, Some(mask)));
        case("mask_not_allowed", "bad_match/bad_mask", bytes);
    } else if field.maskable() {
        let mask = field.ones() & !1;
        let bytes = format!("{needed}{}", oxm(*field, value | 1, Some(mask)));
        case("value_bit_outside_mask", "bad_match/bad_wildcards", bytes);
    }
    if field.bits() % 8 != 0 {
        let bytes = format!("{needed}{}", oxm(*field, field.ones() + 1, None));
        case("out_of_range", "bad_match/bad_value", bytes);
    }
    let (header, body) = plain.split_at(8);
    let longer = u32::from_str_radix(header, 16).unwrap_or(0) + 1;
    case("one_byte_too_long", "bad_match/bad_length", format!("{needed}{longer:08x}{body}00"));
}
