//! The files that a reader has: a trace, an image of a disk, a password, a configuration of MQSim,
//! and a job file of fio.

use crate::Outcome;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Parameters of the flash of a small drive in a configuration of MQSim; times in nanoseconds.
const FLASH: [(&str, u32); 10] = [
    ("Die_No_Per_Chip", 2),
    ("Plane_No_Per_Die", 2),
    ("Block_No_Per_Plane", 64),
    ("Page_No_Per_Block", 32),
    ("Page_Capacity", 8192),
    ("Page_Read_Latency_LSB", 70_000),
    ("Page_Read_Latency_MSB", 80_000),
    ("Page_Program_Latency_LSB", 750_000),
    ("Page_Program_Latency_MSB", 750_000),
    ("Block_Erase_Latency", 3_800_000),
];

/// Other parameters of that drive.
const DRIVE: [(&str, u32); 3] =
    [("Flash_Channel_Count", 8), ("Chip_No_Per_Channel", 2), ("Channel_Transfer_Rate", 333)];

/// A job file of fio, with the section that examples name.
const JOBS: &str = "[global]\nioengine=libaio\nbs=4k\nnumber_ios=2000\n\n[randread]\nrw=randread\niodepth=8\n\n\
                    [randwrite]\nrw=randwrite\niodepth=4\n";

/// Writes the files to a directory.
pub fn write(place: &Path) -> Outcome {
    let files = [
        ("password", "secret".to_owned()),
        ("disk.raw", "SoftFlash ".repeat(1 << 17)),
        ("disk.csv", trace()),
        ("ssdconfig.xml", configuration()),
        ("jobs.fio", JOBS.to_owned()),
    ];
    for (name, text) in files {
        fs::write(place.join(name), text).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

/// A trace in the format of MSR Cambridge.
fn trace() -> String {
    let mut text = String::new();
    for row in 0..2000_u64 {
        let kind = if row % 3 == 0 { "Write" } else { "Read" };
        let (ticks, offset) = (128_166_372_000_000_000 + row * 2000, row * 7919 % 4096 * 8192);
        let _ = writeln!(text, "{ticks},host,0,{kind},{offset},8192,100");
    }
    text
}

/// A configuration of MQSim.
fn configuration() -> String {
    let parameters = |all: &[(&str, u32)]| -> String {
        all.iter().map(|(name, value)| format!("<{name}>{value}</{name}>\n")).collect()
    };
    format!(
        "<Execution_Parameter_Set><Device_Parameter_Set>\n{}<Flash_Parameter_Set>\n{}</Flash_Parameter_Set>\n\
         </Device_Parameter_Set></Execution_Parameter_Set>\n",
        parameters(&DRIVE),
        parameters(&FLASH),
    )
}
