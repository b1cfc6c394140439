//! Long series, drawn with no more points than can be seen.

/// Keeps, of all points in one column of pixels, the first, the lowest, the highest and the last,
/// in their order: the line through them covers the same pixels. A series that goes back and forth
/// is left as it is.
pub(crate) fn thin(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let forward = points.windows(2).all(|pair| match pair {
        [left, right] => left.0 <= right.0,
        _ => true,
    });
    if points.len() <= MOST || !forward {
        return points;
    }
    points.chunk_by(|left, right| left.0.floor() == right.0.floor()).flat_map(of_column).collect()
}

/// Fewer points than this are all drawn.
const MOST: usize = 2000;

fn of_column(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let by_height = |a: &usize, b: &usize| points[*a].1.total_cmp(&points[*b].1);
    let lowest = (0..points.len()).min_by(by_height);
    let highest = (0..points.len()).max_by(by_height);
    let mut kept: Vec<usize> =
        [Some(0), lowest, highest, points.len().checked_sub(1)].into_iter().flatten().collect();
    kept.sort_unstable();
    kept.dedup();
    kept.into_iter().map(|index| points[index]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_of_every_column_are_kept() {
        let points: Vec<(f64, f64)> =
            (0..10_000).map(|i| (f64::from(i) / 100.0, f64::from(i * 7919 % 10_007))).collect();
        let thinned = thin(points.clone());
        assert!(thinned.len() <= 400, "{} are left", thinned.len());
        for column in 0..100 {
            let of = |points: &[(f64, f64)]| {
                let inside = points.iter().filter(|point| point.0.floor() == f64::from(column));
                inside.fold((f64::MAX, f64::MIN), |(low, high), (_, y)| (low.min(*y), high.max(*y)))
            };
            assert_eq!(of(&points), of(&thinned));
        }
    }

    #[test]
    fn scattered_points_stay() {
        let points: Vec<(f64, f64)> = (0..5000).map(|i| (f64::from(i % 2), 0.0)).collect();
        assert_eq!(thin(points.clone()), points);
    }
}
