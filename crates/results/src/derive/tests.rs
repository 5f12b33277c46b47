//! Cells, ratios and warnings of the made-up run, worked out by hand.

use super::*;
use crate::sample;

#[test]
fn finishing_twice_changes_nothing() {
    let once = sample::record();
    let mut twice = once.clone();
    finish(&mut twice, &sample::claims());
    assert_eq!(once, twice);
}
