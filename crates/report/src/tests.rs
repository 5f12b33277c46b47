//! The report of the sample run, compared with the files in `tests/golden`; `UPDATE=1` rewrites
//! them.

mod browser;
mod links;

use std::path::{Path, PathBuf};

use super::*;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

#[test]
#[allow(clippy::disallowed_methods)]
fn the_report_equals_the_golden_files() {
    let update = std::env::var("UPDATE").is_ok_and(|value| value == "1");
    let shown = |output: &Output| {
        let ends = [".csv", ".parquet"];
        !ends.iter().any(|end| output.path.ends_with(end))
    };
    for output in looked_at(&[sample::record().into()]).into_iter().filter(shown) {
        let path = golden().join(output.path.replace('/', "-"));
        if update {
            std::fs::write(&path, &output.bytes).unwrap();
        }
        let want = std::fs::read_to_string(&path).unwrap_or_default();
        let text = text_of(&output);
        let differs = text.lines().zip(want.lines()).position(|(have, want)| have != want);
        assert!(
            text == want,
            "{} differs from line {:?} on; if it should, look at it and run with UPDATE=1",
            path.display(),
            differs.map(|line| line + 1),
        );
    }
}

/// Returns the reviewed outputs, without the contents of script and style.
fn looked_at(runs: &[Run]) -> Vec<Output> {
    let mut outputs = build(runs);
    outputs.retain(|output| !output.path.ends_with(".parquet"));
    for output in &mut outputs {
        let mut text = text_of(output);
        for part in [page::SCRIPT, page::STYLE] {
            text = text.replace(part, "");
        }
        output.bytes = text.into_bytes();
    }
    outputs
}

fn text_of(output: &Output) -> String {
    String::from_utf8(output.bytes.clone()).unwrap()
}

fn page_of(record: Record) -> String {
    let outputs = looked_at(&[record.into()]);
    text_of(outputs.iter().find(|output| output.path == "report.html").unwrap())
}

#[test]
fn rebuilding_a_report_gives_the_same_files() {
    let record = sample::record();
    let read: Record = serde_json::from_str(&store::record_text(&record)).unwrap();
    assert_eq!(build(&[record.into()]), build(&[read.into()]));
}

#[test]
fn the_page_has_no_external_address() {
    let page = page_of(sample::record());
    for word in ["<link", "<img", " src=", "@import", "url("] {
        assert!(!page.contains(word) && !page::STYLE.contains(word), "{word}");
    }
    assert_eq!(page.matches("href=").count(), page.matches("href=\"#").count());
    let addresses = page.matches("http").count() - page.matches("http-equiv").count();
    assert_eq!(addresses, page.matches("http://www.w3.org/2000/svg").count());
}

#[test]
fn every_number_links_to_trials_on_the_page() {
    let record = sample::record();
    let (ids, page) = (record.trials.len(), page_of(record));
    for id in 1..=ids {
        assert_eq!(page.matches(&format!("<tr id=t{id}>")).count(), 1, "trial {id}");
    }
    let links = page.matches("data-t=").count();
    assert!(links > 300, "{links}");
    for target in page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        let found =
            page.contains(&format!("id=\"{target}\"")) || page.contains(&format!("id={target}>"));
        assert!(found, "{target} has no target");
    }
}

#[test]
fn hostile_names_stay_text() {
    let mut record = sample::record();
    let evil = "<script>alert(1)</script>";
    record.targets[0].version = Some(evil.into());
    record.command_line = evil.into();
    record.experiments[0].title = evil.into();
    record.environment.kernel = Some(evil.into());
    record.link = evil.into();
    record.targets[1].name = evil.into();
    record
        .trials
        .iter_mut()
        .filter(|it| it.target == "bridge")
        .for_each(|it| it.target = evil.into());
    crate::finish(&mut record, &[]);
    for output in looked_at(&[record.into()]) {
        let is_markup = output.path.ends_with(".html") || output.path.ends_with(".svg");
        assert!(!(is_markup && text_of(&output).contains("<script>alert")), "{}", output.path);
    }
}

#[test]
fn missing_curves_are_listed_and_warnings_are_next_to_their_numbers() {
    let mut run = Run::from(sample::record());
    run.spectra.leave_out(7, "latency/00007.hgrm: the line #[Base64V2 = ...] is missing");
    for cell in run.record.cells.iter_mut().take(3) {
        cell.warnings = vec![record::Warning::Stall { trials: 2 }];
    }
    let page = page::html(None, &[run]);
    assert!(page.contains("Omitted from latency by percentile: trial 7: latency/00007.hgrm"));
    let sentence = "the tester was descheduled in 2 trials; long latencies may be its own";
    let mark =
        format!("<a class=\"why\" title=\"{sentence}\" href=\"#warnings\">⚠ descheduled</a>");
    assert!(page.contains(&mark), "{page}");
}

