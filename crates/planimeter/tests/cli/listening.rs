//! Tests of connections to elements' listeners, on real sockets and without privileges.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use super::common::{Folder, command, interrupt};

/// An element with two ports in shared memory, stopped by Ctrl-C.
struct Element {
    child: Child,
    /// Its log until it was ready.
    log: Vec<String>,
    rest: Option<JoinHandle<()>>,
}

impl Element {
    fn begin(folder: &Folder, words: &[&str]) -> Element {
        let ports = ["--port", "1=memif:one", "--port", "2=memif:two"];
        let mut child = command(&folder.0, &[words, &ports].concat())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let log = lines.by_ref().take_while(|line| line != "ready").collect();
        // Later output needs a reader.
        let rest = std::thread::spawn(move || lines.for_each(drop));
        Element { child, log, rest: Some(rest) }
    }

    /// Returns the text of a line after these words.
    fn says(&self, words: &str) -> &str {
        let found = self.log.iter().find_map(|line| line.strip_prefix(words));
        found.unwrap_or_else(|| panic!("{words}: {:?}", self.log))
    }
}

impl Drop for Element {
    fn drop(&mut self) {
        interrupt(self.child.id());
        let ended = self.child.wait().unwrap();
        let _ = self.rest.take().map(JoinHandle::join);
        assert!(ended.success() || std::thread::panicking(), "{ended}");
    }
}

#[test]
fn thousands_of_pipelined_requests_are_answered() {
    const REQUESTS: usize = 4_000;
    let folder = Folder::new();
    let words = ["progfe", "--program", super::BRIDGE, "--http", "0"];
    let element = Element::begin(&folder, &words);
    let url = element.says("accepting programs on ptcp:");
    let (port, address) = url.split_once(':').unwrap();
    let mut client = TcpStream::connect(format!("{address}:{port}")).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut sending = client.try_clone().unwrap();
    let sender = std::thread::spawn(move || {
        sending.write_all(&b"GET / HTTP/1.1\nHost: [::1]\n\n".repeat(REQUESTS)).unwrap();
        let evil = "GET / HTTP/1.1\nHost: evil.example\n\n";
        sending.write_all(evil.as_bytes()).unwrap();
    });
    let mut answers = String::new();
    client.read_to_string(&mut answers).unwrap();
    sender.join().unwrap();
    assert_eq!(answers.matches("HTTP/1.1 404 ").count(), REQUESTS);
    // DNS rebinding: a name of another site ends the connection.
    assert_eq!(answers.matches("HTTP/1.1 421 ").count(), 1);
}

#[test]
fn listeners_without_an_address_are_local() {
    let folder = Folder::new();
    let switch = Element::begin(&folder, &["switch", "--listen", "ptcp:0"]);
    assert!(switch.says("listening for controllers on ptcp:").ends_with(":127.0.0.1"));
    assert!(!switch.log.iter().any(|line| line.starts_with("warning: ")), "{:?}", switch.log);
    let folder = Folder::new();
    let switch = Element::begin(&folder, &["switch", "--listen", "ptcp:0:0.0.0.0"]);
    let warnings = switch.log.iter().filter(|line| line.contains("without authentication"));
    assert_eq!(warnings.count(), 1, "{:?}", switch.log);
}
