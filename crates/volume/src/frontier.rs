//! Write frontiers: for each unit an open superblock of each stream and class, and the append of
//! frames to it.

use crate::changes::{Teller, Told};
use crate::classes::numbers::NO_HINT;
use crate::core::{Core, Shared};
use crate::error::VolumeError;
use crate::format::MAPPING_UNIT_BYTES;
use crate::format::entry::Entry;
use crate::format::frame::{self, Head, MOST_ENTRIES};
use crate::format::record::Contents;
use crate::format::tag;
use crate::frames::Completion;
use crate::map_space::kept_for_checkpoint;
use crate::open_frame::OpenFrame;
use crate::stream::Stream;
use futures_util::future::LocalBoxFuture;
use softflash_base::{IoBuf, cast};
use softflash_flash::Outcome;
use softflash_ftl::{FtlError, Hint, Superblock};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// An open superblock.
#[derive(Debug, Clone, Copy)]
struct Open {
    superblock: Superblock,
    next_page: u32,
}

/// The frontiers of all units.
pub(crate) struct Frontiers {
    /// Classes of data.
    classes: u8,
    open: RefCell<Vec<Option<Open>>>,
    /// Superblocks closed in each unit so far, which orders them by age.
    closed: RefCell<Vec<u32>>,
    /// Round-robin cursor: the next one among equally loaded units.
    cursor: Cell<u32>,
}

/// A frame that is being programmed.
pub(crate) struct Appended {
    pub sequence: u64,
    pub block: u32,
    /// The slot of its head.
    pub first: u32,
    programmed: LocalBoxFuture<'static, Outcome>,
}

impl Appended {
    /// Waits until the frame is programmed. After a failure its superblock takes no more frames.
    pub async fn programmed(&mut self, core: &Core) -> Outcome {
        let (result, buffer) = (&mut self.programmed).await;
        core.note_outcome(core.geometry.unit_of(self.block), result.as_ref().err());
        if result.is_err() {
            give_up(core, self.block);
            core.order.program_failed(self.sequence);
        }
        (result, buffer)
    }
}

impl Frontiers {
    pub fn new(units: u32, classes: u8) -> Frontiers {
        let units = cast::index(units);
        let streams = Stream::all(classes).count();
        Frontiers {
            classes,
            open: RefCell::new(vec![None; units * streams]),
            closed: RefCell::new(vec![0; units]),
            cursor: Cell::new(0),
        }
    }

    /// All streams of a unit.
    pub fn streams(&self) -> impl Iterator<Item = Stream> + use<> {
        Stream::all(self.classes)
    }

    /// The round-robin cursor: the next one of so many units, in their order.
    pub fn cursor(&self, units: usize) -> u32 {
        self.cursor.get() % cast::saturating_u32(units.max(1))
    }

    /// The unit at a place in their order has had its turn: the cursor goes behind it.
    pub fn served(&self, place: u32) {
        self.cursor.set(place + 1);
    }

    /// A unit has joined the domain with this number.
    ///
    /// # Panics
    /// If a superblock of the unit that had it before is open.
    pub fn add_unit(&self, unit: u32) {
        let units = cast::index(unit) + 1;
        let (mut open, mut closed) = (self.open.borrow_mut(), self.closed.borrow_mut());
        if closed.len() < units {
            closed.resize(units, 0);
            open.resize(units * self.streams().count(), None);
        }
        let streams = self.streams().count();
        let of_unit = &open[cast::index(unit) * streams..(cast::index(unit) + 1) * streams];
        assert!(
            of_unit.iter().all(Option::is_none),
            "a unit joins slot {unit} with open frontiers"
        );
    }

    fn number(&self, unit: u32, stream: Stream) -> usize {
        let classes = u32::from(self.classes);
        let class = stream.data_class().unwrap_or_default();
        assert!(class < self.classes, "class {class} of {classes} has no frontier of its own");
        let stream = match stream {
            Stream::Host(class) => class.into(),
            Stream::Collector(class) => classes + u32::from(class),
            Stream::Map => 2 * classes,
            Stream::Recovery => 2 * classes + 1,
        };
        cast::index(unit * (2 * classes + 2) + stream)
    }

    fn get(&self, unit: u32, stream: Stream) -> Option<Open> {
        self.open.borrow()[self.number(unit, stream)]
    }

    fn set(&self, unit: u32, stream: Stream, open: Option<Open>) {
        self.open.borrow_mut()[self.number(unit, stream)] = open;
    }

    /// The number of the next superblock of a unit to be closed.
    pub fn closed(&self, unit: u32) -> u32 {
        self.closed.borrow()[cast::index(unit)]
    }

