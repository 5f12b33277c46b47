//! The regularised incomplete beta function, the basis of Student's t and the binomial
//! distribution.
//!
//! Source: the continued fraction of DLMF 8.17.22, evaluated by the modified Lentz method; the
//! logarithm of gamma by Stirling's series (DLMF 5.11.1) after shifting the argument up. Invariant:
//! the relative error is about 1e-10 for the arguments of trial statistics.

/// I_x(a, b): probability that a beta(a, b) variable is below `x`.
pub(super) fn beta_regularised(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast only on this side of the mean. The other side uses the symmetry
    // relation.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_regularised(1.0 - x, b, a);
    }
    let front = a * x.ln() + b * (-x).ln_1p() - ln_beta(a, b);
    front.exp() / a * continued_fraction(x, a, b)
}

/// The continued fraction of I_x(a, b).
fn continued_fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    const STEPS_MAX: u32 = 100_000;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut numerator = 1.0;
    let mut denominator = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut result = denominator;
    for step in 1..STEPS_MAX {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            denominator = 1.0 / away_from_zero(1.0 + term * denominator);
            numerator = away_from_zero(1.0 + term / numerator);
            change = numerator * denominator;
            result *= change;
        }
        if (change - 1.0).abs() < 1e-14 {
            break;
        }
    }
    result
}

fn ln_beta(a: f64, b: f64) -> f64 {
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

/// Logarithm of the gamma function for positive arguments.
pub(super) fn ln_gamma(x: f64) -> f64 {
    let mut shifted = x;
    let mut product = 1.0;
    while shifted < 10.0 {
        product *= shifted;
        shifted += 1.0;
    }
    let square = 1.0 / (shifted * shifted);
    let tail = (1.0 / 12.0
        - square
            * (1.0 / 360.0 - square * (1.0 / 1260.0 - square * (1.0 / 1680.0 - square / 1188.0))))
        / shifted;
    let half_log_two_pi = 0.5 * (2.0 * std::f64::consts::PI).ln();
    (shifted - 0.5) * shifted.ln() - shifted + half_log_two_pi + tail - product.ln()
}
