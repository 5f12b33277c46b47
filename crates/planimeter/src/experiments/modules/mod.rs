//! Measurement modules: experiments that react to each frame and each message.
//!
//! Source: the OFLOPS-SUME paper, section III, and the modules of the OFLOPS family (`docs/oflops.md`). One file
//! per module contains its claim, procedure, parameters and a test in virtual time. A module does no I/O and reads
//! no clock (`instrument::module`), so it runs both live and simulated.

/// Repeats a module at several points.
pub mod rounds;
/// Waits for a switch that stopped replying, then clears its tables.
pub mod recovery;
/// Summaries of many values.
pub mod spread;
/// Flow entries that differ by an address, and their probes.
pub mod rules;
/// Activation time of each flow entry.
pub mod activation;
/// Probe schedules focused on entries that are about to activate.
pub mod focus;
/// Cost of inserting and moving table entries.
pub mod moves;
/// Entries that wait for their first frame.
pub mod first_frames;
/// Rule activation delay compared with the barrier reply.
pub mod rule_activation;
/// Parameters and points of the rule activation experiment.
pub mod updates;
/// Requests to a switch and their reply times.
pub mod asking;
/// Types of statistics.
pub mod statistics;
/// Reply time of each type of statistics.
pub mod stats_delay;
/// Delay until frames appear in counters.
pub mod counter_staleness;
/// Effect of statistics and updates on each other.
pub mod stats_and_updates;
/// Effect of rule churn and statistics on forwarded frames.
pub mod flow_churn;
/// Port statistics at increasing request rates.
pub mod port_stats_rate;
/// Accuracy of flow entry timeouts.
pub mod flow_timeouts;
/// Entries that change while frames run.
pub mod changing;
/// Forwarding of frames while entries change.
pub mod update_transient;
/// Time for which flows continue after they should have stopped.
pub mod blackhole;
/// Path setup over several switches.
pub mod path_setup;
/// Frames that pass several entries side by side.
pub mod passage;
/// Description of the switch from its own replies.
pub mod describing;
/// Periodic statistics requests while frames run.
pub mod polling;
/// Round trips of packets through the controller.
pub mod round_trip;
/// Verdict about an entry from its frames.
pub mod verdict;
/// Forwarding latency, queue delay and table lookup.
pub mod forwarding;
/// All actions and their expected effect on frames.
pub mod deeds;
/// Cost of actions and verification of their effect.
pub mod acting;
/// Combinations of match fields that a switch accepts.
pub mod match_tuples;
/// Number of entries that a switch accepts, and whether each entry works.
pub mod table_capacity;
/// Behaviour of a switch when controllers connect, disconnect and change roles.
pub mod session;
/// Parameters and points of the session behaviour experiment.
pub mod sessions;
/// Highest rate without loss, and highest rate overall.
pub mod highest;
/// Sustained rate under overload.
pub mod sustained;
/// Frames that match no entry.
pub mod misses;
/// Parameters and points of the packet-in and packet-out experiments.
pub mod packets;
/// TCP connections.
pub mod tcp;
/// Messages sent at a fixed rate.
pub mod paced;
/// Frames sent by packet-out.
pub mod packet_out;
/// Echo reply times.
pub mod echo_delay;
/// Unsolicited error messages.
pub mod refusals;
/// Delay of error messages.
pub mod error_delay;
/// Number of flow entries changed per second.
pub mod update_rate;
/// Number of control messages per second.
pub mod control_rate;
/// Behaviour of a switch near its highest message rate.
pub mod endurance;
/// Longest gap in a stream.
pub mod silence;
/// Control load of limited duration.
pub mod control_load;
/// Longest gap in forwarded frames while a control load runs.
pub mod control_stall;
/// Parameters and points of the control stall experiment.
pub mod stalls;
/// Service to one controller while another controller misbehaves.
pub mod abuse;
