// Package attacks tries, from within real sandboxes, what a hostile program
// would: each attempt must be refused with an ordinary error, and none may
// change what is reported of the program. They are the rows S13 and S14 of
// docs/results.md.
package attacks

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

var shared *product.Product

func TestMain(m *testing.M) {
	os.Exit(product.Main(m, &shared, "PREHEAT_POOL_SIZE=6", "PREHEAT_JAVASCRIPT_POOL_SIZE=0", "PREHEAT_QUEUE_TIMEOUT=120s"))
}

// prelude is what attempts are written with: each prints one word, the name of
// the error or ALLOWED.
const prelude = `import ctypes, errno, os, signal, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def call(*args):
    ctypes.set_errno(0)
    result = libc.syscall(*[a if isinstance(a, (bytes, ctypes.Array)) else ctypes.c_long(a) for a in args])
    print(errno.errorcode[ctypes.get_errno()] if result < 0 else "ALLOWED")
def attempt(f, *args):
    try: f(*args)
    except OSError as e: print(errno.errorcode[e.errno])
    else: print("ALLOWED")
def reach(family, kind, address):
    began = time.time()
    s = socket.socket(family, kind); s.settimeout(15)
    try:
        s.connect(address)
        if kind == socket.SOCK_DGRAM: s.send(b"x")
        print("ALLOWED")
    except TimeoutError: print("TIMEOUT")
    except OSError as e: print(errno.errorcode[e.errno])
    if time.time() - began > 10: print("SLOW")
`

// attempt is a snippet of Python, and the errors that refuse it.
type attempt struct{ name, code, refusals string }

// refused runs attempts, each in a sandbox of its own.
func refused(t *testing.T, attempts []attempt) {
	t.Helper()
	for _, a := range attempts {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			r := shared.Execute(t, execution.Request{Language: "python", Code: prelude + a.code + "\nNone", Limits: execution.Limits{TimeoutSeconds: 20}})
			said := strings.Fields(r.Stdout)
			row(t, a.code, strings.Join(said, " "))
			product.Ended(t, r, execution.StatusSucceeded, 0, "")
			if len(said) == 0 {
				t.Errorf("nothing was attempted: %s", r.Stderr)
			}
			for _, word := range said {
				if !regexp.MustCompile(`^(` + a.refusals + `)$`).MatchString(word) {
					t.Errorf("the answer is %s, not %s", word, a.refusals)
				}
			}
		})
	}
}

// row says, for the table of `make attacks`, what a test has tried and what
// happened. Every test without subtests has one.
func row(t *testing.T, tried, happened string) {
	t.Helper()
	const most = 200
	for key, value := range map[string]string{"tried": tried, "happened": happened} {
		value = strings.Join(strings.Fields(value), " ")
		if len(value) > most {
			value = strings.ToValidUTF8(value[:most], "") + "…"
		}
		t.Attr(key, value)
	}
}

// outcome is a row about how a program ended.
func outcome(t *testing.T, tried string, r execution.Result) {
	t.Helper()
	row(t, tried, fmt.Sprintf("%s, exit code %d, %s", r.Status, r.ExitCode, r.Stdout))
}

// call is an attempt at one system call.
func call(name string, number uintptr, args string) attempt {
	return attempt{name, fmt.Sprintf("call(%d%s)", number, args), "EPERM|ENOSYS"}
}

