//! Pairs: two domains with a copy each of the same volumes.
//!
//! Without windows both take every write. With [windows](mapping::Windows) one takes writes while
//! the other only reads, in turns; data for the other are *staged* in memory until its turn. A
//! domain of a pair is a *member*; what it lacks of the other's data it is *behind*.
//!
//! Each member records on its flash what has changed since its last turn, and the number of that,
//! the *epoch*. A turn begins when the member that took writes before is behind in nothing, and
//! durable. So after a power cut the newest data of a mapping unit are those of the member with the
//! greater epoch, if it records a change there, and those of the other one otherwise.
//!
//! [mapping::Windows]: softflash_mapping::window::Windows

mod behind;
mod building;
mod changing;
mod comparing;
mod copying;
mod course;
mod figures;
mod forming;
mod putting;
mod reading;
mod states;
mod traffic;
mod transfer;
mod turns;
mod writing;

use crate::core::{Core, Shared};
use crate::error::VolumeError;
use crate::format::operation::Operation;
use crate::format::pair::PairRecord;
use crate::format::pair_state::PairState;
use crate::image::ImageId;
use crate::map_space::most_changed;
use crate::operations::{Change, change};
use crate::proof::prove;
use crate::settings::VolumeSettings;
use crate::tenant::Tenant;
use behind::{Behind, Source};
use course::{Course, Figures, Member, partner};
pub(crate) use forming::{alone, forget, form};
pub(crate) use reading::read;
use softflash_base::planted::{self, Bug};
use softflash_base::{Time, cast};
use softflash_runtime::{ByteSemaphore, Notify};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use traffic::Traffic;
pub(crate) use writing::{discard, write};

/// The pair that a domain is one of.
pub(crate) fn of(core: &Core) -> Option<Rc<Pair>> {
    core.link().get::<Pair>().filter(|pair| !pair.has_ended())
}

/// Two domains with a copy each of the same volumes.
pub(crate) struct Pair {
    members: [Shared; 2],
    /// What each member lacks.
    behind: [Behind; 2],
    traffic: Traffic,
    course: RefCell<Course>,
    /// Of one: held while the course or the images change.
    changing: ByteSemaphore,
    /// Wakes the task of turns.
    wake: Notify,
    /// Wakes the task that copies to each member.
    wake_copies: [Notify; 2],
    /// Notified when a turn or an operation has ended.
    turned: Notify,
    /// Tenants for copies, whose quotas were kept by the write.
    tenants: [RefCell<BTreeMap<ImageId, Rc<Tenant>>>; 2],
    /// The member that a read of equally loaded members takes next.
    next_read: Cell<Member>,
    figures: Figures,
    /// The time for which a member takes writes; `None` without windows.
    window_ns: Cell<Option<u64>>,
    /// Members that take no more writes, or of which a copy is being made.
    lost: [Cell<bool>; 2],
    /// The deterministic window is interrupted.
    is_interrupted: Cell<bool>,
    /// Why the member that is left cannot go on.
    alone_failure: RefCell<Option<VolumeError>>,
    /// When the lost member is tried again at the earliest.
    revived_at: Cell<Time>,
    is_stopped: Cell<bool>,
}

impl Pair {
    fn new(members: [Shared; 2], course: Course) -> Pair {
        Pair {
            members,
            behind: Default::default(),
            traffic: Traffic::default(),
            course: RefCell::new(course),
            changing: ByteSemaphore::new(1),
            wake: Notify::new(),
            wake_copies: Default::default(),
            turned: Notify::new(),
            tenants: Default::default(),
            next_read: Cell::new(0),
            figures: Figures::default(),
            window_ns: Cell::new(None),
            lost: Default::default(),
            is_interrupted: Cell::new(false),
            alone_failure: RefCell::default(),
            revived_at: Cell::new(Time::ZERO),
            is_stopped: Cell::new(false),
        }
    }

    /// It goes on in another way.
    fn go_on(&self, course: Course) {
        let over = self.course.replace(course);
        self.figures.keep(&over);
    }

    fn member(&self, member: Member) -> &Shared {
        &self.members[member]
    }

    /// The member with all volumes as they are, but for what it is behind.
    pub fn lead(&self) -> &Shared {
        let lead = self.course.borrow().lead();
        self.member(lead)
    }

    /// Whether a domain is one of its members.
    pub fn place_of(&self, core: &Shared) -> Option<Member> {
        self.members.iter().position(|member| Rc::ptr_eq(member, core))
    }

    /// Ends its tasks.
    pub fn stop(&self) {
        self.is_stopped.set(true);
        self.traffic.open_for_ever();
        self.wake.notify_all();
        self.wake.notify_one();
        self.turned.notify_all();
        self.wake_copies.iter().for_each(|wake| wake.notify_one());
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.is_stopped.get()
    }

    fn is_stopped(&self) -> bool {
        self.has_ended() || self.members.iter().any(|member| member.tasks.is_stopped())
    }

