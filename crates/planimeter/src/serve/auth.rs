//! Authentication of requests by the server's token.
//!
//! A client sends the token in the address that the server prints at start, in the cookie of its
//! first visit, or as `Authorization: Bearer`. Against DNS rebinding and cross-site requests, every
//! request passes the checks of all HTTP servers of this project
//! ([`site`](elements::services::http::site)). A request that changes state must come from a page of
//! this server, or from no page.
//!
//! Invariant: the time to compare a token does not depend on its value.

use std::fmt;
use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::path::Path;

use axum::http::{HeaderMap, header};
use elements::services::http::site::{CrossSiteFault, Provenance, ServerNames};

/// Bytes of a generated token.
const TOKEN_BYTES: usize = 24;

/// Minimum length of a token that the user chose, in characters.
const TOKEN_CHARS_MIN: usize = 16;
const LETTERS_MAX: usize = 256;

/// The server's access token.
#[derive(Clone)]
pub struct Token(String);

/// Error of a token.
#[derive(Debug)]
pub enum TokenError {
    /// The file cannot be read.
    Unreadable(std::io::Error),
    /// The file does not contain a valid token.
    Unfit,
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenError::Unreadable(error) => write!(f, "cannot read the token: {error}"),
            TokenError::Unfit => write!(
                f,
                "invalid token (hint: use one line of {TOKEN_CHARS_MIN} to {LETTERS_MAX} letters, \
                 digits, - and _)"
            ),
        }
    }
}

impl Token {
    /// Generates an unpredictable token.
    pub fn random() -> Result<Token, TokenError> {
        let mut bytes = [0; TOKEN_BYTES];
        let read = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
        read.map_err(TokenError::Unreadable)?;
        Ok(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Reads the token from a file, so that it stays the same across restarts.
    pub fn of_file(file: &Path) -> Result<Token, TokenError> {
        let mut text = String::new();
        let opened = File::open(file).map_err(TokenError::Unreadable)?;
        opened
            .take(2 * LETTERS_MAX as u64)
            .read_to_string(&mut text)
            .map_err(TokenError::Unreadable)?;
        let text = text.trim();
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        let fits = (TOKEN_CHARS_MIN..=LETTERS_MAX).contains(&text.len());
        if fits && text.bytes().all(is_letter) {
            Ok(Token(text.into()))
        } else {
            Err(TokenError::Unfit)
        }
    }

    /// Returns the token as it appears in an address.
    pub fn text(&self) -> &str {
        &self.0
    }

    fn is(&self, text: &str) -> bool {
        let (own, other) = (self.0.as_bytes(), text.as_bytes());
        if own.len() != other.len() {
            return false;
        }
        let differences = own.iter().zip(other).fold(0, |all, (a, b)| black_box(all | (a ^ b)));
        black_box(differences) == 0
    }
}

/// Result of the authentication of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Accepted.
    Welcome,
    /// Accepted; the response sets the cookie.
    FirstVisit,
    /// Missing or wrong token.
    Unknown,
    /// The `Host` header names another server.
    OtherHost,
    /// Sent by a page of another site.
    OtherPage,
}

/// The parts of a request that authentication uses.
pub(super) struct RequestIdentity<'a> {
    pub(super) headers: &'a HeaderMap,
    /// The token in the request's address, if any.
    pub(super) token: Option<&'a str>,
    /// Whether the request changes state.
    pub(super) changes: bool,
}

/// Returns the cookie's name. It contains the port, because cookies ignore ports and a host may run
/// two servers.
pub(super) fn cookie_name(port: u16) -> String {
    format!("planimeter-{port}")
}

