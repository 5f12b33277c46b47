//! Drawing of a run's screen, as a function of the run's state and the time.
//!
//! Invariant: the screen has the same content without colors. If space is short, the least
//! important parts are omitted first.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, LineGauge, Paragraph, Sparkline};

use runner::live::state::{PortRates, RunState, Search, SearchStep};

/// Style of the screen.
#[derive(Debug, Clone, Copy)]
pub struct ScreenStyle {
    /// Without colors.
    pub plain: bool,
}

/// Limits of displayed searches, ports and warnings.
const SEARCHES_MAX: usize = 6;
const PORTS_MAX: usize = 8;
const WARNINGS_MAX: usize = 3;

/// Length limit of a target's name next to its search, in characters.
const NAME_MAX: usize = 18;

impl ScreenStyle {
    fn colour(self, colour: Color) -> Style {
        if self.plain { Style::new() } else { Style::new().fg(colour) }
    }

    fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }
}

/// Draws the whole screen.
pub fn all(frame: &mut Frame<'_>, picture: &RunState, now_ms: u64, look: ScreenStyle) {
    let ports = picture.ports.len().min(PORTS_MAX);
    let searches = picture.searches.len().min(SEARCHES_MAX);
    let warnings = picture.warnings.len().min(WARNINGS_MAX);
    let block = |rows: usize| if rows > 0 { rows as u16 + 1 } else { 0 };
    let rows = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(3),
        Constraint::Length(block(ports)),
        Constraint::Length(block(searches)),
        Constraint::Length(block(warnings)),
        Constraint::Min(0),
    ]);
    let [top, trial, rates, search, warned, log] = rows.areas(frame.area());
    head(frame, top, picture, now_ms, look);
    now(frame, trial, picture, look);
    if ports > 0 {
        draw_ports(frame, rates, &picture.ports[..ports], picture.begun.is_virtual, look);
    }
    if searches > 0 {
        draw_searches(frame, search, &picture.searches[..searches], look);
    }
    if warnings > 0 {
        let heading = match picture.warned {
            1 => " 1 warning ".to_string(),
            count => format!(" {count} warnings "),
        };
        let latest = picture.warnings.iter().rev().take(warnings);
        let lines = latest.map(|line| Line::styled(tame(&line.text), look.colour(Color::Yellow)));
        titled(frame, warned, &heading, lines.collect(), look);
    }
    let room = usize::from(log.height.saturating_sub(1));
    let last = picture.log.iter().skip(picture.log.len().saturating_sub(room));
    let lines = last.map(|line| Line::raw(tame(&line.text)));
    titled(frame, log, " log ", lines.collect(), look);
}

