"""The parts in the lab. Each keeps what it has measured, and goes on there when started again."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from docs.tools.bench_tuning.drawn import Job, draw_jobs, draw_program, trace_of, whole_calls
from docs.tools.bench_tuning.exhaustive import Exhaustive, quick_sizes
from docs.tools.bench_tuning.plan import BUDGET, CATALOGUE, Setting
from docs.tools.bench_tuning.plan import SHARES_IN_LAB as SHARES
from docs.tools.bench_tuning.results import SLOWER, Row, summary
from docs.tools.bench_tuning.runs import Clock, kept, listed, stagegen, tuned
from stagegen.catalogue.algorithm import NATIVE
from stagegen.cli._launch import launcher_and_toolchain
from stagegen.errors import InputError
from stagegen.measure.comparison import Bench, Comparison
from stagegen.measure.records import Candidate
from stagegen.topology import WHOLE
from stagegen.tune.bounds import patience
from stagegen.tune.decision import CLUSTER, NATIVE_CANDIDATE, DecisionTable
from stagegen.tune.loss import Loss, Times, total
from stagegen.tune.recorded import Recorded, read_recorded
from stagegen.tune.shapes import Shape

#: Repetitions of each call in a job; short calls get more.
REPETITIONS = 5

#: In how many other launches of a job a call that seems to be slow is compared again, and with how
#: many repetitions in each.
AGAIN, REPETITIONS_AGAIN = 5, 15


#: The collective, and the size in bytes.
Call = tuple[str, int]


class InLab:
    """A setting in the lab.

    Args:
        setting: cluster, collectives and sizes; the seed of what is drawn.
        clock: of this run.
        folder: where tunings are kept; the setting's own if None.
    """

    def __init__(self, setting: Setting, clock: Clock, folder: Path | None = None):
        self.setting = setting
        self._clock = clock
        self._folder = folder or setting.folder

    def result(self) -> dict[str, Any]:
        """Return the result of the part, after all of its measurements.

        Raises:
            InputError: the part cannot be done with these collectives and sizes.
            OutOfTime: the clock says so; start it again.
            subprocess.CalledProcessError: a command failed; it has said why.
            MeasurementError: a job failed.
        """
        parts: Mapping[str, Callable[[], dict[str, Any]]] = {
            "whole": self._whole,
            "exhaustive": self._exhaustive,
            "twice": self._twice,
            "budget": self._budget,
            "program": self._program,
            "shapes": self._shapes,
            "jobs": self._in_jobs,
        }
        return parts[self.setting.part]()

    def _tuned(self, name: str, *words: object) -> dict[str, Any]:
        """Tune into a folder of this name; return the seconds and the number of runs."""
        asked = self.setting
        more: list[object] = ["--topology", asked.file, "--launcher", "lab", *words]
        if "--for" not in words:
            more += ["--collectives", listed(asked.collectives), "--sizes", listed(asked.sizes)]
        return tuned(self._clock, self._folder / name, *more)

    def _full(self) -> dict[str, Any]:
        return self._tuned("whole", "--communicators", WHOLE)

    def _whole(self) -> dict[str, Any]:
        found = self._full()
        log = self._recorded("whole")
        times = log.times()
        assert times is not None
        return {**found, "least_seconds": least_seconds(self.setting, log, times)}

    def _exhaustive(self) -> dict[str, Any]:
        setting = self.setting
        sizes = {name: quick_sizes(setting, name) for name in setting.collectives}
        if not any(sizes.values()):
            raise InputError(
                f"{setting.names}: at no size can all candidates be compared in minutes; "
                "ask for shorter messages, or for other collectives than alltoallv"
            )
        self._full()
        decision = self._recorded("whole").decision
        measured = Exhaustive(self.setting, self._folder / "exhaustive", self._clock)

        def over_best(collective: str, size: int) -> float:
            """Return the time of the table's choice over that of the best of all candidates."""
            return measured.loss(collective, size, self._chosen(decision, collective, size))

        losses = self._losses(over_best, sizes)
        return {
            "loss": total(losses.values()),
            "by_collective": {name: loss.share for name, loss in losses.items()},
            "compared": sum(map(len, sizes.values())),
            "of": sum(len(setting.sizes_of(name)) for name in setting.collectives),
        }

    def _twice(self) -> dict[str, Any]:
        first = self._full()
        second = self._tuned("twice", "--communicators", WHOLE, "--seed", 2)
        words = ["diff", self._folder / "whole", self._folder / "twice", "--format", "json"]
        found = json.loads(stagegen(self._clock, *words))
        shares = [table[way] for table in found["tables"] for way in ("a_in_b", "b_in_a")]
        pairs = self._in_pairs("whole", "twice")
        return {
            **found["total"],
            "paired": total(pairs.values()),
            "paired_by_collective": {name: loss.share for name, loss in pairs.items()},
            "worst": max((abs(share) for share in shares if share is not None), default=None),
            "seconds": [first["seconds"], second["seconds"]],
        }

    def _in_pairs(self, used: str, reference: str) -> dict[str, Loss]:
        """Return what the choices of one tuning cost beside those of another, by collective.

        Where they differ, both are timed anew, in turn in one job. The times of the two logs do not
        count: each favours the choices that were made by it.
        """
        folder = self._folder / f"pairs-{used}-{reference}"
        measured = Exhaustive(self.setting, folder, self._clock)
        ours, theirs = (self._recorded(name).decision for name in (used, reference))

        def of_pair(collective: str, size: int) -> float:
            one, other = (self._chosen(of, collective, size) for of in (ours, theirs))
            return measured.of_pair(collective, size, one, other)

        return self._losses(of_pair)

    def _losses(
        self,
        ratio: Callable[[str, int], float],
        sizes: Mapping[str, Sequence[int]] | None = None,
    ) -> dict[str, Loss]:
        """Return what is lost by collective, from a ratio of times at each of its sizes.

        Args:
            ratio: of a collective and a size.
            sizes: by collective; all those that are tuned if None.
        """
        if sizes is None:
            sizes = {name: self.setting.sizes_of(name) for name in self.setting.collectives}
        return {
            name: Loss({size: ratio(name, size) for size in some}) for name, some in sizes.items()
        }

    def _budget(self) -> dict[str, Any]:
        words = ("--communicators", WHOLE, "--budget", BUDGET)
        full = self._tuned("unlimited", *words)["seconds"]
        return {"full_seconds": full, "steps": [self._within(share, full) for share in SHARES]}

    def _within(self, share: float, full: float) -> dict[str, Any]:
        """Return what a tuning within a share of the full one's time loses by its times."""
        name, budget = f"budget-{share:g}", round(share * full)
        found = self._tuned(name, "--communicators", WHOLE, "--budget", f"{budget}s")
        words = ["diff", self._folder / "unlimited", self._folder / name, "--format", "json"]
        lost = json.loads(stagegen(self._clock, *words))["total"]["b_in_a"]
        pairs = self._in_pairs(name, "unlimited")
        decision = self._recorded(name).decision
        spending = decision.spending if decision else None
        return {
            "share": share,
            "budget": budget,
            "seconds": found["seconds"],
            "loss": lost,
            "paired": total(pairs.values()),
            "stated": spending.loss if spending else None,
            "unknown": spending.unknown if spending else 0,
            "held": None,
        }

    def _program(self) -> dict[str, Any]:
        full = self._full()
        natives = Natives(self._recorded("whole"))
        asked = self.setting
        calls = draw_program(
            asked.topology,
            CATALOGUE,
            asked.collectives,
            asked.seed,
            natives,
            asked.sizes[-1],
        )
        trace = self._folder / "program.json"
        kept(trace, lambda: json.loads(trace_of(calls, asked.topology)))
        part = self._tuned("program", "--for", trace)
        measured = Exhaustive(asked, self._folder / "program-compared", self._clock)
        ours, theirs = (self._recorded(name).decision for name in ("program", "whole"))
        used = full_seconds = 0.0
        for (name, size), count in whole_calls(calls).items():
            one, other = (self._chosen(of, name, size) for of in (ours, theirs))
            seconds = count * natives(name, size)
            used += seconds * measured.of_pair(name, size, one, other)
            full_seconds += seconds
        return {
            "seconds": part["seconds"],
            "full_seconds": full["seconds"],
            "loss": used / full_seconds - 1,
            "called": len(calls),
        }

    def _shapes(self) -> dict[str, Any]:
        whole = self._full()
        every = self._tuned("shapes")
        return {
            "seconds": every["seconds"],
            "whole_seconds": whole["seconds"],
            "communicators": len(self.setting.communicators),
        }

    def _in_jobs(self) -> dict[str, Any]:
        found = self._tuned("shapes")
        rows: list[Any] = []
        for number, job in enumerate(draw_jobs(self.setting.topology, self.setting.seed)):
            path = self._folder / "jobs" / f"{self.setting.seed}-{number}.json"
            self._clock.require_time()
            rows += kept(path, partial(self._in_job, job))
        return {**found, **summary([Row(**row) for row in rows])}

    def _in_job(self, job: Job) -> list[Any]:
        """Time native and tuned calls in turn in a job of its own on its hosts."""
        asked = self.setting
        topology = job.topology(asked.topology)
        launcher, toolchain, _ = launcher_and_toolchain(topology, asked.file, "lab", None)
        # Ranks find their places by their hosts' names, as in a user's job.
        named = {"LIBCOLL_PLACEMENT": ""}
        library = self._folder / "shapes"

        def compare(calls: Sequence[Call], repetitions: int) -> list[Comparison]:
            found = []
            with closing(Bench(launcher, topology, library, toolchain, named)) as bench:
                for collective, size in calls:
                    described = CATALOGUE.collective(collective)
                    bound = patience(topology, described, size, 0) / bench.environment.scale
                    found.append(bench.compare(collective, size, repetitions, bound))
            return found

        collectives = map(CATALOGUE.collective, asked.collectives)
        calls = [
            (c.name, size) for c in collectives for size in (asked.sizes if c.has_data else (0,))
        ]
        return list(map(asdict, rows_of(compare, calls, job.name)))

    def _recorded(self, name: str) -> Recorded:
        return read_recorded(self._folder / name, None)

    def _chosen(self, decision: DecisionTable | None, collective: str, size: int) -> Candidate:
        """Return what a tuning's table chooses for all ranks of the cluster."""
        ranks = self.setting.topology.ranks
        shape = Shape.of(len(set(ranks)), len(ranks))
        table = decision.table(collective, CLUSTER, shape) if decision else None
        return table.choice(size) if table else NATIVE_CANDIDATE


