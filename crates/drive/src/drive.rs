//! A conventional drive: its controller, compiled for the kind of mapping that its layout needs.

use crate::ahead::FirmwareProgress;
use crate::controller::Controller;
use crate::counters::{DriveCounters, MapCounters};
use crate::error::DriveError;
use crate::interleaving;
use crate::mapping::{BandedMapping, PlacedMapping, StaticMapping};
use crate::request::{Done, HostRequest};
use crate::shape::Shape;
use crate::sibling::Scale;
use crate::space::Arrangement;
use crate::spec::{DeviceSpec, PageMapped};
use softflash_base::Time;
use softflash_nand::timeline::Interval;

/// A conventional drive.
pub struct Drive(Kind);

/// The controller, by the kind of its mapping.
#[expect(
    clippy::large_enum_variant,
    reason = "a drive hardly moves, and a box costs 2 % of the requests that are simulated a second"
)]
enum Kind {
    Static(Controller<StaticMapping>),
    Placed(Controller<PlacedMapping>),
    Banded(Box<Controller<BandedMapping>>),
}

/// The same for each kind of mapping.
macro_rules! each {
    ($drive:expr, $controller:ident => $result:expr) => {
        match $drive {
            Drive(Kind::Static($controller)) => $result,
            Drive(Kind::Placed($controller)) => $result,
            Drive(Kind::Banded($controller)) => $result,
        }
    };
}

impl Drive {
    /// An empty drive. `op_percent` is spare / logical; if that leaves too little space for
    /// collection, the drive reserves two blocks for each write frontier and
    /// [`op_percent`](Drive::op_percent) returns the result.
    pub fn new(
        device: &DeviceSpec,
        layout: &PageMapped,
        op_percent: f64,
    ) -> Result<Drive, DriveError> {
        let device = &*interleaving::as_commanded(device, layout)?;
        let shape = Shape::new(device, layout, op_percent)?;
        if let Some(mapping) = BandedMapping::of(layout, &shape) {
            let controller = Controller::new(device, layout, shape, mapping)?;
            return Ok(Drive(Kind::Banded(Box::new(controller))));
        }
        Ok(Drive(match StaticMapping::of(layout, &shape) {
            Some(mapping) => Kind::Static(Controller::new(device, layout, shape, mapping)?),
            None => {
                let mapping = PlacedMapping::new(layout, &shape);
                Kind::Placed(Controller::new(device, layout, shape, mapping)?)
            }
        }))
    }

    /// Bytes that the host can address on a drive, without building it.
    pub fn capacity_of(
        device: &DeviceSpec,
        layout: &PageMapped,
        op_percent: f64,
    ) -> Result<u64, DriveError> {
        Ok(Drive::shape_of(device, layout, op_percent)?.capacity_bytes())
    }

    /// The shape of a drive, without building it.
    pub(crate) fn shape_of(
        device: &DeviceSpec,
        layout: &PageMapped,
        op_percent: f64,
    ) -> Result<Shape, DriveError> {
        let device = &*interleaving::as_commanded(device, layout)?;
        Shape::new(device, layout, op_percent)
    }

    /// The current virtual time.
    #[inline]
    pub fn now(&self) -> Time {
        each!(self, controller => controller.now())
    }

    /// Prefetches the map entry of a later request.
    #[inline]
    pub fn prefetch(&self, offset_bytes: u64) {
        each!(self, controller => controller.prefetch(offset_bytes))
    }

    /// Prefetches the state of the page that a later write replaces. [`prefetch`](Drive::prefetch)
    /// comes first.
    #[inline]
    pub fn prefetch_write(&self, offset_bytes: u64) {
        each!(self, controller => controller.prefetch_write(offset_bytes))
    }

    /// Submits a request at `now`, which must not be before the current time nor after
    /// [`next_at`](Drive::next_at).
    #[inline(always)]
    pub fn submit(&mut self, now: Time, request: HostRequest) -> Result<(), DriveError> {
        each!(self, controller => controller.submit(now, request))
    }

    /// The time of the next event, unless a request is submitted before.
    #[inline]
    pub fn next_at(&self) -> Option<Time> {
        each!(self, controller => controller.next_at())
    }

