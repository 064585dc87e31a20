package attacks

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

// TestWhatTheMachineCounts: what is counted for root or for the whole machine is
// bounded in each sandbox, or refused.
func TestWhatTheMachineCounts(t *testing.T) {
	t.Parallel()
	const most = 1000
	for _, test := range []struct {
		name, code string
		atMost     int
	}{
		{"inotify instances", fmt.Sprintf("many(lambda: libc.syscall(%d, 0))", unix.SYS_INOTIFY_INIT1), 0},
		{"aio contexts", fmt.Sprintf("many(lambda: libc.syscall(%d, 1, ctypes.byref(ctypes.c_long(0))))", unix.SYS_IO_SETUP), 0},
		{"message queues", fmt.Sprintf("many(lambda: libc.syscall(%d, b'q%%d' %% next(number), 0o102, 0o600, 0))", unix.SYS_MQ_OPEN), 0},
		{"queued signals", `signal.pthread_sigmask(signal.SIG_BLOCK, [40])
info = ctypes.create_string_buffer(struct.pack("3i", 40, 0, -1) + bytes(116))
many(lambda: libc.syscall(` + fmt.Sprint(unix.SYS_RT_SIGQUEUEINFO) + `, os.getpid(), 40, info))`, 256},
		{"timers", fmt.Sprintf("many(lambda: libc.syscall(%d, 0, 0, ctypes.byref(ctypes.c_int(0))))", unix.SYS_TIMER_CREATE), 256},
		{"pseudo-terminals", "import pty\nmany(pty.openpty)", 32},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := shared.Python(t, prelude+fmt.Sprintf(`import itertools
number = itertools.count()
kept = []
def many(f):
    for n in range(%d):
        try: r = f()
        except OSError: r = -1
        if r == -1: break
        kept.append(r)
    else: n = %[1]d
    print(n)
`, most)+test.code)
			outcome(t, test.code, r)
			product.Ended(t, r, execution.StatusSucceeded, 0, "")
			var n int
			if _, err := fmt.Sscan(r.Stdout, &n); err != nil || n > test.atMost {
				t.Errorf("%s of at most %d, %v, %s", r.Stdout, test.atMost, err, r.Stderr)
			}
		})
	}
}

// TestRareProtocols: kernel code that no program needs is out of reach.
func TestRareProtocols(t *testing.T) {
	t.Parallel()
	const tcp, sctp, udpLite, mptcp = 6, 132, 136, 262
	refused(t, []attempt{
		{"MPTCP", fmt.Sprintf("attempt(socket.socket, socket.AF_INET, socket.SOCK_STREAM, %d); attempt(socket.socket, socket.AF_INET6, socket.SOCK_STREAM, %[1]d)", mptcp), "EPERM"},
		{"UDP-Lite", fmt.Sprintf("attempt(socket.socket, socket.AF_INET, socket.SOCK_DGRAM, %d)", udpLite), "EPERM"},
		{"SCTP", fmt.Sprintf("attempt(socket.socket, socket.AF_INET, socket.SOCK_STREAM, %d)", sctp), "EPERM"},
		{"TCP is left", fmt.Sprintf("attempt(socket.socket, socket.AF_INET, socket.SOCK_STREAM, %d); attempt(socket.socketpair)", tcp), "ALLOWED"},
	})
}

// TestSocketMemoryIsBounded: data that nobody reads stays within a bound,
// whether the kernel counts it as the sandbox's memory or by itself.
func TestSocketMemoryIsBounded(t *testing.T) {
	t.Parallel()
	r := shared.Python(t, `import resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
listener = socket.create_server(("127.0.0.1", 0))
sent, kept, piece = 0, [], bytes(1 << 16)
try:
    while sent < 1 << 30:
        a = socket.socket()
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF): a.setsockopt(socket.SOL_SOCKET, option, 1 << 30)
        a.settimeout(2)
        a.connect(listener.getsockname())
        b = listener.accept()[0]
        b.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 30)
        kept += [a, b]
        a.setblocking(False)
        try:
            while True: sent += a.send(piece)
        except BlockingIOError: pass
except OSError as e: print(e, file=sys.stderr)
print(sent >> 20)`)
	outcome(t, "TCP data that nobody reads, of which the MiB", r)
	if r.Status == execution.StatusOutOfMemory {
		return // counted in full
	}
	product.Ended(t, r, execution.StatusSucceeded, 0, "")
	var sent int
	if _, err := fmt.Sscan(r.Stdout, &sent); err != nil || sent > 256 {
		t.Errorf("%d MiB were sent and not read", sent)
	}
}

