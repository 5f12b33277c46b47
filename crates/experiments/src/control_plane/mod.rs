//! Measurement modules: experiments that react to each frame and each message.
//!
//! Source: the OFLOPS-SUME paper, section III, and the modules of the OFLOPS family (`docs/oflops.md`). One file
//! per module contains its claim, procedure, parameters and a test in virtual time. A module does no I/O and reads
//! no clock (`tester::module`), so it runs both live and simulated.

pub mod rounds;
pub mod recovery;
pub mod summary;
pub mod rules;
pub mod activation;
pub mod adaptive_probing;
pub mod tcam_shifts;
pub mod first_packet;
pub mod rule_activation;
pub mod updates;
pub mod requests;
pub mod statistics;
pub mod stats_delay;
pub mod counter_staleness;
pub mod stats_and_updates;
pub mod flow_churn;
pub mod port_stats_rate;
pub mod flow_timeouts;
pub mod rule_updates;
pub mod update_transient;
pub mod blackhole;
pub mod path_setup;
pub mod forwarding_check;
pub mod identification;
pub mod polling;
pub mod round_trip;
pub mod verdict;
pub mod forwarding;
pub mod action_cases;
pub mod actions;
pub mod match_tuples;
pub mod table_capacity;
pub mod session;
pub mod sessions;
pub mod rate_search;
pub mod sustained_rate;
pub mod packet_in;
pub mod packets;
pub mod tcp;
pub mod pacer;
pub mod packet_out;
pub mod echo_delay;
pub mod unexpected_errors;
pub mod error_delay;
pub mod update_rate;
pub mod control_rate;
pub mod endurance;
pub mod silence;
pub mod control_load;
pub mod control_stall;
pub mod stalls;
pub mod abuse;
