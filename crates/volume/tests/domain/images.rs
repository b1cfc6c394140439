use crate::testbed::{Testbed, UNIT, content, unit};
use softflash_volume::{Domain, Volume, VolumeError};

async fn contents(volume: &Volume) -> Vec<u64> {
    let mut read = vec![0; usize::try_from(volume.size_bytes().unwrap()).unwrap()];
    volume.read(0, &mut read).await.unwrap();
    read.chunks(UNIT).map(content).collect()
}

async fn write(volume: &Volume, lba: u64, value: u64) {
    volume.write(lba * UNIT as u64, &unit(value)).await.unwrap();
}

async fn check(domain: &Domain) {
    let volume = domain.volume("v").unwrap();
    assert_eq!(contents(&volume).await, [10, 2, 0, 40, 0]);
    let first = domain.open_snapshot("v", "first").unwrap();
    assert_eq!(contents(&first).await, [1, 2, 3, 0]);
    let second = domain.open_snapshot("v", "second").unwrap();
    assert_eq!(contents(&second).await, [10, 2, 3, 0]);
    let clone = domain.volume("c").unwrap();
    assert_eq!(contents(&clone).await, [1, 200, 0, 0]);
}

#[test]
fn snapshots_and_clones_keep_their_contents_also_after_a_power_cut() {
    let testbed = Testbed::new(32, 256);
    testbed.run(async |domain, _, _| {
        domain.create("v", 4 * UNIT as u64).await.unwrap();
        let volume = domain.volume("v").unwrap();
        write(&volume, 0, 1).await;
        write(&volume, 1, 2).await;
        write(&volume, 2, 3).await;
        domain.snapshot("v", "first").await.unwrap();
        write(&volume, 0, 10).await;
        domain.snapshot("v", "second").await.unwrap();
        volume.discard(2 * UNIT as u64, UNIT as u64).await.unwrap();
        write(&volume, 3, 40).await;
        domain.shrink("v", 5 * UNIT as u64).await.unwrap();
        domain.clone_snapshot("v", "first", "c").await.unwrap();
        let clone = domain.volume("c").unwrap();
        write(&clone, 1, 200).await;
        clone.discard(2 * UNIT as u64, UNIT as u64).await.unwrap();
        check(domain).await;
        volume.flush().await.unwrap();
    });
    testbed.run(async |domain, _, _| {
        check(domain).await;
        let refused = domain.delete("v").await;
        assert!(matches!(refused, Err(VolumeError::HasSnapshots { .. })), "{refused:?}");
        let refused = domain.delete_snapshot("v", "first").await;
        assert!(matches!(refused, Err(VolumeError::HasClones { .. })), "{refused:?}");
        let first = domain.open_snapshot("v", "first").unwrap();
        assert_eq!(first.write(0, &unit(1)).await, Err(VolumeError::ReadOnly));
        let listed = domain.list();
        assert_eq!(listed[1].snapshots, ["first", "second"]);
        assert_eq!(listed[0].parent, Some(("v".to_owned(), "first".to_owned())));
        domain.delete_snapshot("v", "second").await.unwrap();
    });
    testbed.run(async |domain, _, _| {
        let first = domain.open_snapshot("v", "first").unwrap();
        assert_eq!(contents(&first).await, [1, 2, 3, 0]);
        domain.delete("c").await.unwrap();
        domain.delete_snapshot("v", "first").await.unwrap();
        domain.delete("v").await.unwrap();
        assert_eq!((domain.list().len(), domain.space().used_bytes), (0, 0));
    });
}
