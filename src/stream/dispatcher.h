// Hands the events of a trace to those who subscribed to them, decoded. The only way an analysis
// sees events: a tracker is any type with `void on(const EventHeader&, const E&)` for the events it
// takes.
//
//   Dispatcher dispatcher(catalog);
//   dispatcher.subscribe<NetifReceiveSkb>(rx);
//   while (merge.next(event)) dispatcher.dispatch(event);
//
// An event nobody subscribed to is counted and skipped before anything of it is decoded.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "skbtrail/decoder.h"
#include "skbtrail/event.h"
#include "skbtrail/loss.h"
#include "skbtrail/raw_event.h"
#include "stream/common_fields.h"
#include "stream/event_catalog.h"

namespace skbtrail::stream {

class Dispatcher {
 public:
  // `catalog` must outlive the dispatcher.
  explicit Dispatcher(const EventCatalog& catalog);

  // True when the trace can have this event. `tracker` must outlive the dispatcher; trackers of one
  // event are called in the order in which they subscribed.
  template <class Event, class Tracker>
  bool subscribe(Tracker& tracker) {
    Route<Event>* route = find_or_bind<Event>();
    if (route == nullptr) return false;
    route->subscribers.push_back(
        {&tracker, [](void* target, const EventHeader& header, const Event& event) {
           static_cast<Tracker*>(target)->on(header, event);
         }});
    return true;
  }

  void dispatch(const RawEvent& raw) {
    if (raw.id >= counts_.size()) grow(raw.id);
    ++counts_[raw.id];
    if (raw.lost_before != 0) [[unlikely]]
      loss(raw);
    set_last_time(raw);
    const Entry& entry = table_[raw.id];
    if (entry.run == nullptr) return;
    const EventHeader header = common_.header(raw);
    if (entry.run != nullptr && !entry.run(entry.route, header, raw)) ++undecodable_;
  }

  // `void on_loss(const LossWindow&)` is called before the event that follows a gap is dispatched.
  template <class Tracker>
  void subscribe_loss(Tracker& tracker) {
    loss_subscribers_.push_back({&tracker, [](void* target, const LossWindow& window) {
                                   static_cast<Tracker*>(target)->on_loss(window);
                                 }});
  }

  const std::vector<std::uint64_t>& counts() const { return counts_; }  // events by id
  std::uint64_t undecodable() const { return undecodable_; }  // records shorter than their format
  // Events somebody wanted: "sys:event" -> why it is not there ("" = the trace does not have it).
  const std::map<std::string, std::string>& missing() const { return missing_; }

 private:
  struct RouteBase {
    virtual ~RouteBase() = default;
  };

  template <class Event>
  struct Route : RouteBase {
    using Call = void (*)(void*, const EventHeader&, const Event&);
    Decoder<Event> decoder;
    std::vector<std::pair<void*, Call>> subscribers;

    static bool run(RouteBase* base, const EventHeader& header, const RawEvent& raw) {
      const auto* route = static_cast<const Route*>(base);
      Event event;
      if (!route->decoder.decode(raw, event)) return false;
      for (const auto& [target, call] : route->subscribers) call(target, header, event);
      return true;
    }
  };

  struct Entry {
    bool (*run)(RouteBase*, const EventHeader&, const RawEvent&) = nullptr;
    RouteBase* route = nullptr;
  };

  template <class Event>
  Route<Event>* find_or_bind() {
    const std::string name = fmt::format("{}:{}", Event::name.system, Event::name.event);
    const auto known = routes_.find(name);
    if (known != routes_.end()) return static_cast<Route<Event>*>(known->second.get());
    const tracedat::FormatText* text = catalog_.find(Event::name);
    if (text == nullptr) {
      missing_.emplace(name, "");
      return nullptr;
    }
    auto format = parse_event_format(text->system, text->text);
    auto decoder = format ? Decoder<Event>::bind(*format) : pass_decoder<Event>(format);
    if (!decoder) {
      missing_.emplace(name, decoder.error().message);
      return nullptr;
    }
    auto route = std::make_unique<Route<Event>>();
    route->decoder = *decoder;
    if (format->id >= counts_.size()) grow(format->id);
    table_[format->id] = {&Route<Event>::run, route.get()};
    Route<Event>* result = route.get();
    routes_.emplace(name, std::move(route));
    return result;
  }

  template <class Event>
  static Result<Decoder<Event>> pass_decoder(Result<EventFormat>& format) {
    return pass(format);
  }

  void set_last_time(const RawEvent& raw) {
    if (raw.cpu >= last_time_.size()) [[unlikely]]
      last_time_.resize(std::size_t{raw.cpu} + 1);
    last_time_[raw.cpu] = raw.time;
  }
  void loss(const RawEvent& raw);
  void grow(std::uint16_t id);

  const EventCatalog& catalog_;
  CommonFields common_;
  std::vector<Entry> table_;
  std::vector<std::uint64_t> counts_;
  std::map<std::string, std::unique_ptr<RouteBase>> routes_;
  std::vector<std::pair<void*, void (*)(void*, const LossWindow&)>> loss_subscribers_;
  std::vector<Nanoseconds> last_time_;  // by CPU: where a gap begins
  std::map<std::string, std::string> missing_;
  std::uint64_t undecodable_ = 0;
};

}  // namespace skbtrail::stream
