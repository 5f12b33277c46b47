//! Address of a shared results store: `postgres://USER@HOST:PORT/DATABASE`.
//!
//! Source: PostgreSQL 17, sections 32.1.1.2 (connection URIs), 32.1.2 (parameters), 32.16 (password
//! file), 32.19.1 (`sslmode`). Invariants:
//!
//! - No displayable value contains a password.
//! - An unsupported parameter is an error, never ignored.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::tls::{Files, Security};

/// URI schemes.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// Default port.
const PORT: u16 = 5432;

/// Default timeout for connection and login; `connect_timeout` overrides it.
const CONNECT: Duration = Duration::from_secs(10);

/// Maximum value of `connect_timeout` in seconds.
const CONNECT_S_MAX: u64 = 600;

/// Reply timeout.
const ANSWER: Duration = Duration::from_secs(60);

/// Maximum size of a password file.
const PASSWORDS_BYTES_MAX: u64 = 1 << 20;

/// Settings from the environment that complete an address.
#[derive(Clone, Default)]
pub struct AddressDefaults {
    /// Name of the local user.
    pub user: String,
    /// The password (`PGPASSWORD`).
    pub password: Option<String>,
    /// Password file (`PGPASSFILE`), which must exist.
    pub passwords: Option<PathBuf>,
    /// The user's home folder, with the default password file and certificates.
    pub home: Option<PathBuf>,
}

/// Location of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerLocation {
    /// Host name or IP address.
    Host(String),
    /// Folder of a local Unix socket.
    Socket(PathBuf),
}

/// Address and user of a store.
#[derive(Clone)]
pub struct Address {
    pub(crate) user: String,
    pub(crate) password: Option<String>,
    pub(crate) place: ServerLocation,
    pub(crate) port: u16,
    pub(crate) database: String,
    pub(crate) security: Security,
    /// Timeout for connection and login.
    pub(crate) connect: Duration,
    /// Reply timeout.
    pub(crate) answer: Duration,
}

/// Why an address is invalid or unsupported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddressError {
    /// Unknown scheme.
    Scheme,
    /// Invalid part, and the reason.
    Part(&'static str, String),
    /// Unknown parameter.
    Unknown(String),
    /// The password file cannot be used.
    Passwords(PathBuf, String),
}

impl Address {
    /// Parses an address. The second value states whether the text contained a password.
    pub fn read(text: &str, beside: &AddressDefaults) -> Result<(Address, bool), AddressError> {
        let rest = SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme));
        let rest = rest.ok_or(AddressError::Scheme)?;
        let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (who, at) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = match who.split_once(':') {
            Some((user, password)) => (user, Some(decoded("password", password)?)),
            None => (who, None),
        };
        let (host, port) = host_and_port(at)?;
        let mut found =
            AddressParts { host: decoded("host", host)?, port, ..AddressParts::default() };
        for pair in parameters.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            found.set(name, decoded("parameter", value)?)?;
        }
        let or = |text: String, other: &str| if text.is_empty() { other.to_string() } else { text };
        let user = or(decoded("user", user)?, &beside.user);
        let database = or(decoded("database", database)?, &user);
        for (part, text) in [("user", &user), ("database", &database), ("host", &found.host)] {
            if text.contains('\0') {
                return Err(AddressError::Part(part, "a zero byte is invalid".into()));
            }
        }
        let place = match found.host.as_str() {
            "" => return Err(AddressError::Part("host", "it is missing".into())),
            host if host.starts_with('/') => ServerLocation::Socket(host.into()),
            _ => ServerLocation::Host(found.host.clone()),
        };
        let security = found.security(beside.home.as_deref())?;
        let stood = password.is_some();
        let password = password.or_else(|| beside.password.clone());
        let mut address = Address {
            user,
            password,
            place,
            port: found.port.unwrap_or(PORT),
            database,
            security,
            connect: found.connect.unwrap_or(CONNECT),
            answer: ANSWER,
        };
        if address.password.is_none() {
            address.password = address.kept_password(beside)?;
        }
        Ok((address, stood))
    }

    /// The password from the password file.
    fn kept_password(&self, beside: &AddressDefaults) -> Result<Option<String>, AddressError> {
        let usual = beside.home.as_ref().map(|home| home.join(".pgpass")).filter(|it| it.exists());
        let Some(file) = beside.passwords.clone().or(usual) else { return Ok(None) };
        let wrong = |why: String| AddressError::Passwords(file.clone(), why);
        let facts = fs::metadata(&file).map_err(|error| wrong(error.to_string()))?;
        if facts.permissions().mode() & 0o077 != 0 {
            return Err(wrong("other users can read the file (hint: run chmod 600)".into()));
        }
        if !facts.is_file() || facts.len() > PASSWORDS_BYTES_MAX {
            return Err(wrong("not a password file".into()));
        }
        let text = fs::read_to_string(&file).map_err(|error| wrong(error.to_string()))?;
        let host = match &self.place {
            ServerLocation::Host(host) => host.clone(),
            ServerLocation::Socket(folder) => folder.display().to_string(),
        };
        let wanted = [host.as_str(), &self.port.to_string(), &self.database, &self.user];
        Ok(text.lines().find_map(|line| password_in(line, wanted)))
    }
}

