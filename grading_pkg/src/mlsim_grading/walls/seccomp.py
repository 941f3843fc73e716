"""The calls to the kernel that are answered inside, as a filter in its own small language.

A second wall. What a notebook needs is listed, so that a call nobody thought of is refused: those
that hold memory which no process is charged for (memory files, System V's memory and semaphores,
pages given to pipes), those that lead out of the namespaces, those with a large surface. What the
list's kernel doesn't have is answered as that kernel would, so that libraries fall back on what
they did before.

It is made by hand, as no wheel brings libseccomp along: its bindings need the library on the
system, and a filter that is missing on some machines is none. A test compares the numbers with the
kernel's own headers, and runs the filter on every number.
"""

from __future__ import annotations

import platform
import struct

# call:number on x86_64:number on aarch64, in the kernel's `unistd.h`
_ANSWERED = {
    "files": """
        read:0:63 write:1:64 open:2: close:3:57 stat:4: fstat:5:80 lstat:6: lseek:8:62
        pread64:17:67 pwrite64:18:68 readv:19:65 writev:20:66 preadv:295:69 pwritev:296:70
        preadv2:327:286 pwritev2:328:287 access:21: faccessat:269:48 faccessat2:439:439
        openat:257:56 openat2:437:437 creat:85: dup:32:23 dup2:33: dup3:292:24 fcntl:72:25
        flock:73:32 fsync:74:82 fdatasync:75:83 sync:162:81 syncfs:306:267
        sync_file_range:277:84 truncate:76:45 ftruncate:77:46 fallocate:285:47 getdents:78:
        getdents64:217:61 getcwd:79:17 chdir:80:49 fchdir:81:50 rename:82: renameat:264:38
        renameat2:316:276 mkdir:83: mkdirat:258:34 rmdir:84: link:86: linkat:265:37 unlink:87:
        unlinkat:263:35 symlink:88: symlinkat:266:36 readlink:89: readlinkat:267:78 chmod:90:
        fchmod:91:52 fchmodat:268:53 chown:92: fchown:93:55 lchown:94: fchownat:260:54
        umask:95:166 mknod:133: mknodat:259:33 utime:132: utimes:235: utimensat:280:88
        futimesat:261: statfs:137:43 fstatfs:138:44 statx:332:291 newfstatat:262:79
        readahead:187:213 fadvise64:221:223 sendfile:40:71 copy_file_range:326:285 pipe:22:
        pipe2:293:59 ioctl:16:29 close_range:436:436 getxattr:191:8 lgetxattr:192:9
        fgetxattr:193:10 listxattr:194:11 llistxattr:195:12 flistxattr:196:13
    """,
    "memory": """
        mmap:9:222 mprotect:10:226 munmap:11:215 brk:12:214 mremap:25:216 msync:26:227
        madvise:28:233 mlock:149:228 mlock2:325:284 munlock:150:229 get_mempolicy:239:236
        pkey_alloc:330:289 pkey_free:331:290 pkey_mprotect:329:288 membarrier:324:283
    """,
    "processes and threads": """
        clone:56:220 clone3:435:435 fork:57: vfork:58: execve:59:221 execveat:322:281
        exit:60:93 exit_group:231:94 wait4:61:260 waitid:247:95 kill:62:129 tkill:200:130
        tgkill:234:131 getpid:39:172 getppid:110:173 gettid:186:178 getpgid:121:155
        getpgrp:111: setpgid:109:154 getsid:124:156 setsid:112:157 set_tid_address:218:96
        set_robust_list:273:99 get_robust_list:274:100 futex:202:98 futex_waitv:449:449
        rseq:334:293 arch_prctl:158: prctl:157:167 sched_yield:24:124
        sched_getaffinity:204:123 sched_setaffinity:203:122 sched_getparam:143:121
        sched_getscheduler:145:120 sched_get_priority_max:146:125
        sched_get_priority_min:147:126 sched_rr_get_interval:148:127 sched_getattr:315:275
        getpriority:140:141 setpriority:141:140 getcpu:309:168 getrlimit:97:163
        setrlimit:160:164 prlimit64:302:261 getrusage:98:165 ioprio_get:252:31
        restart_syscall:219:128
    """,
    "signals": """
        rt_sigaction:13:134 rt_sigprocmask:14:135 rt_sigreturn:15:139 rt_sigpending:127:136
        rt_sigtimedwait:128:137 rt_sigqueueinfo:129:138 rt_tgsigqueueinfo:297:240
        rt_sigsuspend:130:133 sigaltstack:131:132 pause:34: signalfd:282: signalfd4:289:74
    """,
    "time": """
        nanosleep:35:101 clock_nanosleep:230:115 clock_gettime:228:113 clock_getres:229:114
        gettimeofday:96:169 time:201: times:100:153 alarm:37: getitimer:36:102
        setitimer:38:103 timer_create:222:107 timer_settime:223:110 timer_gettime:224:108
        timer_getoverrun:225:109 timer_delete:226:111 timerfd_create:283:85
        timerfd_settime:286:86 timerfd_gettime:287:87
    """,
    "waiting": """
        poll:7: ppoll:271:73 select:23: pselect6:270:72 epoll_create:213: epoll_create1:291:20
        epoll_ctl:233:21 epoll_wait:232: epoll_pwait:281:22 epoll_pwait2:441:441 eventfd:284:
        eventfd2:290:19
    """,
    "sockets, whose families are bounded below": """
        socket:41:198 socketpair:53:199 connect:42:203 accept:43:202 accept4:288:242
        bind:49:200 listen:50:201 getsockname:51:204 getpeername:52:205
        getsockopt:55:209 sendto:44:206 recvfrom:45:207 sendmsg:46:211 recvmsg:47:212
        sendmmsg:307:269 recvmmsg:299:243 shutdown:48:210
    """,
    "who and where it is": """
        getuid:102:174 geteuid:107:175 getgid:104:176 getegid:108:177 getresuid:118:148
        getresgid:120:150 getgroups:115:158 capget:125:90 uname:63:160 sysinfo:99:179
        getrandom:318:278
    """,
}  # fmt: skip
_LAST = 450  # number of the last call that was looked at; the newest have the same everywhere
_SHARED_BY_NOBODY = 0x21  # MAP_SHARED and MAP_ANONYMOUS: memory that can outlive every count of it
_FAMILY = 1  # of sockets: Unix, for `await`; those of networks hold memory that nobody counts
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # place above, AUDIT_ARCH

