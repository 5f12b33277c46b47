//! Texts about each study and experiment for its page of the reference and for `planimeter list`:
//! source, how to read the results, limits, and an example.
//!
//! A file of `pages/` has the texts of one set: a study, a standard or a single experiment. It has
//! these parts:
//!
//! - a title, if the set has several experiments; a single experiment has its own
//! - the source, as the first paragraph, and then further description
//! - `## Example` with the arguments of `planimeter run`, except those that select virtual time
//! - `## How to read it` and `## Limits`
//! - a section for each experiment that needs one, named by the part after the slash

use super::CatalogEntry;

/// Defines the texts of these sets.
macro_rules! texts {
    ($($set:literal),* $(,)?) => {
        const TEXTS: &[(&str, &str)] =
            &[$(($set, include_str!(concat!("pages/", $set, ".md")))),*];
    };
}

texts!(
    "abuse",
    "action-delay",
    "action-scalability",
    "bianco2010",
    "blackhole",
    "cold-start",
    "control-rate",
    "control-stall",
    "costa2017",
    "counter-staleness",
    "echo-delay",
    "error-delay",
    "fairness",
    "flow-churn",
    "flow-mod-impact",
    "flow-mod-rate",
    "flow-stats-dump",
    "flow-stats-impact",
    "flow-timeouts",
    "forwarding-latency",
    "forwarding-rate",
    "gelberger2013",
    "header-rewrite",
    "latency",
    "match-tuples",
    "match-types",
    "memory-per-flow",
    "oflops2018",
    "packet-in",
    "packet-in-out",
    "packet-out",
    "path-setup",
    "port-stats-rate",
    "program-swap",
    "queue-delay",
    "reactive-setup",
    "rfc2544",
    "rfc2889",
    "rfc8219",
    "rfc9004",
    "rfc9971",
    "rule-activation",
    "session",
    "soak",
    "stats-and-updates",
    "stats-delay",
    "table-capacity",
    "table-lookup",
    "throughput",
    "update-rate",
    "update-transient",
);

/// Heading of the example.
const EXAMPLE: &str = "Example";

/// Arguments that select virtual time.
const VIRTUAL_TIME: &str = " --link memory --set simulate=true";

/// Heading of the text about results.
const READING: &str = "How to read it";

/// Heading of the text about limits.
const LIMITS: &str = "Limits";

/// Texts of a set, in Markdown. Links are relative to the folder of the pages.
#[derive(Clone, Copy)]
pub struct Page {
    text: &'static str,
}

impl Page {
    /// Returns the texts of a set of the catalog; `None` for an experiment outside it.
    pub fn of(set: &str) -> Option<Page> {
        TEXTS.iter().find(|(name, _)| *name == set).map(|(_, text)| Page { text })
    }

    /// Returns the title of a set with several experiments.
    pub fn title(self) -> Option<&'static str> {
        self.text.strip_prefix("# ")?.lines().next()
    }

    /// Returns the text before the first section, without the title.
    fn head(self) -> &'static str {
        let head = self.text.split("\n## ").next().unwrap_or_default();
        let rest = head.strip_prefix("# ").and_then(|it| it.split_once('\n'));
        rest.map_or(head, |(_, rest)| rest).trim()
    }

    /// Returns the source: standard, paper, or that the method is our own.
    pub fn source(self) -> &'static str {
        self.head().split("\n\n").next().unwrap_or_default()
    }

    /// Returns the description after the source, which may be empty.
    pub fn description(self) -> &'static str {
        self.head().split_once("\n\n").map_or("", |(_, rest)| rest.trim())
    }

    fn section(self, heading: &str) -> Option<&'static str> {
        let sections = self.text.split("\n## ").skip(1);
        let named = sections.filter_map(|it| it.split_once('\n'));
        named.into_iter().find(|(name, _)| *name == heading).map(|(_, text)| text.trim())
    }

    /// Returns the arguments of the example, as far as they are its own.
    fn example(self) -> &'static str {
        self.section(EXAMPLE).unwrap_or_default().trim_matches(['`', '\n'])
    }

    /// Returns whether the example runs in virtual time, as all do that do not name a link.
    pub fn is_simulated(self) -> bool {
        !self.example().contains(" --link ")
    }

    /// Returns the arguments of `planimeter run` of the example.
    pub fn command(self) -> String {
        let virtual_time = if self.is_simulated() { VIRTUAL_TIME } else { "" };
        format!("{}{virtual_time}", self.example())
    }

    /// Returns how to read the results of the set.
    pub fn reading(self) -> &'static str {
        self.section(READING).unwrap_or_default()
    }

    /// Returns the limits of the set.
    pub fn limits(self) -> &'static str {
        self.section(LIMITS).unwrap_or_default()
    }

    /// Returns the text about one experiment of the set.
    pub fn item(self, entry: &CatalogEntry) -> Option<&'static str> {
        self.section(entry.id.split_once('/')?.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets() -> Vec<(&'static str, Vec<&'static CatalogEntry>)> {
        let mut sets: Vec<(&str, Vec<&CatalogEntry>)> = Vec::new();
        for entry in crate::entries() {
            match sets.last_mut().filter(|(set, _)| *set == entry.set()) {
                Some((_, entries)) => entries.push(entry),
                None => sets.push((entry.set(), vec![entry])),
            }
        }
        sets
    }

    #[test]
    fn every_set_has_all_texts_and_every_text_a_set() {
        let sets = sets();
        for (set, entries) in &sets {
            let page = Page::of(set).unwrap_or_else(|| panic!("{set} has no texts"));
            assert_eq!(page.title().is_some(), entries.len() > 1, "{set}: title");
            for (part, text) in [
                ("source", page.source()),
                (EXAMPLE, page.example()),
                (READING, page.reading()),
                (LIMITS, page.limits()),
            ] {
                assert!(text.len() > 20, "{set}: {part}: {text:?}");
            }
            let of_set = page.example().split(' ').next().unwrap_or_default();
            assert_eq!(crate::set_of(of_set), *set, "the example is about another set");
        }
        for (set, text) in TEXTS {
            let entries = sets.iter().find(|(name, _)| name == set);
            let (_, entries) = entries.unwrap_or_else(|| panic!("{set} is no set"));
            for heading in text.lines().filter_map(|line| line.strip_prefix("## ")) {
                let is_item = entries.iter().any(|it| it.id == format!("{set}/{heading}"));
                let is_part = [EXAMPLE, READING, LIMITS].contains(&heading);
                assert!(is_item || is_part, "{set}: {heading}");
            }
        }
    }

    #[test]
    fn the_parts_of_a_text_are_found() {
        let page = Page {
            text: "# A title\n\nRFC 1.\n\nMore.\n\n## Example\n\n```\na --on b\n```\n\n## Limits\n\n- Few.\n\n## x\n\nOf x.\n",
        };
        assert_eq!((page.title(), page.source()), (Some("A title"), "RFC 1."));
        assert_eq!((page.description(), page.example()), ("More.", "a --on b"));
        assert_eq!((page.limits(), page.reading()), ("- Few.", ""));
        let entry = CatalogEntry { id: "a/x", ..crate::WORKLOAD };
        assert_eq!(page.item(&entry), Some("Of x."));
        assert_eq!(page.item(&CatalogEntry { id: "a/y", ..crate::WORKLOAD }), None);
    }
}
