#!/usr/bin/env python3
"""SoftFlash against MQSim on the same configuration: mean latency by queue depth, and on a trace.

Builds MQSim from a checkout of https://github.com/CMU-SAFARI/MQSim with make and g++, runs it with the ssdconfig.xml of the
checkout (the map in memory, no data cache), imports the same file with `softflash lab import mqsim`, and runs the same
requests. The figures `dies together` are of `die_interleaving = true`, which MQSim does not have."""

import pathlib
import re
import shutil
import subprocess
import sys

import common
from common import Scratch

EXAMPLES = """examples:
  git clone https://github.com/CMU-SAFARI/MQSim
  bench/against_mqsim.py --mqsim MQSim
  bench/against_mqsim.py --mqsim MQSim --depths 1,64 --requests 20000 --json"""

FLOW = """<MQSim_IO_Scenarios><IO_Scenario><IO_Flow_Parameter_Set_Synthetic>
<Priority_Class>HIGH</Priority_Class>
<Device_Level_Data_Caching_Mode>TURNED_OFF</Device_Level_Data_Caching_Mode>
<Channel_IDs>{channels}</Channel_IDs><Chip_IDs>{chips}</Chip_IDs><Die_IDs>{dies}</Die_IDs><Plane_IDs>{planes}</Plane_IDs>
<Initial_Occupancy_Percentage>75</Initial_Occupancy_Percentage>
<Working_Set_Percentage>80</Working_Set_Percentage>
<Synthetic_Generator_Type>QUEUE_DEPTH</Synthetic_Generator_Type>
<Read_Percentage>{read}</Read_Percentage>
<Address_Distribution>RANDOM_UNIFORM</Address_Distribution><Percentage_of_Hot_Region>0</Percentage_of_Hot_Region>
<Generated_Aligned_Addresses>true</Generated_Aligned_Addresses><Address_Alignment_Unit>16</Address_Alignment_Unit>
<Request_Size_Distribution>FIXED</Request_Size_Distribution>
<Average_Request_Size>16</Average_Request_Size><Variance_Request_Size>0</Variance_Request_Size>
<Seed>798</Seed><Average_No_of_Reqs_in_Queue>{depth}</Average_No_of_Reqs_in_Queue><Bandwidth>0</Bandwidth>
<Stop_Time>0</Stop_Time><Total_Requests_To_Generate>{requests}</Total_Requests_To_Generate>
</IO_Flow_Parameter_Set_Synthetic></IO_Scenario></MQSim_IO_Scenarios>
"""

TRACE = """<MQSim_IO_Scenarios><IO_Scenario><IO_Flow_Parameter_Set_Trace_Based>
<Priority_Class>HIGH</Priority_Class>
<Device_Level_Data_Caching_Mode>TURNED_OFF</Device_Level_Data_Caching_Mode>
<Channel_IDs>{channels}</Channel_IDs><Chip_IDs>{chips}</Chip_IDs><Die_IDs>{dies}</Die_IDs><Plane_IDs>{planes}</Plane_IDs>
<Initial_Occupancy_Percentage>70</Initial_Occupancy_Percentage>
<File_Path>{path}</File_Path><Percentage_To_Be_Executed>100</Percentage_To_Be_Executed>
<Relay_Count>1</Relay_Count><Time_Unit>NANOSECOND</Time_Unit>
</IO_Flow_Parameter_Set_Trace_Based></IO_Scenario></MQSim_IO_Scenarios>
"""

IDS = {"channels": "Flash_Channel_Count", "chips": "Chip_No_Per_Channel", "dies": "Die_No_Per_Chip", "planes": "Plane_No_Per_Die"}


def checked(command, **where):
    """Runs a command, which must succeed; MQSim waits for a key at its end."""
    ended = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True, **where)
    if ended.returncode != 0:
        sys.exit(f"{command[0]} failed: {ended.stderr.strip() or ended.stdout.strip()}")


