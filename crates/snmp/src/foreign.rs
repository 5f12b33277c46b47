//! Recorded datagrams of another implementation: agent and tools of Net-SNMP 5.9.3.
//!
//! They validate keys, ciphers and authentication, which a round trip within this crate could not.
//! The agent has the users `watcher` (SHA-256, AES), `elder` (SHA-1, AES) and `signer` (SHA-512),
//! whose pass phrases are below.

use proptest::prelude::*;

use crate::message::{self, Kind, Status};
use crate::mib::{self, Refusal};
use crate::usm::Keys;
use crate::usm_message::{SnmpV3Message, UsmError};
use crate::{AuthProtocol, Pdu, Secret, User};

const COMMUNITY_RESPONSE: &str = concat!(
    "30819402010104067075626c6963a28186020424a1b9a90201000201003078301f06082b0601020101010004136120",
    "737769746368207769746820706f7274733011060b2b060102011f0101010602460202d6300806042b060109800030",
    "1606082b06010201010200060a2b06010401bf0803020a3010060b2b060102011f0101010f0142010a300e06082b06",
    "010201010300430200cc",
);

const DISCOVERY_REQUEST: &str = concat!(
    "303e02010330110204622b4332020300ffe30401040201030410300e04000201000201000400040004003014040004",
    "00a00e02042f3975120201000201003000",
);

const DISCOVERY_REPORT: &str = concat!(
    "307102010330110204622b4332020300ffe30401000201030421301f041180001f8880f826b22c1c3f036b00000000",
    "0201010201050400040004003036041180001f8880f826b22c1c3f036b000000000400a81f02042f39751202010002",
    "01003011300f060a2b060106030f01010400410101",
);

const WATCHER_REQUEST: &str = concat!(
    "30819702010330110204622b4331020300ffe304010702010304483046041180001f8880f826b22c1c3f036b000000",
    "00020101020105040777617463686572041820f7cc8ba49a9f0eed779775ac3530d30fdbeb4012ddc921040800b6a0",
    "9f498370120435776f55092da93a5ecad1909bc4317e2446c0ca682ea37cfbcfd8b3c985e5bf5fce051f76cff3325e",
    "46ccafe895c8a8d1494b5b7875",
);

const WATCHER_RESPONSE: &str = concat!(
    "3081aa02010330110204622b4331020300ffe304010302010304483046041180001f8880f826b22c1c3f036b000000",
    "0002010102010504077761746368657204183b61223ab0bf2a3fb08316a6189c8db2b2f8c9bc58e72c540408c67afa",
    "8ef57ee56904486c93a2377fb3c4043fe19d95b170603ca5a97be25b9d18156c67a5eaab80da2ff3c6530e8b7229d9",
    "c8ee1831bc01d3ee23745d17aa38796ec576126e6e489e6fbc8dde35d08940fe",
);

const ELDER_RESPONSE: &str = concat!(
    "30819c020103301102044edca1c3020300ffe3040103020103043a3038041180001f8880f826b22c1c3f036b000000",
    "000201010201060405656c646572040ce3217beedfd04f258ab02e880408c67afa8ef57ee56a044839d2bf628e7b5a",
    "02a889305cf9617dc9dfd49d56c67cd083cd449f83b0a6e3ae2b19d433182285b54ec50b62f69efbf09b8a21a61dd0",
    "4dbe3dc181545a6ebe34828d3fcbff9d0b83",
);

const SIGNER_RESPONSE: &str = concat!(
    "3081b702010330110204019c798a020300ffe304010102010304573055041180001f8880f826b22c1c3f036b000000",
    "0002010102010704067369676e65720430fed1917825ef761a713bb3016309269a1bf7935e4f321d1171609b82f031",
    "19ab41ad4186e317d6833135ccba055caf6a04003046041180001f8880f826b22c1c3f036b000000000400a22f0204",
    "78a0e3fd0201000201003021301f06082b0601020101010004136120737769746368207769746820706f727473",
);

const WRONG_DIGEST_REPORT: &str = concat!(
    "30750201033011020432970385020300ffe304010002010304283026041180001f8880f826b22c1c3f036b00000000",
    "020101020109040777617463686572040004003033041180001f8880f826b22c1c3f036b000000000400a81c020100",
    "0201000201003011300f060a2b060106030f01010500410101",
);

const ALL: [&str; 8] = [
    COMMUNITY_RESPONSE,
    DISCOVERY_REQUEST,
    DISCOVERY_REPORT,
    WATCHER_REQUEST,
    WATCHER_RESPONSE,
    ELDER_RESPONSE,
    SIGNER_RESPONSE,
    WRONG_DIGEST_REPORT,
];

fn bytes(hex: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("a hexadecimal digit");
    (0..hex.len()).step_by(2).map(byte).collect()
}

