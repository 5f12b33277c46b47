//! Measurement modules: experiments that react to each frame and each message.
//!
//! Source: the OFLOPS-SUME paper, section III, and the modules of the OFLOPS family (`docs/oflops.md`). A
//! module is a file: what it claims, how it goes, its parameters, and a test in virtual time. It does
//! no I/O and reads no clock (`instrument::module`), so that it runs live and simulated.

/// A module carried out at several points, again and again.
pub mod rounds;
/// A switch that fell silent is waited for, and emptied.
pub mod recovery;
/// Many values as a few.
pub mod spread;
/// Rules that differ by an address, and their probes.
pub mod rules;
/// When each rule began to act.
pub mod activation;
/// Probes where rules are coming to act.
pub mod focus;
/// What insertions and moves cost.
pub mod moves;
/// Rules that wait for a frame.
pub mod first_frames;
/// How long rules take to act, and what the barrier says.
pub mod rule_activation;
/// Rule activation as an experiment: its parameters and points.
pub mod updates;
/// Questions to a switch and how long their answers take.
pub mod asking;
/// Kinds of statistics.
pub mod statistics;
/// How long each kind of statistics takes.
pub mod stats_delay;
/// How long frames stay out of sight in counters.
pub mod counter_staleness;
/// What statistics and updates cost each other.
pub mod stats_and_updates;
/// What rule churn and statistics cost frames.
pub mod flow_churn;
/// Port statistics at rising rates.
pub mod port_stats_rate;
/// How true time-outs of rules are.
pub mod flow_timeouts;
/// Rules that are changed while frames run.
pub mod changing;
/// How frames are treated while rules are changed.
pub mod update_transient;
/// How long flows go on after they were to stop.
pub mod blackhole;
/// Flows over several switches.
pub mod path_setup;
/// Frames that pass rules side by side.
pub mod passage;
/// What a switch says of itself.
pub mod describing;
/// Statistics asked for again and again while frames run.
pub mod polling;
/// Packets there and back.
pub mod round_trip;
/// Verdict about a rule by its frames.
pub mod verdict;
/// Forwarding latency, queue delay and table lookup.
pub mod forwarding;
/// Every action, and what it is to make of frames.
pub mod deeds;
/// What actions cost frames, and whether they are done.
pub mod acting;
/// Which combinations of match fields a switch takes.
pub mod match_tuples;
/// How many rules a switch takes, and whether each is at work.
pub mod table_capacity;
/// What a switch does when controllers come, go and change roles.
pub mod session;
/// Session behaviour as an experiment: its parameters and points.
pub mod sessions;
/// The highest rates at which nothing is lost, and at all.
pub mod highest;
/// The rate that goes on under more than it.
pub mod sustained;
/// Frames that no rule takes.
pub mod misses;
/// Frames at the controller as experiments: their parameters and points.
pub mod packets;
/// Connections by TCP.
pub mod tcp;
/// Things that are said at a rate.
pub mod paced;
/// Frames that the controller has the switch send.
pub mod packet_out;
/// How long signs of life take.
pub mod echo_delay;
/// Errors that nobody asked for.
pub mod refusals;
/// How long the switch takes to refuse.
pub mod error_delay;
/// How many rules a second are changed.
pub mod update_rate;
/// How many control messages a second.
pub mod control_rate;
/// What becomes of a switch near the most messages that it does.
pub mod endurance;
/// The longest silence of a stream.
pub mod silence;
/// Control work that ends by itself.
pub mod control_load;
/// The longest silence of forwarded frames while a control load runs.
pub mod control_stall;
/// Control stall as an experiment: its parameters and points.
pub mod stalls;
/// What a switch does for one controller while another abuses it.
pub mod abuse;
