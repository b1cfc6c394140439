//! What may be changed on a device.

/// What may be changed on a device that is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Everything. A damaged copy of the label is repaired by
    /// [`mend_label`](crate::Device::mend_label).
    #[default]
    Write,
    /// Nothing: the file is opened for reading only, and programs and erases fail. It may be
    /// shorter than its label says; reads beyond its end fail.
    Look,
    /// As [`Look`](Access::Look), but programs succeed: they change a copy in memory, which ends
    /// with the device. What is missing at the end of the file is empty flash, as after
    /// [`extend`](crate::extend).
    Scratch,
}