_LOAD, _SAME, _FROM, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06  # of classic BPF
# where a call's number, machine, first and fourth argument stand
_NUMBER, _ARCH, _FIRST, _FOURTH = 0, 4, 16, 40
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_PERMISSION, _NO_CALL, _NO_FAMILY = 1, 38, 97  # errno


def seccomp_filter(machine: str | None = None) -> bytes | None:
    """Return the filter for a kind of processor, or None where its numbers aren't known.

    >>> len(seccomp_filter("x86_64")) % 8, seccomp_filter("sparc64")
    (0, None)
    """
    known = _MACHINES.get(machine or platform.machine())
    if known is None:
        return None
    place, arch = known
    numbers = answered(place)
    refuse, allow = (_RETURN, 0, 0, _ERROR | _PERMISSION), (_RETURN, 0, 0, _ALLOW)
    program = [(_LOAD, 0, 0, _ARCH), (_SAME, 1, 0, arch), refuse, (_LOAD, 0, 0, _NUMBER)]
    program += [
        (_SAME, 0, 5, numbers["mmap"]), (_LOAD, 0, 0, _FOURTH), (_AND, 0, 0, _SHARED_BY_NOBODY),
        (_SAME, 0, 1, _SHARED_BY_NOBODY), refuse, allow,
    ]  # fmt: skip
    for name in ("socket", "socketpair"):
        program += [
            (_SAME, 0, 4, numbers[name]), (_LOAD, 0, 0, _FIRST), (_SAME, 0, 1, _FAMILY), allow,
            (_RETURN, 0, 0, _ERROR | _NO_FAMILY),
        ]  # fmt: skip
    for first, after in _runs(sorted(numbers.values())):
        program += [(_FROM, 1, 0, first), refuse, (_FROM, 1, 0, after), allow]
    # beyond are also the numbers of another way to call the same kernel (x32)
    program += [(_FROM, 1, 0, _LAST + 1), refuse, (_RETURN, 0, 0, _ERROR | _NO_CALL)]
    return b"".join(struct.pack("=HBBI", *each) for each in program)


def answered(place: int) -> dict[str, int]:
    """Return the numbers of the calls that are answered, by name, on x86_64 (0) or aarch64 (1)."""
    rows = (each.split(":") for text in _ANSWERED.values() for each in text.split())
    return {name: int(numbers[place]) for name, *numbers in rows if numbers[place]}


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    """Return the first of each run of numbers, and what comes after its last.

    >>> _runs([1, 2, 5])
    [(1, 3), (5, 6)]
    """
    starts = [each for each in numbers if each - 1 not in numbers]
    return [
        (each, next(n for n in range(each, each + len(numbers) + 1) if n not in numbers))
        for each in starts
    ]
