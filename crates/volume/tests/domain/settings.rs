use crate::testbed::{Testbed, UNIT, unit};
use softflash_volume::{Lifetime, Setting, Temperature, VolumeError, VolumeSettings};

const SOME: [Setting; 6] = [
    Setting::Quota(Some(1 << 30)),
    Setting::Iops(Some(500)),
    Setting::Bandwidth(Some(50 << 20)),
    Setting::Weight(300),
    Setting::Temperature(Temperature::Cold),
    Setting::Stream(3),
];

#[test]
fn settings_are_there_after_power_cuts_with_and_without_a_checkpoint() {
    let testbed = Testbed::new(32, 256);
    let all = VolumeSettings::default().with(&SOME);
    let lifetime = Lifetime { temperature: Temperature::Cold, stream: 3 };
    assert_eq!((all.weight, all.lifetime), (300, lifetime));
    testbed.run(async |domain, _, _| {
        domain.create_with("all", 1 << 20, &SOME).await.unwrap();
        domain.create("later", 1 << 20).await.unwrap();
        domain.set("later", &SOME[..2]).await.unwrap();
        domain.set("later", &[Setting::Iops(None), Setting::Weight(7)]).await.unwrap();
        domain.create("none", 1 << 20).await.unwrap();
    });
    for round in 0..3 {
        testbed.run(async |domain, _, _| {
            let listed = domain.list();
            assert_eq!(listed[0].settings, all, "round {round}");
            let later = VolumeSettings {
                quota_bytes: Some(1 << 30),
                weight: 7,
                ..VolumeSettings::default()
            };
            assert_eq!(listed[1].settings, later);
            assert_eq!(listed[2].settings, VolumeSettings::default());
            domain.checkpoint().await.unwrap();
        });
    }
}

#[test]
fn a_clone_begins_with_the_default_settings_and_its_parent_keeps_its_own() {
    let testbed = Testbed::new(32, 256);
    testbed.run(async |domain, _, _| {
        domain.create_with("v", 1 << 20, &SOME).await.unwrap();
        domain.volume("v").unwrap().write(0, &unit(1)).await.unwrap();
        domain.snapshot("v", "s").await.unwrap();
        domain.clone_snapshot("v", "s", "c").await.unwrap();
        let listed = domain.list();
        assert_eq!(listed[0].settings, VolumeSettings::default());
        assert_eq!(listed[1].settings, VolumeSettings::default().with(&SOME));
    });
}

#[test]
fn wrong_settings_are_refused_and_change_nothing() {
    Testbed::new(32, 256).run(async |domain, _, _| {
        let wrong = [Setting::Iops(Some(5)), Setting::Weight(0)];
        let refused = domain.create_with("v", UNIT as u64, &wrong).await;
        assert!(matches!(refused, Err(VolumeError::BadSetting { .. })), "{refused:?}");
        assert_eq!(domain.list().len(), 0);
        domain.create("v", UNIT as u64).await.unwrap();
        let refused = domain.set("v", &wrong).await;
        assert!(matches!(refused, Err(VolumeError::BadSetting { .. })), "{refused:?}");
        assert_eq!(domain.list()[0].settings, VolumeSettings::default());
        let refused = domain.set("w", &SOME).await;
        assert!(matches!(refused, Err(VolumeError::NoVolume { .. })), "{refused:?}");
    });
}
