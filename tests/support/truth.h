// What is known about a capture in tests/data from others than skbtrail's readers: CAPTURE.json,
// written by tests/vm/truth.sh in the guest that recorded CAPTURE.dat.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "skbtrail/units.h"

namespace skbtrail::test {

// All numbers are differences over the recorded traffic; vectors have an entry per CPU.
struct Truth {
  struct Device {
    std::string network_namespace;
    std::string name;
    std::uint64_t rx_packets = 0;
    std::uint64_t rx_bytes = 0;
    std::uint64_t rx_dropped = 0;
    std::uint64_t tx_packets = 0;
    std::uint64_t tx_bytes = 0;
    std::uint64_t tx_dropped = 0;
  };
  struct Interrupt {
    std::string name;
    std::vector<std::uint64_t> cpus;
  };
  struct Worker {
    std::string comm;
    std::uint64_t voluntary = 0;
    std::uint64_t involuntary = 0;
  };

  std::string kernel;    // uname -r
  std::string scenario;  // of tests/vm/scenarios
  std::string about;
  std::string network;
  std::string command;  // "trace-cmd record -C mono ...", without file and workload
  std::string clock;
  std::uint64_t events = 0;  // as the recorder counted them
  std::uint64_t lost = 0;
  std::vector<std::uint64_t> cpu_events;  // as the ring buffer counted them
  std::vector<std::uint64_t> cpu_lost;
  std::vector<Device> devices;
  std::vector<std::uint64_t> processed;  // by softnet_stat
  std::map<std::int32_t, Interrupt> interrupts;
  std::map<std::string, std::vector<std::uint64_t>> softirqs;  // "NET_RX"; only those that ran
  std::map<std::string, std::uint64_t> queue_drops;            // by device
  std::map<Pid, Worker> workers;
  std::map<std::string, std::map<std::string, std::int64_t>> snmp;  // by network namespace

  // A packet passes several devices of one namespace, and each counts it.
  bool devices_are_stacked() const {
    return network == "container" || network == "vxlan" || network == "wireguard" ||
           has_silent_devices();
  }
  // All events of what they receive are their NIC's, where an rx_handler changes the device of the
  // skb (__netif_receive_skb_core(), net/core/dev.c); softnet_stat counts it once for each.
  bool has_silent_devices() const { return network == "one_arm"; }
  // IPsec in tunnel mode: outer and inner packet have the same device, which counts the outer one.
  bool is_received_twice() const { return network == "ipsec_tunnel"; }
  bool is_silent(const Device& device) const {
    return has_silent_devices() && device.name != "n0" && device.name != "n1";
  }
  // Of all network namespaces: "Ip.ForwDatagrams".
  std::int64_t snmp_total(const std::string& name) const;
};

// Throws with the path when there is none or it is not what truth.sh writes.
Truth truth_of(const std::filesystem::path& capture);

}  // namespace skbtrail::test
