//! Any text as a stream file: streams and replays, or what is wrong with it in one line.

#![no_main]

use instrument::stream::file::{read, read_all};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match read_all(text, 2) {
        Ok(contents) => {
            assert!(contents.streams.iter().all(|stream| stream.validate().is_empty()));
            assert!(contents.replays.iter().all(|replay| replay.validate(2).is_empty()));
            assert_eq!(read(text, 2).is_ok(), contents.replays.is_empty());
        }
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
});
