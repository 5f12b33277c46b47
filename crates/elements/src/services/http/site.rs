//! Checks of server name and origin page: protection of HTTP servers on private addresses against
//! browsers.
//!
//! Web pages can make a browser send requests here in two ways:
//! - DNS rebinding: a name of another site resolves to this host's address. The request's `Host` is
//!   then that name.
//! - Cross-site request forgery: a page of another site sends requests to this host's address.
//!   `Origin` (RFC 6454) and `Sec-Fetch-Site` (W3C, Fetch Metadata Request Headers) then name that
//!   site.
//!
//! Programs other than browsers send neither header.
//!
//! Invariant: a name is accepted only if it is an IP address, which a browser does not resolve,
//! `localhost`, or a name that the user configured.

use std::net::IpAddr;

/// Names that requests may use for a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerNames(Vec<String>);

/// Origin of a request according to its headers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Provenance<'a> {
    /// The `Host` header, if there is exactly one.
    pub host: Option<&'a str>,
    /// The `Origin` header.
    pub origin: Option<&'a str>,
    /// The `Sec-Fetch-Site` header.
    pub fetch_site: Option<&'a str>,
}

/// Why a request is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrossSiteFault {
    /// Its `Host` is none of the server's names.
    Host,
    /// A page of another site sent it.
    Page,
}

impl ServerNames {
    /// Creates the names of a server: these, its addresses and `localhost`.
    pub fn new(names: Vec<String>) -> ServerNames {
        ServerNames(names)
    }

    /// Checks the host, and the page if the request `is_guarded` against pages of other sites.
    pub fn check(&self, request: &Provenance<'_>, is_guarded: bool) -> Result<(), CrossSiteFault> {
        let host = request.host.filter(|host| self.has(host)).ok_or(CrossSiteFault::Host)?;
        match !is_guarded || is_own_page(host, request) {
            true => Ok(()),
            false => Err(CrossSiteFault::Page),
        }
    }

    /// Whether a `Host` header (RFC 9110, section 7.2) names this server.
    fn has(&self, host: &str) -> bool {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
            _ => (host, None),
        };
        if port.is_some_and(|port| port.parse::<u16>().is_err()) {
            return false;
        }
        let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        address.unwrap_or(name).parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self.0.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// Whether a page of this server, or no page, sent the request.
fn is_own_page(host: &str, request: &Provenance<'_>) -> bool {
    match (request.origin, request.fetch_site) {
        (Some(origin), _) => origin.eq_ignore_ascii_case(&format!("http://{host}")),
        (None, Some(site)) => matches!(site, "same-origin" | "none"),
        (None, None) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        host: Option<&str>,
        origin: Option<&str>,
        fetch_site: Option<&str>,
    ) -> Result<(), CrossSiteFault> {
        let names = ServerNames::new(vec!["element.example".into()]);
        names.check(&Provenance { host, origin, fetch_site }, true)
    }

    #[test]
    fn unknown_host_names_are_rejected() {
        for host in
            ["evil.example:7700", "localhost.evil.example", "", "127.0.0.1:x", "[::1", "a:b:c", "?"]
        {
            assert_eq!(check(Some(host), None, None), Err(CrossSiteFault::Host), "{host}");
        }
        assert_eq!(check(None, None, None), Err(CrossSiteFault::Host));
        for host in [
            "localhost:7700",
            "LOCALHOST",
            "[::1]:7700",
            "[::1]",
            "10.1.2.3:80",
            "Element.example:1",
        ] {
            assert_eq!(check(Some(host), None, None), Ok(()), "{host}");
        }
        let none = ServerNames::default();
        let named = Provenance { host: Some("element.example"), ..Provenance::default() };
        assert_eq!(none.check(&named, false), Err(CrossSiteFault::Host));
    }

    #[test]
    fn a_page_of_another_site_is_rejected_if_protected() {
        let host = Some("127.0.0.1:7700");
        assert_eq!(check(host, Some("http://127.0.0.1:7700"), None), Ok(()));
        for site in ["same-origin", "none"] {
            assert_eq!(check(host, None, Some(site)), Ok(()), "{site}");
        }
        for origin in
            ["http://evil.example", "null", "https://127.0.0.1:7700", "http://127.0.0.1", "?"]
        {
            assert_eq!(check(host, Some(origin), None), Err(CrossSiteFault::Page), "{origin}");
        }
        for site in ["cross-site", "same-site", "?"] {
            assert_eq!(check(host, None, Some(site)), Err(CrossSiteFault::Page), "{site}");
        }
        let foreign = Provenance { host, origin: Some("http://evil.example"), fetch_site: None };
        assert_eq!(ServerNames::default().check(&foreign, false), Ok(()));
    }
}
