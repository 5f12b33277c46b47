//! A PostgreSQL server for a test: in a temporary folder, on a free local port, stopped at the end
//! of the test.
//!
//! If PostgreSQL is not installed, the test prints this and passes. As root with CI set in the
//! environment, PostgreSQL is mandatory. Invariant: the server ends with the thread that started
//! it, in all cases.

#![allow(dead_code, reason = "not every test uses all of it")]
#![allow(clippy::disallowed_methods, reason = "PostgreSQL does not signal when it is ready")]

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// User id that runs the server if the test is root, because PostgreSQL does not run as root.
const NOBODY: u32 = 65534;

/// The password of all users with a password.
pub const PASSWORD: &str = "pass:w\\rd";

/// Number of checks for the start or stop of the server, a tenth of a second apart.
const LOOKS: u32 = 300;

pub struct Postgres {
    programs: PathBuf,
    folder: PathBuf,
    pub port: u16,
    child: Option<Child>,
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// Folder of the server's programs.
fn programs() -> Option<PathBuf> {
    let of_debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut places: Vec<PathBuf> = of_debian.map(|it| it.path().join("bin")).collect();
    places.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    places.extend(std::env::split_paths(&path));
    places
        .into_iter()
        .rev()
        .find(|place| ["initdb", "postgres", "psql"].iter().all(|it| place.join(it).is_file()))
}

impl Postgres {
    /// Starts a new server; none if PostgreSQL is not installed.
    pub fn start() -> Option<Postgres> {
        let found = programs();
        let is_needed = std::env::var_os("CI").is_some() && is_root();
        assert!(found.is_some() || !is_needed, "postgresql is required but not installed");
        let Some(programs) = found else {
            println!("skipped: postgresql is not installed");
            return None;
        };
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let folder =
            std::env::temp_dir().join(format!("planimeter-pg-{}-{port}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let password = folder.join("password");
        fs::write(&password, PASSWORD).unwrap();
        if is_root() {
            chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
            chown(&password, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let mut made = Postgres { programs, folder, port, child: None };
        let mut making = made.command("initdb");
        making.arg("-D").arg(made.folder.join("data")).arg("--pwfile").arg(&password);
        making.args([
            "--no-sync",
            "--username=owner",
            "--auth-local=trust",
            "--auth-host=scram-sha-256",
        ]);
        making.args(["--encoding=UTF8", "--locale=C.UTF-8"]);
        let done = making.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        made.start_again();
        Some(made)
    }

    /// A command of one of its programs, run as a permitted user.
    fn command(&self, program: &str) -> Command {
        let path = self.programs.join(program);
        let mut command = Command::new("setpriv");
        // The server ends with this thread.
        command.args(["--pdeathsig", "QUIT"]);
        if is_root() {
            let nobody = NOBODY.to_string();
            command.args(["--reuid", &nobody, "--regid", &nobody, "--clear-groups"]);
        }
        command.arg("--").arg(path).current_dir(&self.folder).env("LC_ALL", "C.UTF-8");
        command.stdin(Stdio::null());
        command
    }

    /// Starts the server again with its data.
    pub fn start_again(&mut self) {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.log()).unwrap();
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.folder.join("data")).arg("-k").arg(&self.folder);
        command.args([
            "-p",
            &self.port.to_string(),
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            "fsync=off",
        ]);
        if self.folder.join("data/server.key").exists() {
            command.args(["-c", "ssl=on"]);
        }
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.child = Some(command.spawn().unwrap());
        let mut reason = String::new();
        for _ in 0..LOOKS {
            match self.psql("postgres", "SELECT 1") {
                Ok(_) => return,
                Err(why) => reason = why,
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("the server did not start: {reason}; {}", self.log_text());
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// The log of the server.
    pub fn log_text(&self) -> String {
        fs::read_to_string(self.log()).unwrap()
    }

    /// Enables TLS with this certificate.
    pub fn secure(&mut self, certificate: &str, key: &str) {
        self.stop();
        for (name, text) in [("server.crt", certificate), ("server.key", key)] {
            let file = self.folder.join("data").join(name);
            fs::write(&file, text).unwrap();
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            if is_root() {
                chown(&file, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        self.start_again();
    }

    /// Stops the server immediately, like a crash.
    pub fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let sent = Command::new("sh").args(["-c", &format!("kill -QUIT {}", child.id())]).status();
        if !sent.is_ok_and(|it| it.success()) {
            let _ = child.kill();
        }
        let _ = child.wait();
        // Server processes of open connections end a moment later.
        for _ in 0..LOOKS {
            if TcpStream::connect(("127.0.0.1", self.port)).is_err() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Result of a statement of the owner over the Unix socket.
    fn psql(&self, database: &str, sql: &str) -> Result<String, String> {
        let mut command = Command::new(self.programs.join("psql"));
        command.args([
            "-XAtq",
            "-v",
            "ON_ERROR_STOP=1",
            "-U",
            "owner",
            "-p",
            &self.port.to_string(),
        ]);
        command.args(["-d", database, "-c", sql]).arg("-h").arg(&self.folder);
        let done = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
        match done.status.success() {
            true => Ok(String::from_utf8(done.stdout).unwrap().trim_end().to_string()),
            false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
        }
    }

    /// Executes a statement that must succeed.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        self.psql(database, sql).unwrap_or_else(|why| panic!("{sql}: {why}"))
    }

    /// Creates a database and returns its address.
    pub fn database(&self, name: &str) -> String {
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        self.url("owner", name)
    }

    /// The address of a database, without a password.
    pub fn url(&self, user: &str, database: &str) -> String {
        format!("postgres://{user}@127.0.0.1:{}/{database}", self.port)
    }

    /// The address over the Unix socket, which requires no password.
    pub fn url_of_socket(&self, user: &str, database: &str) -> String {
        let folder = self.folder.display();
        format!("postgres://{user}@/{database}?host={folder}&port={}", self.port)
    }

    /// The server's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