/// The password from a line of a password file, if the line matches.
fn password_in(line: &str, wanted: [&str; 4]) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let (mut fields, mut letters) = (vec![String::new()], line.chars());
    while let Some(letter) = letters.next() {
        if letter == ':' && fields.len() < 5 {
            fields.push(String::new());
            continue;
        }
        let letter = if letter == '\\' { letters.next() } else { Some(letter) };
        fields.last_mut().expect("there is one from the start").extend(letter);
    }
    let password = if fields.len() == 5 { fields.pop()? } else { return None };
    let is_it = fields.iter().zip(wanted).all(|(field, wanted)| field == "*" || field == wanted);
    is_it.then_some(password)
}

/// Parts of an address other than user and database.
#[derive(Default)]
struct AddressParts {
    host: String,
    port: Option<u16>,
    connect: Option<Duration>,
    mode: String,
    files: Files,
}

impl AddressParts {
    fn set(&mut self, name: &str, value: String) -> Result<(), AddressError> {
        match name {
            "host" => self.host = value,
            "port" => self.port = Some(port(&value)?),
            "connect_timeout" => {
                let seconds = value.parse().ok().filter(|it| (1..=CONNECT_S_MAX).contains(it));
                let why = || format!("expected 1 to {CONNECT_S_MAX} seconds");
                let seconds =
                    seconds.ok_or_else(|| AddressError::Part("connect_timeout", why()))?;
                self.connect = Some(Duration::from_secs(seconds));
            }
            "sslmode" => self.mode = value,
            "sslrootcert" => self.files.roots = Some(value.into()),
            "sslcert" => self.files.certificate = Some(value.into()),
            "sslkey" => self.files.key = Some(value.into()),
            _ => return Err(AddressError::Unknown(name.chars().take(40).collect())),
        }
        Ok(())
    }

    fn security(&self, home: Option<&Path>) -> Result<Security, AddressError> {
        let wrong = |why: &str| AddressError::Part("sslmode", why.into());
        let files = self.files.clone().or_usual(home);
        Ok(match self.mode.as_str() {
            "disable" => Security::None,
            "" | "prefer" => Security::Preferred(files),
            // As in libpq: `require` with a root certificate verifies the CA.
            "require" if files.roots.is_some() => Security::Vouched(files),
            "require" => Security::Encrypted(files),
            "verify-ca" => Security::Vouched(files),
            "verify-full" => Security::Named(files),
            "allow" => {
                return Err(wrong("allow is unsupported (hint: use prefer or disable)"));
            }
            _ => {
                return Err(wrong("expected disable, prefer, require, verify-ca or verify-full"));
            }
        })
    }
}

fn host_and_port(text: &str) -> Result<(&str, Option<u16>), AddressError> {
    if text.contains(',') {
        return Err(AddressError::Part("host", "only one host is supported".into()));
    }
    // IPv6 addresses are in brackets.
    if let Some((inner, rest)) = text.strip_prefix('[').and_then(|it| it.split_once(']')) {
        let port = rest.strip_prefix(':').map(port).transpose()?;
        return Ok((inner, port));
    }
    match text.rsplit_once(':') {
        Some((host, "")) => Ok((host, None)),
        Some((host, text)) => Ok((host, Some(port(text)?))),
        None => Ok((text, None)),
    }
}

fn port(text: &str) -> Result<u16, AddressError> {
    let port = text.parse().ok().filter(|port| *port != 0);
    port.ok_or_else(|| AddressError::Part("port", "expected a number from 1 to 65535".into()))
}

/// Decodes percent-encoding.
fn decoded(part: &'static str, text: &str) -> Result<String, AddressError> {
    let wrong = || {
        let why = "% without two hexadecimal digits (hint: write %25 for a %)";
        AddressError::Part(part, why.into())
    };
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = rest.get(..2).and_then(|it| std::str::from_utf8(it).ok()).ok_or_else(wrong)?;
        let is_hex = digits.bytes().all(|it| it.is_ascii_hexdigit());
        bytes.push(u8::from_str_radix(digits, 16).ok().filter(|_| is_hex).ok_or_else(wrong)?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map_err(|_| AddressError::Part(part, "not UTF-8".into()))
}

/// The address without its password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clean = |text: &str| text.replace(char::is_control, " ");
        let (user, database) = (clean(&self.user), clean(&self.database));
        match &self.place {
            ServerLocation::Host(host) if host.contains(':') => {
                write!(f, "postgres://{user}@[{}]:{}/{database}", clean(host), self.port)
            }
            ServerLocation::Host(host) => {
                write!(f, "postgres://{user}@{}:{}/{database}", clean(host), self.port)
            }
            ServerLocation::Socket(folder) => {
                let folder = clean(&folder.display().to_string());
                write!(f, "postgres://{user}@/{database}?host={folder}&port={}", self.port)
            }
        }
    }
}

