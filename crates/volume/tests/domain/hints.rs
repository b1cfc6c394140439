use crate::testbed::{Testbed, UNIT, content, unit};
use softflash_base::random::Rng;
use softflash_volume::{Domain, Setting, Temperature, Volume};

/// Requests that fill the volumes: the hot one is small and overwritten, the cold one large.
const HOT: u64 = 400;
const COLD: u64 = 3600;

/// Mapping units of a request.
const TOGETHER: u64 = 8;

async fn create(domain: &Domain, name: &str, requests: u64, hint: Option<Temperature>) {
    let settings: Vec<Setting> = hint.map(Setting::Temperature).into_iter().collect();
    let bytes = requests * TOGETHER * UNIT as u64;
    domain.create_with(name, bytes, &settings).await.unwrap();
}

async fn write(volume: &Volume, request: u64, content: u64) {
    let data = unit(content).repeat(TOGETHER as usize);
    volume.write(request * TOGETHER * UNIT as u64, &data).await.unwrap();
}

/// Write amplification of nine hot writes for each cold one, after the cold volume was filled among
/// hot writes.
fn write_amplification(testbed: &Testbed, hints: bool) -> f64 {
    testbed.run(async |domain, _, _| {
        let hint = |temperature| hints.then_some(temperature);
        create(domain, "hot", HOT, hint(Temperature::Hot)).await;
        create(domain, "cold", COLD, hint(Temperature::Cold)).await;
        let (hot, cold) = (domain.volume("hot").unwrap(), domain.volume("cold").unwrap());
        let mut rng = Rng::seeded(11);
        for request in 0..COLD {
            write(&cold, request, request).await;
            write(&hot, rng.below(HOT), request).await;
        }
        let before = domain.counters();
        for step in 0..15_000 {
            let (volume, requests) = if step % 10 == 0 { (&cold, COLD) } else { (&hot, HOT) };
            write(volume, rng.below(requests), step).await;
        }
        let after = domain.counters();
        let (written, moved) = (after.written - before.written, after.collected - before.collected);
        (written + moved) as f64 / written as f64
    })
}

#[test]
fn hot_and_cold_volumes_with_hints_have_a_lower_write_amplification() {
    // Four units of 192 superblocks of 64 mapping units: three classes.
    let without = write_amplification(&Testbed::new(192, 256), false);
    let with = write_amplification(&Testbed::new(192, 256), true);
    println!("write amplification: {with:.3} with hints, {without:.3} without");
    assert!(with < 0.9 * without, "{with:.3} with hints, {without:.3} without");
}

#[test]
fn small_units_take_hints_and_mix_the_data() {
    let testbed = Testbed::new(32, 256);
    let before = testbed.run(async |domain, _, _| domain.space().usable_bytes);
    testbed.run(async |domain, _, _| {
        create(domain, "hot", 100, Some(Temperature::Hot)).await;
        create(domain, "cold", 100, Some(Temperature::Cold)).await;
        assert_eq!(domain.space().usable_bytes, before);
        for name in ["hot", "cold"] {
            domain.volume(name).unwrap().write(0, &unit(1)).await.unwrap();
        }
    });
}

/// Writes volumes with all hints until the domain is full, overwrites them, and reads everything.
#[test]
fn a_full_domain_with_all_classes_takes_overwrites_and_recovers() {
    let testbed = Testbed::new(512, 128);
    let mut newest = vec![Vec::new(); 9];
    let names: Vec<String> = (0..9).map(|number| format!("v{number}")).collect();
    testbed.run(async |domain, _, _| {
        let none = domain.space().usable_bytes;
        for (number, name) in (0_u8..).zip(&names) {
            let temperature =
                [Temperature::Hot, Temperature::Warm, Temperature::Cold][usize::from(number % 3)];
            let hints = [Setting::Temperature(temperature), Setting::Stream(number / 3)];
            domain.create_with(name, 1 << 30, &hints).await.unwrap();
        }
        let volumes: Vec<_> = names.iter().map(|name| domain.volume(name).unwrap()).collect();
        let usable = domain.space().usable_bytes;
        assert!(usable < none && usable * 10 > none * 9, "{usable} of {none} bytes");
        let mut step = 0;
        'fill: for lba in 0.. {
            for (volume, newest) in volumes.iter().zip(&mut newest) {
                step += 1;
                if volume.write(lba * UNIT as u64, &unit(step)).await.is_err() {
                    break 'fill;
                }
                newest.push(step);
            }
        }
        assert_eq!(domain.space().used_bytes, usable);
        let mut rng = Rng::seeded(5);
        for _ in 0..10_000 {
            step += 1;
            let at = rng.below(9) as usize;
            let lba = rng.below(newest[at].len() as u64);
            volumes[at].write(lba * UNIT as u64, &unit(step)).await.unwrap();
            newest[at][lba as usize] = step;
        }
        domain.flush().await.unwrap();
    });
    testbed.run(async |domain, _, _| {
        for (name, newest) in names.iter().zip(&newest) {
            let mut read = vec![0; newest.len() * UNIT];
            domain.volume(name).unwrap().read(0, &mut read).await.unwrap();
            let found: Vec<u64> = read.chunks(UNIT).map(content).collect();
            assert!(found == *newest, "{name}");
        }
    });
}
