//! Each logical page has its stripe position: the page's number modulo the number of positions.
//! Neighbouring pages lie on different channels, then on different dies of a channel, then in
//! different planes: the allocation of Hu, Jiang, Feng, Tian, Luo and Zhang, *Performance impact
//! and interplay of SSD parallelism through advanced commands, allocation strategy and data
//! granularity*, ICS 2011, with the dies before the planes. A page that is overwritten stays at its
//! position.

use super::view::Rule;
use crate::registry::Entry;

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "static",
    parameters: &[],
    meaning: "The one of the page's number.",
    aliases: &[],
    rule: Rule { choose: None, classes: |_| 1 },
};

/// The group at each stripe position, where group `(channel * dies + die) * planes + plane` belongs
/// to this die of a channel: channels first, then dies, then planes.
pub fn positions(channels: u32, dies: u32, planes: u32) -> Vec<u32> {
    let group = |channel, die, plane| (channel * dies + die) * planes + plane;
    let of_die = |plane, die| (0..channels).map(move |channel| group(channel, die, plane));
    let of_plane = |plane| (0..dies).flat_map(move |die| of_die(plane, die));
    (0..planes).flat_map(of_plane).collect()
}
