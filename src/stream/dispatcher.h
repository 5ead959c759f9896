// Hands the events of a trace to those who subscribed to them, decoded. The only way an analysis
// sees events: a tracker is any type with `void on(const EventHeader&, const E&)` for the events it
// takes.
//
//   Dispatcher dispatcher(catalog);
//   dispatcher.subscribe<NetifReceiveSkb>(rx);
//   walk(trace.events(), dispatcher);  // stream/walk.h
//
// An event nobody subscribed to is skipped before anything of it is decoded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <optional>
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

// Debug builds would only take longer to compile.
#ifdef NDEBUG
#define SKBTRAIL_FLATTEN [[gnu::flatten]]
#else
#define SKBTRAIL_FLATTEN
#endif

namespace skbtrail::stream {

class Dispatcher {
  struct Route;

 public:
  // `catalog` must outlive the dispatcher.
  explicit Dispatcher(const EventCatalog& catalog);

  // True when the trace can have this event. `tracker` must outlive the dispatcher; trackers of one
  // event are called in the order in which they subscribed. Call it where the tracker's on() is
  // defined: decoding and on() then compile into one function, and what on() does not look at is
  // not decoded.
  template <class Event, class Tracker>
  bool subscribe(Tracker& tracker) {
    const auto decoder = make_decoder<Event>(
        fmt::format("{}:{}", Event::name.system, Event::name.event), catalog_.find(Event::name));
    if (!decoder) return false;
    add_route(std::make_unique<TypedRoute<Event, Tracker>>(*decoder, common_, tracker));
    return true;
  }

  // The same for an event that nobody misses in a trace without it.
  template <class Event, class Tracker>
  bool subscribe_if_there(Tracker& tracker) {
    return catalog_.find(Event::name) != nullptr && subscribe<Event>(tracker);
  }

  // Every event whose name starts with Event's: `family_member` of the event is the rest of its
  // name, a view that lives as long as the trace. There are hundreds of system calls, of which a
  // trace has a dozen: a format is read when the first event of it comes.
  template <class Event, class Tracker>
  void subscribe_family(Tracker& tracker) {
    for (const EventCatalog::Member& member : catalog_.family(Event::name)) {
      add_route(std::make_unique<TypedRoute<Event, Tracker>>(*this, member, tracker));
    }
  }

  // Of all events that somebody subscribed to; some more than once.
  const std::vector<std::uint16_t>& ids() const { return ids_; }

  // Does anybody want events of this type?
  bool takes(std::uint16_t id) const { return type_of_[id] != 0; }

  // Who takes the events of one type, and how.
  struct Takers {
    Route* route;
    void (*run)(Route&, const RawEvent&);
  };
  // Says that of any event, also of one that says nothing. To be got anew after a subscription.
  class Lookup {
   public:
    Takers operator()(const RawEvent& raw) const {
      Route* const route = routes_[type_of_[raw.id]];
      return {route, route->run};
    }

   private:
    friend class Dispatcher;
    Lookup(const std::uint16_t* type_of, Route* const* routes)
        : type_of_(type_of), routes_(routes) {}
    const std::uint16_t* type_of_;
    Route* const* routes_;
  };
  Lookup lookup() const { return {type_of_.get(), by_type_.data()}; }
  // They may have been looked up some events before.
  static void dispatch(const RawEvent& raw, const Takers& takers) {
    takers.run(*takers.route, raw);
  }
  void dispatch(const RawEvent& raw) const { dispatch(raw, lookup()(raw)); }

  // `void on_loss(const LossWindow&)` is called before the event that follows a gap is dispatched;
  // `void on_loss_begin(const LossWindow&)`, where the tracker has that, before the first event
  // that another CPU has in it.
  template <class Tracker>
  void subscribe_loss(Tracker& tracker) {
    loss_subscribers_.push_back({&tracker, [](void* target, const LossWindow& window) {
                                   static_cast<Tracker*>(target)->on_loss(window);
                                 }});
    if constexpr (requires(const LossWindow& window) { tracker.on_loss_begin(window); }) {
      loss_begin_subscribers_.push_back({&tracker, [](void* target, const LossWindow& window) {
                                           static_cast<Tracker*>(target)->on_loss_begin(window);
                                         }});
    }
  }
  void dispatch_loss_begin(const LossWindow& window) const {
    for (const auto& [target, call] : loss_begin_subscribers_) call(target, window);
  }
  void dispatch_loss(const LossWindow& window) const {
    for (const auto& [target, call] : loss_subscribers_) call(target, window);
  }

  // Records shorter than their format says, by event id.
  std::map<std::uint16_t, std::uint64_t> undecodable() const;
  // Events somebody wanted: "sys:event" -> why it is not there ("" = the trace does not have it).
  // Of a family those that came.
  const std::map<std::string, std::string>& missing() const { return missing_; }

