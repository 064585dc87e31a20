package ending

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

// hog takes memory until there is no more.
const hog = "x = []\nwhile True: x.append(bytearray(1 << 20))\n"

func limited(r execution.Request, mib int64) execution.Request {
	r.Limits.MemoryBytes = mib << 20
	return r
}

func TestE7OutOfMemory(t *testing.T) {
	t.Parallel()
	fill := func(dir string) execution.Request {
		return python(fmt.Sprintf("f = open('%s/file', 'wb')\nwhile True: f.write(bytes(1 << 20))", dir))
	}
	tests := []struct {
		name    string
		request execution.Request
		mib     int64
		signal  string
	}{
		{"64 MiB", python(hog), 64, "SIGKILL"},
		{"256 MiB", python(hog), 256, "SIGKILL"},
		{"in threads", python("import threading\ndef f():\n    x = []\n    while True: x.append(bytearray(1 << 20))\nfor _ in range(8): threading.Thread(target=f).start()"), 64, "SIGKILL"},
		{"asks for its own protection", python("open('/proc/self/oom_score_adj', 'w').write('0')\n" + hog), 64, "SIGKILL"},
		{"with children that do nothing", python("import os, time\nfor _ in range(5):\n    if os.fork() == 0: time.sleep(100)\n" + hog), 64, "SIGKILL"},
		{"files in the work folder", fill("/work"), 64, "SIGKILL"},
		{"files in /tmp", fill("/tmp"), 64, "SIGKILL"},
		{"files in /dev/shm", fill("/dev/shm"), 64, "SIGKILL"},
		{"the last child of a shell", bash("python3 -c '" + hog + "'"), 64, ""},
		{"node", javascript("const a = []; while (true) a.push(new Array(1e5).fill(1.5))"), 128, "SIGKILL"},
		{"node's buffers", javascript("const a = []; while (true) a.push(Buffer.alloc(1 << 20, 1))"), 128, "SIGKILL"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := shared.Execute(t, limited(tt.request, tt.mib))
			product.Ended(t, r, execution.StatusOutOfMemory, 137, tt.signal)
			if r.Usage.OOMKills < 1 {
				t.Errorf("%d processes were killed for memory", r.Usage.OOMKills)
			}
		})
	}
}

// TestE7RunnerAsItsVictim: a program that makes the kernel spare it, and leaves no
// memory to anybody, may have its runner killed in its place. The result says
// what is true: it ran out of memory, with what it had written, and its files
// are there or said to be lost.
func TestE7RunnerAsItsVictim(t *testing.T) {
	t.Parallel()
	const (
		before = "import os\nprint('before', flush=True)\nopen('a.txt', 'w').write('kept')\n"
		spared = "try: open('/proc/self/oom_score_adj', 'w').write('0')\nexcept OSError: pass\n"
		fill   = "for d in ('/tmp', '/work', '/dev/shm', '/home/sandbox')[:%d]:\n" +
			"    try:\n        with open(d + '/full', 'wb') as f:\n            while True: f.write(bytes(1 << 20))\n    except OSError: pass\n"
		parent = "if os.fork() != 0:\n    os.wait()\n    os._exit(0)\n"
	)
	for name, code := range map[string]string{
		"memory":                  before + spared + hog,
		"files, then memory":      before + spared + fmt.Sprintf(fill, 2) + hog,
		"all files, then memory":  before + spared + fmt.Sprintf(fill, 4) + hog,
		"in a child":              before + parent + spared + fmt.Sprintf(fill, 4) + hog,
		"all files, then success": before + spared + fmt.Sprintf(fill, 4),
	} {
		for _, mib := range []int64{64, 256} {
			t.Run(fmt.Sprintf("%s, %d MiB", name, mib), func(t *testing.T) {
				t.Parallel()
				r := shared.Execute(t, limited(python(code), mib))
				product.Equal(t, "stdout", r.Stdout, "before\n")
				if r.Usage.OOMKills < 1 {
					t.Errorf("%d processes were killed for memory", r.Usage.OOMKills)
				}
				lost := slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "its files are lost") })
				kept := slices.ContainsFunc(r.Artifacts, func(a execution.Artifact) bool { return a.Path == "a.txt" && a.Content == "kept" })
				if lost == kept {
					t.Errorf("the files are lost: %v, the file is there: %v; notes %q", lost, kept, r.Notes)
				}
				switch {
				case r.Status == execution.StatusSucceeded && kept:
					// Its child was killed, as a note says, and it succeeded.
				default:
					product.Ended(t, r, execution.StatusOutOfMemory, 137, "SIGKILL")
				}
			})
		}
	}
}

// TestE7WhatFitsSucceeds: a program that leaves the sandbox nearly full has
// still succeeded, and its artifact comes back although the sandbox has no
// room for a copy of it.
func TestE7WhatFitsSucceeds(t *testing.T) {
	t.Parallel()
	r := shared.Execute(t, limited(python(`with open("/tmp/x", "wb") as f:
    for _ in range(30): f.write(bytes(1 << 20))
with open("a.bin", "wb") as f:
    for _ in range(15): f.write(b"\xff" * (1 << 20))
print("ok")`), 64))
	product.Ended(t, r, execution.StatusSucceeded, 0, "")
	product.Wrote(t, r, "ok\n", "")
	if len(r.Artifacts) != 1 || r.Artifacts[0].Size != 15<<20 || r.Artifacts[0].Omitted != "" {
		t.Errorf("there are %d artifacts, notes %q", len(r.Artifacts), r.Notes)
	}
}

func TestE7MemoryErrorIsAnException(t *testing.T) {
	t.Parallel()
	r := shared.Execute(t, python("try: bytearray(10**15)\nexcept MemoryError: print('caught')"))
	product.Ended(t, r, execution.StatusSucceeded, 0, "")
	product.Wrote(t, r, "caught\n", "")
}

func TestE8ChildOutOfMemory(t *testing.T) {
	t.Parallel()
	const fork = "import os\npid = os.fork()\nif pid == 0:\n    x = []\n    while True: x.append(bytearray(1 << 20))\n" +
		"print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
	tests := []struct {
		name     string
		request  execution.Request
		stdout   string
		exitCode int
	}{
		{"forked", python(fork), "-9\n", 0},
		{"a failure follows", python(fork + "raise SystemExit(3)"), "-9\n", 3},
		{"in a shell", bash("python3 -c '" + hog + "' 2>/dev/null; echo $?"), "137\n", 0},
		{"in node", javascript("console.log(require('child_process').spawnSync('python3', ['-c', `" + hog + "`]).signal)"), "SIGKILL\n", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := shared.Execute(t, limited(tt.request, 128))
			status := execution.StatusSucceeded
			if tt.exitCode != 0 {
				status = execution.StatusFailed
			}
			product.Ended(t, r, status, tt.exitCode, "")
			product.Equal(t, "stdout", r.Stdout, tt.stdout)
			product.Equal(t, "processes killed for memory", r.Usage.OOMKills, 1)
			product.Equal(t, "notes", strings.Join(r.Notes, "; "), "1 process(es) of the program were killed at the memory limit")
		})
	}
}
