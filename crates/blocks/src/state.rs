//! The state of a shard's blocks, for the mechanisms that use all of it.

use crate::directory::Directory;
use crate::health::Health;
use crate::pools::Pools;
use crate::redundancy::Groups;
use std::rc::Rc;

/// The four parts that hold the state. A clone is the same state.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) pools: Rc<Pools>,
    pub(crate) directory: Rc<Directory>,
    pub(crate) groups: Rc<Groups>,
    pub(crate) health: Rc<Health>,
}

impl State {
    pub(crate) fn new(pools: Pools, directory: Directory) -> State {
        State {
            pools: Rc::new(pools),
            directory: Rc::new(directory),
            groups: Rc::default(),
            health: Rc::default(),
        }
    }
}
