use super::*;

fn coordinator(recovered: &[u64]) -> Transactions {
    Transactions::new(7, recovered.iter().copied().collect(), 3)
}

fn shards(numbers: &[u16]) -> Vec<ShardId> {
    numbers.iter().copied().map(ShardId).collect()
}

#[test]
fn transactions_over_three_shards_are_committed_in_the_order_of_their_numbers() {
    let coordinator = coordinator(&[]);
    let participants = [shards(&[0, 1, 2]), shards(&[1, 2]), shards(&[0, 2]), shards(&[0, 1])];
    let numbers = participants.each_ref().map(|shards| coordinator.register(shards));
    assert_eq!((numbers, coordinator.next()), ([7, 8, 9, 10], 11));
    // The later transactions are prepared before the first one.
    for (number, shard) in [(8, 2), (9, 0), (9, 2), (8, 1), (10, 0), (7, 0), (7, 2)] {
        assert_eq!(coordinator.prepared(number, ShardId(shard)), [], "{number} on {shard}");
    }
    let [first, second, third, fourth] = participants;
    assert_eq!(coordinator.prepared(7, ShardId(1)), [(7, first), (8, second), (9, third)]);
    assert_eq!(coordinator.prepared(7, ShardId(1)), [], "a second report changes nothing");
    assert_eq!(coordinator.prepared(10, ShardId(1)), [(10, fourth)]);
}

#[test]
fn a_commit_is_retained_until_all_participants_have_logged_it() {
    let coordinator = coordinator(&[]);
    for number in [7, 8] {
        coordinator.committed.borrow_mut().insert(number, shards(&[0, 2]).into_iter().collect());
    }
    for (number, shard, left) in [
        (7, 0, vec![7, 8]),
        (7, 1, vec![7, 8]),
        (7, 0, vec![7, 8]),
        (7, 2, vec![8]),
        (9, 2, vec![8]),
    ] {
        coordinator.forget(number, ShardId(shard));
        assert_eq!(coordinator.retained_commits(), left, "{number} on {shard}");
    }
}

#[test]
fn recovered_commits_are_retained_until_every_shard_has_caught_up() {
    let coordinator = coordinator(&[3, 5]);
    coordinator.committed.borrow_mut().insert(7, shards(&[1]).into_iter().collect());
    for shard in [1, 1, 0] {
        coordinator.caught_up(ShardId(shard));
        assert_eq!(coordinator.retained_commits(), [3, 5, 7]);
    }
    coordinator.caught_up(ShardId(2));
    assert_eq!(coordinator.retained_commits(), [7]);
}
