//! Parses any text as a class library. The result is a list of errors, or a library that survives
//! formatting and parsing unchanged and is either resolved or rejected.

#![no_main]

use forces::Catalog;
use forces::library::{read, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match read(text) {
        Ok(library) => {
            assert_eq!(read(&write(&library)).as_ref(), Ok(&library));
            if let Ok(catalog) = Catalog::new(vec![library]) {
                for class in catalog.classes() {
                    for component in &class.components {
                        let value = component.default_value();
                        component.data_type.check(&value).expect("a default is a value");
                    }
                }
            }
        }
        Err(faults) => assert!(!faults.is_empty() && !faults[0].to_string().is_empty()),
    }
});
