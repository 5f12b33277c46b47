//! A program connected by non-blocking pipes, with its error output retained.
//!
//! The program is started like every program of the lab ([`crate::process`]), so that it dies with
//! this process. Lines are written to its standard input and read from its standard output. Its
//! standard error is retained up to [`PRINTED_BYTES_MAX`].
//!
//! Source: `pipe(7)`, `poll(2)`, `kill(2)`.
//!
//! Invariant: a dropped program is dead and waited for, and so is the rest of its process group.

#![allow(unsafe_code, clippy::disallowed_methods)]

use crate::process::{self, ProcessSpec};
use crate::{LabError, RunFolder, proc, wait};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus};
use std::time::{Duration, Instant};

/// Maximum number of bytes of standard error that are retained, from its end.
pub const PRINTED_BYTES_MAX: usize = 64 << 10;

/// Maximum length of a line of standard output, in bytes.
pub const LINE_BYTES_MAX: usize = 16 << 20;

/// Bytes per read.
const READ_BYTES: usize = 64 << 10;

/// Size of a pipe, if the kernel allows it.
const PIPE_BYTES: libc::c_int = 1 << 20;

/// A program connected by pipes.
#[derive(Debug)]
pub struct PipeProcess {
    child: Child,
    /// Its standard input; `None` once it is closed.
    says: Option<ChildStdin>,
    hears: ChildStdout,
    prints: ChildStderr,
    waiting: Vec<u8>,
    waiting_start: usize,
    heard: Vec<u8>,
    heard_start: usize,
    printed: Vec<u8>,
    /// Total bytes of its standard error.
    printed_total: u64,
    /// Bytes written to it, and bytes read from it.
    bytes: [u64; 2],
    is_silent: bool,
    /// Whether it is dead and waited for: its number may be reused.
    is_gone: bool,
    /// Keeps the PID namespace until the child is waited for.
    _folder: RunFolder,
}

/// Why communication with a program has ended.
#[derive(Debug)]
pub enum TalkError {
    /// Its standard output has ended.
    Over,
    /// A line has more than [`LINE_BYTES_MAX`] bytes.
    LongLine,
    /// A system call failed.
    System(io::Error),
}

