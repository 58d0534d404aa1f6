# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files on a node: read, replace atomically, keep the first version, one run at a time.

A reader of a file written here sees the old bytes or the new ones, never a mixture,
also when the process is killed or the disk is full.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import stat
import time
import typing as t

STATE_DIR = "/var/lib/gpu-kubernetes"
BACKUP_DIR = STATE_DIR + "/backups"
# Not under /run/lock, where every user may write and could hold the lock.
LOCK_DIR = "/run/gpu-kubernetes"

#: Middle part of the name of a temporary file: `.NAME.gpu-kubernetes-XXXX`.
TEMP_TAG = ".gpu-kubernetes-"

# The kernel signs these over the content of the file: a copy would be wrong for new content.
_CONTENT_XATTRS = frozenset(["security.ima", "security.evm"])
_SELINUX_CONTEXT = "security.selinux"

#: The SHA-256 of the contents that may be replaced (None: no file); None instead of them: any content.
Expected = t.Optional[t.Collection[t.Optional[str]]]


class FilesError(Exception):
    """A file could not be read or written; the message is one sentence with the cause."""


def sha256(data: bytes | None) -> str | None:
    """Return the hexadecimal SHA-256 of *data*, or None for None (no file)."""
    return None if data is None else hashlib.sha256(data).hexdigest()


def flat_name(path: str) -> str:
    """Return a file name that stands for the absolute *path*: readable, and different for different paths."""
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
    readable = path.strip("/").replace("/", "-")[-120:]
    return f"{readable}.{digest}"


def read_bytes(path: str) -> bytes | None:
    """Return the content of *path* (links followed), or None if there is no such file.

    Raises FilesError if it is not a regular file or cannot be read.
    """
    try:
        # O_NONBLOCK: opening a pipe would wait for a writer before it can be recognised as a pipe.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise FilesError(f"Cannot read {path}: {exc.strerror}.") from exc
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise FilesError(f"{path} is not a regular file.")
        with os.fdopen(handle, "rb", closefd=False) as stream:
            return stream.read()
    except OSError as exc:
        raise FilesError(f"Cannot read {path}: {exc.strerror}.") from exc
    finally:
        os.close(handle)


def missing_dirs(path: str) -> list[str]:
    """Return which of the directory *path* and its parents do not exist, outermost first."""
    missing: list[str] = []
    probe = os.path.abspath(path)
    while not os.path.isdir(probe):
        missing.append(probe)
        probe = os.path.dirname(probe)
    return missing[::-1]


def make_dirs(path: str, mode: int = 0o755) -> list[str]:
    """Create the directory *path* and its missing parents with *mode*; return those created, outermost first."""
    made: list[str] = []
    for directory in missing_dirs(path):
        try:
            os.mkdir(directory, mode)
        except FileExistsError:
            if not os.path.isdir(directory):
                raise FilesError(f"Cannot create the directory {directory}: a file is in its place.") from None
            continue
        except OSError as exc:
            raise FilesError(f"Cannot create the directory {directory}: {exc.strerror}.") from exc
        os.chmod(directory, mode)  # mkdir subtracts the umask
        made.append(directory)
    return made


def write_atomic(
    path: str,
    data: bytes,
    mode: int = 0o644,
    dir_mode: int = 0o755,
    owner: t.Sequence[int] | None = None,
    expected: Expected = None,
) -> list[str]:
    """Put *data* in place of the content of *path* in one step and on disk.

    A symbolic link stays and its target is replaced.  An existing file keeps its mode,
    owner, group and extended attributes (ACL, SELinux context), but not its hard links; *mode* and *owner* (user and
    group) are for a new file and *dir_mode* for new directories.  Temporary files that a killed run left are removed.

    Returns the directories created.  Raises FilesError, also for a content that is not *expected*; the old file then is untouched.
    """
    target = os.path.realpath(path)
    try:
        before: os.stat_result | None = os.stat(target)
    except FileNotFoundError:
        before = None
    except OSError as exc:
        raise FilesError(f"Cannot read {target}: {exc.strerror}.") from exc
    if before is not None and not stat.S_ISREG(before.st_mode):
        raise FilesError(f"{target} is not a regular file.")
    made = make_dirs(os.path.dirname(target), dir_mode)
    remove_stale_temps(target)
    try:
        _replace(target, data, before, mode, owner, expected)
    except OSError as exc:
        raise FilesError(_explain(target, exc)) from exc
    return made


