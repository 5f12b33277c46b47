//! Histograms as text: the percentile table for plots, and the exact buckets below it.
//!
//! A `.hgrm` file is the percentile distribution of HdrHistogram (value, percentile, count,
//! 1/(1-percentile)). Its comment lines also contain the exact minimum, maximum and sum, and the
//! buckets in V2 encoding as base64. Invariant: parsing allocates at most a fixed multiple of the
//! text's length plus one histogram.

use std::fmt::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

use hdrhistogram::Histogram as Buckets;

use super::buckets::bucket;
use super::{DIGITS, Histogram, NS_MAX};

/// Lines of the percentile table for each halving of the distance to 100 %.
const TICKS_PER_HALVING: u32 = 5;

/// Cookie of the uncompressed V2 encoding, with the word size for its zero runs.
const V2_COOKIE: [u8; 4] = 0x1c84_9313_u32.to_be_bytes();

/// Bytes before the counts in V2 encoding. Offset 4 contains the length of the counts.
const V2_HEADER_BYTES: usize = 40;

/// Why the text of a histogram is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HistogramError {
    /// A required comment line is missing (its name).
    Missing(&'static str),
    /// A comment line has invalid contents (its name).
    Bad(&'static str),
}

impl fmt::Display for HistogramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HistogramError::Missing(name) => write!(f, "the line #[{name} = ...] is missing"),
            HistogramError::Bad(name) => write!(f, "the line #[{name} = ...] is invalid"),
        }
    }
}

impl std::error::Error for HistogramError {}

impl Histogram {
    /// Formats the whole histogram as `.hgrm` text.
    pub fn to_hgrm(&self) -> String {
        let mut out = format!(
            "{:>14} {:>16} {:>10} {:>16}\n\n",
            "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
        );
        let (mut total, buckets) = (0, self.to_buckets());
        for step in buckets.iter_quantiles(TICKS_PER_HALVING) {
            total += step.count_since_last_iteration();
            let value = step.value_iterated_to().min(self.ns_max);
            let quantile = step.quantile_iterated_to();
            let inverse = 1.0 / (1.0 - quantile);
            let _ = match quantile < 1.0 {
                true => writeln!(out, "{value:>14} {quantile:>16.12} {total:>10} {inverse:>16.2}"),
                false => writeln!(out, "{value:>14} {quantile:>16.12} {total:>10} {:>16}", "inf"),
            };
        }
        let mean = self.ns_mean().unwrap_or(0.0);
        let _ = writeln!(out, "#[Mean = {mean:.3}, StdDeviation = {:.3}]", buckets.stdev());
        let _ = writeln!(out, "#[Max = {}, Total count = {}]", self.ns_max, self.count());
        let _ = writeln!(out, "#[Unit = ns]");
        let _ = writeln!(out, "#[ExactMin = {}]", self.ns_min);
        let _ = writeln!(out, "#[ExactMax = {}]", self.ns_max);
        let _ = writeln!(out, "#[ExactSum = {}]", self.sum_ns);
        let _ = writeln!(out, "#[Base64V2 = {}]", to_base64(&buckets));
        out
    }

    /// Parses the output of [`Histogram::to_hgrm`].
    pub fn from_hgrm(text: &str) -> Result<Histogram, HistogramError> {
        let line = |name: &'static str| {
            text.lines()
                .find_map(|line| {
                    line.strip_prefix("#[")?
                        .strip_prefix(name)?
                        .strip_prefix(" = ")?
                        .strip_suffix(']')
                })
                .ok_or(HistogramError::Missing(name))
        };
        let number =
            |name: &'static str| line(name)?.parse::<u64>().map_err(|_| HistogramError::Bad(name));
        let mut histogram = Histogram::from_base64(line("Base64V2")?)?;
        histogram.ns_min = number("ExactMin")?;
        histogram.ns_max = number("ExactMax")?;
        histogram.sum_ns =
            line("ExactSum")?.parse().map_err(|_| HistogramError::Bad("ExactSum"))?;
        let ordered = histogram.ns_min <= histogram.ns_max && histogram.ns_max <= NS_MAX;
        if histogram.count() > 0 && !ordered {
            return Err(HistogramError::Bad("ExactMin"));
        }
        Ok(histogram)
    }

    /// Converts to the form of the HdrHistogram library.
    fn to_buckets(&self) -> Buckets<u64> {
        let mut buckets = no_buckets();
        self.buckets().for_each(|(ns, times)| buckets.saturating_record_n(ns, times));
        buckets
    }

    fn from_base64(text: &str) -> Result<Histogram, HistogramError> {
        let bad = HistogramError::Bad("Base64V2");
        let bytes = STANDARD.decode(text).map_err(|_| bad.clone())?;
        let length =
            bytes.get(4..8).map(|field| u32::from_be_bytes(field.try_into().expect("four bytes")));
        let fits = length.is_some_and(|length| length as usize + V2_HEADER_BYTES == bytes.len());
        if !fits || bytes[..4] != V2_COOKIE {
            return Err(bad);
        }
        let buckets: Buckets<u64> =
            Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(|_| bad.clone())?;
        if buckets.sigfig() != DIGITS || buckets.high() != no_buckets().high() {
            return Err(bad);
        }
        let mut histogram = Histogram::new();
        for it in buckets.iter_recorded() {
            let (ns, times) = (it.value_iterated_to().min(NS_MAX), it.count_at_value());
            histogram.buckets.add(bucket(ns), times);
            histogram.count = histogram.count.saturating_add(times);
        }
        Ok(histogram)
    }
}

fn no_buckets() -> Buckets<u64> {
    Buckets::new_with_bounds(1, NS_MAX, DIGITS).expect("the bounds are valid")
}

/// The buckets in compact form.
fn to_base64(buckets: &Buckets<u64>) -> String {
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(buckets, &mut bytes).expect("memory takes all bytes");
    STANDARD.encode(bytes)
}
