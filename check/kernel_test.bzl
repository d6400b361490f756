"""A test that a kernel in a shared object is right.

    load("@nestor//check:kernel_test.bzl", "nestor_kernel_test")

    cc_binary(
        name = "libsoftmax.so",
        srcs = ["softmax.c"],
        copts = ["-fPIC"],
        linkshared = True,
    )

    nestor_kernel_test(
        name = "softmax_test",
        op = "softmax",
        kernel = ":libsoftmax.so",
        where = ["C % 8 == 0"],
    )
"""

def _flags(prefix, values):
    return ["%s=%s" % (prefix, value) for value in values]

def _quoted(word):
    return "'%s'" % word.replace("'", "'\\''").replace("$", "$$")

def nestor_kernel_test(
        name,
        op,
        kernel,
        symbol = None,
        type = None,
        strided = False,
        where = [],
        trials = None,
        time = None,
        check_flags = [],
        shard_count = None,
        **kwargs):
    """Runs `nestor check OP --library=KERNEL` as a test.

    Args:
      name: of the test.
      op: a macro op's name, an op's text ("op f(..) -> (y) { .. }"), or the label of a file
        in the notation.
      kernel: the shared object, as of a cc_binary with linkshared = True.
      symbol: the function; by default the op's name.
      type: of type variables, as "bf16"; by default f32.
      strided: the function takes strides, too.
      where: conditions on sizes that the kernel asks for.
      trials: the number of cases; each shard draws as many.
      time: as "60s": how long to look, each shard for itself. By default 1000 cases, or as
        many as 10 seconds allow.
      check_flags: further flags of `nestor check`.
      shard_count: so many shards draw cases of their own.
      **kwargs: of any test (size, tags, timeout ..).
    """
    is_file = op.startswith(":") or op.startswith("//") or op.startswith("@") or op.endswith(".nestor")
    flags = []
    flags += ["--symbol=" + symbol] if symbol else []
    flags += ["--type=" + type] if type else []
    flags += ["--strided"] if strided else []
    flags += ["--trials=%d" % trials] if trials else []
    flags += ["--time=" + time] if time else []
    flags += _flags("--where", where) + check_flags
    native.sh_test(
        name = name,
        srcs = ["@nestor//check:kernel_test.sh"],
        args = [
            "$(rootpath @nestor//cli:nestor)",
            "$(rootpath %s)" % op if is_file else _quoted(op),
            "--library=$(rootpath %s)" % kernel,
        ] + [_quoted(flag) for flag in flags],
        data = [
            "@nestor//cli:nestor",
            kernel,
        ] + ([op] if is_file else []),
        shard_count = shard_count,
        **kwargs
    )
