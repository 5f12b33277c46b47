//! Both roles with each other, and each with peers that violate the order.

use super::super::protocol::words;
use super::*;

fn identity() -> Identity {
    Identity { id: 3, secret: text("s3cret"), name: text("test") }
}

const SHAPE: Shape = Shape { to_server: 2, to_client: 3, slots_log2: 8, buffer_bytes: 2048 };

fn init() -> Init {
    Init {
        version: VERSION,
        id: 3,
        mode: MODE_ETHERNET,
        secret: text("s3cret"),
        name: text("peer"),
    }
}

fn region(index: u16, bytes: u64) -> (Message, Option<u8>) {
    (Message::AddRegion { index, bytes }, Some(7))
}

fn ring(direction: Direction, index: u16, slots_log2: u8) -> (Message, Option<u8>) {
    let ring = AddRing { direction, index, region: 0, offset: 0, slots_log2, private_bytes: 0 };
    (Message::AddRing(ring), Some(8))
}

/// Returns the reply of a server with one ring per direction to the last of these messages; all
/// earlier ones must be valid.
fn server_says(messages: Vec<(Message, Option<u8>)>) -> Result<ServerStep<u8>, Fault> {
    let mut server = Server::new(identity(), 1, 1);
    let mut last = Err(Fault::Message);
    let count = messages.len();
    for (place, (message, descriptor)) in messages.into_iter().enumerate() {
        last = server.receive(message, descriptor);
        assert!(place + 1 == count || last.is_ok(), "message {place}: {last:?}");
    }
    last
}

#[test]
fn client_and_server_agree_on_the_smaller_values() {
    let mut server: Server<String> = Server::new(identity(), 1, 2);
    let mut client = Client::new(identity(), SHAPE);
    let Ok(ClientStep::Prepare(shape)) = client.receive(server.hello()) else { panic!() };
    assert_eq!(shape, Shape { to_server: 1, to_client: 2, ..SHAPE });
    let (mut message, mut attachment) = client.start(&shape, shape.bytes() as u64);
    let offer = loop {
        let beside = match attachment {
            Attachment::None => None,
            other => Some(format!("{other:?}")),
        };
        match server.receive(message, beside).unwrap() {
            ServerStep::Reply(answer) => match client.receive(answer).unwrap() {
                ClientStep::Say(next, with) => (message, attachment) = (next, with),
                other => panic!("{other:?}"),
            },
            ServerStep::Attach(offer) => break offer,
            ServerStep::Left(_) => panic!(),
        }
    };
    assert_eq!(offer.regions, [(shape.bytes() as u64, "Region".to_string())]);
    let reported: Vec<AddRing> =
        offer.to_server.iter().chain(&offer.to_client).map(|offered| offered.ring).collect();
    assert_eq!(reported, shape.rings().collect::<Vec<_>>());
    assert_eq!(offer.to_client[1].doorbell, "Doorbell(ToClient, 1)");
    assert_eq!(client.receive(server.connected()), Ok(ClientStep::Up));
    assert_eq!(client.receive(Message::Ack), Err(Fault::Unexpected));
}

#[test]
fn a_server_rejects_unsuitable_clients() {
    for (wrong, fault) in [
        (Init { version: 0x0100, ..init() }, Fault::Version),
        (Init { id: 4, ..init() }, Fault::Id),
        (Init { mode: 1, ..init() }, Fault::Mode),
        (Init { secret: text(""), ..init() }, Fault::Secret),
        (Init { secret: text("s3cre"), ..init() }, Fault::Secret),
        (Init { secret: text("s3cret!"), ..init() }, Fault::Secret),
    ] {
        let message = server_says(vec![(Message::Init(wrong.clone()), None)]);
        assert_eq!(message.err(), Some(fault), "{wrong:?}");
    }
    let mut untidy = init();
    untidy.secret[7..].fill(0xaa);
    assert!(server_says(vec![(Message::Init(untidy), None)]).is_ok());
    let mut open: Server<u8> = Server::new(Identity { secret: text(""), ..identity() }, 1, 1);
    assert!(open.receive(Message::Init(init()), None).is_ok(), "an unexpected secret");
}

