use super::*;
use crate::toml_text::from_text;
use softflash_base::random::Rng;
use softflash_drive::Drive;
use softflash_drive::spec::{MapKind, VictimPolicy, WearPolicy};
use softflash_workload::{Begin, Load, Pattern, Span};

/// A small configuration with the names of MQSim's own.
const CONFIGURATION: &str = r#"<?xml version="1.0" encoding="us-ascii"?>
<Execution_Parameter_Set>
  <Host_Parameter_Set>
    <PCIe_Lane_Bandwidth>1.00000</PCIe_Lane_Bandwidth>
    <PCIe_Lane_Count>4</PCIe_Lane_Count>
  </Host_Parameter_Set>
  <Device_Parameter_Set>
    <Seed>321</Seed>
    <IO_Queue_Depth>65535</IO_Queue_Depth>
    <Queue_Fetch_Size>512</Queue_Fetch_Size>
    <Caching_Mechanism>ADVANCED</Caching_Mechanism>
    <Data_Cache_Capacity>1048576</Data_Cache_Capacity>
    <Ideal_Mapping_Table>true</Ideal_Mapping_Table>
    <Transaction_Scheduling_Policy>PRIORITY_OUT_OF_ORDER</Transaction_Scheduling_Policy>
    <Overprovisioning_Ratio>0.2</Overprovisioning_Ratio>
    <GC_Exec_Threshold>0.05</GC_Exec_Threshold>
    <GC_Block_Selection_Policy>RGA</GC_Block_Selection_Policy>
    <Static_Wearleveling_Enabled>true</Static_Wearleveling_Enabled>
    <Static_Wearleveling_Threshold>90</Static_Wearleveling_Threshold>
    <Flash_Channel_Count>8</Flash_Channel_Count>
    <Channel_Transfer_Rate>333</Channel_Transfer_Rate>
    <Chip_No_Per_Channel>2</Chip_No_Per_Channel>
    <Flash_Parameter_Set>
      <Flash_Technology>MLC</Flash_Technology>
      <CMD_Suspension_Support>ERASE</CMD_Suspension_Support>
      <Page_Read_Latency_LSB>70000</Page_Read_Latency_LSB>
      <Page_Read_Latency_MSB>80000</Page_Read_Latency_MSB>
      <Page_Program_Latency_LSB>750000</Page_Program_Latency_LSB>
      <Page_Program_Latency_MSB>750000</Page_Program_Latency_MSB>
      <Block_Erase_Latency>3800000</Block_Erase_Latency>
      <Suspend_Erase_Time>700000</Suspend_Erase_Time>
      <Die_No_Per_Chip>2</Die_No_Per_Chip>
      <Plane_No_Per_Die>2</Plane_No_Per_Die>
      <Block_No_Per_Plane>64</Block_No_Per_Plane>
      <Page_No_Per_Block>32</Page_No_Per_Block>
      <Page_Capacity>8192</Page_Capacity>
      <Surprise>yes</Surprise>
    </Flash_Parameter_Set>
  </Device_Parameter_Set>
</Execution_Parameter_Set>"#;

const FLOWS: &str = r"<MQSim_IO_Scenarios><IO_Scenario>
<IO_Flow_Parameter_Set_Synthetic>
  <Device_Level_Data_Caching_Mode>TURNED_OFF</Device_Level_Data_Caching_Mode>
  <Working_Set_Percentage>50</Working_Set_Percentage>
  <Synthetic_Generator_Type>QUEUE_DEPTH</Synthetic_Generator_Type>
  <Read_Percentage>30</Read_Percentage>
  <Address_Distribution>RANDOM_HOTCOLD</Address_Distribution>
  <Percentage_of_Hot_Region>10</Percentage_of_Hot_Region>
  <Average_Request_Size>16</Average_Request_Size>
  <Average_No_of_Reqs_in_Queue>64</Average_No_of_Reqs_in_Queue>
  <Total_Requests_To_Generate>500</Total_Requests_To_Generate>
</IO_Flow_Parameter_Set_Synthetic>
<IO_Flow_Parameter_Set_Trace_Based><File_Path>t.trace</File_Path></IO_Flow_Parameter_Set_Trace_Based>
</IO_Scenario></MQSim_IO_Scenarios>";

fn imported(text: &str) -> Result<Import, ImportError> {
    import("mine", ("c.xml", text), Some(("w.xml", FLOWS)))
}

fn import_with(flows: &str) -> Result<Import, ImportError> {
    import("mine", ("c.xml", CONFIGURATION), Some(("w.xml", flows)))
}

fn page_mapped(import: &Import) -> &softflash_drive::spec::PageMapped {
    match &import.layout.kind {
        crate::layout::LayoutKind::PageMapped(layout) => layout,
        other => panic!("{other:?}"),
    }
}

