"""The contexts of a kubeconfig that a command asks."""

from __future__ import annotations

import argparse

from ...base.foreign_text import foreign
from ...base.limits import FOREIGN_NAME
from ..console.errors import UsageError


def chosen_contexts(args: argparse.Namespace) -> list[str] | None:
    """Return the contexts of `--context a,b` and `--all-contexts`; None: a single one is asked.

    A single one that does not exist is an error of its credentials (`kube/credentials.py`).

    Raises:
        UsageError: one does not exist, or the flags do not fit.
        CredentialsError: the kubeconfig cannot be read.
    """
    chosen = args.context or ""
    if args.all_contexts and chosen:
        raise UsageError("--all-contexts cannot be combined with --context")
    if not args.all_contexts and "," not in chosen:
        return None
    from ...kube.credentials import context_names, no_context

    known = context_names(args.kubeconfig)
    if args.all_contexts:
        if not known:
            raise UsageError("--all-contexts: the kubeconfig has no contexts")
        return known
    if chosen in known:  # a name may have a comma
        return None
    names = list(dict.fromkeys(name.strip() for name in chosen.split(",")))
    if "" in names:
        raise UsageError(f'--context: "{foreign(chosen, FOREIGN_NAME)}" has an empty name')
    problems = [f"--context: {no_context(name, known)}" for name in names if name not in known]
    if problems:
        raise UsageError(*problems)
    return names
