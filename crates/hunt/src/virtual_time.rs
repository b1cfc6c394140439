//! The executor of all sessions, which notices where a store does not get on.

use softflash_runtime::VirtualExecutor;

/// Steps of all tasks at one virtual time, far above those of any scenario: tasks that wake each
/// other without end never let it go on.
const MOST_STEPS_AT_ONCE: u64 = 400_000;

/// An executor whose wall clock shows `wall_ms`. It panics where the time stands still.
pub fn executor(wall_ms: u64) -> VirtualExecutor {
    let executor = VirtualExecutor::new(wall_ms);
    executor.limit_steps_at_once(MOST_STEPS_AT_ONCE);
    executor
}