    /// The number of a superblock of a unit that is being closed.
    pub fn next_closed(&self, unit: u32) -> u32 {
        let closed = &mut self.closed.borrow_mut()[cast::index(unit)];
        *closed = closed.wrapping_add(1);
        closed.wrapping_sub(1)
    }

    /// The superblocks that are open for data.
    pub fn open_for_data(&self) -> Vec<Superblock> {
        let open = self.open.borrow();
        let (data, streams) = (2 * usize::from(self.classes), self.streams().count());
        let data = open.chunks_exact(streams).flat_map(|unit| &unit[..data]);
        data.flatten().map(|open| open.superblock).collect()
    }

    /// Whether a superblock is open in any frontier.
    pub fn is_open(&self, superblock: &Superblock) -> bool {
        self.open.borrow().iter().flatten().any(|open| open.superblock == *superblock)
    }
}

/// Mapping units that fit in the open superblock of a frontier, heads included.
pub(crate) fn room(core: &Core, unit: u32, stream: Stream) -> u32 {
    let pages = core.geometry.data_pages;
    let open = core.frontiers.get(unit, stream);
    open.map_or(0, |open| pages.saturating_sub(open.next_page)) * core.geometry.page_units
}

/// Whether a frontier can take a frame: its superblock has room, or another can be opened.
pub(crate) fn can_append(core: &Core, unit: u32, stream: Stream) -> bool {
    room(core, unit, stream) > 1 || can_open(core, unit, stream)
}

fn can_open(core: &Core, unit: u32, stream: Stream) -> bool {
    core.free_superblocks(unit) > reserve(core, stream)
}

/// Free superblocks of a unit that a stream leaves to others.
pub(crate) fn reserve(core: &Core, stream: Stream) -> u32 {
    stream.reserve(kept_for_checkpoint(core))
}

/// Opens a superblock for a frontier that has no room. Returns false if the unit has none to spare.
pub(crate) fn open(core: &Core, unit: u32, stream: Stream) -> Result<bool, VolumeError> {
    open_leaving(core, unit, stream, reserve(core, stream))
}

/// A frontier for data of another class that has room for `needed` mapping units, in the unit of
/// data that collection moves: where no superblock can be opened, classes mix.
pub(crate) fn other_class(
    core: &Core,
    stream: Stream,
    needed: u32,
    own: Option<u32>,
) -> Option<(u32, Stream)> {
    let units = core.geometry.numbers().filter(|&unit| own.is_none_or(|own| own == unit));
    let classes = 0..core.clients.classes().most();
    let all = units.flat_map(|unit| classes.clone().map(move |class| (unit, class)));
    let mut all = all.map(|(unit, class)| (unit, stream.with_class(class)));
    all.find(|&(unit, stream)| room(core, unit, stream) >= needed)
}

/// A unit with room for `needed` mapping units of a frame that must not wait: for its superblock
/// any free one is taken. One that seems to be lost comes last. `None` if there is none.
pub(crate) fn unit_now(core: &Core, needed: u32) -> Result<Option<u32>, VolumeError> {
    let units = core.geometry.numbers();
    let (serving, lost): (Vec<u32>, Vec<u32>) = units.partition(|&unit| core.takes_data(unit));
    for units in [serving, lost] {
        if let Some(unit) = open_now(core, &units, needed)? {
            return Ok(Some(unit));
        }
    }
    Ok(None)
}

/// The first of these units with room for a frame that must not wait.
fn open_now(core: &Core, units: &[u32], needed: u32) -> Result<Option<u32>, VolumeError> {
    let collector = Stream::Collector(NO_HINT);
    if let Some(unit) = units.iter().find(|&&unit| room(core, unit, collector) >= needed) {
        return Ok(Some(*unit));
    }
    for &unit in units {
        if core.free_superblocks(unit) == 0 {
            continue;
        }
        close(core, unit, collector);
        if open_leaving(core, unit, collector, 0)? {
            return Ok(Some(unit));
        }
    }
    Ok(None)
}

/// Whether at most one unit takes data. A unit that is full for a while counts: a change that is
/// recorded on its own unit meanwhile is lost with that.
pub(crate) fn is_alone(core: &Core) -> bool {
    let units = core.geometry.numbers();
    units.filter(|&unit| core.takes_data(unit)).take(2).count() < 2
}

