//! Role requests of each OpenFlow version.
//!
//! Source: OpenFlow 1.2 section A.3.9 and later. OpenFlow 1.0 has roles through Nicira's extension
//! (NXT_ROLE_REQUEST), which calls equal "other" and has no generation id. OpenFlow 1.1 has no roles.
//!
//! Invariant: the module sends the extension's request once; a switch that rejects it counts as a switch without
//! roles.

use openflow::codec::nicira::put_message;
use openflow::model::message::Message;
use openflow::model::nicira::NiciraMessage;
use openflow::model::{Role, RoleRequest};
use openflow::version::Version;
use tester::module::ModuleContext;

use super::Session;

impl Session {
    /// Returns whether the switch has roles.
    pub(super) fn has_roles(&self) -> bool {
        match self.version {
            Version::V1_0 => !self.is_roleless,
            version => version >= Version::V1_2,
        }
    }

    /// Requests a role on an established connection.
    pub(super) fn role(&mut self, connection: usize, role: Role, context: &mut ModuleContext) {
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
            self.pending.ask(context, connection, vec![message]);
        }
    }
}
