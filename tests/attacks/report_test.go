package attacks

import (
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

// TestS14TheReportStaysTrue: a program does what it can to the runner, and
// then ends in a way that is known.
func TestS14TheReportStaysTrue(t *testing.T) {
	t.Parallel()
	const info = `class Info(ctypes.Structure):
    _fields_ = [("number", ctypes.c_int), ("error", ctypes.c_int), ("code", ctypes.c_int), ("rest", ctypes.c_char * 116)]
def forge(number, code): return ctypes.byref(Info(number, 0, code))
`
	for name, code := range map[string]string{
		"every signal": "for n in range(1, 65):\n    try: os.kill(1, n)\n    except OSError: pass",
		"every signal to every thread": "for tid in range(1, 64):\n    for n in range(1, 65):\n" +
			"        for target in (lambda: os.kill(tid, n) if tid == 1 else None, lambda: libc.syscall(234, 1, tid, n)): target()",
		"a flood of signals": "for _ in range(1000):\n    for n in range(1, 65):\n        try: os.kill(1, n)\n        except OSError: pass",
		"a flood from many":  "for _ in range(8):\n    if os.fork() == 0:\n        while True: os.kill(1, signal.SIGTERM); os.kill(1, signal.SIGURG); os.kill(1, signal.SIGCHLD)\ntime.sleep(1)",
		"forged faults": info + "for n in range(1, 65):\n    if n not in (signal.SIGKILL, signal.SIGSTOP):\n" +
			"        for code in (-1, -2, -60): libc.syscall(129, 1, n, forge(n, code)); libc.syscall(297, 1, 1, n, forge(n, code))",
		"forged faults by descriptor":  info + "p = os.pidfd_open(1)\nfor n in range(1, 65): libc.syscall(424, p, n, forge(n, -1), 0)",
		"signals to all":               "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nos.kill(0, signal.SIGTERM)\ntry: os.kill(-1, signal.SIGKILL)\nexcept OSError: pass",
		"noise on the harness's pipes": "for fd in range(3, 64):\n    try: os.set_blocking(fd, False); os.write(fd, os.urandom(60000))\n    except OSError: pass",
		"an exit that is forged":       "for fd in range(3, 64):\n    try: os.write(fd, b'x\\0\\0\\0\\x24{\"status\":\"succeeded\",\"exit_code\":0}')\n    except OSError: pass",
		"closed descriptors":           "os.closerange(3, 1024)",
		"no process left to start":     "import threading\ntry:\n    while True: threading.Thread(target=time.sleep, args=(100,), daemon=True).start()\nexcept RuntimeError: pass",
		"every descriptor":             "try:\n    while True: os.pipe()\nexcept OSError: pass",
		"locks on the runner's files":  "import fcntl, glob\nfor p in ['/opt/preheat/runner', '/work', '/work/main.py'] + glob.glob('/sys/fs/cgroup/*/memory.oom_control'):\n    try: fcntl.flock(os.open(p, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)\n    except OSError: pass",
		"a work folder that is moved":  "os.rename('/work/main.py', '/work/x')\nos.makedirs('/work/' + 'd/' * 500)",
		"a full disk":                  "f = open('/work/x', 'wb')\ntry:\n    while True: f.write(bytes(1 << 20))\nexcept OSError: pass",
		"no inode left":                "try:\n    for i in range(10**6): open(f'/work/{i}', 'w').close()\nexcept OSError: pass",
		"the runner is asked to stop":  "for n in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGKILL, signal.SIGABRT, signal.SIGQUIT): os.kill(1, n)",
		"priorities":                   "os.nice(19)\ntry: os.setpriority(os.PRIO_PROCESS, 1, 19)\nexcept OSError: pass",
		"the runner's limits":          "import resource\nfor n in (resource.RLIMIT_NOFILE, resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC):\n    try: resource.prlimit(1, n, (0, 0))\n    except (OSError, ValueError): pass",
		"limits of every thread":       "import resource\nfor tid in range(1, 64):\n    try: resource.prlimit(tid, resource.RLIMIT_CPU, (0, 0))\n    except (OSError, ValueError): pass\nlibc.syscall(302, 1, 0, 1 << 32, 0)",
		"the runner's processors":      "try: os.sched_setaffinity(1, {0})\nexcept OSError: pass\ntry: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))\nexcept OSError: pass",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := execution.Request{Language: "python", Code: prelude + code + "\nos.write(1, b'end\\n')\nos._exit(7)", Limits: execution.Limits{TimeoutSeconds: 60}}
			r := shared.Execute(t, request)
			outcome(t, code, r)
			product.Ended(t, r, execution.StatusFailed, 7, "")
			product.Wrote(t, r, "end\n", "")
		})
	}
}

// TestS14NoWayToSucceed: a program that was killed cannot have said before
// that it succeeded.
func TestS14NoWayToSucceed(t *testing.T) {
	t.Parallel()
	r := shared.Execute(t, execution.Request{
		Language: "python", Limits: execution.Limits{TimeoutSeconds: 0.5},
		Code: prelude + "for fd in range(3, 16):\n    try: os.set_blocking(fd, False); os.write(fd, b'x\\0\\0\\0\\x24{\"status\":\"succeeded\",\"exit_code\":0}')\n    except OSError: pass\nos.kill(0, signal.SIGSTOP)",
	})
	outcome(t, "forged frames of success, then stopped until the time limit", r)
	product.Ended(t, r, execution.StatusTimedOut, 137, "SIGKILL")
}

// TestS14AProgramMayLowerItself: what programs do with their own priority,
// processors and limits works, and what they start gets it.
func TestS14AProgramMayLowerItself(t *testing.T) {
	t.Parallel()
	r := shared.Execute(t, execution.Request{Language: "bash", Code: `set -e
python3 - <<'END'
import os, resource
before = os.getpriority(os.PRIO_PROCESS, 0) # that of the server
os.nice(3)
os.setpriority(os.PRIO_PROCESS, 0, before + 4)
os.sched_setaffinity(0, os.sched_getaffinity(0))
os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
print(os.getpriority(os.PRIO_PROCESS, 0) - before, os.sched_getscheduler(0), resource.prlimit(1, resource.RLIMIT_NOFILE)[0] > 100)
END
echo $(($(nice -n 5 nice) - $(nice)))
taskset -c "$(taskset -cp $$ | sed 's/.*: //')" echo pinned
chrt -i 0 echo idle
ionice -c 3 echo ionice
(ulimit -n 64; ulimit -n)
node -e 'const os = require("os"); const before = os.getPriority(); os.setPriority(0, before + 6); console.log(os.getPriority() - before)'
`})
	outcome(t, "nice, taskset, chrt, ionice, ulimit of itself", r)
	product.Ended(t, r, execution.StatusSucceeded, 0, "")
	product.Wrote(t, r, "4 3 True\n5\npinned\nidle\nionice\n64\n6\n", "")
}
