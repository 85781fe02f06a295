//! The few figures that are made of many: percentiles, medians, spreads. Pure.

use serde::Serialize;

/// The value below or at which `share` of the sorted values lie (nearest rank); `None` of no values.
///
/// `share` is between 0 and 1.
pub(super) fn percentile<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank is at most the count of values in memory, and not negative"
    )]
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// The middle of several rounds, and how far they lie apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) lowest: f64,
    pub(super) highest: f64,
}

impl Spread {
    /// Of the rounds' values; `None` of none. The median of an even count is the mean of the middle two.
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (lowest, highest) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Some(Self { median, lowest, highest })
    }
}

/// How often `part` holds `whole`; `None` where the whole is nothing, since no ratio says anything then.
pub(super) fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// A count as a number that ratios are made of. Counts here stay far below 2^52, where this is exact.
pub(super) fn count(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_take_the_nearest_rank() {
        let hundred: Vec<u32> = (1..=100).collect();
        let at = |share| percentile(&hundred, share);
        assert_eq!([at(0.0), at(0.5), at(0.99), at(0.999), at(1.0)], [1, 50, 99, 100, 100].map(Some));
        assert_eq!(percentile(&[7], 0.5), Some(7));
        assert_eq!(percentile::<u32>(&[], 0.5), None);
    }

    #[test]
    fn a_spread_has_the_middle_and_the_ends() {
        let spread = |values: &[f64]| Spread::of(values.iter().copied());
        assert_eq!(spread(&[3.0, 1.0, 2.0]), Some(Spread { median: 2.0, lowest: 1.0, highest: 3.0 }));
        assert_eq!(spread(&[4.0, 1.0, 2.0, 3.0]), Some(Spread { median: 2.5, lowest: 1.0, highest: 4.0 }));
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn there_is_no_ratio_to_nothing() {
        assert_eq!(ratio(3.0, 4.0), Some(0.75));
        assert_eq!(ratio(3.0, 0.0), None);
    }
}
