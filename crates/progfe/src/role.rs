//! Roles of a program: bridge, router or tagger, by the classes of its blocks.
//!
//! Tools that configure addresses, neighbours and routes use this module to find the responsible
//! blocks, independent of their names.

use crate::program::{Program, base_id, class_id};

pub mod routing;

pub use routing::Routing;

/// Role of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The program has exactly one learning table.
    Bridge,
    /// The program has one table each for prefixes, next hops and link-layer headers.
    Router,
    /// The program selects frames by conditions and modifies them.
    Tagger,
}

impl Role {
    /// Returns the role of a program, if it has one. Bridge takes precedence over router.
    pub fn of(program: &Program) -> Option<Role> {
        if learning_table(program).is_ok() {
            return Some(Role::Bridge);
        }
        if Routing::of(program).is_ok() {
            return Some(Role::Router);
        }
        let has = |class| instances_of(program, class).next().is_some();
        (has(class_id::MATCH) && has(class_id::EDIT)).then_some(Role::Tagger)
    }
}

/// Returns the index of the only learning table.
pub fn learning_table(program: &Program) -> Result<usize, String> {
    only(program, class_id::LEARN_SEARCH, "learning table")
}

fn instances_of(program: &Program, class: u32) -> impl Iterator<Item = usize> + '_ {
    let all = program.instances.iter().enumerate();
    all.filter(move |(_, it)| it.class == class).map(|(place, _)| place)
}

/// Returns the only instance of a class.
fn only(program: &Program, class: u32, what: &str) -> Result<usize, String> {
    let mut found = instances_of(program, class);
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err(format!("the program has no {what}")),
        (Some(_), Some(_)) => Err(format!(
            "the program has more than one {what} (hint: set its component by instance)"
        )),
    }
}

/// Returns for each port the block that accepts its frames: the target of its EtherPHYCop.
fn inputs(program: &Program) -> Vec<(u32, usize)> {
    let input = |port: u32| {
        let is_phy = |at: usize| {
            let it = &program.instances[at];
            it.class == base_id::PHY && it.number == port
        };
        let links = program.links.iter().filter(|link| is_phy(link.from.instance));
        let mut to = links.map(|link| link.to.instance);
        to.find(|&at| program.instances[at].class == base_id::MAC_IN).map(|at| (port, at))
    };
    program.ports.iter().filter_map(|port| input(port.number)).collect()
}
