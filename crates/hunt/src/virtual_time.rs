//! The executor of all sessions, which notices where a store makes no progress.

use softflash_runtime::VirtualExecutor;

/// Polls of all tasks at one virtual time, far above those of any scenario: tasks that wake each
/// other without end never let it go on.
const MOST_POLLS_AT_ONCE: u64 = 400_000;

/// An executor whose wall clock shows `wall_ms`. It panics where the time stands still.
pub fn executor(wall_ms: u64) -> VirtualExecutor {
    let executor = VirtualExecutor::new(wall_ms);
    executor.limit_polls_at_once(MOST_POLLS_AT_ONCE);
    executor
}
