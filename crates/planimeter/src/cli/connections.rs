//! Options that limit the connections of a listener.

use ports::channel::ConnectionLimits;

/// The flags.
#[derive(clap::Args, Clone, Copy)]
pub struct ConnectionArguments {
    /// Connections at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    connections: Option<u16>,
    /// Connections at once from one source: a host, or a user of this one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    connections_per_source: Option<u16>,
}

impl ConnectionArguments {
    /// Returns these limits, with the values of the command line.
    pub fn limits(&self, default: ConnectionLimits) -> ConnectionLimits {
        let or = |given: Option<u16>, default| given.map_or(default, usize::from);
        ConnectionLimits {
            total: or(self.connections, default.total),
            per_source: or(self.connections_per_source, default.per_source),
        }
    }
}
