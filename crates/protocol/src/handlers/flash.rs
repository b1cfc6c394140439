//! State of the flash: FLASH.UNITS and FLASH.STATS.

use crate::error::Result;
use crate::handlers::keyspace_context::KeyspaceContext;
use crate::resp::reply::Reply;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use std::fmt::Write;

/// FLASH.UNITS: one line per unit, those of the store before those of the volumes
pub(crate) fn units(keyspace: KeyspaceContext<'_>) -> LocalBoxFuture<'_, Result<Reply>> {
    async move {
        let mut lines = String::new();
        let mut units = keyspace.store.units().await?;
        if let Some(volumes) = &keyspace.context.services.volumes {
            units.extend(volumes.units().await);
        }
        for unit in units {
            let (space, service) = (unit.space, unit.service);
            // Writing to a string does not fail.
            let _ = write!(
                lines,
                "unit:{},state={:?},queue={},free={},open={},live={},bad={},erases_min={},\
                 erases_mean={:.1},erases_max={},bad_blocks={},damaged_headers={},reads={},programs={},erases={},\
                 errors={},device_queue={:.3},read_us={},program_us={},erase_us={}\r\n",
                unit.unit,
                unit.state,
                unit.queue,
                space.free(),
                space.open,
                space.live,
                space.bad,
                unit.erase_count_min,
                unit.erase_count_mean,
                unit.erase_count_max,
                unit.bad_blocks,
                unit.damaged_headers,
                unit.reads,
                unit.programs,
                unit.erases,
                unit.errors,
                service.queue_milli.get() as f64 / 1e3,
                service.read_ns.get() / 1000,
                service.program_ns.get() / 1000,
                service.erase_ns.get() / 1000,
            );
        }
        Ok(Reply::Verbatim(lines))
    }
    .boxed_local()
}

/// FLASH.STATS: the counters of the store, and of the volumes and the shards whose volumes are not
/// served if there are any, `name:value`
pub(crate) fn stats(keyspace: KeyspaceContext<'_>) -> LocalBoxFuture<'_, Result<Reply>> {
    async move {
        let mut fields = keyspace.store.stats().await?.fields();
        if let Some(volumes) = &keyspace.context.services.volumes {
            let totals = volumes.totals().await;
            for (name, value) in &mut fields {
                let of_volumes = totals.program_bytes.iter().find(|(known, _)| known == name);
                *value += of_volumes.map_or(0, |(_, bytes)| *bytes);
            }
            fields.extend([
                ("volume_used_bytes", totals.used_bytes),
                ("volume_usable_bytes", totals.usable_bytes),
                ("volume_full_shards", totals.full_shards),
                ("volume_refused_writes", totals.refused_writes),
            ]);
        }
        let lines = fields.into_iter().map(|(name, value)| format!("{name}:{value}\r\n"));
        let mut lines: String = lines.collect();
        if let Some(volumes) = &keyspace.context.services.volumes
            && let Ok(list) = volumes.list().await
        {
            // Writing to a string does not fail.
            let _ = write!(lines, "volume_shards_not_mounted:{}\r\n", list.not_mounted.len());
        }
        Ok(Reply::Verbatim(lines))
    }
    .boxed_local()
}
