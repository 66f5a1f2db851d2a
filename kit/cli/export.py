"""What a training left behind, for others: its adapter, the merged model, or one GGUF file."""

from __future__ import annotations

from .common import Options, Output, arg

HELP = "export a trained policy: adapter, merged model or GGUF"


ARGS = (
    arg("folder", metavar="RUN", help="the folder of a finished training"),
    arg("--to", choices=("adapter", "merged", "gguf"), default="merged"),
    arg("--out", help="where to (default: below RUN/export)"),
    arg("--type", choices=("f32", "f16", "q8_0"), default="f16", help="weights of a GGUF"),
)


def run(args: Options) -> Output:
    """Write it; prints where."""
    from ..train.export import export

    out = export(args.folder, args.to, args.out, kind=args.type)
    return Output({"out": str(out), "to": args.to}, f"{args.to}: {out}")
