// Package gvisor tests sandboxes that gVisor's runsc makes: what is as with runc,
// and what differs. `make test-gvisor` runs it.
package gvisor

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

var shared *product.Product

func TestMain(m *testing.M) {
	if err := os.Setenv("PREHEAT_RUNTIME", "runsc"); err != nil {
		panic(err)
	}
	os.Exit(product.Main(m, &shared, "PREHEAT_MAX_SANDBOXES=4"))
}

// limited runs for two seconds at most, in 128 MiB.
func limited(language, code string) execution.Request {
	return execution.Request{Language: language, Code: code, Limits: execution.Limits{TimeoutSeconds: 2, MemoryBytes: 128 << 20}}
}

func TestItsKernelIsGVisor(t *testing.T) {
	if log := shared.Log(); !strings.Contains(log, "runtime=runsc") {
		t.Errorf("the server does not log its runtime: %s", log)
	}
	r := shared.Python(t, "import os\nprint(os.uname().release, open('/proc/version').read())")
	if !strings.Contains(r.Stdout, "gvisor") {
		t.Errorf("the kernel is %s", r.Stdout)
	}
}

func TestEveryLanguage(t *testing.T) {
	for language, code := range map[string]string{
		"python":     "import threading, subprocess\nt = threading.Thread(target=print, args=(6 * 7,)); t.start(); t.join()",
		"javascript": "console.log(6 * 7)",
		"bash":       "echo $((6 * 7)) | cat",
	} {
		r := shared.Execute(t, execution.Request{Language: language, Code: code})
		product.Ended(t, r, execution.StatusSucceeded, 0, "")
		product.Wrote(t, r, "42\n", "")
	}
}

// TestTheEndOfAProgram is told as with runc.
func TestTheEndOfAProgram(t *testing.T) {
	for name, test := range map[string]struct {
		request execution.Request
		status  execution.Status
		exit    int
		signal  string
	}{
		"exit code":       {limited("python", "raise SystemExit(3)"), execution.StatusFailed, 3, ""},
		"null pointer":    {limited("python", "import ctypes\nctypes.string_at(0)"), execution.StatusFailed, 139, "SIGSEGV"},
		"abort":           {limited("python", "import os\nos.abort()"), execution.StatusFailed, 134, "SIGABRT"},
		"killed":          {limited("python", "import os\nos.kill(os.getpid(), 9)"), execution.StatusFailed, 137, "SIGKILL"},
		"no end":          {limited("python", "while True: pass"), execution.StatusTimedOut, 137, "SIGKILL"},
		"memory":          {limited("python", "x = []\nwhile True: x.append(bytearray(1 << 20))"), execution.StatusOutOfMemory, 137, "SIGKILL"},
		"files":           {limited("python", "f = open('/dev/shm/x', 'wb')\ng = open('/tmp/x', 'wb')\nwhile True: f.write(bytes(1 << 20)); g.write(bytes(1 << 20))"), execution.StatusOutOfMemory, 137, "SIGKILL"},
		"memory of Node":  {limited("javascript", "const a = []; while (true) a.push(Buffer.alloc(1 << 20, 1))"), execution.StatusOutOfMemory, 137, "SIGKILL"},
		"its own runner":  {limited("python", "import os, signal\nos.kill(1, signal.SIGTSTP)\nwhile True: pass"), execution.StatusTimedOut, 137, "SIGKILL"},
		"a fork bomb":     {limited("bash", "f() { f | f & }; f 2>/dev/null; wait; sleep 9"), execution.StatusTimedOut, 137, "SIGKILL"},
		"busy processes":  {limited("python", "import os\nfor _ in range(60):\n    if os.fork() == 0:\n        while True: pass\nwhile True: pass"), execution.StatusTimedOut, 137, "SIGKILL"},
		"ignored signals": {limited("python", "import signal\nfor n in range(1, 32):\n    if n not in (9, 19): signal.signal(n, signal.SIG_IGN)\nwhile True: pass"), execution.StatusTimedOut, 137, "SIGKILL"},
	} {
		t.Run(name, func(t *testing.T) {
			r := shared.Execute(t, test.request)
			product.Ended(t, r, test.status, test.exit, test.signal)
		})
	}
}

// TestAProgramCanKillItsRunner: the sentry does not keep signals from the first
// process. What the program wrote before comes back with the problem.
func TestAProgramCanKillItsRunner(t *testing.T) {
	problem := shared.Problem(t, 502, execution.Request{Language: "python", Code: "import os\nos.kill(1, 9)\nwhile True: pass"})
	if problem.Type != "urn:preheat:problem:sandbox-lost" {
		t.Errorf("the problem is %+v", problem)
	}
}

