#include "record/devices.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/fd.h"
#include "base/nearest.h"
#include "profile/filter.h"

namespace skbtrail::record {
namespace fs = std::filesystem;
namespace {

void add_own_devices(std::vector<Device>& devices, const std::string& where) {
  struct if_nameindex* names = ::if_nameindex();
  if (names == nullptr) return;
  for (const struct if_nameindex* one = names; one->if_index != 0; ++one) {
    devices.push_back({one->if_name, where});
  }
  ::if_freenameindex(names);
}

using NamespaceId = std::pair<dev_t, ino_t>;

// Looks into each namespace once.
class Namespaces {
 public:
  explicit Namespaces(Devices& devices) : devices_(devices) { is_new("/proc/self/ns/net"); }

  void visit(const fs::path& file, const std::string& where) {
    if (!is_new(file)) return;
    const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    // setns() moves only the calling thread, and this thread ends here.
    if (!fd || ::setns(fd.get(), CLONE_NEWNET) != 0) {
      devices_.complete = false;
      return;
    }
    add_own_devices(devices_.all, where);
  }

 private:
  bool is_new(const fs::path& file) {
    struct stat info {};
    if (::stat(file.c_str(), &info) != 0) return false;
    return seen_.insert({info.st_dev, info.st_ino}).second;
  }

  Devices& devices_;
  std::set<NamespaceId> seen_;
};

void add_other_namespaces(Devices& devices) {
  Namespaces namespaces(devices);
  std::error_code error;
  // Names first, as `ip netns` keeps them: they say more than a process id.
  for (const auto& entry : fs::directory_iterator("/run/netns", error)) {
    namespaces.visit(entry.path(), "netns " + entry.path().filename().string());
  }
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    namespaces.visit(entry.path() / "ns/net", "namespace of pid " + name);
  }
}

}  // namespace

Devices find_devices() {
  Devices devices;
  add_own_devices(devices.all, "");
  std::thread([&devices] { add_other_namespaces(devices); }).join();
  return devices;
}

Result<void> check_devices(std::span<const std::string> names, const Devices& devices) {
  for (const std::string& name : names) {
    if (!is_device_name(name)) return fail(ErrorKind::usage, "'{}' is no device name", name);
    const auto has_name = [&](const Device& device) { return device.name == name; };
    if (!devices.complete || std::any_of(devices.all.begin(), devices.all.end(), has_name))
      continue;
    std::vector<std::string> known;
    std::string list;
    for (const Device& device : devices.all) {
      known.push_back(device.name);
      list += "\n  " + device.name + (device.where.empty() ? "" : " (" + device.where + ")");
    }
    return fail(ErrorKind::usage, "there is no network device '{}'{}\nthere are:{}", name,
                did_you_mean(name, known), list);
  }
  return {};
}

}  // namespace skbtrail::record
