//! The options of a job: those that are read, those that have no effect here, and those whose
//! meaning is not built.

use super::file::{Job, Setting};
use crate::import::ImportError;
use std::collections::{BTreeMap, BTreeSet};

/// Options that change nothing of the requests to a device, or nothing that a simulated one has.
const IGNORED: [&str; 117] = [
    "allrandrepeat",
    "allow_file_create",
    "allow_mounted_write",
    "atomic",
    "block_error_percentiles",
    "buffer_compress_chunk",
    "buffer_compress_percentage",
    "buffer_pattern",
    "buffered",
    "bwavgtime",
    "clat_percentiles",
    "clocksource",
    "cmdprio",
    "cmdprio_bssplit",
    "cmdprio_class",
    "cmdprio_hint",
    "cmdprio_percentage",
    "continue_on_error",
    "cpumask",
    "cpus_allowed",
    "cpus_allowed_policy",
    "create_fsync",
    "create_on_open",
    "create_only",
    "create_serialize",
    "dedupe_mode",
    "dedupe_percentage",
    "description",
    "direct",
    "directory",
    "disable_bw",
    "disable_bw_measurement",
    "disable_clat",
    "disable_lat",
    "disable_slat",
    "disk_util",
    "do_verify",
    "end_fsync",
    "error_dump",
    "exec_postrun",
    "exec_prerun",
    "fadvise",
    "fadvise_hint",
    "fallocate",
    "file_append",
    "filename_format",
    "fixedbufs",
    "force_async",
    "fsync_on_close",
    "gtod_cpu",
    "gtod_reduce",
    "group_reporting",
    "hipri",
    "hipri_percentage",
    "hugepage-size",
    "ignore_error",
    "initial_zone_reset",
    "invalidate",
    "io_submit_mode",
    "iomem",
    "iomem_align",
    "iopsavgtime",
    "iscsi_initiator",
    "job_max_open_zones",
    "lat_percentiles",
    "lockfile",
    "lockmem",
    "log_avg_msec",
    "log_compression",
    "log_hist_msec",
    "log_max_value",
    "log_offset",
    "log_unix_epoch",
    "max_latency",
    "mem",
    "mem_align",
    "name",
    "new_group",
    "nice",
    "nonvectored",
    "norandommap",
    "numa_cpu_nodes",
    "numa_mem_policy",
    "openfiles",
    "overwrite",
    "per_job_logs",
    "percentile_list",
    "pre_read",
    "prio",
    "prioclass",
    "priohint",
    "randrepeat",
    "randseed",
    "random_generator",
    "rate_min",
    "rate_iops_min",
    "refill_buffers",
    "registerfiles",
    "scramble_buffers",
    "significant_figures",
    "slat_percentiles",
    "softrandommap",
    "sqthread_poll",
    "sqthread_poll_cpu",
    "stats",
    "thinktime_spin",
    "thread",
    "uid",
    "unified_rw_reporting",
    "unit_base",
    "unlink",
    "use_os_rand",
    "userspace_reap",
    "verify_fatal",
    "write_bw_log",
    "write_iops_log",
    "zero_buffers",
];

/// Options that change the requests or the course of the jobs in a way that is not built, with the
/// remedy.
const REFUSED: [(&str, &str); 43] = [
    ("wait_for", "jobs wait for all jobs before them; use stonewall"),
    ("exitall", "jobs end by themselves; give all the same runtime with time_based"),
    ("exit_what", "jobs end by themselves; give all the same runtime with time_based"),
    ("exitall_on_error", "nothing fails here; remove it"),
    ("flow", "jobs do not wait for each other; use rate_iops for their proportion"),
    ("flow_id", "jobs do not wait for each other; use rate_iops for their proportion"),
    ("percentage_random", "the places of a job are all random or all in order; write two jobs"),
    ("rw_sequencer", "places follow rw alone; remove it"),
    ("random_sequence_stride", "places follow random_distribution; remove it"),
    (
        "rate_process",
        "requests follow each other at the rate; remove it, or write a workload in TOML with load.open",
    ),
    ("rate_cycle", "the cap holds at every moment; remove it"),
    ("rate_ignore_thinktime", "think time is between requests; remove one of both"),
    ("thinktime_blocks", "clients think after each request; remove it"),
    ("thinktime_blocks_type", "clients think after each request; remove it"),
    ("thinktime_iotime", "clients think after each request; remove it"),
    ("iodepth_batch", "each completed request is followed by another at once; remove it"),
    ("iodepth_batch_submit", "each completed request is followed by another at once; remove it"),
    ("iodepth_batch_complete", "each completed request is followed by another at once; remove it"),
    (
        "iodepth_batch_complete_min",
        "each completed request is followed by another at once; remove it",
    ),
    (
        "iodepth_batch_complete_max",
        "each completed request is followed by another at once; remove it",
    ),
    ("iodepth_low", "each completed request is followed by another at once; remove it"),
    ("serialize_overlap", "requests to the same place do not wait for each other; remove it"),
    ("latency_target", "the depth does not follow the latency; try several values of iodepth"),
    ("latency_window", "the depth does not follow the latency; try several values of iodepth"),
    ("latency_percentile", "the depth does not follow the latency; try several values of iodepth"),
    ("latency_run", "the depth does not follow the latency; try several values of iodepth"),
    ("steadystate", "a run ends with its limits; use --precondition steady"),
    ("ss", "a run ends with its limits; use --precondition steady"),
    ("steadystate_duration", "a run ends with its limits; use --precondition steady"),
    ("ss_dur", "a run ends with its limits; use --precondition steady"),
    ("verify", "data are not stored, and so not verified; remove it"),
    ("verify_backlog", "data are not stored, and so not verified; remove it"),
    ("verify_only", "data are not stored, and so not verified; remove it"),
    ("read_iolog", "`softflash replay` replays the log"),
    ("replay_redirect", "`softflash replay` replays the log"),
    ("zonemode", "zones are not built; remove it"),
    ("zonesize", "zones are not built; remove it"),
    ("zonerange", "zones are not built; remove it"),
    ("zoneskip", "zones are not built; remove it"),
    (
        "trim_percentage",
        "trims are not mixed with reads and writes; write a job with rw=trim or rw=randtrim",
    ),
    ("bs_unaligned", "requests are aligned; remove it"),
    ("bs_is_seq_rand", "sizes are those of reads and of writes; write two jobs"),
    ("fill_device", "a job ends with size, io_size or runtime; give one"),
];

