//! What a program can be asked to be: a bridge, a router or a tagger, by the classes of its blocks.
//!
//! Whoever tells an element its addresses, neighbours and routes as any bridge or router is told finds by this
//! which blocks hold them, whatever they are called.

use crate::program::{Program, base_id, class_id};

/// A program as a router.
pub mod routing;

pub use routing::Routing;

/// What a program can be asked to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// It has exactly one table that learns.
    Bridge,
    /// It looks up prefixes, next hops and link-layer headers in one table each.
    Router,
    /// It chooses frames by conditions and changes them.
    Tagger,
}

impl Role {
    /// That of a program, if it has one: what bridges and routes is a bridge.
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

/// The one table that learns, by its place in the program.
pub fn learning_table(program: &Program) -> Result<usize, String> {
    only(program, class_id::LEARN_SEARCH, "table that learns")
}

fn instances_of(program: &Program, class: u32) -> impl Iterator<Item = usize> + '_ {
    let all = program.instances.iter().enumerate();
    all.filter(move |(_, it)| it.class == class).map(|(place, _)| place)
}

/// The one instance of a class.
fn only(program: &Program, class: u32, what: &str) -> Result<usize, String> {
    let mut found = instances_of(program, class);
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err(format!("the program has no {what}")),
        (Some(_), Some(_)) => {
            Err(format!("the program has more than one {what}; name one by its component"))
        }
    }
}

/// The block that takes the frames of each port: what its EtherPHYCop leads to.
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
