//! Requests of the layers above, from their submission to their results.

use crate::slab::Slab;
use crate::superblock::{FtlError, Superblock};
use smallvec::SmallVec;
use softflash_base::IoBuf;
use softflash_device::Hint;

/// Identifies a request from its submission until its [`Done`] is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

impl RequestId {
    fn new(serial: u32, place: u32) -> RequestId {
        RequestId(u64::from(serial) << 32 | u64::from(place))
    }

    /// A small number that no other request under way has. It is reused later, and can index a
    /// table.
    pub fn place(self) -> usize {
        self.0 as u32 as usize
    }
}

/// The result of a request.
#[derive(Debug)]
pub struct Done {
    /// The request.
    pub request: RequestId,
    /// Success or an error. After a failed read the contents of the buffer are undefined.
    pub result: Result<(), FtlError>,
    /// The buffer of the append or read; none for a flush, and if the device lost it.
    pub buffer: Option<IoBuf>,
    /// Most read retries of any page.
    pub retries: u8,
}

/// Most requests have at most this many parts.
const FEW_PARTS: usize = 8;

/// A request under way.
struct Request {
    serial: u32,
    /// None for a flush, and for work on a whole unit.
    superblock: Option<Superblock>,
    hint: Hint,
    /// Commands and headers that have not ended.
    remaining: u32,
    /// The pieces of the buffer in order; none while a command has it.
    parts: SmallVec<[Option<IoBuf>; FEW_PARTS]>,
    result: Result<(), FtlError>,
    /// Most read retries of any page.
    retries: u8,
    /// Whether a flush follows the other commands, to make the request durable.
    flush_at_end: bool,
}

impl Request {
    fn new(serial: u32, superblock: Option<Superblock>, hint: Hint) -> Request {
        Request {
            serial,
            superblock,
            hint,
            remaining: 0,
            parts: SmallVec::new(),
            result: Ok(()),
            retries: 0,
            flush_at_end: false,
        }
    }

    /// Joins the pieces of the buffer.
    fn join_parts(&mut self) -> Option<IoBuf> {
        let mut parts = self.parts.drain(..);
        let mut whole = parts.next()??;
        for part in parts {
            whole.unsplit(part?);
        }
        Some(whole)
    }
}

/// The requests under way, and the results that nobody has collected yet.
pub(crate) struct Requests {
    requests: Slab<Request>,
    serial: u32,
    /// For each unit, the requests that wait for the headers of a superblock, as
    /// `(index, request)`.
    awaiting_headers: Vec<Vec<(u32, u32)>>,
    /// Requests whose other commands have ended and whose flush must be queued.
    to_flush: Vec<(u32, Hint)>,
    finished: Vec<Done>,
}

impl Requests {
    pub fn new(units: usize) -> Requests {
        Requests {
            requests: Slab::new(),
            serial: 0,
            awaiting_headers: vec![Vec::new(); units],
            to_flush: Vec::new(),
            finished: Vec::new(),
        }
    }

    /// A new request, by its place and its id.
    pub fn begin(&mut self, superblock: Option<Superblock>, hint: Hint) -> (u32, RequestId) {
        self.serial = self.serial.wrapping_add(1);
        let place = self.requests.insert(Request::new(self.serial, superblock, hint));
        (place, RequestId::new(self.serial, place))
    }

    /// A new request that waits for one thing.
    pub fn begin_single(&mut self, hint: Hint) -> (u32, RequestId) {
        let (place, id) = self.begin(None, hint);
        self.requests.get_mut(place).remaining = 1;
        (place, id)
    }

    /// Adds a piece of the buffer; returns its number.
    pub fn add_part(&mut self, place: u32) -> u32 {
        let request = self.requests.get_mut(place);
        request.parts.push(None);
        request.remaining += 1;
        request.parts.len() as u32 - 1
    }

    /// Lets a request wait for the headers of its superblock.
    pub fn await_headers(&mut self, place: u32, unit: usize, index: u32) {
        self.awaiting_headers[unit].push((index, place));
        self.requests.get_mut(place).remaining += 1;
    }

