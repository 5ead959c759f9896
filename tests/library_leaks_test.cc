// What the libraries we compare with lose (libkshark 2.2.1, libtraceevent 1.7.1, libtracecmd 3.1.6)
// is not ours to report. Linked into the tests themselves: from an archive it would not be found.

// NOLINTNEXTLINE(bugprone-reserved-identifier): LeakSanitizer's name
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  // libtracecmd's leak is a string of sscanf("%m"), where the stack ends.
  return "leak:libkshark\nleak:libtraceevent\nleak:libtracecmd\nleak:vsscanf\n";
}
