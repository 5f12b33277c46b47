//! Credentials: a community, or a user with pass phrases.
//!
//! Invariant: a secret is never printed; `Debug` prints three asterisks.

use std::fmt;

use ring::{digest, hmac};

/// Minimum length of a pass phrase in characters (RFC 3414, section 11.2).
pub const PASSWORD_BYTES_MIN: usize = 8;

/// Maximum length of a name or a secret in bytes.
pub const SECRET_BYTES_MAX: usize = 255;

/// Secret bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

/// Credentials for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    /// Version 2c: a community.
    Community(Secret),
    /// Version 3: a user.
    User(User),
}

/// A user of version 3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The user name, which is sent in clear text.
    pub name: String,
    /// Authentication protocol and pass phrase, if messages are authenticated.
    pub auth: Option<(AuthProtocol, Secret)>,
    /// Privacy pass phrase for encryption (AES-128, RFC 3826); requires authentication.
    pub privacy: Option<Secret>,
}

/// Authentication protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthProtocol {
    /// HMAC-SHA-96 (RFC 3414).
    Sha1,
    /// HMAC-192-SHA-256 (RFC 7860).
    Sha256,
    /// HMAC-256-SHA-384 (RFC 7860).
    Sha384,
    /// HMAC-384-SHA-512 (RFC 7860).
    Sha512,
}

/// Reason why credentials are unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CredentialsError {
    /// The invalid part.
    pub what: &'static str,
    /// The reason.
    pub why: &'static str,
}

impl Secret {
    /// Creates a secret.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Secret {
        Secret(bytes.into())
    }

    /// Returns the secret as text, for a program that needs it; `None` if it is not UTF-8.
    pub fn exposed(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Credentials {
    /// Validates the credentials.
    pub fn check(&self) -> Result<(), CredentialsError> {
        let unusable = |what, why| Err(CredentialsError { what, why });
        match self {
            Credentials::Community(community) if community.0.len() > SECRET_BYTES_MAX => {
                unusable("community", "has more than 255 bytes")
            }
            Credentials::Community(_) => Ok(()),
            Credentials::User(user) => {
                if user.name.is_empty() || user.name.len() > 32 {
                    return unusable("user", "must have 1 to 32 bytes");
                }
                if user.privacy.is_some() && user.auth.is_none() {
                    return unusable("privacy_password", "requires an auth_password");
                }
                let short = |secret: &Secret| {
                    !(PASSWORD_BYTES_MIN..=SECRET_BYTES_MAX).contains(&secret.0.len())
                };
                match (&user.auth, &user.privacy) {
                    (Some((_, secret)), _) if short(secret) => {
                        unusable("auth_password", "must have 8 to 255 bytes")
                    }
                    (_, Some(secret)) if short(secret) => {
                        unusable("privacy_password", "must have 8 to 255 bytes")
                    }
                    _ => Ok(()),
                }
            }
        }
    }

    /// Returns version and security level, without secrets, for reports.
    pub fn level(&self) -> &'static str {
        match self {
            Credentials::Community(_) => "v2c",
            Credentials::User(User { auth: None, .. }) => "v3 noAuthNoPriv",
            Credentials::User(User { privacy: None, .. }) => "v3 authNoPriv",
            Credentials::User(_) => "v3 authPriv",
        }
    }
}

impl AuthProtocol {
    /// All protocols, with their names in settings.
    pub const NAMES: [(&'static str, AuthProtocol); 4] = [
        ("sha1", AuthProtocol::Sha1),
        ("sha256", AuthProtocol::Sha256),
        ("sha384", AuthProtocol::Sha384),
        ("sha512", AuthProtocol::Sha512),
    ];

    pub(crate) fn digest(self) -> &'static digest::Algorithm {
        match self {
            AuthProtocol::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            AuthProtocol::Sha256 => &digest::SHA256,
            AuthProtocol::Sha384 => &digest::SHA384,
            AuthProtocol::Sha512 => &digest::SHA512,
        }
    }

    pub(crate) fn hmac(self) -> hmac::Algorithm {
        match self {
            AuthProtocol::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            AuthProtocol::Sha256 => hmac::HMAC_SHA256,
            AuthProtocol::Sha384 => hmac::HMAC_SHA384,
            AuthProtocol::Sha512 => hmac::HMAC_SHA512,
        }
    }

    /// Returns the length of an authentication code in bytes.
    pub(crate) fn tag_bytes(self) -> usize {
        match self {
            AuthProtocol::Sha1 => 12,
            AuthProtocol::Sha256 => 24,
            AuthProtocol::Sha384 => 32,
            AuthProtocol::Sha512 => 48,
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for CredentialsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.what, self.why)
    }
}

impl std::error::Error for CredentialsError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_never_formatted() {
        let user = User {
            name: "watcher".into(),
            auth: Some((AuthProtocol::Sha256, Secret::new("correct horse"))),
            privacy: Some(Secret::new("battery staple")),
        };
        for credentials in
            [Credentials::Community(Secret::new("correct horse")), Credentials::User(user.clone())]
        {
            let text = format!("{credentials:?} {}", credentials.level());
            assert!(!text.contains("horse") && !text.contains("staple"), "{text}");
            assert!(text.contains("***"), "{text}");
            assert_eq!(credentials.check(), Ok(()));
        }
        let check = |user: User| Credentials::User(user).check().map_err(|it| it.what);
        let short = Some(Secret::new("seven77"));
        assert_eq!(check(User { privacy: short, ..user.clone() }), Err("privacy_password"));
        assert_eq!(check(User { auth: None, ..user.clone() }), Err("privacy_password"));
        assert_eq!(check(User { name: String::new(), ..user }), Err("user"));
    }
}
