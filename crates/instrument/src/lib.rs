//! The measuring side: what is sent, what came back, and what that says.
//!
//! Modules are listed in the order in which a measurement meets them. The instrument knows no
//! switch from the inside: it meets its target on wires, and shares with our own forwarder only
//! frames, control messages and ports. Everything that decides is pure; time and seeds are
//! arguments; I/O goes through `ports`.

/// An experiment is a pure state machine that yields steps and digests outcomes.
pub mod experiment;
/// Frames alike but for a few varying fields, at a constant rate, from one port to another.
pub mod stream;
/// The frames of a capture file, sent again.
pub mod replay;
/// One offered load, and everything that was seen of it.
pub mod trial;
/// Where every frame went.
pub mod account;
/// Whoever runs trials: live or simulated.
pub mod rig;
/// Searches for a load.
pub mod search;
/// Getting frames out on time.
pub mod generate;
/// The tester measures itself first.
pub mod calibrate;
/// The signature that every test frame carries.
pub mod signature;
/// Sorting what comes back.
pub mod monitor;
/// Frames as they arrive, filtered, counted and kept.
pub mod capture;
/// Whether the tester was at its work.
pub mod stall;
/// What a trial in progress has counted so far.
pub mod gauge;
/// A test controller.
pub mod controller;
/// A control element that speaks ForCES.
pub mod control_element;
/// A measurement that reacts to what happens.
pub mod module;
/// Whoever carries a module out: live or simulated.
pub mod stage;
/// What the tester's controller can say and hear.
pub mod ceiling;
/// What passes between a controller and a switch, forwarded and timed.
pub mod proxy;
/// How well the tester's clock goes.
pub mod clock;
/// Repeatable scatter.
mod mix;
/// The frames of a batch by stream.
mod grouping;
