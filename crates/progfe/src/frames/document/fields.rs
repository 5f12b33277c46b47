//! Fields and repeated parts of a definition, and their expressions.

use roxmltree::Node;

use crate::diagnostic::Code;
use crate::frames::{
    COUNTED_BITS_MAX, Checksum, Expression, Field, ITEMS_MAX, Item, ROUNDS_MAX, Repeat, Variable,
    Width,
};
use crate::literal;
use crate::xml::Reader;

/// Reads an `<f>`. Its expressions may use preceding fields.
pub fn field(
    reader: &mut Reader<'_, '_>,
    node: Node<'_, '_>,
    items: &[Item],
    round: Option<&[Field]>,
) -> Option<Field> {
    const KNOWN: &[&str] =
        &["n", "b", "bytes", "rest", "max", "when", "is", "set", "checksum", "pseudo"];
    reader.only(node, KNOWN);
    let name = reader.required(node, "n")?.to_owned();
    let taken = match round {
        Some(fields) => fields.iter().any(|field| field.name == name),
        None => items.iter().any(|item| item.name() == name),
    };
    if !is_name(&name) || taken {
        let what = if taken { "duplicate name" } else { "invalid name" };
        let what = format!("{what} \"{name}\"");
        reader.wrong(
            Code::FrameName,
            node,
            &name,
            what,
            "use letters, digits and _, but no keyword of conditions",
        );
        return None;
    }
    let given = ["b", "bytes", "rest"].into_iter().filter(|name| node.has_attribute(*name));
    let width = match given.collect::<Vec<_>>()[..] {
        ["b"] => match reader.number(node, "b")? {
            bits @ 1..=128 => Width::Bits(bits as u16),
            bits => {
                let what = format!("{bits} bits is not between 1 and 128");
                let place = reader.place_of(node, "b");
                let hint = "write longer fields with bytes=\"...\"";
                reader.problems.add(Code::FrameField, &place, name, what, hint);
                return None;
            }
        },
        ["bytes"] => {
            let max = reader.number_u32(node, "max");
            Width::Bytes { length: expression(reader, node, "bytes", items, round)?, max }
        }
        ["rest"] => Width::Rest,
        _ => {
            let what = format!("\"{name}\" needs one of b, bytes and rest");
            reader.wrong(Code::FrameField, node, &name, what, "");
            return None;
        }
    };
    let when = expression(reader, node, "when", items, round);
    let [is, preset] = ["is", "set"].map(|attribute| {
        let text = node.attribute(attribute)?;
        let value = literal::read(text).map(|literal| literal.value);
        if value.is_none() {
            reader.wrong_value(node, attribute, format!("invalid value \"{text}\""), "");
        }
        value
    });
    let checksum = node.attribute("checksum").and_then(|kind| {
        let found = Checksum::by_name(kind);
        if found.is_none() {
            let hint = "use inet, inet-all, udp, tcp, icmp6 or pseudo:PROTOCOL";
            reader.wrong_value(node, "checksum", format!("unknown checksum \"{kind}\""), hint);
        }
        found
    });
    let pseudo = node.attribute("pseudo") == Some("true");
    let place = reader.place(node);
    Some(Field { name, width, when, is, preset, checksum, pseudo, place })
}

/// Reads a `<repeat>`.
pub fn repeat(reader: &mut Reader<'_, '_>, node: Node<'_, '_>, items: &[Item]) -> Option<Repeat> {
    reader.only(node, &["n", "bytes", "count", "until", "max"]);
    let name = reader.required(node, "n")?.to_owned();
    if !is_name(&name) || items.iter().any(|item| item.name() == name) {
        let what = format!("duplicate or invalid name \"{name}\"");
        reader.wrong(
            Code::FrameName,
            node,
            &name,
            what,
            "use letters, digits and _, but no keyword of conditions",
        );
        return None;
    }
    let [bytes, count] =
        ["bytes", "count"].map(|attribute| expression(reader, node, attribute, items, None));
    let mut fields: Vec<Field> = Vec::new();
    for child in reader.children(node) {
        match child.tag_name().name() {
            "f" if fields.len() < ITEMS_MAX => {
                fields.extend(field(reader, child, items, Some(&fields)));
            }
            _ => reader.unknown(child, "use <f>, up to 256 times"),
        }
    }
    let until = expression(reader, node, "until", items, Some(&fields));
    let max = match reader.number(node, "max") {
        None => ROUNDS_MAX,
        Some(max) if (1..=u128::from(ROUNDS_MAX)).contains(&max) => max as u16,
        Some(_) => {
            reader.wrong_value(node, "max", format!("max is not between 1 and {ROUNDS_MAX}"), "");
            ROUNDS_MAX
        }
    };
    let place = reader.place(node);
    Some(Repeat { name, fields, bytes, count, until, max, place })
}

/// Reads an optional attribute with an expression.
pub fn expression(
    reader: &mut Reader<'_, '_>,
    node: Node<'_, '_>,
    attribute: &str,
    items: &[Item],
    round: Option<&[Field]>,
) -> Option<Expression> {
    let text = node.attribute(attribute)?;
    let countable = |field: &Field| match field.width {
        Width::Bits(bits) if bits <= COUNTED_BITS_MAX => Ok(()),
        _ => Err(format!("\"{}\" is longer than {COUNTED_BITS_MAX} bits", field.name)),
    };
    let resolve = |name: &str| {
        let inner = round.and_then(|fields| fields.iter().position(|field| field.name == name));
        if let (Some(at), Some(fields)) = (inner, round) {
            return countable(&fields[at]).map(|()| Variable::Round(at as u16));
        }
        let found = items.iter().enumerate().find(|(_, item)| item.name() == name);
        match found.map(|(at, item)| (at, item.field())) {
            Some((at, Some(field))) => countable(field).map(|()| Variable::Item(at as u16)),
            Some((_, None)) => Err(format!("\"{name}\" is a repeated part")),
            None => Err(format!("no previous field \"{name}\"")),
        }
    };
    match Expression::parse(text, &resolve) {
        Ok(expression) => Some(expression),
        Err(error) => {
            let start = node.attribute_node(attribute).map_or(0, |found| found.range_value().start);
            let place = reader.source.place(start + error.at);
            reader.problems.add(Code::FrameField, &place, "", error.what, "");
            None
        }
    }
}

/// Returns true for a valid name: references, conditions and expressions parse it as one word.
pub fn is_name(name: &str) -> bool {
    const WORDS: &[&str] = &["and", "or", "not", "in", "lt", "le", "gt", "ge", "ne", "meta"];
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && name.len() <= 64
        && !WORDS.contains(&name)
}
