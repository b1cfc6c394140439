//! Checkpoints that fail.

use crate::testbed::{Testbed, UNIT, content, unit};
use softflash_base::{Time, UnitId};
use softflash_device::{
    Command, Completion, Decorator, Device, DeviceError, Operation, QueuePair, Submit, Tag, Wake,
};
use softflash_runtime::VirtualExecutor;
use softflash_volume::Domain;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A queue pair whose next flush fails when that is asked for.
struct Failing {
    inner: Box<dyn QueuePair>,
    fails: Arc<AtomicBool>,
    failed: Vec<Tag>,
}

impl Decorator for Failing {
    fn inner(&self) -> &dyn QueuePair {
        &*self.inner
    }
}

impl QueuePair for Failing {
    fn submit(&mut self, now: Time, command: Command) -> Submit {
        let is_flush = matches!(command.operation, Operation::Flush);
        if is_flush && self.fails.swap(false, Ordering::Relaxed) {
            self.failed.push(command.tag);
        }
        self.inner.submit(now, command)
    }

    fn poll(&mut self, now: Time, completions: &mut Vec<Completion>) {
        self.inner.poll(now, completions);
        for completion in completions.iter_mut() {
            if let Some(at) = self.failed.iter().position(|tag| *tag == completion.tag) {
                self.failed.remove(at);
                completion.result = Err(DeviceError::Io { errno: 5 });
            }
        }
    }

    fn wake(&self) -> Wake {
        self.inner.wake()
    }

    fn give_up(&mut self, unit: UnitId) {
        self.inner.give_up(unit);
    }
}

#[test]
fn a_failed_checkpoint_leaves_its_leaves_to_the_next_one() {
    let testbed = Testbed::new(64, 256);
    let fails = Arc::new(AtomicBool::new(false));
    let executor = VirtualExecutor::new(1_000_000);
    executor.block_on(async {
        let queue = testbed.device.open_queue_pair(&testbed.device.info().all_units()).unwrap();
        let queue = Failing { inner: queue, fails: Arc::clone(&fails), failed: Vec::new() };
        let mounted =
            Domain::mount(Box::new(queue), testbed.config.clone(), executor.handle()).await;
        let (domain, _) = mounted.unwrap();
        domain.create("v", 1 << 20).await.unwrap();
        let volume = domain.volume("v").unwrap();
        volume.write(0, &unit(1)).await.unwrap();
        domain.checkpoint().await.unwrap();
        volume.write(0, &unit(2)).await.unwrap();
        volume.flush().await.unwrap();
        fails.store(true, Ordering::Relaxed);
        domain.checkpoint().await.unwrap_err();
        assert!(!fails.load(Ordering::Relaxed), "the flush of the checkpoint has failed");
        // Nothing has changed since: only the leaves of the failed one are to be written.
        domain.checkpoint().await.unwrap();
        domain.stop();
    });
    testbed.device.power_cut(executor.now(), 1).unwrap();
    drop(executor);
    testbed.run(async |domain, _, _| {
        let mut bytes = vec![0; UNIT];
        domain.volume("v").unwrap().read(0, &mut bytes).await.unwrap();
        assert_eq!(content(&bytes), 2);
    });
}
