//! Job files of fio (<https://fio.readthedocs.io/en/latest/fio_doc.html>) as workloads of flows:
//! each job is a flow.

mod file;
mod job;
mod options;
mod places;
#[cfg(test)]
mod tests;
mod values;

use super::ImportError;
use file::Job;
use job::JobFlow;
use options::Notes;
use softflash_workload::{Flow, FlowWorkload};

/// A job file as a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Jobs {
    /// The jobs as flows.
    pub workload: FlowWorkload,
    /// What was ignored, and what differs from fio.
    pub remarks: Vec<String>,
}

/// Reads the text of a job file; `name` is that of the workload. With `sections`, only the jobs of
/// these names.
///
/// # Errors
/// The error names the line of an option whose meaning is not built, or of a value that is not
/// valid, and the remedy.
pub fn jobs(name: &str, file: &str, text: &str, sections: &[String]) -> Result<Jobs, ImportError> {
    let jobs = chosen(file, file::jobs(file, text)?, sections)?;
    let mut notes = Notes::default();
    let flows = jobs.into_iter().map(|job| job::flow(file, job, &mut notes));
    let mut flows: Vec<JobFlow> = flows.collect::<Result<_, _>>()?;
    places::place(file, &mut flows, &mut notes)?;
    named_apart(&mut flows, &mut notes);
    let warm_up_ns = flows.iter().map(|flow| flow.warm_up_ns).max().unwrap_or(0);
    if flows.iter().any(|flow| flow.warm_up_ns != warm_up_ns) {
        notes.add("jobs differ in ramp_time: the longest is the warm-up of all".to_owned());
    }
    let mut flows: Vec<Flow> = flows.into_iter().map(|flow| flow.flow).collect();
    // The first job has none to wait for.
    flows.iter_mut().take(1).for_each(|flow| flow.after_previous = false);
    let mut workload = FlowWorkload::new(name, flows);
    workload.title = format!("The jobs of {}", file.rsplit('/').next().unwrap_or(file));
    workload.warm_up_ns = warm_up_ns;
    let wrong = |problem| ImportError { file: file.to_owned(), line: None, problem };
    workload.validate().map_err(|error| wrong(error.to_string()))?;
    Ok(Jobs { workload, remarks: notes.remarks() })
}

/// The jobs of these names; all without names.
fn chosen(file: &str, jobs: Vec<Job>, sections: &[String]) -> Result<Vec<Job>, ImportError> {
    let wrong = |problem| ImportError { file: file.to_owned(), line: None, problem };
    let names = || jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>().join(", ");
    if jobs.is_empty() {
        return Err(wrong(
            "it has no job; a job begins with its name in brackets, as [job]".into(),
        ));
    }
    let missing = sections.iter().find(|name| jobs.iter().all(|job| job.name != **name));
    if let Some(missing) = missing {
        return Err(wrong(format!("no job has the name `{missing}`; the jobs are {}", names())));
    }
    let all = sections.is_empty();
    Ok(jobs.into_iter().filter(|job| all || sections.contains(&job.name)).collect())
}

/// Gives jobs of the same name a number: flows are told apart by their names.
fn named_apart(flows: &mut [JobFlow], notes: &mut Notes) {
    for index in 1..flows.len() {
        let (before, rest) = flows.split_at_mut(index);
        let Some(flow) = rest.first_mut() else { continue };
        let taken = |name: &str| before.iter().any(|other| other.flow.name() == name);
        let name = flow.flow.name().to_owned();
        let mut numbered = name.clone();
        for number in 2.. {
            if !taken(&numbered) {
                break;
            }
            numbered = format!("{name}-{number}");
        }
        if numbered != name {
            notes.add(format!("a second job `{name}` is the flow `{numbered}`"));
            flow.flow.workload.name = numbered;
        }
    }
}
