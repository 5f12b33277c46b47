//! Commands, time-outs and dumps.
