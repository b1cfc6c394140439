//! Configurations of MQSim: `ssdconfig.xml` and workload definitions
//! (<https://github.com/CMU-SAFARI/MQSim>).

mod device;
mod layout;
mod parameters;
#[cfg(test)]
mod tests;
mod workload;

use super::xml::{self, Element};
use super::{ImportError, Imported, WithoutCounterpart};
use crate::layout::Layout;
use crate::workload::Workload;
use parameters::Parameters;
use serde::Serialize;
use softflash_drive::spec::DeviceSpec;

/// A configuration of MQSim as presets.
#[derive(Debug, Clone, PartialEq)]
pub struct Import {
    /// The device.
    pub device: DeviceSpec,
    /// The layout.
    pub layout: Layout,
    /// The scenarios of the workload definitions, one after the other: the workload of the flow of
    /// a scenario, or its flows at once if it has several.
    pub workloads: Vec<Workload>,
    /// All parameters that none of these has, with the file that they are in.
    pub without_counterpart: Vec<(String, WithoutCounterpart)>,
    /// What was changed on the way.
    pub remarks: Vec<String>,
    name: String,
}

/// Imports a configuration, and workload definitions if they are given, each as the name of a file
/// and its text. `name` is that of the device.
pub fn import(
    name: &str,
    (file, text): (&str, &str),
    workloads: Option<(&str, &str)>,
) -> Result<Import, ImportError> {
    let mut remarks = Vec::new();
    let root = xml::parse(file, text, &mut remarks)?;
    named(&root, "Execution_Parameter_Set", file)?;
    let mut parameters = Parameters::of(file, &root);
    let device = device::device(name, file, &mut parameters, &mut remarks)?;
    let mut layout = layout::layout(&device, &mut parameters, &mut remarks)?;
    let mut without_counterpart = parameters.left();
    let mut scenarios = Vec::new();
    if let Some((file, text)) = workloads {
        let root = xml::parse(file, text, &mut remarks)?;
        named(&root, "MQSim_IO_Scenarios", file)?;
        let mut before = 0;
        for (number, scenario) in root.children.iter().enumerate() {
            let mut flows = Vec::new();
            for flow in &scenario.children {
                let mut parameters = Parameters::of(file, flow);
                let name = format!("{name}-flow-{}", before + flows.len() + 1);
                let flow = workload::flow(&name, flow, &mut parameters, &mut remarks)?;
                layout.write_buffer |= flow.buffers_writes;
                without_counterpart.extend(parameters.left());
                flows.push(flow.workload);
            }
            before += flows.len();
            let name = format!("{name}-scenario-{}", number + 1);
            scenarios.extend(workload::scenario(&name, flows, &mut remarks));
        }
        layout.write_buffer &= device.controller.write_buffer_bytes > 0;
    } else {
        layout.write_buffer = device.controller.write_buffer_bytes > 0;
    }
    let title = format!("The layout of {}, a configuration of MQSim", file_name(file));
    let layout = Layout {
        title,
        sets: crate::layout::Sets::default(),
        kind: crate::layout::LayoutKind::PageMapped(layout),
    };
    let name = name.to_owned();
    Ok(Import { device, layout, workloads: scenarios, without_counterpart, remarks, name })
}

/// The last part of a path: presets name a file, not its place on a machine.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn named(root: &Element, name: &str, file: &str) -> Result<(), ImportError> {
    if root.name == name {
        return Ok(());
    }
    let problem =
        format!("the outermost element is `{}`, not `{name}`; give a file of MQSim", root.name);
    Err(ImportError { file: file.to_owned(), line: Some(root.line), problem })
}

impl Import {
    /// The name of the layout's file.
    pub fn layout_name(&self) -> String {
        format!("{}-layout", self.name)
    }

    /// The files, the device first. The device names the layout's file, beside it, as its own.
    pub fn files(&self) -> Result<Vec<Imported>, toml::ser::Error> {
        let mut device = self.device.clone();
        device.default_layout = format!("./{}.toml", self.layout_name());
        let head = self.comments();
        let mut files = vec![
            Imported { name: self.name.clone(), text: format!("{head}{}", in_toml(&device)?) },
            Imported {
                name: self.layout_name(),
                text: format!("{head}{}", in_toml(&self.layout)?),
            },
        ];
        for workload in &self.workloads {
            files.push(match workload {
                Workload::Block(block) => {
                    Imported { name: block.name.clone(), text: in_toml(block)? }
                }
                Workload::Flows(flows) => Imported {
                    name: flows.name.clone(),
                    text: format!("{head}{}", in_toml(flows)?),
                },
                Workload::Trace(_) | Workload::Kv(_) => continue,
            });
        }
        Ok(files)
    }

    /// What was left out, as comments.
    fn comments(&self) -> String {
        let in_one_line = |text: &str| text.replace(char::is_control, " ");
        let mut text =
            "# Made from a configuration of MQSim by `softflash lab import mqsim`.\n".to_owned();
        self.remarks.iter().for_each(|remark| text += &format!("# {}\n", in_one_line(remark)));
        if !self.without_counterpart.is_empty() {
            text += "# Without a counterpart:\n";
        }
        for (_, left) in &self.without_counterpart {
            let value = in_one_line(&left.value);
            text += &format!("#   {} = {value}: {}\n", left.parameter, left.instead);
        }
        text + "\n"
    }
}

fn in_toml(value: &impl Serialize) -> Result<String, toml::ser::Error> {
    toml::to_string(value)
}
