//! Mean, spread and median of repeated values.
//!
//! Invariant: the variance divides by n - 1 (RFC 8456 section 4.7), and an empty series has no
//! statistics.

use record::Cell;

/// Mean of the values; absent for none.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Sample standard deviation (n - 1); absent below two values.
pub fn deviation(values: &[f64]) -> Option<f64> {
    let middle = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

/// Median; the mean of the two middle values for an even number; absent for none.
pub fn median(values: &[f64]) -> Option<f64> {
    median_of_sorted(&sorted(values))
}

/// The values in rising order.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut row = values.to_vec();
    row.sort_by(f64::total_cmp);
    row
}

/// Median of values that are in rising order already.
pub fn median_of_sorted(row: &[f64]) -> Option<f64> {
    let middle = row.len() / 2;
    match row.len() {
        0 => None,
        n if n % 2 == 1 => Some(row[middle]),
        _ => Some((row[middle - 1] + row[middle]) / 2.0),
    }
}

/// Values of two cells from the same rounds.
pub fn paired(cell: &Cell, base: &Cell) -> Vec<(f64, f64)> {
    let in_round = |repeat: &u32| base.repeats.iter().position(|other| other == repeat);
    (cell.repeats.iter().zip(&cell.samples))
        .filter_map(|(repeat, &sample)| Some((sample, base.samples[in_round(repeat)?])))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_series_are_summarized() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(mean(&values), Some(5.0));
        assert!((deviation(&values).unwrap() - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!(median(&values), Some(4.5));
        assert_eq!(median(&[9.0, 1.0, 3.0]), Some(3.0));
    }

    #[test]
    fn too_few_values_have_no_result() {
        assert_eq!((mean(&[]), median(&[]), deviation(&[1.0])), (None, None, None));
    }
}