    /// When the die that has the data at an offset ends what it does now, which a read of them
    /// waits for; `None` if it is idle, or if there are no data.
    pub fn read_waits_until(&self, offset_bytes: u64) -> Option<Time> {
        each!(self, controller => controller.read_waits_until(offset_bytes))
    }

    /// From now on, nothing is collected in idle time, but only where writes wait for it; or as
    /// usual again. With the end of its writes the drive comes to rest: it has no next event.
    pub fn hold_collection(&mut self, held: bool) {
        each!(self, controller => controller.hold_collection(held));
    }

    /// Plays the next event and appends the completed requests. False when nothing is under way.
    #[inline]
    pub fn step(&mut self, done: &mut Vec<Done>) -> bool {
        each!(self, controller => controller.step(done))
    }

    /// Plays the events before `end` until requests complete, and appends those. False if none
    /// completes before `end`.
    #[inline]
    pub fn play_to_next_completion(&mut self, end: Time, done: &mut Vec<Done>) -> bool {
        each!(self, controller => controller.play_to_next_completion(end, done))
    }

    /// Advances the drive to `now`, which must not be before its current time, and appends the
    /// completed requests. Requests can be submitted at `now` afterwards.
    pub fn play_until(&mut self, now: Time, done: &mut Vec<Done>) {
        each!(self, controller => controller.play_until(now, done))
    }

    /// Plays events until all that has been written is on flash. Collection may still be under way.
    pub fn play_until_written(&mut self) {
        each!(self, controller => controller.play_until_written())
    }

    /// The position of a request that is submitted next; `None` if it never waits in the host
    /// interface.
    pub(crate) fn firmware_progress(&self, request: &HostRequest) -> Option<FirmwareProgress> {
        each!(self, controller => controller.firmware_progress(request))
    }

    /// A lower bound of the completion time of a request that has not completed; `None` if no event
    /// is pending.
    pub(crate) fn completes_not_before(&self, progress: Option<FirmwareProgress>) -> Option<Time> {
        each!(self, controller => controller.completes_not_before(progress))
    }

    /// Bytes that the host can address.
    pub fn capacity_bytes(&self) -> u64 {
        each!(self, controller => controller.capacity_bytes())
    }

    /// Classes of data that the drive keeps apart by the [hints](crate::HostRequest::hint) of
    /// requests.
    pub fn placement_ids(&self) -> u16 {
        each!(self, controller => controller.placement_ids())
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> u32 {
        each!(self, controller => controller.page_bytes())
    }

    /// Pages of one block of every write frontier: the unit of the warm-up that collection needs in
    /// the steady state.
    pub fn frontier_pages(&self) -> u64 {
        each!(self, controller => controller.frontier_pages())
    }

    /// Channels.
    pub fn channels(&self) -> u32 {
        each!(self, controller => controller.channels())
    }

    /// Dies.
    pub fn dies(&self) -> u32 {
        each!(self, controller => controller.dies())
    }

    /// Flash pages, spare ones included.
    pub fn flash_pages(&self) -> u64 {
        each!(self, controller => controller.flash_pages())
    }

    /// The actual over-provisioning: spare / logical, in percent.
    pub fn op_percent(&self) -> f64 {
        each!(self, controller => controller.op_percent())
    }

    /// Whether it has an [SLC cache](crate::spec::SlcCache).
    pub fn has_slc_cache(&self) -> bool {
        each!(self, controller => controller.has_slc_cache())
    }

    /// The counters.
    pub fn counters(&self) -> DriveCounters {
        each!(self, controller => controller.counters())
    }

    /// The counters of a map that lies on flash; `None` for a map in memory.
    pub fn map_counters(&self) -> Option<MapCounters> {
        each!(self, controller => controller.map_counters())
    }

    /// Sets all counters to 0.
    pub fn clear_counters(&mut self) {
        each!(self, controller => controller.clear_counters())
    }

    /// Requests that have not completed.
    pub fn in_flight(&self) -> usize {
        each!(self, controller => controller.in_flight())
    }

    /// Time that a die's cell array has worked, in nanoseconds.
    pub fn die_busy_ns(&self, die: u32) -> u64 {
        each!(self, controller => controller.die_busy_ns(die))
    }

    /// Time that a channel's bus was taken, in nanoseconds.
    pub fn channel_busy_ns(&self, channel: u32) -> u64 {
        each!(self, controller => controller.channel_busy_ns(channel))
    }

    /// The greatest difference between the erases of two blocks that are collected together, since
    /// the drive was new.
    pub fn erase_spread(&self) -> u32 {
        each!(self, controller => controller.erase_spread())
    }

    /// The greatest difference between the erases of two groups of blocks that are collected
    /// together, since the drive was new.
    pub fn group_erase_spread(&self) -> u64 {
        each!(self, controller => controller.group_erase_spread())
    }

    /// Records the activity of dies and buses from now on, up to `most` intervals.
    pub fn record(&mut self, most: usize) {
        each!(self, controller => controller.record(most))
    }

    /// The recorded intervals.
    pub fn recorded(&self) -> &[Interval] {
        each!(self, controller => controller.recorded())
    }

    /// Memory of the simulated drive, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        each!(self, controller => controller.memory_bytes())
    }

