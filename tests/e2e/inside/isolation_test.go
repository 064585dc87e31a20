package inside

import (
	"context"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

// leave puts something everywhere where something could stay, and prints
// "ready" when it is there. What follows decides how long it stays.
const leave = `import ctypes, os, socket, subprocess
for d in ("/tmp", "/work", "/dev/shm", "/home/sandbox", "/var/tmp", "/run", "/var/lock"):
    try: open(d + "/left", "w").close()
    except OSError: pass
libc = ctypes.CDLL(None, use_errno=True)
assert libc.shmget(4242, 4096, 0o1666) >= 0
assert libc.msgget(4242, 0o1666) >= 0
assert libc.semget(4242, 1, 0o1666) >= 0
servers = [socket.create_server(("127.0.0.1", 4242)), socket.create_server(("0.0.0.0", 4243))]
u = socket.socket(socket.AF_UNIX); u.bind("\0left"); u.listen()
subprocess.Popen(["sleep", "4242"])
print("ready", flush=True)
`

// look prints what of it can be seen.
const look = `import ctypes, os, socket
seen = []
for d, _, names in os.walk("/"):
    if d.startswith(("/proc", "/sys")): continue
    seen += [os.path.join(d, n) for n in names if n == "left"]
libc = ctypes.CDLL(None, use_errno=True)
for what in ("shmget", "msgget", "semget"):
    args = (4242, 0) if what == "msgget" else (4242, 0, 0)
    if getattr(libc, what)(*args) >= 0: seen.append(what)
for address in (("127.0.0.1", 4242), ("127.0.0.1", 4243), "\0left"):
    s = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET); s.settimeout(5)
    try: s.connect(address); seen.append(address)
    except ConnectionRefusedError: pass
seen += [p for p in os.listdir("/proc") if p.isdigit() and int(p) not in (1, os.getpid())]
print(seen)`

// TestI5S11NothingStays: what one program left is not there for the next, nor
// for one beside it.
func TestI5S11NothingStays(t *testing.T) {
	t.Parallel()
	first := shared.Python(t, leave)
	product.Equal(t, "stdout of the first", first.Stdout, "ready\n")
	second := shared.Python(t, look)
	product.Wrote(t, second, "[]\n", "")
	if first.SandboxName == second.SandboxName {
		t.Errorf("both ran in sandbox %s", first.SandboxName)
	}

	// A look from within shows that the look itself works.
	request := python(leave + look)
	within := shared.Execute(t, request)
	for _, what := range []string{"/tmp/left", "/work/left", "/dev/shm/left", "/home/sandbox/left", "shmget", "msgget", "semget", "4242", "4243", `x00left`} {
		if !strings.Contains(within.Stdout, what) {
			t.Errorf("the program that left %s does not see it in %s", what, within.Stdout)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	looked := false
	_, _ = shared.StreamTo(ctx, python(leave+"import time; time.sleep(60)"), func(e product.Event) {
		if e.Name == execution.EventStdout && !looked {
			looked = true
			product.Wrote(t, shared.Python(t, look), "[]\n", "")
			cancel()
		}
	})
	if !looked {
		t.Error("the program beside did not run")
	}
}
