//! `softflash lab keys`, `show` and `import`: files for the laboratory.

use crate::support::program::{said, softflash};
use serde_json::Value;
use std::fs;
use std::process::Output;

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", said(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn keys_are_a_table_or_a_list_for_scripts() {
    let listed = json(&softflash(["lab", "keys", "device", "-o", "json"]));
    let keys = listed.as_array().unwrap();
    let key = |name: &str| keys.iter().find(|key| key["key"] == name).unwrap();
    let spare = key("geometry.spare_bytes");
    assert_eq!(
        (spare["type"].as_str(), spare["unit"].as_str()),
        (Some("whole number"), Some("bytes"))
    );
    assert_eq!(
        (spare["default"].as_str(), spare["range"].as_str()),
        (Some("0"), Some("0 to 1048576"))
    );
    assert!(key("die.erase_ns")["required"].as_bool().unwrap());
    let table = said(&softflash(["lab", "keys", "layout"]));
    assert!(table.contains("write_frontier") && table.contains("multi-plane"), "{table}");
    let refused = softflash(["lab", "keys", "trash"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("device, layout, workload, experiment"), "{}", said(&refused));
}

#[test]
fn a_shown_preset_is_a_file_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine.toml");
    let shown = softflash(["lab", "show", "mqsim-default"]);
    fs::write(&path, &shown.stdout).unwrap();
    let path = path.to_str().unwrap();
    let run = |device: &str| {
        let workload = ["--workload", "random-read-8k", "--requests", "1000", "-o", "json"];
        json(&softflash([&["bench", "sim", "--device", device][..], &workload].concat()))
    };
    assert_eq!(run(path)["read_latency_ns"], run("mqsim-default")["read_latency_ns"]);
    let both = softflash(["lab", "show", "sdf"]);
    assert!(String::from_utf8_lossy(&both.stderr).contains("--kind layout"), "{}", said(&both));
    let layout = json(&softflash(["lab", "show", "sdf", "--kind", "layout", "-o", "json"]));
    assert_eq!((layout["kind"].as_str(), layout["name"].as_str()), (Some("layout"), Some("sdf")));
    let unknown = softflash(["lab", "show", "mqsim-defualt"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(said(&unknown).contains("nearest known one is `mqsim-default`"), "{}", said(&unknown));
}

const MQSIM: &str = "<Execution_Parameter_Set><Device_Parameter_Set>
<GC_Exec_Threshold>0.05</GC_Exec_Threshold><Flash_Channel_Count>2</Flash_Channel_Count>
<Channel_Transfer_Rate>333</Channel_Transfer_Rate><Chip_No_Per_Channel>1</Chip_No_Per_Channel>
<Ideal_Mapping_Table>true</Ideal_Mapping_Table><Flash_Parameter_Set>
<Flash_Technology>SLC</Flash_Technology><Page_Read_Latency_LSB>75000</Page_Read_Latency_LSB>
<Page_Program_Latency_LSB>750000</Page_Program_Latency_LSB><Block_Erase_Latency>3800000</Block_Erase_Latency>
<Die_No_Per_Chip>2</Die_No_Per_Chip><Plane_No_Per_Die>1</Plane_No_Per_Die>
<Block_No_Per_Plane>64</Block_No_Per_Plane><Page_No_Per_Block>64</Page_No_Per_Block>
<Page_Capacity>8192</Page_Capacity></Flash_Parameter_Set></Device_Parameter_Set></Execution_Parameter_Set>";

#[test]
fn a_configuration_of_mqsim_becomes_files_that_run() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ssdconfig.xml");
    fs::write(&file, MQSIM).unwrap();
    let out = directory.path().join("mine");
    let (file, out) = (file.to_str().unwrap(), out.to_str().unwrap());
    let printed = said(&softflash(["lab", "import", "mqsim", file, "--out", out]));
    assert!(printed.contains("GC_Exec_Threshold") && printed.contains("0.05"), "{printed}");
    let device = format!("{out}/ssdconfig.toml");
    let command = [
        "bench",
        "sim",
        "--device",
        &device,
        "--workload",
        "random-read-8k",
        "--requests",
        "1000",
        "-o",
        "json",
    ];
    let result = json(&softflash(command));
    assert_eq!(result["layout"], "ssdconfig-layout");
    let again = softflash(["lab", "import", "mqsim", file, "--out", out]);
    assert_eq!(again.status.code(), Some(1));
    assert!(said(&again).contains("ssdconfig.toml: it exists already"), "{}", said(&again));
    let forced = softflash(["lab", "import", "mqsim", file, "--out", out, "--force"]);
    assert!(forced.status.success(), "{}", said(&forced));
    fs::write(file, "<html>no configuration</html>").unwrap();
    let refused = softflash(["lab", "import", "mqsim", file, "--out", out]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(said(&refused).contains("the outermost element is `html`"), "{}", said(&refused));
}
