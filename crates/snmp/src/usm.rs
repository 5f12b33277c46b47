//! Keys and ciphers of the User-based Security Model.
//!
//! Source: RFC 3414, section 2.6 and appendix A.2 (key localization), RFC 7860 (SHA-2), RFC 3826
//! (AES-128 in cipher feedback mode; the initialization vector is boots, time and salt). A key
//! digests a million bytes of repeated pass phrase, which takes milliseconds, so it is computed
//! once per engine.

use aes::Aes128;
use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockEncrypt, KeyInit};
use ring::{digest, hmac};

use crate::{AuthProtocol, Secret, User};

/// Length to which a pass phrase is repeated, in bytes.
const EXPANDED_BYTES: usize = 1 << 20;

/// Length of a block and of a key in bytes.
const BLOCK: usize = 16;

/// Length of the salt in an encrypted message, in bytes.
pub const SALT_BYTES: usize = 8;

/// Keys for authentication and encryption of a user's messages with one engine.
pub struct Keys {
    auth: Option<(AuthProtocol, hmac::Key)>,
    privacy: Option<Aes128>,
}

impl Keys {
    /// Creates the keys of a user for an engine.
    pub fn new(user: &User, engine_id: &[u8]) -> Keys {
        let Some((protocol, secret)) = &user.auth else {
            return Keys { auth: None, privacy: None };
        };
        let key = localized(*protocol, secret, engine_id);
        let privacy = user.privacy.as_ref().map(|secret| {
            let key = localized(*protocol, secret, engine_id);
            let key = key.get(..BLOCK).expect("a digest has at least 20 bytes");
            Aes128::new_from_slice(key).expect("the key has 16 bytes")
        });
        Keys { auth: Some((*protocol, hmac::Key::new(protocol.hmac(), &key))), privacy }
    }

    /// Whether messages are authenticated.
    pub fn signs(&self) -> bool {
        self.auth.is_some()
    }

    /// Whether messages are encrypted.
    pub fn encrypts(&self) -> bool {
        self.privacy.is_some()
    }

    /// Returns the length of an authentication code in bytes; zero without authentication.
    pub fn tag_bytes(&self) -> usize {
        self.auth.as_ref().map_or(0, |(protocol, _)| protocol.tag_bytes())
    }

    /// Returns the authentication code of a message that has zeros in its place.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        let Some((protocol, key)) = &self.auth else { return Vec::new() };
        hmac::sign(key, message).as_ref()[..protocol.tag_bytes()].to_vec()
    }

    /// Verifies an authentication code in constant time.
    pub fn is_signed(&self, message: &[u8], tag: &[u8]) -> bool {
        let ours = self.sign(message);
        let differing = ours.iter().zip(tag).fold(0, |all, (ours, theirs)| all | (ours ^ theirs));
        !ours.is_empty() && ours.len() == tag.len() && differing == 0
    }

    /// Encrypts in place; does nothing without encryption.
    pub fn encrypt(&self, clock: [u32; 2], salt: [u8; SALT_BYTES], bytes: &mut [u8]) {
        self.feedback(clock, salt, bytes, |before, _| before);
    }

    /// Decrypts in place.
    pub fn decrypt(&self, clock: [u32; 2], salt: [u8; SALT_BYTES], bytes: &mut [u8]) {
        self.feedback(clock, salt, bytes, |_, encrypted| encrypted);
    }

    /// Cipher feedback: XORs each block with the encryption of the previous ciphertext block. `fed`
    /// selects the ciphertext from a block's output and input.
    fn feedback(
        &self,
        [boots, time]: [u32; 2],
        salt: [u8; SALT_BYTES],
        bytes: &mut [u8],
        fed: fn([u8; BLOCK], [u8; BLOCK]) -> [u8; BLOCK],
    ) {
        let Some(cipher) = &self.privacy else { return };
        let mut state = [0; BLOCK];
        state[..4].copy_from_slice(&boots.to_be_bytes());
        state[4..8].copy_from_slice(&time.to_be_bytes());
        state[8..].copy_from_slice(&salt);
        for part in bytes.chunks_mut(BLOCK) {
            let mut block = GenericArray::from(state);
            cipher.encrypt_block(&mut block);
            let (mut was, mut is) = ([0; BLOCK], [0; BLOCK]);
            was[..part.len()].copy_from_slice(part);
            part.iter_mut().zip(block).for_each(|(byte, key)| *byte ^= key);
            is[..part.len()].copy_from_slice(part);
            state = fed(is, was);
        }
    }
}

/// Derives the localized key of one engine from a pass phrase.
fn localized(protocol: AuthProtocol, secret: &Secret, engine_id: &[u8]) -> Vec<u8> {
    let phrase = secret.bytes();
    let mut context = digest::Context::new(protocol.digest());
    let mut repeated = Vec::with_capacity(phrase.len() * 64);
    (0..64).for_each(|_| repeated.extend_from_slice(phrase));
    let mut left = if repeated.is_empty() { 0 } else { EXPANDED_BYTES };
    while left > 0 {
        let count = left.min(repeated.len());
        context.update(&repeated[..count]);
        left -= count;
    }
    let key = context.finish();
    let whole = [key.as_ref(), engine_id, key.as_ref()].concat();
    digest::digest(protocol.digest(), &whole).as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digit = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("a hexadecimal digit");
        (0..text.len()).step_by(2).map(digit).collect()
    }

    /// RFC 3414, appendix A.3.2.
    #[test]
    fn a_pass_phrase_gives_the_published_key() {
        let engine = hex("000000000000000000000002");
        let key = localized(AuthProtocol::Sha1, &Secret::new("maplesyrup"), &engine);
        assert_eq!(key, hex("6695febc9288e36282235fc7151f128497b38f3f"));
    }

    /// NIST SP 800-38A, F.3.13 (CFB128-AES128.Encrypt), first and last block; the last one is
    /// partial.
    #[test]
    fn cfb_mode_gives_the_published_ciphertext() {
        let key = hex("2b7e151628aed2a6abf7158809cf4f3c");
        let cipher = Aes128::new_from_slice(&key).expect("16 bytes");
        let keys = Keys { auth: None, privacy: Some(cipher) };
        let clock = [0x0001_0203, 0x0405_0607];
        let salt = [8, 9, 10, 11, 12, 13, 14, 15];
        let plain = hex(concat!(
            "6bc1bee22e409f96e93d7e117393172a",
            "ae2d8a571e03ac9c9eb76fac45af8e51",
            "30c81c46a35ce411",
        ));
        let mut bytes = plain.clone();
        keys.encrypt(clock, salt, &mut bytes);
        let encrypted = hex(concat!(
            "3b3fd92eb72dad20333449f8e83cfb4a",
            "c8a64537a0b3a93fcde3cdad9f1ce58b",
            "26751f67a3cbb140",
        ));
        assert_eq!(bytes, encrypted);
        keys.decrypt(clock, salt, &mut bytes);
        assert_eq!(bytes, plain);
    }
}
