//! Tests of the installed program beyond its file: manual pages, completions, capabilities.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;

use super::common::{Folder, planimeter};

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
    fs::write(folder.0.join("taken"), "").unwrap();
    let result = planimeter(&folder.0, &["man", "taken"]);
    assert_eq!(result.code, Some(2), "{result:?}");
    assert!(result.errors.contains("taken"), "{result:?}");
}

#[test]
fn shells_complete_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let result = planimeter(&std::env::temp_dir(), &["completions", shell]);
        assert_eq!(result.code, Some(0), "{result:?}");
        for name in commands() {
            assert!(result.output.contains(&name), "{shell}: {name}");
        }
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
