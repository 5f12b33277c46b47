//! Opens a port from its command-line specification, `KIND:DETAILS`.
//!
//! Memory ports have no specification. They are created in pairs by the code that links two parts
//! of one process.

use crate::afpacket::{AfPacketPort, Options};
use crate::memif::port::MemifPort;
use crate::memif::spec::Spec;
use crate::pcap::{self, PcapPort};
use crate::port::{Port, PortError};
use crate::tap::TapPort;
use crate::vhost;
use crate::vhost::port::VhostPort;
use crate::xdp;

/// Hint that lists the valid specifications.
const KNOWN: &str = "unknown kind (hint: use afpacket:INTERFACE, xdp:INTERFACE, live:INTERFACE, \
    tap:NAME, memif:PATH, vhost:PATH or pcap:IN.pcap,out=OUT.pcap)";

/// Opens the port that `spec` describes; `options` apply to the kinds that use them.
pub fn open(spec: &str, options: &Options) -> Result<Box<dyn Port>, PortError> {
    let bad = |why| Err(PortError::BadSpec(spec.to_owned(), why));
    let Some((kind, what)) = spec.split_once(':') else { return bad(KNOWN) };
    match kind {
        "afpacket" | "tap" | "live" if what.is_empty() => bad("missing interface name"),
        "afpacket" => Ok(Box::new(AfPacketPort::open(what, options)?)),
        "xdp" => match xdp::spec::Spec::parse(what) {
            Ok(spec) => Ok(Box::new(xdp::port::XdpPort::open(&spec)?)),
            Err(why) => bad(why),
        },
        "live" => match what.split_once(',') {
            None => Ok(Box::new(xdp::live::LivePort::open(what, false)?)),
            Some((name, "receive")) => Ok(Box::new(xdp::live::LivePort::open(name, true)?)),
            Some(_) => bad("the only option of a live port is receive"),
        },
        "tap" => Ok(Box::new(TapPort::open(what)?)),
        "memif" => match Spec::parse(what) {
            Ok(memif) => Ok(Box::new(MemifPort::open(&memif)?)),
            Err(why) => bad(why),
        },
        "vhost" => match vhost::spec::Spec::parse(what) {
            Ok(vhost) => Ok(Box::new(VhostPort::open(&vhost)?)),
            Err(why) => bad(why),
        },
        "pcap" => match pcap::Spec::parse(what) {
            Ok(pcap) => Ok(Box::new(PcapPort::open(&pcap)?)),
            Err(why) => bad(why),
        },
        _ => bad(KNOWN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_port_is_reported_with_the_valid_kinds() {
        for (spec, word) in [
            (
                "",
                "unknown kind (hint: use afpacket:INTERFACE, xdp:INTERFACE, live:INTERFACE, \
                 tap:NAME, memif:PATH, vhost:PATH or pcap:IN.pcap,out=OUT.pcap)",
            ),
            ("eth0", KNOWN),
            ("raw:eth0", KNOWN),
            ("xdp:", "missing interface name"),
            ("xdp:nosuchif0", "there is no interface nosuchif0"),
            ("xdp:lo,mode=fast", "auto, native or generic"),
            ("memif:", "missing socket path"),
            ("memif:/run/x,role=master", "server or client"),
            ("memif:/nowhere/at/all", "cannot listen on /nowhere/at/all#0"),
            ("vhost:", "missing socket path"),
            ("vhost:/nowhere/at/all", "cannot listen on /nowhere/at/all"),
            ("pcap:", "missing file"),
            ("pcap:/nowhere/x.pcap", "/nowhere/x.pcap: No such file"),
            ("pcap:out=/nowhere/x.pcap", "/nowhere/x.pcap: No such file"),
            ("afpacket:", "missing interface name"),
            ("tap:", "missing interface name"),
            ("live:", "missing interface name"),
            ("live:nosuchif0", "there is no interface nosuchif0"),
            ("live:nosuchif0,receive", "there is no interface nosuchif0"),
            ("live:lo,copy=no", "the only option of a live port is receive"),
            ("afpacket:nosuchif0", "there is no interface nosuchif0"),
            ("afpacket:a-name-that-is-too-long", "1 to 15 characters"),
            ("tap:a-name-that-is-too-long", "1 to 15 characters"),
        ] {
            match open(spec, &Options::default()) {
                Ok(_) => panic!("{spec:?} opened"),
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.contains(word), "{spec:?} gives {text:?}, which lacks {word:?}");
                }
            }
        }
    }
}
