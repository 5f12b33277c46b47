//! Test rig of a few hosts around a switch, each in its own network namespace, and programs next to
//! them.
//!
//! Invariant: a wait succeeds or fails the test. A frame that must not arrive is distinguished from
//! a late one by a later frame that has arrived.

use std::fs::{self, File};
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use testbed::veth::{Cable, EndSettings};
use testbed::{Mac, Namespace};

use crate::common::{Folder, command, interrupt};

/// Time limit of any wait; only a failure takes this long.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Interval at which a request is repeated, because its first frames may precede a rule.
const AGAIN: Duration = Duration::from_millis(100);

/// A host at a port of the switch.
pub struct Host {
    namespace: Namespace,
    /// Its number, and that of the port.
    pub number: u8,
    _cable: Cable,
}

impl Host {
    /// 10.0.0.number.
    pub fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, self.number)
    }

    /// 02:00:00:00:00:number.
    pub fn mac(&self) -> Mac {
        [2, 0, 0, 0, 0, self.number]
    }

    fn socket(&self, port: u16) -> UdpSocket {
        let address = self.address();
        let socket = self.namespace.run(|| UdpSocket::bind((address, port))).unwrap().unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    }

    /// Sends UDP requests to another host until one was received and its reply has arrived.
    pub fn ask(&self, other: &Host, port: u16) {
        let (here, there) = (self.socket(0), other.socket(port));
        let begun = Instant::now();
        let mut asked: Option<Instant> = None;
        let mut bytes = [0; 16];
        loop {
            if asked.is_none_or(|at| at.elapsed() > AGAIN) {
                // The address may not be resolved yet; this shows as an error of a later call.
                let _ = here.send_to(b"question", (other.address(), port));
                asked = Some(Instant::now());
            }
            if let Ok((_, from)) = there.recv_from(&mut bytes) {
                there.send_to(b"answer", from).unwrap();
            }
            if here.recv_from(&mut bytes).is_ok_and(|(length, _)| &bytes[..length] == b"answer") {
                return;
            }
            let who = (self.number, other.number);
            assert!(begun.elapsed() < PATIENCE, "no reply on port {port}: {who:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Sends datagrams that must be dropped, then a request on another port; returns how many of
    /// the former arrived.
    pub fn is_refused(&self, other: &Host, port: u16, open: u16) -> usize {
        let (here, there) = (self.socket(0), other.socket(port));
        for _ in 0..5 {
            let _ = here.send_to(b"question", (other.address(), port));
        }
        self.ask(other, open);
        let mut bytes = [0; 16];
        std::iter::from_fn(|| there.recv_from(&mut bytes).ok()).count()
    }
}

impl Host {
    /// Sends another host a datagram, without a check; the kernel first resolves the address.
    pub fn call(&self, other: &Host) {
        let _ = self.socket(0).send_to(b"hello", (other.address(), 7200));
    }

    /// Makes `other` send broadcasts, then waits for a later frame; returns how many broadcasts
    /// arrived here.
    pub fn hears_broadcast_of(
        &self,
        other: &Host,
        after_there: impl FnOnce(),
        after_here: impl FnOnce(),
    ) -> usize {
        const PORT: u16 = 7100;
        let everybody = Ipv4Addr::new(10, 0, 0, 255);
        let here = self.namespace.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)));
        let (here, there) = (here.unwrap().unwrap(), other.socket(0));
        here.set_nonblocking(true).unwrap();
        there.set_broadcast(true).unwrap();
        for _ in 0..5 {
            there.send_to(b"everybody", (everybody, PORT)).unwrap();
        }
        after_there();
        after_here();
        let mut bytes = [0; 16];
        std::iter::from_fn(|| here.recv_from(&mut bytes).ok()).count()
    }
}

/// Hosts around a namespace for a switch and its controller.
pub struct Rig {
    folder: Folder,
    middle: Namespace,
    /// The hosts; the one with number n is at index n - 1.
    pub hosts: Vec<Host>,
}

