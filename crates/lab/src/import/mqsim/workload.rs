//! A flow of workload definitions.

use super::parameters::Parameters;
use crate::import::ImportError;
use crate::import::xml::Element;
use crate::workload::Workload;
use softflash_base::shell_word;
use softflash_workload::{
    ArrivalPattern, Begin, BlockWorkload, Flow, FlowWorkload, Load, Pattern, RequestSize, Span,
};

/// Bytes of a sector, in which MQSim counts.
const SECTOR_BYTES: u32 = 512;

/// The highest rate of a flow.
const MOST_BYTES_PER_SECOND: f64 = 1e13;

/// A flow as it was read.
pub struct FlowRead {
    /// Its requests; none of a trace, for which a remark says how to replay it.
    pub workload: Option<BlockWorkload>,
    /// Whether its writes go to the device's cache.
    pub buffers_writes: bool,
}

/// The workload of a flow, and its use of the device's cache.
pub fn flow(
    name: &str,
    flow: &Element,
    parameters: &mut Parameters,
    remarks: &mut Vec<String>,
) -> Result<FlowRead, ImportError> {
    let mode = parameters.word("Device_Level_Data_Caching_Mode");
    let buffers_writes = matches!(mode.as_deref(), Some("WRITE_CACHE" | "WRITE_READ_CACHE"));
    let workload = match flow.name.as_str() {
        "IO_Flow_Parameter_Set_Synthetic" => Some(synthetic(name, parameters, remarks)?),
        "IO_Flow_Parameter_Set_Trace_Based" => {
            let path = parameters.text("File_Path").unwrap_or_else(|| "FILE".to_owned());
            let path = shell_word(&path);
            remarks.push(format!("{name} is a trace: softflash replay {path} --format mqsim"));
            None
        }
        other => return Err(parameters.wrong(flow.line, format!("`{other}` is no flow of MQSim"))),
    };
    Ok(FlowRead { workload, buffers_writes })
}

/// The workload of a scenario, whose flows run at once. MQSim gives each flow an equal part of the
/// logical addresses.
pub fn scenario(
    name: &str,
    flows: Vec<Option<BlockWorkload>>,
    remarks: &mut Vec<String>,
) -> Option<Workload> {
    let all = flows.len() as f64;
    if let [flow] = flows.as_slice() {
        return flow.clone().map(Workload::Block);
    }
    if flows.iter().any(Option::is_none) && flows.iter().any(Option::is_some) {
        remarks.push(format!("{name}: its traces do not run together with its other flows"));
    }
    let part = |(number, flow): (usize, Option<BlockWorkload>)| {
        let mut flow = flow?;
        if number > 0 {
            flow.begin = Begin::Share(number as f64 / all);
        }
        if let Span::Share(share) = flow.span {
            flow.span = Span::Share(share / all);
        }
        Some(Flow::from(flow))
    };
    let flows: Vec<Flow> = flows.into_iter().enumerate().filter_map(part).collect();
    if flows.is_empty() {
        return None;
    }
    let mut workload = FlowWorkload::new(name, flows);
    workload.title = "A scenario of MQSim".to_owned();
    Some(Workload::Flows(workload))
}

/// The requests of a synthetic flow.
fn synthetic(
    name: &str,
    parameters: &mut Parameters,
    remarks: &mut Vec<String>,
) -> Result<BlockWorkload, ImportError> {
    let percent = (0.0, 100.0);
    let sectors = (1, u32::MAX / SECTOR_BYTES);
    let size = SECTOR_BYTES * parameters.number("Average_Request_Size", sectors, Some(8))?;
    if parameters.word("Request_Size_Distribution").is_some_and(|word| word != "FIXED") {
        remarks.push(format!("{name}: all requests have the mean size of the distribution"));
    }
    let mut workload =
        BlockWorkload::new(name, RequestSize::Fixed(size), pattern(name, parameters, remarks)?);
    workload.title = "A flow of MQSim".to_owned();
    workload.read_fraction = parameters.number("Read_Percentage", percent, Some(100.0))? / 100.0;
    let align = SECTOR_BYTES * parameters.number("Address_Alignment_Unit", sectors, Some(1))?;
    let aligned = parameters.flag("Generated_Aligned_Addresses", false)?;
    workload.align_bytes = Some(if aligned { align } else { SECTOR_BYTES });
    let share: f64 = parameters.number("Working_Set_Percentage", percent, Some(100.0))?;
    workload.span = Span::Share(if share > 0.0 { share / 100.0 } else { 1.0 });
    workload.load = load(parameters, size)?;
    let some = |number: u64| (number > 0).then_some(number);
    let every = (0, i64::MAX as u64);
    workload.requests = some(parameters.number("Total_Requests_To_Generate", every, Some(0))?);
    workload.duration_ns = some(parameters.number("Stop_Time", every, Some(0))?);
    Ok(workload)
}

fn pattern(
    name: &str,
    parameters: &mut Parameters,
    remarks: &mut Vec<String>,
) -> Result<Pattern, ImportError> {
    let hot: f64 = parameters.number("Percentage_of_Hot_Region", (0.0, 100.0), Some(0.0))?;
    let field = "Address_Distribution";
    let known = ["RANDOM_UNIFORM", "STREAMING", "RANDOM_HOTCOLD", "MIXED_STREAMING_RANDOM"];
    let word = parameters.word(field);
    for (first, now) in [("UNIFORM_RANDOM", known[0]), ("HOTCOLD_RANDOM", known[2])] {
        if word.as_deref() == Some(first) {
            remarks.push(format!("{name}: {first} of MQSim's first versions is read as {now}"));
        }
    }
    Ok(match word.as_deref() {
        None | Some("RANDOM_UNIFORM" | "UNIFORM_RANDOM") => Pattern::Random,
        Some("STREAMING") => Pattern::SEQUENTIAL,
        // A region of `hot` percent has the other percent of the requests.
        Some("RANDOM_HOTCOLD" | "HOTCOLD_RANDOM") if hot > 0.0 => {
            Pattern::HotCold { hot_space: hot / 100.0, hot_accesses: 1.0 - hot / 100.0 }
        }
        Some("RANDOM_HOTCOLD" | "HOTCOLD_RANDOM") => Pattern::Random,
        Some("MIXED_STREAMING_RANDOM") => {
            remarks.push(format!(
                "{name}: MIXED_STREAMING_RANDOM has no counterpart; all addresses are random"
            ));
            Pattern::Random
        }
        Some(other) => return Err(parameters.unknown(field, other, &known)),
    })
}

fn load(parameters: &mut Parameters, size: u32) -> Result<Load, ImportError> {
    let depth = parameters.number("Average_No_of_Reqs_in_Queue", (1, 1 << 24), Some(1))?;
    // Without an effect for QUEUE_DEPTH, as in MQSim.
    parameters.number("Bandwidth", (0.0, MOST_BYTES_PER_SECOND), Some(0.0))?;
    let field = "Synthetic_Generator_Type";
    match parameters.word(field).as_deref() {
        None | Some("QUEUE_DEPTH") => Ok(Load::closed(1, depth)),
        Some("BANDWIDTH") => {
            let bytes = parameters.number("Bandwidth", (1.0, MOST_BYTES_PER_SECOND), None)?;
            Ok(Load::Open {
                requests_per_second: (bytes / f64::from(size)).clamp(1e-9, 1e9),
                arrivals: ArrivalPattern::Poisson,
            })
        }
        Some(other) => Err(parameters.unknown(field, other, &["QUEUE_DEPTH", "BANDWIDTH"])),
    }
}
