//! Tests of requests that arrive in arbitrary pieces, and of invalid requests.

use std::io::{Read, Write};
use std::net::TcpStream;

use channel::memory;
use os::clock;
use serde_json::json;

use super::*;
use crate::control::request::{ComponentAt, Empty, ProgramSource};

/// A client of a test server, with the requests that the server processed.
struct Talk {
    client: Client,
    near: Box<dyn Channel>,
    asked: Vec<Request>,
    now: Nanos,
}

impl Talk {
    fn new() -> Talk {
        let (near, far) = memory::pair(1 << 20, "http");
        let client = Client::new(Box::new(far), Nanos::ZERO);
        Talk { client, near: Box::new(near), asked: Vec::new(), now: Nanos::ZERO }
    }

    /// Sends bytes. Returns the response, and whether the connection stays open.
    fn say(&mut self, bytes: &[u8], token: Option<&str>) -> (String, bool) {
        let mut rest = bytes;
        let (mut stays, mut response) = (true, Vec::new());
        let mut buffer = vec![0; READ_BYTES];
        let access = Access {
            token: token.map(str::to_owned),
            names: ServerNames::new(vec!["element.example".into()]),
        };
        loop {
            let sent = self.near.transmit(rest).unwrap_or(0);
            rest = &rest[sent..];
            let asked = &mut self.asked;
            let outcome = self.client.turn(
                self.now,
                &mut buffer,
                &access,
                &mut { REQUESTS_A_TURN },
                &mut |request| {
                    asked.push(request.clone());
                    RequestOutcome::Now(match request {
                        Request::Load(it) if it.text.contains("bad") => Err("a:1:2: error".into()),
                        Request::Get(Resource::Program) => Ok(json!({ "text": "<fe/>" })),
                        _ => Ok(json!({ "generation": 2 })),
                    })
                },
            );
            stays &= outcome.is_ok();
            while let Ok(count @ 1..) = self.near.receive(&mut buffer) {
                response.extend_from_slice(&buffer[..count]);
            }
            if rest.is_empty() && !self.client.has_unread || !stays {
                break;
            }
        }
        // The connection ends after its last response.
        if stays {
            stays = self
                .client
                .turn(self.now, &mut buffer, &access, &mut { REQUESTS_A_TURN }, &mut |_| {
                    RequestOutcome::Now(Ok(json!(1)))
                })
                .is_ok();
        }
        (String::from_utf8(response).unwrap(), stays)
    }
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes()
}

fn post(path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}

#[test]
fn every_path_gives_its_request() {
    for (bytes, asks, status, holds) in [
        (get("/program"), Request::Get(Resource::Program), "200 OK", "\r\n\r\n<fe/>"),
        (get("/counters"), Request::Get(Resource::Counters), "200 OK", "{\"generation\":2}\n"),
        (get("/agents"), Request::Get(Resource::Agents), "200 OK", "application/json"),
        (
            get("/components/fdb%231/Entries%5B3%5D/Value"),
            Request::GetComponent(ComponentAt {
                instance: "fdb#1".into(),
                path: "Entries[3].Value".into(),
                value: String::new(),
            }),
            "200 OK",
            "",
        ),
        (
            post("/program?name=a%20b", "<fe>bad</fe>"),
            Request::Load(ProgramSource {
                name: "a b".into(),
                text: "<fe>bad</fe>".into(),
                number: None,
            }),
            "422 Unprocessable Content",
            "a:1:2: error\n",
        ),
        (
            post("/check", "<fe/>"),
            Request::Check(ProgramSource {
                name: "program.fe.xml".into(),
                text: "<fe/>".into(),
                number: None,
            }),
            "200 OK",
            "",
        ),
        (post("/roll-back", ""), Request::RollBack(Empty {}), "200 OK", ""),
    ] {
        let mut talk = Talk::new();
        // Byte by byte, and twice on one connection.
        let mut response = String::new();
        for byte in &bytes {
            response += &talk.say(&[*byte], None).0;
        }
        assert!(response.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{response}");
        assert!(response.contains(holds), "{response}");
        let (again, stays) = talk.say(&[&bytes[..], &bytes].concat(), None);
        assert_eq!((again, stays), (response.repeat(2), true));
        assert_eq!(talk.asked, [asks.clone(), asks.clone(), asks]);
    }
}

#[test]
fn invalid_requests_are_rejected_and_the_connection_is_closed() {
    let long = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(HEAD_BYTES_MAX));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(HEADERS_MAX + 1));
    for (bytes, status) in [
        ("\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n".to_owned(), "400"),
        ("PUT /program HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), "405"),
        (
            "POST /program HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                .to_owned(),
            "411",
        ),
        (
            "POST /program HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n".to_owned(),
            "400",
        ),
        (
            "POST /program HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n"
                .to_owned(),
            "413",
        ),
        (
            "POST /program HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil\r\n\r\n".to_owned(),
            "403",
        ),
        (long, "431"),
        (many, "400"),
    ] {
        let mut talk = Talk::new();
        let (response, stays) = talk.say(bytes.as_bytes(), None);
        assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{bytes}\n{response}");
        assert!(response.contains("Connection: close") && !stays, "{response}");
        assert_eq!(talk.asked, []);
    }
    for (bytes, status) in
        [(get("/nothing"), "404"), (get("/check"), "405"), (post("/counters", ""), "405")]
    {
        let (response, stays) = Talk::new().say(&bytes, None);
        assert!(response.starts_with(&format!("HTTP/1.1 {status}")) && stays, "{response}");
    }
}

