//! Parsing and authorization of requests.

use super::site::{CrossSiteFault, Provenance, ServerNames};
use super::{Answer, BODY_BYTES_MAX};
use crate::control::Request;
use crate::control::request::{ComponentAt, Empty, ProgramSource, Resource};

/// A parsed request head.
pub(super) struct RequestHead {
    is_post: bool,
    path: String,
    query: String,
    pub(super) body_bytes: usize,
    pub(super) expects: bool,
    pub(super) closes: bool,
}

/// Parses a head, and rejects a request whose sender is not authorized.
pub(super) fn asked(
    head: &httparse::Request<'_, '_>,
    names: &ServerNames,
    token: Option<&str>,
) -> Result<RequestHead, Answer> {
    let value = |name: &str| {
        let found = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        found.map(|header| std::str::from_utf8(header.value).unwrap_or("?").trim())
    };
    let hosts = head.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host"));
    let provenance = Provenance {
        host: value("host").filter(|_| hosts.count() == 1),
        origin: value("origin"),
        fetch_site: value("sec-fetch-site"),
    };
    // Reads are protected too: without a token, nothing else excludes pages of other sites.
    match names.check(&provenance, true) {
        Ok(()) => {}
        Err(CrossSiteFault::Host) => {
            return Err(Answer::of(
                "421 Misdirected Request",
                "unknown Host (hint: use the element's address or localhost, or add the name with \
                 --server-name)",
            ));
        }
        Err(CrossSiteFault::Page) => {
            return Err(Answer::of(
                "403 Forbidden",
                "rejected: the request comes from a page of another site",
            ));
        }
    }
    let shown = value("authorization").and_then(|shown| shown.strip_prefix("Bearer "));
    if let Some(token) = token
        && !shown.is_some_and(|shown| is_same(shown, token))
    {
        return Err(Answer::of(
            "401 Unauthorized",
            "missing or wrong token (hint: send 'Authorization: Bearer TOKEN')",
        ));
    }
    let is_post = match head.method {
        Some("GET") => false,
        Some("POST") => true,
        _ => {
            return Err(Answer::of(
                "405 Method Not Allowed",
                "unsupported method (hint: use GET or POST)",
            ));
        }
    };
    if value("transfer-encoding").is_some() {
        return Err(Answer::of(
            "411 Length Required",
            "no body length (hint: send the body with Content-Length)",
        ));
    }
    let body_bytes = match value("content-length") {
        None => 0,
        Some(text) => match text.parse() {
            Ok(bytes) if bytes <= BODY_BYTES_MAX => bytes,
            Ok(_) => {
                let what = format!("program too large: at most {BODY_BYTES_MAX} bytes");
                return Err(Answer::of("413 Content Too Large", what));
            }
            Err(_) => return Err(Answer::of("400 Bad Request", "invalid Content-Length")),
        },
    };
    let target = head.path.unwrap_or("/");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let is_old = head.version == Some(0);
    let connection = value("connection").unwrap_or("");
    Ok(RequestHead {
        is_post,
        path: unescaped(path),
        query: query.to_owned(),
        body_bytes,
        expects: value("expect").is_some_and(|it| it.eq_ignore_ascii_case("100-continue")),
        closes: is_old || connection.eq_ignore_ascii_case("close"),
    })
}

impl RequestHead {
    pub(super) fn request(&self, body: &[u8]) -> Result<Request, Answer> {
        let program = || {
            let text = String::from_utf8(body.to_vec())
                .map_err(|_| Answer::of("400 Bad Request", "the program is not UTF-8"))?;
            let name = self.query.split('&').find_map(|part| part.strip_prefix("name="));
            let name = unescaped(name.unwrap_or("program.fe.xml"));
            Ok(ProgramSource { name, text, number: None })
        };
        let path: Vec<&str> = self.path.trim_matches('/').split('/').collect();
        match (self.is_post, &path[..]) {
            (true, ["program"]) => program().map(Request::Load),
            (true, ["check"]) => program().map(Request::Check),
            (true, ["roll-back"]) => Ok(Request::RollBack(Empty {})),
            (false, ["program"]) => Ok(Request::Get(Resource::Program)),
            (false, ["counters"]) => Ok(Request::Get(Resource::Counters)),
            (false, ["agents"]) => Ok(Request::Get(Resource::Agents)),
            (false, ["about"]) => Ok(Request::Get(Resource::About)),
            (false, ["components", instance, component @ ..]) if !component.is_empty() => {
                let (instance, path) = ((*instance).to_owned(), component.join("."));
                Ok(Request::GetComponent(ComponentAt { instance, path, value: String::new() }))
            }
            (true, ["counters" | "agents" | "about"]) | (false, ["check" | "roll-back"]) => {
                Err(Answer::of(
                    "405 Method Not Allowed",
                    "wrong method for this path (hint: use POST to change or check, GET to read)",
                ))
            }
            _ => Err(Answer::of(
                "404 Not Found",
                "unknown path (hint: use /program, /check, /roll-back, /counters, /agents, /about \
                 or /components/INSTANCE/PATH)",
            )),
        }
    }
}

/// Compares two texts in time that does not depend on where they differ.
fn is_same(one: &str, other: &str) -> bool {
    let differing = one.bytes().zip(other.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    one.len() == other.len() && differing == 0
}

/// Decodes `%HH` in a part of a request target.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (first, byte) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
