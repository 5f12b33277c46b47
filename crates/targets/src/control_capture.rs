//! Capture of a module's control channel: TCP over the loopback interface of a target's namespace.
//!
//! A target of the lab normally uses a Unix socket, which passes no interface. If timestamps from
//! the wire are requested, its switch also listens on TCP in its namespace, and connections are
//! opened from there.

use channel::{ChannelError, Connecting, Url};
use netio::control_tap::Tap;
use testbed::Site;
use testbed::topology::CONTROL_ADDRESS;
use tester::executor::CONNECT_NS_MAX;
use tester::module::{Module, StageReport};
use tester::rig::Rig;
use tester::rig::live::LiveRig;

use super::veth::lab_error;
use super::{TargetError, scene};
use workload::parameter::control::Capture;

/// The interface of the channel.
const INTERFACE: &str = "lo";

/// Runs a module in real time on the switch of a site.
pub fn stage(
    rig: &mut LiveRig,
    module: &mut dyn Module,
    (site, capture): (&Site, Capture),
) -> Result<StageReport, TargetError> {
    let file = capture == Capture::File;
    let open = || Tap::open(INTERFACE, CONTROL_ADDRESS.port(), file);
    let tap = site.namespace.run(open).map_err(lab_error)?;
    let tap =
        tap.map_err(|error| TargetError::failed("cannot capture the control channel", error))?;
    let url = Url::Tcp(CONTROL_ADDRESS.into());
    let scene = scene(rig.ports());
    let mut report = rig.stage(module, &scene, &mut |_, _| {
        // On a loopback interface, a connection succeeds or fails immediately.
        let connect = || Connecting::wait(&url, CONNECT_NS_MAX);
        let made = site.namespace.run(connect).map_err(|error| ChannelError::System {
            doing: "connect to",
            what: url.to_string(),
            error: std::io::Error::other(error.to_string()),
        })?;
        made.map(|channel| Some(tap.around(channel)))
    });
    settle(&mut report, tap);
    Ok(report)
}

/// Adds the capture to the report of a module.
pub fn settle(report: &mut StageReport, tap: Tap) {
    let tapped = tap.finish();
    if tapped.lost > 0 {
        report.limits.push(("packets that the capture of the control channel holds", tapped.lost));
    }
    if tapped.unwritten > 0 {
        report.limits.push(("FILE_BYTES_MAX", tapped.unwritten));
    }
    report.capture = tapped.file;
}
