//! Tests of a team store from a user's view: a real server that stops and starts, and the messages
//! in between.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

#[path = "../../../store/tests/postgres/mod.rs"]
mod postgres;

use super::common::{CommandResult, Folder, command, contents, interrupt};
use super::serving::Serving;
use postgres::{PASSWORD, Postgres};

/// Two trials in virtual time; the seed makes it another run.
fn short(seed: &str) -> Vec<&str> {
    let mut words = super::SHORT.to_vec();
    words.extend(["--seed", seed]);
    words
}

/// A run that lasts until it is interrupted.
const LONG: [&str; 13] = [
    "run",
    "forwarding-rate",
    "--on",
    "switch",
    "--link",
    "memory",
    "--effort",
    "quick",
    "--set",
    "repeats=1000",
    "--set",
    "seconds=0.05",
    "--store",
];

/// Number of polls for an event, a tenth of a second apart.
const LOOKS: u32 = 600;

/// Returns the program with a password in its environment.
fn with_password(folder: &Path, words: &[&str]) -> Command {
    let mut command = command(folder, words);
    command.env("PGPASSWORD", PASSWORD);
    command
}

fn output_of(mut command: Command) -> CommandResult {
    command.output().unwrap().into()
}

fn listed(folder: &Path, words: &[&str]) -> Value {
    let all = [&["list", "runs", "--json"], words].concat();
    let result = output_of(with_password(folder, &all));
    assert_eq!(result.code, Some(0), "{}", result.errors);
    serde_json::from_str(&result.output).unwrap()
}

/// Returns the lines about the store.
fn of_store(errors: &str) -> Vec<&str> {
    errors.lines().filter(|line| line.contains("store postgres://")).collect()
}

#[test]
fn a_team_store_collects_runs_of_several_users() {
    let Some(mut server) = Postgres::start() else { return };
    runs_of_all_are_found_and_opened(&server);
    passwords_are_nowhere(&server);
    a_server_that_goes_away_holds_nothing_back(&mut server);
    encryption_is_what_was_asked_for(&mut server);
}