fn titled(frame: &mut Frame<'_>, area: Rect, title: &str, lines: Vec<Line<'_>>, look: ScreenStyle) {
    let block = Block::new().borders(Borders::TOP).title(Span::styled(title, look.strong()));
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn head(frame: &mut Frame<'_>, area: Rect, picture: &RunState, now_ms: u64, look: ScreenStyle) {
    let [title, gauge] =
        Layout::vertical([Constraint::Length(1), Constraint::Length(1)]).areas(area);
    let command = Line::styled(tame(&picture.begun.command_line), look.strong());
    frame.render_widget(command, title);
    let Some(planned) = &picture.planned else { return };
    let all = planned.trials.max(picture.done).max(1);
    let so_far = now_ms.saturating_sub(picture.begun_ms) as f64 / 1e3;
    let left = picture.seconds_left(now_ms).map(|s| format!(", {} left", span(s)));
    let label = format!(
        "{}/{all} trials, {} so far{}",
        picture.done,
        clock(so_far),
        left.unwrap_or_default()
    );
    let bar = LineGauge::default()
        .ratio(picture.done as f64 / all as f64)
        .label(label)
        .filled_symbol("━")
        .unfilled_symbol("─")
        .filled_style(look.colour(Color::Cyan));
    frame.render_widget(bar, gauge);
}

fn now(frame: &mut Frame<'_>, area: Rect, picture: &RunState, look: ScreenStyle) {
    let lines = match &picture.trial {
        None => vec![Line::raw("preparing targets")],
        Some(trial) => {
            let rate = trial.rate_pps.map(|pps| format!(", {} frames/s offered", number(pps)));
            let seconds = trial.seconds.map(|s| format!(", {s:.2} s"));
            let goal = trial.goal.as_ref().map(|goal| format!(" for {goal}"));
            let parts = [goal, rate, seconds].into_iter().flatten().collect::<String>();
            vec![
                Line::raw(tame(&format!("{} on {}", trial.experiment, trial.target))),
                Line::raw(tame(&format!("{}, repeat {}{parts}", trial.point, trial.repeat))),
            ]
        }
    };
    let title = match &picture.trial {
        Some(trial) => format!(" trial {} ", trial.id),
        None => " trial ".into(),
    };
    titled(frame, area, &title, lines, look);
}

fn draw_ports(
    frame: &mut Frame<'_>,
    area: Rect,
    ports: &[PortRates],
    is_virtual: bool,
    look: ScreenStyle,
) {
    let title = match is_virtual {
        true => " frames by port in a second of virtual time ",
        false => " frames/s by port ",
    };
    titled(frame, area, title, Vec::new(), look);
    let rates = ports.iter().flat_map(|port| port.sent.iter().chain(&port.received));
    let most = rates.copied().max().unwrap_or(0).max(1);
    for (at, port) in ports.iter().enumerate() {
        let row = Rect { y: area.y + 1 + at as u16, height: 1, ..area };
        if row.bottom() > area.bottom() {
            break;
        }
        let columns = Layout::horizontal([
            Constraint::Length(7),
            Constraint::Length(14),
            Constraint::Fill(1),
            Constraint::Length(14),
            Constraint::Fill(1),
        ]);
        let [name, sent, sent_bars, back, back_bars] = columns.areas(row);
        let last = |rates: &[u64]| number(rates.last().copied().unwrap_or(0) as f64);
        frame.render_widget(Line::raw(format!("port {}", at + 1)), name);
        frame.render_widget(Line::raw(format!("out {}", last(&port.sent))), sent);
        frame.render_widget(Line::raw(format!(" in {}", last(&port.received))), back);
        for (rates, place, colour) in
            [(&port.sent, sent_bars, Color::Blue), (&port.received, back_bars, Color::Green)]
        {
            let first = rates.len().saturating_sub(usize::from(place.width));
            let bars = Sparkline::default().data(&rates[first..]).max(most);
            frame.render_widget(bars.style(look.colour(colour)), place);
        }
    }
}

/// Draws a row for each search: the range that met the goal, the unknown range, the range that
/// missed it, and the current value.
fn draw_searches(frame: &mut Frame<'_>, area: Rect, searches: &[Search], look: ScreenStyle) {
    let is_one = searches.iter().all(|it| it.sought == searches[0].sought);
    let named = |search: &Search| match is_one {
        true => search.target.clone(),
        false => format!("{} {}", search.target, search.sought.what),
    };
    let name = searches.iter().map(|it| named(it).chars().count()).max().unwrap_or(0).min(NAME_MAX);
    let line = |search: &Search| {
        let SearchStep { tried, met, missed } = search.steps.last().copied().unwrap_or_default();
        let or_none = |value: Option<f64>| value.map_or_else(|| "none yet".into(), number);
        let words = format!(" met {}, missed {}", or_none(met), or_none(missed));
        let width = usize::from(area.width).saturating_sub(name + 4 + words.len()).min(60);
        let place = |value: f64| (value / search.most.max(1.0) * width as f64).round() as usize;
        let (low, high) = (met.map_or(0, place), missed.map_or(width, place));
        let at = place(tried).min(width.saturating_sub(1));
        let cell = |column: usize| match column {
            _ if column == at => ('|', Style::new()),
            _ if column < low => ('=', look.colour(Color::Green)),
            _ if column < high => (' ', Style::new()),
            _ => ('x', look.colour(Color::Red)),
        };
        let target: String = tame(&named(search)).chars().take(name).collect();
        let mut spans = vec![Span::raw(format!("{target:name$} ["))];
        spans.extend(
            (0..width).map(cell).map(|(mark, style)| Span::styled(mark.to_string(), style)),
        );
        spans.push(Span::raw(format!("]{words}")));
        Line::from(spans)
    };
    let first = &searches[0];
    let sought = match is_one {
        true => format!("{} ({}; {})", first.sought.what, first.sought.goal, first.sought.unit),
        false => format!("several goals ({})", first.sought.unit),
    };
    let width = match first.width {
        Some(width) => format!(", resolution {}", number(width)),
        None => String::new(),
    };
    let title = tame(&format!(" search: {sought}{width}, {} ", first.place));
    titled(frame, area, &title, searches.iter().map(line).collect(), look);
}

/// Replaces control characters, which the terminal would interpret, with spaces: names come from
/// outside.
fn tame(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// Formats a rate with three digits and a letter for thousands or millions.
fn number(value: f64) -> String {
    let (value, unit) = match value {
        _ if value >= 999_500.0 => (value / 1e6, " M"),
        _ if value >= 9_999.5 => (value / 1e3, " k"),
        _ => return format!("{value:.0}"),
    };
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$}{unit}")
}

/// Formats an approximate duration.
pub fn span(seconds: f64) -> String {
    match seconds {
        _ if seconds < 90.0 => format!("about {seconds:.0} s"),
        _ if seconds < 5_400.0 => format!("about {:.0} min", seconds / 60.0),
        _ => format!("about {:.1} h", seconds / 3_600.0),
    }
}

fn clock(seconds: f64) -> String {
    let whole = seconds as u64;
    match whole / 3_600 {
        0 => format!("{}:{:02}", whole / 60, whole % 60),
        hours => format!("{hours}:{:02}:{:02}", whole / 60 % 60, whole % 60),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use runner::live::example::picture;

    fn drawn(picture: &RunState, width: u16, height: u16, plain: bool) -> Terminal<TestBackend> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| all(frame, picture, 6_000, ScreenStyle { plain })).unwrap();
        terminal
    }

    fn text(terminal: &Terminal<TestBackend>) -> String {
        let buffer = terminal.backend().buffer();
        let row = |y| (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        let rows = (0..buffer.area.height).map(row);
        rows.map(|row| format!("{}\n", row.trim_end())).collect()
    }

    const WANTED: &str = "\
planimeter run throughput --on switch --on ovs
2/24 trials, 0:05 so far, about 56 s left ━━━━────────────────────────────────────────────
 trial 3 ─────────────────────────────────────────────────────────────────────────────────
throughput on switch
frame_bytes=64, repeat 1, 500 k frames/s offered, 2.00 s
 frames/s by port ────────────────────────────────────────────────────────────────────────
port 1 out 500 k     █▇▄                          in 0
port 2 out 0                                      in 450 k     ▇▆▄
 search: throughput (nothing lost; frames/s), resolution 10.0 k, throughput frame_bytes=64
switch [                          |                         ] met none yet, missed 1.00 M
ovs    [                                                 |] met none yet, missed none yet
 1 warning ───────────────────────────────────────────────────────────────────────────────
trial 2: the tester was descheduled
 log ─────────────────────────────────────────────────────────────────────────────────────
tester over veth without target: fine
throughput switch frame_bytes=64: trial 1 in one line
throughput switch frame_bytes=64: trial 2 in one line

";

    #[test]
    fn a_search_on_two_targets_is_drawn() {
        let printed = text(&drawn(&picture(), 90, 18, true));
        assert_eq!(printed, WANTED, "\n{printed}");
    }

    #[test]
    fn colors_are_used_unless_disabled() {
        let colours = |plain| {
            let terminal = drawn(&picture(), 90, 18, plain);
            let cells = terminal.backend().buffer().content.iter();
            cells.filter(|cell| cell.fg != Color::Reset).count()
        };
        assert!(colours(false) > 20);
        assert_eq!(colours(true), 0);
        assert_eq!(text(&drawn(&picture(), 90, 18, false)), text(&drawn(&picture(), 90, 18, true)));
    }

    #[test]
    fn any_size_and_any_state_can_be_drawn() {
        let mut hostile = picture();
        hostile.begun.command_line = "\x1b[31mred\x07".into();
        hostile.searches[0].most = 0.0;
        hostile.searches[0].steps.truncate(1);
        hostile.searches[1].steps.clear();
        for (width, height) in [(1, 1), (3, 40), (20, 5), (200, 3), (80, 24)] {
            for picture in [&RunState::default(), &picture(), &hostile] {
                let shown = text(&drawn(picture, width, height, false));
                assert!(!shown.contains(['\x1b', '\x07']));
            }
        }
    }

    #[test]
    fn rates_and_times_are_short() {
        let numbers = [0.0, 999.4, 9_999.0, 123_456.0, 999_499.0, 1_234_567.0, 14_880_952.0];
        let text = numbers.map(number);
        assert_eq!(text, ["0", "999", "9999", "123 k", "999 k", "1.23 M", "14.9 M"]);
        assert_eq!([30.0, 600.0, 9_000.0].map(span), ["about 30 s", "about 10 min", "about 2.5 h"]);
        assert_eq!([61.0, 3_661.0].map(clock), ["1:01", "1:01:01"]);
    }
}