/// Uses `Display`, which omits the password.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// Never prints the address itself, which may contain a password.
impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddressError::Scheme => {
                write!(
                    f,
                    "the address does not begin with postgres:// (hint: write \
                     postgres://USER@HOST:PORT/DATABASE)"
                )
            }
            AddressError::Part(part, why) => write!(f, "invalid {part}: {why}"),
            AddressError::Unknown(name) => write!(
                f,
                "unsupported parameter {name:?} (hint: use host, port, connect_timeout, sslmode, \
                 sslrootcert, sslcert or sslkey)"
            ),
            AddressError::Passwords(file, why) => write!(f, "{}: {why}", file.display()),
        }
    }
}

impl std::error::Error for AddressError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside() -> AddressDefaults {
        AddressDefaults { user: "ann".into(), ..AddressDefaults::default() }
    }

    #[test]
    fn addresses_are_parsed_and_printed_without_passwords() {
        for (text, shown, password) in [
            ("postgres://db", "postgres://ann@db:5432/ann", None),
            ("postgres://bob@db/", "postgres://bob@db:5432/bob", None),
            ("postgresql://bob:s%40c:ret@db:99/lab", "postgres://bob@db:99/lab", Some("s@c:ret")),
            ("postgres://bob:@db/lab", "postgres://bob@db:5432/lab", Some("")),
            ("postgres://[::1]:7/lab?sslmode=disable", "postgres://ann@[::1]:7/lab", None),
            ("postgres://a%20b@db/l%C3%A4b", "postgres://a b@db:5432/läb", None),
            (
                "postgres:///lab?host=/run/pg&port=77",
                "postgres://ann@/lab?host=/run/pg&port=77",
                None,
            ),
            ("postgres://%2Frun%2Fpg/lab", "postgres://ann@/lab?host=/run/pg&port=5432", None),
        ] {
            let (address, stood) = Address::read(text, &beside()).unwrap();
            assert_eq!(address.to_string(), shown, "{text}");
            assert_eq!((address.password.as_deref(), stood), (password, password.is_some()));
            assert!(!format!("{address:?}").contains("ret"), "{text}");
        }
    }

    #[test]
    fn errors_do_not_contain_the_address() {
        for (text, want) in [
            ("mysql://u:secret@db/x", "does not begin with postgres://"),
            ("u:secret@db", "does not begin with postgres://"),
            ("postgres://", "host: it is missing"),
            ("postgres://u:secret@/x", "host: it is missing"),
            ("postgres://u:secret%4@db/x", "password: % without two"),
            ("postgres://u:secret%ff@db/x", "password: not UTF-8"),
            ("postgres://u:secret@a,b/x", "host: only one host"),
            ("postgres://u:secret@a:0/x", "port: expected a number"),
            ("postgres://u:secret@a:x/x", "port: expected a number"),
            ("postgres://u:secret@a/x?sslmode=allow", "sslmode: allow is unsupported"),
            ("postgres://u:secret@a/x?sslmode=yes", "sslmode: expected disable"),
            ("postgres://u:secret@a/x?options=-c", "unsupported parameter \"options\""),
            ("postgres://u:secret@a/x?connect_timeout=0", "connect_timeout: expected 1 to"),
            ("postgres://u%00:secret@a/x", "user: a zero byte"),
        ] {
            let message = Address::read(text, &beside()).unwrap_err().to_string();
            assert!(message.contains(want) && !message.contains("secret"), "{text}: {message}");
        }
    }

    #[test]
    fn a_password_comes_from_a_private_file() {
        let file = std::env::temp_dir().join(format!("planimeter-pgpass-{}", std::process::id()));
        let lines = "# other:*:*:*:no\nother:*:*:*:no\ndb:5432:lab:ann:a\\:b\\\\c:d\n*:*:*:*:any\n";
        fs::write(&file, lines).unwrap();
        let asked = |text: &str, passwords: &Path| {
            let beside = AddressDefaults { passwords: Some(passwords.into()), ..beside() };
            Address::read(text, &beside).map(|(address, _)| address.password)
        };
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let message = asked("postgres://db/lab", &file).unwrap_err().to_string();
        assert!(message.contains("other users can read the file"), "{message}");
        // A password in the address takes precedence over the file.
        assert_eq!(asked("postgres://ann:x@db/lab", &file).unwrap().as_deref(), Some("x"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(asked("postgres://db/lab", &file).unwrap().as_deref(), Some("a:b\\c:d"));
        assert_eq!(asked("postgres://db/other", &file).unwrap().as_deref(), Some("any"));
        fs::remove_file(&file).unwrap();
        assert!(asked("postgres://db/lab", &file).is_err(), "the named file is missing");
        let beside = AddressDefaults { password: Some("env".into()), ..beside() };
        let (address, stood) = Address::read("postgres://db/lab", &beside).unwrap();
        assert_eq!((address.password.as_deref(), stood), (Some("env"), false));
    }
}