class Mqsim:
    """MQSim, built in a copy of its checkout, and a configuration of it."""

    def __init__(self, checkout, scratch):
        if not (checkout / "ssdconfig.xml").is_file():
            sys.exit(f"{checkout}: no ssdconfig.xml there; give a checkout of MQSim with --mqsim")
        self.home = scratch / "mqsim"
        shutil.copytree(checkout, self.home, ignore=shutil.ignore_patterns(".git", "build"))
        print("building MQSim", file=sys.stderr)
        checked(["make", "-C", self.home, "-j2"])
        text = (self.home / "ssdconfig.xml").read_text()
        self.text = re.sub("<Ideal_Mapping_Table>[^<]*<", "<Ideal_Mapping_Table>true<", text)
        self.config = scratch / "mqsim.xml"
        self.config.write_text(self.text)
        self.ids = {name: ",".join(map(str, range(self.number(parameter)))) for name, parameter in IDS.items()}

    def number(self, parameter):
        return int(re.search(f"<{parameter}>([^<]*)<", self.text).group(1))

    def mean_us(self, flow):
        """The mean response of a flow, which MQSim rounds down to whole microseconds."""
        (self.home / "flow.xml").write_text(flow)
        checked([self.home / "MQSim", "-i", self.config, "-w", "flow.xml"], cwd=self.home)
        results = (self.home / "flow_scenario_1.xml").read_text()
        return float(re.search("<Device_Response_Time>([^<]*)<", results).group(1))


class Softflash:
    """The same configuration, imported."""

    def __init__(self, mqsim, scratch):
        self.home = scratch
        flows = scratch / "flows.xml"
        flows.write_text(FLOW.format(read=100, depth=1, requests=1, **mqsim.ids))
        checked([common.softflash(), "lab", "import", "mqsim", mqsim.config, "--workload", flows, "--out", scratch])
        layout = (scratch / "mqsim-layout.toml").read_text()
        self.layouts = [scratch / "mqsim-layout.toml", scratch / "together.toml"]
        self.layouts[1].write_text(layout.replace("die_interleaving = false", "die_interleaving = true"))

    def mean_us(self, kind, depth, requests):
        flow = (self.home / "mqsim-flow-1.toml").read_text()
        flow = re.sub("queue_depth = .*", f"queue_depth = {depth}", flow)
        flow = re.sub("read_fraction = .*", f"read_fraction = {1.0 if kind == 'read' else 0.0}", flow)
        (self.home / "flow.toml").write_text(flow)
        state = "fill" if kind == "read" else "none"
        command = ["bench", "sim", "--workload", self.home / "flow.toml", "--requests", requests, "--precondition", state]
        return [self.ran(command, layout)[f"{kind}_latency_ns"]["mean"] / 1000 for layout in self.layouts]

    def trace_us(self, path):
        command = ["replay", path, "--format", "mqsim", "--wrap", "--precondition", "fill"]
        kinds = [line.split()[4] for line in path.read_text().splitlines() if line.strip()]
        return [mean_of_all(self.ran(command, layout), kinds) for layout in self.layouts]

    def ran(self, command, layout):
        device = self.home / "mqsim.toml"
        command = [common.softflash(), *command, "--device", device, "--layout", layout, "-o", "json"]
        return common.run_json(list(map(str, command)))


def mean_of_all(outcome, kinds):
    """The mean latency of reads (kind 1) and writes (0) of a trace, in microseconds."""
    sums = [kinds.count(number) * outcome[f"{kind}_latency_ns"]["mean"] for number, kind in (("1", "read"), ("0", "write"))]
    return sum(sums) / len(kinds) / 1000


def main():
    chosen = common.arguments(
        __doc__,
        EXAMPLES,
        mqsim=("MQSim", "a checkout of MQSim"),
        depths=("1,4,16,64,256", "requests outstanding"),
        requests=(50_000, "requests of each run"),
    )
    depths = [int(depth) for depth in chosen.depths.split(",")]
    rows, results = [], []

    def add(name, theirs, ours):
        rows.append((f"{name}: MQSim, us", theirs, ""))
        rows.append((f"{name}: SoftFlash, us", ours[0], f"{ours[0] / theirs:.3f} of MQSim's"))
        rows.append((f"{name}: SoftFlash, dies together, us", ours[1], f"{ours[1] / theirs:.3f} of MQSim's"))
        results.append({"run": name, "mqsim_us": theirs, "softflash_us": ours[0], "softflash_together_us": ours[1]})

    with Scratch(chosen.dir) as scratch:
        scratch = pathlib.Path(scratch).resolve()
        mqsim = Mqsim(pathlib.Path(chosen.mqsim), scratch)
        softflash = Softflash(mqsim, scratch)
        for kind, percent in (("read", 100), ("write", 0)):
            for depth in depths:
                flow = FLOW.format(read=percent, depth=depth, requests=chosen.requests, **mqsim.ids)
                add(f"{kind}, depth {depth}", mqsim.mean_us(flow), softflash.mean_us(kind, depth, chosen.requests))
        for path in sorted((mqsim.home / "traces").glob("*.trace")):
            add(path.stem, mqsim.mean_us(TRACE.format(path=path, **mqsim.ids)), softflash.trace_us(path))
    common.report(chosen, "against_mqsim", rows, {"runs": results})


if __name__ == "__main__":
    common.run(main)
