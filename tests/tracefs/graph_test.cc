// Against a fake tracing folder of plain files.
#include "tracefs/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/files.h"

namespace skbtrail::tracefs {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kFilter = "tcp_v4_rcv\nnf_hook [nf_tables]\nschedule:traceoff:unlimited\n";

class FakeGraph : public ::testing::Test {
 protected:
  FakeGraph() {
    put("available_tracers", "blk function_graph function nop\n");
    put("available_filter_functions", "ip_rcv\nnet_rx_action\nnapi_poll [odd]\nnet_tx_action\n");
    put("current_tracer", "nop\n");
    put("set_event", "");
    put("set_ftrace_filter", kFilter);
    put("tracing_on", "1\n");
    put("trace_clock", "[local] global mono boot\n");
    put("buffer_size_kb", "7 (expanded: 1408)\n");
    put("options/overwrite", "0\n");
    put("options/funcgraph-irqs", "0\n");
    put("instances/mine/set_ftrace_filter", "#### all functions enabled ####\n");
    put("instances/mine/current_tracer", "nop\n");
  }

  void put(const std::string& file, const std::string& text) {
    fs::create_directories((folder_ / file).parent_path());
    test::write_file(folder_ / file, text);
  }
  std::string text(const std::string& file) { return test::read_file(folder_ / file); }

  // Writing a word that is no number into this file fails with EINVAL, as an instance's
  // current_tracer does before 6.11.
  void refuse_in_instance() {
    fs::remove(instance_ / "current_tracer");
    fs::create_symlink("/proc/self/oom_score_adj", instance_ / "current_tracer");
  }

  Result<GraphPlace> set(Saved& saved) {
    return set_graph(folder_.path(), instance_, {{"ip_rcv", "net_rx_action"}, "mono", 512}, saved);
  }

  test::TemporaryFolder folder_;
  fs::path instance_ = folder_ / "instances/mine";
};

TEST_F(FakeGraph, a_kernel_without_the_tracer_is_unsupported) {
  put("available_tracers", "blk function nop\n");
  const Result<void> checked = check_graph(folder_.path(), {});
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().kind, ErrorKind::unsupported);
  EXPECT_THAT(checked.error().message,
              AllOf(HasSubstr("no tracer function_graph"), HasSubstr("blk function nop")));
}

TEST_F(FakeGraph, functions_are_looked_up) {
  const std::vector<std::string> known{"ip_rcv", "napi_poll"};
  EXPECT_TRUE(check_graph(folder_.path(), known).has_value());
  const std::vector<std::string> wrong{"ip_rcv", "net_rx_actoin"};
  const Result<void> checked = check_graph(folder_.path(), wrong);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().kind, ErrorKind::unsupported);
  EXPECT_THAT(checked.error().message,
              AllOf(HasSubstr("'net_rx_actoin': did you mean net_rx_action"),
                    HasSubstr("available_filter_functions")));
  // Patterns and triggers are no names.
  const std::vector<std::string> pattern{"*"};
  EXPECT_FALSE(check_graph(folder_.path(), pattern).has_value());
}

TEST_F(FakeGraph, the_instance_is_taken_where_the_kernel_allows_it) {
  Saved saved;
  const Result<GraphPlace> place = set(saved);
  ASSERT_TRUE(place.has_value()) << place.error().message;
  EXPECT_EQ(*place, GraphPlace::instance);
  EXPECT_EQ(text("instances/mine/set_ftrace_filter"), "ip_rcv\nnet_rx_action\n");
  EXPECT_EQ(text("instances/mine/current_tracer"), "function_graph");
  EXPECT_EQ(text("current_tracer"), "nop\n");
  EXPECT_EQ(text("set_ftrace_filter"), kFilter);
}

TEST_F(FakeGraph, else_the_top_buffer_is_taken_and_put_back) {
  refuse_in_instance();
  {
    Saved saved;
    const Result<GraphPlace> place = set(saved);
    ASSERT_TRUE(place.has_value()) << place.error().message;
    EXPECT_EQ(*place, GraphPlace::top_buffer);
    EXPECT_EQ(text("current_tracer"), "function_graph");
    EXPECT_EQ(text("set_ftrace_filter"), "ip_rcv\nnet_rx_action\n");
    EXPECT_EQ(text("tracing_on"), "0");
    EXPECT_EQ(text("trace_clock"), "mono");
    EXPECT_EQ(text("buffer_size_kb"), "512");
    EXPECT_EQ(text("options/overwrite"), "1");
    EXPECT_EQ(text("options/funcgraph-irqs"), "1");
    put("tracing_on", "1");  // as while recording
  }
  EXPECT_EQ(text("current_tracer"), "nop");
  // Emptying the file does not remove the trigger.
  EXPECT_EQ(text("set_ftrace_filter"), "tcp_v4_rcv\nnf_hook:mod:nf_tables\n");
  EXPECT_EQ(text("tracing_on"), "1");
  EXPECT_EQ(text("trace_clock"), "local");
  EXPECT_EQ(text("buffer_size_kb"), "1408");
  EXPECT_EQ(text("options/overwrite"), "0");
  EXPECT_EQ(text("options/funcgraph-irqs"), "0");
}