def remove_file(path: str, expected: Expected = None) -> None:
    """Remove *path* if it is there (a symbolic link stays, its target goes), and sync its folder. Raises FilesError as write_atomic()."""
    target = os.path.realpath(path)
    _refuse_changed(target, expected)
    try:
        os.unlink(target)
        sync_dir(os.path.dirname(target))
    except FileNotFoundError:
        return
    except OSError as exc:
        raise FilesError(f"Cannot remove {target}: {exc.strerror}.") from exc


def backup(path: str, directory: str = BACKUP_DIR) -> str | None:
    """Keep a copy of *path* as it is now, unless this content is already kept.

    Returns the path of the copy (mode 0600 in a 0700 directory), or None if *path* is missing.
    Copies are named by content, so that a later one never overwrites the file as first found.
    """
    data = read_bytes(path)
    return None if data is None else keep_copy(path, data, directory)


def keep_copy(path: str, data: bytes, directory: str = BACKUP_DIR) -> str:
    """Keep *data*, a content of *path*, as backup() does; return the path of the copy."""
    copy = backup_path(path, data, directory)
    if read_bytes(copy) != data:
        make_dirs(directory, 0o700)
        write_atomic(copy, data, mode=0o600)
    return copy


def drop_copy(path: str, data: bytes, directory: str = BACKUP_DIR) -> None:
    """Remove the copy of *data*, which *path* holds again, and the directory of the copies if it is empty then."""
    copy = backup_path(path, data, directory)
    if os.path.exists(copy):
        remove_file(copy)
    with contextlib.suppress(OSError):
        os.rmdir(directory)


def backup_path(path: str, data: bytes, directory: str = BACKUP_DIR) -> str:
    """Return where backup() keeps *data* as a former content of *path*."""
    return os.path.join(directory, f"{flat_name(os.path.realpath(path))}.{str(sha256(data))[:16]}")


@contextlib.contextmanager
def lock(
    path: str,
    directories: t.Sequence[str] = (LOCK_DIR,),
    timeout: float = 120.0,
    clock: t.Callable[[], float] = time.monotonic,
    pause: t.Callable[[float], None] = time.sleep,
) -> t.Iterator[str]:
    """Hold the lock for *path*; yields the path of the lock file.

    The first of *directories* that can be written to holds the lock file.  The kernel releases the lock when
    the process ends, however it ends.  Raises FilesError after *timeout* seconds.
    """
    handle, name = _open_lock(path, directories)
    try:
        end = clock() + timeout
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if clock() >= end:
                    raise FilesError(
                        f"Another run has held {name} for {timeout:.0f} seconds: wait for it to end, then run again."
                    ) from None
                pause(0.1)
        yield name
    finally:
        os.close(handle)


def remove_stale_temps(path: str) -> list[str]:
    """Remove the temporary files that killed runs left beside *path*, or above its folder; return their paths.

    One run at a time writes a file. If two do, one of them fails, and the file is as the other wrote it.
    """
    target = os.path.realpath(path)
    directory, name = os.path.split(target)
    removed = []
    for place in dict.fromkeys([directory, _scratch(target)]):
        with contextlib.suppress(OSError):
            for temp in sorted(os.listdir(place)):
                if temp.startswith("." + name + TEMP_TAG):
                    os.unlink(os.path.join(place, temp))
                    removed.append(os.path.join(place, temp))
    return removed


