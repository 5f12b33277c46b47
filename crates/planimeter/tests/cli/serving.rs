//! Tests of `planimeter serve` with well-behaved and malicious clients, on real sockets.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

#[path = "../../../report/tests/browser/packages.rs"]
mod packages;

use super::SHORT;
use super::common::{Folder, command, contents, interrupt, only_run, planimeter, record};

/// The program's default limits of connections and followers.
const CONNECTIONS: usize = 64;
const LISTENERS: usize = 16;

/// A server, ended with Ctrl-C.
pub struct Serving {
    child: Child,
    address: String,
    token: String,
}

impl Serving {
    /// Serves the runs in `runs` below this folder.
    fn begin(folder: &Path) -> Serving {
        Serving::begin_with(folder, &[], &[])
    }

    /// Serves with further arguments and environment variables.
    pub fn begin_with(folder: &Path, more: &[&str], beside: &[(&str, &str)]) -> Serving {
        let arguments = [&["serve", "--listen", "127.0.0.1:0"], more].concat();
        let mut child = command(folder, &arguments)
            .envs(beside.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (address, token) = line.trim().split_once("/?token=").expect(&line);
        let address = address.strip_prefix("http://").unwrap().to_string();
        Serving { child, address, token: token.to_string() }
    }

    fn open(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Returns the response to these bytes.
    fn raw(&self, bytes: &str) -> Answer {
        let mut stream = self.open();
        // An early rejection need not read the whole request.
        let _ = stream.write_all(bytes.as_bytes());
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
            _ => Answer::of(&answer),
        }
    }

    fn with(&self, what: &str, headers: &str, body: &str) -> Answer {
        let address = &self.address;
        self.raw(&format!(
            "{what} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n{body}",
            body.len()
        ))
    }

    /// Requests a page with the token.
    pub fn get(&self, path: &str) -> Answer {
        self.with(&format!("GET {path}"), &format!("Authorization: Bearer {}\r\n", self.token), "")
    }

    /// Sends a form with the token.
    pub fn post(&self, path: &str, body: &str) -> Answer {
        let headers = format!(
            "Authorization: Bearer {}\r\nOrigin: http://{}\r\nContent-Type: application/x-www-form-urlencoded\r\n",
            self.token, self.address
        );
        self.with(&format!("POST {path}"), &headers, body)
    }

    /// Begins to follow runs.
    fn follow(&self) -> Following {
        let mut stream = self.open();
        let (address, token) = (&self.address, &self.token);
        let head = format!(
            "GET /live/events HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        Following(BufReader::new(stream))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        interrupt(self.child.id());
        let ended = self.child.wait().unwrap();
        assert!(ended.success() || std::thread::panicking(), "{ended}");
    }
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    fn of(bytes: &[u8]) -> Answer {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        Answer { status, head: head.to_lowercase(), body: body.to_string() }
    }

    /// Checks that the response is one line that contains this text.
    fn is_line(&self, status: u16, has: &str) {
        let lines = self.body.trim_end().lines().count();
        assert!(self.status == status && lines == 1 && self.body.contains(has), "{self:?}");
    }
}

/// A client that follows runs.
struct Following(BufReader<TcpStream>);

impl Following {
    /// Reads events until the condition holds.
    fn until(&mut self, is: impl Fn(&Value) -> bool) -> Value {
        for line in (&mut self.0).lines() {
            let line = line.unwrap();
            if let Some(text) = line.strip_prefix("data: ") {
                let reported: Value = serde_json::from_str(text).unwrap();
                if is(&reported) {
                    return reported;
                }
            }
        }
        panic!("the stream has ended");
    }

    fn status(mut self) -> u16 {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.split(' ').nth(1).unwrap().parse().unwrap()
    }
}

/// Runs in virtual time, one for each seed.
fn store(folder: &Path, seeds: &[&str]) {
    for seed in seeds {
        let result =
            planimeter(folder, &[&SHORT[..], &["--seed", seed, "--output", "runs"]].concat());
        assert_eq!(result.code, Some(0), "{}", result.errors);
    }
}

#[test]
fn a_named_folder_that_does_not_exist_is_an_error() {
    let folder = Folder::new();
    let result = planimeter(&folder.0, &["serve", "nodir", "--listen", "127.0.0.1:0"]);
    assert_eq!(result.code, Some(2), "{}", result.errors);
    assert!(result.errors.contains("cannot serve nodir: "), "{}", result.errors);
    assert!(!folder.0.join("nodir").exists());
}

#[test]
fn requests_need_the_token_and_get_a_cookie() {
    let folder = Folder::new();
    let serving = Serving::begin(&folder.0);
    for path in
        ["/", "/runs", "/metrics", "/live/events", "/nothing", "/style.css", "/?token=wrong"]
    {
        serving.with(&format!("GET {path}"), "", "").is_line(401, "token");
    }
    let first = serving.with(&format!("GET /?token={}", serving.token), "", "");
    assert_eq!(first.status, 200);
    let cookie = first.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.contains("httponly") && cookie.contains("samesite=strict"), "{cookie}");
    let (name, _) = cookie.split_once('=').unwrap();
    let kept = format!("Cookie: {name}={}\r\n", serving.token);
    let page = serving.with("GET /", &kept, "");
    assert!(
        page.status == 200 && page.head.contains("content-security-policy: default-src 'none'")
    );
    assert!(page.head.contains("cache-control: no-store"), "{}", page.head);
    // A page in a subfolder loads its style sheet as well.
    let deeper = serving.with(&format!("GET /runs?token={}", serving.token), "", "");
    assert!(deeper.status == 200 && deeper.head.contains(cookie), "{}", deeper.head);
    // A DNS name rebound to this server, and a page of another site.
    let bent = format!(
        "GET /?token={} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        serving.token
    );
    serving.raw(&bent).is_line(421, "localhost");
    let evil = format!("{kept}Origin: http://evil.example\r\n");
    serving.with("POST /stop", &evil, "").is_line(403, "pages of this server");
    serving.with("POST /stop", &kept, "").is_line(409, "no run");
    assert_eq!(serving.with("DELETE /runs", &kept, "").status, 405);
}

#[test]
fn files_outside_the_folder_of_runs_are_not_served() {
    let folder = Folder::new();
    store(&folder.0, &["1"]);
    let run = only_run(&folder.0.join("runs"));
    let name = run.file_name().unwrap().to_str().unwrap().to_string();
    fs::create_dir(folder.0.join("outside")).unwrap();
    for file in ["record.json", "outside/record.json"] {
        fs::write(folder.0.join(file), "outside").unwrap();
    }
    std::os::unix::fs::symlink(folder.0.join("outside"), folder.0.join("runs/linked")).unwrap();
    std::os::unix::fs::symlink(folder.0.join("record.json"), run.join("other.json")).unwrap();
    let serving = Serving::begin(&folder.0);
    let report = serving.get(&format!("/runs/{name}/report.html"));
    assert!(report.status == 200 && report.head.contains("sandbox"), "{}", report.head);
    assert!(report.body.contains("<!DOCTYPE html>"));
    assert_eq!(serving.get(&format!("/runs/{name}/summary.md")).status, 200);
    for path in [
        "/runs/../record.json",
        "/runs/%2e%2e/record.json",
        "/runs/..%2frecord.json",
        "/runs/x/../../record.json",
        "/runs/linked/record.json",
        "/runs/./record.json",
        "/runs//etc/passwd",
        "/runs/%2fetc/passwd",
        "/../../etc/passwd",
    ] {
        let reply = serving.get(path);
        assert!(reply.status == 404 && !reply.body.contains("outside"), "{path}: {reply:?}");
    }
    for path in [
        "other.json",
        "../../record.json",
        "%2e%2e/%2e%2e/record.json",
        "figures/..%2f..%2f..%2frecord.json",
        "x%00.json",
    ] {
        let reply = serving.get(&format!("/runs/{name}/{path}"));
        assert!(reply.status == 404 && !reply.body.contains("outside"), "{path}: {reply:?}");
    }
}

#[test]
fn stored_runs_are_listed_compared_and_drawn_as_a_trend_with_unreadable_ones_named() {
    let folder = Folder::new();
    store(&folder.0, &["1", "2", "3"]);
    let names = contents(&folder.0.join("runs"));
    let text =
        fs::read_to_string(folder.0.join("runs").join(&names[0]).join("record.json")).unwrap();
    for (name, text) in [("cut", &text[..text.len() / 2]), ("later", "{\"schema\": 999}")] {
        fs::create_dir(folder.0.join("runs").join(name)).unwrap();
        fs::write(folder.0.join("runs").join(name).join("record.json"), text).unwrap();
    }
    let serving = Serving::begin(&folder.0);
    let page = serving.get("/runs");
    assert!(names.iter().all(|name| page.body.contains(name.as_str())), "{}", page.body);
    let (_, unreadable) = page.body.split_once("Unreadable runs").unwrap();
    assert!(unreadable.contains("cut</strong>: ") && unreadable.contains("999"), "{unreadable}");
    let none = serving.get("/runs?target=ovs");
    assert!(none.body.contains("No matching runs") && none.status == 200);
    let wrong = serving.get("/runs?since=yesterday");
    assert!(wrong.status == 400 && wrong.body.contains("first day"), "{}", wrong.body);
    let trend = serving.get("/runs?metric=latency_ns_mean");
    assert!(
        trend.body.contains("id=\"trend\"") && trend.body.contains("<polyline"),
        "{}",
        trend.body
    );
    let marked: Vec<String> = names.iter().map(|name| format!("run={name}")).collect();
    let compared = serving.get(&format!("/compare?{}", marked.join("&")));
    assert_eq!(compared.status, 200, "{}", compared.body);
    assert_eq!(compared.body.matches("class=\"compared\"").count(), 2);
    assert!(
        compared.body.contains("The sides were measured in separate runs"),
        "{}",
        compared.body
    );
    for (query, why) in
        [("run=cut&run=later", "cut: "), ("run=../x&run=y", "no such run"), ("run=x", "select 2")]
    {
        let answer = serving.get(&format!("/compare?{query}"));
        assert!(answer.status == 400 && answer.body.contains(why), "{query}: {}", answer.body);
    }
}

/// Two steps in virtual time.
const PLAN: &str = "on = [\"bridge\", \"switch\"]\nlink = \"memory\"\neffort = \"quick\"\n\
                    set = { simulate = true, seconds = 0.01, load = 5, repeats = 2 }\n\
                    [[step]]\nrun = \"latency\"\n[[step]]\nname = \"again\"\nrun = \"latency\"\n";

#[test]
fn a_plan_without_commands_is_started_and_its_steps_are_shown() {
    let folder = Folder::new();
    fs::write(folder.0.join("office.toml"), PLAN).unwrap();
    let hook = format!("before = \"touch hooked\"\n{PLAN}");
    fs::write(folder.0.join("hooks.toml"), hook).unwrap();
    fs::write(folder.0.join("script.toml"), PLAN.replace("\"latency\"", "\"mine.py\"")).unwrap();
    fs::write(folder.0.join("notes.toml"), "[notes]\nx = 1\n").unwrap();
    let serving = Serving::begin(&folder.0);
    let form = serving.get("/new").body;
    assert!(form.contains("value=\"office.toml\"") && !form.contains("notes.toml"), "{form}");
    for (body, status, why) in [
        ("plan=hooks.toml&do=start", 403, "touch hooked"),
        ("plan=script.toml&do=start", 403, "mine.py"),
        ("plan=../office.toml&do=start", 400, "no such plan"),
        ("plan=notes.toml&do=start", 400, "no such plan"),
        ("plan=office.toml&target=switch&do=start", 400, "sets targets, link and parameters"),
    ] {
        let answer = serving.post("/new", body);
        assert!(answer.status == status && answer.body.contains(why), "{body}: {}", answer.body);
    }
    assert!(contents(&folder.0.join("runs")).is_empty() && !folder.0.join("hooked").exists());
    let would = serving.post("/new", "plan=office.toml&seed=7&do=check");
    let line = "planimeter run office.toml --seed=7 --output runs";
    assert!(would.status == 200 && would.body.contains(line), "{}", would.body);
    let mut following = serving.follow();
    assert_eq!(serving.post("/new", "plan=office.toml&seed=7&do=start").status, 303);
    following.until(|reported| reported["started"]["runs"] == false);
    let campaign = only_run(&folder.0.join("runs"));
    let name = campaign.file_name().unwrap().to_str().unwrap();
    let list = serving.get("/runs").body;
    let first = format!("/runs/{name}/1-latency/report.html");
    assert!(list.contains(&format!("href=\"{first}\"")), "{list}");
    assert_eq!(serving.get(&first).status, 200);
    assert!(serving.get(&format!("/runs/{name}/report.html")).body.contains("of a campaign"));
    // Whole runs, and single targets of runs and of one.
    let (one, two) = (format!("{name}/1-latency"), format!("{name}/2-again"));
    let compare = |base: &str, new: &str| serving.get(&format!("/compare?run={base}&run={new}"));
    let whole = compare(&one, &two);
    assert!(whole.status == 200 && whole.body.contains(&format!("{one}:bridge")), "{}", whole.body);
    for (base, new) in [
        (format!("{one}:bridge"), format!("{two}:switch")),
        (format!("{two}:switch"), format!("{two}:bridge")),
    ] {
        let found = compare(&base, &new);
        let heading = format!("Comparison with {base}");
        assert!(found.status == 200 && found.body.contains(&heading), "{}", found.body);
        assert_eq!(found.body.matches("class=\"compared\"").count(), 1);
        assert!(found.body.contains("<td>"), "{}", found.body);
    }
    for (new, why) in [(format!("{one}:ovs"), "no such target"), ("x/y/z".into(), "no such run")] {
        let answer = compare(&one, &new);
        assert!(answer.status == 400 && answer.body.contains(why), "{new}: {}", answer.body);
    }
}

#[test]
fn a_flood_of_connections_is_limited_and_blocks_no_other_client() {
    let folder = Folder::new();
    let serving = Serving::begin(&folder.0);
    let page = |serving: &Serving| serving.get("/metrics").status;
    // Connections without a complete request are replaced, however many arrive.
    let mut held: Vec<TcpStream> = (0..2 * CONNECTIONS).map(|_| serving.open()).collect();
    for stream in &mut held {
        let _ = stream.write_all(b"GET / HT");
    }
    assert_eq!(page(&serving), 200);
    drop(held);
    while page(&serving) == 503 {}
    assert_eq!(page(&serving), 200);
    let long = "x".repeat(100 << 10);
    let head = serving.with("GET /", &format!("X-Long: {long}\r\n"), "");
    assert!([400, 431].contains(&head.status), "{head:?}");
    let many: String = (0..500).map(|number| format!("X-{number}: 1\r\n")).collect();
    let head = serving.with("GET /", &many, "");
    assert!([400, 431].contains(&head.status), "{head:?}");
    assert_eq!(serving.raw("this is no HTTP\r\n\r\n").status, 400);
    assert_eq!(serving.post("/new", &format!("set={long}")).status, 413);
    let mut followers: Vec<Following> = (0..LISTENERS).map(|_| serving.follow()).collect();
    for follower in &mut followers {
        follower.until(|reported| reported["view"].is_null());
    }
    assert_eq!(serving.follow().status(), 503);
    drop(followers);
    while serving.get("/metrics").body.contains(&format!("listeners {LISTENERS}")) {}
    assert_eq!(page(&serving), 200);
}

#[test]
fn connections_per_source_are_limited() {
    let folder = Folder::new();
    let serving = Serving::begin_with(&folder.0, &["--connections-per-source", "3"], &[]);
    let mut followers: Vec<Following> = (0..3).map(|_| serving.follow()).collect();
    for follower in &mut followers {
        follower.until(|reported| reported["view"].is_null());
    }
    serving.get("/metrics").is_line(503, "too many connections");
    drop(followers.pop());
    while serving.get("/metrics").status == 503 {}
}

#[test]
fn a_given_name_is_accepted_as_host() {
    let folder = Folder::new();
    let serving = Serving::begin_with(&folder.0, &["--server-name", "lab.example"], &[]);
    for (host, status) in [("lab.example:80", 200), ("evil.example", 421)] {
        let token = &serving.token;
        let head =
            format!("GET /?token={token} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        assert_eq!(serving.raw(&head).status, status, "{host}");
    }
}

#[test]
fn a_run_is_started_followed_by_slow_and_fast_clients_and_stopped() {
    let folder = Folder::new();
    let serving = Serving::begin(&folder.0);
    for (body, why) in [
        ("experiment=nothing&do=check", "no such experiment"),
        ("experiment=forwarding-rate&target=ovss&do=check", "ovss"),
        ("experiment=forwarding-rate&set=fram%3D64&do=start", "fram"),
        ("do=start", "choose an experiment"),
    ] {
        let answer = serving.post("/new", body);
        assert!(
            [400, 422].contains(&answer.status) && answer.body.contains(why),
            "{}",
            answer.body
        );
    }
    assert!(contents(&folder.0.join("runs")).is_empty());
    let long =
        "experiment=forwarding-rate&target=switch&link=memory&effort=standard&set=repeats%3D50";
    let would = serving.post("/new", &format!("{long}&do=check"));
    let line = "planimeter run forwarding-rate --on=switch --link=memory --effort=standard --set=repeats=50 --output runs";
    assert!(would.status == 200 && would.body.contains(line), "{}", would.body);
    assert!(would.body.contains("trials on switch"), "{}", would.body);
    // A client that never reads blocks no other client.
    let stalled = serving.follow();
    let mut following = serving.follow();
    let begun = serving.post("/new", &format!("{long}&do=start"));
    assert!(begun.status == 303 && begun.head.contains("location: /"), "{begun:?}");
    assert_eq!(serving.post("/new", &format!("{long}&do=start")).status, 409);
    let rates = |reported: &Value| {
        let sent = reported["view"]["picture"]["ports"][0]["sent"].as_array();
        sent.is_some_and(|sent| sent.iter().any(|rate| rate.as_u64() > Some(0)))
    };
    let reported = following.until(|reported| {
        rates(reported) && reported["view"]["picture"]["done"].as_u64() > Some(0)
    });
    assert!(reported["view"]["stoppable"].as_bool().unwrap(), "{reported}");
    assert!(!reported["view"]["picture"]["latencies"].as_array().unwrap().is_empty(), "{reported}");
    let numbers = serving.get("/metrics").body;
    let run = reported["view"]["run"].as_str().unwrap();
    assert!(
        numbers.contains(&format!("planimeter_port_frames_per_second{{run=\"{run}\",port=\"1\"")),
        "{numbers}"
    );
    let drawn = serving.get(&format!("/live/topology?run={run}")).body;
    assert!(drawn.contains("data-target=\"switch\""), "{drawn}");
    assert_eq!(serving.post("/stop", "").status, 303);
    let over = following.until(|reported| {
        reported["started"]["runs"] == false && reported["view"]["state"] == "over"
    });
    assert!(over["started"]["ended"].as_str().unwrap().contains("interrupted"), "{over}");
    assert_eq!(over["view"]["picture"]["over"]["partial"], true, "{over}");
    drop(stalled);
    let run = only_run(&folder.0.join("runs"));
    assert_eq!(record(&run)["partial"], true);
    assert!(
        !contents(&run).contains(&"live.jsonl".to_string()),
        "live events are not stored in a run"
    );
}

#[test]
fn a_crashed_run_of_another_terminal_is_shown() {
    let folder = Folder::new();
    fs::create_dir_all(folder.0.join("runs/crashed")).unwrap();
    let lines = "{\"at_ms\":5,\"event\":\"begun\",\"command_line\":\"planimeter run <b>x</b>\",\"created\":\"\",\"experiments\":[\"x\"],\
                 \"targets\":[],\"process\":1}\nnonsense\n{\"at_ms\":6,\"event\":\"said\",\"line\":\"the last word\"}\n{\"at_ms\":7,";
    fs::write(folder.0.join("runs/crashed/live.jsonl"), lines).unwrap();
    let serving = Serving::begin(&folder.0);
    let reported = serving.follow().until(|reported| !reported["view"].is_null());
    let view = &reported["view"];
    assert_eq!((view["state"].as_str(), view["unreadable"].as_u64()), (Some("silent"), Some(1)));
    assert_eq!(view["picture"]["log"][0]["text"], "the last word");
    assert_eq!(view["stoppable"], false);
}

#[test]
fn a_screen_is_drawn_on_a_terminal_and_removed() {
    let has = Command::new("script").arg("--version").output().is_ok();
    if !has {
        println!("skipped: script (bsdutils) is not installed");
        return;
    }
    let folder = Folder::new();
    let program = env!("CARGO_BIN_EXE_planimeter");
    // Long in virtual time, with few frames.
    let run = format!(
        "{program} run bianco2010/fig3 --on direct --set simulate=true --set seconds=20 --set warmup=0.1 --set load=1,2 \
         --set repeats=2 --set capacity=1e6 --output runs >out.txt"
    );
    let seen = |term: &str, more: &str| {
        let shell = format!(
            "stty rows 30 cols 100; stty -a | grep -o -- '-*echo '; {run}; stty -a | grep -o -- '-*echo '"
        );
        let mut command = Command::new("script");
        command.args(["-qec", &shell, "typed"]).current_dir(&folder.0).env("TERM", term);
        command.env_remove("NO_COLOR").envs((!more.is_empty()).then_some((more, "1")));
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let screen = seen("xterm", "");
    let (up, down) = ("\x1b[?1049h", "\x1b[?1049l");
    let place =
        |mark: &str| screen.find(mark).unwrap_or_else(|| panic!("no {mark:?} in {screen:?}"));
    assert!(place(up) < place("trials,") && place("trials,") < place(down), "{screen:?}");
    assert!(place(down) < screen.rfind("\x1b[?25h").unwrap(), "the cursor is visible again");
    assert_eq!(screen.matches("-echo").count(), 0, "typed keys are echoed again: {screen:?}");
    assert!(screen.contains("\x1b[3"), "colours: {screen:?}");
    let plain = seen("xterm", "NO_COLOR");
    let colours = ["\x1b[31m", "\x1b[32m", "\x1b[34m", "\x1b[36m", "\x1b[38;5"];
    assert!(plain.contains(up) && !colours.iter().any(|it| plain.contains(it)), "{plain:?}");
    let lines = seen("dumb", "");
    assert!(!lines.contains('\x1b') && lines.contains("[4/4] bianco2010/fig3 direct"), "{lines}");
    assert!(lines.contains(" s left)\r\n"), "the remaining time: {lines}");
}

#[test]
fn the_pages_work_in_a_browser() {
    let Some(packages) = packages::found() else { return };
    let folder = Folder::new();
    store(&folder.0, &["1", "2"]);
    let serving = Serving::begin(&folder.0);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/serve.mjs");
    let address = format!("http://{}/?token={}", serving.address, serving.token);
    // Much longer than the run takes on an idle machine.
    let mut run = Command::new("timeout");
    run.args(["500", "node"]).arg(script).arg(address).arg(packages);
    let run = run.output().expect("timeout is part of every system");
    let output = String::from_utf8_lossy(&run.stdout);
    println!("{output}");
    assert!(run.status.success(), "{output}\n{}", String::from_utf8_lossy(&run.stderr));
    assert!(output.matches("ok ").count() > 20, "too few checks:\n{output}");
}
