package load

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

// hostile are programs that take what they can of their sandbox, of its runner and
// of what sandboxes share, and how each must end.
func hostile() []program {
	two := execution.Limits{TimeoutSeconds: 2}
	flood := func(name, code string) program { // which ends by itself, having got nowhere
		return program{name: name, request: within(python(code+"\nos._exit(7)"), execution.Limits{TimeoutSeconds: 60}), status: execution.StatusFailed, exit: 7}
	}
	endless := func(name, code string) program {
		return program{name: name, request: within(python(code), two), status: execution.StatusTimedOut, exit: 137}
	}
	const threads = `import os, signal, time
def each(f):
    for t in map(int, os.listdir("/proc/1/task")):
        try: f(t)
        except OSError: pass
def burn(n):
    for _ in range(n):
        if os.fork() == 0:
            while True: pass
`
	const call = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
	const tree = `import os, signal, time
for _ in range(40):
    if os.fork() == 0:
        os.setsid()
        for n in range(1, 65):
            try: signal.signal(n, signal.SIG_IGN)
            except (OSError, ValueError): pass
        if os.fork() > 0: os._exit(0)
        time.sleep(1000)
print("up", flush=True)`
	gone := endless("client leaves a flood", threads+"burn(60)\nwhile True: pass")
	gone.gone = true
	return []program{
		endless("idle class", threads+"each(lambda t: os.sched_setscheduler(t, os.SCHED_IDLE, os.sched_param(0)))\nburn(100)\nwhile True: pass"),
		endless("nice and one processor", threads+"each(lambda t: os.setpriority(os.PRIO_PROCESS, t, 19))\neach(lambda t: os.sched_setaffinity(t, {0}))\nburn(100)\nwhile True: pass"),
		endless("fork bomb", "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"),
		endless("fork bomb in sessions", "import os\nwhile True:\n    try:\n        if os.fork() == 0: os.setsid()\n    except OSError: pass"),
		endless("signal storm", threads+"for _ in range(20):\n    if os.fork() == 0:\n        while True:\n            for n in range(1, 65):\n                try: os.kill(1, n)\n                except OSError: pass\nwhile True: pass"),
		endless("stopped", threads+"burn(10)\nos.kill(0, signal.SIGSTOP)"),
		{name: "memory", request: within(python("x = []\nwhile True: x.append(bytearray(1 << 20))"), execution.Limits{MemoryBytes: 128 << 20}), status: execution.StatusOutOfMemory, exit: 137},
		{name: "memory, score 0", request: python("open('/proc/self/oom_score_adj', 'w').write('500')\nx = []\nwhile True: x.append(bytearray(1 << 20))"), status: execution.StatusOutOfMemory, exit: 137},
		{name: "files in memory", request: python("import os\nfor d in ('/tmp', '/dev/shm', '/work', '/home/sandbox'):\n    try:\n        with open(d + '/full', 'wb', 0) as f:\n            while f.write(bytes(1 << 20)): pass\n    except OSError: pass"),
			status: execution.StatusOutOfMemory, exit: 137},
		flood("inodes", "import os\nfor d in ('/tmp', '/dev/shm', '/work'):\n    try:\n        for n in range(10**6): os.close(os.open(f'{d}/{n}', os.O_CREAT))\n    except OSError: pass"),
		flood("descriptors", "import os\ntry:\n    while True: os.pipe()\nexcept OSError: pass"),
		flood("threads", "import os, threading, time\ntry:\n    while True: threading.Thread(target=time.sleep, args=(100,), daemon=True).start()\nexcept RuntimeError: pass"),
		flood("trace", call+"for pid in range(1, 100):\n    for request in (16, 0x4206): libc.ptrace(request, pid, 0, 0)"),
		flood("timers and signals", call+"import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(34, 65))\nfor _ in range(5000):\n    libc.timer_create(0, 0, ctypes.byref(ctypes.c_long(0)))\n    try: os.kill(os.getpid(), 40)\n    except OSError: pass"),
		flood("unread sockets", "import os, socket\nkept = []\ntry:\n    while True:\n        pair = socket.socketpair(); kept.append(pair); pair[0].setblocking(False)\n        try:\n            while True: pair[0].send(bytes(1 << 16))\n        except BlockingIOError: pass\nexcept OSError: pass"),
		{name: "output", request: within(execution.Request{Language: "bash", Code: "yes & yes >&2"}, execution.Limits{TotalOutputBytes: 8 << 20}), status: execution.StatusOutputLimit, exit: 137},
		{name: "descendants", request: python(tree), status: execution.StatusSucceeded, stdout: "up\n"},
		gone,
	}
}

