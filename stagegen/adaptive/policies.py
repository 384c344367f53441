"""The selection policies of ``templates/adaptive/policies/*.c``, called through ctypes.

The C is what a library runs. It is compiled once into a shared object in the user's cache folder.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from stagegen.data import TEMPLATES
from stagegen.errors import InputError
from stagegen.generate import Toolchain, build_once
from stagegen.measure.launch.cache import cache_folder

_FOLDER = TEMPLATES / "adaptive"
_OBJECT = "policies.so"
_MAKEFILE = """COMPILE = $(MPICC)
policies.so: $(wildcard *.c) policy.h
\t$(COMPILE) -std=c11 -O2 -Wall -Wextra -Werror -fPIC -shared -o $@ $(filter %.c,$^)
"""


class _Candidate(ctypes.Structure):
    _fields_ = (
        ("known_s", ctypes.c_double),
        ("group", ctypes.c_int),
        ("is_representative", ctypes.c_int),
        ("is_native", ctypes.c_int),
    )


class _Problem(ctypes.Structure):
    _fields_ = (
        ("candidates", ctypes.c_int),
        ("candidate", ctypes.POINTER(_Candidate)),
        ("iterations", ctypes.c_int),
        ("epsilon", ctypes.c_double),
        ("delta", ctypes.c_int),
        ("delta_bound", ctypes.c_int),
        ("seed", ctypes.c_uint64),
        ("margin", ctypes.c_double),
        ("meeting_s", ctypes.c_double),
        ("hidden_s", ctypes.c_double),
    )


class _Stage(ctypes.Structure):
    _fields_ = (
        ("candidate", ctypes.c_int),
        ("calls", ctypes.c_int),
        ("is_monitoring", ctypes.c_int),
    )


class _Heard(ctypes.Structure):
    _fields_ = (
        ("calls", ctypes.c_int),
        ("mean_s", ctypes.POINTER(ctypes.c_double)),
        ("max_s", ctypes.POINTER(ctypes.c_double)),
        ("skew_s", ctypes.c_double),
    )


class _Policy(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("source_sets", ctypes.c_int),
        ("bytes", ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.POINTER(_Problem))),
        ("start", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_Problem))),
        ("next", ctypes.CFUNCTYPE(_Stage, ctypes.c_void_p, ctypes.POINTER(_Heard))),
        ("why", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)),
    )


@dataclass(frozen=True)
class Entrant:
    """A candidate as a policy sees it (``struct coll_candidate``).

    Attributes:
        known_s: seconds of a call, as tuning measured them; 0 if it did not.
        group: the source's group, from 1; 0 if it has none.
        is_representative: whether it is measured before the others of its group.
        is_native: whether it is the MPI library's routine.
    """

    known_s: float = 0.0
    group: int = 0
    is_representative: bool = False
    is_native: bool = False


@dataclass(frozen=True)
class Settings:
    """What a policy is set to (``struct coll_problem``); the defaults are the library's.

    Attributes:
        iterations: ITER, the calls in which the source examines a candidate.
        epsilon: by which share a rival must be better.
        delta: the first monitoring period, in ITER calls.
        delta_bound: the longest one.
        seed: of random choices.
        margin: a candidate whose known time is above so many times the least does not enter.
        meeting_s: seconds of the meeting after a stage; 0 if they are not known. Here, a meeting
            that goes on while calls run takes as long as one before them.
    """

    iterations: int = 10
    epsilon: float = 0.1
    delta: int = 2
    delta_bound: int = 64
    seed: int = 1
    margin: float = 1.5
    meeting_s: float = 0.0


@dataclass(frozen=True)
class Stage:
    """Some calls of one candidate in turn, and why it serves them."""

    candidate: int
    calls: int
    is_monitoring: bool
    why: str


def policy_names() -> tuple[str, ...]:
    """Return the names of all policies, sorted."""
    files = (_FOLDER / "policies").glob("*.c")
    return tuple(sorted(path.stem.replace("_", "-") for path in files))


def default_policy() -> str:
    """Return what ``LIBCOLL_ADAPTIVE=star`` stands for."""
    text = (_FOLDER / "policy.h").read_text(encoding="utf-8")
    return text.partition("#define COLL_POLICY_DEFAULT")[2].split('"')[1]


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    """Return the compiled policies, from the cache if they were built before.

    Raises:
        GenerateError: they cannot be built.
    """
    sources = [_FOLDER / "policy.h", *sorted((_FOLDER / "policies").glob("*.c"))]
    files = {path.name: path.read_text(encoding="utf-8") for path in sources}
    files["Makefile"] = _MAKEFILE
    toolchain = Toolchain.find()
    digest = hashlib.sha256(str(Path(toolchain.mpicc).resolve()).encode())
    for name, text in files.items():
        digest.update(f"{name}\0{text}\0".encode())
    folder = cache_folder() / f"policies-{digest.hexdigest()[:16]}"
    return ctypes.CDLL(str(build_once(folder, files, toolchain, _OBJECT)))


class Policy:
    """A policy that decides for one situation.

    Args:
        name: of the policy, or ``star`` for the default one.
        entrants: the candidates; the first is what the decision table chose.
        settings: of the policy.

    Raises:
        InputError: there is no such policy; says which there are.
        GenerateError: the policies cannot be built.
        ValueError: there are no candidates.
    """

    def __init__(self, name: str, entrants: Sequence[Entrant], settings: Settings | None = None):
        self.name = default_policy() if name == "star" else name
        if self.name not in policy_names():
            raise InputError(
                f"there is no policy {name}; choose from star, {', '.join(policy_names())}"
            )
        if not entrants:
            raise ValueError("a policy needs a candidate")
        settings = settings or Settings()
        symbol = f"coll_policy_{self.name.replace('-', '_')}"
        self._policy = _Policy.in_dll(_library(), symbol)
        self._entrants = (_Candidate * len(entrants))(
            *(
                _Candidate(one.known_s, one.group, one.is_representative, one.is_native)
                for one in entrants
            )
        )
        self._problem = _Problem(
            len(entrants),
            self._entrants,
            settings.iterations,
            settings.epsilon,
            settings.delta,
            settings.delta_bound,
            settings.seed,
            settings.margin,
            settings.meeting_s,
            settings.meeting_s,
        )
        self._bytes: int = self._policy.bytes(ctypes.byref(self._problem))
        self._state = ctypes.create_string_buffer(self._bytes)
        self._policy.start(self._state, ctypes.byref(self._problem))

    @property
    def source_sets(self) -> bool:
        """Whether its candidates are the source's sets alone."""
        return bool(self._policy.source_sets)

    @property
    def bytes(self) -> int:
        """The bytes of its state."""
        return self._bytes

    def first(self) -> Stage:
        """Return the first stage."""
        return self._stage(None)

    def next(self, mean_s: Sequence[float], max_s: Sequence[float], skew_s: float = 0.0) -> Stage:
        """Return the stage after one whose times are known.

        Args:
            mean_s: of each call the mean over the ranks, in seconds; at least one.
            max_s: likewise the maximum.
            skew_s: how far apart the ranks came.

        Raises:
            ValueError: there are no times, or not as many of both.
        """
        if not mean_s or len(mean_s) != len(max_s):
            raise ValueError("a stage has at least one call, with its mean and maximum")
        doubles = ctypes.c_double * len(mean_s)
        return self._stage(_Heard(len(mean_s), doubles(*mean_s), doubles(*max_s), skew_s))

    def _stage(self, heard: _Heard | None) -> Stage:
        told = self._policy.next(self._state, None if heard is None else ctypes.byref(heard))
        why = self._policy.why(self._state) or b""
        return Stage(told.candidate, told.calls, bool(told.is_monitoring), why.decode())
