package runc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	gorunc "github.com/containerd/go-runc"
	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/functions/execute/pool/local"
	"github.com/preheat-dev/preheat/functions/execute/pool/remote"
	"github.com/preheat-dev/preheat/functions/runner/wire"
	"github.com/preheat-dev/preheat/internal/pause"
)

// container is one sandbox, or what is left of it.
type container struct {
	backend *Backend
	name    string
	// ids is the number of its range of host ids, none when it is negative.
	ids    int
	cgroup cgroup
	conn   *net.UnixConn
	wire   *wire.Client

	mu sync.Mutex
	// pid is the runner's, or that of the kernel which runs it.
	pid int
	// children are what the runtime left as children of this process, pid
	// among them. They cannot become other processes while they are here: this
	// process waits for them under mu.
	children []int
}

var _ local.Instance = (*container)(nil)

// start makes the sandbox and waits until its runner is ready.
func (c *container) start(ctx context.Context, p local.PoolConfig) error {
	bundle := c.backend.bundle(c.name)
	if err := c.writeBundle(bundle, p); err != nil {
		return err
	}
	theirs, err := c.connect()
	if err != nil {
		return err
	}
	defer func() { _ = theirs.Close() }()
	log, err := os.Create(filepath.Join(bundle, "log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	err = c.run(ctx, bundle, log, theirs)
	if err == nil {
		_ = theirs.Close() // or the runner's end would never close
		err = c.wire.Ready(ctx)
	}
	if err == nil {
		err = errors.Join(c.cgroup.setShares(sharesWarm), c.cgroup.limitSockets())
	}
	if err != nil {
		return errors.Join(err, lastLines(log))
	}
	return nil
}

func (c *container) writeBundle(bundle string, p local.PoolConfig) error {
	if err := os.Mkdir(bundle, 0o711); err != nil {
		return err
	}
	b := c.backend
	spec, err := b.config.Spec(b.host, b.image, p, c.name, c.ids)
	if err != nil {
		return err
	}
	if b.roots != nil {
		rootfs := filepath.Join(bundle, "rootfs")
		if err := os.Mkdir(rootfs, 0o711); err != nil {
			return err
		}
		if err := b.roots.mount(rootfs); err != nil {
			return err
		}
		useRoot(spec, rootfs)
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(bundle, "config.json"), text, 0o600)
}

// runTimeout bounds one `runc run`.
const runTimeout = 30 * time.Second

// run starts the container. One that is killed half-way leaves mounts and
// cgroups: when the pool closes, it gets to its end first.
func (c *container) run(ctx context.Context, bundle string, log, theirs *os.File) error {
	pidFile := filepath.Join(bundle, "pid")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), runTimeout)
	defer cancel()
	_, err := c.backend.runc.Run(ctx, c.name, bundle, c.backend.runtime.create(pidFile, log, theirs))
	// The processes count even if the runtime failed later on: they must end.
	c.mu.Lock()
	defer c.mu.Unlock()
	if text, readErr := os.ReadFile(pidFile); readErr == nil {
		c.pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		c.children = []int{c.pid}
	}
	if !c.backend.runtime.tellsApart() {
		for _, pid := range c.cgroup.members(c.pid) {
			if isChild(pid) {
				c.children = append(c.children, pid)
			}
		}
	}
	for _, pid := range c.children {
		c.backend.reaper.keep(pid)
	}
	return err
}

// isChild reports whether this process is the parent of another one.
func isChild(pid int) bool {
	err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil
}

// connect makes the socket pair and returns the runner's end.
func (c *container) connect() (*os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making a socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer func() { _ = ours.Close() }()
	conn, err := net.FileConn(ours)
	if err != nil {
		_ = theirs.Close()
		return nil, fmt.Errorf("making a socket pair: %w", err)
	}
	c.conn = conn.(*net.UnixConn)
	c.wire = wire.NewClient(conn, "") // nobody else can connect
	return theirs, nil
}

// Alive implements local.Instance: the runner holds its end of the connection
// and has not said anything.
func (c *container) Alive() bool {
	raw, err := c.conn.SyscallConn()
	if err != nil {
		return false
	}
	alive := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		alive = errors.Is(err, unix.EAGAIN)
	})
	return err == nil && alive
}

// Run implements local.Instance.
func (c *container) Run(ctx context.Context, run pool.Run, sink pool.Sink) (pool.Outcome, error) {
	outcome, err := remote.Run(ctx, c.wire, run, sink)
	var failure *wire.Failure
	var invalid *pool.InvalidError
	if err == nil || errors.As(err, &failure) || errors.As(err, &invalid) {
		return outcome, err
	}
	return pool.Outcome{}, fmt.Errorf("%w: %w", pool.ErrSandboxLost, err)
}

