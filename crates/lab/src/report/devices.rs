//! The report's section about devices: the sources of their numbers.

use softflash_drive::spec::DeviceSpec;
use softflash_report::Section;
use std::collections::BTreeMap;

/// The devices of all runs, without duplicates.
#[derive(Debug, Default)]
pub struct Devices(BTreeMap<String, DeviceSpec>);

impl Devices {
    /// Adds a device.
    pub fn add(&mut self, device: &DeviceSpec) {
        self.0.entry(device.name.clone()).or_insert_with(|| device.clone());
    }

    /// The sources and assumptions of each.
    pub fn section(&self) -> Section {
        let text = "All experiments on a device use the same parameters. A number without a source is an assumption. \
                    Numbers fitted to a published figure are named; everything else is predicted.";
        let section = Section::new("devices", "Devices").text(text);
        self.0.values().fold(section, |section, device| section.block(about(device)))
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
