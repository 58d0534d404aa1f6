# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The texts of the page of the report, in each language. Causes, remedies and notes are in English in the report itself."""

from __future__ import annotations

from typing import Mapping

LANGUAGES = ("en", "zh-CN")

#: Key -> the text in each of LANGUAGES. Names in braces are replaced by values.
TEXTS: Mapping[str, tuple[str, str]] = {
    "title": ("GPU fleet report", "GPU 集群报告"),
    "skip": ("Skip to the content", "跳到正文"),
    "contents": ("Contents", "目录"),
    "comma": (", ", "，"),
    "semicolon": ("; ", "；"),
    "colon": (": ", "："),
    "none": ("none", "无"),
    "unknown": ("unknown", "未知"),
    "cluster": ("the cluster", "整个集群"),
    "more": ("and {count} more, which the JSON report lists", "另有 {count} 项，见 JSON 报告"),
    "more_entries": ("{count} more entries are left out of this page.", "本页省略了另外 {count} 条。"),
    "of": ("{part} of {whole}", "{part} / {whole}"),
    "percent": ("{percent} %", "{percent}%"),
    # the verdict
    "verdict_ok": (
        "No problem was found. Nodes: {nodes}, GPUs: {gpus}.",
        "未发现问题：共 {nodes} 个节点、{gpus} 块 GPU。",
    ),
    "verdict_problems": (
        "Problems found: {problems}, on {hosts} of {nodes} nodes. The worst: {worst}.",
        "发现 {problems} 个问题，涉及 {nodes} 个节点中的 {hosts} 个。最严重的是：{worst}。",
    ),
    "verdict_left_out": (
        "Unreachable hosts that the run has left out: {count}.",
        "另有 {count} 台主机无法连接，本次运行已略过。",
    ),
    "numbers": ("Key figures", "关键数字"),
    "number_nodes": ("nodes without a problem", "无问题的节点"),
    "number_gpus": ("GPUs that nodes offer to pods", "可供 Pod 使用的 GPU"),
    "number_problems": ("problems", "问题"),
    "number_smoke": ("nodes that passed the smoke test", "通过冒烟测试的节点"),
    # sections
    "problems": ("Problems", "问题"),
    "changes": ("Changes since the earlier report", "与上次报告相比的变化"),
    "map": ("Fleet map", "GPU 分布图"),
    "versions": ("Products and versions", "产品与版本"),
    "allocation": ("Allocation", "分配情况"),
    "drift": ("Drift", "配置漂移"),
    "cost": ("Cost", "费用"),
    "nodes": ("Nodes", "节点详情"),
    "about": ("About this report", "关于本报告"),
    # problems
    "problems_none": ("No problem was found.", "未发现问题。"),
    "cause": ("Cause: {text}", "原因：{text}"),
    "remedy": ("Remedy: {text}", "处理办法：{text}"),
    "hosts_count": ("Hosts: {count}", "主机数：{count}"),
    "english": ("", "原因、处理办法和备注取自报告，原文为英文。"),
    "code_api": ("The API server does not answer", "API 服务器没有响应"),
    "code_unreachable": ("The host could not be examined", "无法检查主机"),
    "code_gpu_lost": ("A GPU is lost", "GPU 丢失"),
    "code_driver_error": ("The driver reports an error", "驱动程序报错"),
    "code_driver_missing": ("The driver is missing", "未安装驱动程序"),
    "code_no_gpu": ("The host has no GPU", "主机上没有 GPU"),
    "code_node": ("The node does not offer all of its GPUs", "节点未提供全部 GPU"),
    "code_smoke_test": ("The smoke test failed", "冒烟测试失败"),
    "code_runtime": ("The container runtime does not work", "容器运行时异常"),
    "code_toolkit": ("The NVIDIA Container Toolkit is missing", "缺少 NVIDIA Container Toolkit"),
    "code_runtime_class": ("The RuntimeClass is missing or wrong", "RuntimeClass 缺失或有误"),
    "code_cgroup_driver": ("The cgroup drivers differ", "cgroup 驱动不一致"),
    "code_configuration": ("The configuration cannot be read", "无法读取配置"),
    "code_drift": ("The configuration has drifted", "配置发生漂移"),
    "code_restart_due": ("A restart is due", "需要重启服务"),
    "code_maintenance": ("The node is still cordoned", "节点仍被标记为不可调度"),
    # changes
    "changes_none": ("Nothing has changed.", "没有变化。"),
    "change": ("Change", "变化"),
    "before": ("Before", "之前"),
    "after": ("Now", "现在"),
    "change_problem_new": ("new problem", "新出现的问题"),
    "change_problem_solved": ("problem solved", "已解决的问题"),
    "change_node_added": ("node added, with GPUs", "新增节点（GPU 数）"),
    "change_node_removed": ("node removed, with GPUs", "移除节点（GPU 数）"),
    "change_gpu_added": ("GPU added", "新增 GPU"),
    "change_gpu_removed": ("GPU removed", "移除 GPU"),
    "change_driver": ("driver version", "驱动程序版本"),
    "change_cuda": ("CUDA version of the driver", "驱动程序支持的 CUDA 版本"),
    "change_runtime": ("container runtime", "容器运行时"),
    "change_toolkit": ("toolkit version", "工具包版本"),
    "change_resources": ("allocatable resources", "可分配资源"),
    "change_slices": ("MIG slices", "MIG 切片"),
    "change_smoke_test": ("smoke test", "冒烟测试"),
    # the fleet map
    "map_hint": (
        "A row for each node, a cell for each GPU. Used: pods hold all of it. Shared: pods hold a part of it.",
        "每行一个节点，每格一块 GPU。已用：整块被 Pod 占用；共享：部分被 Pod 占用。",
    ),
    "map_place": (
        "Where the API does not name the GPUs that pods hold, the number of cells is right and their order is not known.",
        "如果 API 没有给出 Pod 所占用的具体 GPU，则格数准确，次序未知。",
    ),
    "map_unknown": (
        "No allocation was given, so that the use of the GPUs is not known.",
        "未提供分配数据，因此无法得知 GPU 的使用情况。",
    ),
    "legend": ("Legend", "图例"),
    "node": ("Node", "节点"),
    "host": ("Host", "主机"),
    "gpus": ("GPUs", "GPU"),
    "state": ("State", "状态"),
    "state_free": ("free", "空闲"),
    "state_used": ("used", "已用"),
    "state_shared": ("shared", "共享"),
    "state_sick": ("sick or not offered", "故障或未提供"),
    "state_unknown": ("use unknown", "使用情况未知"),
    "state_count": ("{count} {state}", "{state} {count}"),
    "state_ok": ("ok", "正常"),
    "state_problem": ("problem", "有问题"),
    "state_unexamined": ("not examined", "未检查"),
    # versions
    "products": ("GPUs and drivers", "GPU 与驱动程序"),
    "software": ("Container runtimes", "容器运行时"),
    "product": ("Product", "产品"),
    "driver": ("Driver", "驱动程序"),
    "cuda": ("CUDA", "CUDA"),
    "runtime": ("Container runtime", "容器运行时"),
    "version": ("Version", "版本"),
    "toolkit": ("Toolkit", "工具包"),
    "nodes_count": ("Nodes", "节点数"),
    "gpus_count": ("GPUs", "GPU 数"),
    "remark": ("Remark", "说明"),
    "outlier": ("Differs from most nodes", "与多数节点不同"),
    # allocation
    "allocation_none": (
        "No allocation was given. The table has what the nodes offer.",
        "未提供分配数据。下表为节点提供的资源。",
    ),
    "allocation_empty": ("The nodes offer no GPU resources.", "节点没有提供 GPU 资源。"),
    "strategies": ("By sharing strategy", "按共享策略"),
    "strategy": ("Sharing strategy", "共享策略"),
    "resource": ("Resource", "资源"),
    "allocated": ("Allocated", "已分配"),
    "allocatable": ("Allocatable", "可分配"),
    "share": ("Share", "占比"),
    "namespaces": ("By namespace", "按命名空间"),
    "namespace": ("Namespace", "命名空间"),
    "pods_count": ("Pods", "Pod 数"),
    "findings": ("Findings", "发现的异常"),
    "unit_GPUs": ("GPUs", "块 GPU"),
    "unit_replicas": ("replicas", "个副本"),
    "unit_slices": ("slices", "个切片"),
    "unit_percent": ("percent of a GPU", "（GPU 百分比）"),
    "unit_devices": ("devices", "个设备"),
    "unit_units": ("units", "个单位"),
    # drift
    "drift_none": (
        "The configuration of each container runtime is as declared.",
        "所有容器运行时的配置均与声明一致。",
    ),
    "drift_hint": (
        "Lines with + are what prepare_gpu_nodes would write.",
        "以 + 开头的行是 prepare_gpu_nodes 将写入的内容。",
    ),
    # cost
    "hours_allocated": ("Allocated GPU hours", "已分配 GPU 小时"),
    "hours_idle": ("Idle GPU hours", "空闲 GPU 小时"),
    "hours_wasted": ("Wasted GPU hours", "浪费的 GPU 小时"),
    "cost_hint": ("A wasted hour is allocated and not used.", "浪费是指已分配而未使用。"),
    "cost_in": ("Cost in {currency}", "费用（{currency}）"),
    "idle": ("not allocated", "未分配"),
    "total": ("Total", "合计"),
    # nodes
    "details_some": (
        "Of {whole} nodes, {part} are listed here: with more than {most} nodes, only those with problems. The JSON report has all.",
        "此处列出 {whole} 个节点中的 {part} 个：节点超过 {most} 个时只列出有问题的节点。完整内容见 JSON 报告。",
    ),
    "index": ("Index", "编号"),
    "memory": ("Memory", "显存"),
    "slices": ("MIG slices", "MIG 切片"),
    "uuid": ("UUID", "UUID"),
    "pci": ("PCI address", "PCI 地址"),
    "handlers": ("Runtime handlers", "运行时处理程序"),
    "smoke_test": ("Smoke test", "冒烟测试"),
    "smoke_passed": ("passed", "通过"),
    "smoke_failed": ("failed", "失败"),
    "smoke_skipped": ("skipped", "已跳过"),
    "smoke_not run": ("not run", "未运行"),
    "log": ("Last lines of its log", "日志末尾"),
    "pods": ("Pods that hold GPUs", "占用 GPU 的 Pod"),
    "pod": ("Pod", "Pod"),
    "gpu_indexes": ("GPU", "GPU"),
    # about
    "about_source": ("JSON report", "JSON 报告"),
    "about_written": ("Last changed", "最后更改时间"),
    "about_schema": ("Schema", "格式"),
    "about_made": ("Made by", "生成工具"),
    "about_images": ("Images of the device plugins", "设备插件镜像"),
    "about_class": ("RuntimeClass", "RuntimeClass"),
    "about_fakes": ("Fakes of vendors' programs", "厂商程序的替代品（仅供测试）"),
    "about_left_out": ("Unreachable hosts, left out", "无法连接而略过的主机"),
    "about_notes": ("Notes", "备注"),
    "about_limits": (
        "The page shows what one run has found. It is not a live view: allocations change all the time.",
        "本页反映一次运行的结果，并非实时视图：分配情况随时都在变化。",
    ),
}


def get_texts(language: str) -> dict[str, str]:
    """Return the texts in a language of LANGUAGES by key. Raises ValueError for another language."""
    place = LANGUAGES.index(language)
    return {key: texts[place] for key, texts in TEXTS.items()}
