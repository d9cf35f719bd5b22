"""What users decide about a report: ignored warnings, severities and a baseline, in this order.

An error cannot be lowered: that kube-scheduler does not start is not a matter of opinion.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Final, Literal

from ....base.findings import ERROR, WARNING, did_you_mean, listing
from ....base.objects import mapping
from ....base.source.encoding import LINE_BREAK, characters
from ....base.source.reader import Position, is_json
from .report import FileFinding, IgnoredFinding, ValidationReport

# --- ignored warnings ----------------------------------------------------------------------------

INVALID_SUPPRESSION: Final = "InvalidSuppression"
UNUSED_SUPPRESSION: Final = "UnusedSuppression"
EXAMPLE: Final = "# kubectl-scheduler: ignore RULE: reason"

_COMMENT: Final = re.compile(r"(?:^|(?<=\s))#\s*kubectl-scheduler:\s*ignore(?P<rest>\b.*|)$")
_REST: Final = re.compile(r"\s+(?P<rules>[A-Za-z]+(?:\s*,\s*[A-Za-z]+)*)\s*(?::(?P<reason>.*))?")
_NO_CONTENT: Final = re.compile(r"\s*(?:#.*)?")


@dataclass(frozen=True, slots=True)
class Suppression:
    """What one comment, or one flag, ignores.

        # kubectl-scheduler: ignore SafetyFilterOff: nodes of this pool run one Pod each

    A comment at the end of a line concerns this line, one on a line of its own the next line with
    content. It begins with the name of the command that reads it: kube-scheduler and all other
    programs see an ordinary comment, and a search for `kubectl-scheduler: ignore` finds them all.
    The reason is required, because the next reader of the file needs it more than the rule.
    """

    file: str  # the display name of the file; for a flag, a pattern with wildcards
    position: Position | None  # of the comment; None: it is a flag
    line: int  # the line whose warnings it ignores; 0: all lines
    rules: tuple[str, ...]  # the rules that it ignores
    justification: str  # why, in the user's words

    def concerns(self, finding: FileFinding, rule: str) -> bool:
        """Report whether the finding is one of this rule, at the place that this names."""
        if finding.reason != rule:
            return False
        if self.position is None:
            return fnmatchcase(finding.file, self.file)
        return (finding.file, finding.position.line) == (self.file, self.line)


class SuppressionError(ValueError):
    """A suppression without a reason or with an unknown rule."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(message)
        self.fix = fix


