//! Features and configuration as bytes.
//!
//! Source: OpenFlow 1.0.0 sections 5.3.1 and 5.3.2.

use super::bytes::{Put, Reader};
use super::port::{put_description, read_descriptions};
use super::{Fault, What};
use crate::model::kinds::ActionKinds;
use crate::model::switch::{Capabilities, Features, FragmentHandling, SwitchConfig};
use crate::version::Version;

/// The bits of the configuration flags that say what happens to fragments.
const FRAGMENTS_MASK: u16 = 3;

/// Appends a features reply's body.
pub(super) fn put_features(
    version: Version,
    features: &Features,
    out: &mut Vec<u8>,
) -> Result<(), What> {
    out.put_u64(features.datapath_id);
    out.put_u32(features.buffers);
    out.put_u8(features.tables);
    out.put_zeros(3);
    out.put_u32(features.capabilities.to_wire(version).map_err(What::Bit)?);
    out.put_u32(features.actions.to_wire(version).map_err(What::Action)?);
    features.ports.iter().try_for_each(|port| put_description(version, port, out))
}

/// Reads a features reply's body.
pub(super) fn read_features(version: Version, reader: &mut Reader) -> Result<Features, Fault> {
    let datapath_id = reader.u64()?;
    let buffers = reader.u32()?;
    let tables = reader.u8()?;
    reader.skip(3)?;
    let capabilities = Capabilities::from_wire(version, reader.u32()?).0;
    let actions = ActionKinds::from_wire(version, reader.u32()?);
    let ports = read_descriptions(version, reader)?;
    Ok(Features { datapath_id, buffers, tables, auxiliary: 0, capabilities, actions, ports })
}

/// Appends a configuration.
pub(super) fn put_config(config: &SwitchConfig, out: &mut Vec<u8>) {
    out.put_u16(match config.fragments {
        FragmentHandling::Normal => 0,
        FragmentHandling::Drop => 1,
        FragmentHandling::Reassemble => 2,
    });
    out.put_u16(config.miss_send_bytes);
}

/// Reads a configuration. Both fragment bits at once mean nothing and are taken as reassembly,
/// the one with the higher bit; bits above them are passed over.
pub(super) fn read_config(reader: &mut Reader) -> Result<SwitchConfig, Fault> {
    let fragments = match reader.u16()? & FRAGMENTS_MASK {
        0 => FragmentHandling::Normal,
        1 => FragmentHandling::Drop,
        _ => FragmentHandling::Reassemble,
    };
    Ok(SwitchConfig { fragments, invalid_ttl_to_controller: false, miss_send_bytes: reader.u16()? })
}
