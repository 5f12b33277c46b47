//! Settings of namespaces that are other ones for a while.
//!
//! Source: `tcp(7)`, `sysctl(8)`. Invariant: dropped, every setting is again what it was, the one that was changed
//! last first, so that two changes of one setting leave nothing behind.

use crate::{LabError, Namespace};

/// Settings that are changed, and what they were.
#[derive(Debug, Default)]
pub struct Changed {
    before: Vec<(Namespace, &'static str, String)>,
}

impl Changed {
    /// Changes a setting of a namespace, such as `net/ipv4/tcp_rmem`.
    pub fn set(
        &mut self,
        namespace: &Namespace,
        setting: &'static str,
        value: &str,
    ) -> Result<(), LabError> {
        let before = namespace.setting(setting)?;
        namespace.set(setting, value)?;
        self.before.push((namespace.clone(), setting, before));
        Ok(())
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        while let Some((namespace, setting, value)) = self.before.pop() {
            // A namespace that cannot be entered any more has no settings.
            let _ = namespace.set(setting, &value);
        }
    }
}
