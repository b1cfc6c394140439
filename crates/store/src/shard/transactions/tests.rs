use super::*;

fn books(recovered: &[u64]) -> Transactions {
    Transactions::new(7, recovered.iter().copied().collect(), 3)
}

fn shards(numbers: &[u16]) -> Vec<ShardId> {
    numbers.iter().copied().map(ShardId).collect()
}

#[test]
fn transactions_over_three_shards_are_committed_in_the_order_of_their_numbers() {
    let books = books(&[]);
    let participants = [shards(&[0, 1, 2]), shards(&[1, 2]), shards(&[0, 2]), shards(&[0, 1])];
    let numbers = participants.each_ref().map(|shards| books.register(shards));
    assert_eq!((numbers, books.next()), ([7, 8, 9, 10], 11));
    // Those behind the first are prepared before it.
    for (number, shard) in [(8, 2), (9, 0), (9, 2), (8, 1), (10, 0), (7, 0), (7, 2)] {
        assert_eq!(books.prepared(number, ShardId(shard)), [], "{number} on {shard}");
    }
    let [first, second, third, fourth] = participants;
    assert_eq!(books.prepared(7, ShardId(1)), [(7, first), (8, second), (9, third)]);
    assert_eq!(books.prepared(7, ShardId(1)), [], "it is committed already");
    assert_eq!(books.prepared(10, ShardId(1)), [(10, fourth)]);
}

#[test]
fn a_commit_is_remembered_until_all_who_take_part_have_noted_it() {
    let books = books(&[]);
    for number in [7, 8] {
        books.committed.borrow_mut().insert(number, shards(&[0, 2]).into_iter().collect());
    }
    for (number, shard, left) in [
        (7, 0, vec![7, 8]),
        (7, 1, vec![7, 8]),
        (7, 0, vec![7, 8]),
        (7, 2, vec![8]),
        (9, 2, vec![8]),
    ] {
        books.forget(number, ShardId(shard));
        assert_eq!(books.unforgotten(), left, "{number} on {shard}");
    }
}

#[test]
fn commits_that_a_crash_left_are_repeated_until_every_shard_has_noted_its_own() {
    let books = books(&[3, 5]);
    books.committed.borrow_mut().insert(7, shards(&[1]).into_iter().collect());
    for shard in [1, 1, 0] {
        books.caught_up(ShardId(shard));
        assert_eq!(books.unforgotten(), [3, 5, 7]);
    }
    books.caught_up(ShardId(2));
    assert_eq!(books.unforgotten(), [7]);
}
