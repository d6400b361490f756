"""C++ targets whose sources follow from their names, and what most of them depend on.

    load("//tools:rules.bzl", "IR", "nestor_library", "nestor_pass", "nestor_test")

    nestor_library(name = "multiples", deps = IR)
    nestor_test(name = "multiples_test", deps = IR + [":multiples"])
    nestor_pass(name = "flatten", deps = [":scopes"])

The library has multiples.cc and multiples.h, the test has multiples_test.cc and GoogleTest; the pass
is a library and its test. Each target has Abseil. A target that nothing here fits, such as a shared
object, is a plain rule.
"""

# What most users of a folder use of it. Whether they may is up to the visibility of its targets.
UOPS = [
    "//uops:cpp20",
    "//uops:dtype",
    "//uops:graph",
    "//uops:invariant",
    "//uops:op",
    "//uops:scalar_op",
    "//uops/index:index_expr",
]

NOTATION = ["//uops/notation:module", "//uops/notation:print"]

IR = UOPS + [
    "//loop_ir:affine",
    "//loop_ir:dependence",
    "//loop_ir:perfect_nest",
    "//loop_ir:program",
    "//loop_ir:ranges",
    "//loop_ir:rewrite",
    "//uops:mutant",
]

# For tests, which write programs as text.
IR_TEXT = IR + ["//loop_ir:text", "//loop_ir:text_testing", "//loop_ir:verify"]

TENSOR = ["//tensor", "//tensor:binding"]

# Abseil's targets that sources of the house use, but for flags. An archive's member that nothing
# refers to is not linked, so a target costs nothing where it is not used.
ABSL = ["@com_google_absl//absl/" + target for target in [
    "algorithm:container",
    "base",
    "base:core_headers",
    "container:btree",
    "container:fixed_array",
    "container:flat_hash_map",
    "container:flat_hash_set",
    "container:inlined_vector",
    "container:node_hash_map",
    "functional:function_ref",
    "hash",
    "memory",
    "status",
    "status:statusor",
    "strings",
    "strings:cord",
    "strings:str_format",
    "synchronization",
    "time",
    "types:optional",
    "types:span",
    "types:variant",
]]

GTEST = ["@com_google_googletest//:gtest_main"]

# GCC 12 forgets, of what it inlined from a precompiled header, that it is the system's: these warnings
# are then about Abseil and the C++ library, and mistaken.
_NO_WARNINGS = ["-Wno-array-bounds", "-Wno-restrict", "-Wno-stringop-overflow", "-Wno-stringop-overread"]

# Options and dependency of a target that starts from a header of tools/BUILD. clang looks for what it
# precompiled only beside the path as it is given, and refuses it where options differ, as they may in a
# workspace that Nestor is a part of: there it reads the text.
def _starts_from(header):
    text = ["-include", "tools/" + header + ".h"]
    made = ["-include", "$(BINDIR)/tools/" + header + ".h", "-isysroot", "."]
    return select({
        "//tools:clang": text if Label("//tools").workspace_root else made,
        "//conditions:default": text + _NO_WARNINGS,
    }), ["//tools:" + header]

_COMMON_COPTS, _COMMON = _starts_from("common_headers")
_TEST_COPTS, _TEST = _starts_from("test_headers")

def _full(label):
    return "//" + native.package_name() + label if label.startswith(":") else label

def _deps(deps, more = []):
    """`deps`, Abseil and `more`, each label once: lists of a folder may share some."""
    return {_full(label): None for label in deps + ABSL + more}.keys()

def nestor_library(name, srcs = None, hdrs = None, deps = [], copts = [], **kwargs):
    """A cc_library of NAME.cc and NAME.h.

    Args:
      name: of the library.
      srcs: by default NAME.cc; [] for a library of headers alone.
      hdrs: by default NAME.h.
      deps: labels, besides Abseil's; one may be there more than once.
      copts: of any cc_library.
      **kwargs: of any cc_library.
    """
    native.cc_library(
        name = name,
        srcs = [name + ".cc"] if srcs == None else srcs,
        hdrs = [name + ".h"] if hdrs == None else hdrs,
        copts = _COMMON_COPTS + copts,
        deps = _deps(deps, _COMMON),
        **kwargs
    )

def nestor_binary(name, srcs = None, deps = [], copts = [], **kwargs):
    """A cc_binary of NAME.cc.

    Args:
      name: of the binary.
      srcs: by default NAME.cc.
      deps: as of nestor_library.
      copts: as of nestor_library.
      **kwargs: of any cc_binary.
    """
    native.cc_binary(
        name = name,
        srcs = [name + ".cc"] if srcs == None else srcs,
        copts = _COMMON_COPTS + copts,
        deps = _deps(deps, _COMMON),
        **kwargs
    )

def nestor_test(name, size = "small", srcs = None, deps = [], copts = [], **kwargs):
    """A cc_test of NAME.cc, with GoogleTest and its main().

    Args:
      name: of the test.
      size: by default "small".
      srcs: by default NAME.cc.
      deps: as of nestor_library, besides GoogleTest's.
      copts: as of nestor_library.
      **kwargs: of any cc_test.
    """
    native.cc_test(
        name = name,
        size = size,
        srcs = [name + ".cc"] if srcs == None else srcs,
        copts = _TEST_COPTS + copts,
        deps = _deps(deps, GTEST + _TEST),
        **kwargs
    )

def nestor_pass(name, deps = [], test_deps = [], **kwargs):
    """A pass over the loop IR: the library NAME, and the test NAME_test of its table.

    The test has the harness of such tables (fusion/pass_testing.h), and sees what the pass sees.

    Args:
      name: of the pass.
      deps: of both, besides IR: what this pass uses of other passes and of the machine.
      test_deps: of the test alone.
      **kwargs: of the nestor_library.
    """
    nestor_library(name = name, deps = IR + deps, **kwargs)
    nestor_test(
        name = name + "_test",
        deps = [":" + name, "//fusion:pass_testing"] + IR_TEXT + deps + test_deps,
    )
