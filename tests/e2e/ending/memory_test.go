package ending

import (
	"fmt"
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
