//! Writer for definitions in XML. Reading the output gives an equal set.

use std::fmt::Write;

use crate::frames::{Field, Format, FrameSet, Item, Next, On, ROUNDS_MAX, Width};
use crate::xml::escape;

impl FrameSet {
    /// Writes a `<frames>` element, indented by `indent` spaces, with a final newline.
    pub fn to_xml(&self, indent: usize) -> String {
        let pad = " ".repeat(indent);
        let start = match self.start {
            Some(id) => format!(" start=\"{}\"", escape(&self.format(id).name)),
            None => String::new(),
        };
        let mut xml = format!("{pad}<frames{start}>\n");
        for (_, format) in self.formats() {
            self.frame(&mut xml, format, &format!("{pad}  "));
        }
        let _ = writeln!(xml, "{pad}</frames>");
        xml
    }

    fn frame(&self, xml: &mut String, format: &Format, pad: &str) {
        let _ = write!(xml, "{pad}<frame name=\"{}\"", escape(&format.name));
        attribute(xml, "total", format.total.as_ref());
        attribute(xml, "ends", format.ends.as_ref());
        xml.push_str(">\n");
        for item in &format.items {
            match item {
                Item::Field(one) => field(xml, one, &format!("{pad}  ")),
                Item::Repeat(repeat) => {
                    let _ = write!(xml, "{pad}  <repeat n=\"{}\"", escape(&repeat.name));
                    attribute(xml, "bytes", repeat.bytes.as_ref());
                    attribute(xml, "count", repeat.count.as_ref());
                    attribute(xml, "until", repeat.until.as_ref());
                    attribute(xml, "max", Some(repeat.max).filter(|max| *max != ROUNDS_MAX));
                    xml.push_str(">\n");
                    for one in &repeat.fields {
                        field(xml, one, &format!("{pad}    "));
                    }
                    let _ = writeln!(xml, "{pad}  </repeat>");
                }
            }
        }
        for next in &format.next {
            self.next(xml, format, next, &format!("{pad}  "));
        }
        let _ = writeln!(xml, "{pad}</frame>");
    }

    fn next(&self, xml: &mut String, format: &Format, next: &Next, pad: &str) {
        let name = |id| escape(&self.format(id).name);
        let _ = match next.on {
            On::Field(item) => {
                write!(xml, "{pad}<next on=\"{}\"", escape(format.items[usize::from(item)].name()))
            }
            On::Peek(bits) => write!(xml, "{pad}<next peek=\"{bits}\""),
            On::Always => {
                let frame = next.default.map(name).unwrap_or_default();
                write!(xml, "{pad}<next frame=\"{frame}\"")
            }
        };
        attribute(xml, "like", next.like.map(name));
        attribute(xml, "unless", next.unless.as_ref());
        xml.push_str(">\n");
        for case in next.cases.iter().filter(|case| case.own) {
            let _ = match case.low == case.high {
                true => write!(xml, "{pad}  <case v=\"0x{:x}\"", case.low),
                false => write!(xml, "{pad}  <case v=\"{}..{}\"", case.low, case.high),
            };
            let _ = writeln!(xml, " frame=\"{}\"/>", name(case.format));
        }
        if let Some(default) = next.default.filter(|_| next.on != On::Always) {
            let _ = writeln!(xml, "{pad}  <default frame=\"{}\"/>", name(default));
        }
        let _ = writeln!(xml, "{pad}</next>");
    }
}

fn field(xml: &mut String, field: &Field, pad: &str) {
    let _ = write!(xml, "{pad}<f n=\"{}\"", escape(&field.name));
    match &field.width {
        Width::Bits(bits) => attribute(xml, "b", Some(bits)),
        Width::Bytes { length, max } => {
            attribute(xml, "bytes", Some(length));
            attribute(xml, "max", max.as_ref());
        }
        Width::Rest => attribute(xml, "rest", Some("true")),
    }
    attribute(xml, "when", field.when.as_ref());
    attribute(xml, "is", field.is.map(|value| format!("0x{value:x}")));
    attribute(xml, "set", field.preset.map(|value| format!("0x{value:x}")));
    attribute(xml, "checksum", field.checksum.map(|kind| kind.name()));
    attribute(xml, "pseudo", field.pseudo.then_some("true"));
    xml.push_str("/>\n");
}

fn attribute(xml: &mut String, name: &str, value: Option<impl ToString>) {
    if let Some(value) = value {
        let _ = write!(xml, " {name}=\"{}\"", escape(&value.to_string()));
    }
}
