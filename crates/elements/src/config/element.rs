//! Configuration of a ProGFE element: its program, which was parsed and checked before.

use std::path::PathBuf;
use std::sync::Arc;

use packet::frame::PortNo;
use progfe::program::{Agent, Program};

use super::{ForcesConfig, PortConfig, Problem};
use crate::services::http::HttpConfig;

/// A ProGFE element.
#[derive(Debug, Clone)]
pub struct ProGfeConfig {
    /// The program.
    pub program: Arc<Program>,
    /// Control elements of the element (ForCES).
    pub forces: ForcesConfig,
    /// Folder of the sockets of agents that are programs of the user. Without it there are no such
    /// agents.
    pub agents: Option<PathBuf>,
    /// HTTP server that accepts programs, if any.
    pub http: Option<HttpConfig>,
    /// Port on which programs are accepted over Ethernet, if any.
    pub ethernet: Option<PortNo>,
}

impl PartialEq for ProGfeConfig {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.program, &other.program)
            && (&self.forces, &self.agents) == (&other.forces, &other.agents)
            && (&self.http, self.ethernet) == (&other.http, other.ethernet)
    }
}

impl ProGfeConfig {
    /// Creates the configuration of an element that runs a program and has no control channel but a
    /// control socket.
    pub fn new(program: Arc<Program>) -> ProGfeConfig {
        let forces = ForcesConfig::default();
        ProGfeConfig { program, forces, agents: None, http: None, ethernet: None }
    }

    /// Whether an agent needs arrival timestamps of the kernel.
    pub fn wants_arrivals(&self) -> bool {
        self.program.agents.iter().any(Agent::wants_arrivals)
    }

    /// Returns the ports that the program declares.
    pub fn ports(&self) -> impl Iterator<Item = PortNo> + '_ {
        self.program.ports.iter().map(|port| port.number)
    }

    /// Every port must be in the program, as others cannot forward frames.
    pub(super) fn validate(&self, ports: &[PortConfig], problems: &mut Vec<Problem>) {
        if let Some(port) = self.ethernet.filter(|it| ports.iter().all(|port| port.number != *it)) {
            problems.push(Problem::NoSuchPort { key: "the Ethernet agent", port });
        }
        for port in ports {
            if !self.ports().any(|known| known == port.number) {
                problems.push(Problem::NotInProgram(port.number));
            }
        }
        if let Some(http) = &self.http
            && http.token.is_none()
            && !http.is_insecure
            && !http.address.ip().to_canonical().is_loopback()
        {
            let why = format!(
                "cannot listen on {}: other hosts could program the element without \
                 authentication (hint: set --http-token-file FILE, or allow it with --insecure)",
                http.address
            );
            problems.push(Problem::BadUrl { key: "http", why });
        }
        self.forces.validate(problems);
    }
}
