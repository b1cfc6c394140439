//! Writes that the store refuses although it executes later ones of the same client.

use std::collections::BTreeSet;

/// Refusals since the last comparison, possibly of commands whose reply did not arrive.
#[derive(Debug, Clone, Default)]
pub(super) struct Refusals {
    /// Any write may have been refused for lack of space.
    pub full: bool,
    /// Shards whose log has failed. From some moment each of them refuses all writes, also those of
    /// a command that writes other shards as well; the other shards execute later commands.
    pub failed_logs: BTreeSet<u16>,
}

impl Refusals {
    /// Which of these commands may have run: one answer for each combination of moments at which
    /// the logs may have failed. The first is that all of them ran. Only a moment before a command
    /// on several shards matters: a shard has a prefix of the others in any case.
    pub fn possible_runs(&self, shards_of: &[BTreeSet<u16>]) -> impl Iterator<Item = Vec<bool>> {
        let moments: Vec<(u16, Vec<usize>)> = self
            .failed_logs
            .iter()
            .map(|shard| {
                let joint = shards_of
                    .iter()
                    .enumerate()
                    .filter(|(_, shards)| shards.len() > 1 && shards.contains(shard));
                let before = joint.map(|(number, _)| number);
                (*shard, [shards_of.len()].into_iter().chain(before).collect())
            })
            .collect();
        let combinations: usize = moments.iter().map(|(_, moments)| moments.len()).product();
        (0..combinations).map(move |mut combination| {
            let mut runs = vec![true; shards_of.len()];
            for (shard, moments) in &moments {
                let moment = moments[combination % moments.len()];
                combination /= moments.len();
                for (shards, runs) in shards_of.iter().zip(&mut runs).skip(moment) {
                    *runs &= !shards.contains(shard);
                }
            }
            runs
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(failed: &[u16], shards_of: &[&[u16]]) -> Vec<Vec<bool>> {
        let failed_logs = failed.iter().copied().collect();
        let shards_of: Vec<BTreeSet<u16>> =
            shards_of.iter().map(|shards| shards.iter().copied().collect()).collect();
        Refusals { full: false, failed_logs }.possible_runs(&shards_of).collect()
    }

    #[test]
    fn without_failed_logs_all_commands_run() {
        assert_eq!(runs(&[], &[&[0, 1], &[1]]), [[true, true]]);
    }

    #[test]
    fn a_shard_refuses_all_commands_after_its_log_has_failed() {
        let commands: [&[u16]; 5] = [&[1], &[0, 1], &[0], &[1], &[0, 1]];
        assert_eq!(
            runs(&[1], &commands),
            [[true; 5], [true, false, true, false, false], [true, true, true, true, false]]
        );
        assert_eq!(runs(&[2], &commands), [[true; 5]], "another shard's log");
        assert_eq!(runs(&[0, 1], &commands).len(), 9, "each at its own moment");
    }
}
