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
	"strconv"
	"strings"
	"time"

	gorunc "github.com/containerd/go-runc"
	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/functions/runner/wire"
)

// containers makes and destroys sandboxes. It is the only part of this
// package that touches the machine once the pool runs.
type containers struct {
	config Config
	host   Host
	image  Image
	runc   *gorunc.Runc
	slots  chan int
}

func newContainers(c Config, h Host, im Image) *containers {
	m := &containers{
		config: c, host: h, image: im, slots: make(chan int, maxSlots),
		runc: &gorunc.Runc{Command: c.Runc, Root: runcRoot(c.StateDir), Log: filepath.Join(c.StateDir, "runc.log"), LogFormat: gorunc.Text},
	}
	for slot := range maxSlots {
		m.slots <- slot
	}
	return m
}

func runcRoot(stateDir string) string   { return filepath.Join(stateDir, "runc") }
func bundleRoot(stateDir string) string { return filepath.Join(stateDir, "bundles") }
func (m *containers) bundle(id string) string {
	return filepath.Join(bundleRoot(m.config.StateDir), id)
}

// container is one running sandbox.
type container struct {
	name string
	slot int
	pid  int
	conn *net.UnixConn
	wire *wire.Client
}

// create makes a sandbox and waits until its runner is ready. On failure
// nothing of it is left.
func (m *containers) create(ctx context.Context, p PoolConfig, name string) (*container, error) {
	var slot int
	select {
	case slot = <-m.slots:
	default:
		return nil, errors.New("all id ranges are in use")
	}
	c := &container{name: name, slot: slot}
	if err := m.start(ctx, p, c); err != nil {
		err = fmt.Errorf("creating sandbox %s: %w", name, err)
		return nil, errors.Join(err, m.destroy(context.WithoutCancel(ctx), c))
	}
	return c, nil
}

func (m *containers) start(ctx context.Context, p PoolConfig, c *container) error {
	bundle := m.bundle(c.name)
	if err := os.Mkdir(bundle, 0o711); err != nil {
		return err
	}
	spec, err := m.config.Spec(m.host, m.image, p, c.name, c.slot)
	if err != nil {
		return err
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(bundle, "config.json"), text, 0o600); err != nil {
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
	pidFile := filepath.Join(bundle, "pid")
	// One that is killed half-way leaves what it cannot delete itself: when the
	// pool closes, it gets to its end first.
	running, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.config.WarmTimeout)
	_, err = m.runc.Run(running, c.name, bundle, &gorunc.CreateOpts{
		Detach: true, PidFile: pidFile, ExtraFiles: []*os.File{theirs}, IO: toFile{log}, NoNewKeyring: true,
	})
	cancel()
	// The pid counts even if runc failed later on: that process must end.
	if text, readErr := os.ReadFile(pidFile); readErr == nil {
		c.pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if err == nil {
		_ = theirs.Close() // or the runner's end would never close
		err = c.wire.Ready(ctx)
	}
	if err == nil {
		err = m.setShares(c.name, sharesWarm)
	}
	if err != nil {
		return errors.Join(err, lastLines(log))
	}
	return nil
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
	c.wire = wire.NewClient(conn)
	return theirs, nil
}

// alive reports whether the runner still holds its end of the connection. It
// must not be called while the connection is being read.
func (c *container) alive() bool {
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

// kill ends every process of the sandbox at once: the kernel kills a process
// namespace with its first process. The pid cannot be another's, since this
// process is its parent and has not waited for it.
func (c *container) kill() {
	if c.pid > 0 {
		_ = unix.Kill(c.pid, unix.SIGKILL)
	}
	if c.conn != nil {
		_ = c.conn.Close()
	}
}

// destroy removes everything of a sandbox. It can be called again when it
// failed.
func (m *containers) destroy(ctx context.Context, c *container) error {
	c.kill()
	if c.pid > 0 {
		if err := reap(ctx, c.pid); err != nil {
			return fmt.Errorf("destroying sandbox %s: %w", c.name, err)
		}
		c.pid = 0
	}
	if isDir(filepath.Join(m.runc.Root, c.name)) {
		err := m.runc.Delete(ctx, c.name, nil)
		if err != nil { // there is less or more of it than of a container that has ended
			err = m.runc.Delete(ctx, c.name, &gorunc.DeleteOpts{Force: true})
		}
		if err != nil {
			return fmt.Errorf("destroying sandbox %s: %w", c.name, err)
		}
	}
	if err := os.RemoveAll(m.bundle(c.name)); err != nil {
		return fmt.Errorf("destroying sandbox %s: %w", c.name, err)
	}
	if c.slot >= 0 {
		m.slots <- c.slot
		c.slot = -1
	}
	return nil
}

// reap waits for a killed child, which runc made one of this process by
// ending before it (see adoptOrphans).
func reap(ctx context.Context, pid int) error {
	for {
		got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECHILD) || got == pid:
			return nil
		case err != nil:
			return fmt.Errorf("waiting for process %d: %w", pid, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for process %d: %w", pid, context.Cause(ctx))
		case <-time.After(time.Millisecond):
		}
	}
}

// adoptOrphans makes this process the parent of what its descendants leave
// behind (prctl(2), PR_SET_CHILD_SUBREAPER): of the sandboxes' first processes.
func adoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming the parent of sandboxes: %w", err)
	}
	return nil
}

// toFile sends the output of runc, and so of a detached container, to a file.
type toFile struct{ *os.File }

func (f toFile) Stdin() io.WriteCloser { return nil }
func (f toFile) Stdout() io.ReadCloser { return nil }
func (f toFile) Stderr() io.ReadCloser { return nil }
func (f toFile) Set(cmd *exec.Cmd)     { cmd.Stdout, cmd.Stderr = f.File, f.File }

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
