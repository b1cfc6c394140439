//! The places of the jobs' files on the device: files lie one after the other, each from the
//! beginning of the device on.

use super::job::{JobFlow, Target};
use super::options::Notes;
use super::values::Bytes;
use crate::import::ImportError;
use softflash_workload::{Begin, Span};
use std::collections::BTreeMap;

/// Files begin at multiples of this.
const FILE_ALIGN_BYTES: u64 = 1 << 20;

/// Gives each flow its place.
pub fn place(file: &str, flows: &mut [JobFlow], notes: &mut Notes) -> Result<(), ImportError> {
    one_device(file, flows)?;
    let lengths = lengths_of_files(flows);
    let mut begins: BTreeMap<String, u64> = BTreeMap::new();
    let mut end = 0_u64;
    let mut reserve = |bytes: u64| {
        let begin = end;
        end = end.saturating_add(bytes.div_ceil(FILE_ALIGN_BYTES).saturating_mul(FILE_ALIGN_BYTES));
        begin
    };
    for job in flows.iter_mut() {
        let (begin, step) = match &job.target {
            Target::Device(_) => (0, job.offset_increment),
            Target::File(name) => match lengths.get(name) {
                Some(length) => {
                    let begin = begins.entry(name.clone()).or_insert_with(|| reserve(*length));
                    (*begin, job.offset_increment)
                }
                None => (0, job.offset_increment),
            },
            Target::OwnFiles => match length(job) {
                Some(length) => {
                    let each = length.next_multiple_of(FILE_ALIGN_BYTES);
                    let copies = u64::from(job.flow.copies);
                    (reserve(each.saturating_mul(copies)), each + job.offset_increment)
                }
                None => (0, job.offset_increment),
            },
        };
        if !matches!(job.target, Target::Device(_)) && job.size.is_none() {
            notes.add(format!("{}: it has no size, and uses the whole device", job.flow.name()));
        }
        job.flow.copy_offset_bytes = if job.flow.copies > 1 { step } else { 0 };
        let workload = &mut job.flow.workload;
        workload.begin = match job.offset {
            Bytes::Number(offset) => Begin::Bytes(begin.saturating_add(offset)),
            Bytes::Percent(percent) => Begin::Share(percent / 100.0),
        };
        workload.span = match job.size {
            Some(Bytes::Number(bytes)) => Span::Bytes(bytes),
            Some(Bytes::Percent(percent)) => Span::Share(percent / 100.0),
            None => Span::default(),
        };
    }
    Ok(())
}

/// Jobs of different devices cannot run on one.
fn one_device(file: &str, flows: &[JobFlow]) -> Result<(), ImportError> {
    let mut names = flows.iter().filter_map(|job| match &job.target {
        Target::Device(name) => Some(name),
        _ => None,
    });
    let Some(first) = names.next() else { return Ok(()) };
    match names.find(|name| *name != first) {
        None => Ok(()),
        Some(other) => Err(ImportError {
            file: file.to_owned(),
            line: None,
            problem: format!(
                "its jobs use several devices, `{first}` and `{other}`; run those of one with --section NAME"
            ),
        }),
    }
}

/// The bytes of a job's part of its file from the beginning of the file, if it is known.
fn length(job: &JobFlow) -> Option<u64> {
    match (job.offset, job.size?) {
        (Bytes::Number(offset), Bytes::Number(size)) => Some(offset.saturating_add(size)),
        _ => None,
    }
}

/// The lengths of the files that have names: each is as long as the job that reaches farthest.
fn lengths_of_files(flows: &[JobFlow]) -> BTreeMap<String, u64> {
    let mut lengths: BTreeMap<String, u64> = BTreeMap::new();
    for job in flows {
        if let (Target::File(name), Some(length)) = (&job.target, length(job)) {
            let last = job.offset_increment.saturating_mul(u64::from(job.flow.copies) - 1);
            let longest = lengths.entry(name.clone()).or_default();
            *longest = (*longest).max(length.saturating_add(last));
        }
    }
    lengths
}
