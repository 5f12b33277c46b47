//! What is told to control elements by itself: events, and packets that leave by RedirectOut.

use forces::association::Happening;
use forces::wire::Redirect;

use crate::lfb;
use crate::lfb::told::ToldFrame;
use crate::program::Program;

/// An event as an association knows it; none if the instance is gone meanwhile.
pub fn happening(program: &Program, it: &lfb::Happening) -> Option<Happening> {
    let instance = program.instances.get(it.instance)?;
    let value = it.reports.first().map(|(_, value)| value.clone());
    Some(Happening {
        class: instance.class,
        instance: instance.number,
        event: it.event,
        subscripts: it.rows.clone(),
        value,
        reported: it.reports.iter().map(|(_, value)| value.clone()).collect(),
    })
}

/// A packet with its metadata, each as wide as its type; those of types that are no numbers are left out.
pub fn redirect(program: &Program, told: &ToldFrame) -> Redirect {
    let one = |(id, value): &(u32, u128)| {
        let metadata = program.catalog.metadata_by_id(*id)?;
        let width = metadata.data_type.width().filter(|width| *width <= 16)?;
        Some((*id, value.to_be_bytes()[16 - width..].to_vec()))
    };
    let metadata = told.meta.iter().filter_map(one).collect();
    Redirect { metadata, packet: Some(told.frame.bytes().to_vec()) }
}
