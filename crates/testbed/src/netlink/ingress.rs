//! Programs at the ingress of interfaces: tc-BPF classifiers in direct-action mode.
//!
//! Source: Linux `include/uapi/linux/pkt_sched.h` (`clsact`), `include/uapi/linux/pkt_cls.h`
//! (`TCA_BPF_*`).
//!
//! Invariant: a program is removed with its queueing discipline, and that with its interface.

use std::os::fd::RawFd;

use netlink_packet_core::{DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption};

use super::Netlink;
use crate::LabError;

/// The queueing discipline with hooks at ingress and egress, which queues nothing.
const CLSACT: &str = "clsact";
/// `TCA_BPF_FD`, `TCA_BPF_NAME`, `TCA_BPF_FLAGS`, and the flag for direct action.
const FD: u16 = 6;
const NAME: u16 = 7;
const FLAGS: u16 = 8;
const ACT_DIRECT: u32 = 1;
/// The first classifier of an interface, for frames of every type (`ETH_P_ALL`).
const FIRST_FOR_ALL: u32 = 1 << 16 | (3_u16.to_be() as u32);

impl Netlink {
    /// Attaches a program to the ingress of an interface, by its descriptor in this process.
    pub fn ingress_program(
        &mut self,
        interface: u32,
        program: RawFd,
        name: &str,
    ) -> Result<(), LabError> {
        let subject = format!("interface {interface}");
        let flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
        let request = RouteNetlinkMessage::NewQueueDiscipline(discipline(interface));
        self.request("create the ingress hook for a program", &subject, request, flags)?;
        let mut message = TcMessage::default();
        message.header.index = interface as i32;
        message.header.parent = TcHandle { major: u16::MAX, minor: TcHandle::MIN_INGRESS };
        message.header.info = FIRST_FOR_ALL;
        let option = |kind, value: Vec<u8>| TcOption::Other(DefaultNla::new(kind, value));
        message.attributes = vec![
            TcAttribute::Kind("bpf".into()),
            TcAttribute::Options(vec![
                option(FD, (program as u32).to_ne_bytes().to_vec()),
                option(NAME, [name.as_bytes(), &[0]].concat()),
                option(FLAGS, ACT_DIRECT.to_ne_bytes().to_vec()),
            ]),
        ];
        let request = RouteNetlinkMessage::NewTrafficFilter(message);
        self.request("attach a program to the ingress hook", &subject, request, flags)
    }

    /// Detaches an interface's program.
    pub fn ingress_clear(&mut self, interface: u32) -> Result<(), LabError> {
        let request = RouteNetlinkMessage::DelQueueDiscipline(discipline(interface));
        let subject = format!("interface {interface}");
        self.request("remove the program from the ingress hook", &subject, request, NLM_F_ACK)
    }
}

fn discipline(interface: u32) -> TcMessage {
    let mut message = TcMessage::default();
    message.header.index = interface as i32;
    message.header.handle = TcHandle { major: u16::MAX, minor: 0 };
    message.header.parent = TcHandle::CLSACT;
    message.attributes = vec![TcAttribute::Kind(CLSACT.into())];
    message
}