// TestOOMScores: a program that lowers its score changes no report, and its runner
// has the least that a program can give itself.
func TestOOMScores(t *testing.T) {
	t.Parallel()
	const code = `import os, time
try:
    with open("/proc/self/oom_score_adj", "w") as f: f.write("0")
except OSError: pass
for d in ("/tmp", "/work", "/dev/shm", "/home/sandbox"):
    try:
        with open(d + "/full", "wb") as f:
            while True: f.write(bytes(1 << 20))
    except OSError: pass
a = []
while True: a.append(bytearray(1 << 20))
`
	for _, r := range []execution.Request{{Language: "python", Code: code}, {Language: "bash", Code: "python3 - <<'EOF'\n" + code + "EOF"}} {
		result := shared.Execute(t, r)
		outcome(t, "oom_score_adj 0, then all memory and all tmpfs", result)
		product.Ended(t, result, execution.StatusOutOfMemory, 137, "SIGKILL")
	}
	least := shared.Execute(t, execution.Request{Language: "python", Code: `for score in range(1001):
    try:
        with open("/proc/self/oom_score_adj", "w") as f: f.write(str(score))
        break
    except OSError: pass
print(score, end="")`}).Stdout
	scores := map[string]int{}
	for _, sandbox := range shared.Containers(t) {
		for _, pid := range product.InSandbox(t, sandbox) {
			// A process that is about to become the runner has no score yet, and
			// programs of other tests may have lowered theirs.
			name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			if err != nil || strings.TrimSpace(string(name)) != "runner" {
				continue
			}
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid))
			if err != nil {
				continue // it has ended since
			}
			scores[strings.TrimSpace(string(text))]++
		}
	}
	if len(scores) != 1 || scores[least] == 0 {
		t.Errorf("scores, and how many runners have them: %v; a program can have %s", scores, least)
	}
}

// TestMemoryOfAllSandboxes: together they have less than the machine.
func TestMemoryOfAllSandboxes(t *testing.T) {
	t.Parallel()
	var machine unix.Sysinfo_t
	if err := unix.Sysinfo(&machine); err != nil {
		t.Fatal(err)
	}
	var limits []string
	for _, dir := range shared.Cgroups(t) {
		if !strings.HasPrefix(filepath.Base(dir), "preheat-") {
			continue // that of one sandbox
		}
		for _, file := range []string{"memory.limit_in_bytes", "memory.max"} {
			text, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				continue
			}
			limits = append(limits, strings.TrimSpace(string(text)))
			limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
			if total := machine.Totalram * uint64(machine.Unit); err != nil || limit >= total {
				t.Errorf("%s of %d has the limit %s", dir, total, text)
			}
		}
	}
	if len(limits) == 0 {
		t.Error("there is no limit")
	}
	row(t, "the memory limit above all sandboxes", strings.Join(limits, " "))
}

// TestTheMachineIsMasked: what /proc says of the machine is not there.
func TestTheMachineIsMasked(t *testing.T) {
	t.Parallel()
	r := shared.Python(t, `import os
for name in ("cmdline", "config.gz", "interrupts", "diskstats", "pressure"):
    path = "/proc/" + name
    if not os.path.exists(path): continue
    said = os.listdir(path) if os.path.isdir(path) else open(path, "rb").read()
    if said: print(name)`)
	outcome(t, "/proc/cmdline, config.gz, interrupts, diskstats, pressure", r)
	product.Ended(t, r, execution.StatusSucceeded, 0, "")
	product.Wrote(t, r, "", "")
}