/// What was ignored, and what differs from fio.
#[derive(Debug, Default)]
pub struct Notes {
    ignored: BTreeMap<usize, String>,
    unknown: BTreeMap<usize, String>,
    said: Vec<String>,
    seen: BTreeSet<String>,
}

impl Notes {
    /// Adds a remark, once.
    pub fn add(&mut self, remark: String) {
        if self.seen.insert(remark.clone()) {
            self.said.push(remark);
        }
    }

    /// All remarks.
    pub fn remarks(self) -> Vec<String> {
        let list = |options: &BTreeMap<usize, String>| {
            let each = options.iter().map(|(line, name)| format!("{name} (line {line})"));
            each.collect::<Vec<_>>().join(", ")
        };
        let mut remarks = Vec::new();
        if !self.ignored.is_empty() {
            remarks.push(format!("without effect here: {}", list(&self.ignored)));
        }
        if !self.unknown.is_empty() {
            remarks.push(format!("not known, and ignored: {}", list(&self.unknown)));
        }
        remarks.extend(self.said);
        remarks
    }
}

/// The options of a job that have not been read.
pub struct Options<'a> {
    file: &'a str,
    /// The job's name.
    pub name: String,
    line: usize,
    left: BTreeMap<String, Setting>,
}

impl<'a> Options<'a> {
    pub fn of(file: &'a str, job: Job) -> Options<'a> {
        Options { file, name: job.name, line: job.line, left: job.options }
    }

    /// Takes an option by one of its names, if the job has it.
    pub fn take(&mut self, names: &[&str]) -> Option<Setting> {
        // The later line counts if a job has several.
        let taken = names.iter().filter_map(|name| self.left.remove(*name));
        taken.max_by_key(|setting| setting.line)
    }

    /// Takes an option, read by `read`; `default` if the job does not have it.
    pub fn read<T>(
        &mut self,
        names: &[&str],
        default: T,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, ImportError> {
        match self.take(names) {
            None => Ok(default),
            Some(Setting { value, line }) => read(&value).map_err(|problem| {
                let name = names.first().unwrap_or(&"");
                self.wrong(line, format!("{name}: {problem}"))
            }),
        }
    }

    /// An error at a line.
    pub fn wrong(&self, line: usize, problem: String) -> ImportError {
        ImportError { file: self.file.to_owned(), line: Some(line), problem }
    }

    /// An error of the whole job.
    pub fn wrong_job(&self, problem: String) -> ImportError {
        self.wrong(self.line, format!("job `{}`: {problem}", self.name))
    }

    /// Notes the options that are left, none of which may have a meaning that is not built.
    pub fn leave(self, notes: &mut Notes) -> Result<(), ImportError> {
        for (name, setting) in &self.left {
            let remedy = REFUSED.iter().find(|(refused, _)| refused == name);
            if let Some((_, remedy)) = remedy.filter(|_| setting.value != "0") {
                return Err(self.wrong(setting.line, format!("{name} is not built: {remedy}")));
            }
            let known = remedy.is_some() || IGNORED.contains(&name.as_str());
            let list = if known { &mut notes.ignored } else { &mut notes.unknown };
            list.insert(setting.line, name.clone());
        }
        Ok(())
    }
}
