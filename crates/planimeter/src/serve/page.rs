//! Common parts of all pages: the style of reports, the navigation, and no external resources.
//!
//! Invariant: `maud` escapes text from runs and from requests. Pages contain no inline style or
//! script, so that the content security policy can forbid both.

use maud::{DOCTYPE, Markup, html};
use report::page::STYLE;

/// Style of these pages only.
const OWN_STYLE: &str = include_str!("page/serve.css");

/// Script of the page that shows a run.
pub(super) const SCRIPT: &str = include_str!("page/live.js");

/// Returns the style sheet of all pages.
pub(super) fn style() -> String {
    format!("{STYLE}{OWN_STYLE}")
}

/// Page in the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NavigationPage {
    Live,
    Runs,
    New,
    Other,
}

/// Renders a page.
pub(super) fn page(place: NavigationPage, title: &str, content: &Markup) -> Markup {
    let links = [
        (NavigationPage::Live, "/", "live"),
        (NavigationPage::Runs, "/runs", "runs"),
        (NavigationPage::New, "/new", "new run"),
    ];
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "planimeter: " (title) }
                link rel="stylesheet" href="/style.css";
                link rel="icon" href="data:,";
                @if place == NavigationPage::Live { script src="/live.js" defer {} }
            }
            body {
                header.bar {
                    nav aria-label="pages" {
                        span.name { "planimeter" }
                        @for (its, address, name) in links {
                            a href=(address) aria-current=[(its == place).then_some("page")] { (name) }
                        }
                    }
                }
                main { (content) }
            }
        }
    }
}

/// Renders an error message as a page.
pub(super) fn wrong(title: &str, line: &str) -> Markup {
    page(
        NavigationPage::Other,
        title,
        &html! {
            h1 { (title) }
            p.warn role="alert" { (line) }
        },
    )
}

/// Renders the page whose script shows active runs.
pub(super) fn live(run: Option<&str>) -> Markup {
    page(
        NavigationPage::Live,
        "live",
        &html! {
            div #live data-run=[run] {
                p.kicker #runs { "live" }
                h1 #title { "Waiting for a run" }
                p.sub #command {}
                p.state { span.chip.open #state { "connecting" } " " span #left {} }
                progress #progress max="1" value="0" aria-label="completed trials" hidden {}
                p.stop { form method="post" action="/stop" #stop hidden { button { "stop this run" } } }
                div #started hidden {}
                noscript { p.warn { "This page needs JavaScript. Without it, see " a href="/metrics" { "numbers" } " and " a href="/runs" { "stored runs" } "." } }
                div #content hidden {
                    section { h2 { "Set-up" } div.wide #topology tabindex="0" role="region" aria-label="set-up" {} }
                    section { h2 { "Trial" } p #trial {} }
                    div.columns {
                    div {
                        section {
                            h2 { "Rates by port" small { " frames per second, last half minute" } }
                            div #ports {}
                        }
                        section #latency hidden {
                            h2 { "Latency so far" small { " at this point, for each target" } }
                            div #latencies {}
                        }
                    }
                    section #searching hidden {
                        h2 { "Search" small { " values that met and missed the goal, by step" } }
                        div #searches {}
                    }
                }
                section #warned hidden { h2 { "Warnings" } ul #warnings {} }
                    section { h2 { "Log" small { " latest first" } } div.log tabindex="0" role="region" aria-label="log" { ol #log {} } }
                }
            }
            p.visuallyhidden #heard aria-live="polite" {}
        },
    )
}
