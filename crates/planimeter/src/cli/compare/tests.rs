//! Tests of the command line of `compare`.

use super::*;

#[test]
fn gates_are_the_given_ones_or_the_defaults() {
    let (by_default, are_written) = gates(&[]).unwrap();
    assert!(!are_written && by_default.len() > 5);
    let (own, are_written) = gates(&["throughput_pps>=0.97".into()]).unwrap();
    assert!(are_written && own.len() == 1);
    let wrong = gates(&["throughput>=0.97".into()]).unwrap_err();
    assert!(wrong.line.starts_with("--gate throughput>=0.97: "), "{wrong}");
}
