// For tests under ThreadSanitizer: the synchronization of Debian's oneTBB among its own threads
// looks like races, because it is not instrumented. Races with functions of its headers, or atomics
// in them, at the top of the stack are suppressed; those in tasks are still reported (executor.cc).
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libtbb.so\nrace_top:tbb::\nrace_top:oneapi/tbb\nrace_top:start_for\n"
         "race_top:std::__atomic_base\n";
}
