//! Roles of controllers, asked for as each version does.
//!
//! Source: OpenFlow 1.2 section A.3.9 and later; 1.0 has roles by Nicira's extension (NXT_ROLE_REQUEST), in which
//! equal is called other, and nobody counts elections; 1.1 has none. Invariant: a switch that refuses the extension is asked
//! once, and then is one without roles.

use instrument::module::Desk;
use openflow::codec::nicira::put_message;
use openflow::model::message::Message;
use openflow::model::nicira::NiciraMessage;
use openflow::model::{Role, RoleRequest};
use openflow::version::Version;

use super::Session;

impl Session {
    /// Whether there are roles.
    pub(super) fn has_roles(&self) -> bool {
        match self.version {
            Version::V1_0 => !self.is_roleless,
            version => version >= Version::V1_2,
        }
    }

    /// Asks for a role on a connection that is up.
    pub(super) fn role(&mut self, connection: usize, role: Role, desk: &mut Desk) {
        if !self.has_roles() || !self.joined.contains(&connection) {
            return;
        }
        let message = match self.version {
            Version::V1_0 => {
                put_message(&NiciraMessage::RoleRequest(role)).map(Message::Experimenter)
            }
            _ => {
                let generation = self.generation;
                Ok(Message::RoleRequest(RoleRequest { role, generation, ..RoleRequest::default() }))
            }
        };
        if let Ok(message) = message {
            self.asking.ask(desk, connection, vec![message]);
        }
    }
}
