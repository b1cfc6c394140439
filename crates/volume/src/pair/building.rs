//! Makes a member that has nothing, or nothing that counts, a copy of the other one, while clients
//! write.
//!
//! Volumes are built one after the other, a parent before its clones: the data of each snapshot are
//! copied, then the snapshot is taken. What the volume itself holds is marked as missing and copied
//! with what clients write meanwhile. Operations go on: what they change is built again.

use super::Pair;
use super::comparing::{has_same_place, images, parent_of, simple_step};
use super::copying::catch_up;
use super::course::{Course, Figures, Member, partner};
use super::putting::{discard_at, operate};
use super::transfer::transfer;
use crate::core::Shared;
use crate::domain_map::Difference;
use crate::error::VolumeError;
use crate::format::operation::Operation;
use crate::format::pair_state::PairState;
use crate::image::{ImageId, Images};
use softflash_base::planted::{self, Bug};
use std::rc::Rc;
use std::time::Duration;

/// Mapping units that are copied at a time.
const MOST_TOGETHER: u32 = 256;

/// Mapping units that are marked before other tasks have their turn.
const MOST_MARKED: u32 = 1 << 16;

/// Time between two looks at what is left to copy.
const LOOK: Duration = Duration::from_millis(10);

/// Builds the member that the pair lacks; returns when both take writes.
pub(super) async fn build(pair: &Rc<Pair>) -> Result<(), VolumeError> {
    let from = pair.course.borrow().lead();
    let to = partner(from);
    assert!(!pair.state(to).is_whole, "a whole copy would be dropped: {:?}", pair.state(to));
    // What it has is older, or a part of a copy.
    drop_all(pair, to).await?;
    loop {
        pair.check_running()?;
        match next_step(pair, from, to) {
            Step::Apply(operation) => operate(pair.member(to), &operation).await?,
            Step::Build(volume) => build_volume(pair, (from, to), volume).await?,
            Step::Drop(image) => drop_tree(pair, to, image).await?,
            Step::End => {
                if end(pair, from, to).await? {
                    return Ok(());
                }
            }
        }
    }
}

enum Step {
    Apply(Operation),
    /// A volume with its snapshots, of which the member has nothing.
    Build(ImageId),
    /// An image whose place is another one, with all that depends on it.
    Drop(ImageId),
    End,
}

fn next_step(pair: &Pair, from: Member, to: Member) -> Step {
    let (from, to) = (pair.member(from).map.borrow(), pair.member(to).map.borrow());
    let (from, to) = (&from.images, &to.images);
    let differs = |id: &ImageId| !has_same_place(to, from, *id);
    let in_both = || to.iter().map(|(id, _)| id).filter(|id| from.get(*id).is_some());
    // First what is gone: a snapshot that was deleted is none that is missing.
    if let Some(operation @ Operation::Delete { .. }) = simple_step(to, from) {
        return Step::Apply(operation);
    }
    let volumes = || in_both().filter(|id| to.get(*id).is_some_and(|image| image.is_volume()));
    if let Some(image) = volumes().find(differs) {
        return Step::Drop(image);
    }
    if let Some(operation) = simple_step(to, from) {
        return Step::Apply(operation);
    }
    let is_missing = |id: &ImageId| to.get(*id).is_none();
    let can_begin = |id: &ImageId| {
        let parent = from.get(*id).and_then(parent_of);
        parent.is_none_or(|parent| to.get(parent).is_some())
    };
    let mut all = from.iter().filter(|(_, image)| image.is_volume()).map(|(id, _)| id);
    match all.find(|id| is_missing(id) && can_begin(id)) {
        Some(volume) => Step::Build(volume),
        None => Step::End,
    }
}

/// Copies a volume with its snapshots.
async fn build_volume(
    pair: &Rc<Pair>,
    (from, to): (Member, Member),
    volume: ImageId,
) -> Result<(), VolumeError> {
    let (source, target) = (pair.member(from), pair.member(to));
    pair.behind[to].clear(volume, &(0..u32::MAX));
    pair.behind[to].build(volume);
    let snapshots = |images: &Images| -> Vec<ImageId> {
        let mut all: Vec<_> = images.snapshots_of(volume).map(|(id, _)| id).collect();
        all.reverse();
        all
    };
    let (planned, name, settings, parent, size) = {
        let map = source.map.borrow();
        let Some(image) = map.images.get(volume) else { return Ok(()) };
        let planned = snapshots(&map.images);
        let first = planned.first().and_then(|first| map.images.get(*first));
        let size = first.map_or(image.size, |first| first.size);
        (planned, image.name.clone(), image.settings, parent_of(image), size)
    };
    match parent {
        Some(of) => operate(target, &Operation::Clone { of, image: volume, name }).await?,
        None => operate(target, &Operation::Create { image: volume, name, size, settings }).await?,
    }
    let mut base = parent;
    for snapshot in planned {
        let found = source.map.borrow().images.get(snapshot).map(|it| (it.size, it.name.clone()));
        // It was deleted, or is that of another volume by now: the next step finds it.
        let Some((size, name)) = found else { break };
        operate(target, &Operation::Resize { image: volume, size }).await?;
        copy_difference(pair, (from, to), snapshot, base, volume).await?;
        if !has_all(source, [Some(snapshot), base]) {
            // The difference from a snapshot that was deleted meanwhile is none: it begins again.
            return drop_tree(pair, to, volume).await;
        }
        target.tasks.flush().await?;
        operate(target, &Operation::Snapshot { of: volume, image: snapshot, name }).await?;
        base = Some(snapshot);
    }
    let size = source.map.borrow().images.get(volume).map_or(size, |image| image.size);
    operate(target, &Operation::Resize { image: volume, size }).await?;
    if !mark_difference(pair, (from, to), volume, base).await {
        return drop_tree(pair, to, volume).await;
    }
    pair.behind[to].built(volume);
    pair.wake_copies[to].notify_one();
    Ok(())
}