impl Rig {
    pub fn new(hosts: u8) -> Rig {
        let middle = Namespace::create().unwrap();
        let host = |number| {
            let namespace = Namespace::create().unwrap();
            let end = |namespace: &Namespace, name: String, mac| EndSettings {
                namespace: namespace.clone(),
                name,
                mac,
                threaded: None,
            };
            let cable = Cable::lay(
                &end(&middle, format!("s{number}"), [2, 0, 0, 0, 1, number]),
                &end(&namespace, "eth0".to_owned(), [2, 0, 0, 0, 0, number]),
                1500,
            );
            let cable = cable.unwrap();
            let index = cable.ends[1].index;
            let address = Ipv4Addr::new(10, 0, 0, number);
            namespace.netlink().unwrap().address_add(index, address, 24).unwrap();
            Host { namespace, number, _cable: cable }
        };
        let hosts: Vec<Host> = (1..=hosts).map(host).collect();
        hosts.iter().for_each(|host| host._cable.wait_carrying().unwrap());
        Rig { folder: Folder::new(), middle, hosts }
    }

    pub fn path(&self) -> &Path {
        &self.folder.0
    }

    /// Starts our switch with all hosts.
    pub fn switch(&self, arguments: &[&str]) -> Program {
        let ports: Vec<String> = self.hosts.iter().map(|host| host.number.to_string()).collect();
        let ports: Vec<String> = ports.iter().map(|n| format!("{n}=afpacket:s{n}")).collect();
        let mut words = vec!["switch"];
        ports.iter().for_each(|port| words.extend(["--port", port]));
        words.extend(arguments);
        let mut switch = self.start("switch", command(self.path(), &words));
        switch.wait_for("ready");
        switch
    }

    /// Starts a program next to the switch; its output goes into a file.
    pub fn start(&self, name: &str, mut command: Command) -> Program {
        let log = self.path().join(format!("{name}.log"));
        let file = File::create(&log).unwrap();
        command.current_dir(self.path()).stdin(Stdio::null());
        command.stdout(file.try_clone().unwrap()).stderr(file);
        let child = self.middle.run(|| command.spawn()).unwrap().unwrap();
        Program { child, log, name: name.to_owned() }
    }

    /// Runs a program next to the switch to its end; returns its output if it succeeds.
    pub fn output(&self, mut command: Command) -> Result<String, String> {
        command.current_dir(self.path()).stdin(Stdio::null());
        let output = self.middle.run(|| command.output()).unwrap().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(text) } else { Err(text + &errors) }
    }

    /// Waits until a program listens on this TCP port of the loopback interface next to the switch.
    pub fn wait_listening(&self, port: u16, program: &mut Program) {
        let local = format!("0100007F:{port:04X}");
        let anywhere = format!("00000000:{port:04X}");
        let is_listening = || {
            let table = self.middle.run(|| fs::read_to_string("/proc/thread-self/net/tcp"));
            let table = table.unwrap().unwrap();
            table.lines().any(|line| {
                let words: Vec<_> = line.split_whitespace().collect();
                words.get(3) == Some(&"0A") && (words[1] == local || words[1] == anywhere)
            })
        };
        program.wait_until("it listens", |_| is_listening());
    }
}

/// A program in the middle namespace, ended when this value is dropped.
pub struct Program {
    child: Child,
    log: PathBuf,
    name: String,
}

impl Program {
    /// Returns its output so far.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap()).into_owned()
    }

    /// Waits until its output contains this.
    pub fn wait_for(&mut self, words: &str) {
        self.wait_until(words, |text| text.contains(words));
    }

    /// Waits until its output meets the condition.
    pub fn wait_until(&mut self, what: &str, mut is_so: impl FnMut(&str) -> bool) {
        let begun = Instant::now();
        loop {
            let is_running = self.child.try_wait().unwrap().is_none();
            let text = self.output();
            if is_so(&text) {
                return;
            }
            assert!(is_running, "{} ended before {what:?}: {text}", self.name);
            assert!(begun.elapsed() < PATIENCE, "{} without {what:?}: {text}", self.name);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Stops it, and returns its exit code.
    pub fn end(mut self) -> Option<i32> {
        assert!(self.child.try_wait().unwrap().is_none(), "{} ended: {}", self.name, self.output());
        interrupt(self.child.id());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("output of {}:\n{}", self.name, self.output());
        }
    }
}

/// Formats a MAC address.
pub fn show(mac: Mac) -> String {
    let [a, b, c, d, e, f] = mac;
    format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
}