    /// Writes every logical page once, in order, in no virtual time. Nothing may be under way.
    pub fn fill(&mut self) {
        each!(self, controller => controller.fill())
    }

    /// Writes the page at this offset, in no virtual time. Nothing may be under way.
    pub fn overwrite_now(&mut self, offset_bytes: u64) {
        each!(self, controller => controller.overwrite_now(offset_bytes))
    }

    /// As [`overwrite_now`](Drive::overwrite_now), with a [hint](crate::HostRequest::hint).
    pub fn overwrite_hinted_now(&mut self, offset_bytes: u64, hint: u32) {
        each!(self, controller => controller.overwrite_hinted_now(offset_bytes, hint))
    }

    /// Unmaps the pages that this range covers as a whole, in no virtual time. Nothing may be under
    /// way.
    pub fn trim_now(&mut self, offset_bytes: u64, bytes: u64) {
        each!(self, controller => controller.trim_now(offset_bytes, bytes))
    }

    /// Whether theory gives the state that [`make_steady`](Drive::make_steady) sets: for a map in
    /// memory, for the victim policies `greedy` and `fifo`, and without predicted lifetimes. For
    /// others it is a state to start
    /// from.
    pub fn steady_state_is_known(&self) -> bool {
        each!(self, controller => controller.steady_state_is_known())
    }

    /// Sets the steady state of uniform random writes of single pages over the whole drive. The
    /// drive must be new.
    pub fn make_steady(&mut self, seed: u64) {
        each!(self, controller => controller.make_steady(seed))
    }

    /// A run begins in a steady state that was set in no virtual time, of a drive that collects in
    /// step with its writes. A die that has idle time would have collected further: what it makes
    /// up for in idle time is not counted. Nothing may be under way.
    pub fn begin_steady_run(&mut self) {
        each!(self, controller => controller.begin_steady_run())
    }

    /// Where its pages lie. Nothing may be under way.
    pub(crate) fn arrangement(&self) -> Arrangement {
        each!(self, controller => controller.arrangement())
    }

    /// Makes a new drive ready for arrangements.
    pub(crate) fn vacate(&mut self) {
        each!(self, controller => controller.space_mut().vacate());
    }

    /// Brings the groups of one replica into the arrangement of a sibling.
    pub(crate) fn assume(
        &mut self,
        arrangement: &Arrangement,
        replica: (Scale, u32),
        place: &dyn Fn(u32) -> u32,
    ) {
        each!(self, controller => controller.space_mut().assume(arrangement, replica, place));
    }

    /// All replicas have been assumed.
    pub(crate) fn complete(
        &mut self,
        sibling_pages: u32,
        scale: Scale,
        place: &dyn Fn(u32) -> u32,
    ) {
        each!(self, controller => controller.space_mut().complete(sibling_pages, scale, place));
    }

    /// Checks all state: both directions of the map agree, the valid counts of blocks are right,
    /// and every block is free, open, closed, or being collected or erased. Returns the first
    /// error.
    pub fn check(&self) -> Result<(), String> {
        each!(self, controller => controller.check())
    }
}