func TestS14SystemCalls(t *testing.T) {
	t.Parallel()
	const newUser, newNamespace = unix.CLONE_NEWUSER, unix.CLONE_NEWNS
	refused(t, []attempt{
		call("mount", unix.SYS_MOUNT, `, b"none", b"/tmp", b"tmpfs", 0, 0`),
		call("bind mount", unix.SYS_MOUNT, `, b"/etc", b"/tmp", 0, 4096, 0`),
		call("remount", unix.SYS_MOUNT, `, 0, b"/", 0, 32, 0`),
		call("umount", unix.SYS_UMOUNT2, `, b"/proc/kcore", 2`),
		call("pivot_root", unix.SYS_PIVOT_ROOT, `, b"/tmp", b"/tmp"`),
		call("chroot", unix.SYS_CHROOT, `, b"/tmp"`),
		call("open_tree", unix.SYS_OPEN_TREE, `, -100, b"/", 1`),
		call("move_mount", unix.SYS_MOVE_MOUNT, `, -100, b"/tmp", -100, b"/work", 0`),
		call("fsopen", unix.SYS_FSOPEN, `, b"tmpfs", 0`),
		call("fspick", unix.SYS_FSPICK, `, -100, b"/", 0`),
		call("mount_setattr", unix.SYS_MOUNT_SETATTR, `, -100, b"/", 0, ctypes.create_string_buffer(32), 32`),
		call("a new user namespace", unix.SYS_UNSHARE, fmt.Sprintf(", %d", newUser)),
		call("a new mount namespace", unix.SYS_UNSHARE, fmt.Sprintf(", %d", newNamespace)),
		call("all namespaces", unix.SYS_UNSHARE, ", 0x7e020000"),
		call("clone into a user namespace", unix.SYS_CLONE, fmt.Sprintf(", %d, 0, 0, 0, 0", newUser|int(unix.SIGCHLD))),
		call("clone3 into a user namespace", unix.SYS_CLONE3, fmt.Sprintf(", struct.pack('11Q', %d, *[0] * 10), 88", newUser)),
		{"setns", fmt.Sprintf("call(%d, os.open('/proc/self/ns/mnt', 0), 0)", unix.SYS_SETNS), "EPERM|EACCES"},
		call("be traced", unix.SYS_PTRACE, ", 0, 0, 0, 0"),
		call("trace the runner", unix.SYS_PTRACE, ", 16, 1, 0, 0"),
		call("seize the runner", unix.SYS_PTRACE, ", 0x4206, 1, 0, 0"),
		call("read the runner's memory", unix.SYS_PROCESS_VM_READV, ", 1, ctypes.create_string_buffer(16), 1, ctypes.create_string_buffer(16), 1, 0"),
		call("write the runner's memory", unix.SYS_PROCESS_VM_WRITEV, ", 1, ctypes.create_string_buffer(16), 1, ctypes.create_string_buffer(16), 1, 0"),
		call("take the runner's descriptors", unix.SYS_PIDFD_GETFD, ", os.pidfd_open(1), 3, 0"),
		call("compare with the runner", unix.SYS_KCMP, ", 1, os.getpid(), 0, 3, 3"),
		call("advise the runner's memory", unix.SYS_PROCESS_MADVISE, ", os.pidfd_open(1), 0, 0, 21, 0"),
		call("limit the runner", unix.SYS_PRLIMIT64, ", 1, 0, struct.pack('2Q', 0, 0), 0"),
		call("limit a thread of the runner", unix.SYS_PRLIMIT64, ", 2, 0, struct.pack('2Q', 0, 0), 0"),
		call("take the runner's scheduling class", unix.SYS_SCHED_SETSCHEDULER, ", 2, 5, struct.pack('i', 0)"),
		call("take the runner's scheduling parameters", unix.SYS_SCHED_SETPARAM, ", 2, struct.pack('i', 0)"),
		call("take the runner's attributes", unix.SYS_SCHED_SETATTR, ", 2, struct.pack('IIQiIQQQ', 48, 5, 0, 0, 0, 0, 0, 0), 0"),
		call("take the runner's processors", unix.SYS_SCHED_SETAFFINITY, ", 2, 8, struct.pack('Q', 1)"),
		call("take the runner's priority", unix.SYS_SETPRIORITY, ", 0, 2, 19"),
		call("take the priority of all that its user has", unix.SYS_SETPRIORITY, ", 2, 0, 19"),
		call("take the runner's I/O priority", unix.SYS_IOPRIO_SET, ", 1, 2, 3 << 13"),
		call("keyctl", unix.SYS_KEYCTL, ", 0, -3, 1"),
		call("add_key", unix.SYS_ADD_KEY, `, b"user", b"k", b"v", 1, -3`),
		call("request_key", unix.SYS_REQUEST_KEY, `, b"user", b"k", 0, -3`),
		call("bpf", unix.SYS_BPF, ", 0, ctypes.create_string_buffer(128), 128"),
		call("perf_event_open", unix.SYS_PERF_EVENT_OPEN, ", ctypes.create_string_buffer(128), 0, -1, -1, 0"),
		call("userfaultfd", unix.SYS_USERFAULTFD, ", 1"),
		call("io_uring_setup", unix.SYS_IO_URING_SETUP, ", 8, ctypes.create_string_buffer(128)"),
		call("io_uring_enter", unix.SYS_IO_URING_ENTER, ", 0, 1, 0, 0, 0, 0"),
		call("io_uring_register", unix.SYS_IO_URING_REGISTER, ", 0, 0, 0, 0"),
		call("load a module", unix.SYS_INIT_MODULE, `, b"", 0, b""`),
		call("load a module's file", unix.SYS_FINIT_MODULE, `, 0, b"", 0`),
		call("unload a module", unix.SYS_DELETE_MODULE, `, b"x", 0`),
		call("kexec", unix.SYS_KEXEC_LOAD, ", 0, 0, 0, 0"),
		call("reboot", unix.SYS_REBOOT, ", 0xfee1dead, 672274793, 0x1234567, 0"),
		call("swapon", unix.SYS_SWAPON, `, b"/tmp/x", 0`),
		call("acct", unix.SYS_ACCT, `, b"/tmp/x"`),
		call("quotactl", unix.SYS_QUOTACTL, `, 0x80000100, 0, 0, 0`),
		call("set the clock", unix.SYS_CLOCK_SETTIME, ", 0, struct.pack('2q', 0, 0)"),
		call("set the host name", unix.SYS_SETHOSTNAME, `, b"x", 1`),
		call("the kernel's log", unix.SYS_SYSLOG, ", 3, ctypes.create_string_buffer(64), 64"),
		call("fanotify", unix.SYS_FANOTIFY_INIT, ", 4, 0"),
		call("open by handle", unix.SYS_OPEN_BY_HANDLE_AT, ", -100, struct.pack('Ii8x', 8, 1), 0"),
		call("read with another layout", unix.SYS_PERSONALITY, ", 0x40000"),
		call("signal with forged information", unix.SYS_RT_SIGQUEUEINFO, ", 1, 9, struct.pack('3i', 9, 0, 0) + bytes(116)"),
	})
}

