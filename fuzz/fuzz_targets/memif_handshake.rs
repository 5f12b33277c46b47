//! Feeds any bytes as handshake messages to a memif server and a memif client. Neither panics,
//! agreed parameters are within their limits, and an error ends the handshake without an agreement.
//!
//! Each message is a byte (whether it has a file descriptor, whether its type is limited) and up to
//! 128 bytes, padded with zeros.

#![no_main]

use libfuzzer_sys::fuzz_target;
use netio::memif::handshake::{Client, ClientStep, Identity, REGIONS_MAX, Server, ServerStep};
use netio::memif::layout::{REGION_BYTES_MAX, SLOTS_LOG2_MAX, Shape};
use netio::memif::protocol::{MESSAGE_BYTES, Message, text};

const WANTED: Shape = Shape { to_server: 3, to_client: 2, slots_log2: 10, buffer_bytes: 2048 };

fn identity() -> Identity {
    Identity { id: 0, secret: text(""), name: text("fuzzed") }
}

/// Splits the input into messages, each with a flag for its file descriptor.
fn messages(bytes: &[u8]) -> Vec<(Message, bool)> {
    let decoded = bytes.chunks(MESSAGE_BYTES / 2 + 1).filter_map(|chunk| {
        let (&first, rest) = chunk.split_first()?;
        let mut message = [0; MESSAGE_BYTES];
        message[..rest.len()].copy_from_slice(rest);
        // Limits the type of most messages, because the first check rejects unknown types.
        if first & 2 == 0 {
            message[..2].copy_from_slice(&u16::from(rest.first()? % 10).to_ne_bytes());
        }
        let decoded = Message::decode(&message).ok()?;
        assert_eq!(Message::decode(&decoded.encode()), Ok(decoded.clone()));
        Some((decoded, first & 1 != 0))
    });
    decoded.collect()
}

fn serve(messages: &[(Message, bool)]) {
    let mut server = Server::new(identity(), 2, 3);
    for (message, has_descriptor) in messages {
        match server.receive(message.clone(), has_descriptor.then_some(())) {
            Ok(ServerStep::Reply(answer)) => assert_eq!(answer, Message::Ack),
            Ok(ServerStep::Attach(offer)) => {
                assert!(server.is_greeted());
                assert!(offer.regions.len() <= usize::from(REGIONS_MAX));
                let bytes: u64 = offer.regions.iter().map(|region| region.0).sum();
                assert!(bytes <= REGION_BYTES_MAX);
                assert!(offer.to_server.len() <= 2 && offer.to_client.len() <= 3);
                let mut rings = offer.to_server.iter().chain(&offer.to_client);
                assert!(rings.all(|offered| offered.ring.slots_log2 <= SLOTS_LOG2_MAX));
            }
            Ok(ServerStep::Left(_)) | Err(_) => return,
        }
    }
}

fn call(messages: &[(Message, bool)]) {
    let mut client = Client::new(identity(), WANTED);
    let mut said = 0;
    for (message, _) in messages {
        match client.receive(message.clone()) {
            Ok(ClientStep::Prepare(shape)) => {
                assert!((1..=WANTED.to_server).contains(&shape.to_server));
                assert!((1..=WANTED.to_client).contains(&shape.to_client));
                assert!(shape.slots_log2 <= WANTED.slots_log2);
                assert!(shape.bytes() <= WANTED.bytes());
                client.start(&shape, shape.bytes() as u64);
            }
            Ok(ClientStep::Say(..)) => said += 1,
            Ok(ClientStep::Up) => assert!(said >= 4, "region, a ring each way, connect"),
            Ok(ClientStep::Left(_)) | Err(_) => return,
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let messages = messages(bytes);
    serve(&messages);
    call(&messages);
});
