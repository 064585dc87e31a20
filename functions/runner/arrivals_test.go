package runner

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What follows a write that had to wait for room does not overtake what was
// written to another pipe.
func TestWritesThatWaitKeepTheirOrder(t *testing.T) {
	a, err := newArrivals()
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	if a.signals < 0 {
		t.Fatal("the kernel has no signals for pipes")
	}
	var got, want []string
	var sources []*source
	var theirs []int
	for range 2 {
		ours, fd, err := a.pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _, _ = unix.Close(ours), unix.Close(fd) }()
		theirs = append(theirs, fd)
		sources = append(sources, &source{fd: ours, take: func(p []byte) { got = append(got, string(bytes.Clone(p))) }})
	}
	const rounds = 20
	for range rounds {
		write := func(pipe int) {
			text := fmt.Sprintf("%d to %d", len(want), pipe)
			want = append(want, text)
			if _, err := unix.Write(theirs[pipe], []byte(text)); err != nil {
				t.Error(err)
			}
		}
		writer := make(chan int, 1)
		written := make(chan struct{})
		go func() { // received below
			defer close(written)
			runtime.LockOSThread() // not unlocked: nobody else's waits are looked at
			for range pipeBytes / 4096 {
				write(0)
			}
			writer <- unix.Gettid()
			for _, pipe := range []int{0, 1, 0, 1, 1, 0} { // the first one waits
				write(pipe)
			}
		}()
		awaitWrite(t, <-writer)
		done := a.follow(sources, func() {})
		<-written
		a.stop()
		<-done
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("the first write in another order is %q, not %q", got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d writes arrived of %d", len(got), len(want))
	}
}

// awaitWrite waits until a thread of this process waits in write(2).
func awaitWrite(t *testing.T, tid int) {
	t.Helper()
	in := fmt.Appendf(nil, "%d ", unix.SYS_WRITE)
	for {
		call, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/syscall", tid))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.HasPrefix(call, in) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
