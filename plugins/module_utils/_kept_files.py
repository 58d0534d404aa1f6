# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of a node that somebody else is about to replace: kept as they are before, and given back.

Unlike a snapshot, this knows nothing of what the other one writes until it is there. A path may be a file, a symbolic link or nothing.
What neither we nor a note knows is the other one's, in a new version, unless the package of the files has changed as well.
Private to this collection.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import typing as t
from dataclasses import asdict, dataclass, replace

from ._config import files
from ._config.files import FilesError

FILE, LINK, NOTHING = "file", "link", "nothing"


@dataclass(frozen=True)
class Entry:
    """What is at a path. *content* is the SHA-256 of a file, or the target of a symbolic link."""

    kind: str
    content: str = ""
    mode: int = 0
    owner: tuple[int, int] = (0, 0)

    def same(self, other: Entry | None) -> bool:
        """Whether both are the same, whatever mode and owner."""
        return other is not None and (self.kind, self.content) == (other.kind, other.content)


@dataclass(frozen=True)
class Kept:
    """A path as it was before, where its content is, and what the other one has put there (None: not noted yet).

    *release* stands for the package as it was then. *former* is what was kept before, until a note has shown whose the original is.
    """

    original: Entry
    copy: str | None = None
    replacement: Entry | None = None
    release: str = ""
    former: Kept | None = None


def must_keep(kept: Kept | None, now: Entry, release: str) -> bool:
    """Whether what is at a path now has to be kept.

    After the first time, only what a package has brought that was upgraded. What is in a place where nothing was is the other one's in
    any case.
    """
    if kept is None:
        return True
    return release != kept.release and kept.original.kind != NOTHING and not now.same(kept.replacement)


def unreplaced(kept: Kept, now: Entry) -> bool:
    """Whether the original is in place although it was replaced once, as a package leaves it that was upgraded."""
    replaced = kept.replacement is not None or kept.former is not None
    return replaced and kept.original.kind != NOTHING and now.same(kept.original)


def noted(kept: Kept, now: Entry) -> Kept:
    """Note what has been put in place of the original. Where nothing was, whatever is there is to go."""
    if now.same(kept.original):
        # If the other one has put it there again, it never was the package's.
        return kept if kept.former is None else replace(kept.former, replacement=now)
    known = kept.original.kind == NOTHING or now.same(kept.replacement)
    return replace(kept, replacement=kept.replacement if known else now, former=None)


def must_return(kept: Kept, now: Entry, release: str) -> bool | None:
    """Whether the original has to be put back; None to leave what may be of a package that was upgraded since."""
    if now.same(kept.original):
        return False if kept.former is None else None
    if kept.original.kind == NOTHING or kept.replacement is None or now.same(kept.replacement):
        return True
    return True if release == kept.release else None


def look(path: str) -> tuple[Entry, bytes | None]:
    """Return what is at *path*, and its content if that is a file. Raises FilesError for anything else."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return Entry(NOTHING), None
    except OSError as exc:
        raise FilesError(f"Cannot read {path}: {exc.strerror}.") from exc
    if stat.S_ISLNK(found.st_mode):
        return Entry(LINK, os.readlink(path)), None
    data = files.read_bytes(path)
    return Entry(FILE, str(files.sha256(data)), stat.S_IMODE(found.st_mode), (found.st_uid, found.st_gid)), data


def put(path: str, entry: Entry, data: bytes | None) -> None:
    """Make *path* what *entry* says, in one step and on disk. Raises FilesError; the path then is as it was."""
    folder, name = os.path.split(path)
    # One name for all runs: what a killed run has left is overwritten by the one that goes on.
    staged = os.path.join(folder, f".{name}{files.TEMP_TAG}kept")
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path if entry.kind == NOTHING else staged)
        if entry.kind == LINK:
            os.symlink(entry.content, staged)
        elif entry.kind == FILE:
            files.write_atomic(staged, data or b"", mode=entry.mode)
            os.chown(staged, *entry.owner)  # owner first: a change of owner clears bits of the mode
            os.chmod(staged, entry.mode)
        if entry.kind != NOTHING:
            os.replace(staged, path)
        files.sync_dir(folder)
    except OSError as exc:
        raise FilesError(f"Cannot write {path}: {exc.strerror}; put that right and run again.") from exc


class Record:
    """What is kept under a name: a file in JSON below the collection's folder. Contents are among the backups."""

    def __init__(self, name: str, state_dir: str) -> None:
        self.file = os.path.join(state_dir, "state", "kept_files", f"{name}.json")
        self.copies = os.path.join(state_dir, "backups")

    def read(self) -> dict[str, Kept] | None:
        """Return what is kept, by path; None for nothing. Raises FilesError for a damaged record."""
        data = files.read_bytes(self.file)
        if data is None:
            return None
        try:
            return {path: _kept(each) for path, each in json.loads(data.decode("utf-8")).items()}
        except (ValueError, LookupError, TypeError, AttributeError) as exc:
            raise FilesError(
                f"{self.file}, which tells what was kept, is damaged: put the files right by hand from {self.copies} and remove it."
            ) from exc

    def write(self, kept: t.Mapping[str, Kept]) -> None:
        """Write down what is kept."""
        content = json.dumps({path: asdict(each) for path, each in kept.items()}, sort_keys=True, indent=1)
        files.write_atomic(self.file, content.encode("utf-8") + b"\n", mode=0o600, dir_mode=0o700)

    def copy(self, path: str, data: bytes) -> str:
        """Keep a content and return where."""
        copy = files.backup_path(path, data, self.copies)
        if files.read_bytes(copy) != data:
            files.make_dirs(self.copies, 0o700)
            files.write_atomic(copy, data, mode=0o600)
        return copy


