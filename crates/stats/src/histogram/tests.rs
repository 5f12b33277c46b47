//! Tests of histograms with values calculated separately.

use proptest::prelude::*;

use super::*;

fn filled(values: impl IntoIterator<Item = u64>) -> Histogram {
    let mut histogram = Histogram::new();
    values.into_iter().for_each(|ns| histogram.record(ns));
    histogram
}

#[test]
fn a_percentile_needs_ten_samples_above_it() {
    let almost = filled(1..=999);
    assert_eq!(almost.ns_at_quantile(0.9), Some(900));
    assert_eq!(almost.ns_at_quantile(0.99), None);
    let enough = filled(1..=1000);
    assert_eq!(enough.ns_at_quantile(0.99), Some(990));
    assert_eq!(enough.ns_at_quantile(0.999), None);
    assert_eq!(Histogram::new().distribution(None), None);
}

#[test]
fn buckets_have_three_digits_and_exact_limits() {
    let histogram = filled([1_234_567, 1_234_999, 9_876_543_210]);
    assert_eq!(histogram.ns_min(), Some(1_234_567));
    assert_eq!(histogram.ns_max(), Some(9_876_543_210));
    let mean = (1_234_567.0 + 1_234_999.0 + 9_876_543_210.0) / 3.0;
    assert!((histogram.ns_mean().unwrap() - mean).abs() < 1e-3);
    let many = filled((0..100).map(|_| 1_234_567));
    let median = many.ns_at_quantile(0.5).unwrap();
    assert!(median.abs_diff(1_234_567) <= 1_235, "{median}");
}

#[test]
fn a_quantile_interval_has_the_ranks_of_published_tables() {
    let interval = filled(1..=20).interval_of_quantile(0.5, 95.0).unwrap();
    assert_eq!((interval.low, interval.high), (6.0, 15.0));
    assert!(filled(1..=5).interval_of_quantile(0.5, 95.0).is_none());
}

#[test]
fn an_interval_includes_the_buckets_of_its_ends() {
    // Buckets of 1,024 ns: a sample may be anywhere in its bucket.
    let many = filled((0..1_000).map(|place| 1_500_000 + place % 3));
    let interval = many.interval_of_quantile(0.5, 99.0).unwrap();
    assert!(interval.low <= 1_500_000.0 && interval.high >= 1_500_002.0, "{interval:?}");
    assert!(interval.level_percent >= 99.0);
    let summary = many.distribution(None).unwrap();
    let percentiles: Vec<f64> = summary.ranges.iter().map(|range| range.percentile).collect();
    assert_eq!(percentiles, [50.0, 90.0, 99.0], "one sample is above the next");
}

#[test]
fn the_text_is_the_percentile_distribution() {
    let text = filled(1..=4).to_hgrm();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .skip(2)
        .take_while(|line| !line.starts_with('#'))
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows.first().unwrap()[0], "1");
    assert_eq!(rows.last().unwrap(), &["4", "1.000000000000", "4", "inf"]);
    assert!(text.contains("#[Mean = 2.500,"));
    assert!(text.contains("#[Max = 4, Total count = 4]"));
}

#[test]
fn hostile_texts_are_rejected() {
    let good = filled([5, 6]).to_hgrm();
    assert!(Histogram::from_hgrm(&good).is_ok());
    assert_eq!(Histogram::from_hgrm(""), Err(HistogramError::Missing("Base64V2")));
    let bad = Err(HistogramError::Bad("Base64V2"));
    for payload in
        ["", "AAAA", "!!!!", "HISTAwAA", "HIST////AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="]
    {
        assert_eq!(Histogram::from_hgrm(&format!("#[Base64V2 = {payload}]")), bad, "{payload}");
    }
    let swapped = good.replace("#[ExactMin = 5]", "#[ExactMin = 50]");
    assert_eq!(Histogram::from_hgrm(&swapped), Err(HistogramError::Bad("ExactMin")));
}

proptest! {
    #[test]
    fn histograms_round_trip(values in prop::collection::vec(0..10_000_000_000u64, 0..200)) {
        let histogram = filled(values);
        prop_assert_eq!(Histogram::from_hgrm(&histogram.to_hgrm()), Ok(histogram));
    }

    #[test]
    fn merging_equals_counting_together(
        left in prop::collection::vec(0..NS_MAX, 0..50),
        right in prop::collection::vec(0..NS_MAX, 0..50),
    ) {
        let mut merged = filled(left.iter().copied());
        merged.merge(&filled(right.iter().copied()));
        prop_assert_eq!(merged, filled(left.into_iter().chain(right)));
    }

    #[test]
    fn buckets_and_quantiles_equal_those_of_hdrhistogram(
        times in prop::collection::vec((any::<u64>(), 0u32..64), 0..200),
        quantile in 0.0..=1.0f64,
    ) {
        let ns = |&(bits, shift): &(u64, u32)| (bits >> shift).min(NS_MAX);
        let mut theirs = hdrhistogram::Histogram::<u64>::new_with_bounds(1, NS_MAX, 3).unwrap();
        times.iter().for_each(|it| theirs.saturating_record(ns(it)));
        let ours = filled(times.iter().map(|(bits, shift)| bits >> shift));
        let recorded = theirs.iter_recorded().map(|it| (it.value_iterated_to(), it.count_at_value()));
        prop_assert!(ours.buckets().eq(recorded));
        if let (Some(least), Some(most)) = (ours.ns_min(), ours.ns_max()) {
            let wanted = theirs.value_at_quantile(quantile).clamp(least, most);
            prop_assert_eq!(ours.value_at_quantile(quantile), wanted);
        }
    }

    #[test]
    fn recording_many_equals_recording_one_by_one(
        times in prop::collection::vec((any::<u64>(), 0u32..64, 0u64..4), 0..100),
    ) {
        let each = || {
            times.iter().flat_map(|&(bits, shift, many)| (0..many).map(move |_| bits >> shift))
        };
        let (mut many, mut all) = (Histogram::new(), Histogram::new());
        times.iter().for_each(|&(bits, shift, times)| many.record_many(bits >> shift, times));
        all.record_all(each());
        prop_assert_eq!(&many, &filled(each()));
        prop_assert_eq!(all, many);
    }

    #[test]
    fn arbitrary_encoded_buckets_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        use base64::Engine;
        let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
        let _ = Histogram::from_hgrm(&format!("#[Base64V2 = {encoded}]"));
    }
}