func TestS14Privileges(t *testing.T) {
	t.Parallel()
	refused(t, []attempt{
		{"become root", "attempt(os.setuid, 0); attempt(os.setresuid, 0, 0, 0); attempt(os.setgid, 0); attempt(os.setgroups, [0])", "EPERM"},
		{"give a file away", "open('x', 'w').close(); attempt(os.chown, 'x', 0, 0)", "EPERM"},
		{"make devices", "import stat\nfor d in ('/tmp/d', '/work/d', '/dev/d', '/dev/shm/d'): attempt(os.mknod, d, 0o666 | stat.S_IFBLK, os.makedev(8, 0)); attempt(os.mknod, d, 0o666 | stat.S_IFCHR, os.makedev(1, 1))", "EPERM|EACCES|EROFS"},
		{"take capabilities", "class H(ctypes.Structure): _fields_ = [('v', ctypes.c_uint32), ('p', ctypes.c_int)]\nh = H(0x20080522, 0); d = (ctypes.c_uint32 * 6)(*[0xffffffff] * 6)\nctypes.set_errno(0)\nr = libc.capset(ctypes.byref(h), d)\nprint('ALLOWED' if r == 0 else errno.errorcode[ctypes.get_errno()])", "EPERM"},
		{"be scheduled before others", "attempt(os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(50)); attempt(os.nice, -5)", "EPERM|EACCES"},
		{"raise limits", "import resource\nsoft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)\ntry: resource.setrlimit(resource.RLIMIT_NOFILE, (hard + 1, hard + 1))\nexcept (ValueError, OSError): print('EPERM')\nelse: print('ALLOWED')", "EPERM"},
		{"packet socket", "attempt(socket.socket, socket.AF_PACKET, socket.SOCK_RAW)", "EPERM|EAFNOSUPPORT"},
		{"raw sockets", "attempt(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1); attempt(socket.socket, socket.AF_INET6, socket.SOCK_RAW, 58)", "EPERM|EAFNOSUPPORT"},
		{"sockets of the machine", "attempt(socket.socket, socket.AF_VSOCK, socket.SOCK_STREAM); attempt(socket.socket, socket.AF_ALG, socket.SOCK_SEQPACKET)", "EPERM|EACCES|EAFNOSUPPORT"},
	})
}

// TestS14Status is what the kernel says of a program.
func TestS14Status(t *testing.T) {
	t.Parallel()
	r := shared.Python(t, `status = dict(l.split(":\t", 1) for l in open("/proc/self/status").read().splitlines())
print(*(status[n] for n in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")))
print(open("/proc/self/uid_map").read().split()[1] != "0", open("/proc/self/setgroups").read().strip() != "")
import os
print(sorted(os.listdir("/dev")))
print([d for d in ("/dev/kmsg", "/dev/mem", "/dev/kvm", "/dev/net/tun", "/dev/fuse", "/dev/vsock", "/dev/sda", "/dev/vda") if os.path.exists(d)])`)
	outcome(t, "capabilities, no_new_privs, seccomp, the user's ids, devices", r)
	product.Ended(t, r, execution.StatusSucceeded, 0, "")
	product.Wrote(t, r, strings.Repeat("0000000000000000 ", 5)+"1 2\nTrue True\n"+
		"['fd', 'full', 'null', 'ptmx', 'pts', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'tty', 'urandom', 'zero']\n[]\n", "")
}

// TestS14SetuidPrograms: the image has none, and one of a program's own gives it
// nothing.
func TestS14SetuidPrograms(t *testing.T) {
	t.Parallel()
	r := shared.Execute(t, execution.Request{Language: "bash", Code: `cp /usr/bin/id /tmp/id && chmod 6755 /tmp/id && /tmp/id -u`})
	outcome(t, "a setuid copy of id; setuid files and file capabilities in the image", r)
	product.Ended(t, r, execution.StatusSucceeded, 0, "")
	product.Wrote(t, r, "1000\n", "")
	image, err := filepath.EvalSymlinks(filepath.Join(product.Root(t), "build", "sandbox", "rootfs"))
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	err = filepath.WalkDir(image, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		files++
		if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
			t.Errorf("%s has the mode %s", path, info.Mode())
		}
		if n, err := unix.Lgetxattr(path, "security.capability", nil); err == nil && n > 0 {
			t.Errorf("%s has capabilities", path)
		}
		return nil
	})
	if err != nil || files < 1000 {
		t.Errorf("%d files of the image were looked at: %v", files, err)
	}
}