#[test]
fn parameters_become_device_and_layout() {
    let import = imported(CONFIGURATION).unwrap();
    let device = &import.device;
    let geometry = &device.geometry;
    assert_eq!((geometry.channels, geometry.dies(), geometry.blocks_per_die()), (8, 32, 128));
    assert_eq!(
        (device.die.read_ns.as_slice(), device.die.program_ns.as_slice()),
        (&[70_000, 80_000][..], &[750_000][..])
    );
    assert_eq!(
        (device.bus.bytes_per_second, device.link.read_bytes_per_second),
        (333_333_333, 4_000_000_000)
    );
    assert_eq!(
        (device.controller.queue_depth, device.controller.write_buffer_bytes),
        (512, 1 << 20)
    );
    assert_eq!(device.die.erase_suspend.unwrap().suspend_ns, 700_000);
    let layout = page_mapped(&import);
    assert!((layout.op_percent - 25.0).abs() < 1e-9, "{}", layout.op_percent);
    assert_eq!(
        (layout.victim, layout.wear),
        (VictimPolicy::d_choices(6), WearPolicy::level_by(90))
    );
    assert!(layout.suspend && !layout.die_interleaving && !layout.write_buffer);
    assert_eq!(layout.map, MapKind::Page);
    let drive = Drive::new(device, layout, layout.op_percent).unwrap();
    assert_eq!(drive.capacity_bytes(), geometry.bytes() / 5 * 4 / (64 * 8192) * (64 * 8192));
}

#[test]
fn flows_become_workloads() {
    let import = imported(CONFIGURATION).unwrap();
    let [Workload::Flows(scenario)] = import.workloads.as_slice() else {
        panic!("{:?}", import.workloads)
    };
    let flow = &scenario.flows[0].workload;
    assert_eq!(
        (flow.read_fraction, flow.requests, flow.load),
        (0.3, Some(500), Load::closed(1, 64))
    );
    assert_eq!(flow.pattern, Pattern::HotCold { hot_space: 0.1, hot_accesses: 0.9 });
    let replay = "mine-flow-2 is a trace: softflash replay t.trace --format mqsim";
    let together = "mine-scenario-1: its traces do not run together with its other flows";
    assert_eq!(import.remarks, [replay, together]);
    let flows = |from: &str, to: &str| {
        assert!(FLOWS.contains(from), "{from}");
        import_with(&FLOWS.replacen(from, to, 1))
    };
    // A trace can use the cache, too.
    let caching = "<Device_Level_Data_Caching_Mode>WRITE_CACHE</Device_Level_Data_Caching_Mode>";
    let cached = flows("<File_Path>", &format!("{caching}<File_Path>")).unwrap();
    assert!(page_mapped(&cached).write_buffer);
    let told = flows(">QUEUE_DEPTH<", ">BANDWIDTH<").unwrap_err().to_string();
    assert!(told.contains("Bandwidth is missing; give a number from 1 to"), "{told}");
    let told = flows("<IO_Scenario>", "<IO_Scenario><Other/>").unwrap_err().to_string();
    assert_eq!(told, "w.xml: line 1: `Other` is no flow of MQSim");
}

#[test]
fn the_flows_of_a_scenario_run_at_once_in_parts_of_the_device() {
    let second = FLOWS.split_once("<IO_Flow_Parameter_Set_Synthetic>").unwrap().1;
    let second = second.split_once("</IO_Scenario>").unwrap().0;
    let flows = FLOWS.replace(
        "</IO_Scenario>",
        &format!("<IO_Flow_Parameter_Set_Synthetic>{second}</IO_Scenario>"),
    );
    let import = import_with(&flows).unwrap();
    let [Workload::Flows(scenario)] = import.workloads.as_slice() else {
        panic!("{:?}", import.workloads)
    };
    let names: Vec<&str> = scenario.flows.iter().map(|flow| flow.name()).collect();
    assert_eq!(names, ["mine-flow-1", "mine-flow-3"]);
    let places = scenario.flows.iter().map(|flow| (flow.workload.begin, flow.workload.span));
    // The traces have the second and the last of the four parts.
    let begins = [Begin::default(), Begin::Share(0.5)];
    let expected = begins.map(|begin| (begin, Span::Share(0.125)));
    assert_eq!(places.collect::<Vec<_>>(), expected);
    assert!(import.remarks.iter().any(|remark| remark.contains("traces do not run together")));
    let files = import.files().unwrap();
    let file = files.iter().find(|file| file.name == "mine-scenario-1").unwrap();
    assert_eq!(from_text::<Workload>("s.toml", &file.text).unwrap(), import.workloads[0]);
}

