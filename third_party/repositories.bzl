"""Repository rules: a repository made of a few files, and one that stands for
libraries installed in the system's own directories."""

def _file_repository_impl(ctx):
    ctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % ctx.name)
    for label, path in ctx.attr.files.items():
        ctx.symlink(label, path)
    for path, text in ctx.attr.contents.items():
        ctx.file(path, text)

file_repository = repository_rule(
    implementation = _file_repository_impl,
    doc = "A repository of the given files (label: path) and texts (path: text).",
    attrs = {
        "files": attr.label_keyed_string_dict(allow_files = True),
        "contents": attr.string_dict(),
    },
    local = True,
)

_ROOT = """\
package(default_visibility = ["//visibility:public"])

# Bazel puts linkopts behind every object and library of the program. The
# group lets the archives stand in any order.
cc_library(
    name = "link_system_libraries",
    linkopts = [
        "-Wl,--start-group",
{libraries}
        "-Wl,--end-group",
        "-pthread",
    ],
)
"""

_TARGET = """
cc_library(
    name = "{name}",
    deps = ["//:link_system_libraries"],
)
"""

def _system_library_repository_impl(ctx):
    ctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % ctx.name)
    builds = {"": _ROOT.format(libraries = "\n".join([
        "        \"-l%s\"," % (":lib%s.a" % library if ctx.attr.static else library)
        for library in ctx.attr.libraries
    ]))}
    for package, names in ctx.attr.targets.items():
        text = builds.get(package, "package(default_visibility = [\"//visibility:public\"])\n")
        builds[package] = text + "".join([_TARGET.format(name = name) for name in names])
    for package, text in builds.items():
        ctx.file(package + "/BUILD" if package else "BUILD", text)

# The targets carry no headers and no include directory: the compiler finds
# /usr/include by itself, and naming it once more (as `includes` would, by
# -isystem) moves it before the C++ headers, whose #include_next then fails.
system_library_repository = repository_rule(
    implementation = _system_library_repository_impl,
    doc = """Targets for libraries that the compiler and the linker find unaided.

Every target links the whole list: an archive member that nothing refers to is
not linked, so this costs no size, and there is no dependency graph between the
archives to keep in step with upstream's.""",
    attrs = {
        "targets": attr.string_list_dict(
            mandatory = True,
            doc = "The names of the cc_library targets of each package.",
        ),
        "libraries": attr.string_list(
            mandatory = True,
            doc = "Names as given to -l.",
        ),
        "static": attr.bool(
            default = False,
            doc = "Links the archives even where there are shared libraries.",
        ),
    },
    local = True,
)
