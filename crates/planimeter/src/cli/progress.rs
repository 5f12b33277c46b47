//! Progress on stderr: a bar on a terminal, one plain line per trial elsewhere.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::out::remark;

/// How far a run has come.
pub struct Progress {
    bar: Option<ProgressBar>,
    done: u64,
    total: u64,
}

impl Progress {
    /// Progress towards `total` steps.
    pub fn new(total: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template(
                "{bar:30} {pos}/{len} trials, {elapsed} so far, about {eta} left  {msg}",
            )
            .expect("the template is a constant");
            bar.set_style(style);
            bar
        });
        Progress { bar, done: 0, total }
    }

    /// A remark that stays visible.
    pub fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => remark!("{line}"),
        }
    }

    /// One more step is done: what it was and what came out.
    pub fn step(&mut self, what: &str) {
        self.done += 1;
        match &self.bar {
            Some(bar) => {
                bar.set_position(self.done);
                bar.set_message(what.to_string());
            }
            None => remark!("[{}/{}] {what}", self.done, self.total.max(self.done)),
        }
    }

    /// More steps have become known.
    pub fn expect(&mut self, total: u64) {
        self.total = total;
        if let Some(bar) = &self.bar {
            bar.set_length(total);
        }
    }

    /// All done: the bar vanishes.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
