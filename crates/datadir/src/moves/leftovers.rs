//! What a move leaves in the set that does not have the volumes.

use softflash_volume::{Domain, VolumeError};

/// Deletes volumes that are not a domain's own, with their snapshots and clones; those that it does
/// not hold are gone already.
pub(crate) async fn take_away(domain: &Domain, names: &[String]) -> Result<(), VolumeError> {
    domain.set_guests(names);
    let all = domain.with_guests();
    loop {
        let left: Vec<_> =
            all.list().into_iter().filter(|volume| names.contains(&volume.name)).collect();
        let is_parent = |name: &String| {
            left.iter().any(|other| other.parent.as_ref().is_some_and(|(of, _)| of == name))
        };
        // Clones before their parents.
        let next = left.iter().find(|volume| !is_parent(&volume.name)).or(left.first());
        let Some(volume) = next else { break };
        all.delete_with_snapshots(&volume.name).await?;
    }
    domain.flush().await?;
    domain.prove().await?;
    domain.set_guests(&[]);
    Ok(())
}
