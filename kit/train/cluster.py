"""Job files for a cluster from a training config: SLURM, Ray, and accelerate's ZeRO-3 config. They
are written, not submitted.

    python -m kit.train.cluster train.yaml --out jobs --nodes 2 --gpus 8

trains with `accelerate launch -m kit.train` on `nodes` machines; one more runs TRL's vLLM server,
which generates the answers, and, with --judge-model, a vLLM server that judges. A job that is
started again goes on from its last checkpoint.

Not run on GPUs yet: ZeRO-3 and the vLLM servers are checked by syntax, by the fields of the
installed accelerate and TRL, and by running the scripts with stand-ins; only the training in
several processes is real in the tests, with two on a CPU.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import KitError, MissingError

CONFIGS = Path(__file__).resolve().parent / "configs"
FILES = ("accelerate.yaml", "job.slurm", "ray_entry.sh", "ray_job.yaml")


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """What the job asks for.

    nodes, gpus : machines that train, GPUs of each; hours : time limit; partition, account : of
    SLURM, "" = the site's default.
    vllm : generate on a server of its own (one more machine); judge_model : also serve this model
    as the judge there.
    setup : a shell line that makes the environment ready (module load ..., source
    .venv/bin/activate).
    """

    nodes: int = 1
    gpus: int = 8
    hours: int = 24
    partition: str = ""
    account: str = ""
    vllm: bool = True
    judge_model: str = ""
    setup: str = "source .venv/bin/activate"

    @property
    def processes(self) -> int:
        """Processes that train: one a GPU."""
        return self.nodes * self.gpus


def check(config: Path, cluster: Cluster) -> Any:
    """The config's settings; KitError for what cannot work on this cluster, before a queue has been
    waited for.
    """
    from .config import GRPOSettings, from_mapping
    from .job import KEYS

    if cluster.nodes < 1 or cluster.gpus < 1 or cluster.hours < 1:
        raise KitError("nodes, gpus and hours must be 1 or more", where="cluster")
    values = {k: v for k, v in _values(config).items() if k not in KEYS}
    settings = from_mapping(values, where=str(config))
    if not isinstance(settings, GRPOSettings):
        raise KitError(
            f"stage {settings.stage} is for one GPU",
            where=str(config),
            fix="cluster jobs train stage: grpo",
        )
    if settings.quantize != "none":
        raise KitError(
            "ZeRO-3 shards plain weights, not 4-bit ones",
            where=f"{config}, setting quantize",
            fix="set quantize: none",
        )
    if settings.engine == "unsloth":
        raise KitError(
            "unsloth trains on one GPU",
            where=f"{config}, setting engine",
            fix="set engine: transformers",
        )
    rows = settings.group_size * settings.prompts_per_step
    if rows % (cluster.processes * settings.substeps):
        raise KitError(
            f"{rows} answers a step cannot be shared out to {cluster.processes} GPUs in "
            f"{settings.substeps} substeps",
            where=f"{config}, settings prompts_per_step, group_size",
            fix=f"make their product a multiple of {cluster.processes * settings.substeps}",
        )
    if (
        settings.micro_rows
        and (rows // cluster.processes // settings.substeps) % settings.micro_rows
    ):
        raise KitError(
            f"{rows // cluster.processes // settings.substeps} answers a GPU cannot be split into "
            f"micro-batches of {settings.micro_rows}",
            where=f"{config}, setting micro_rows",
        )
    return settings


def _values(config: Path) -> dict[str, Any]:
    import yaml

    if not config.is_file():
        raise MissingError("the training config is not there", where=str(config))
    try:
        values = yaml.safe_load(config.read_text("utf-8"))  # JSON is YAML
    except yaml.YAMLError as e:
        raise KitError(
            f"the training config cannot be read: {str(e).splitlines()[0]}", where=str(config)
        ) from None
    if not isinstance(values, dict):
        raise KitError("the training config is not a mapping of names to values", where=str(config))
    return values


def accelerate_config(cluster: Cluster) -> dict[str, Any]:
    """accelerate's config for ZeRO-3 on this many GPUs; rank and address of the first machine are
    given on the command line.
    """
    import yaml

    return {
        **yaml.safe_load((CONFIGS / "zero3.yaml").read_text("utf-8")),
        "num_machines": cluster.nodes,
        "num_processes": cluster.processes,
    }


def changes(settings: Any, cluster: Cluster) -> str:
    """`--set` options that the cluster adds to the config; $SERVER is the machine that serves."""
    said = ["--set", "engine=transformers"]
    if cluster.vllm:
        options = {
            **dict(settings.options),
            "vllm_mode": "server",
            "vllm_server_base_url": "http://$SERVER:8000",
        }
        said += ["--set", "use_vllm=true", "--set", "options=" + json.dumps(options)]
    if cluster.judge_model:
        said += [
            "--set",
            "judge="
            + json.dumps({"endpoint": cluster.judge_model, "base_url": "http://$SERVER:8001/v1"}),
        ]
    return " ".join(
        '"' + s.replace("\\", "\\\\").replace('"', '\\"').replace("`", "\\`") + '"' for s in said
    )


def servers(settings: Any, cluster: Cluster) -> list[str]:
    """Shell lines that start the servers on the machine they run on."""
    half = max(1, cluster.gpus // 2)
    both = cluster.vllm and bool(cluster.judge_model)

    def part(first):
        devices = range(half) if first else range(half, cluster.gpus)
        return f"CUDA_VISIBLE_DEVICES={','.join(map(str, devices))} " if both else ""

    lines = []
    if cluster.vllm:
        lines.append(
            f"{part(True)}trl vllm-serve --model {shlex.quote(settings.model)} "
            f"--tensor_parallel_size {half if both else cluster.gpus} --port 8000"
        )
    if cluster.judge_model:
        size = cluster.gpus - half if both else cluster.gpus
        lines.append(
            f"{part(False)}vllm serve {shlex.quote(cluster.judge_model)} --tensor-parallel-size "
            f"{size} --port 8001"
        )
    return lines


def slurm(config: Path, settings: Any, cluster: Cluster, out: Path) -> str:
    """A SLURM batch script: the last machine serves, the others train; requeued jobs resume."""
    serve = servers(settings, cluster)
    extra = [
        f"#SBATCH --{k}={v}"
        for k, v in (("partition", cluster.partition), ("account", cluster.account))
        if v
    ]
    head = [
        "#!/bin/bash",
        f"#SBATCH --job-name={config.stem}",
        f"#SBATCH --nodes={cluster.nodes + bool(serve)}",
        "#SBATCH --ntasks-per-node=1",
        f"#SBATCH --gpus-per-node={cluster.gpus}",
        f"#SBATCH --time={cluster.hours}:00:00",
        "#SBATCH --requeue",
        "#SBATCH --output=%x-%j.log",
        *extra,
    ]
    body = [
        "set -euo pipefail",
        cluster.setup,
        'mapfile -t NODES < <(scontrol show hostnames "$SLURM_JOB_NODELIST")',
        'export FIRST="${NODES[0]}"',
        "export OMP_NUM_THREADS=8 TOKENIZERS_PARALLELISM=false HF_HUB_DISABLE_TELEMETRY=1",
    ]
    if serve:
        body += [
            'export SERVER="${NODES[-1]}"',
            f'TRAIN=$(IFS=,; echo "${{NODES[*]:0:{cluster.nodes}}}")',
        ]
        body += [
            f'srun --overlap --nodes=1 --ntasks=1 --nodelist="$SERVER" bash -c {shlex.quote(line)} '
            f"&"
            for line in serve
        ]
        body += [
            f'until curl -sf "http://$SERVER:{port}/health" > /dev/null; do sleep 5; done'
            for port in ports(cluster)
        ]
    else:
        body += ['export SERVER=""', 'TRAIN=$(IFS=,; echo "${NODES[*]}")']
    body += [
        f"export CONFIG={shlex.quote(str(config))} "
        f"ACCELERATE={shlex.quote(str(out / 'accelerate.yaml'))}",
        f'srun --overlap --nodes={cluster.nodes} --ntasks={cluster.nodes} --nodelist="$TRAIN" bash '
        f"-c {shlex.quote(launch(settings, cluster, '$SLURM_PROCID'))}",
    ]
    return "\n".join([*head, "", *body, ""])


def launch(settings: Any, cluster: Cluster, rank: str) -> str:
    """The line that every training machine runs; `kit.train --resume` begins anew where there is no
    checkpoint.
    """
    return (
        f'accelerate launch --config_file "$ACCELERATE" --machine_rank "{rank}" --main_process_ip '
        f'"$FIRST" --main_process_port 29500 '
        f'-m kit.train "$CONFIG" --resume {changes(settings, cluster)}'
    )


def ports(cluster: Cluster) -> list[int]:
    """Ports of the servers that are started."""
    return [p for p, on in ((8000, cluster.vllm), (8001, bool(cluster.judge_model))) if on]


def ray_entry(config: Path, settings: Any, cluster: Cluster, out: Path) -> str:
    """What a Ray job runs on one machine of its cluster: servers on GPUs of their own, training on
    the rest. nodes must be 1.
    """
    if cluster.nodes > 1:
        return (
            "#!/bin/bash\necho 'training on several machines is started by SLURM (job.slurm); "
            "Ray places jobs of one machine' >&2\nexit 2\n"
        )
    serve = servers(settings, cluster)
    body = [
        "#!/bin/bash",
        "set -euo pipefail",
        cluster.setup,
        'export FIRST=127.0.0.1 SERVER="${SERVER:-127.0.0.1}"',
        f"export CONFIG={shlex.quote(str(config))} "
        f"ACCELERATE={shlex.quote(str(out / 'accelerate.yaml'))}",
    ]
    if serve:
        body += [
            "# the servers run elsewhere (their GPUs are not this job's): start them there and set "
            "SERVER to that machine"
        ]
        body += [f"#   {line}" for line in serve]
        body += [
            f'until curl -sf "http://$SERVER:{port}/health" > /dev/null; do sleep 5; done'
            for port in ports(cluster)
        ]
    return "\n".join([*body, launch(settings, cluster, "0"), ""])


def ray_job(cluster: Cluster, out: Path) -> dict[str, Any]:
    """A Ray job submission: `ray job submit` takes the same fields as JSON over its REST API."""
    return {
        "entrypoint": f"bash {shlex.quote(str(out / 'ray_entry.sh'))}",
        "entrypoint_num_gpus": cluster.gpus,
        "runtime_env": {
            "env_vars": {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_DISABLE_TELEMETRY": "1"}
        },
    }


def write(config: str | Path, out: str | Path, cluster: Cluster) -> list[Path]:
    """Check the config against the cluster and write all FILES into `out`."""
    import yaml

    config, out = Path(config).expanduser().resolve(), Path(out).expanduser().resolve()
    settings = check(config, cluster)
    out.mkdir(parents=True, exist_ok=True)

    def dump(value: object) -> str:
        return yaml.safe_dump(value, sort_keys=False)

    texts = (
        dump(accelerate_config(cluster)),
        slurm(config, settings, cluster, out),
        ray_entry(config, settings, cluster, out),
        dump(ray_job(cluster, out)),
    )
    for name, text in zip(FILES, texts, strict=True):
        (out / name).write_text(text, encoding="utf-8")
    return [out / name for name in FILES]


def main(argv: list[str] | None = None) -> int:
    """`python -m kit.train.cluster`."""
    p = argparse.ArgumentParser(
        prog="python -m kit.train.cluster",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("config")
    p.add_argument("--out", required=True, help="folder for the files")
    for name, kind in (
        ("nodes", int),
        ("gpus", int),
        ("hours", int),
        ("partition", str),
        ("account", str),
        ("judge-model", str),
        ("setup", str),
    ):
        p.add_argument(f"--{name}", type=kind, default=getattr(Cluster, name.replace("-", "_")))
    p.add_argument(
        "--no-vllm", dest="vllm", action="store_false", help="generate in the training processes"
    )
    args = vars(p.parse_args(argv))
    try:
        written = write(args.pop("config"), args.pop("out"), Cluster(**args))
    except KitError as e:
        sys.stderr.write(f"error: {e}\n")
        return e.exit_code
    sys.stdout.write("\n".join(map(str, written)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
