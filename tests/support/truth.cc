#include "support/truth.h"

#include <boost/json.hpp>
#include <numeric>
#include <stdexcept>

#include "support/files.h"

namespace skbtrail::test {
namespace {

namespace json = boost::json;

std::string text(const json::object& object, const char* key) {
  return std::string(object.at(key).as_string());
}

std::uint64_t number(const json::object& object, const char* key) {
  return object.at(key).to_number<std::uint64_t>();
}

std::vector<std::uint64_t> numbers(const json::value& array) {
  return json::value_to<std::vector<std::uint64_t>>(array);
}

Truth::Device device(const json::object& object) {
  return {text(object, "namespace"),  text(object, "device"),       number(object, "rx_packets"),
          number(object, "rx_bytes"), number(object, "rx_dropped"), number(object, "tx_packets"),
          number(object, "tx_bytes"), number(object, "tx_dropped")};
}

void read_recorded(const json::object& recorded, Truth& truth) {
  truth.command = text(recorded, "command");
  truth.clock = text(recorded, "clock");
  truth.events = number(recorded, "events");
  truth.lost = number(recorded, "lost");
  for (const json::value& cpu : recorded.at("cpus").as_array()) {
    truth.cpu_events.push_back(number(cpu.as_object(), "events"));
    truth.cpu_lost.push_back(number(cpu.as_object(), "lost"));
  }
}

void read_counters(const json::object& all, Truth& truth) {
  for (const json::value& one : all.at("devices").as_array()) {
    truth.devices.push_back(device(one.as_object()));
  }
  for (const json::value& cpu : all.at("softnet").as_array()) {
    truth.processed.push_back(number(cpu.as_object(), "processed"));
  }
  for (const json::value& one : all.at("interrupts").as_array()) {
    const json::object& line = one.as_object();
    truth.interrupts[line.at("irq").to_number<std::int32_t>()] = {text(line, "name"),
                                                                  numbers(line.at("cpus"))};
  }
  for (const auto& vector : all.at("softirqs").as_object()) {
    truth.softirqs[vector.key()] = numbers(vector.value());
  }
  for (const json::value& one : all.at("queue_drops").as_array()) {
    truth.queue_drops[text(one.as_object(), "device")] += number(one.as_object(), "dropped");
  }
  for (const auto& space : all.at("snmp").as_object()) {
    for (const auto& counter : space.value().as_object()) {
      truth.snmp[space.key()][counter.key()] = counter.value().to_number<std::int64_t>();
    }
  }
}

}  // namespace

std::int64_t Truth::snmp_total(const std::string& name) const {
  return std::accumulate(snmp.begin(), snmp.end(), std::int64_t{0},
                         [&](std::int64_t sum, const auto& space) {
                           const auto found = space.second.find(name);
                           return sum + (found == space.second.end() ? 0 : found->second);
                         });
}

Truth truth_of(const std::filesystem::path& capture) {
  const std::filesystem::path path = std::filesystem::path(capture).replace_extension(".json");
  try {
    const json::value document = json::parse(read_file(path));
    const json::object& all = document.as_object();
    Truth truth;
    truth.kernel = text(all, "kernel");
    truth.scenario = text(all, "scenario");
    truth.about = text(all, "about");
    truth.network = text(all, "network");
    read_recorded(all.at("recorded").as_object(), truth);
    read_counters(all, truth);
    for (const json::value& one : all.at("workers").as_array()) {
      const json::object& worker = one.as_object();
      truth.workers[worker.at("pid").to_number<Pid>()] = {
          text(worker, "comm"), number(worker, "voluntary"), number(worker, "involuntary")};
    }
    return truth;
  } catch (const std::exception& error) {
    throw std::runtime_error(path.string() + ": " + error.what());
  }
}

}  // namespace skbtrail::test