impl PipeProcess {
    /// Starts the program and records it in the run's folder.
    pub fn start(launch: ProcessSpec, folder: &RunFolder) -> Result<PipeProcess, LabError> {
        let name = launch.program.display().to_string();
        let started = folder.clone();
        let mut child = process::on_lab_thread(move || process::spawn_piped(launch, &started))??;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(says), Some(hears), Some(prints)) = streams else {
            unreachable!("the program was started with pipes")
        };
        for descriptor in [says.as_raw_fd(), hears.as_raw_fd(), prints.as_raw_fd()] {
            set_up(descriptor)
                .map_err(|error| LabError::system("communicate with", &*name, error))?;
        }
        let talk = PipeProcess {
            says: Some(says),
            hears,
            prints,
            waiting: Vec::new(),
            waiting_start: 0,
            heard: Vec::new(),
            heard_start: 0,
            printed: Vec::new(),
            printed_total: 0,
            bytes: [0; 2],
            is_silent: false,
            is_gone: false,
            child,
            _folder: folder.clone(),
        };
        if let Some(identity) = proc::Identity::of(talk.child.id()) {
            folder.record_child(identity)?;
        }
        Ok(talk)
    }

    /// Appends bytes to those that wait to be written.
    pub fn say(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
    }

    /// Returns how many bytes wait to be written.
    pub fn waiting(&self) -> usize {
        self.waiting.len() - self.waiting_start
    }

    /// Returns the bytes written and read so far.
    pub fn bytes(&self) -> [u64; 2] {
        self.bytes
    }

    /// Returns the CPU time used so far.
    pub fn cpu_time(&self) -> Option<Duration> {
        proc::cpu_time(self.child.id()).filter(|_| !self.is_gone)
    }

    /// Writes and reads as much as possible without waiting.
    pub fn turn(&mut self) -> Result<(), TalkError> {
        self.hand_over()?;
        self.take_printed();
        let mut buffer = [0; READ_BYTES];
        while !self.is_silent {
            match self.hears.read(&mut buffer) {
                Ok(0) => self.is_silent = true,
                Ok(count) => {
                    self.bytes[1] += count as u64;
                    self.heard.extend_from_slice(&buffer[..count]);
                    if self.heard.len() - self.heard_start > LINE_BYTES_MAX {
                        // Whole lines are consumed before more is read.
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(TalkError::System(error)),
            }
        }
        Ok(())
    }

    /// Returns the next whole line, without its line end.
    pub fn line(&mut self) -> Result<Option<Vec<u8>>, TalkError> {
        let rest = &self.heard[self.heard_start..];
        if let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let line = rest[..end].to_vec();
            self.heard_start += end + 1;
            return Ok(Some(line));
        }
        if rest.len() > LINE_BYTES_MAX {
            return Err(TalkError::LongLine);
        }
        self.heard.drain(..self.heard_start);
        self.heard_start = 0;
        if self.is_silent { Err(TalkError::Over) } else { Ok(None) }
    }

    /// Waits for the next line, at most `patience`; none on a timeout.
    pub fn wait_line(&mut self, patience: Duration) -> Result<Option<Vec<u8>>, TalkError> {
        let until = Instant::now() + patience;
        loop {
            self.turn()?;
            if let Some(line) = self.line()? {
                return Ok(Some(line));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.wait(left).map_err(TalkError::System)?;
        }
    }

    /// Returns the retained standard error since the last call, and how many bytes were dropped.
    pub fn take_print(&mut self) -> (String, u64) {
        self.take_printed();
        let left_out = self.printed_total - self.printed.len() as u64;
        self.printed_total = 0;
        (String::from_utf8_lossy(&std::mem::take(&mut self.printed)).into_owned(), left_out)
    }

    /// Closes its standard input and waits until it ends; kills it after `patience`. Returns its
    /// exit status.
    pub fn end(&mut self, patience: Duration) -> Result<Option<ExitStatus>, LabError> {
        self.says = None;
        self.wait_end(patience)?;
        Ok(self.kill())
    }

    /// Sends SIGABRT, on which Python prints its stack, and kills the program after `patience`.
    pub fn abort(&mut self, patience: Duration) {
        self.signal(libc::SIGABRT);
        let _ = self.wait_end(patience);
        self.kill();
    }

    /// Waits until it ends, without reaping it, so that its number is not reused.
    fn wait_end(&mut self, patience: Duration) -> Result<bool, LabError> {
        let ended = wait::until(patience, || {
            // A full pipe would block its end.
            let _ = self.turn();
            self.heard_start = self.heard.len();
            Ok(has_ended(&self.child))
        })?;
        self.take_printed();
        Ok(ended)
    }

    fn hand_over(&mut self) -> Result<(), TalkError> {
        let Some(says) = &mut self.says else { return Ok(()) };
        while self.waiting_start < self.waiting.len() {
            match says.write(&self.waiting[self.waiting_start..]) {
                Ok(count) => {
                    self.bytes[0] += count as u64;
                    self.waiting_start += count;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // It has closed its input; output from before is still to be read.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
                Err(error) => return Err(TalkError::System(error)),
            }
        }
        self.waiting.clear();
        self.waiting_start = 0;
        Ok(())
    }

    fn take_printed(&mut self) {
        let mut buffer = [0; READ_BYTES];
        while let Ok(count @ 1..) = self.prints.read(&mut buffer) {
            self.printed_total += count as u64;
            self.printed.extend_from_slice(&buffer[..count]);
            let beyond = self.printed.len().saturating_sub(PRINTED_BYTES_MAX);
            self.printed.drain(..beyond);
        }
    }

    /// Waits until output can be read, or waiting bytes can be written.
    fn wait(&self, patience: Duration) -> io::Result<()> {
        let row = |descriptor, events| libc::pollfd { fd: descriptor, events, revents: 0 };
        let mut rows = vec![
            row(self.hears.as_raw_fd(), libc::POLLIN),
            row(self.prints.as_raw_fd(), libc::POLLIN),
        ];
        if let Some(says) = self.says.as_ref().filter(|_| self.waiting() > 0) {
            rows.push(row(says.as_raw_fd(), libc::POLLOUT));
        }
        let patience_ms = patience.as_millis().clamp(1, 100) as libc::c_int;
        // SAFETY: `rows` is valid for its length during the call; the descriptors belong to this
        // process.
        match unsafe { libc::poll(rows.as_mut_ptr(), rows.len() as libc::nfds_t, patience_ms) } {
            -1 => match io::Error::last_os_error() {
                error if error.kind() == ErrorKind::Interrupted => Ok(()),
                error => Err(error),
            },
            _ => Ok(()),
        }
    }

    fn kill(&mut self) -> Option<ExitStatus> {
        self.signal(libc::SIGKILL);
        self.is_gone = true;
        self.child.wait().ok()
    }

    /// Signals its whole process group, which has its number.
    fn signal(&mut self, signal: libc::c_int) {
        if !self.is_gone {
            // SAFETY: kill takes no pointers; the child is not waited for, so the number is still
            // its own.
            unsafe { libc::kill(-(self.child.id() as libc::pid_t), signal) };
        }
    }
}

impl Drop for PipeProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns whether a child has ended, without reaping it.
fn has_ended(child: &Child) -> bool {
    // SAFETY: zeroes are a valid siginfo_t.
    let mut told: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `told` is valid during the call; the child is ours and not waited for.
    let asked = unsafe { libc::waitid(libc::P_PID, child.id(), &mut told, how) };
    // SAFETY: the call filled the member for children, or left it zero.
    asked != 0 || unsafe { told.si_pid() } != 0
}

/// Makes a pipe non-blocking, and enlarges it if allowed.
fn set_up(descriptor: i32) -> io::Result<()> {
    // SAFETY: the descriptor is open as long as its stream, which outlives this call.
    let pipe = unsafe { BorrowedFd::borrow_raw(descriptor) };
    // SAFETY: these commands take integers only.
    let failed = unsafe {
        let flags = libc::fcntl(pipe.as_raw_fd(), libc::F_GETFL);
        libc::fcntl(pipe.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE_BYTES);
        flags < 0 || libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK) < 0
    };
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl std::fmt::Display for TalkError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TalkError::Over => f.write_str("the program has ended"),
            TalkError::LongLine => write!(f, "output line longer than {LINE_BYTES_MAX} bytes"),
            TalkError::System(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for TalkError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> (PipeProcess, RunFolder, PathBuf) {
        let root = std::env::temp_dir().join(format!("lab-talk-{}", std::process::id()));
        let folder = RunFolder::create(&root).unwrap();
        let launch = ProcessSpec {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            environment: Vec::new(),
            log: PathBuf::new(),
            namespace: None,
            cores: Vec::new(),
        };
        (PipeProcess::start(launch, &folder).unwrap(), folder, root)
    }

    #[test]
    fn lines_are_exchanged_and_error_output_is_stored() {
        let (mut talk, _folder, root) =
            shell("echo aside >&2; while read l; do echo \"<$l>\"; done");
        talk.say(b"one\ntwo\n");
        assert_eq!(talk.wait_line(LONG).unwrap().unwrap(), b"<one>");
        assert_eq!(talk.wait_line(LONG).unwrap().unwrap(), b"<two>");
        assert!(talk.wait_line(Duration::ZERO).unwrap().is_none());
        assert_eq!(talk.bytes(), [8, 12]);
        assert!(talk.end(LONG).unwrap().unwrap().success());
        assert!(matches!(talk.wait_line(LONG), Err(TalkError::Over)));
        assert_eq!(talk.take_print(), ("aside\n".to_string(), 0));
        let _ = std::fs::remove_dir(root);
    }

    #[test]
    fn dropping_it_ends_all_its_processes() {
        let (mut talk, _folder, root) = shell("sleep 1000 & echo started; wait");
        assert_eq!(talk.wait_line(LONG).unwrap().unwrap(), b"started");
        let child = child_of(talk.child.id()).expect("the shell has started a program");
        drop(talk);
        assert!(wait::until(LONG, || Ok(is_dead(child))).unwrap());
        let _ = std::fs::remove_dir(root);
    }

    /// Returns a child of a process. The shell itself knows only its number in the PID namespace of
    /// the folder.
    fn child_of(parent: u32) -> Option<u32> {
        let wanted = format!("PPid:\t{parent}\n");
        let pids = std::fs::read_dir("/proc").unwrap().flatten();
        let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.find(|pid: &u32| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
            status.is_ok_and(|status| status.contains(&wanted))
        })
    }

    /// Returns whether a process is gone, or waits for its new parent to reap it.
    fn is_dead(pid: u32) -> bool {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        state.is_empty() || state.contains(") Z ")
    }
}
