"""A header that the compiler reads once, for all sources that ask for it.

    precompiled_header(name = "common_headers", src = "common_headers.inc", deps = [..])

A target with it in `deps` and `copts = ["-include", "$(BINDIR)/PACKAGE/common_headers.h"]` starts from
what the compiler made of the text; with clang it also needs `-isysroot .`. Where a source has options
of its own that change what headers mean, GCC reads the text, and clang refuses.
"""

# clang writes the path of each header, and the absolute one unless it lies in -isysroot: of a sandbox,
# which is gone when the next source is compiled. Sources say `-isysroot .`, which on Linux means
# nothing else.
_CLANG = " -isysroot \"$PWD\" -relocatable-pch -Xclang -fno-pch-timestamp -fpch-instantiate-templates"

def _precompiled_header_impl(ctx):
    # A copy beside the result, as the compiler takes the first of this name, with what lies beside it.
    text = ctx.actions.declare_file(ctx.label.name + ".h")
    ctx.actions.symlink(output = text, target_file = ctx.file.src)
    made = ctx.actions.declare_file(text.basename + ".gch")
    toolchain = ctx.attr._cc_toolchain[cc_common.CcToolchainInfo]
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    context = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps]).compilation_context
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = text.path,
        output_file = made.path,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ["-x", "c++-header"],
        include_directories = context.includes,
        quote_include_directories = depset(
            [ctx.label.workspace_root or "."],
            transitive = [context.quote_includes],
        ),
        system_include_directories = context.system_includes,
        preprocessor_defines = context.defines,
    )
    compile = "c++-compile"
    ctx.actions.run_shell(
        mnemonic = "CppPrecompile",
        command = "exec \"$@\"" + (_CLANG if toolchain.compiler == "clang" else ""),
        arguments = [
            cc_common.get_tool_for_action(feature_configuration = features, action_name = compile),
        ] + cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = compile,
            variables = variables,
        ),
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = compile,
            variables = variables,
        ),
        inputs = depset([text, ctx.file.src] + ctx.files.textual_hdrs, transitive = [toolchain.all_files, context.headers]),
        outputs = [made],
    )
    own = cc_common.create_compilation_context(headers = depset([text, ctx.file.src, made] + ctx.files.textual_hdrs))
    return [CcInfo(compilation_context = own), DefaultInfo(files = depset([made]))]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "src": attr.label(allow_single_file = True, mandatory = True),
        "textual_hdrs": attr.label_list(allow_files = True),
        "deps": attr.label_list(providers = [CcInfo]),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