#[test]
fn a_server_rejects_messages_out_of_order() {
    let hello = || (Message::Init(init()), None);
    let connect = || (Message::Connect { name: text("x") }, None);
    let limit = REGION_BYTES_MAX;
    let mut regions: Vec<_> = (0..=REGIONS_MAX).map(|index| region(index, 4096)).collect();
    regions.insert(0, hello());
    for (messages, fault) in [
        (vec![region(0, 4096)], Fault::Unexpected),
        (vec![connect()], Fault::Unexpected),
        (vec![(Message::Ack, None)], Fault::Unexpected),
        (vec![hello(), hello()], Fault::Unexpected),
        (vec![hello(), (Message::Connected { name: text("x") }, None)], Fault::Unexpected),
        (vec![hello(), connect(), region(0, 4096)], Fault::Unexpected),
        (vec![hello(), connect(), connect()], Fault::Unexpected),
        (vec![(Message::Init(init()), Some(1))], Fault::Descriptor),
        (vec![hello(), (Message::AddRegion { index: 0, bytes: 1 }, None)], Fault::Descriptor),
        (vec![hello(), (ring(Direction::ToServer, 0, 8).0, None)], Fault::Descriptor),
        (vec![hello(), (connect().0, Some(1))], Fault::Descriptor),
        (vec![hello(), region(1, 4096)], Fault::RegionIndex),
        (vec![hello(), region(0, 4096), region(0, 4096)], Fault::RegionIndex),
        (regions, Fault::RegionIndex),
        (vec![hello(), region(0, 0)], Fault::RegionSize),
        (vec![hello(), region(0, u64::MAX)], Fault::RegionSize),
        (vec![hello(), region(0, limit), region(1, 1)], Fault::RegionSize),
        (vec![hello(), ring(Direction::ToServer, 1, 8)], Fault::RingIndex),
        (
            vec![hello(), ring(Direction::ToClient, 0, 8), ring(Direction::ToClient, 1, 8)],
            Fault::RingIndex,
        ),
        (vec![hello(), ring(Direction::ToServer, 0, 15)], Fault::RingSize),
        (vec![hello(), ring(Direction::ToServer, 0, 255)], Fault::RingSize),
    ] {
        assert_eq!(server_says(messages).err(), Some(fault));
    }
}

#[test]
fn a_client_rejects_messages_out_of_order() {
    let hello = || Server::<u8>::new(identity(), 1, 1).hello();
    let mut client = Client::new(identity(), SHAPE);
    assert_eq!(client.receive(Message::Ack), Err(Fault::Unexpected));
    assert!(client.receive(hello()).is_ok());
    assert_eq!(client.receive(hello()), Err(Fault::Unexpected));
    client.start(&SHAPE, 4096);
    let connected = || Message::Connected { name: text("x") };
    assert_eq!(
        client.receive(connected()),
        Err(Fault::Unexpected),
        "before all messages were sent"
    );
    // Region, five rings, connect: seven messages, one for each acknowledgement.
    for _ in 0..7 {
        assert!(matches!(client.receive(Message::Ack), Ok(ClientStep::Say(..))));
    }
    assert_eq!(client.receive(Message::Ack), Err(Fault::Unexpected));
    assert_eq!(client.receive(connected()), Ok(ClientStep::Up));
    for (low, high) in [(0x0201, 0x0300), (0x0100, 0x01ff)] {
        let Message::Hello(mut strange) = hello() else { panic!() };
        (strange.version_min, strange.version_max) = (low, high);
        let mut client = Client::new(identity(), SHAPE);
        assert_eq!(client.receive(Message::Hello(strange)), Err(Fault::Version));
    }
}

#[test]
fn a_disconnect_can_have_a_reason() {
    let goodbye = || Message::Disconnect { code: 0, reason: text("ID not found") };
    let mut client = Client::new(identity(), SHAPE);
    assert_eq!(client.receive(goodbye()), Ok(ClientStep::Left("ID not found".into())));
    let message = server_says(vec![(goodbye(), None)]);
    assert!(matches!(message, Ok(ServerStep::Left(why)) if why == "ID not found"));
    let Message::Disconnect { reason, .. } = Message::farewell(Fault::Secret) else { panic!() };
    assert_eq!(words(&reason), Fault::Secret.text());
}
