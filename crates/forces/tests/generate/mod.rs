//! Random messages of every type.

use forces::wire::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn octets() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..24)
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let extended = (any::<u32>(), octets())
        .prop_map(|(code, cause)| Outcome::Extended { code: ResultCode(code), cause });
    prop_oneof![any::<u8>().prop_map(Outcome::Plain), extended]
}

fn selector() -> impl Strategy<Value = Option<Selector>> {
    let key = (any::<u32>(), octets()).prop_map(|(key, content)| Selector::Key { key, content });
    let range =
        (any::<u32>(), any::<u32>()).prop_map(|(first, last)| Selector::Range { first, last });
    prop_oneof![4 => Just(None), 1 => key.prop_map(Some), 1 => range.prop_map(Some)]
}

fn path() -> impl Strategy<Value = PathData> {
    let ids = || vec(prop_oneof![0u32..20, any::<u32>()], 0..5);
    let data = prop_oneof![
        Just(Data::None),
        octets().prop_map(Data::Full),
        octets().prop_map(Data::Sparse),
        outcome().prop_map(Data::Outcome),
    ];
    let leaf = (ids(), selector(), data).prop_map(|(ids, selector, data)| PathData {
        ids,
        selector,
        data,
    });
    leaf.prop_recursive(4, 12, 3, move |inner| {
        (ids(), selector(), vec(inner, 1..3)).prop_map(|(ids, selector, paths)| PathData {
            ids,
            selector,
            data: Data::Paths(paths),
        })
    })
}

fn operation(kind: OperationKind) -> BoxedStrategy<Operation> {
    if kind.is_empty() {
        return Just(Operation::on(kind, Vec::new())).boxed();
    }
    let paths = vec(path(), 0..3).prop_map(Content::Paths);
    let content = prop_oneof![5 => paths, 1 => outcome().prop_map(Content::Outcome)];
    content.prop_map(move |content| Operation { kind, content }).boxed()
}

fn selects(kind: MessageKind) -> impl Strategy<Value = Vec<Select>> {
    let operations = proptest::sample::select(kind.operations()).prop_flat_map(operation);
    let select = (any::<u32>(), any::<u32>(), vec(operations, 0..3))
        .prop_map(|(class, instance, operations)| Select { class, instance, operations });
    vec(select, 0..3)
}

fn body(kind: MessageKind) -> BoxedStrategy<Body> {
    match kind {
        MessageKind::AssociationSetup => selects(kind).prop_map(Body::AssociationSetup).boxed(),
        MessageKind::Config => selects(kind).prop_map(Body::Config).boxed(),
        MessageKind::ConfigResponse => selects(kind).prop_map(Body::ConfigResponse).boxed(),
        MessageKind::Query => selects(kind).prop_map(Body::Query).boxed(),
        MessageKind::QueryResponse => selects(kind).prop_map(Body::QueryResponse).boxed(),
        MessageKind::EventNotification => selects(kind).prop_map(Body::EventNotification).boxed(),
        MessageKind::AssociationSetupResponse => any::<u32>()
            .prop_map(|result| Body::AssociationSetupResponse(SetupResult(result)))
            .boxed(),
        MessageKind::AssociationTeardown => any::<u32>()
            .prop_map(|reason| Body::AssociationTeardown(TeardownReason(reason)))
            .boxed(),
        MessageKind::Heartbeat => Just(Body::Heartbeat).boxed(),
        MessageKind::PacketRedirect => {
            let metadata = vec((any::<u32>(), octets()), 0..3);
            let redirect = (metadata, proptest::option::of(octets()))
                .prop_map(|(metadata, packet)| Redirect { metadata, packet });
            vec(redirect, 0..3).prop_map(Body::PacketRedirect).boxed()
        }
    }
}

/// Any message.
pub fn message() -> impl Strategy<Value = Message> {
    let body = proptest::sample::select(&MessageKind::ALL[..]).prop_flat_map(body);
    let header = (any::<u32>(), any::<u32>(), any::<u64>(), any::<u32>()).prop_map(
        |(source, destination, correlator, flags)| Header {
            source: Id(source),
            destination: Id(destination),
            correlator,
            flags: Flags::from_bits(flags),
        },
    );
    (header, body).prop_map(|(header, body)| Message { header, body })
}
