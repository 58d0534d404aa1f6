# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An nvidia-smi that is made up, in the format of driver 570."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

from gpu import smi_query

# An H100 that is split, in a machine with NVSwitches, with the counters of SRAM apart.
LOG = """\
<nvidia_smi_log>
  <driver_version>570.124.06</driver_version>
  <cuda_version>12.8</cuda_version>
  <gpu id="00000000:1B:00.0">
    <product_name>NVIDIA H100 80GB HBM3</product_name>
    <product_brand>NVIDIA</product_brand>
    <product_architecture>Hopper</product_architecture>
    <uuid>{uuid}</uuid>
    <serial>N/A</serial>
    <persistence_mode>Enabled</persistence_mode>
    <compute_mode>Default</compute_mode>
    <gpu_virtualization_mode><virtualization_mode>None</virtualization_mode></gpu_virtualization_mode>
    <mig_mode><current_mig>Enabled</current_mig><pending_mig>Disabled</pending_mig></mig_mode>
    <mig_devices>
      <mig_device>
        <index>0</index><gpu_instance_id>1</gpu_instance_id><compute_instance_id>0</compute_instance_id>
        <fb_memory_usage><total>40448 MiB</total></fb_memory_usage>
      </mig_device>
      <mig_device>
        <index>1</index><gpu_instance_id>2</gpu_instance_id><compute_instance_id>0</compute_instance_id>
        <fb_memory_usage><total>20096 MiB</total></fb_memory_usage>
      </mig_device>
    </mig_devices>
    <pci>
      <pci_device_id>233010DE</pci_device_id>
      <pci_gpu_link_info><link_widths><max_link_width>16x</max_link_width></link_widths></pci_gpu_link_info>
    </pci>
    <clocks_event_reasons>
      <clocks_event_reason_gpu_idle>Not Active</clocks_event_reason_gpu_idle>
      <clocks_event_reason_sw_power_cap>Active</clocks_event_reason_sw_power_cap>
      <clocks_event_reason_hw_slowdown>Not Active</clocks_event_reason_hw_slowdown>
      <clocks_event_reason_display_clocks_setting>Active</clocks_event_reason_display_clocks_setting>
    </clocks_event_reasons>
    <fb_memory_usage><total>81559 MiB</total></fb_memory_usage>
    <ecc_mode><current_ecc>Enabled</current_ecc><pending_ecc>Disabled</pending_ecc></ecc_mode>
    <ecc_errors>
      <volatile>
        <sram_correctable>0</sram_correctable>
        <sram_uncorrectable_parity>0</sram_uncorrectable_parity>
        <sram_uncorrectable_secded>0</sram_uncorrectable_secded>
        <dram_correctable>0</dram_correctable>
        <dram_uncorrectable>0</dram_uncorrectable>
      </volatile>
    </ecc_errors>
    <retired_pages><pending_retirement>No</pending_retirement></retired_pages>
    <temperature><gpu_temp>35 C</gpu_temp></temperature>
    <gpu_power_readings><requested_power_limit>700.00 W</requested_power_limit></gpu_power_readings>
    <fabric>
      <state>Completed</state><status>Success</status>
      <cliqueId>0</cliqueId><clusterUuid>00000000-0000-0000-0000-000000000000</clusterUuid>
    </fabric>
    <processes>
      <process_info>
        <gpu_instance_id>2</gpu_instance_id><compute_instance_id>0</compute_instance_id>
        <pid>4242</pid><type>C</type><process_name>/usr/bin/python3</process_name><used_memory>2048 MiB</used_memory>
      </process_info>
      <process_info>
        <gpu_instance_id>1</gpu_instance_id><compute_instance_id>0</compute_instance_id>
        <pid>4242</pid><type>C</type><process_name>/usr/bin/python3</process_name><used_memory>10240 MiB</used_memory>
      </process_info>
      <process_info>
        <gpu_instance_id>N/A</gpu_instance_id><compute_instance_id>N/A</compute_instance_id>
        <pid>977</pid><type>C+G</type><process_name></process_name><used_memory>61 MiB</used_memory>
      </process_info>
    </processes>
  </gpu>
</nvidia_smi_log>
"""
LISTING = """\
GPU 0: NVIDIA H100 80GB HBM3 (UUID: {uuid})
  MIG 3g.40gb     Device  0: (UUID: {mig[0]})
  MIG 2g.20gb     Device  1: (UUID: {mig[1]})
"""
STATUS = """\
GPU 0: NVIDIA H100 80GB HBM3 (UUID: {uuid})
\t Link 0: 26.562 GB/s
\t Link 1: <inactive>
"""
TOTALS = "{uuid}, 9.0, 1, 20, 3, 40\n"
REMOTES = """\
GPU 0: NVIDIA H100 80GB HBM3 (UUID: {uuid})
\t Link 0: 00000000:C4:00.0
\t Link 1: 00000000:C5:00.0
"""
VERSIONS = """\
NVIDIA-SMI version  : 570.124.06
NVML version        : 570.124
DRIVER version      : 570.124.06
CUDA Version        : 12.8
"""
HEADING = "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
MATRIX = f"""\
{HEADING}\
GPU0\t X \tNV18\tSYS\tNODE\t16-31,48-63\t1\t\t2
GPU1\tNV18\t X \tSYS\tNODE\t16-31,48-63\t1\t\t3
GPU2\tSYS\tSYS\t X \tPIX\t0-15,32-47\t0\t\tN/A
NIC0\tNODE\tNODE\tPIX\t X \t\t\t\t

Legend:

  X    = Self
  NV#  = Connection traversing a bonded set of # NVLinks
"""
PCI_MATRIX = MATRIX.replace("NV18", "PXB")
INSTANCES = """\
+---------------------------------------------------------+
| GPU instances:                                          |
| GPU   Name               Profile  Instance   Placement  |
|                            ID       ID       Start:Size |
|=========================================================|
|   0  MIG 1g.10gb           19        3          5:1     |
+---------------------------------------------------------+
|   0  MIG 2g.20gb           14        2          3:2     |
+---------------------------------------------------------+
|   0  MIG 3g.40gb            9        1          0:3     |
+---------------------------------------------------------+
"""
PROFILES = """\
+-----------------------------------------------------------------------------+
| GPU instance profiles:                                                      |
| GPU   Name             ID    Instances   Memory     P2P    SM    DEC   ENC  |
|                              Free/Total   GiB              CE    JPEG  OFA  |
|=============================================================================|
|   0  MIG 1g.10gb       19     1/7        9.75       No     16     1     0   |
|                                                             1     1     0   |
+-----------------------------------------------------------------------------+
|   0  MIG 1g.10gb+me    20     1/1        9.75       No     16     1     0   |
|                                                             1     1     1   |
+-----------------------------------------------------------------------------+
|   0  MIG 2g.20gb       14     0/3        19.62      No     32     2     0   |
|                                                             2     2     0   |
+-----------------------------------------------------------------------------+
|   0  MIG 3g.40gb        9     0/2        39.50      No     60     3     0   |
|                                                             3     3     0   |
+-----------------------------------------------------------------------------+
"""
SAID = {
    ("-q", "-x"): LOG,
    smi_query.VERSIONS: VERSIONS,
    smi_query.LISTING: LISTING,
    smi_query.STATUS: STATUS,
    smi_query.REMOTES: REMOTES,
    smi_query.TOTALS: TOTALS,
    ("topo", "-m"): MATRIX,
    ("topo", "-mp"): PCI_MATRIX,
    smi_query.INSTANCES: INSTANCES,
    smi_query.PROFILES: PROFILES,
}


def parsed(text: str) -> ElementTree.Element:
    """A log."""
    return ElementTree.fromstring(text)  # noqa: S314 - the test's own


class Smi:
    """An nvidia-smi of the facts, whose words can be changed."""

    def __init__(self, gpu: dict[str, Any]) -> None:
        names = {"uuid": gpu["uuid"], "mig": [device["uuid"] for device in gpu["mig_devices"]]}
        self.said = {arguments: text.format(**names) for arguments, text in SAID.items()}

    def change(self, old: str, new: str) -> None:
        """Have *new* said in the place of *old*, a regular expression that has to be found."""
        times = 0
        for arguments, text in self.said.items():
            self.said[arguments], found = re.subn(old, new, text, count=1)
            times += found
        assert times == 1, f"{old} is said {times} times"

    def log(self) -> ElementTree.Element:
        """All that it says."""
        log = parsed(self.said["-q", "-x"])
        smi_query.complete(log, lambda arguments: self.said[tuple(arguments)])
        return log
