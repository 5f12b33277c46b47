//! Cost of an insertion, and of each entry that the switch moves for it.
//!
//! Source: the OFLOPS-SUME paper, sections II-B and IV-B. In a memory with priority order (TCAM), a new entry moves
//! others. Suppose that entries of rising or falling priority activate one after another in the order of sending.
//! Each activation time then equals the one before it, plus one insertion, plus a move for each entry on one side.
//! Least squares give the two unknown costs.
//!
//! Invariant: activation times that two costs do not explain give no values.

use tester::module::MeasuredValue;

use super::activation::UncertainTime;

/// Minimum number of entries for an estimate.
const RULES_MIN: usize = 12;

/// The model is rejected if residuals exceed the known uncertainty by this factor.
const OFF_MAX: f64 = 2.0;

/// Reported error in standard errors.
///
/// Two would suffice for independent errors, but neighbours share one round of probes.
const ERRORS: f64 = 3.0;

/// Estimated costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// Cost of an insertion, and its error.
    pub insertion_ns: [f64; 2],
    /// Cost of each move, and its error.
    pub move_ns: [f64; 2],
    rules: u64,
}

impl Costs {
    /// Estimates the costs from activation times in the order of sending, if each is later than the one before.
    ///
    /// `others` entries are moved in addition to those sent before.
    pub fn of(moments: &[UncertainTime], others: usize) -> Option<Costs> {
        let count = moments.len();
        if count < RULES_MIN {
            return None;
        }
        // Number of insertions and moves until an entry is active.
        let rows = moments.iter().enumerate().map(|(place, moment)| {
            let moved = (place + 1) * others + place * (place + 1) / 2;
            ([1.0, place as f64 + 1.0, moved as f64], moment.at.since(moments[0].at).0 as f64)
        });
        let rows: Vec<([f64; 3], f64)> = rows.collect();
        let inverse = inverse(products(&rows))?;
        let mut sums = [0.0; 3];
        for (row, at) in &rows {
            (0..3).for_each(|place| sums[place] += row[place] * at);
        }
        let found: [f64; 3] =
            std::array::from_fn(|place| (0..3).map(|of| inverse[place][of] * sums[of]).sum());
        let off =
            |(row, at): &([f64; 3], f64)| at - (0..3).map(|of| row[of] * found[of]).sum::<f64>();
        let is_explained = |(row, moment): (_, &UncertainTime)| {
            off(row).abs() <= OFF_MAX * (moment.half.0 as f64).max(1.0)
        };
        if !rows.iter().zip(moments).all(is_explained) {
            return None;
        }
        let squares: f64 = rows.iter().map(|row| off(row).powi(2)).sum();
        // An activation time is uniformly distributed between two probes.
        let least: f64 = moments.iter().map(|it| (it.half.0 as f64).powi(2) / 3.0).sum();
        let variance = squares.max(least) / (count - 3) as f64;
        let half = |place: usize| ERRORS * (variance * inverse[place][place]).sqrt();
        Some(Costs {
            insertion_ns: [found[1], half(1)],
            move_ns: [found[2], half(2)],
            rules: count as u64,
        })
    }

    /// Reports the costs.
    pub fn tell(&self, tell: &mut impl FnMut(MeasuredValue)) {
        let named = [("insertion_ns_mean", self.insertion_ns), ("move_ns_mean", self.move_ns)];
        for (name, [value, half]) in named {
            tell(MeasuredValue::new(name, "ns", value, half).of(self.rules));
        }
    }
}

/// Returns the sums of products of columns.
fn products(rows: &[([f64; 3], f64)]) -> [[f64; 3]; 3] {
    std::array::from_fn(|one| {
        std::array::from_fn(|other| rows.iter().map(|(row, _)| row[one] * row[other]).sum())
    })
}

/// Inverts a symmetric matrix by its cofactors; `None` if it is singular.
fn inverse(of: [[f64; 3]; 3]) -> Option<[[f64; 3]; 3]> {
    let cofactor = |row: usize, column: usize| {
        let [a, b] = [(row + 1) % 3, (row + 2) % 3];
        let [c, d] = [(column + 1) % 3, (column + 2) % 3];
        of[a][c] * of[b][d] - of[a][d] * of[b][c]
    };
    let determinant: f64 = (0..3).map(|column| of[0][column] * cofactor(0, column)).sum();
    let has_one = determinant.is_normal();
    has_one.then(|| {
        std::array::from_fn(|row| std::array::from_fn(|column| cofactor(column, row) / determinant))
    })
}

#[cfg(test)]
mod tests {
    use packet::time::Nanos;

    use super::*;

    /// Returns activation times for these costs, with this interval of probes.
    fn moments(count: u64, insertion: u64, moving: u64, round: u64) -> Vec<UncertainTime> {
        let acts = |rule: u64| 1_000_000 + (rule + 1) * insertion + rule * (rule + 1) / 2 * moving;
        let seen = |rule: u64| {
            let phase = rule * round / count;
            let from = (acts(rule) - phase) / round * round + phase;
            UncertainTime { at: Nanos(from + round / 2), half: Nanos(round / 2) }
        };
        (0..count).map(seen).collect()
    }

    #[test]
    fn costs_are_found_within_their_errors() {
        for (insertion, moving) in [(500_000, 5_000), (300_000, 0), (90_000, 30_000)] {
            let found = Costs::of(&moments(200, insertion, moving, 2_000_000), 0).unwrap();
            let check = |[value, half]: [f64; 2], truth: u64, most: f64| {
                assert!((value - truth as f64).abs() <= half, "{found:?}: {truth}");
                assert!(half <= most, "{found:?}");
            };
            check(found.insertion_ns, insertion, 20_000.0);
            check(found.move_ns, moving, 200.0);
        }
    }

    #[test]
    fn unexplained_activation_times_give_no_costs() {
        let mut paused = moments(100, 500_000, 0, 100_000);
        paused[50..].iter_mut().for_each(|it| it.at += Nanos(40_000_000));
        assert_eq!(Costs::of(&paused, 0), None);
        assert_eq!(Costs::of(&paused[..5], 0), None, "too few");
    }
}