def _kept(each: t.Mapping[str, t.Any]) -> Kept:
    original, replacement, former = each["original"], each["replacement"], each["former"]
    return Kept(
        _entry(original),
        each["copy"],
        replacement and _entry(replacement),
        str(each["release"]),
        former and _kept(former),
    )


def _entry(each: t.Mapping[str, t.Any]) -> Entry:
    user, group = each["owner"]
    return Entry(str(each["kind"]), str(each["content"]), int(each["mode"]), (int(user), int(group)))


def release_of(package_files: t.Sequence[str]) -> str:
    """Return what changes whenever the content of one of these files does (links followed). Raises FilesError."""
    found = [(path, files.sha256(files.read_bytes(path))) for path in package_files]
    return str(files.sha256(json.dumps(found).encode("utf-8")))


def keep(
    record: Record, paths: t.Sequence[str], release: str = "", check_mode: bool = False
) -> tuple[list[str], list[str]]:
    """Keep the paths as they are now; return those that were not kept so before, and those that wait to be replaced again.

    Raises FilesError.
    """
    kept, fresh, waiting = dict(record.read() or {}), [], []
    for path in paths:
        now, data = look(path)
        before = kept.get(path)
        if must_keep(before, now, release):
            fresh.append(path)
            copy = None if data is None or check_mode else record.copy(path, data)
            kept[path] = Kept(now, copy, release=release, former=before)
        if unreplaced(kept[path], now):
            waiting.append(path)
    if fresh and not check_mode:
        record.write(kept)
    return fresh, waiting


def note(record: Record, check_mode: bool = False) -> list[str]:
    """Note what has been put in place of what was kept; return the paths of which that was not known."""
    kept = record.read() or {}
    after = {path: noted(each, look(path)[0]) for path, each in kept.items()}
    if after != kept and not check_mode:
        record.write(after)
    return [path for path in kept if after[path] != kept[path]]


@dataclass(frozen=True)
class Returned:
    """The paths put back, of these the ones whose package is newer, and those left to whoever has written them since."""

    back: list[str]
    outdated: list[str]
    left: list[str]


def give_back(record: Record, release: str = "", check_mode: bool = False) -> Returned:
    """Put back what was kept and forget it. A content that nobody has noted is kept among the backups."""
    known = record.read()
    kept = known or {}
    found = {path: look(path) for path in kept}
    answers = {path: must_return(each, found[path][0], release) for path, each in kept.items()}
    back = [path for path, answer in answers.items() if answer]
    if known is not None and not check_mode:
        contents = {path: _content(kept[path], path) for path in back}
        for path in back:
            now, data = found[path]
            if data is not None and kept[path].original.kind != NOTHING and not now.same(kept[path].replacement):
                record.copy(path, data)
            put(path, kept[path].original, contents[path])
        files.remove_file(record.file)
    outdated = [path for path in back if kept[path].original.kind != NOTHING and kept[path].release != release]
    return Returned(back, outdated, [path for path, answer in answers.items() if answer is None])


def _content(kept: Kept, path: str) -> bytes | None:
    if kept.original.kind != FILE:
        return None
    data = files.read_bytes(str(kept.copy))
    if files.sha256(data) != kept.original.content:
        raise FilesError(
            f"{kept.copy}, which keeps {path}, is missing or damaged: install the package of {path} anew, then run again."
        )
    return data