def _open_lock(path: str, directories: t.Sequence[str]) -> tuple[int, str]:
    problems: list[str] = []
    for directory in directories:
        name = os.path.join(directory, flat_name(os.path.realpath(path)) + ".lock")
        try:
            make_dirs(os.path.dirname(directory))
            make_dirs(directory, 0o700)
            return os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600), name
        except OSError as exc:
            problems.append(f"{name}: {exc.strerror}")
        except FilesError as exc:
            problems.append(str(exc).rstrip("."))
    raise FilesError(f"Cannot take the lock for {path}: " + ("; ".join(problems) or "no directory was given") + ".")


def _scratch(target: str) -> str:
    """Return the directory for the temporary file of *target*: its own, or the one above a folder of drop-ins.

    A daemon may read all files of such a folder, whatever their name, also what a killed run left.
    """
    directory = os.path.dirname(target)
    above = os.path.dirname(directory)
    try:
        one = directory.endswith(".d") and os.stat(above).st_dev == os.stat(directory).st_dev
    except OSError:
        one = False
    return above if one else directory


def _refuse_changed(target: str, expected: Expected) -> None:
    if expected is not None and sha256(read_bytes(target)) not in expected:
        raise FilesError(f"{target} was changed by others since it was read, and was not replaced; run again.")


def _replace(
    target: str,
    data: bytes,
    before: os.stat_result | None,
    mode: int,
    owner: t.Sequence[int] | None,
    expected: Expected,
) -> None:
    directory, name = os.path.split(target)
    temp = os.path.join(_scratch(target), f".{name}{TEMP_TAG}{os.urandom(6).hex()}")
    handle = os.open(temp, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]
        if before is None:
            if owner:
                os.fchown(handle, owner[0], owner[1])
            os.fchmod(handle, mode)
            if os.path.dirname(temp) != directory:
                _inherit_context(directory, handle)
        else:
            _copy_attributes(target, before, handle)
        os.fsync(handle)
        _refuse_changed(target, expected)
        os.replace(temp, target)
        sync_dir(directory)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temp)
        raise
    finally:
        os.close(handle)


def _copy_attributes(source: str, before: os.stat_result, handle: int) -> None:
    """Give the open file *handle* the owner, mode and extended attributes of *source*."""
    # Owner first: a change of owner clears bits of the mode.
    now = os.fstat(handle)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        os.fchown(handle, before.st_uid, before.st_gid)
    os.fchmod(handle, stat.S_IMODE(before.st_mode))
    try:
        names = os.listxattr(source)
    except OSError as exc:
        if exc.errno == errno.ENOTSUP:
            return
        raise
    for name in names:
        value = os.getxattr(source, name)
        # A context that the directory gave to the new file may not be set again without a right of its own.
        if name not in _CONTENT_XATTRS and _xattr(handle, name) != value:
            os.setxattr(handle, name, value)


def _inherit_context(directory: str, handle: int) -> None:
    """Give the open file *handle* the SELinux context that a file created in *directory* has, instead of that of another folder."""
    with contextlib.suppress(OSError):  # there is no SELinux
        os.setxattr(handle, _SELINUX_CONTEXT, os.getxattr(directory, _SELINUX_CONTEXT))


def _xattr(handle: int, name: str) -> bytes | None:
    try:
        return os.getxattr(handle, name)
    except OSError:
        return None


def sync_dir(directory: str) -> None:
    """Write to disk what was created, renamed or removed in *directory*."""
    handle = os.open(directory or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as exc:
        # Some file systems cannot sync a directory; the rename itself is done.
        if exc.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def _explain(target: str, exc: OSError) -> str:
    remedies = {
        errno.EBUSY: "it is a mount point of its own; change the file where it is mounted from",
        errno.EROFS: "its file system is mounted read-only; remount it read-write or choose another path",
        errno.ENOSPC: "no space is left on its file system; free some and run again",
        errno.EDQUOT: "the disk quota is used up; free some space and run again",
        errno.EACCES: "permission denied; run as root (become: true)",
        errno.EPERM: "the operation is not permitted; run as root and look for an immutable flag (lsattr)",
    }
    return f"Cannot write {target}: {remedies.get(exc.errno or 0, exc.strerror)}."
