//! The tester: traffic generator, analyzer and test controller.
//!
//! Modules are listed in the order in which a measurement uses them.
//!
//! - The tester has no access to a switch's internals. It shares only frames, control messages and
//!   `ports` with this project's own forwarder.
//! - All decisions are pure functions: time and seeds are arguments.
//! - All I/O goes through `ports`.

/// Experiments: pure state machines that yield steps and process their outcomes.
pub mod experiment;
/// Constant-rate streams of frames that differ only in a few fields, between two ports.
pub mod stream;
/// Replay of a capture file's frames.
pub mod replay;
/// Trials: one offered load each, with the resulting counts and delays.
pub mod trial;
/// Frame accounting of a trial.
pub mod account;
/// Rigs: live or simulated executors of trials.
pub mod rig;
/// Searches for a load: binary search and MLRsearch.
pub mod search;
/// Traffic generation: building frames and sending them on schedule.
pub mod generate;
/// Calibration of the tester.
pub mod calibrate;
/// Signature in every test frame.
pub mod signature;
/// Analysis of received test frames.
pub mod monitor;
/// Capture: filters, counts and stores received frames.
pub mod capture;
/// Detection of stalls of the tester.
pub mod stall;
/// Live counters of a trial in progress.
pub mod gauge;
/// Test controller (OpenFlow).
pub mod controller;
/// ForCES control element.
pub mod control_element;
/// Measurement modules: measurements that react to events.
pub mod module;
/// Event loops that drive measurement modules, live or simulated.
pub mod stage;
/// Limits of the tester's control channel.
pub mod ceiling;
/// Control channel proxy: forwards and timestamps messages between controller and switch.
pub mod proxy;
/// Quality of the tester's clock.
pub mod clock;
/// Hash function for reproducible pseudo-random values.
mod mix;
/// Grouping of a batch's frames by stream.
mod grouping;
