// The first include of each public header: says what is missing where the compiler is told an older
// standard, before a flood of errors about features that it does not know. It comes first, since
// the headers after it may use such features.
#ifndef NESTOR_UOPS_CPP20_H_
#define NESTOR_UOPS_CPP20_H_

#if __cplusplus <= 201703L
#error \
    "Nestor needs C++20: compile with -std=c++20 (in Bazel, 'build --cxxopt=-std=c++20' in .bazelrc)"
#endif

#endif  // NESTOR_UOPS_CPP20_H_