/// Whether a domain has these images.
fn has_all(core: &Shared, images: [Option<ImageId>; 2]) -> bool {
    let map = core.map.borrow();
    images.into_iter().flatten().all(|image| map.images.get(image).is_some())
}

/// Copies what a snapshot has and the one before it has not.
async fn copy_difference(
    pair: &Rc<Pair>,
    (from, to): (Member, Member),
    snapshot: ImageId,
    base: Option<ImageId>,
    volume: ImageId,
) -> Result<(), VolumeError> {
    let (source, target) = (pair.member(from), pair.member(to));
    let mut at = 0;
    loop {
        pair.check_running()?;
        let next = source.map.borrow().next_difference(snapshot, base, at, MOST_TOGETHER);
        let Some(Difference { start, count, has_data }) = next else { return Ok(()) };
        let tenant = pair.tenant_of_copies(to, volume);
        at = start + count;
        if has_data {
            let lost = transfer((source, snapshot), (target, &tenant), start..at).await?;
            Figures::add(&pair.figures.lost, lost);
        } else {
            discard_at(target, volume, start..at).await?;
        }
    }
}

/// Marks what a volume holds beside its newest snapshot: it is copied with what clients write.
/// False if one of them was deleted meanwhile.
async fn mark_difference(
    pair: &Pair,
    (from, to): (Member, Member),
    volume: ImageId,
    base: Option<ImageId>,
) -> bool {
    let source = pair.member(from);
    let mut at = 0;
    while has_all(source, [Some(volume), base]) {
        let next = source.map.borrow().next_difference(volume, base, at, MOST_MARKED);
        let Some(Difference { start, count, .. }) = next else { return true };
        at = start.saturating_add(count);
        // What clients have written meanwhile is staged, or marked by now.
        pair.behind[to].mark_others(volume, start..at);
        source.tasks.runtime().turn().await;
    }
    false
}

/// Takes all volumes away.
async fn drop_all(pair: &Pair, to: Member) -> Result<(), VolumeError> {
    loop {
        let next = {
            let map = pair.member(to).map.borrow();
            map.images.iter().find(|(_, image)| image.is_volume()).map(|(id, _)| id)
        };
        match next {
            Some(image) => drop_tree(pair, to, image).await?,
            None => return Ok(()),
        }
    }
}

/// Takes an image away, after all that depends on it.
async fn drop_tree(pair: &Pair, to: Member, image: ImageId) -> Result<(), VolumeError> {
    let core = pair.member(to);
    let mut left = vec![image];
    while let Some(&image) = left.last() {
        let next = {
            let map = core.map.borrow();
            let images = &map.images;
            let clones = images.clones_of(image).next().map(|(id, _)| id);
            clones.or_else(|| images.snapshots_of(image).last().map(|(id, _)| id))
        };
        match next {
            Some(next) => left.push(next),
            None => {
                left.pop();
                // No copy of older data ends behind the next image of this number.
                pair.behind[to].build(image);
                drop(pair.traffic.enter(image, 0..u32::MAX).await);
                pair.behind[to].forget(image);
                if core.map.borrow().images.get(image).is_some() {
                    operate(core, &Operation::Delete { image }).await?;
                }
            }
        }
    }
    Ok(())
}

/// Both members have everything: they take writes from now on. False if there is more to build.
async fn end(pair: &Rc<Pair>, from: Member, to: Member) -> Result<bool, VolumeError> {
    // Most of it while clients write.
    while pair.behind[to].units() > u64::from(MOST_TOGETHER) {
        pair.check_running()?;
        if differ(pair) {
            return Ok(false);
        }
        check_takes_all(pair, from, to)?;
        pair.wake_copies[to].notify_one();
        let tasks = &pair.member(to).tasks;
        tasks.sleep_until(tasks.now() + LOOK).await;
    }
    let exclusive = pair.exclusive().await?;
    if differ(pair) {
        return Ok(false);
    }
    if planted::bug(Bug::BuiltTooEarly) {
        pair.behind[to].forget_all();
    }
    catch_up(pair, to).await?;
    pair.level().await?;
    let own = pair.state(from);
    let state = PairState { epoch: own.epoch + 1, is_whole: true, is_partner_whole: true, ..own };
    pair.record(to, state).await?;
    pair.record(from, state).await?;
    assert!(pair.is_lost(to), "a member is built that was there");
    pair.lost[to].set(false);
    pair.go_on(Course::Together);
    tracing::info!("a pair of sets has two copies of its volumes");
    if let Some(window_ns) = pair.window_ns.get() {
        pair.begin_turns(window_ns).await?;
    }
    drop(exclusive);
    Ok(true)
}

/// Fails where copies to a member cannot end: it takes no more writes, or has too little space.
fn check_takes_all(pair: &Pair, from: Member, to: Member) -> Result<(), VolumeError> {
    let core = pair.member(to);
    let used = pair.member(from).map.borrow().used();
    match (core.is_worn_out(None), used > core.space.usable()) {
        (true, _) => Err(VolumeError::WornOut),
        (false, true) => Err(core.out_of_space(used)),
        (false, false) => Ok(()),
    }
}

/// Whether the members have other images.
fn differ(pair: &Pair) -> bool {
    let maps = pair.members.each_ref().map(|member| member.map.borrow());
    images(&maps[0].images, &maps[1].images).is_some()
}
