//! The parameters of a file, of which each that is read is taken out: the others have no
//! counterpart.

use crate::import::xml::Element;
use crate::import::{ImportError, WithoutCounterpart};
use std::fmt::Display;
use std::str::FromStr;

/// What holds here instead of a parameter of MQSim that has no counterpart.
const INSTEAD: [(&str, &str); 35] = [
    ("SATA_Processing_Delay", "the host's software takes `host.submit_ns` and `host.complete_ns`"),
    ("Enable_ResponseTime_Logging", "results have latencies over time"),
    ("ResponseTime_Logging_Period_Length", "results have latencies over time"),
    ("Seed", "--seed, or `seed` of an experiment"),
    ("Enabled_Preconditioning", "--precondition, or `precondition` of an experiment"),
    ("Memory_Type", "the memory is flash"),
    ("HostInterface_Type", "requests pass the link, and no protocol of the host interface"),
    ("Data_Cache_Sharing_Mode", "all requests share the write buffer"),
    ("Data_Cache_DRAM_Row_Size", "the write buffer takes no time"),
    ("Data_Cache_DRAM_Data_Rate", "the write buffer takes no time"),
    ("Data_Cache_DRAM_Data_Busrt_Size", "the write buffer takes no time"),
    ("Data_Cache_DRAM_tRCD", "the write buffer takes no time"),
    ("Data_Cache_DRAM_tCL", "the write buffer takes no time"),
    ("Data_Cache_DRAM_tRP", "the write buffer takes no time"),
    ("CMT_Sharing_Mode", "all requests share the cached map"),
    ("GC_Exec_Threshold", "collection keeps pace with the writes of each write frontier"),
    ("GC_Hard_Threshold", "collection keeps pace with the writes of each write frontier"),
    ("Preemptible_GC_Enabled", "collection keeps pace with the writes of each write frontier"),
    ("Preferred_suspend_erase_time_for_read", "MQSim does not read this name; it takes 700000"),
    ("Prefered_suspend_erase_time_for_read", "`die.erase_suspend.suspend_ns`"),
    ("Preferred_suspend_erase_time_for_write", "only reads suspend"),
    ("Preferred_suspend_write_time_for_read", "`die.program_suspend.suspend_ns`"),
    ("Block_PE_Cycles_Limit", "blocks of drives do not wear out"),
    ("Priority_Class", "all requests have one priority"),
    ("Channel_IDs", "all requests use the whole device"),
    ("Chip_IDs", "all requests use the whole device"),
    ("Die_IDs", "all requests use the whole device"),
    ("Plane_IDs", "all requests use the whole device"),
    ("Initial_Occupancy_Percentage", "--precondition: the whole device is filled"),
    ("Variance_Request_Size", "requests have their mean size"),
    ("Intensity", "MQSim does not read this name"),
    ("Percentage_To_Be_Executed", "a trace is replayed completely"),
    ("Relay_Count", "a trace is replayed once; --copies multiplies it"),
    ("Time_Unit", "times of a trace of MQSim are nanoseconds"),
    ("Static_Wearleveling_Threshold", "used with static wear levelling only"),
];

/// A parameter.
struct Parameter {
    name: String,
    value: String,
    line: usize,
    taken: bool,
}

/// The parameters of a file.
pub struct Parameters {
    file: String,
    all: Vec<Parameter>,
}

impl Parameters {
    /// All elements in `root` that have a text.
    pub fn of(file: &str, root: &Element) -> Parameters {
        let mut parameters = Parameters { file: file.to_owned(), all: Vec::new() };
        parameters.collect(root);
        parameters
    }

    fn collect(&mut self, element: &Element) {
        for child in &element.children {
            if child.children.is_empty() {
                let (name, value) = (child.name.clone(), child.text.clone());
                self.all.push(Parameter { name, value, line: child.line, taken: false });
            }
            self.collect(child);
        }
    }

    /// The value of a parameter, if the file has it.
    pub fn text(&mut self, name: &str) -> Option<String> {
        self.take(name).map(|(value, _)| value)
    }

    /// The value of a parameter in capital letters, if the file has it.
    pub fn word(&mut self, name: &str) -> Option<String> {
        self.text(name).map(|value| value.to_uppercase())
    }

    /// Whether a parameter is `true`; `default` if the file does not have it.
    pub fn flag(&mut self, name: &str, default: bool) -> Result<bool, ImportError> {
        match self.take(name) {
            None => Ok(default),
            Some((value, line)) => value.to_lowercase().parse().map_err(|_| {
                self.wrong(line, format!("{name} is `{value}`; it must be true or false"))
            }),
        }
    }

    /// A number from `least` to `most`; `default` if the file does not have it, else an error.
    pub fn number<T: FromStr + PartialOrd + Display + Copy>(
        &mut self,
        name: &str,
        (least, most): (T, T),
        default: Option<T>,
    ) -> Result<T, ImportError> {
        let Some((value, line)) = self.take(name) else {
            return default.ok_or_else(|| {
                let problem = format!("{name} is missing; give a number from {least} to {most}");
                ImportError { file: self.file.clone(), line: None, problem }
            });
        };
        let number = value.parse::<T>().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| {
            self.wrong(
                line,
                format!("{name} is `{value}`; it must be a number from {least} to {most}"),
            )
        })
    }

    /// The error for a word that is unknown.
    pub fn unknown(&self, name: &str, value: &str, known: &[&str]) -> ImportError {
        let line = self.all.iter().find(|parameter| parameter.name == name).map_or(0, |p| p.line);
        self.wrong(line, format!("{name} is `{value}`; known are {}", known.join(", ")))
    }

    /// The parameters that were not taken.
    pub fn left(self) -> Vec<(String, WithoutCounterpart)> {
        let left = self.all.into_iter().filter(|parameter| !parameter.taken);
        let instead =
            |name: &str| INSTEAD.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
        left.map(|Parameter { name, value, .. }| {
            let instead = instead(&name).unwrap_or("not known here");
            (self.file.clone(), WithoutCounterpart { parameter: name, value, instead })
        })
        .collect()
    }

    fn take(&mut self, name: &str) -> Option<(String, usize)> {
        let parameter = self.all.iter_mut().find(|parameter| parameter.name == name)?;
        parameter.taken = true;
        Some((parameter.value.clone(), parameter.line))
    }

    /// An error at a line of the file.
    pub fn wrong(&self, line: usize, problem: String) -> ImportError {
        ImportError { file: self.file.clone(), line: Some(line), problem }
    }
}