def rows_of(
    compare: Callable[[Sequence[Call], int], Sequence[Comparison]],
    calls: Sequence[Call],
    job: str,
) -> list[Row]:
    """Return the rows of calls in a job; those that seem to be slow are timed again.

    The least of hundreds of speed-ups is mostly luck: a native call differs from another one, too,
    and short calls differ from launch to launch. So only the median of further launches counts.

    Args:
        compare: times native and tuned calls in turn in a launch, with so many repetitions.
        calls: of the job.
        job: its ranks and hosts.
    """
    found = compare(calls, REPETITIONS)
    rows = [Row(one.collective, one.size, job, one.routine, _speedup(one)) for one in found]
    slow = [place for place, row in enumerate(rows) if row.speedup < SLOWER]
    if slow:
        again = [calls[place] for place in slow]
        launches = [compare(again, REPETITIONS_AGAIN) for _ in range(AGAIN)]
        for place, of_call in zip(slow, zip(*launches, strict=True), strict=True):
            speedup = statistics.median(map(_speedup, of_call))
            rows[place] = replace(rows[place], speedup=speedup, again=True)
    return rows


def _speedup(found: Comparison) -> float:
    """Return the median native time over the median tuned one."""
    return statistics.median(found.native) / statistics.median(found.tuned)