#[test]
fn a_required_token_is_checked() {
    let token = Some("0123456789abcdef");
    let with = |credentials: &str| {
        format!("GET /about HTTP/1.1\r\nHost: 10.0.0.1:80\r\nAuthorization: {credentials}\r\n\r\n")
    };
    for credentials in ["", "Bearer ", "Bearer 0123456789abcdeg", "Basic 0123456789abcdef"] {
        let (response, stays) = Talk::new().say(with(credentials).as_bytes(), token);
        assert!(response.starts_with("HTTP/1.1 401") && !stays, "{response}");
    }
    let (response, _) = Talk::new().say(with("Bearer 0123456789abcdef").as_bytes(), token);
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
}

#[test]
fn a_body_is_awaited_after_100_continue() {
    let mut talk = Talk::new();
    let head = "POST /check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
    assert_eq!(talk.say(head.as_bytes(), None).0, "HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(talk.say(b"<f", None).0, "");
    assert!(talk.say(b"e/>", None).0.starts_with("HTTP/1.1 200"));
    talk.now = SILENCE_MAX;
    assert!(!talk.say(b"", None).1, "a silent client is closed");
}

#[test]
fn damaged_requests_are_answered_or_end_the_connection() {
    let good = b"POST /program?name=a%20b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n<fe>GET /components/nh/T%5B2%5D HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let words: [&[u8]; 8] =
        [b"\r\n\r\n", b"%", b"99999999999999999999", b"-1", b" ", b"\0", b"\xff", b"HTTP/1.0"];
    let mut number = 1u64;
    let mut roll = |below: usize| {
        number = number.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (number >> 33) as usize % below
    };
    let mut answered = 0;
    for _ in 0..4000 {
        let mut bytes = good.to_vec();
        for _ in 0..1 + roll(3) {
            let (at, word) = (roll(bytes.len()), words[roll(words.len())]);
            let end = (at + roll(6)).min(bytes.len());
            bytes.splice(at..end, word.iter().copied());
        }
        let mut talk = Talk::new();
        let (response, stays) = talk.say(&bytes, None);
        let mut lines = response.split("\r\n");
        assert!(
            response.is_empty()
                || lines.all(|line| !line.starts_with("HTTP/1.1") || line.len() > 12)
        );
        assert!(response.is_empty() || response.starts_with("HTTP/1.1 "), "{response:?}");
        assert!(stays || !response.is_empty() || bytes.is_empty());
        answered += usize::from(response.starts_with("HTTP/1.1 2"));
    }
    assert!(answered > 100, "{answered}");
}

#[test]
fn pipelined_requests_are_answered_in_limited_numbers_per_turn() {
    const REQUESTS: usize = 4_000;
    // This size once overflowed the stack: each request used its own stack frame, with a copy
    // of the rest. Debug builds need more stack than release builds, and two threads more than one.
    let small = std::thread::Builder::new().stack_size(256 << 10);
    let answered = small.spawn(|| {
        let (mut near, far) = memory::pair(1 << 22, "http");
        let mut client = Client::new(Box::new(far), Nanos::ZERO);
        let request = b"GET /about HTTP/1.1\nHost: [::1]\n\n";
        let bytes = request.repeat(REQUESTS);
        assert_eq!(near.transmit(&bytes).unwrap(), bytes.len());
        let (access, mut buffer) = (Access::default(), vec![0; READ_BYTES]);
        let (mut answered, mut turns) = (0, 0);
        while answered < REQUESTS {
            let before = answered;
            let mut left = REQUESTS_A_TURN;
            let turned = client.turn(Nanos::ZERO, &mut buffer, &access, &mut left, &mut |_| {
                answered += 1;
                RequestOutcome::Now(Ok(json!(1)))
            });
            assert!(turned.is_ok());
            let now = answered - before;
            assert!((1..=REQUESTS_A_TURN_OF_ONE).contains(&now), "{now} requests in one turn");
            assert_eq!(REQUESTS_A_TURN - left, now, "the rest of the turn is for other clients");
            assert!(client.input.len() <= 2 * READ_BYTES && client.output.len() <= OUTPUT_BYTES);
            turns += 1;
            while near.receive(&mut buffer).unwrap() > 0 {}
        }
        assert!(turns >= REQUESTS / REQUESTS_A_TURN_OF_ONE);
        answered
    });
    assert_eq!(answered.unwrap().join().unwrap(), REQUESTS);
}

#[test]
fn a_turn_at_its_limit_answers_nothing_and_requests_another_turn() {
    let (mut near, far) = memory::pair(1 << 20, "http");
    let mut client = Client::new(Box::new(far), Nanos::ZERO);
    let (access, mut buffer) = (Access::default(), vec![0; READ_BYTES]);
    near.transmit(&get("/about")).unwrap();
    let now = Nanos::from_secs(1);
    for (left, answers) in [(0, 0), (1, 1)] {
        let mut count = 0;
        let turned = client.turn(now, &mut buffer, &access, &mut { left }, &mut |_| {
            count += 1;
            RequestOutcome::Now(Ok(json!(1)))
        });
        assert_eq!((turned, count), (Ok(()), answers));
        assert_eq!(client.due(now) == now, answers == 0, "only then is there more to do");
    }
}

#[test]
fn requests_for_another_host_and_from_another_site_are_rejected() {
    let with = |headers: &str| {
        let bytes = format!("GET /about HTTP/1.1\r\n{headers}\r\n");
        Talk::new().say(bytes.as_bytes(), None).0
    };
    for (headers, status) in [
        ("", "421"),
        ("Host: evil.example:8080\r\n", "421"),
        ("Host: localhost\r\nHost: localhost\r\n", "421"),
        ("Host: localhost:8080\r\nOrigin: http://evil.example\r\n", "403"),
        ("Host: localhost:8080\r\nSec-Fetch-Site: cross-site\r\n", "403"),
        ("Host: localhost:8080\r\nOrigin: http://localhost:8080\r\n", "200"),
        ("Host: 10.0.0.1:8080\r\nSec-Fetch-Site: none\r\n", "200"),
        ("Host: element.example\r\n", "200"),
    ] {
        let reply = with(headers);
        assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{headers}\n{reply}");
    }
}

#[test]
fn an_incomplete_head_times_out_before_an_idle_client() {
    let mut talk = Talk::new();
    talk.now = Nanos(HEAD_TIME_MAX.0 - 1);
    assert!(talk.say(b"", None).1);
    talk.now = HEAD_TIME_MAX;
    assert!(!talk.say(b"", None).1, "no request came");
    let mut talk = Talk::new();
    assert!(talk.say(&get("/about"), None).1);
    talk.now = Nanos(SILENCE_MAX.0 - 1);
    assert!(talk.say(b"GET /ab", None).1, "it was idle");
    talk.now = talk.now.saturating_add(HEAD_TIME_MAX);
    assert!(!talk.say(b"out", None).1, "the head is not complete");
}

#[test]
fn silent_connections_are_replaced_by_new_ones() {
    let limits = ConnectionLimits { total: 4, per_source: 3 };
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let (token, names) = (None, Vec::new());
    let config = HttpConfig { address, token, names, limits, is_insecure: false };
    let mut http = Http::open(&config).unwrap();
    let Url::PassiveTcp(address) = *http.address() else { panic!("{}", http.address()) };
    let until = clock::now().saturating_add(Nanos::from_secs(30));
    let mut silent = Vec::new();
    let turn = |http: &mut Http| http.turn(Nanos::ZERO, &mut |_| RequestOutcome::Now(Ok(json!(1))));
    while http.counters.admitted < 20 {
        if silent.len() < 20 {
            silent.push(TcpStream::connect(address).unwrap());
        }
        turn(&mut http);
        assert!(http.clients.len() <= limits.per_source, "one source has no more connections");
        assert!(clock::now() < until);
    }
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(&get("/about")).unwrap();
    client.set_nonblocking(true).unwrap();
    let mut answer = [0; 12];
    while client.read(&mut answer).is_err() {
        turn(&mut http);
        assert!(clock::now() < until);
    }
    assert_eq!(&answer, b"HTTP/1.1 200");
    let counters = http.counters();
    let displaced = counters.admitted - limits.per_source as u64;
    assert_eq!((counters.admitted, counters.refused, counters.displaced), (21, 0, displaced));
}

#[test]
fn rejected_connections_are_counted() {
    let limits = ConnectionLimits { total: 4, per_source: 2 };
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let (token, names) = (None, Vec::new());
    let config = HttpConfig { address, token, names, limits, is_insecure: false };
    let mut http = Http::open(&config).unwrap();
    let Url::PassiveTcp(address) = *http.address() else { panic!("{}", http.address()) };
    let until = clock::now().saturating_add(Nanos::from_secs(30));
    // Clients that wait for their replies are not closed in favour of others.
    let turn = |http: &mut Http| {
        http.turn(Nanos::ZERO, &mut RequestOutcome::Later);
        assert!(clock::now() < until);
    };
    let mut asking = Vec::new();
    while http.clients.iter().filter(|client| client.asked.is_some()).count() < limits.per_source {
        if asking.len() < limits.per_source {
            asking.push(TcpStream::connect(address).unwrap());
            asking.last_mut().unwrap().write_all(&get("/about")).unwrap();
        }
        turn(&mut http);
    }
    let mut refused = TcpStream::connect(address).unwrap();
    while http.counters().refused == 0 {
        turn(&mut http);
    }
    assert_eq!(refused.read(&mut [0; 9]).unwrap(), 0);
    assert_eq!((http.counters().refused, http.clients.len()), (1, limits.per_source));
}