    /// Lets a flush follow the other commands of a request.
    pub fn set_flush_at_end(&mut self, place: u32, flush: bool) {
        self.requests.get_mut(place).flush_at_end = flush;
    }

    /// The superblock of a request, if it has one.
    pub fn superblock_of(&self, place: u32) -> Option<Superblock> {
        self.requests.get(place).superblock
    }

    /// Records the retries of a read of `superblock`.
    ///
    /// # Panics
    /// If the request is for another life of the superblock.
    pub fn note_read(&mut self, place: u32, superblock: Superblock, retries: u8) {
        let read = self.requests.get_mut(place);
        assert!(
            read.superblock == Some(superblock),
            "{superblock} was erased during a read of {:?}",
            read.superblock
        );
        read.retries = retries.max(read.retries);
    }

    /// Returns a piece of the buffer of a request.
    pub fn finish_part(
        &mut self,
        place: u32,
        part: u32,
        buffer: Option<IoBuf>,
        result: Result<(), FtlError>,
    ) {
        self.requests.get_mut(place).parts[part as usize] = buffer;
        self.finish_one(place, result);
    }

    /// Ends one of the commands or headers for which a request waits.
    pub fn finish_one(&mut self, place: u32, result: Result<(), FtlError>) {
        let request = self.requests.get_mut(place);
        if request.result.is_ok() {
            request.result = result;
        }
        request.remaining -= 1;
        if request.remaining > 0 {
            return;
        }
        if request.flush_at_end && request.result.is_ok() {
            request.flush_at_end = false;
            request.remaining = 1;
            self.to_flush.push((place, request.hint));
            return;
        }
        // No other request gets the place, by which the layer above knows this one, before its
        // result is collected: a refused command ends a request while another one is submitted.
        let mut request = self.requests.take(place);
        let buffer = request.join_parts();
        let id = RequestId::new(request.serial, place);
        let Request { result, retries, .. } = request;
        self.finished.push(Done { request: id, result, buffer, retries });
    }

    /// Reports the result to the requests that wait for the headers of a superblock.
    pub fn headers_ended(&mut self, unit: usize, index: u32, result: &Result<(), FtlError>) {
        let mut awaiting = std::mem::take(&mut self.awaiting_headers[unit]);
        awaiting.retain(|(waits_for, place)| {
            let ours = *waits_for == index;
            if ours {
                self.finish_one(*place, result.clone());
            }
            !ours
        });
        self.awaiting_headers[unit] = awaiting;
    }

    /// Takes the requests whose flush must be queued, in the order in which their other commands
    /// ended.
    pub fn take_flushes(&mut self) -> impl Iterator<Item = (u32, Hint)> {
        self.to_flush.drain(..)
    }

    /// Takes the results.
    pub fn take_finished(&mut self) -> impl Iterator<Item = Done> {
        let Requests { requests, finished, .. } = self;
        finished.drain(..).inspect(|done| requests.release(done.request.place() as u32))
    }

    /// Whether results wait to be collected.
    pub fn any_finished(&self) -> bool {
        !self.finished.is_empty()
    }

    /// Whether no request is under way.
    pub fn none_under_way(&self) -> bool {
        self.requests.stored() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_reused_when_the_result_of_its_request_is_collected_and_not_before() {
        let mut requests = Requests::new(1);
        let (first, first_id) = requests.begin_single(Hint::FOREGROUND);
        requests.finish_one(first, Ok(()));
        let (second, second_id) = requests.begin_single(Hint::FOREGROUND);
        assert_ne!(first, second, "the first has not been collected");
        let collected: Vec<RequestId> = requests.take_finished().map(|done| done.request).collect();
        assert_eq!(collected, [first_id]);
        let (third, third_id) = requests.begin_single(Hint::FOREGROUND);
        assert_eq!((third, third_id.place()), (first, first_id.place()));
        assert!(third_id != first_id && third_id != second_id);
        requests.finish_one(second, Ok(()));
        requests.finish_one(third, Ok(()));
        assert_eq!(requests.take_finished().count(), 2);
        assert!(requests.none_under_way());
    }
}
