//! Options that limit the connections of a listener.

use channel::ConnectionLimits;

/// The flags.
#[derive(clap::Args, Clone, Copy)]
pub struct ConnectionArguments {
    /// Maximum number of connections
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    connections: Option<u16>,
    /// Maximum number per source: a host or a local user
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
