//! Decodes any bytes as a ForCES message, and its contents as values of the included classes.
//! Nothing panics, error positions are inside the bytes, and a decoded message encodes to the same
//! message again.
//!
//! Version and length in the header are corrected, so that the fuzzer reaches the contents.

#![no_main]

use std::sync::OnceLock;

use forces::Catalog;
use forces::model::Target;
use forces::wire::{Data, MESSAGE_OCTETS_MAX, PathData, data, decode, encode};
use libfuzzer_sys::fuzz_target;

static CATALOG: OnceLock<Catalog> = OnceLock::new();

/// Reads and writes values at paths, if the class has any there.
fn values(class: u32, before: &[u32], path: &PathData) {
    let mut ids = before.to_vec();
    ids.extend(&path.ids);
    if let Data::Paths(paths) = &path.data {
        paths.iter().for_each(|path| values(class, &ids, path));
        return;
    }
    let catalog = CATALOG.get_or_init(forces::library::standard);
    let Some(class) = catalog.class_by_id(class) else { return };
    let Ok(Target::Value { data_type, .. }) = class.target(&ids) else { return };
    if let Some(Ok((value, _))) = data::read(data_type, &path.data) {
        let text = data_type.show(&value).to_string();
        let again = data::write(data_type, &value).expect("it was checked");
        let (back, _) = data::read(data_type, &again).expect("it is data").expect("ours is read");
        assert_eq!(back, value, "{text}");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes[..bytes.len().min(MESSAGE_OCTETS_MAX)].to_vec();
    if bytes.len() >= 24 {
        bytes.truncate(bytes.len() / 4 * 4);
        let words = (bytes.len() / 4) as u16;
        bytes[0] = 0x10;
        bytes[2..4].copy_from_slice(&words.to_be_bytes());
    }
    match decode(&bytes) {
        Ok(message) => {
            let mut again = Vec::new();
            encode(&message, &mut again).expect("it was not too long");
            assert_eq!(decode(&again).as_ref(), Ok(&message));
            for select in message.body.selects() {
                for operation in &select.operations {
                    operation.paths().iter().for_each(|path| values(select.class, &[], path));
                }
            }
        }
        Err(fault) => {
            assert!(fault.at <= bytes.len());
            assert!(!fault.to_string().is_empty() && !fault.code().is_success());
        }
    }
});
