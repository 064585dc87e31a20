package attacks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

func TestS14Files(t *testing.T) {
	t.Parallel()
	write := func(paths ...string) string {
		return "for p in " + list(paths) + ": attempt(lambda: open(p, 'w').write('1') and None)"
	}
	refused(t, []attempt{
		{"the runner and the harness", "attempt(os.remove, '/opt/preheat/runner'); attempt(os.rename, '/opt/preheat/python', '/tmp/x')\n" +
			write("/opt/preheat/runner", "/opt/preheat/python/_preheat.py", "/opt/preheat/x"), "EROFS|EACCES|ETXTBSY|EBUSY|EXDEV"},
		{"the system", write("/etc/passwd", "/usr/bin/python3", "/usr/lib/python3/dist-packages/x.py", "/x", "/bin/x", "/var/tmp/x", "/run/x", "/dev/x", "/home/x"), "EROFS|EACCES"},
		{"the kernel's settings", write("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/vm/overcommit_memory", "/proc/sys/net/ipv4/ip_forward", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper", "/sys/module/x"), "EROFS|EACCES|ENOENT"},
		{"cgroups", "import glob\npaths = [p for n in ('cgroup.procs', 'tasks', 'memory.limit_in_bytes', 'memory.max', 'cpu.cfs_quota_us', 'cpu.max', 'pids.max', 'release_agent', 'notify_on_release', 'devices.allow') for p in glob.glob('/sys/fs/cgroup/**/' + n, recursive=True)]\nassert paths\n" +
			"for p in paths: attempt(lambda: open(p, 'w').write('1') and None)\nfor d in glob.glob('/sys/fs/cgroup/*/'): attempt(os.mkdir, d + 'x')", "EROFS|EACCES"},
		{"above the cgroup", "seen = sum((os.listdir('/sys/fs/cgroup/' + d + '/..') for d in os.listdir('/sys/fs/cgroup')), []) if os.path.isdir('/sys/fs/cgroup/memory') else []\nprint('ALLOWED' if any('preheat' in n or 'kube' in n for n in seen) else 'HIDDEN')", "HIDDEN"},
		{"the runner's memory and descriptors", "for n in ('mem', 'environ', 'maps', 'fd', 'fdinfo', 'map_files', 'cwd', 'root', 'exe', 'auxv', 'stack', 'syscall', 'io', 'ns/mnt', 'task/1/mem', 'task/1/environ', 'pagemap', 'timerslack_ns', 'oom_score_adj'):\n" +
			"    p = '/proc/1/' + n\n    attempt(lambda: os.listdir(p) if os.path.isdir(p) and not os.path.islink(p) else os.readlink(p) if n in ('cwd', 'root', 'exe', 'ns/mnt') else open(p, 'r+b').read(1))", "EACCES|EPERM|ENOENT|EROFS"},
		{"through the runner's root", "attempt(os.listdir, '/proc/1/root/'); attempt(os.listdir, '/proc/1/cwd/')", "EACCES|EPERM"},
		{"the kernel's memory and log", "for p in ('/proc/kcore', '/proc/kmsg', '/proc/keys', '/proc/timer_list', '/dev/mem', '/dev/kmsg'): attempt(lambda: print('EMPTY') if open(p, 'rb').read(1) == b'' else None)", "EMPTY|ALLOWED|EACCES|EPERM|ENOENT"},
		{"a program on /dev/shm", "import shutil, subprocess\nshutil.copy('/usr/bin/true', '/dev/shm/x')\nattempt(subprocess.run, ['/dev/shm/x'])", "EACCES"},
	})
}

// TestS14KernelMemoryIsMasked: what the attempt above may open has nothing.
func TestS14KernelMemoryIsMasked(t *testing.T) {
	t.Parallel()
	r := shared.Python(t, "for p in ('/proc/kcore', '/proc/keys', '/proc/timer_list', '/proc/acpi', '/sys/firmware'):\n"+
		"    import os\n    try: print(os.listdir(p) if os.path.isdir(p) else open(p, 'rb').read(10))\n    except OSError: print('refused')")
	outcome(t, "reads of /proc/kcore, keys, timer_list, acpi and /sys/firmware", r)
	for _, line := range strings.Fields(r.Stdout) {
		if line != "[]" && line != "b''" && line != "refused" {
			t.Errorf("there is %s in %s", line, r.Stdout)
		}
	}
}

// TestS14NoSecrets: neither the environment nor the file systems tell of the
// machine or of the server.
func TestS14NoSecrets(t *testing.T) {
	t.Setenv("PREHEAT_LLM_API_KEY", "unused")
	r := shared.Execute(t, execution.Request{Language: "bash", Code: `env; cat /proc/self/mountinfo /proc/self/cgroup /proc/mounts; cat /etc/resolv.conf /etc/hosts; hostname; ls -R /opt /run /home 2>/dev/null`})
	row(t, "environment, mounts, cgroup, /etc, folders", fmt.Sprintf("%s, %d bytes were looked through", r.Status, len(r.Stdout)))
	for _, word := range []string{shared.StateDir, "PREHEAT_RUNNER", "PREHEAT_LLM", "API_KEY", "/var/lib/docker"} {
		if strings.Contains(r.Stdout, word) {
			t.Errorf("the program sees %q", word)
		}
	}
}

func TestS14ProcessesOfOthers(t *testing.T) {
	t.Parallel()
	r := shared.Python(t, "import os\nprint(sorted(int(p) for p in os.listdir('/proc') if p.isdigit()) == [1, os.getpid()], os.getppid(), open('/proc/1/comm').read().strip())")
	outcome(t, "the numbers in /proc, the parent", r)
	product.Wrote(t, r, "True 1 runner\n", "")
}

// list writes strings as a Python list.
func list(items []string) string { return "['" + strings.Join(items, "', '") + "']" }