class Natives:
    """The median seconds of native calls on the whole cluster, by a tuning's log.

    Args:
        log: of the tuning.
    """

    def __init__(self, log: Recorded):
        seconds: dict[str, dict[int, list[float]]] = {}
        for record in log.records:
            if record["kind"] == "measurement" and record["communicator"] == WHOLE:
                sizes = seconds.setdefault(record["collective"], {})
                sizes.setdefault(record["size"], []).extend(record["seconds"].get(NATIVE, ()))
        self._seconds = {
            name: {size: statistics.median(times) for size, times in sizes.items() if times}
            for name, sizes in seconds.items()
        }

    def __call__(self, collective: str, size: int) -> float:
        """Return the seconds at the measured size that is nearest by ratio."""
        known = self._seconds[collective]
        return known[min(known, key=lambda one: abs(math.log((one + 1) / (size + 1))))]


def least_seconds(setting: Setting, log: Recorded, times: Times) -> float:
    """Return what two calls of the best routine and two of native take at every size."""
    natives = Natives(log)
    seconds = 0.0
    for collective in setting.collectives:
        for size in setting.sizes_of(collective):
            native = natives(collective, size)
            best = times.fastest(collective, WHOLE, size) or NATIVE_CANDIDATE
            ratio = times.ratio(collective, WHOLE, size, best, NATIVE_CANDIDATE)
            seconds += 2 * native * (1 + min(1.0, 1.0 if ratio is None else ratio))
    return seconds
