use super::*;

const ROOM: u64 = 100 * VALUE;
/// Bytes of one entry.
const VALUE: u64 = 1000 + 62 + 8 + OVERHEAD_BYTES as u64;

fn key(number: u64) -> Bytes {
    Bytes::from(format!("{number:08}"))
}

fn put(cache: &mut ReadCache, number: u64, room_bytes: u64) {
    let entry = Entry::new(Bytes::from(vec![number as u8; 1000]));
    cache.insert(key(number), Cached { entry, seq: number }, room_bytes);
}

fn has(cache: &ReadCache, number: u64) -> bool {
    cache.get(&key(number)).is_some_and(|cached| cached.seq == number)
}

/// Sums from the slots, which must be those that the cache keeps.
fn check(cache: &ReadCache) {
    let live: Vec<&Slot> = cache.slots.iter().filter(|slot| slot.cached.is_some()).collect();
    assert_eq!(live.len(), cache.index.len());
    assert_eq!(live.iter().map(|slot| slot.bytes()).sum::<u64>(), cache.bytes());
    let queued = cache.small.slots.len() + cache.main.slots.len();
    assert_eq!(queued + cache.free.len(), cache.slots.len());
}

#[test]
fn entries_are_found_until_they_are_removed_or_evicted_for_lack_of_room() {
    let mut cache = ReadCache::default();
    (0..100).for_each(|number| put(&mut cache, number, ROOM));
    assert_eq!(cache.bytes(), ROOM);
    assert!((0..100).all(|number| has(&cache, number)));
    cache.remove(&key(7));
    assert!(!has(&cache, 7));
    cache.shrink_to(ROOM / 2);
    assert!(cache.bytes() <= ROOM / 2);
    check(&cache);
    cache.clear();
    assert_eq!(cache.bytes(), 0);
}

#[test]
fn an_entry_that_was_read_survives_a_flood_of_others() {
    let mut cache = ReadCache::default();
    (0..50).for_each(|number| put(&mut cache, number, ROOM));
    assert!((0..50).all(|number| has(&cache, number)));
    (1000..2000).for_each(|number| put(&mut cache, number, ROOM));
    assert!((0..50).all(|number| has(&cache, number)), "read once");
    assert!(cache.bytes() <= ROOM);
    check(&cache);
}

#[test]
fn an_entry_that_returns_after_its_eviction_stays() {
    let mut cache = ReadCache::default();
    (0..101).for_each(|number| put(&mut cache, number, ROOM));
    assert!(!has(&cache, 0), "the oldest is evicted");
    put(&mut cache, 0, ROOM);
    (1000..1500).for_each(|number| put(&mut cache, number, ROOM));
    assert!(has(&cache, 0));
    check(&cache);
}

#[test]
fn slots_of_removed_entries_are_reused() {
    let mut cache = ReadCache::default();
    for number in 0..100_000 {
        put(&mut cache, number, ROOM);
        cache.remove(&key(number));
    }
    assert!(cache.slots.len() < 200, "{} slots", cache.slots.len());
    assert_eq!(cache.bytes(), 0);
    check(&cache);
}

#[test]
fn a_value_that_fills_a_large_part_of_the_cache_is_not_cached() {
    let mut cache = ReadCache::default();
    put(&mut cache, 1, 31 * VALUE);
    assert!(!has(&cache, 1));
    put(&mut cache, 1, 32 * VALUE);
    assert!(has(&cache, 1));
}

#[test]
fn an_entry_replaces_the_older_one_of_its_key() {
    let mut cache = ReadCache::default();
    put(&mut cache, 1, ROOM);
    let entry = Entry::new(Bytes::from_static(b"new"));
    cache.insert(key(1), Cached { entry, seq: 9 }, ROOM);
    assert_eq!(cache.get(&key(1)).map(|cached| cached.seq), Some(9));
    assert_eq!(cache.bytes(), 3 + 8 + OVERHEAD_BYTES as u64);
    check(&cache);
}

#[test]
fn a_random_use_keeps_its_books() {
    let mut random = softflash_base::random::Rng::seeded(5);
    let mut cache = ReadCache::default();
    for _ in 0..50_000 {
        let number = random.below(300);
        match random.below(4) {
            0 => cache.remove(&key(number)),
            1 => _ = has(&cache, number),
            2 => cache.shrink_to(random.below(ROOM)),
            _ => put(&mut cache, number, ROOM),
        }
    }
    assert!(cache.bytes() <= ROOM);
    check(&cache);
}