// SetMemory implements local.Instance.
func (c *container) SetMemory(limit int64) error {
	return c.cgroup.setMemory(limit + c.backend.runtime.overhead())
}

// OOMKills implements local.Instance.
func (c *container) OOMKills() int64 { return c.cgroup.oomKills() }

// Deprioritize implements local.Instance.
func (c *container) Deprioritize() error { return c.cgroup.setShares(sharesLong) }

// EndProgram implements local.Instance. Without a cgroup, or where they are no
// processes of the host, there is nothing to find the program's processes by: the
// runner goes with them.
func (c *container) EndProgram(ctx context.Context) (bool, error) {
	if !c.backend.host.Cgroups {
		c.kill()
		return true, nil
	}
	spared := 0
	if c.backend.runtime.tellsApart() {
		c.mu.Lock()
		spared = c.pid
		c.mu.Unlock()
	}
	ended, err := c.cgroup.killAllBut(ctx, spared)
	if err != nil {
		return ended, fmt.Errorf("ending the program of sandbox %s: %w", c.name, err)
	}
	return ended, nil
}

// kill kills every process and does not wait for their end. The kernel kills a
// process namespace with its first process, but only once that one has run: the
// others may keep it from it, and so each of them is killed.
func (c *container) kill() {
	c.cgroup.kill()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pid := range c.children {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	if c.conn != nil {
		_ = c.conn.Close()
	}
}

// Destroy implements local.Instance.
func (c *container) Destroy(ctx context.Context) error {
	c.kill()
	if err := c.remove(ctx); err != nil {
		return fmt.Errorf("destroying sandbox %s: %w", c.name, err)
	}
	c.backend.release(c)
	return nil
}

func (c *container) remove(ctx context.Context) error {
	if err := c.cgroup.empty(ctx); err != nil {
		return err
	}
	if err := c.reap(ctx); err != nil {
		return err
	}
	b := c.backend
	known, err := b.runtime.containers(b.runc.Root)
	if err != nil {
		return err
	}
	if slices.Contains(known, c.name) {
		err := b.runc.Delete(ctx, c.name, nil)
		if err != nil { // there is less or more of it than of a container that has ended
			err = b.runc.Delete(ctx, c.name, &gorunc.DeleteOpts{Force: true})
		}
		if err != nil {
			return err
		}
	}
	// runc may have been killed before it knew of its container.
	if err := c.cgroup.remove(ctx); err != nil {
		return err
	}
	if b.roots != nil {
		if err := unmount(filepath.Join(b.bundle(c.name), "rootfs")); err != nil {
			return err
		}
	}
	return os.RemoveAll(b.bundle(c.name))
}

// reap waits for the sandbox's first processes, which the runtime made children of
// this process by ending before them (see adoptOrphans).
func (c *container) reap(ctx context.Context) error {
	for {
		done, err := c.reaped()
		if done || err != nil {
			return err
		}
		if !pause.For(ctx, time.Millisecond) {
			return fmt.Errorf("waiting for the sandbox's processes: %w", context.Cause(ctx))
		}
	}
}

// reaped reports whether they have ended.
func (c *container) reaped() (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.children) > 0 {
		pid := c.children[0]
		got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.ECHILD), err == nil && got == pid:
			c.backend.reaper.forget(pid)
			c.children = c.children[1:]
		case err == nil, errors.Is(err, unix.EINTR):
			return false, nil
		default:
			return false, fmt.Errorf("waiting for process %d: %w", pid, err)
		}
	}
	c.pid = 0
	return true, nil
}

// adoptOrphans makes this process the parent of what its descendants leave
// behind (prctl(2), PR_SET_CHILD_SUBREAPER): of the sandboxes' first processes.
func adoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming the parent of sandboxes: %w", err)
	}
	return nil
}

// toFile sends the output of the runtime, and so of a detached container, to a
// file. stdin is its input, if there is any.
type toFile struct{ log, stdin *os.File }

func (f toFile) Close() error          { return nil } // of files that others close
func (f toFile) Stdin() io.WriteCloser { return nil }
func (f toFile) Stdout() io.ReadCloser { return nil }
func (f toFile) Stderr() io.ReadCloser { return nil }
func (f toFile) Set(cmd *exec.Cmd) {
	cmd.Stdout, cmd.Stderr = f.log, f.log
	if f.stdin != nil {
		cmd.Stdin = f.stdin
	}
}

// lastLines is the end of what a sandbox that failed has logged.
func lastLines(log *os.File) error {
	const most = 2048
	info, err := log.Stat()
	if err != nil || info.Size() == 0 {
		return nil
	}
	text := make([]byte, min(most, info.Size()))
	n, _ := log.ReadAt(text, info.Size()-int64(len(text)))
	return errors.New(strings.TrimSpace(string(text[:n])))
}
