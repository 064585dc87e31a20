package attacks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

// lockAll takes a lock on all sorts of files that every sandbox has, and prints
// those that somebody else has locked.
const lockAll = `import errno, fcntl, glob, itertools, os
kept, taken, seen = [], [], set()
devices = ["/dev/" + n for n in ("null", "zero", "full", "random", "urandom", "shm", "pts", "ptmx")]
for p in itertools.chain(["/", "/etc/passwd", "/opt/preheat", "/opt/preheat/runner", "/usr/bin/python3", "/proc", "/sys", "/tmp", "/work"],
                         devices, glob.glob("/*"), glob.glob("/opt/preheat/*/*"), glob.glob("/sys/fs/cgroup/*"), glob.glob("/usr/bin/*")[:400]):
    try: fd = os.open(p, os.O_RDONLY | os.O_NONBLOCK)
    except OSError: continue
    kept.append(fd)
    file = os.fstat(fd).st_dev, os.fstat(fd).st_ino
    if file in seen: continue # by another path
    seen.add(file)
    try: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as e:
        if e.errno == errno.EWOULDBLOCK: taken.append(p)
print(" ".join(["locked", str(len(seen) > 200)] + taken), flush=True)
`

// TestLocksAreNotShared: what a sandbox locks is free in its neighbour and on the
// machine, so that no lock carries a message.
func TestLocksAreNotShared(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	locked, ended := make(chan struct{}), make(chan struct{})
	var said strings.Builder
	go func() {
		defer close(ended)
		first := execution.Request{Language: "python", Code: lockAll + "import time; time.sleep(60)", Limits: execution.Limits{TimeoutSeconds: 60}}
		_, _ = shared.StreamTo(ctx, first, func(e product.Event) { // until its client leaves
			said.Write(e.Data)
			if strings.Contains(string(e.Data), "locked True") {
				close(locked)
			}
		})
	}()
	select {
	case <-locked:
	case <-ended:
		t.Fatalf("the first sandbox ended before it had its locks: %s", said.String())
	}
	r := shared.Python(t, lockAll)
	outcome(t, "flock on all files that a neighbour has locked", r)
	product.Ended(t, r, execution.StatusSucceeded, 0, "")
	product.Wrote(t, r, "locked True\n", "")
	image, err := filepath.EvalSymlinks(filepath.Join(product.Root(t), "build", "sandbox", "rootfs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{image, filepath.Join(image, "etc/passwd"), filepath.Join(image, "usr/bin/bash")} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			t.Errorf("a sandbox has locked %s of the machine: %v", path, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	<-ended
}

// TestMountsTellNothingOfTheMachine: no path of the machine shows.
func TestMountsTellNothingOfTheMachine(t *testing.T) {
	t.Parallel()
	image, err := filepath.EvalSymlinks(filepath.Join(product.Root(t), "build", "sandbox"))
	if err != nil {
		t.Fatal(err)
	}
	r := shared.Execute(t, execution.Request{Language: "bash", Code: "cat /proc/self/mountinfo /proc/mounts /proc/self/mountstats"})
	row(t, "mountinfo, mounts, mountstats", fmt.Sprintf("%s, %d bytes were looked through", r.Status, len(r.Stdout)))
	product.Ended(t, r, execution.StatusSucceeded, 0, "")
	for _, word := range []string{filepath.Base(image), "rootfs", "runner", "ext4", "xfs", "btrfs", "/dev/vd", "/dev/sd", "/dev/nvme", filepath.Dir(image), product.Root(t), shared.StateDir} {
		if strings.Contains(r.Stdout, word) {
			t.Errorf("a program sees %q in\n%s", word, r.Stdout)
		}
	}
}

// TestDiskReadsAreBounded: what a program reads past the page cache is bounded.
func TestDiskReadsAreBounded(t *testing.T) {
	t.Parallel()
	r := shared.Python(t, `import glob, mmap, os, time
path = max(filter(os.path.isfile, glob.glob("/usr/lib/*/*")), key=os.path.getsize)
fd, size = os.open(path, os.O_RDONLY | os.O_DIRECT), os.path.getsize(path) >> 20 << 20
buffer, got, began = mmap.mmap(-1, 1 << 20), 0, time.monotonic()
while time.monotonic() - began < 3: got += os.preadv(fd, [buffer], got % size)
print(int(got / (time.monotonic() - began)) >> 20)`)
	outcome(t, "direct reads for 3 s, of which the MiB in a second", r)
	product.Ended(t, r, execution.StatusSucceeded, 0, "")
	var rate int
	if _, err := fmt.Sscan(r.Stdout, &rate); err != nil || rate == 0 || rate > 160 {
		t.Errorf("%d MiB in a second, %v", rate, err)
	}
}
