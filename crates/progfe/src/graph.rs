//! Lookup of links: from an output and group index to an input.

use std::collections::BTreeMap;

use packet::frame::PortNo;

use crate::lfb::At;
use crate::program::{End, Program, base_id};

/// Links of a program, indexed by output.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// Link by block, output and index.
    outputs: Vec<Vec<Vec<Option<u32>>>>,
    /// Indices with a link by block and output, ascending.
    linked: Vec<Vec<Vec<u32>>>,
    /// Target of each link.
    targets: Vec<(usize, At)>,
    /// Block of each port.
    ports: BTreeMap<PortNo, usize>,
}

impl Graph {
    /// Builds the graph of a program. Link numbers are indices in the program.
    pub fn of(program: &Program) -> Graph {
        let mut graph = Graph::default();
        for (at, instance) in program.instances.iter().enumerate() {
            let class = program.class_of(at);
            graph.outputs.push(vec![Vec::new(); class.outputs.len()]);
            graph.linked.push(vec![Vec::new(); class.outputs.len()]);
            if class.is_a(base_id::PHY) {
                graph.ports.entry(instance.number).or_insert(at);
            }
        }
        for (number, link) in program.links.iter().enumerate() {
            let End { instance, port, index } = link.to;
            graph.targets.push((instance, At { port, index }));
            let End { instance, port, index } = link.from;
            let slots = &mut graph.outputs[instance][port as usize];
            if slots.len() <= index as usize {
                slots.resize(index as usize + 1, None);
            }
            slots[index as usize].get_or_insert(number as u32);
            let linked = &mut graph.linked[instance][port as usize];
            if let Err(place) = linked.binary_search(&index) {
                linked.insert(place, index);
            }
        }
        graph
    }

    /// Returns the link at an output of a block.
    #[inline]
    pub fn link(&self, instance: usize, output: u32, index: u32) -> Option<u32> {
        *self.outputs[instance].get(output as usize)?.get(index as usize)?
    }

    /// Returns the target block and input of a link.
    #[inline]
    pub fn target(&self, link: u32) -> (usize, At) {
        self.targets[link as usize]
    }

    /// Returns the indices with a link for each output of a block.
    pub fn linked(&self, instance: usize) -> &[Vec<u32>] {
        &self.linked[instance]
    }

    /// Returns the block of a port of the element.
    pub fn port(&self, port: PortNo) -> Option<usize> {
        self.ports.get(&port).copied()
    }

    /// Returns the ports of the element that have a block.
    pub fn ports(&self) -> impl Iterator<Item = PortNo> + '_ {
        self.ports.keys().copied()
    }

    /// Returns the number of links.
    pub fn links(&self) -> usize {
        self.targets.len()
    }
}
