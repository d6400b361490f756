"""What Nestor's workspace and every workspace that uses Nestor load.

    load("@nestor//third_party:dependencies.bzl", "nestor_dependencies")
    nestor_dependencies()

Libraries are the distribution's packages (see bazelw for their names), known
by the labels that upstream gives them. A repository that the caller defined
before the call is left alone, so a workspace that builds, say, Abseil from
source goes on using its own, and Nestor is then built against that one.

Nothing here downloads anything.
"""

load(":absl.bzl", "ABSL_LIBRARIES", "ABSL_PACKAGES")
load(":repositories.bzl", "file_repository", "system_library_repository")

def _maybe(rule, name, **kwargs):
    if not native.existing_rule(name):
        rule(name = name, **kwargs)

def _bazel_dependencies():
    """What Bazel 4 itself would otherwise fetch from the network."""
    _maybe(
        native.local_repository,
        "platforms",
        path = "/usr/share/bazel/tools/platforms",
    )
    _maybe(
        native.local_repository,
        "rules_java",
        path = "/usr/share/bazel/rules/java",
    )
    _maybe(
        native.local_repository,
        "bazel_skylib",
        path = "/usr/share/bazel/tools/skylib",
    )

    # The packaged rules_cc does not load in Bazel 4.2.3; that version's native
    # rules are all that is needed of it.
    _maybe(
        file_repository,
        "rules_cc",
        files = {"@nestor//third_party:rules_cc_defs.bzl": "cc/defs.bzl"},
        contents = {"cc/BUILD": "exports_files([\"defs.bzl\"])\n"},
    )

    # Every cc_test names this target, though only `bazel coverage` runs it.
    _maybe(
        file_repository,
        "remote_coverage_tools",
        contents = {"BUILD": """\
filegroup(
    name = "coverage_report_generator",
    visibility = ["//visibility:public"],
)
"""},
    )

def nestor_dependencies():
    """Defines each repository that Nestor needs and the caller does not have."""
    _bazel_dependencies()

    _maybe(
        system_library_repository,
        "com_google_absl",
        targets = ABSL_PACKAGES,
        libraries = ABSL_LIBRARIES,
        # Loading some sixty shared libraries takes a short command longer than
        # its work.
        static = True,
    )
    _maybe(
        system_library_repository,
        "com_googlesource_code_re2",
        targets = {"": ["re2"]},
        libraries = ["re2"],
        static = True,
    )
    _maybe(
        system_library_repository,
        "com_google_googletest",
        # As upstream: gtest brings GoogleMock, and gtest_main's main() starts
        # both. The archive that holds main() is harmless to a program that has
        # its own, since a linker takes from an archive only what is missing.
        targets = {"": ["gtest", "gtest_main"]},
        libraries = ["gmock_main", "gmock", "gtest"],
    )
    _maybe(
        system_library_repository,
        "zlib",
        targets = {"": ["zlib"]},
        libraries = ["z"],
    )

    # An assembler of headers alone, and the threads that kernels run on.
    _maybe(
        system_library_repository,
        "xbyak",
        targets = {"": ["xbyak"]},
        libraries = [],
    )
    _maybe(
        system_library_repository,
        "onetbb",
        targets = {"": ["tbb"]},
        libraries = ["tbb"],
    )
    _maybe(
        system_library_repository,
        "zydis",
        targets = {"": ["zydis"]},
        libraries = ["Zydis"],
    )

    # Calls the kernels that `nestor check` loads.
    _maybe(
        system_library_repository,
        "libffi",
        targets = {"": ["ffi"]},
        libraries = ["ffi"],
        static = True,
    )

    # For tests only: the exact values that results are compared with.
    _maybe(
        system_library_repository,
        "mpfr",
        targets = {"": ["mpfr"]},
        libraries = ["mpfr", "gmp"],
    )

    # For //bench:peers only: what Nestor is measured beside.
    _maybe(
        system_library_repository,
        "onednn",
        targets = {"": ["dnnl"]},
        libraries = ["dnnl"],
    )
    _maybe(
        system_library_repository,
        "openblas",
        targets = {"": ["openblas"]},
        libraries = ["openblas"],
    )
    _maybe(
        system_library_repository,
        "libtorch",
        targets = {"": ["torch_cpu"]},
        libraries = ["torch_cpu", "c10"],
    )
