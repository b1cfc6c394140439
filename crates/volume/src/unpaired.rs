//! The changes of a domain's volumes that go past a pair, because there is none: a pair that is
//! formed under load waits for them.

use softflash_runtime::Notify;
use std::cell::Cell;

/// Changes under way.
#[derive(Default)]
pub(crate) struct Unpaired {
    under_way: Cell<u32>,
    ended: Notify,
}

/// A change under way, until this is dropped.
pub(crate) struct UnderWay<'a>(&'a Unpaired);

impl Unpaired {
    /// A change begins.
    #[inline]
    pub fn begin(&self) -> UnderWay<'_> {
        self.under_way.set(self.under_way.get() + 1);
        UnderWay(self)
    }

    /// Waits until none is under way.
    pub async fn ended(&self) {
        while self.under_way.get() > 0 {
            self.ended.notified().await;
        }
    }
}

impl Drop for UnderWay<'_> {
    #[inline]
    fn drop(&mut self) {
        let under_way = self.0.under_way.get();
        assert!(under_way > 0, "a change ends that was not under way");
        self.0.under_way.set(under_way - 1);
        if self.0.under_way.get() == 0 {
            self.0.ended.notify_all();
        }
    }
}