#[test]
fn what_mqsim_accepts_is_read() {
    let flows = FLOWS.replace("RANDOM_HOTCOLD", "UNIFORM_RANDOM");
    let flows = flows.replacen("</Read_Percentage>", "</Read_Percent>", 1);
    let import = import_with(&flows).unwrap();
    let [Workload::Flows(scenario)] = import.workloads.as_slice() else {
        panic!("{:?}", import.workloads)
    };
    let flow = &scenario.flows[0].workload;
    assert_eq!((flow.pattern, flow.read_fraction), (Pattern::Random, 0.3));
    let renamed = "UNIFORM_RANDOM of MQSim's first versions is read as RANDOM_UNIFORM";
    assert!(import.remarks.iter().any(|remark| remark.contains(renamed)), "{:?}", import.remarks);
    let closed = "w.xml: line 6: `</Read_Percent>` closes `Read_Percentage` of line 6, as in MQSim";
    assert!(import.remarks.iter().any(|remark| remark == closed), "{:?}", import.remarks);
    let fast = imported(&CONFIGURATION.replace(">333<", ">1200<")).unwrap();
    assert_eq!(fast.device.bus.bytes_per_second, 1_200_000_000);
    let told = "Channel_Transfer_Rate 1200: MQSim rounds the time of a transfer down to 0 ns";
    assert!(fast.remarks.iter().any(|remark| remark.starts_with(told)), "{:?}", fast.remarks);
}

#[test]
fn what_has_no_counterpart_is_named_with_its_value() {
    let import = imported(CONFIGURATION).unwrap();
    let left = |name: &str| {
        let found = import.without_counterpart.iter().find(|(_, left)| left.parameter == name);
        found.map(|(_, left)| (left.value.as_str(), left.instead))
    };
    assert_eq!(left("GC_Exec_Threshold").unwrap().0, "0.05");
    assert_eq!(left("Surprise"), Some(("yes", "not known here")));
    assert_eq!(left("Flash_Channel_Count"), None);
    assert!(import.files().unwrap()[0].text.contains("#   GC_Exec_Threshold = 0.05: "));
}

#[test]
fn the_files_are_read_as_they_were_made() {
    let import = imported(CONFIGURATION).unwrap();
    let files = import.files().unwrap();
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["mine", "mine-layout", "mine-scenario-1"]);
    let device: DeviceSpec = from_text("mine.toml", &files[0].text).unwrap();
    assert_eq!(
        (&device.geometry, device.default_layout.as_str()),
        (&import.device.geometry, "./mine-layout.toml")
    );
    assert_eq!(from_text::<Layout>("l.toml", &files[1].text).unwrap(), import.layout);
    let scheme = "<Plane_Allocation_Scheme>P\nL = 3</Plane_Allocation_Scheme><Seed>";
    let broken = imported(&CONFIGURATION.replace("<Seed>", scheme)).unwrap().files().unwrap();
    assert!(from_text::<DeviceSpec>("mine.toml", &broken[0].text).is_ok(), "{}", broken[0].text);
    assert_eq!(from_text::<Workload>("w.toml", &files[2].text).unwrap(), import.workloads[0]);
}

#[test]
fn mistakes_are_named_with_file_line_and_remedy() {
    let problem = |from: &str, to: &str| {
        assert!(CONFIGURATION.contains(from), "{from}");
        imported(&CONFIGURATION.replace(from, to)).unwrap_err().to_string()
    };
    let told = problem(">RGA<", ">GREED<");
    assert!(
        told.starts_with("c.xml: line 17: GC_Block_Selection_Policy is `GREED`; known are GREEDY"),
        "{told}"
    );
    let told = problem(">8192<", ">many<");
    assert!(
        told.contains("Page_Capacity is `many`; it must be a number from 1 to 1048576"),
        "{told}"
    );
    assert!(problem("Chip_No_Per_Channel", "Chips").contains("Chip_No_Per_Channel is missing"));
    assert!(problem("</Flash_Parameter_Set>", "").contains("ends inside of"));
    assert!(problem("Execution_Parameter_Set", "Sets").contains("the outermost element is `Sets`"));
    assert!(problem(">MLC<", ">PLC<").contains("known are SLC, MLC, TLC"));
    let whole = |text: &str| import("a", ("c.xml", text), None).unwrap_err().to_string();
    assert!(whole("<Execution_Parameter_Set><Seed").contains("this is no XML"));
    assert!(whole("").contains("the file has no element"));
    assert!(whole("<Execution_Parameter_Set><Seed>1").contains("ends inside of `Seed`"));
}

#[test]
fn any_text_is_imported_or_refused() {
    let seed = 0x4d51;
    println!("seed {seed}");
    let mut rng = Rng::seeded(seed);
    let mut refused = 0;
    for _ in 0..2000 {
        let mut text = CONFIGURATION.as_bytes().to_vec();
        for _ in 0..=rng.below(4) {
            let at = rng.below(text.len() as u64) as usize;
            match rng.below(3) {
                0 => text[at] = rng.below(256) as u8,
                1 => text.truncate(at.max(1)),
                _ => _ = text.remove(at),
            }
        }
        refused += u32::from(imported(&String::from_utf8_lossy(&text)).is_err());
    }
    assert!(refused > 100, "{refused}");
}
