//! Temporary changes of namespace settings.
//!
//! Source: `tcp(7)`, `sysctl(8)`. Invariant: dropping this restores every setting, the last change
//! first, so that two changes of one setting leave no trace.

use crate::{LabError, Namespace};

/// Changed settings with their old values.
#[derive(Debug, Default)]
pub struct ChangedSettings {
    before: Vec<(Namespace, &'static str, String)>,
}

impl ChangedSettings {
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

impl Drop for ChangedSettings {
    fn drop(&mut self) {
        while let Some((namespace, setting, value)) = self.before.pop() {
            // If the namespace cannot be entered any more, its settings are gone.
            let _ = namespace.set(setting, &value);
        }
    }
}
