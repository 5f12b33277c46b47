//! OpenFlow messages as JSON, as scripts send and receive them.
//!
//! A message is an object whose "type" is the name of its kind. Missing keys have the values of
//! [`FlowMod::default`](openflow::model::FlowMod) and similar types. Invariants:
//! - Every kind that a controller may send has a form here, and so has every action, instruction
//!   and multipart request of the codec. The compiler and [`forms`] ensure this.
//! - An unknown key is an error, since a typo would change the measurement.

mod bundles;
mod flows;
pub mod forms;
mod groups;
pub mod keys;
mod settings;
mod statistics;
mod tables;
pub mod told;

use openflow::model::message::{ErrorMessage, Hello, Message};
use openflow::model::reserved;
use openflow::version::{ErrorCode, MessageKind};
use packet::time::Nanos;
use serde_json::{Value, json};

use super::commands::Names;
use keys::Keys;

pub use told::{counters, told};

/// Formats bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Parses hexadecimal digits.
pub fn bytes(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    let pairs = (0..text.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

/// Parses a message.
pub fn read(value: &Value, names: &Names, now: Nanos) -> Result<Message, String> {
    let object = value.as_object().ok_or("not an object")?;
    let name = object.get("type").and_then(Value::as_str).ok_or("type is missing")?;
    let mut keys = Keys::of(value, name)?;
    keys.take("type");
    let known = MessageKind::ALL.iter().find(|kind| kind.name() == name);
    let kind = known.ok_or_else(|| format!("unknown message {name:?}"))?;
    let message = match kind {
        MessageKind::Hello => {
            let has_versions = keys.look("versions").is_some();
            let versions = has_versions.then(|| keys.number("versions", 0)).transpose()?;
            Message::Hello(Hello { versions, others: Vec::new() })
        }
        MessageKind::Error => Message::Error(error(&mut keys)?),
        MessageKind::EchoRequest => Message::EchoRequest(keys.data("data")?),
        MessageKind::EchoReply => Message::EchoReply(keys.data("data")?),
        MessageKind::Experimenter => Message::Experimenter(keys::experimenter(&mut keys)?),
        MessageKind::FeaturesRequest => Message::FeaturesRequest,
        MessageKind::GetConfigRequest => Message::GetConfigRequest,
        MessageKind::SetConfig => Message::SetConfig(settings::set_config(&mut keys)?),
        MessageKind::PacketOut => Message::PacketOut(flows::packet_out(&mut keys, names, now)?),
        MessageKind::FlowMod => Message::FlowMod(flows::flow_mod(&mut keys)?),
        MessageKind::PortMod => Message::PortMod(settings::port_mod(&mut keys)?),
        MessageKind::MultipartRequest => Message::MultipartRequest(statistics::request(&mut keys)?),
        MessageKind::BarrierRequest => Message::BarrierRequest,
        MessageKind::QueueGetConfigRequest => {
            Message::QueueGetConfigRequest(keys.port("port", reserved::NONE)?)
        }
        MessageKind::GroupMod => Message::GroupMod(groups::group_mod(&mut keys)?),
        MessageKind::TableMod => Message::TableMod(settings::table_mod(&mut keys)?),
        MessageKind::RoleRequest => Message::RoleRequest(settings::role_request(&mut keys)?),
        MessageKind::GetAsyncRequest => Message::GetAsyncRequest,
        MessageKind::SetAsync => Message::SetAsync(settings::async_config(&mut keys)?),
        MessageKind::MeterMod => Message::MeterMod(groups::meter_mod(&mut keys)?),
        MessageKind::BundleControl => Message::BundleControl(bundles::control(&mut keys)?),
        MessageKind::BundleAddMessage => {
            Message::BundleAddMessage(bundles::add(&mut keys, names, now)?)
        }
        MessageKind::FeaturesReply
        | MessageKind::GetConfigReply
        | MessageKind::PacketIn
        | MessageKind::FlowRemoved
        | MessageKind::PortStatus
        | MessageKind::MultipartReply
        | MessageKind::BarrierReply
        | MessageKind::QueueGetConfigReply
        | MessageKind::RoleReply
        | MessageKind::GetAsyncReply
        | MessageKind::RoleStatus
        | MessageKind::TableStatus
        | MessageKind::RequestForward
        | MessageKind::ControllerStatus => {
            return Err(format!("{name} is sent by switches only (hint: send its bytes by raw)"));
        }
    };
    keys.all_taken()?;
    Ok(message)
}

fn error(keys: &mut Keys<'_>) -> Result<ErrorMessage, String> {
    let code = keys.take("code").ok_or("code is missing")?;
    let named = |it: &&ErrorCode| code.as_str() == Some(it.to_string().as_str());
    let code = ErrorCode::ALL.iter().find(named).copied();
    let code = code.ok_or("unknown code")?;
    Ok(ErrorMessage { code, data: keys.data("data")? })
}

/// Writes a message with its kind as "type".
pub fn typed(message: &Message) -> Value {
    let mut value = json!({ "type": message.kind().name() });
    if let (Value::Object(all), Value::Object(body)) = (&mut value, told(message)) {
        all.extend(body);
    }
    value
}

#[cfg(test)]
mod tests {
    use openflow::version::{ActionKind, End, InstructionKind, MultipartKind, Version};

    use super::super::flow;
    use super::*;

    fn check(value: Value, wanted: &str) {
        let result = match read(&value, &Names::default(), Nanos(0)) {
            Ok(message) => message.to_string(),
            Err(why) => format!("error: {why}"),
        };
        assert_eq!(result, wanted, "{value}");
    }

    #[test]
    fn script_messages_are_decoded_or_give_an_error_with_a_reason() {
        check(json!({"type": "barrier_request"}), "barrier_request");
        check(json!({"type": "echo_request", "data": "00ff"}), "echo_request data=2:00ff");
        check(
            json!({
                "type": "flow_mod", "priority": 7, "flags": ["check_overlap"],
                "match": {"eth_type": 0x800, "ipv4_dst": "10.1.2.3/16", "eth_src": "02:00:00:00:00:01"},
                "actions": [{"set_field": {"ipv4_src": "1.2.3.4"}}, {"output": 2}, "pop_vlan"],
            }),
            "flow_mod add table=0 priority=7 match=eth_src=02:00:00:00:00:01,eth_type=0x0800,\
             ipv4_dst=10.1.0.0/16 cookie=0x0 idle_timeout=0s hard_timeout=0s flags=check_overlap \
             actions=set_field:ipv4_src=1.2.3.4,output:2,pop_vlan",
        );
        check(
            json!({"type": "flow_mod", "prioriti": 7}),
            "error: flow_mod does not support \"prioriti\"",
        );
        check(
            json!({"type": "flow_mod", "priority": 70000}),
            "error: priority must be an integer in its range: 70000",
        );
        check(
            json!({"type": "flow_mod", "match": {"ipv4_dts": "1.2.3.4"}}),
            "error: unknown field \"ipv4_dts\"",
        );
        check(json!({"type": "hallo"}), "error: unknown message \"hallo\"");
        check(
            json!({"type": "packet_in"}),
            "error: packet_in is sent by switches only (hint: send its bytes by raw)",
        );
        check(
            json!({"type": "flow_mod", "actions": [{"output": {"port": "controller", "maxlen": 1}}]}),
            "error: output does not support \"maxlen\"",
        );
        check(json!({"type": "multipart_request", "of": "table"}), "multipart_request table");
    }

    /// Parses an example.
    fn example(text: &str) -> Message {
        let value: Value = serde_json::from_str(text).unwrap();
        read(&value, &Names::default(), Nanos(0)).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    /// Returns a flow-mod with this example in its actions or instructions.
    fn flow_mod(key: &str, text: &str) -> openflow::model::FlowMod {
        let message = example(&format!("{{\"type\": \"flow_mod\", \"{key}\": [{text}]}}"));
        let Message::FlowMod(change) = message else { panic!("{text}") };
        change
    }

    #[test]
    fn every_controller_message_of_the_codec_has_a_script_form() {
        for kind in MessageKind::ALL {
            let is_from_switch = kind.sender() == Some(End::Switch);
            match forms::message(*kind) {
                Some(text) => assert_eq!(example(text).kind(), *kind, "{text}"),
                None => assert!(is_from_switch, "{kind} has no form"),
            }
        }
        for kind in MultipartKind::ALL {
            let Message::MultipartRequest(request) = example(forms::multipart(*kind)) else {
                panic!("{kind}");
            };
            assert_eq!(request.body.kind(), *kind);
        }
    }

    #[test]
    fn every_action_and_instruction_of_the_codec_has_a_form_and_round_trips() {
        for kind in ActionKind::ALL {
            let text = forms::action(*kind);
            let change = flow_mod("actions", text);
            let [action] = openflow::model::Instruction::applied(&change.instructions) else {
                panic!("{text}");
            };
            // OpenFlow 1.0 and 1.1 have an action for each field in place of set-field.
            let sets_field = action.kind() == ActionKind::SetField;
            assert!(action.kind() == *kind || sets_field, "{text}: {action}");
            let reported = flow::actions_told(std::slice::from_ref(action));
            assert_eq!(
                flow::actions(&reported).unwrap(),
                std::slice::from_ref(action),
                "{reported}"
            );
        }
        for kind in InstructionKind::ALL {
            let text = forms::instruction(*kind);
            let change = flow_mod("instructions", text);
            assert_eq!(change.instructions[0].kind(), *kind, "{text}");
            let reported = flow::instructions_told(&change.instructions);
            assert_eq!(flow::instructions(&reported).unwrap(), change.instructions, "{reported}");
        }
    }

    #[test]
    fn forms_of_forwarding_switches_round_trip() {
        for kind in [
            MessageKind::SetConfig,
            MessageKind::GroupMod,
            MessageKind::MeterMod,
            MessageKind::RoleRequest,
            MessageKind::SetAsync,
            MessageKind::BundleControl,
            MessageKind::Experimenter,
            MessageKind::EchoRequest,
        ] {
            let message = example(forms::message(kind).unwrap());
            assert_eq!(example(&typed(&message).to_string()), message);
        }
    }

    /// Checks that at least one protocol version can encode each example.
    #[test]
    fn every_form_is_encoded_by_a_version_that_supports_it() {
        let encodes = |message: &Message| {
            Version::SUPPORTED.iter().any(|version| {
                openflow::codec::encode(*version, 1, message, &mut Vec::new()).is_ok()
            })
        };
        for text in MessageKind::ALL.iter().filter_map(|kind| forms::message(*kind)) {
            assert!(encodes(&example(text)), "{text}");
        }
        for kind in MultipartKind::ALL {
            let text = forms::multipart(*kind);
            assert!(encodes(&example(text)), "{text}");
        }
        for kind in ActionKind::ALL {
            let change = flow_mod("actions", forms::action(*kind));
            assert!(encodes(&Message::FlowMod(change)), "{kind}");
        }
        for kind in InstructionKind::ALL {
            let change = flow_mod("instructions", forms::instruction(*kind));
            assert!(encodes(&Message::FlowMod(change)), "{kind}");
        }
    }
}