/// Opens a superblock for a frontier that has no room, if more than `reserve` are free.
fn open_leaving(core: &Core, unit: u32, stream: Stream, reserve: u32) -> Result<bool, VolumeError> {
    if room(core, unit, stream) > 1 {
        return Ok(true);
    }
    close(core, unit, stream);
    if core.free_superblocks(unit) <= reserve {
        return Ok(false);
    }
    let tag = core.order.tag(stream.purpose(), core.has_table());
    let id = core.unit_id(unit);
    let superblock = match core.flash.allocate(id, tag::encode(tag), hint_of(core, stream)) {
        Ok(superblock) => superblock,
        Err(FtlError::NoSpace { .. }) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    assert_eq!(superblock.unit.0, id, "{superblock} was allocated for unit {id}");
    // Blocks go bad meanwhile.
    core.renew_usable();
    let block = core.geometry.block(superblock.unit.0, superblock.index);
    core.superblocks.set(block, superblock);
    core.superblocks.bind(block, tag.has_table);
    if stream == Stream::Map {
        core.roots.add_block(block);
    }
    note_class(core, stream, block);
    core.frontiers.set(unit, stream, Some(Open { superblock, next_page: 0 }));
    collect_if_short(core, unit);
    Ok(true)
}

/// Records the predicted class of the data that a superblock takes. A superblock of a class of
/// hints may take data without hints, too: it must not keep the class of its last use.
fn note_class(core: &Core, stream: Stream, block: u32) {
    let Some(predicted) = core.clients.classes().predicted() else { return };
    let class = stream.data_class().and_then(|class| core.clients.classes().predicted_of(class));
    match (stream, class) {
        (Stream::Collector(NO_HINT), _) | (_, None) => predicted.opened_for_several(block),
        (_, Some(class)) => predicted.opened(block, class),
    }
}

/// Wakes the collection of a unit whose last superblock for clients has been opened: it works while
/// that is filled. Units in which others collect would have to take its writes otherwise, and
/// collect more.
fn collect_if_short(core: &Core, unit: u32) {
    if core.free_superblocks(unit) <= reserve(core, Stream::Host(NO_HINT)) {
        core.tasks.collection().wake(unit);
    }
}

/// Closes the open superblock of a frontier, if there is one.
pub(crate) fn close(core: &Core, unit: u32, stream: Stream) {
    let Some(open) = core.frontiers.get(unit, stream) else { return };
    core.frontiers.set(unit, stream, None);
    if open.next_page < core.geometry.block_pages() {
        core.flash.seal(&open.superblock);
    }
    let block = core.geometry.block(open.superblock.unit.0, open.superblock.index);
    if stream != Stream::Map {
        let number = core.frontiers.next_closed(unit);
        core.map.borrow_mut().blocks.close(block, number);
    }
}

/// Closes all open superblocks of a unit.
pub(crate) fn close_all(core: &Core, unit: u32) {
    core.frontiers.streams().for_each(|stream| close(core, unit, stream));
}

/// An empty frame for a frontier, of at most so many entries and as there is room for.
pub(crate) fn begin(core: &Core, unit: u32, stream: Stream, most: u32) -> OpenFrame {
    let most = most.clamp(1, cast::saturating_u32(MOST_ENTRIES));
    let most = most.min(room(core, unit, stream).saturating_sub(1));
    OpenFrame::new(&core.flash, unit, stream, hint_of(core, stream), most)
}

/// The hint of the frames of a stream.
fn hint_of(core: &Core, stream: Stream) -> Hint {
    let classes = core.clients.classes();
    stream.hint(stream.data_class().map(|class| classes.lifetime(class)).unwrap_or_default())
}

/// Appends a frame of these entries, whose data follow the first mapping unit of `buffer`. The
/// frontier must have room for it. Returns the buffer if the superblock takes no more data.
pub(crate) fn append(
    core: &Shared,
    unit: u32,
    stream: Stream,
    hint: Hint,
    entries: &[Entry],
    mut buffer: IoBuf,
    completion: &Completion,
) -> Result<Appended, (VolumeError, IoBuf)> {
    let Some(Open { superblock, next_page }) = core.frontiers.get(unit, stream) else {
        let reason = format!("unit {unit} has no open superblock");
        return Err((VolumeError::Damaged { reason }, buffer));
    };
    let page_bytes = core.flash.page_bytes();
    let pages = cast::saturating_u32(buffer.len() / page_bytes);
    let teller = core.order.teller(superblock.unit.0, is_alone(core));
    let Teller { sequence, durable_below, .. } = teller;
    let contents = Contents::of(entries, &buffer).filter(|_| stream.holds_changes());
    let told = match stream.holds_changes() {
        true => core.order.tell(teller, entries.len(), contents.is_some()),
        false => Told::default(),
    };
    let head = Head {
        sequence,
        durable_below,
        pages,
        change: told.change,
        proven_below: told.proven_below,
        entries: entries.to_vec(),
        records: told.records.clone(),
    };
    let position = core.position(&superblock, next_page);
    frame::encode(&head, position, &mut buffer[..MAPPING_UNIT_BYTES]);
    match core.flash.append(&superblock, buffer, false, hint) {
        Ok((first_page, programmed)) => {
            assert_eq!(first_page, next_page, "a frame of {superblock} is at another page");
            core.order.begin(teller);
            let block = core.geometry.block(superblock.unit.0, superblock.index);
            if stream.holds_changes() {
                if core.order.told(teller, &told, contents) {
                    core.tasks.ask_for_flush();
                }
                core.superblocks.pin(block, sequence);
            }
            let next_page = next_page + pages;
            assert!(next_page <= core.geometry.block_pages(), "a frame goes beyond {superblock}");
            core.frontiers.set(unit, stream, Some(Open { superblock, next_page }));
            let first = core.geometry.slots_of(block).start + first_page * core.geometry.page_units;
            let slots = first..first + pages * core.geometry.page_units;
            core.superblocks.begin_frame(block, slots, completion.clone());
            // Operations are no data of clients, as that of a pair which begins a new epoch.
            let is_data = |entry: &&Entry| !matches!(entry, Entry::Operation { .. });
            let data = entries.iter().filter(is_data).count();
            core.count_frame(unit, stream, data, pages * core.geometry.page_units);
            if next_page >= core.geometry.data_pages {
                complete(core, unit, stream);
            }
            Ok(Appended { sequence, block, first, programmed: Box::pin(programmed) })
        }
        Err((error, buffer)) => {
            close(core, unit, stream);
            Err((error.into(), buffer))
        }
    }
}

/// Closes a superblock without room, with an empty frame in its last pages.
fn complete(core: &Shared, unit: u32, stream: Stream) {
    let Some(open) = core.frontiers.get(unit, stream) else { return };
    let left = core.geometry.block_pages() - open.next_page;
    match left {
        0 => close(core, unit, stream),
        _ => drop(append_empty(core, unit, stream, left)),
    }
}

/// Closes a superblock whose room is too small for the next frame, behind an empty one. A recovery
/// would have to write the last frame again otherwise, for want of pages that show that it was
/// complete: one such frame a superblock may be more than the free ones take.
pub(crate) fn close_covered(core: &Shared, unit: u32, stream: Stream) {
    let Some(open) = core.frontiers.get(unit, stream) else { return };
    if stream.holds_changes() && open.next_page > 0 {
        let shown = core.flash.safe_after(open.next_page).saturating_add(core.flash.row_pages());
        let pages = shown.min(core.geometry.block_pages()).saturating_sub(open.next_page);
        if pages > 0 {
            append_empty(core, unit, stream, pages);
        }
    }
    close(core, unit, stream);
}

/// Appends an empty frame of so many pages, and waits for its end in the background. It holds
/// nothing, so its failure loses nothing.
pub(crate) fn append_empty(
    core: &Shared,
    unit: u32,
    stream: Stream,
    pages: u32,
) -> Option<Completion> {
    let mut buffer = core.flash.buffer(cast::index(pages) * core.flash.page_bytes());
    buffer.fill(0);
    let completion = Completion::default();
    let hint = hint_of(core, stream);
    let appended = append(core, unit, stream, hint, &[], buffer, &completion).ok()?;
    let (padded, ended) = (Rc::clone(core), completion.clone());
    core.tasks.spawn(async move {
        end_alone(&padded, appended, &ended).await.ok();
    });
    Some(completion)
}

/// The superblock of a frame has failed: no more frames are appended to it.
fn give_up(core: &Core, block: u32) {
    let unit = core.geometry.unit_of(block);
    for stream in core.frontiers.streams() {
        let open = core.frontiers.get(unit, stream);
        if open.is_some_and(|open| core.superblocks.handle(block) == Some(open.superblock)) {
            close(core, unit, stream);
        }
    }
}

/// Appends empty frames where a power cut in a later append could still destroy pages that are
/// programmed or being programmed.
pub(crate) fn pad(core: &Shared) {
    for unit in core.geometry.numbers() {
        for stream in core.frontiers.streams() {
            let Some(open) = core.frontiers.get(unit, stream) else { continue };
            let unsafe_pages = core.flash.safe_after(open.next_page) - open.next_page;
            if unsafe_pages > 0 {
                append_empty(core, unit, stream, unsafe_pages);
            }
        }
    }
}

/// Waits for a frame that nobody writes elsewhere if its program fails.
pub(crate) async fn end_alone(
    core: &Core,
    mut appended: Appended,
    completion: &Completion,
) -> Result<(), VolumeError> {
    let (result, _) = appended.programmed(core).await;
    end(core, &appended);
    completion.end(Ok(()));
    Ok(result?)
}

/// A frame is programmed, or was given up.
pub(crate) fn end(core: &Core, appended: &Appended) {
    core.superblocks.end_frame(appended.block, appended.first);
    core.order.end(appended.sequence);
}
