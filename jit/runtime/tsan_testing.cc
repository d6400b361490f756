// For tests under ThreadSanitizer: what Debian's oneTBB does among its own threads looks like
// races, as it is not instrumented. Its headers' functions, and the atomics in them, are taken out
// where they stand on top of a race; what tasks do stays (executor.cc).
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libtbb.so\nrace_top:tbb::\nrace_top:oneapi/tbb\nrace_top:start_for\n"
         "race_top:std::__atomic_base\n";
}
