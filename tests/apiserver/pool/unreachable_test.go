package pool_test

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/tests/cluster/fakenode"
)

// TestUnreachableRunnersCostNoSandboxes: where the network lets nobody reach a
// runner, a few claims find out, and the pool stays warm. Claims are refused
// until a runner can be reached, and served then.
func TestUnreachableRunnersCostNoSandboxes(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	runners := newRefusedPort(t)
	tmpl := sp.Template("python", node)
	tmpl.Spec.RunnerPort = runners.port
	const size = 6
	sp.Create(tmpl, sp.Pool("code", "python", size))
	sp.Controller()
	p := sp.Claimant()
	warm := func() bool { return sp.Warm() == size && len(p.Status()) == 1 && p.Status()[0].Warm == size }
	sp.Eventually("the sandboxes are warm", warm)
	if err := p.Ready(); err != nil {
		t.Errorf("before the first failure: %v", err)
	}
	for range 20 {
		if s, err := claim(t, p, 2*time.Second); err == nil {
			t.Fatalf("claimed %s", s.Name())
		}
	}
	if _, err := claim(t, p, 10*time.Second); !errors.Is(err, pool.ErrClosed) {
		t.Errorf("err = %v, want %v at once", err, pool.ErrClosed)
	}
	if err := p.Ready(); !errors.Is(err, pool.ErrClosed) {
		t.Errorf("it is ready: %v", err)
	}
	var burst sync.WaitGroup
	for range 20 {
		burst.Go(func() {
			if s, err := claim(t, p, 2*time.Second); err == nil {
				t.Errorf("claimed %s", s.Name())
			}
		})
	}
	burst.Wait()
	sp.Eventually("the pool is full", warm)
	settled(sp, size)
	if n := node.Claimed(); n != 1 {
		t.Errorf("%d sandboxes were claimed, want 1: then it is known", n)
	}

	runners.forward(t, node.Port())
	sp.Eventually("claims are served again", func() bool { return p.Ready() == nil })
	s := mustClaim(t, p)
	use(t, s)
	s.Release()
	settled(sp, size)
	noFaults(t, node)
}

// TestWaitingClaimsHearOfUnreachableRunners: who waits for a sandbox is refused
// too, and does not wait for its time to be over.
func TestWaitingClaimsHearOfUnreachableRunners(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	tmpl := sp.Template("python", node)
	tmpl.Spec.RunnerPort = newRefusedPort(t).port
	sp.Create(tmpl, sp.Pool("code", "python", 0))
	sp.Controller()
	p := sp.Claimant()
	sp.Eventually("the pool is known", func() bool { return len(p.Status()) == 1 })
	const callers = 8
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			if _, err := claim(t, p, time.Minute); !errors.Is(err, pool.ErrClosed) {
				t.Errorf("err = %v, want %v", err, pool.ErrClosed)
			}
		})
	}
	all.Wait()
	if n := node.Claimed(); n > callers {
		t.Errorf("%d sandboxes were claimed for %d callers", n, callers)
	}
	settled(sp, 0)
	noFaults(t, node)
}

// refusedPort is a TCP port of this test's own on which nobody listens.
type refusedPort struct {
	fd   int
	file *os.File
	port int32
}

func newRefusedPort(t *testing.T) *refusedPort {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "runners")
	t.Cleanup(func() { _ = f.Close() })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return &refusedPort{fd: fd, file: f, port: int32(name.(*unix.SockaddrInet4).Port)}
}

// forward listens and passes connections on to another port.
func (p *refusedPort) forward(t *testing.T, port int32) {
	t.Helper()
	if err := unix.Listen(p.fd, unix.SOMAXCONN); err != nil {
		t.Fatal(err)
	}
	l, err := net.FileListener(p.file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() { // until the listener closes
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.DialTCP("tcp", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(port)})
			if err != nil {
				_ = from.Close()
				continue
			}
			for _, c := range [][2]net.Conn{{from, to}, {to, from}} {
				go func() { // until either side closes
					_, _ = io.Copy(c[0], c[1])
					_ = c[0].Close()
				}()
			}
		}
	}()
}