TEST_F(FakeGraph, an_empty_filter_is_empty_again) {
  refuse_in_instance();
  put("set_ftrace_filter", "#### all functions enabled ####\n");
  {
    Saved saved;
    ASSERT_TRUE(set(saved).has_value());
  }
  EXPECT_EQ(text("set_ftrace_filter"), "");
}

TEST_F(FakeGraph, sizes_of_single_cpus_are_put_back) {
  refuse_in_instance();
  put("buffer_size_kb", "X\n");
  put("per_cpu/cpu0/buffer_size_kb", "100\n");
  put("per_cpu/cpu1/buffer_size_kb", "200\n");
  {
    Saved saved;
    ASSERT_TRUE(set(saved).has_value());
    EXPECT_EQ(text("per_cpu/cpu1/buffer_size_kb"), "512");
  }
  EXPECT_EQ(text("per_cpu/cpu0/buffer_size_kb"), "100");
  EXPECT_EQ(text("per_cpu/cpu1/buffer_size_kb"), "200");
}

TEST_F(FakeGraph, a_top_buffer_in_use_is_left_alone) {
  refuse_in_instance();
  put("current_tracer", "function\n");
  {
    Saved saved;
    const Result<GraphPlace> place = set(saved);
    ASSERT_FALSE(place.has_value());
    EXPECT_THAT(place.error().message,
                HasSubstr((folder_ / "current_tracer").string() + " is function"));
  }
  EXPECT_EQ(text("set_ftrace_filter"), kFilter);
  EXPECT_EQ(text("tracing_on"), "1\n");
  put("current_tracer", "nop\n");
  put("set_event", "sched:sched_switch\nsched:sched_waking\n");
  Saved saved;
  const Result<GraphPlace> place = set(saved);
  ASSERT_FALSE(place.has_value());
  EXPECT_THAT(place.error().message,
              HasSubstr((folder_ / "set_event").string() + " names sched:sched_switch"));
  EXPECT_EQ(text("trace_clock"), "[local] global mono boot\n");
}

TEST_F(FakeGraph, what_fails_half_way_is_put_back) {
  refuse_in_instance();
  fs::remove(folder_ / "set_ftrace_filter");
  fs::create_symlink("/proc/self/oom_score_adj", folder_ / "set_ftrace_filter");
  {
    Saved saved;
    EXPECT_FALSE(set(saved).has_value());
    EXPECT_EQ(text("trace_clock"), "mono");
  }
  EXPECT_EQ(text("tracing_on"), "1");
  EXPECT_EQ(text("trace_clock"), "local");
  EXPECT_EQ(text("current_tracer"), "nop\n");
}

TEST_F(FakeGraph, a_filter_that_may_not_be_written_is_named) {
  const fs::path filter = instance_ / "set_ftrace_filter";
  fs::remove(filter);
  fs::create_symlink("/proc/sys/kernel/ostype", filter);  // read-only to everybody
  Saved saved;
  const Result<GraphPlace> place = set(saved);
  ASSERT_FALSE(place.has_value());
  EXPECT_EQ(place.error().kind, ErrorKind::not_permitted);
  EXPECT_THAT(place.error().message, HasSubstr(filter.string()));
  EXPECT_EQ(text("instances/mine/current_tracer"), "nop\n");
}

TEST_F(FakeGraph, limits_of_others_are_told) {
  EXPECT_THAT(limits_of_graph(folder_.path()), IsEmpty());
  put("set_graph_function", "#### all functions enabled ####\n");
  put("set_graph_notrace", "#### no functions disabled ####\n");
  put("tracing_thresh", "0\n");
  put("max_graph_depth", "0\n");
  EXPECT_THAT(limits_of_graph(folder_.path()), IsEmpty());
  put("set_graph_function", "ip_rcv\n");
  put("max_graph_depth", "2\n");
  put("set_graph_notrace", "ip_local_deliver\n");
  put("tracing_thresh", "100\n");
  EXPECT_THAT(
      limits_of_graph(folder_.path()),
      ElementsAre(HasSubstr("set_graph_function is set"), HasSubstr("set_graph_notrace is set"),
                  HasSubstr("tracing_thresh is 100"), HasSubstr("max_graph_depth is 2")));
}

TEST_F(FakeGraph, function_tracing_that_is_switched_off_is_told) {
  const fs::path file = folder_ / "ftrace_enabled";
  EXPECT_THAT(limits_of_graph(folder_.path(), file), IsEmpty()) << "a kernel without the file";
  put("ftrace_enabled", "1\n");
  EXPECT_THAT(limits_of_graph(folder_.path(), file), IsEmpty());
  put("ftrace_enabled", "0\n");
  EXPECT_THAT(limits_of_graph(folder_.path(), file),
              ElementsAre(AllOf(HasSubstr(file.string() + " is 0: the graph will be empty"),
                                HasSubstr("sysctl kernel.ftrace_enabled=1"))));
  EXPECT_EQ(text("ftrace_enabled"), "0\n");
}

}  // namespace
}  // namespace skbtrail::tracefs
