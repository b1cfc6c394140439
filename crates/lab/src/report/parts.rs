//! The report's sections about devices, layouts and workloads: their parameters, and the sources of
//! the numbers of devices.

use crate::layout::Layout;
use crate::workload::Workload;
use serde::Serialize;
use serde_json::Value;
use softflash_drive::spec::DeviceSpec;
use softflash_report::{Cell, Section, Table};

/// The devices, layouts and workloads of all runs, without duplicates.
#[derive(Debug, Default)]
pub(super) struct Parts {
    devices: Vec<Part>,
    about_devices: Vec<(String, String)>,
    layouts: Vec<Part>,
    workloads: Vec<Part>,
}

/// A device, layout or workload as some run has it.
#[derive(Debug)]
struct Part {
    /// The name of its preset.
    name: String,
    /// The first of its name is 1.
    number: usize,
    parameters: Vec<Parameter>,
}

/// A parameter by its path, and its value.
type Parameter = (String, String);

/// Fields that say in words what the section says anyway.
const WORDS: [&str; 4] = ["name", "title", "default_layout", "provenance"];

impl Parts {
    /// Adds a device; returns its name in the report.
    pub(super) fn device(&mut self, device: &DeviceSpec) -> String {
        if self.about_devices.iter().all(|(name, _)| *name != device.name) {
            self.about_devices.push((device.name.clone(), about(device)));
        }
        add(&mut self.devices, &device.name, device)
    }

    /// Adds a layout; returns its name in the report.
    pub(super) fn layout(&mut self, name: &str, layout: &Layout) -> String {
        add(&mut self.layouts, name, layout)
    }

    /// Adds a workload; returns its name in the report.
    pub(super) fn workload(&mut self, name: &str, workload: &Workload) -> String {
        add(&mut self.workloads, name, workload)
    }

    /// The sections.
    pub(super) fn sections(mut self) -> [Section; 3] {
        self.about_devices.sort();
        let text = "A number without a source is an assumption. Numbers fitted to a published figure are named; everything \
                    else is predicted.";
        let devices = Section::new("devices", "Devices").text(text);
        let devices = self
            .about_devices
            .into_iter()
            .fold(devices, |section, (_, about)| section.block(about));
        let text =
            "How the devices use their flash. Fields that are not named have their defaults.";
        let layouts = Section::new("layouts", "Layouts").text(text);
        let text = "The requests. Fields that are not named have their defaults.";
        let workloads = Section::new("workloads", "Workloads").text(text);
        [
            with_parameters(devices, self.devices),
            with_parameters(layouts, self.layouts),
            with_parameters(workloads, self.workloads),
        ]
    }
}

fn add(parts: &mut Vec<Part>, name: &str, part: &impl Serialize) -> String {
    let parameters = parameters(part);
    let same_name = || parts.iter().filter(|part| part.name == name);
    let number = match same_name().find(|part| part.parameters == parameters) {
        Some(known) => known.number,
        None => {
            let number = same_name().count() + 1;
            parts.push(Part { name: name.to_owned(), number, parameters });
            number
        }
    };
    numbered(name, number)
}

fn numbered(name: &str, number: usize) -> String {
    if number == 1 { name.to_owned() } else { format!("{name} ({number})") }
}

/// The tables of parts by name; a part whose name others have too shows how it differs from the
/// first.
fn with_parameters(section: Section, mut parts: Vec<Part>) -> Section {
    parts.sort_by(|a, b| (&a.name, a.number).cmp(&(&b.name, b.number)));
    let mut first: &[Parameter] = &[];
    let mut section = section;
    for Part { name, number, parameters } in &parts {
        let title = numbered(name, *number);
        let mut shown: Vec<&Parameter> = parameters.iter().collect();
        let title = if *number == 1 {
            first = parameters;
            format!("{title}: all parameters")
        } else {
            shown.retain(|parameter| !first.contains(parameter));
            format!("{title}: as {name}, but")
        };
        let table = Table::new(title, ["parameter", "value"]);
        let table = shown.into_iter().fold(table, |table, (path, value)| {
            table.row([Cell::text(&**path), Cell::text(&**value)])
        });
        section = section.block(if *number == 1 { table.folded() } else { table });
    }
    section
}

fn parameters(part: &impl Serialize) -> Vec<Parameter> {
    let mut all = Vec::new();
    if let Ok(Value::Object(fields)) = serde_json::to_value(part) {
        let told = fields.iter().filter(|(name, _)| !WORDS.contains(&name.as_str()));
        told.for_each(|(name, value)| flatten(name, value, &mut all));
    }
    all
}

fn flatten(path: &str, value: &Value, all: &mut Vec<Parameter>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                flatten(&format!("{path}.{name}"), value, all);
            }
        }
        Value::String(text) => all.push((path.to_owned(), text.clone())),
        Value::Null => {}
        other => all.push((path.to_owned(), other.to_string())),
    }
}

fn about(device: &DeviceSpec) -> String {
    let provenance = &device.provenance;
    let mut text = format!("`{}`: {}", device.name, device.title);
    list(&mut text, "Sources", &provenance.sources);
    list(&mut text, "Assumptions", &provenance.assumptions);
    match provenance.calibrated_on.is_empty() {
        true => text += "\n\nCalibrated on no published result.",
        false => list(&mut text, "Calibrated on", &provenance.calibrated_on),
    }
    text
}

fn list(text: &mut String, heading: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    *text += &format!("\n\n{heading}:\n");
    for item in items {
        *text += &format!("\n- {item}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;

    #[test]
    fn parts_of_one_name_are_told_apart_by_what_differs() {
        let mut device = presets::device("sdf").unwrap();
        let mut parts = Parts::default();
        assert_eq!(parts.device(&device), "sdf");
        device.geometry.channels = 7;
        assert_eq!(parts.device(&device), "sdf (2)");
        assert_eq!(parts.device(&device), "sdf (2)");
        let (name, layout) = presets::layout("page-mapped").unwrap();
        assert_eq!(parts.layout(&name, &layout), "page-mapped");
        let html = parts
            .sections()
            .into_iter()
            .fold(softflash_report::Report::new(""), |it, s| it.section(s))
            .to_html();
        for part in [
            "sdf: all parameters",
            "sdf (2): as sdf, but",
            "geometry.channels",
            ">7<",
            "op_percent",
        ] {
            assert!(html.contains(part), "`{part}` is missing");
        }
    }
}
