//! What a move leaves in the set that does not have the volumes.

use softflash_volume::{Domain, VolumeError, parents_first};

/// Deletes volumes that are not a domain's own, with their snapshots and clones; those that it does
/// not hold are gone already.
pub(crate) async fn take_away(domain: &Domain, names: &[String]) -> Result<(), VolumeError> {
    domain.set_guests(names);
    let all = domain.with_guests();
    let mut left = all.list();
    left.retain(|volume| names.contains(&volume.name));
    // Clones before their parents.
    for volume in parents_first(left, |volume| volume).iter().rev() {
        all.delete_with_snapshots(&volume.name).await?;
    }
    domain.flush().await?;
    domain.prove().await?;
    domain.set_guests(&[]);
    Ok(())
}
