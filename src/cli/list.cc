// skbtrail list: what can be named on the command line of record.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/arguments.h"
#include "cli/exit_status.h"
#include "cli/verb.h"
#include "profile/search.h"
#include "record/devices.h"
#include "tracefs/access.h"
#include "tracefs/plan.h"

namespace skbtrail::cli {
namespace {

Arguments make_arguments() {
  Arguments arguments(
      {"list", "profiles | profile NAME | events [PATTERN] | devices",
       "Lists what 'skbtrail record' can be told: profiles, the events one of them means\n"
       "on this kernel, all events of this kernel, network devices.",
       "  skbtrail list profiles\n"
       "  sudo skbtrail list profile net\n"
       "  sudo skbtrail list events 'tcp:*'"});
  arguments.positional("what", 2);
  return arguments;
}

Result<tracefs::KernelEvents> kernel_events() {
  Result<std::filesystem::path> folder = tracefs::tracing_folder();
  if (!folder) return pass(folder);
  Result<void> usable = tracefs::check_access(*folder);
  if (!usable) return pass(usable);
  return tracefs::KernelEvents::read(*folder);
}

// "38 events", or what is known without the kernel's list.
std::string extent(const Profile& profile, const Result<tracefs::KernelEvents>& kernel) {
  if (!kernel) return fmt::format("{} rules", profile.rules.size());
  const Result<tracefs::Plan> plan = tracefs::make_plan(profile.rules, *kernel, {});
  return fmt::format("{} events", plan ? plan->events.size() : 0);
}

Result<void> list_profiles() {
  const Folders folders = profile_folders();
  const std::vector<std::string> names = profile_names(folders);
  if (names.empty()) {
    std::string searched;
    for (const std::filesystem::path& folder : folders) searched += "\n  " + folder.string();
    return fail(ErrorKind::usage, "there are no profiles\nsearched:{}", searched);
  }
  const Result<tracefs::KernelEvents> kernel = kernel_events();
  for (const std::string& name : names) {
    const Result<Profile> profile = load_profile(name, folders);
    if (!profile) {
      say(fmt::format("skbtrail: {}\n", profile.error().message));
      continue;
    }
    fmt::print("{:<10} {:>10}  {}\n", name, extent(*profile, kernel), profile->about);
  }
  return {};
}

Result<void> list_profile(const std::string& name) {
  const Result<Profile> profile = load_profile(name, profile_folders());
  if (!profile) return tl::unexpected(profile.error());
  Result<tracefs::KernelEvents> kernel = kernel_events();
  if (!kernel) return pass(kernel);
  Result<tracefs::Plan> plan = tracefs::make_plan(profile->rules, *kernel, {});
  if (!plan) return pass(plan);
  for (const tracefs::PlannedEvent& event : plan->events) {
    fmt::print("{}{}{}\n", event.name.text(), event.filter.empty() ? "" : "  ", event.filter);
  }
  for (const std::string& missing : plan->missing)
    fmt::print("# not in this kernel: {}\n", missing);
  return {};
}

Result<void> list_events(const std::string& pattern) {
  Result<tracefs::KernelEvents> kernel = kernel_events();
  if (!kernel) return pass(kernel);
  const std::size_t colon = pattern.find(':');
  const std::string system = pattern.substr(0, colon);
  const std::string event = colon == std::string::npos ? "*" : pattern.substr(colon + 1);
  const std::vector<tracefs::EventName> names = kernel->matching(system, event);
  if (names.empty()) {
    return fail(ErrorKind::unsupported, "this kernel has no event '{}'{}", pattern,
                kernel->suggestion(pattern));
  }
  for (const tracefs::EventName& name : names) fmt::print("{}\n", name.text());
  return {};
}

Result<void> list_devices() {
  const record::Devices devices = record::find_devices();
  for (const record::Device& device : devices.all) {
    fmt::print("{:<16}{}\n", device.name, device.where.empty() ? "" : " " + device.where);
  }
  if (!devices.complete) {
    say("skbtrail: some network namespaces cannot be looked into without root\n");
  }
  return {};
}

Result<void> run(const std::vector<std::string>& words) {
  const std::string what = words.empty() ? "profiles" : words[0];
  const std::optional<std::string> name = words.size() > 1 ? std::optional(words[1]) : std::nullopt;
  if (what == "profiles" && !name) return list_profiles();
  if (what == "profile" && name) return list_profile(*name);
  if (what == "events") return list_events(name.value_or("*"));
  if (what == "devices" && !name) return list_devices();
  return usage_error("list",
                     fmt::format("cannot list '{}{}{}'", what, name ? " " : "", name.value_or("")));
}

}  // namespace

int list(std::span<const std::string> words) {
  const Arguments arguments = make_arguments();
  const Result<Parsed> parsed = arguments.parse(words);
  if (!parsed) return complain(parsed.error());
  if (parsed->has("help")) return arguments.print_help();
  const Result<void> done = run(parsed->all("what"));
  return done ? kOk : complain(done.error());
}

}  // namespace skbtrail::cli
