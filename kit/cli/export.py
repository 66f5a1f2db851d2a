"""What a training left behind, for others: its adapter, the merged model, or one GGUF file."""

from __future__ import annotations

import argparse

from .common import emit, json_flag

HELP = "export a trained policy: adapter, merged model or GGUF"


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of `export`."""
    parser.add_argument("folder", metavar="RUN", help="the folder of a finished training")
    parser.add_argument("--to", choices=("adapter", "merged", "gguf"), default="merged")
    parser.add_argument("--out", help="where to (default: below RUN/export)")
    parser.add_argument(
        "--type", choices=("f32", "f16", "q8_0"), default="f16", help="weights of a GGUF"
    )
    json_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Write it; prints where."""
    from ..train.export import export

    out = export(args.folder, args.to, args.out, kind=args.type)
    emit(args, {"out": str(out), "to": args.to}, f"{args.to}: {out}")
    return 0
