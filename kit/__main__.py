"""`python -m kit`: one subcommand a module of kit.cli, imported only when it is asked for."""

from __future__ import annotations

import os
import signal

if __name__ == "__main__":  # what is imported below takes its time; there is nothing to save yet
    for _number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(_number) is not signal.SIG_IGN:  # nohup
            signal.signal(_number, lambda *_: (os.write(2, b"stopped\n"), os._exit(130)))

import argparse
import importlib
import sys
from typing import Any

from . import __version__
from .cli import common
from .cli.common import log
from .errors import KitError, MissingError
from .settings.read import nearest
from .system import packages, paths, processes, progress

COMMANDS = (
    "check",
    "demo",
    "fetch",
    "formats",
    "inspect",
    "judge",
    "tune",
    "ledger",
    "logs",
    "label",
    "agree",
    "rate",
    "view",
    "calibrate",
    "rewards",
    "train",
    "bench",
    "export",
    "run",
    "sweep",
    "report",
    "runs",
)
EPILOG = """exit codes: 0 done; 1 a notebook or check failed; 2 bad input or parameter;
3 something is missing (file, download, recorded reply); 4 a cap was reached;
5 the judge is down; 130 stopped by Ctrl-C or SIGTERM"""


class _Parser(argparse.ArgumentParser):
    """A command: its options stand before, between or after its names."""

    mixing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """What argparse calls for a command; what is not known is this command's error."""
        if self.mixing:
            return super().parse_known_args(args, namespace)
        self.mixing = True
        try:
            found, extra = self.parse_known_intermixed_args(args, namespace)
        finally:
            self.mixing = False
        if extra:
            self.error(f"unrecognized arguments: {' '.join(extra)}")
        return found, extra

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Names the choice that is nearest to a slip."""
        if action.choices is not None and value not in action.choices:
            fix = nearest(value, action.choices)
            raise argparse.ArgumentError(action, f"there is no {value!r}; {fix}")


def parser(only: str | None = None) -> argparse.ArgumentParser:
    """The whole command line, or (fast) one subcommand with the others named only."""
    top = argparse.ArgumentParser(
        prog="python -m kit",
        description="Experiments with rubric rewards.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"{packages.NAME} {__version__}")
    sub = top.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    for name in COMMANDS:
        if only in COMMANDS and name != only:
            sub.add_parser(name)
            continue
        module = importlib.import_module(f".cli.{name}", __package__)
        p = sub.add_parser(
            name,
            help=module.HELP,
            description=module.__doc__ or module.HELP,
            epilog=EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        common.add(p, module.ARGS)
        p.set_defaults(run=module.run)
    return top


def main(argv: list[str] | None = None) -> int:
    """Run one subcommand; errors for users come without a traceback (set KIT_DEBUG=1 to see it)."""
    argv = sys.argv[1:] if argv is None else argv
    progress.quiet()
    args = parser(argv[0] if argv else None).parse_args(argv)
    try:
        _apart(args)
        with progress.watched(args.progress, args.log_file, args.verbose):
            return _run(args)
    except OSError as e:  # the log itself
        sys.stderr.write(f"error: {e.strerror}\n  where: --log-file {args.log_file}\n")
        return 2
    except KitError as e:
        return _failed(e)


def _apart(args: argparse.Namespace) -> None:
    """KitError for a log over another file of the command, or over what is no log."""
    if not args.log_file:
        return
    options = {k: v for k, v in vars(args).items() if k != "log_file"}
    values = [(k, x) for k, v in options.items() for x in (v if isinstance(v, list) else [v])]
    named = {f"{k} {x}": x for k, x in values if isinstance(x, str)}
    paths.apart({"--log-file": args.log_file}, named)
    if os.path.isfile(args.log_file):
        with open(args.log_file, "rb") as f:
            if f.read(len(progress.LINE)) not in (b"", progress.LINE):
                raise KitError(
                    "this is no log of the kit, and stays as it is",
                    where=args.log_file,
                    fix="give --log-file another name",
                )


def _failed(e: KitError) -> int:
    """Say what a user can act on."""
    if os.environ.get("KIT_DEBUG"):
        raise e
    sys.stderr.write(f"error: {common.printable(str(e))}\n")
    return e.exit_code


def _run(args: argparse.Namespace) -> int:
    try:
        log.info("%s begins", args.command)
        with processes.stoppable():
            done = args.run(args)
            common.emit(args, done.data, done.text)
        if done.error is not None:
            raise done.error
        log.info("%s ends with %d", args.command, done.code)
        return done.code
    except KitError as e:
        log.error("%s", e)
        return _failed(e)
    except ModuleNotFoundError as e:
        fix = "pip install it, or the kit with its extras: pip install '.[train,server,tune]'"
        lost = MissingError(f"the package {e.name!r} is not installed", where=sys.prefix, fix=fix)
        log.error("%s", lost, exc_info=e)
        return _failed(lost)
    except KeyboardInterrupt:
        log.warning("stopped")
        more = " with --resume" * (args.command == "train")
        sys.stderr.write(f"stopped; what was done is saved, the same command{more} continues\n")
        return 130
    except OSError as e:
        if e.filename == common.STDOUT:  # what is held back for it goes nowhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(e, BrokenPipeError):
            return 0
        if os.environ.get("KIT_DEBUG"):
            raise
        fix = (
            "free some space and run the same command again (a training with --resume)"
            if e.errno == 28
            else "look at the path and its permissions"
        )
        kind = MissingError if isinstance(e, FileNotFoundError) else KitError
        found = kind(e.strerror or str(e), where=e.filename or "unknown file", fix=fix)
        log.error("%s", found)
        return _failed(found)


if __name__ == "__main__":
    sys.exit(main())