def comments_of(file: str, content: str | bytes) -> tuple[list[Suppression], list[FileFinding]]:
    """Return (suppressions in the comments of a file, invalid ones); JSON has no comments."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    if b"kubectl-scheduler" not in data.replace(b"\0", b"") or is_json(data):
        return [], []
    lines = LINE_BREAK.split(characters(data).text)
    suppressions, wrong = [], []
    for index, line in enumerate(lines):
        match = _COMMENT.search(line)
        if match is None:
            continue
        position = Position(index + 1, match.start() + 1)
        try:
            rules, reason = parse_suppression(match["rest"])
        except SuppressionError as error:
            wrong.append(_finding(file, position, INVALID_SUPPRESSION, str(error), error.fix))
            continue
        alone = not line[: match.start()].strip()
        target = _next_content(lines, index) if alone else index
        suppressions.append(Suppression(file, position, target + 1, rules, reason))
    return suppressions, wrong


def parse_suppression(text: str) -> tuple[tuple[str, ...], str]:
    """Return (rules, reason) of ` RULE, RULE: reason`.

    Raises:
        SuppressionError: a part is missing, or a rule unknown.
    """
    from ..rules import RULES  # imported lazily: most runs need no rules

    match = _REST.match(text)
    if match is None:
        raise SuppressionError("this comment names no rule to ignore", f"write {EXAMPLE}")
    rules = tuple(re.split(r"\s*,\s*", match["rules"]))
    for rule in rules:
        if rule not in RULES:
            hint = did_you_mean(rule, RULES).removeprefix("; ")
            message = f'"{rule}" is not a rule that can be ignored'
            raise SuppressionError(message, hint or "use the name in brackets of a finding")
    reason = (match["reason"] or "").strip()
    if not reason:
        listed = ", ".join(rules)
        raise SuppressionError(
            f"this ignores {listed} without a reason",
            f"write the reason after a colon: ignore {listed}: reason",
        )
    return rules, reason


def _next_content(lines: list[str], index: int) -> int:
    """Return the next line that is neither blank nor a comment; at the end the line itself."""
    following = range(index + 1, len(lines))
    return next((line for line in following if not _NO_CONTENT.fullmatch(lines[line])), index)


def ignore(
    findings: Iterable[FileFinding], suppressions: Iterable[Suppression]
) -> tuple[list[FileFinding], list[IgnoredFinding]]:
    """Return (findings that remain, with those about suppressions without effect; ignored ones).

    Only warnings are ignored. In a file with errors no suppression counts as unused, because its
    warnings are not computed before the errors are corrected.
    """
    findings = list(findings)
    broken = {finding.file for finding in findings if finding.severity == ERROR}
    ignored: dict[int, IgnoredFinding] = {}
    about: list[FileFinding] = []
    for suppression in suppressions:
        for rule in suppression.rules:
            concerned = [
                (index, finding)
                for index, finding in enumerate(findings)
                if suppression.concerns(finding, rule)
            ]
            for index, finding in concerned:
                if finding.severity == WARNING:
                    ignored.setdefault(index, IgnoredFinding(finding, suppression.justification))
            errors = [finding for _, finding in concerned if finding.severity == ERROR]
            if errors or not concerned:
                about += _without_effect(suppression, rule, errors, findings, broken)
    remaining = [finding for index, finding in enumerate(findings) if index not in ignored]
    return remaining + about, list(ignored.values())


def _without_effect(
    suppression: Suppression,
    rule: str,
    errors: list[FileFinding],
    findings: list[FileFinding],
    broken: set[str],
) -> Iterator[FileFinding]:
    files = [file for file in broken if fnmatchcase(file, suppression.file)]
    if suppression.position is not None:
        files = [suppression.file] if suppression.file in broken else []
    if errors:
        message = f"{rule} is an error here, with which no scheduler starts, and is not ignored"
        fix = "correct it; --baseline accepts known errors for a time"
    elif files:
        return
    elif suppression.position is None:
        message = f"no file {suppression.file} has a finding {rule} for --ignore"
        fix = "remove the flag"
    else:
        message = f"line {suppression.line} has no finding {rule} to ignore"
        lines = [
            finding.position.line
            for finding in findings
            if finding.file == suppression.file and finding.reason == rule
        ]
        fix = "remove the comment"
        if lines:
            fix = f"move it to line {min(lines)}, which has one, or to the line before"
    at = suppression.position or Position(1, 1)
    file = suppression.file if suppression.position else ""  # a flag is in no file
    yield replace(_finding(file, at, UNUSED_SUPPRESSION, message, fix), severity=WARNING)


def _finding(file: str, position: Position, reason: str, message: str, fix: str) -> FileFinding:
    """Return an error of a comment, which does not prevent kube-scheduler from starting."""
    return FileFinding(file, position, "", "", reason, message, fix, ERROR, raised=True)


Chosen = Literal["error", "warning", "off"]
CHOICES: Final[tuple[Chosen, ...]] = ("error", "warning", "off")


@dataclass(frozen=True, slots=True)
class Severities:
    """The severities of warnings: of single rules, and of all with `--strict`."""

    by_rule: Mapping[str, Chosen] = field(default_factory=dict)  # rule -> severity of its warnings
    strict: bool = False  # whether all other warnings are errors

    @classmethod
    def parse(cls, texts: Iterable[str], *, strict: bool) -> Severities:
        """Read `RULE=SEVERITY` texts; several may be in one, separated by commas.

        Raises:
            ValueError: a rule or a severity is unknown, or the rule has no warnings.
        """
        from ..rules import RULES  # most runs choose nothing

        chosen: dict[str, Chosen] = {}
        for choice_text in (part for text in texts for part in text.split(",") if part):
            rule, _, severity = (part.strip() for part in choice_text.partition("="))
            if rule not in RULES:
                hint = did_you_mean(rule, RULES) or "; --explain lists all rules"
                raise ValueError(f'"{rule}" is not a rule{hint}')
            choice = next((known for known in CHOICES if known == severity), None)
            if choice is None:
                raise ValueError(f'"{severity}" is not a severity; use {listing(CHOICES)}')
            if WARNING not in RULES[rule].severities and choice != ERROR:
                raise ValueError(
                    f"{rule} is an error with which no scheduler starts, and cannot be lowered; "
                    "correct it, or record it in a --baseline"
                )
            chosen[rule] = choice
        return cls(chosen, strict)

    def applied(self, findings: Iterable[FileFinding]) -> Iterator[FileFinding]:
        """Yield the findings with these severities, without those that are off."""
        for finding in findings:
            if finding.severity == WARNING:
                choice = self.by_rule.get(finding.reason, ERROR if self.strict else WARNING)
                if choice == ERROR:
                    yield replace(finding, severity=ERROR, raised=True)
                elif choice == WARNING:
                    yield finding
            else:
                yield finding


@dataclass(frozen=True, slots=True)
class ReportSettings:
    """The decisions of flags; comments in the files add to them."""

    severities: Severities = field(default_factory=Severities)  # of warnings
    ignored: tuple[Suppression, ...] = ()  # what flags ignore
    baseline: frozenset[str] | None = None  # fingerprints of accepted findings; None: no baseline


def with_settings(
    report: ValidationReport,
    files: Sequence[tuple[str, str | bytes]],
    settings: ReportSettings,
) -> tuple[ValidationReport, int]:
    """Return (report after all decisions, number of baseline entries that match no finding)."""
    suppressions = list(settings.ignored)
    invalid: list[FileFinding] = []
    for file, content in files:
        comments, wrong = comments_of(file, content)
        suppressions += comments
        invalid += wrong
    remaining, ignored = ignore(report.findings, suppressions)
    first = files[0][0] if files else ""
    remaining = [finding if finding.file else replace(finding, file=first) for finding in remaining]
    findings = list(settings.severities.applied(remaining + invalid))
    order = {name: index for index, (name, _) in enumerate(files)}
    findings.sort(key=lambda finding: (order.get(finding.file, 0), finding.position, finding.path))
    report = replace(report, findings=tuple(findings), ignored=tuple(ignored))
    if settings.baseline is None:
        return report, 0
    new, accepted, fixed = divided(findings, settings.baseline)
    return replace(report, findings=tuple(new), accepted=tuple(accepted)), fixed


# --- baseline ------------------------------------------------------------------------------------
# A finding is recognized by its rule, its file, and its object and field with the names of list
# entries, not by its line, its index or its message: it stays known when lines move, when an
# entry is inserted before it, and when a later release words it differently.

VERSION: Final = 1
_DIGITS: Final = 32
"""Length of a fingerprint: 128 bits in hexadecimal."""


def fingerprints(findings: Sequence[FileFinding]) -> list[str]:
    """Return a fingerprint of each finding, unique among them.

    Equal findings are counted, so that a second one is new.
    """
    seen: dict[str, int] = {}
    digests = []
    for finding in findings:
        parts = (_file(finding.file), finding.reason, finding.subject)
        seen["\0".join(parts)] = count = seen.get("\0".join(parts), 0) + 1
        text = "\0".join((*parts, str(count)))
        digests.append(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS])
    return digests


def _file(name: str) -> str:
    return posixpath.normpath(name.replace("\\", "/"))


def baseline_of(findings: Sequence[FileFinding]) -> str:
    """Return the content of a baseline file, sorted, so that its changes can be reviewed."""
    entries = [
        {
            "file": _file(finding.file),
            "rule": finding.reason,
            "subject": finding.subject,
            "fingerprint": fingerprint,
        }
        for finding, fingerprint in zip(findings, fingerprints(findings), strict=True)
    ]
    entries.sort(key=lambda entry: tuple(entry.values()))
    document = {"version": VERSION, "findings": entries}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def read_baseline(text: str) -> frozenset[str]:
    """Return the fingerprints in a baseline file.

    Raises:
        ValueError: it is not a baseline, or one of another version.
    """
    try:
        document: Any = json.loads(text)
    except ValueError as error:
        raise ValueError(f"this is not JSON ({error})") from None
    version = mapping(document).get("version")
    entries = mapping(document).get("findings")
    if version != VERSION or not isinstance(entries, list):
        raise ValueError(f"this is not a baseline of version {VERSION}")
    known = [mapping(entry).get("fingerprint") for entry in entries]
    if not all(isinstance(fingerprint, str) for fingerprint in known):
        raise ValueError("an entry has no fingerprint")
    return frozenset(map(str, known))


def divided(
    findings: Sequence[FileFinding], known: Iterable[str]
) -> tuple[list[FileFinding], list[FileFinding], int]:
    """Return (new findings, those in the baseline, entries of the baseline that match none)."""
    baseline = set(known)
    by_state: Mapping[bool, list[FileFinding]] = {True: [], False: []}
    for finding, fingerprint in zip(findings, fingerprints(findings), strict=True):
        by_state[fingerprint in baseline].append(finding)
        baseline.discard(fingerprint)
    return by_state[False], by_state[True], len(baseline)