    fn check_running(&self) -> Result<(), VolumeError> {
        if self.is_stopped() { Err(VolumeError::Stopped) } else { Ok(()) }
    }

    /// The state on the flash of a member.
    fn state(&self, member: Member) -> PairState {
        state_of(self.member(member))
    }

    /// Ranges that a member records as changed, and how many there may be.
    fn changed(&self, member: Member) -> (u32, u32) {
        let core = self.member(member);
        let map = core.map.borrow();
        let changed = map.pair.as_ref().map_or(0, |record| record.changed.len());
        (cast::saturating_u32(changed), most_changed(core))
    }

    /// Records the state of a member durably: what has changed before is forgotten.
    async fn record(&self, member: Member, state: PairState) -> Result<(), VolumeError> {
        record(self.member(member), state).await
    }

    /// Whether a member is lost, or a copy of everything is being made for it.
    fn is_lost(&self, member: Member) -> bool {
        self.lost[member].get()
    }

    /// A member takes no more writes: the task of turns lets the pair go on without it.
    fn lose(&self, member: Member) {
        if self.is_lost(member) || self.is_lost(partner(member)) || self.is_stopped() {
            return;
        }
        tracing::error!(
            domain = self.member(member).config.domain,
            "a set of a pair takes no more writes; the other one serves its volumes"
        );
        self.lost[member].set(true);
        self.wake.notify_one();
    }

    /// The member that cannot hold the data of both, as bad blocks have taken its space, if the
    /// other one can. None if one is lost already.
    fn too_small(&self) -> Option<Member> {
        if (0..2).any(|member| self.is_lost(member)) {
            return None;
        }
        let fits = [0, 1].map(|member| {
            let core = self.member(member);
            let used = u64::from(core.map.borrow().used()) + copying::growth(self, member);
            used <= core.space.usable().into()
        });
        match fits {
            [false, true] => Some(0),
            [true, false] => Some(1),
            _ => None,
        }
    }

    /// The member that was lost, while the other one has not recorded yet that it is alone.
    fn losing(&self) -> Option<Member> {
        let is_alone = matches!(*self.course.borrow(), Course::Alone { .. });
        (0..2).find(|&member| self.is_lost(member) && !is_alone)
    }

    /// Waits until the member that is left has recorded that it is alone.
    async fn found_alone(&self) {
        while self.losing().is_some() && !self.is_stopped() {
            self.turned.notified().await;
        }
    }

    /// Bytes that a member lacks.
    pub fn behind_bytes(&self, member: Member) -> u64 {
        self.behind[member].units() * cast::wide(crate::format::MAPPING_UNIT_BYTES)
    }

    /// Whether a mapping unit of an image holds data.
    pub fn holds(&self, image: ImageId, lba: u32) -> bool {
        let lead = self.course.borrow().lead();
        match self.behind[lead].source(image, lba) {
            Some(Source::Staged(_)) => true,
            Some(Source::Partner) => transfer::holds(self.member(partner(lead)), image, lba),
            None => transfer::holds(self.member(lead), image, lba),
        }
    }

    /// Whether the map of the [lead](Pair::lead) says all of the data.
    pub fn is_level(&self) -> bool {
        let lead = self.course.borrow().lead();
        self.behind[lead].is_empty()
    }

    /// A volume was deleted.
    fn forget(&self, image: ImageId) {
        self.behind.iter().for_each(|behind| behind.forget(image));
        self.tenants.iter().for_each(|tenants| drop(tenants.borrow_mut().remove(&image)));
    }

    /// Whose quota copies of a volume count for: nobody's, because the write was counted.
    fn tenant_of_copies(&self, member: Member, volume: ImageId) -> Rc<Tenant> {
        let map = self.member(member).map.borrow();
        let settings = map.images.get(volume).map(|image| image.settings).unwrap_or_default();
        let unlimited = VolumeSettings { quota_bytes: None, ..settings };
        let mut tenants = self.tenants[member].borrow_mut();
        let tenant = tenants.entry(volume).or_insert_with(|| Rc::new(Tenant::of_copies(volume)));
        tenant.adopt(unlimited);
        Rc::clone(tenant)
    }
}

/// The state of a domain as one of a pair; the default one of a domain that is none.
fn state_of(core: &Shared) -> PairState {
    core.map.borrow().pair.as_ref().map(|record| record.state).unwrap_or_default()
}

/// What a domain has recorded.
fn record_of(core: &Shared) -> Option<PairRecord> {
    core.map.borrow().pair.clone()
}

/// Records a state durably, so that its loss would be noticed.
async fn record(core: &Shared, state: PairState) -> Result<(), VolumeError> {
    let before = state_of(core);
    assert!(state.pair == 0 || state.epoch >= before.epoch, "{state:?} follows {before:?}");
    change(core, |_| Ok((Change::Operation(Operation::Pair(state)), ()))).await?;
    if planted::bug(Bug::TurnNotDurable) {
        return Ok(());
    }
    core.tasks.flush().await?;
    prove(core).await
}