#[test]
fn several_runs_share_one_page_without_duplicate_names() {
    let outputs = looked_at(&[sample::record().into(), sample::record().into()]);
    let mut paths: Vec<&str> = outputs.iter().map(|output| output.path.as_str()).collect();
    assert!(paths.contains(&"figures/run2-bianco2010-fig3.svg"));
    paths.sort_unstable();
    let count = paths.len();
    paths.dedup();
    assert_eq!(paths.len(), count);
    let page = &text_of(&outputs[0]);
    assert_eq!(page.matches("id=\"run1-bianco2010-fig2-title\"").count(), 1);
    assert_eq!(page.matches("id=\"run2-bianco2010-fig2-title\"").count(), 1);
    assert_eq!(page.matches("<tr id=run2-t7>").count(), 1);
}

#[test]
fn a_campaign_has_its_own_heading_and_figures_name_their_step() {
    let mut second = sample::record();
    second.created = "2026-02-01T12:00:00Z".into();
    second.link = "memif".into();
    let steps = [
        Run::from(sample::record()).as_step("rates"),
        Run::from(second).as_step("rates-over-memif"),
    ];
    let outputs = build_of(Some("line-cards <b>"), &steps);
    let page = text_of(&outputs[0]);
    let (head, below) = page.split_once("id=\"run1-top\"").unwrap();
    assert!(head.contains("<h1>line-cards &lt;b&gt;</h1>") && !head.contains("bianco2010/fig2-"));
    let trials = |run: &Run| run.record.trials.iter().filter(|it| counts(it)).count();
    let all = format!("{} trials", steps.iter().map(trials).sum::<usize>());
    assert!(head.contains(&all) && head.contains("veth:afpacket and memif"), "{head}");
    assert!(head.contains("href=\"#run2-top\"") && below.contains("id=\"run2-top\""));
    // Every figure and every table of numbers.
    let figures = page.matches("<figure class=\"chart\"").count();
    assert_eq!(page.matches(">step rates</text>").count() * 2, figures);
    assert_eq!(page.matches(">step rates-over-memif</text>").count() * 2, figures);
    let captions = page.split("<details class=\"numbers\"").skip(1);
    for caption in captions.map(|it| it.split("</summary>").next().unwrap()) {
        assert!(caption.contains("(step rates"), "{caption}");
    }
    let summary = text_of(outputs.iter().find(|it| it.path == "summary.md").unwrap());
    assert!(summary.starts_with("# planimeter report of the campaign line-cards &lt;b>\n"));
    assert!(summary.contains(&all) && summary.contains("## Step rates-over-memif, 2026-02-01"));
    for output in outputs.iter().filter(|it| it.path.ends_with(".svg")) {
        assert!(text_of(output).contains(">step rates"), "{}", output.path);
    }
}

#[test]
fn numbers_in_sentences_and_claims_link_to_their_trials() {
    let record = sample::record();
    let page = page_of(record.clone());
    let (_, verdict) = page.split_once("<section class=\"verdict\"").unwrap();
    let (verdict, _) = verdict.split_once("<h2>Reliability").unwrap();
    let found = finding::verdict(&record).into_iter().chain(finding::results(&record));
    let sentences: Vec<String> = found.map(|it| it.sentence().to_string()).collect();
    assert!(verdict.matches("data-t=").count() >= sentences.len(), "{verdict}");
    // Without the links, the sentences equal the plain text.
    let mut plain = String::new();
    for part in verdict.split('<') {
        plain += part.split_once('>').map_or(part, |(_, text)| text);
    }
    for sentence in &sentences {
        assert!(plain.contains(sentence.as_str()), "{sentence}: {plain}");
    }
    let claims = page.split("class=\"wide claims\"").skip(1);
    let claims: String = claims.map(|it| it.split("</table>").next().unwrap()).collect();
    let reported = record.claims.iter().filter(|line| !line.numbers.is_empty()).count();
    assert!(reported > 0 && claims.matches("data-t=").count() >= reported, "{reported}");
}

#[test]
fn an_empty_or_partial_run_has_a_page_that_reports_it() {
    let mut record = sample::record();
    record.trials.clear();
    record.partial = true;
    record.trials_planned = Some(414);
    crate::finish(&mut record, &sample::claims());
    let page = page_of(record);
    assert!(page.contains("Partial: 0 of 414 trials were measured"));
    assert!(!page.contains("<svg"), "nothing measured, nothing drawn");
    assert!(!page.contains("NaN"));
}
