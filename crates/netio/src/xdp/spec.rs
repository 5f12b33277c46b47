//! Specification of an xdp port:
//! `INTERFACE[,queues=N][,mode=auto|native|generic][,copy=auto|zero-copy|copy][,ring=SLOTS]`
//! `[,stamps=none|kernel][,busy-poll[=FRAMES]][,small-pages]`.

use ebpf::XdpMode;

/// Maximum number of queues of an interface that a port uses.
pub const QUEUES_MAX: u32 = 64;

/// Range of the number of slots of a ring.
const SLOTS: std::ops::RangeInclusive<u32> = 64..=16384;

/// Default busy-poll budget in frames.
const BUSY_POLL_FRAMES: u16 = 64;

/// An xdp port's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The interface's name.
    pub interface: String,
    /// Number of receive queues to use, from the first one on (default: all). Frames of other
    /// queues go to the kernel's network stack.
    pub queues: Option<u32>,
    /// XDP mode (default: native if the driver supports it, else generic).
    pub mode: Option<XdpMode>,
    /// Whether zero-copy mode is required (true) or disabled (false) (default: used if available).
    pub zero_copy: Option<bool>,
    /// Slots of each ring, a power of two (default: 2048).
    pub slots: u32,
    /// Whether the kernel timestamps received frames when it takes them from the driver.
    pub stamps: bool,
    /// If set, this process busy-polls the interface, with this budget in frames.
    pub busy_poll: Option<u16>,
    /// Whether the memory uses huge pages if some are free.
    pub huge_pages: bool,
}

impl Spec {
    /// Returns the defaults for this interface.
    pub fn new(interface: impl Into<String>) -> Self {
        Spec {
            interface: interface.into(),
            queues: None,
            mode: None,
            zero_copy: None,
            slots: 2048,
            stamps: false,
            busy_poll: None,
            huge_pages: true,
        }
    }

    /// Parses the text after `xdp:`, or returns the reason for rejecting it.
    pub fn parse(spec: &str) -> Result<Spec, &'static str> {
        let mut words = spec.split(',');
        let interface = words.next().unwrap_or_default();
        if interface.is_empty() || interface.contains('=') {
            return Err("missing interface name (hint: write xdp:INTERFACE[,queues=N]...)");
        }
        let mut parsed = Spec::new(interface);
        for word in words {
            match word.split_once('=') {
                Some((key, value)) => parsed.set(key, value)?,
                None if word == "busy-poll" => parsed.busy_poll = Some(BUSY_POLL_FRAMES),
                None if word == "small-pages" => parsed.huge_pages = false,
                None => return Err(KNOWN),
            }
        }
        Ok(parsed)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), &'static str> {
        match key {
            "queues" => {
                let queues = value.parse().ok().filter(|queues| (1..=QUEUES_MAX).contains(queues));
                self.queues = Some(queues.ok_or("invalid number of queues (hint: use 1 to 64)")?);
            }
            "mode" => {
                self.mode = match value {
                    "auto" => None,
                    "native" => Some(XdpMode::Native),
                    "generic" => Some(XdpMode::Generic),
                    _ => return Err("invalid mode (hint: use auto, native or generic)"),
                };
            }
            "copy" => {
                self.zero_copy = match value {
                    "auto" => None,
                    "zero-copy" => Some(true),
                    "copy" => Some(false),
                    _ => return Err("invalid copy (hint: use auto, zero-copy or copy)"),
                };
            }
            "ring" => {
                self.slots = value.parse().unwrap_or(0);
                if !self.slots.is_power_of_two() || !SLOTS.contains(&self.slots) {
                    return Err(
                        "invalid ring (hint: use a power of two from 64 to 16384, the slots of \
                         each ring)",
                    );
                }
            }
            "stamps" => {
                self.stamps = match value {
                    "none" => false,
                    "kernel" => true,
                    _ => return Err("invalid stamps (hint: use none or kernel)"),
                };
            }
            "busy-poll" => {
                let frames = value.parse().ok().filter(|frames| *frames > 0);
                self.busy_poll =
                    Some(frames.ok_or("invalid busy-poll (hint: use 1 to 65535 frames per poll)")?);
            }
            _ => return Err(KNOWN),
        }
        Ok(())
    }
}

const KNOWN: &str = "unknown option (hint: use queues=N, mode=auto|native|generic, \
    copy=auto|zero-copy|copy, ring=SLOTS, stamps=none|kernel, busy-poll[=FRAMES] or small-pages)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specifications_are_parsed() {
        assert_eq!(Spec::parse("eth0"), Ok(Spec::new("eth0")));
        let all = "v1,queues=4,mode=native,copy=copy,ring=512,stamps=kernel,busy-poll,small-pages";
        let expected = Spec {
            interface: "v1".into(),
            queues: Some(4),
            mode: Some(XdpMode::Native),
            zero_copy: Some(false),
            slots: 512,
            stamps: true,
            busy_poll: Some(64),
            huge_pages: false,
        };
        assert_eq!(Spec::parse(all), Ok(expected));
        let auto = Spec::parse("v1,mode=auto,copy=auto,stamps=none,busy-poll=256");
        assert_eq!(auto, Ok(Spec { busy_poll: Some(256), ..Spec::new("v1") }));
    }

    #[test]
    fn invalid_specifications_are_reported() {
        for (spec, word) in [
            ("", "missing interface name"),
            ("queues=3", "missing interface name"),
            ("e,queues=0", "1 to 64"),
            ("e,queues=65", "1 to 64"),
            ("e,mode=skb", "auto, native or generic"),
            ("e,copy=zero", "auto, zero-copy or copy"),
            ("e,ring=1000", "power of two"),
            ("e,ring=32", "power of two"),
            ("e,ring=32768", "power of two"),
            ("e,stamps=hw", "none or kernel"),
            ("e,busy-poll=0", "1 to 65535"),
            ("e,busy-poll=65536", "1 to 65535"),
            ("e,fast", "unknown option"),
            ("e,mtu=3", "unknown option"),
            ("e,", "unknown option"),
        ] {
            let error = Spec::parse(spec).expect_err(spec);
            assert!(error.contains(word), "{spec:?} gives {error:?}, which lacks {word:?}");
        }
    }
}
