"""The calls to the kernel that are refused inside, as a filter in its own small language.

A second wall. Some of these calls hold memory that no process is charged for (memory files,
System V's shared memory), so that a bound on memory needs them refused; some lead out of the
namespaces (sockets to the machine below a virtual one, the keys of whoever grades); the rest has
no business in a notebook. Numbers are those of the kernel's `unistd.h`.
"""

from __future__ import annotations

import platform
import struct

# call: number on x86_64, on aarch64
_REFUSED = {
    # memory that is nobody's
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194),
    "shmat": (30, 196), "msgget": (68, 186), "mq_open": (240, 180), "userfaultfd": (323, 282),
    # keys of whoever started the grader
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # other processes, from within
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438), "kcmp": (312, 272),
    # other views of the machine
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "unshare": (272, 97),
    "setns": (308, 268), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    # large surfaces
    "bpf": (321, 280), "perf_event_open": (298, 241), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "fanotify_init": (300, 262),
    "syslog": (103, 116), "acct": (163, 89), "quotactl": (179, 60), "swapon": (167, 224),
    "swapoff": (168, 225), "reboot": (169, 142), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106),
}  # fmt: skip
_SOCKET, _MMAP = (41, 198), (9, 222)
_SHARED_BY_NOBODY = 0x21  # MAP_SHARED and MAP_ANONYMOUS: memory that can outlive every count of it
_FAMILIES = (1, 2, 10, 16)  # of sockets that stay: Unix, IPv4, IPv6, netlink; the network is empty
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # place above, AUDIT_ARCH
_X32 = 0x40000000  # numbers of another way to call the same kernel begin here

_LOAD, _SAME, _FROM, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06  # of classic BPF
# where a call's number, machine, first and fourth argument stand
_NUMBER, _ARCH, _FIRST, _FOURTH = 0, 4, 16, 40
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_PERMISSION, _NO_FAMILY = 1, 97  # errno


def seccomp_filter(machine: str | None = None) -> bytes | None:
    """Return the filter for a kind of processor, or None where its numbers aren't known.

    >>> len(seccomp_filter("x86_64")) % 8, seccomp_filter("sparc64")
    (0, None)
    """
    known = _MACHINES.get(machine or platform.machine())
    if known is None:
        return None
    place, arch = known
    numbers = sorted(both[place] for both in _REFUSED.values())
    refuse = (_RETURN, 0, 0, _ERROR | _PERMISSION)
    program = [
        (_LOAD, 0, 0, _ARCH), (_SAME, 1, 0, arch), refuse,
        (_LOAD, 0, 0, _NUMBER), (_FROM, 0, 1, _X32), refuse,
    ]  # fmt: skip
    for number in numbers:
        program += [(_SAME, 0, 1, number), refuse]
    program += [
        (_SAME, 0, 4, _MMAP[place]), (_LOAD, 0, 0, _FOURTH), (_AND, 0, 0, _SHARED_BY_NOBODY),
        (_SAME, 0, 1, _SHARED_BY_NOBODY), refuse, (_LOAD, 0, 0, _NUMBER),
    ]  # fmt: skip
    skipped = len(_FAMILIES) + 2
    program += [(_SAME, 0, skipped, _SOCKET[place]), (_LOAD, 0, 0, _FIRST)]
    for left, family in zip(range(len(_FAMILIES), 0, -1), _FAMILIES, strict=True):
        program.append((_SAME, left, 0, family))
    program += [(_RETURN, 0, 0, _ERROR | _NO_FAMILY), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *each) for each in program)