 private:
  // One event and one tracker.
  struct Route {
    Route(std::uint16_t its_id, std::uint64_t its_needed, const CommonFields& its_common)
        : needed(its_needed), common(its_common), id(its_id) {}
    virtual ~Route() = default;

    static void ignore(Route&, const RawEvent&) {}

    void (*run)(Route&, const RawEvent&) = ignore;
    std::uint64_t needed;  // size of a record
    CommonFields common;
    std::uint16_t id;
    std::uint64_t too_short = 0;  // records
  };

  // One event and several trackers.
  struct Routes final : Route {
    Routes(std::uint16_t its_id, const CommonFields& its_common) : Route(its_id, 0, its_common) {
      run = run_all;
    }
    static void run_all(Route& base, const RawEvent& raw) {
      for (Route* route : static_cast<Routes&>(base).all) route->run(*route, raw);
    }
    std::vector<Route*> all;
  };

  template <class Event, class Tracker>
  struct TypedRoute final : Route {
    TypedRoute(const Decoder<Event>& its_decoder, const CommonFields& its_common,
               Tracker& its_tracker)
        : Route(its_decoder.id(), 0, its_common), tracker(its_tracker) {
      use(its_decoder);
    }
    // One of a family.
    TypedRoute(Dispatcher& dispatcher, const EventCatalog::Member& its_member, Tracker& its_tracker)
        : Route(its_member.id, 0, dispatcher.common_),
          tracker(its_tracker),
          member(its_member.name.substr(Event::name.event.size())),
          of(&dispatcher),
          format(its_member.format) {
      run = run_first;
    }

    void use(const Decoder<Event>& its_decoder) {
      decoder = its_decoder;
      needed = std::max(decoder.needed(), common.needed());
      run = decoder.is_usual() && common.is_usual() ? run_usual : run_any;
    }

    [[gnu::noinline]] static void run_first(Route& base, const RawEvent& raw) {
      auto& route = static_cast<TypedRoute&>(base);
      const auto made = route.of->template make_decoder<Event>(
          fmt::format("{}:{}{}", Event::name.system, Event::name.event, route.member),
          route.format);
      if (made) {
        route.use(*made);
      } else {
        route.run = Route::ignore;
      }
      route.run(route, raw);
    }

    // flatten: without it the compiler calls on(), and every field of every event is written to the
    // stack first, device names included. For the same reason nothing here may take the event's
    // address: what on() does rarely belongs into functions that are not inlined.
    SKBTRAIL_FLATTEN static void run_usual(Route& base, const RawEvent& raw) {
      auto& route = static_cast<TypedRoute&>(base);
      if (raw.size < route.needed) [[unlikely]] {
        ++route.too_short;
        return;
      }
      Event event;
      route.decoder.decode_usual(raw, event);
      if constexpr (requires { event.family_member; }) event.family_member = route.member;
      route.tracker.on(CommonFields::usual_header(raw), event);
    }

    static void run_any(Route& base, const RawEvent& raw) {
      auto& route = static_cast<TypedRoute&>(base);
      Event event;
      if (raw.size < route.needed || !route.decoder.decode(raw, event)) {
        ++route.too_short;
        return;
      }
      if constexpr (requires { event.family_member; }) event.family_member = route.member;
      route.tracker.on(route.common.header(raw), event);
    }

    Decoder<Event> decoder;
    Tracker& tracker;
    std::string_view member;  // of a family: its name, ...
    Dispatcher* of = nullptr;
    const tracedat::FormatText* format = nullptr;  // ... not read yet
  };

  template <class Event>
  std::optional<Decoder<Event>> make_decoder(const std::string& name,
                                             const tracedat::FormatText* text) {
    if (text == nullptr) {
      missing_.emplace(name, "");
      return std::nullopt;
    }
    const auto format = parse_event_format(text->system, text->text);
    if (!format) {
      missing_.emplace(name, format.error().message);
      return std::nullopt;
    }
    const auto decoder = Decoder<Event>::bind(*format);
    if (!decoder) {
      missing_.emplace(name, decoder.error().message);
      return std::nullopt;
    }
    return *decoder;
  }

  void add_route(std::unique_ptr<Route> route);

  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  static constexpr std::size_t kIds = std::size_t{std::numeric_limits<std::uint16_t>::max()} + 1;

  const EventCatalog& catalog_;
  CommonFields common_;
  // By event id, for every id there can be, so that no bounds are to be checked; 0: nobody takes
  // it. From calloc(): a trace uses a few lines of it, the rest takes no memory and no time.
  std::unique_ptr<std::uint16_t[], Free> type_of_;
  std::vector<Route*> by_type_;
  std::vector<std::unique_ptr<Route>> routes_;
  std::vector<std::uint16_t> ids_;
  using LossSubscriber = std::pair<void*, void (*)(void*, const LossWindow&)>;
  std::vector<LossSubscriber> loss_subscribers_;
  std::vector<LossSubscriber> loss_begin_subscribers_;
  std::map<std::string, std::string> missing_;
};

}  // namespace skbtrail::stream
