//! Tests of the installed program beyond its file: manual pages, completions, capabilities.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use planimeter::cli::failure::EXIT_CODES;
use serde_json::Value;

use super::common::{Folder, command, planimeter};

/// Returns the commands in the help text.
fn commands() -> Vec<String> {
    let help = planimeter(&std::env::temp_dir(), &["--help"]).output;
    let lines = help.lines().take_while(|line| *line != "Options:");
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    names.map(str::to_owned).collect()
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = Folder::new();
    let result = planimeter(&folder.0, &["man", "pages"]);
    assert_eq!(result.code, Some(0), "{result:?}");
    let commands = commands();
    assert!(commands.iter().any(|name| name == "progfe"), "{commands:?}");
    for name in commands {
        let page = fs::read_to_string(folder.0.join(format!("pages/planimeter-{name}.1"))).unwrap();
        assert!(page.contains(".SH NAME") && page.contains(&name), "{name}: {page}");
    }
    let page = fs::read_to_string(folder.0.join("pages/planimeter-run.1")).unwrap();
    assert!(page.contains("effort"), "{page}");
    let page = fs::read_to_string(folder.0.join("pages/planimeter.1")).unwrap();
    for (code, _) in EXIT_CODES {
        assert!(page.contains(&format!(".TP\n\\fB{code}\\fR\n")), "{page}");
    }
    fs::write(folder.0.join("taken"), "").unwrap();
    let result = planimeter(&folder.0, &["man", "taken"]);
    assert_eq!(result.code, Some(2), "{result:?}");
    assert!(result.errors.contains("taken"), "{result:?}");
}

/// Returns the candidates for the last word of a line, as fish gets them, without descriptions.
fn completed(folder: &Path, line: &[&str]) -> Vec<String> {
    let words = [&["--", "planimeter"], line].concat();
    let mut command = command(folder, &words);
    let output = command.env("PLANIMETER_COMPLETE", "fish").output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{line:?}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

#[test]
fn shells_complete_commands_options_and_values() {
    let folder = Folder::new();
    for name in ["plan.toml", "notes.txt", "mine.py"] {
        fs::write(folder.0.join(name), "").unwrap();
    }
    fs::create_dir(folder.0.join("runs")).unwrap();
    let completed = |line: &[&str]| completed(&folder.0, line);
    let all = completed(&[""]);
    assert!(commands().iter().all(|name| all.contains(name)), "{all:?}");
    let all = completed(&["run", "bia"]);
    assert_eq!(all[..2], ["bianco2010", "bianco2010/fig2"]);
    assert!(all.iter().all(|it| it.starts_with("bianco2010")), "{all:?}");
    let all = completed(&["run", "p"]);
    assert!(all.contains(&"packet-in".into()) && all.contains(&"plan.toml".into()), "{all:?}");
    assert!(all.iter().all(|it| it.starts_with('p')), "{all:?}");
    assert_eq!(completed(&["run", "notes"]), [""; 0]);
    assert_eq!(completed(&["run", "mine"]), ["mine.py"]);
    assert_eq!(completed(&["run", "latency", "--eff"]), ["--effort"]);
    let all = completed(&["run", "latency", "--on", "sw"]);
    assert_eq!(all[0], "switch");
    assert!(all.contains(&"switch:model=hp-2920".into()), "{all:?}");
    assert!(all.iter().all(|it| it.starts_with("sw")), "{all:?}");
    let all = completed(&["run", "latency", "--link", ""]);
    for link in ["memory", "replay", "memif", "veth", "veth:live", "nic"] {
        assert!(all.iter().any(|it| it == link), "{link}: {all:?}");
    }
    assert_eq!(completed(&["run", "forwarding-rate", "--set", "tra"]), ["traffic="]);
    assert_eq!(completed(&["run", "forwarding-rate", "--set", "traffic=z"]), ["traffic=zipf"]);
    assert_eq!(completed(&["quick", "--set", "tra"]), ["traffic="]);
    assert_eq!(completed(&["compare", "bri"]), ["bridge", "bridge:buckets=256"]);
    assert_eq!(completed(&["compare", "ru"]), ["runs/"]);
    assert_eq!(completed(&["list", "rfc99"]), ["rfc9971"]);
    assert_eq!(completed(&["run", "no-such"]), [""; 0]);
}

#[test]
fn bash_completes_words_with_its_word_breaks() {
    let folder = Folder::new();
    let script = planimeter(&folder.0, &["completions", "bash"]);
    assert_eq!(script.code, Some(0), "{script:?}");
    fs::write(folder.0.join("script"), script.output).unwrap();
    // The line, what readline replaces, and the replacements.
    for (line, replaced, wanted) in [
        ("run bianco2010/fig3 --set rules=ad", "ad", "addresses"),
        ("run latency --on switch:model=hp", "hp", "hp-2920 hp-5406zl"),
        ("run latency --link veth:", "", "afpacket xdp live"),
        ("run soa", "soa", "soak"),
        ("run soak --set soak", "soak", "soak_seconds="),
    ] {
        let test = format!(
            "source ./script; COMP_LINE='planimeter {line}'; COMP_POINT=${{#COMP_LINE}}; \
             compopt() {{ :; }}; _planimeter \"$PROGRAM\" '{replaced}' --set; echo \"${{COMPREPLY[*]}}\""
        );
        let mut bash = Command::new("bash");
        bash.args(["-c", &test]).current_dir(&folder.0);
        let output = bash.env("PROGRAM", env!("CARGO_BIN_EXE_planimeter")).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), wanted, "{line}: {output:?}");
    }
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let script = planimeter(&folder.0, &["completions", shell]);
        assert!(script.output.contains("PLANIMETER_COMPLETE"), "{script:?}");
    }
}

/// Tests the program as the Debian package installs it: file capabilities apply to every user.
#[test]
fn file_capabilities_apply_to_ordinary_users() {
    // A file in a memory file system may hold no capabilities.
    let folder = std::env::temp_dir().join(format!("planimeter-rights-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let program = folder.join("planimeter");
    fs::copy(env!("CARGO_BIN_EXE_planimeter"), &program).unwrap();
    for path in [&folder, &program] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let given = Command::new("/usr/sbin/setcap")
        .arg("cap_net_admin,cap_net_raw,cap_sys_admin=p")
        .arg(&program)
        .output();
    if !given.as_ref().is_ok_and(|output| output.status.success()) {
        println!("skipped, needs root and setcap (libcap2-bin): {given:?}");
    } else {
        let as_nobody = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&program)
            .args(["doctor", "--json"])
            .current_dir("/")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&as_nobody.stdout);
        let report: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{as_nobody:?}"));
        let needs = report["needs"].as_array().unwrap();
        for name in ["privilege", "veth interfaces", "packet sockets"] {
            let need = needs.iter().find(|need| need["name"] == name).unwrap();
            assert_eq!(need["ok"], true, "{need}");
        }
    }
    fs::remove_dir_all(&folder).unwrap();
}