// rounds is how often hostile programs and quiet take turns.
const rounds = 4

// TestHostile runs many hostile programs from 16 clients, and a neighbour beside
// them and in turns alone. Nothing of them stays, no place is lost, and each of
// the neighbour's programs runs. HOSTILE is how many there are.
func TestHostile(t *testing.T) {
	n := 54 // three of each kind
	if text := os.Getenv("HOSTILE"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	p := product.Start(t, "PREHEAT_POOL_SIZE=8", "PREHEAT_QUEUE_TIMEOUT=120s")
	all := hostile()
	next := 0
	var mu sync.Mutex
	inTurn := func(*rand.Rand) program { // so that each kind runs as often
		mu.Lock()
		defer mu.Unlock()
		next++
		return all[next%len(all)]
	}
	drive(t, p, n/10, inTurn)
	connect(t, p)
	before, bundles := settled(t, p), p.Leftovers(t).Bundles
	var quiet, beside neighbour
	began, wrong := time.Now(), int64(0)
	for range rounds {
		quiet.runs(t, p, func() bool { return len(quiet.took)%max(n/rounds/4, 10) == 0 })
		done := make(chan struct{})
		var attackers sync.WaitGroup
		attackers.Go(func() {
			defer close(done)
			wrong += drive(t, p, n/rounds, inTurn).wrong.Load()
		})
		beside.runs(t, p, func() bool {
			select {
			case <-done:
				return true
			default:
				return false
			}
		})
		attackers.Wait()
		settled(t, p)
	}
	after := settled(t, p)
	t.Logf("programs=%d kinds=%d clients=%d seconds=%.0f wrong=%d", n, len(all), clients, time.Since(began).Seconds(), wrong)
	t.Logf("neighbour alone:   %v", &quiet)
	t.Logf("neighbour beside:  %v", &beside)
	t.Logf("before: %v", before)
	t.Logf("after:  %v", after)
	if after.processes != before.processes || after.cgroups != before.cgroups || after.mounts != before.mounts || p.Leftovers(t).Bundles != bundles {
		t.Error("processes, cgroups, mounts or bundles are left")
	}
}

// neighbour runs small programs, one after the other, and notes how long each
// took, with and without its wait for a sandbox.
type neighbour struct{ took, ran []time.Duration }

// runs runs one program at least, until ended says so.
func (x *neighbour) runs(t *testing.T, p *product.Product, ended func() bool) {
	t.Helper()
	for {
		began := time.Now()
		r := p.Python(t, "print(1)")
		x.took = append(x.took, time.Since(began))
		product.Ended(t, r, execution.StatusSucceeded, 0, "")
		x.ran = append(x.ran, time.Duration(r.TimingsMS.Run*float64(time.Millisecond)))
		if ended() {
			return
		}
	}
}

func (x *neighbour) String() string {
	ms := func(d []time.Duration, q float64) string {
		slices.Sort(d)
		return strconv.FormatFloat(d[int(q*float64(len(d)-1))].Seconds()*1000, 'f', 1, 64)
	}
	return "n=" + strconv.Itoa(len(x.took)) +
		" took p50=" + ms(x.took, .5) + " p99=" + ms(x.took, .99) + " ms, of it running p50=" + ms(x.ran, .5) + " p99=" + ms(x.ran, .99) + " ms"
}
