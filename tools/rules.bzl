"""C++ targets whose sources follow from their names.

    load("//tools:rules.bzl", "nestor_library", "nestor_test")

    nestor_library(name = "files", deps = ["//uops:dtype"], absl = ["status", "types:span"])

    nestor_test(name = "files_test", deps = [":files"])

The library has files.cc and files.h, the test has files_test.cc and GoogleTest. A macro makes one
target, a cc_library, cc_binary or cc_test, and nothing besides. A target that nothing here fits,
such as a shared object, is a plain rule.
"""

def _all(deps, absl):
    return deps + ["@com_google_absl//absl/" + target for target in absl]

def nestor_library(name, srcs = None, hdrs = None, deps = [], absl = [], **kwargs):
    """A cc_library of NAME.cc and NAME.h.

    Args:
      name: of the library.
      srcs: by default NAME.cc; [] for a library of headers alone.
      hdrs: by default NAME.h.
      deps: labels.
      absl: Abseil's targets by what follows @com_google_absl//absl/, as "strings", "types:span".
      **kwargs: of any cc_library.
    """
    native.cc_library(
        name = name,
        srcs = [name + ".cc"] if srcs == None else srcs,
        hdrs = [name + ".h"] if hdrs == None else hdrs,
        deps = _all(deps, absl),
        **kwargs
    )

def nestor_binary(name, srcs = None, deps = [], absl = [], **kwargs):
    """A cc_binary of NAME.cc.

    Args:
      name: of the binary.
      srcs: by default NAME.cc.
      deps: labels.
      absl: as of nestor_library.
      **kwargs: of any cc_binary.
    """
    native.cc_binary(
        name = name,
        srcs = [name + ".cc"] if srcs == None else srcs,
        deps = _all(deps, absl),
        **kwargs
    )

def nestor_test(name, size = "small", srcs = None, deps = [], absl = [], **kwargs):
    """A cc_test of NAME.cc, with GoogleTest and its main().

    Args:
      name: of the test.
      size: by default "small".
      srcs: by default NAME.cc.
      deps: labels, besides GoogleTest's.
      absl: as of nestor_library.
      **kwargs: of any cc_test.
    """
    native.cc_test(
        name = name,
        size = size,
        srcs = [name + ".cc"] if srcs == None else srcs,
        deps = _all(deps, absl) + ["@com_google_googletest//:gtest_main"],
        **kwargs
    )
