//! Tests of the Python package: `pip` installs it into a new environment, its own tests pass, its
//! types are complete, and its tutorial runs.
//!
//! It is built without optimization and into the common target folder, so that nothing is compiled
//! twice. `tools/needs.sh tests` installs what it needs from PyPI into a virtual environment.
//! Without that, these tests are skipped by name, except as root where `CI` is set. Arguments that
//! are not options select tests by a part of their name.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

/// Helpers to run the program.
mod common;
/// Sequential test runner with requirements.
#[path = "common/one_by_one.rs"]
mod one_by_one;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::OnceLock;

use common::Folder;
use one_by_one::Test;

const TESTS: &[Test<String>] = &[
    ("the_package_imports_without_dependencies", needs, the_package_imports_without_dependencies),
    ("the_tests_of_the_package_pass", needs, the_tests_of_the_package_pass),
    ("the_type_annotations_are_valid", needs, the_type_annotations_are_valid),
    ("the_tutorial_runs", needs, the_tutorial_runs),
    ("the_code_of_the_guide_runs", needs, the_code_of_the_guide_runs),
];

fn main() -> ExitCode {
    one_by_one::run_anywhere(TESTS)
}

fn needs() -> Result<(), String> {
    match tools().join("installed").exists() {
        true => Ok(()),
        false => Err(
            "maturin and others from PyPI are not installed (hint: run `sh tools/needs.sh tests`)"
                .into(),
        ),
    }
}

/// Returns the virtual environment that `tools/needs.sh tests` created.
fn tools() -> PathBuf {
    let folder = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    cache.unwrap_or_default().join("planimeter/python/package")
}

/// Returns its packages' folder: `lib/python3.N/site-packages`.
fn libraries() -> PathBuf {
    let lib = std::fs::read_dir(tools().join("lib")).unwrap();
    let named = lib.map(|entry| entry.unwrap().path().join("site-packages"));
    named.into_iter().find(|path| path.is_dir()).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns the build's target folder, which contains `target/debug/planimeter`.
fn built_into() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_planimeter"));
    program.ancestors().nth(2).unwrap().to_path_buf()
}

/// Runs a command to its end; panics with its output if it fails.
fn done(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let printed = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    assert!(output.status.success(), "{command:?}\n{}{}", printed[0], printed[1]);
    printed[0].to_string()
}

/// Returns a new environment with only the package, created once.
fn environment() -> &'static Path {
    static MADE: OnceLock<Folder> = OnceLock::new();
    let folder = MADE.get_or_init(|| {
        let folder = Folder::new();
        let python = tools().join("bin/python");
        let options = ["-m", "venv", "--without-pip"];
        done(Command::new(python).args(options).arg(&folder.0));
        let mut install = Command::new(tools().join("bin/pip"));
        let of = ["--disable-pip-version-check", "--quiet", "--python"];
        install.args(of).arg(folder.0.join("bin/python"));
        let what = ["install", "--no-build-isolation", "--no-index", "--no-deps"];
        install.args(what).arg(root().join("python"));
        install
            .env("PYTHONPATH", libraries())
            .env("PATH", path_with(&tools().join("bin")))
            .env("CARGO_TARGET_DIR", built_into())
            .env("MATURIN_PEP517_ARGS", "--profile dev");
        // Crates that read their package's version would be rebuilt, with all dependents.
        for (name, _) in std::env::vars_os() {
            let is_of_package =
                |it: &str| it.starts_with("CARGO_MANIFEST_") || it.starts_with("CARGO_PKG_");
            if name.to_str().is_some_and(is_of_package) {
                install.env_remove(name);
            }
        }
        done(&mut install);
        folder
    });
    &folder.0
}

fn path_with(first: &Path) -> String {
    let others = std::env::var("PATH").unwrap_or_default();
    format!("{}:{others}", first.display())
}

/// Returns Python of the new environment, with access to the tools' packages.
fn python() -> Command {
    let mut command = Command::new(environment().join("bin/python"));
    command
        .env("PYTHONPATH", libraries())
        .env("JUPYTER_PATH", tools().join("share/jupyter"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(root().join("python"));
    command
}

fn the_package_imports_without_dependencies() {
    let environment = environment();
    let script = "import planimeter; print(planimeter.Switch().version)";
    let mut command = Command::new(environment.join("bin/python"));
    command.args(["-c", script]).current_dir("/");
    assert_eq!(done(&mut command), "1.3\n");
    let output = done(Command::new(environment.join("bin/planimeter")).args(["list", "links"]));
    assert!(output.contains("replay"), "{output}");
}

fn the_tests_of_the_package_pass() {
    // Not in the source folder, which Python would find before the installed package.
    let tests = root().join("python/tests");
    done(python().args(["-m", "unittest", "discover"]).current_dir(tests));
}

fn the_type_annotations_are_valid() {
    let cache = Folder::new();
    let mut command = python();
    command.args(["-m", "mypy", "--cache-dir"]).arg(&cache.0);
    done(command.args(["planimeter", "tests", "examples"]));
    // The compiled part has exactly the items of its stub.
    done(python().args(["-m", "mypy.stubtest", "planimeter._native"]).current_dir(&cache.0));
}

/// Runs the code of the guide's pages about Python, each page as one script.
fn the_guides_lines_run() {
    for name in ["notebook.md", "python.md"] {
        let page = std::fs::read_to_string(root().join("docs/guide").join(name)).unwrap();
        let blocks = page.split("```python run\n").skip(1);
        let script: String = blocks.map(|rest| rest.split("```").next().unwrap()).collect();
        assert!(script.contains("planimeter.run(") && script.contains("Switch("), "{script}");
        let folder = Folder::new();
        done(python().args(["-c", &script]).current_dir(&folder.0));
    }
}

fn the_tutorial_runs() {
    let output = done(python().args(["tests/run_notebook.py", "examples/tutorial.ipynb"]));
    assert!(output.starts_with("tutorial.ipynb: "), "{output}");
}