// TestChildOutOfMemory: the machine's kernel sees no processes of the program, and
// kills the sandbox, or one address space in it.
func TestChildOutOfMemory(t *testing.T) {
	r := shared.Execute(t, limited("python", "import os\nif os.fork() == 0:\n    x = []\n    while True: x.append(bytearray(1 << 20))\nos.wait()\nprint('on')"))
	if r.Status != execution.StatusOutOfMemory && r.Stdout != "on\n" {
		t.Errorf("%s, %q", r.Status, r.Stdout)
	}
}

// TestHeldAttacks: the attacks of tests/attacks that hold here by other means.
func TestHeldAttacks(t *testing.T) {
	for name, test := range map[string]struct{ code, want string }{
		"mounts and namespaces": {"import ctypes, errno\nl = ctypes.CDLL(None, use_errno=True)\nprint(l.mount(b'none', b'/tmp', b'tmpfs', 0, 0), errno.errorcode[ctypes.get_errno()])\nprint(l.unshare(0x10000000), errno.errorcode[ctypes.get_errno()])", `^-1 EPERM\n-1 EPERM\n$`},
		"clone3 is absent":      {"import ctypes, errno\nl = ctypes.CDLL(None, use_errno=True)\nprint(l.syscall(435, 0, 0), errno.errorcode[ctypes.get_errno()])", `^-1 ENOSYS\n$`},
		"the runner":            {"for n in ('mem', 'environ', 'maps', 'root', 'cwd', 'exe', 'fd/3'):\n    try: open('/proc/1/' + n, 'rb').read(1); print(n)\n    except OSError: pass", `^$`},
		"the image":             {"for p in ('/usr/x', '/etc/passwd', '/opt/preheat/runner'):\n    try: open(p, 'r+'); print(p)\n    except OSError: pass", `^$`},
		"the network":           {"import socket\nfor a in ('1.1.1.1', '169.254.169.254', '10.0.0.1'):\n    try: socket.create_connection((a, 80), 1); print(a)\n    except OSError: pass", `^$`},
		"the machine":           {"print(open('/proc/cmdline').read(), open('/proc/meminfo').read().split()[1])", `^BOOT_IMAGE=/vmlinuz-[\d.]+-gvisor quiet\n \d{6}\n$`},
		"processes":             {"import os\nn = 0\ntry:\n    while n < 1000:\n        if os.fork() == 0: os.pause() if hasattr(os, 'pause') else __import__('time').sleep(9)\n        n += 1\nexcept OSError: pass\nprint(n < 128)", `^True\n$`},
	} {
		t.Run(name, func(t *testing.T) {
			if r := shared.Python(t, test.code); !regexp.MustCompile(test.want).MatchString(r.Stdout) {
				t.Errorf("stdout %q, stderr %s", r.Stdout, r.Stderr)
			}
		})
	}
}

// TestNothingIsLeft: neither beside a running server nor after it.
func TestNothingIsLeft(t *testing.T) {
	p := product.StartIn(t, t.TempDir(), "PREHEAT_POOL_SIZE=1", "PREHEAT_JAVASCRIPT_POOL_SIZE=0")
	for range 3 {
		p.Python(t, "import os\nfor _ in range(5):\n    if os.fork() == 0:\n        while True: pass")
	}
	product.Eventually(t, time.Minute, "one sandbox is left", func() bool {
		left := p.Leftovers(t)
		return left.Containers == 1 && left.Bundles == 1
	})
	if n := zombies(t, p.Cmd.Process.Pid); n > 0 {
		t.Errorf("the server has not waited for %d of its children", n)
	}
	p.Stop(t)
	if left := p.Leftovers(t); left != (product.Leftovers{}) {
		t.Errorf("the server has left %+v", left)
	}
}

// zombies counts the children of a process that have ended and are still there.
func zombies(t *testing.T, parent int) int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended since
		}
		if strings.Contains(string(text), fmt.Sprintf(") Z %d ", parent)) {
			n++
		}
	}
	return n
}

// TestAKilledServerLeavesNothing: its sandboxes end with it, and the next server
// removes what they had.
func TestAKilledServerLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	p := product.StartIn(t, dir)
	p.Kill(t)
	next := product.StartIn(t, dir)
	next.Stop(t)
	if left := next.Leftovers(t); left != (product.Leftovers{}) {
		t.Errorf("the servers have left %+v", left)
	}
}

// TestNoRunsc: the server says what is missing.
func TestNoRunsc(t *testing.T) {
	_, err := product.Launch(t, t.TempDir(), "PREHEAT_RUNSC=/nowhere/runsc")
	if err == nil || !strings.Contains(err.Error(), "make gvisor") {
		t.Errorf("the error is %v", err)
	}
	_, err = product.Launch(t, t.TempDir(), "PREHEAT_RUNTIME=crun")
	if err == nil || !strings.Contains(err.Error(), "PREHEAT_RUNTIME must be runc or runsc") {
		t.Errorf("the error is %v", err)
	}
}