fn runs_of_all_are_found_and_opened(server: &Postgres) {
    let (ann, bob) = (Folder::new(), Folder::new());
    let url = server.database("shared");
    let of = |folder: &Folder, who: &str, words: &[&str]| {
        let mut command = with_password(&folder.0, words);
        command.env("USER", who);
        output_of(command)
    };
    // One run was measured before the store existed; it is sent with the next one.
    assert_eq!(of(&ann, "ann", &short("1")).code, Some(0));
    let run = of(&ann, "ann", &[&short("2")[..], &["--store", &url]].concat());
    assert_eq!(run.code, Some(0), "{}", run.errors);
    assert_eq!(of_store(&run.errors), [format!("store {url}: sent 2 runs")]);
    fs::write(
        bob.0.join("two.toml"),
        "set = { simulate = true, seconds = 0.01, load = [1], repeats = 1 }\non = [\"direct\"]\n\
         [[step]]\nrun = \"bianco2010/fig3\"\n[[step]]\nrun = \"bianco2010/fig4\"\n",
    )
    .unwrap();
    let plan = of(&bob, "bob", &["run", "two.toml", "--store", &url]);
    assert_eq!(plan.code, Some(0), "{}", plan.errors);
    let found = listed(&bob.0, &["--store", &url]);
    let rows = found["runs"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["folder"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    assert_eq!(names.iter().filter(|it| it.contains("-two-1/")).count(), 2, "{names:?}");
    assert!(rows.iter().all(|row| row["trials"].as_u64() > Some(0)), "{rows:?}");
    // A run of another machine has no folder here, and its report is the same.
    let theirs: Vec<&Value> =
        rows.iter().filter(|row| row["origin"].as_str().unwrap().starts_with("ann@")).collect();
    let ids: Vec<&str> = theirs.iter().map(|row| row["id"].as_str().unwrap()).collect();
    let result = of(&bob, "bob", &["report", ids[0], "--store", &url]);
    assert!(result.code == Some(2) && result.errors.contains("--output DIR"), "{}", result.errors);
    let result = of(&bob, "bob", &["report", ids[0], "--store", &url, "--output", "copy"]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    let name = theirs[0]["folder"].as_str().unwrap();
    for file in ["report.html", "summary.md"] {
        let both = [ann.0.join("runs").join(name), bob.0.join("copy")];
        let [here, there] = both.map(|it| fs::read_to_string(it.join(file)).unwrap());
        assert!(here == there, "{file} differs");
    }
    let compared = of(&bob, "bob", &["compare", ids[0], ids[1], "--store", &url]);
    assert_eq!(compared.code, Some(0), "{}", compared.errors);
    assert!(compared.output.contains(ids[1]), "{}", compared.output);
    let none = of(&bob, "bob", &["compare", "nothing/here", ids[1], "--store", &url]);
    assert!(
        none.code == Some(2) && none.errors.contains("no run has this name or id"),
        "{}",
        none.errors
    );
    let left = contents(&std::env::temp_dir());
    assert!(!left.iter().any(|it| it.starts_with("planimeter-fetched-")), "{left:?}");
    // The browser shows both; also runs of one name from two folders of one person.
    let again = Folder::new();
    let run = of(&again, "ann", &[&short("7")[..], &["--store", &url]].concat());
    assert_eq!(run.code, Some(0), "{}", run.errors);
    let twice = listed(&bob.0, &["--store", &url]);
    let both = twice["runs"].as_array().unwrap();
    let alike = |row: &&Value| row["folder"] == contents(&again.0.join("runs"))[0].as_str();
    let [one, other] = both.iter().filter(alike).collect::<Vec<_>>()[..] else {
        panic!("{twice}");
    };
    let at_anns = Serving::begin_with(
        &ann.0,
        &["--store", &url],
        &[("PGPASSWORD", PASSWORD), ("USER", "ann")],
    );
    let page = at_anns.get("/runs?metric=rate_pps_forwarded").body;
    let (mine, theirs) = match ids.contains(&one["id"].as_str().unwrap()) {
        true => (one, other),
        false => (other, one),
    };
    let opened = |row: &Value| format!("/runs/{}/report.html", row.as_str().unwrap());
    for place in [&mine["folder"], &theirs["id"]].map(opened) {
        assert!(page.contains(&place), "{place}: {page}");
    }
    assert!(!page.contains(&opened(&mine["id"])), "{page}");
    assert!(at_anns.get(&opened(&theirs["id"])).body.contains("</html>"));
    drop(at_anns);
    let serving = Serving::begin_with(
        &bob.0,
        &["--store", &url],
        &[("PGPASSWORD", PASSWORD), ("USER", "bob")],
    );
    let page = serving.get("/runs");
    assert!(page.status == 200 && page.body.contains("by ann@"), "{}", page.body);
    let report = serving.get(&format!("/runs/{}/report.html", ids[0]));
    assert!(report.status == 200 && report.body.contains("</html>"), "{}", report.head);
    let compared = serving.get(&format!("/compare?run={}&run={}", ids[0], ids[1]));
    assert!(
        compared.status == 200 && compared.body.contains("Comparison with"),
        "{}",
        compared.body
    );
    assert_eq!(serving.get("/runs/abcdefabcdef/report.html").status, 404);
    drop(serving);
    let left = contents(&std::env::temp_dir());
    assert!(!left.iter().any(|it| it.starts_with("planimeter-serve-")), "{left:?}");
}

fn passwords_are_nowhere(server: &Postgres) {
    let folder = Folder::new();
    let url = server.database("secrets");
    let secret = "correct-horse";
    server.sql(
        "secrets",
        &format!(
            "CREATE ROLE tim LOGIN PASSWORD '{secret}'; GRANT CREATE ON DATABASE secrets TO tim"
        ),
    );
    let of_tim = server.url("tim", "secrets");
    let with = of_tim.replace("tim@", &format!("tim:{secret}@"));
    let words = short("3");
    let result = output_of(command(&folder.0, &[&words[..], &["--store", &with]].concat()));
    assert_eq!(result.code, Some(2));
    assert!(
        result.errors.contains("PLANIMETER_STORE") && !result.errors.contains(secret),
        "{}",
        result.errors
    );
    // The password comes from the environment and is stored nowhere.
    let mut run = command(&folder.0, &words);
    run.env("PLANIMETER_STORE", &with);
    let run = output_of(run);
    assert_eq!(run.code, Some(0), "{}", run.errors);
    assert_eq!(of_store(&run.errors), [format!("store {of_tim}: sent 1 run")]);
    let all = super::bytes(&folder.0);
    let holds = |bytes: &[u8]| bytes.windows(secret.len()).any(|it| it == secret.as_bytes());
    assert!(all.len() > 3 && !all.iter().any(|(_, bytes)| holds(bytes)));
    let kept = "SELECT count(*) FROM planimeter.run WHERE run::text LIKE '%correct%'";
    assert_eq!(server.sql("secrets", kept), "0");
    // A wrong password is reported in one line, and the run succeeds.
    let wrong = output_of({
        let mut run = command(
            &folder.0,
            &[&short("4")[..], &["--output", "other", "--store", &url]].concat(),
        );
        run.env("PGPASSWORD", "wrong-horse");
        run
    });
    let lines = of_store(&wrong.errors);
    assert_eq!((wrong.code, lines.len()), (Some(0), 1), "{}", wrong.errors);
    assert!(
        lines[0].contains("password authentication failed")
            && lines[0].contains("stay in their folder")
    );
    assert!(!wrong.errors.contains("wrong-horse"));
    let list =
        output_of(command(&folder.0, &["list", "runs", "--store", "postgres://x@127.0.0.1:1/x"]));
    assert_eq!(list.code, Some(4), "{}", list.errors);
    assert!(
        list.errors.contains("store postgres://x@127.0.0.1:1/x: cannot connect"),
        "{}",
        list.errors
    );
    for (text, want) in [
        ("runs", "postgres://USER@HOST"),
        ("postgres://u:secret@h/d?x=1", "unsupported parameter \"x\""),
    ] {
        let result = output_of(command(&folder.0, &["list", "runs", "--store", text]));
        assert!(result.code == Some(2) && result.errors.contains(want), "{}", result.errors);
        assert!(
            !result.errors.contains("secret") && result.errors.lines().count() == 1,
            "{}",
            result.errors
        );
    }
}

/// A run in progress, and its output.
struct Running {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStderr>>,
    printed: Vec<String>,
}

impl Running {
    fn begin(folder: &Path, url: &str) -> Running {
        let mut command = with_password(folder, &[&LONG[..], &[url]].concat());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        Running { child, lines, printed: Vec::new() }
    }

    /// Reads lines until one contains this.
    fn until(&mut self, want: &str) {
        for line in self.lines.by_ref() {
            self.printed.push(line.unwrap());
            if self.printed.last().is_some_and(|line| line.contains(want)) {
                return;
            }
        }
        panic!("{want:?} was not printed: {:#?}", self.printed);
    }

    fn end(mut self) -> Vec<String> {
        interrupt(self.child.id());
        self.printed.extend(self.lines.by_ref().map(Result::unwrap));
        assert_eq!(self.child.wait().unwrap().code(), Some(130), "{:#?}", self.printed);
        self.printed
    }
}

/// Waits until the server returns this.
fn wait_until(server: &Postgres, database: &str, sql: &str) {
    for _ in 0..LOOKS {
        if server.sql(database, sql) == "t" {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{sql}: the result does not appear");
}

fn a_server_that_goes_away_holds_nothing_back(server: &mut Postgres) {
    let (here, there) = (Folder::new(), Folder::new());
    let url = server.database("away");
    let there_is = "SELECT to_regclass('planimeter.trial') IS NOT NULL";
    // Two runs at the same time.
    let mut running = Running::begin(&here.0, &url);
    let mut other = Running::begin(&there.0, &url);
    wait_until(server, "away", there_is);
    wait_until(
        server,
        "away",
        "SELECT count(DISTINCT run) = 2 AND count(*) > 10 FROM planimeter.trial",
    );
    server.stop();
    running.until("runs stay in their folder; they are sent when the store replies");
    other.until("runs stay in their folder; they are sent when the store replies");
    server.start_again();
    running.until("connected again");
    let sent = server.sql("away", "SELECT max(id) FROM planimeter.trial");
    wait_until(server, "away", &format!("SELECT max(id) > {sent} FROM planimeter.trial"));
    let output = running.end().join("\n");
    assert_eq!(of_store(&output).len(), 3, "away, back, sent: {output}");
    // The other client is connected when the server stops permanently.
    other.until("connected again");
    server.stop();
    let output = other.end().join("\n");
    let last = *of_store(&output).last().unwrap();
    assert!(last.contains("runs stay in their folder"), "{output}");
    // A server that never existed.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = format!("postgres://ann@{free}/lab");
    let never =
        output_of(with_password(&there.0, &[&short("5")[..], &["--store", &nobody]].concat()));
    assert_eq!((never.code, of_store(&never.errors).len()), (Some(0), 1), "{}", never.errors);
    // Nothing was lost: the store has all runs in the folders.
    server.start_again();
    let mut trials = Vec::new();
    for folder in [&here, &there] {
        let in_folder = listed(&folder.0, &[]);
        listed(&folder.0, &["--store", &url]);
        let rows = in_folder["runs"].as_array().unwrap();
        trials.extend(rows.iter().map(|row| row["trials"].as_u64().unwrap()));
    }
    trials.sort_unstable();
    let trials: Vec<String> = trials.iter().map(u64::to_string).collect();
    let there = "SELECT string_agg(n::text, ' ' ORDER BY n) FROM (SELECT (SELECT count(DISTINCT trial.id) FROM planimeter.trial \
                 WHERE trial.run = run.id) AS n FROM planimeter.run WHERE digest <> '') AS all_runs";
    assert_eq!(server.sql("away", there), trials.join(" "));
    assert_eq!(trials.len(), 3, "two interrupted runs, and one without a server");
    let runs = here.0.join("runs");
    let names = contents(&runs);
    assert!(names.iter().any(|name| runs.join(name).join("report.html").exists()), "{names:?}");
}

fn encryption_is_what_was_asked_for(server: &mut Postgres) {
    let folder = Folder::new();
    let url = server.database("tls");
    let list =
        |url: String| output_of(with_password(&folder.0, &["list", "runs", "--store", &url]));
    let plain = list(format!("{url}?sslmode=require"));
    assert!(plain.code == Some(4) && plain.errors.contains("TLS"), "{}", plain.errors);
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    server.secure(&made.cert.pem(), &made.signing_key.serialize_pem());
    let ca = folder.0.join("ca.crt");
    fs::write(&ca, made.cert.pem()).unwrap();
    let other = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let wrong = folder.0.join("wrong.crt");
    fs::write(&wrong, other.cert.pem()).unwrap();
    let (ca, wrong) = (ca.display(), wrong.display());
    let by_name = url.replace("127.0.0.1", "localhost");
    server.sql("tls", "CREATE EXTENSION IF NOT EXISTS sslinfo");
    for (url, code, want) in [
        (format!("{url}?sslmode=require"), 0, ""),
        (format!("{url}?sslmode=disable"), 0, ""),
        (format!("{url}?sslmode=verify-ca&sslrootcert={ca}"), 0, ""),
        (format!("{url}?sslmode=require&sslrootcert={wrong}"), 4, "TLS: invalid peer certificate"),
        (format!("{url}?sslmode=verify-full&sslrootcert={ca}"), 4, "TLS: invalid peer certificate"),
        (format!("{by_name}?sslmode=verify-full&sslrootcert={ca}"), 0, ""),
        (
            format!("{by_name}?sslmode=verify-full&sslrootcert={wrong}"),
            4,
            "TLS: invalid peer certificate",
        ),
        (format!("{by_name}?sslmode=verify-full"), 4, "sslrootcert=FILE"),
        (format!("{url}?sslmode=verify-ca&sslrootcert=/nowhere"), 4, "/nowhere"),
    ] {
        let result = list(url.clone());
        assert_eq!(result.code, Some(code), "{url}: {}", result.errors);
        assert!(result.errors.contains(want), "{url}: {}", result.errors);
    }
    // If the server accepts only encrypted connections, other clients receive that error.
    let rules = server.folder().join("data/pg_hba.conf");
    let text = fs::read_to_string(&rules).unwrap().replace("host ", "hostssl ");
    fs::write(&rules, text).unwrap();
    server.sql("tls", "SELECT pg_reload_conf()");
    for (mode, code) in [("disable", 4), ("prefer", 0), ("require", 0)] {
        let result = list(format!("{url}?sslmode={mode}"));
        assert_eq!(result.code, Some(code), "{mode}: {}", result.errors);
    }
}