fn keys(name: &str, auth: AuthProtocol, is_private: bool) -> Keys {
    let user = User {
        name: name.into(),
        auth: Some((auth, Secret::new("correct horse"))),
        privacy: is_private.then(|| Secret::new("battery staple")),
    };
    Keys::new(&user, &bytes("80001f8880f826b22c1c3f036b00000000"))
}

fn shown(pdu: &Pdu) -> Vec<String> {
    pdu.bindings.iter().map(|it| format!("{}={}", it.name, it.value)).collect()
}

#[test]
fn a_response_of_version_2c_is_understood() {
    let (community, pdu) = message::decode(&bytes(COMMUNITY_RESPONSE)).expect("a response");
    assert_eq!(community, b"public");
    assert_eq!((pdu.kind, pdu.id), (Kind::Response(Status::default()), 0x24a1_b9a9));
    let expected = [
        "1.3.6.1.2.1.1.1.0=a switch with ports",
        "1.3.6.1.2.1.31.1.1.1.6.2=726",
        "1.3.6.1.9=no such object",
        "1.3.6.1.2.1.1.2.0=1.3.6.1.4.1.8072.3.2.10",
        "1.3.6.1.2.1.31.1.1.1.15.1=10",
        "1.3.6.1.2.1.1.3.0=204",
    ];
    assert_eq!(shown(&pdu), expected);
    // Encoding gives the same bytes.
    assert_eq!(message::encode(&community, &pdu), bytes(COMMUNITY_RESPONSE));
}

#[test]
fn an_engine_says_its_name_and_its_clock() {
    let envelope = SnmpV3Message::read(&bytes(DISCOVERY_REPORT)).expect("a report");
    let cover = &envelope.cover;
    assert_eq!(cover.engine_id, bytes("80001f8880f826b22c1c3f036b00000000"));
    assert_eq!((cover.boots, cover.time, cover.message_id), (1, 5, 0x622b_4332));
    let pdu = envelope.plain().expect("it is not encrypted");
    assert_eq!(mib::report(&pdu.bindings[0].name), Some(Refusal::UnknownEngine));
    // The discovery request has the same bytes as that of Net-SNMP.
    let ours = Pdu { kind: Kind::Get, id: 0x2f39_7512, bindings: Vec::new() };
    let asked = SnmpV3Message::read(&bytes(DISCOVERY_REQUEST)).expect("a request");
    let sealed = crate::usm_message::seal(&asked.cover, &ours, None, 0);
    assert_eq!(sealed, bytes(DISCOVERY_REQUEST));
}

#[test]
fn signed_and_encrypted_messages_are_opened_by_the_right_keys_only() {
    let watcher = keys("watcher", AuthProtocol::Sha256, true);
    for (message, keys, id) in [
        (WATCHER_RESPONSE, &watcher, 0x2f39_7511),
        (ELDER_RESPONSE, &keys("elder", AuthProtocol::Sha1, true), 0x5dc6_d0b1),
        (SIGNER_RESPONSE, &keys("signer", AuthProtocol::Sha512, false), 0x78a0_e3fd),
    ] {
        let envelope = SnmpV3Message::read(&bytes(message)).expect("a response");
        let pdu = envelope.open(keys).expect("the right keys");
        assert!(envelope.is_protected_by(keys));
        assert_eq!(
            (shown(&pdu), pdu.id),
            (vec!["1.3.6.1.2.1.1.1.0=a switch with ports".into()], id)
        );
        let wrong = Keys::new(
            &User {
                name: "watcher".into(),
                auth: Some((AuthProtocol::Sha256, Secret::new("correct h0rse"))),
                privacy: None,
            },
            &envelope.cover.engine_id,
        );
        assert_eq!(envelope.open(&wrong), Err(UsmError::Forged));
    }
    // A request encoded with the salt of Net-SNMP has the same bytes.
    let envelope = SnmpV3Message::read(&bytes(WATCHER_REQUEST)).expect("a request");
    let pdu = envelope.open(&watcher).expect("the right keys");
    assert_eq!((shown(&pdu), pdu.kind), (vec!["1.3.6.1.2.1.1.1.0=null".into()], Kind::Get));
    let report = SnmpV3Message::read(&bytes(WRONG_DIGEST_REPORT)).expect("a report");
    let said = report.plain().expect("it is not encrypted");
    assert_eq!(mib::report(&said.bindings[0].name), Some(Refusal::WrongDigest));
}

proptest! {
    #[test]
    fn damaged_foreign_datagrams_never_panic(
        which in 0..ALL.len(),
        at in any::<prop::sample::Index>(),
        put in any::<u8>(),
        cut in any::<prop::sample::Index>(),
        cuts in any::<bool>(),
    ) {
        let mut datagram = bytes(ALL[which]);
        let at = at.index(datagram.len());
        datagram[at] = put;
        if cuts {
            datagram.truncate(cut.index(datagram.len()));
        }
        let _ = message::decode(&datagram);
        if let Ok(envelope) = SnmpV3Message::read(&datagram) {
            let _ = (envelope.plain(), envelope.is_signed());
        }
    }
}