/// Authenticates a request.
pub(super) fn judge(
    token: &Token,
    names: &ServerNames,
    port: u16,
    caller: &RequestIdentity<'_>,
) -> Verdict {
    let text = |name| caller.headers.get(name).and_then(|value| value.to_str().ok());
    let has = |name: &str| caller.headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let hosts = caller.headers.get_all(header::HOST).iter().count();
    let provenance = Provenance {
        host: text(header::HOST).filter(|_| hosts == 1),
        origin: has("origin"),
        fetch_site: has("sec-fetch-site"),
    };
    match names.check(&provenance, caller.changes) {
        Ok(()) => {}
        Err(CrossSiteFault::Host) => return Verdict::OtherHost,
        Err(CrossSiteFault::Page) => return Verdict::OtherPage,
    }
    if caller.token.is_some_and(|text| token.is(text)) {
        return Verdict::FirstVisit;
    }
    let bearer = text(header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
    if bearer.is_some_and(|text| token.is(text.trim())) {
        return Verdict::Welcome;
    }
    let name = cookie_name(port);
    let cookies = caller.headers.get_all(header::COOKIE).iter();
    let mut pairs = cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    match pairs.any(|(key, value)| key == name && token.is(value)) {
        true => Verdict::Welcome,
        false => Verdict::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    const PORT: u16 = 7700;

    fn headers(rows: &[(&str, &str)]) -> HeaderMap {
        let row = |(name, value): &(&str, &str)| {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            (name, HeaderValue::from_str(value).unwrap())
        };
        let mut all = HeaderMap::new();
        rows.iter().map(row).for_each(|(name, value)| {
            all.append(name, value);
        });
        all
    }

    fn judged(rows: &[(&str, &str)], token: Option<&str>, changes: bool) -> Verdict {
        let own = Token("0123456789abcdef".into());
        judge(
            &own,
            &ServerNames::default(),
            PORT,
            &RequestIdentity { headers: &headers(rows), token, changes },
        )
    }

    const HOST: (&str, &str) = ("host", "127.0.0.1:7700");

    #[test]
    fn the_token_is_accepted_in_url_cookie_and_header() {
        let good = "0123456789abcdef";
        assert_eq!(judged(&[HOST], Some(good), false), Verdict::FirstVisit);
        let cookie = ("cookie", "other=1; planimeter-7700=0123456789abcdef");
        assert_eq!(judged(&[HOST, cookie], None, false), Verdict::Welcome);
        let bearer = ("authorization", "Bearer 0123456789abcdef");
        assert_eq!(judged(&[HOST, bearer], None, true), Verdict::Welcome);
    }

    #[test]
    fn requests_without_the_token_are_rejected() {
        for wrong in ["", "0123456789abcdee", "0123456789abcdef0", "0123456789abcde"] {
            assert_eq!(judged(&[HOST], Some(wrong), false), Verdict::Unknown, "{wrong}");
            let bearer = format!("Bearer {wrong}");
            assert_eq!(judged(&[HOST, ("authorization", &bearer)], None, false), Verdict::Unknown);
        }
        let cookie = ("cookie", "planimeter-7701=0123456789abcdef");
        assert_eq!(judged(&[HOST, cookie], None, false), Verdict::Unknown, "another server's");
        assert_eq!(judged(&[HOST], None, false), Verdict::Unknown);
    }

    #[test]
    fn another_host_is_rejected_even_with_the_token() {
        let token = Some("0123456789abcdef");
        let evil = ("host", "evil.example:7700");
        assert_eq!(judged(&[evil], token, false), Verdict::OtherHost);
        assert_eq!(judged(&[], token, false), Verdict::OtherHost);
        assert_eq!(judged(&[HOST, HOST], token, false), Verdict::OtherHost);
        assert_eq!(judged(&[("host", "localhost:7700")], token, false), Verdict::FirstVisit);
    }

    #[test]
    fn only_pages_of_this_server_can_change_anything() {
        let bearer = ("authorization", "Bearer 0123456789abcdef");
        let with = |more: (&str, &str)| judged(&[HOST, bearer, more], None, true);
        assert_eq!(with(("origin", "http://127.0.0.1:7700")), Verdict::Welcome);
        assert_eq!(with(("origin", "http://evil.example")), Verdict::OtherPage);
        assert_eq!(with(("sec-fetch-site", "cross-site")), Verdict::OtherPage);
        let reads = judged(&[HOST, bearer, ("sec-fetch-site", "cross-site")], None, false);
        assert_eq!(reads, Verdict::Welcome);
    }

    #[test]
    fn tokens_are_random_and_token_files_are_checked() {
        let [one, other] = [(); 2].map(|()| Token::random().unwrap());
        assert_ne!(one.text(), other.text());
        assert_eq!(one.text().len(), 2 * TOKEN_BYTES);
        let file = std::env::temp_dir().join(format!("planimeter-token-{}", std::process::id()));
        std::fs::write(&file, "a-token_of-24-letters-ok\n").unwrap();
        assert_eq!(Token::of_file(&file).unwrap().text(), "a-token_of-24-letters-ok");
        for unfit in [
            "short",
            "",
            "with blanks in the middle of it",
            "\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}",
        ] {
            std::fs::write(&file, unfit).unwrap();
            assert!(matches!(Token::of_file(&file), Err(TokenError::Unfit)), "{unfit}");
        }
        std::fs::remove_file(&file).unwrap();
        assert!(matches!(Token::of_file(&file), Err(TokenError::Unreadable(_))));
    }
}
