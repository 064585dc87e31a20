package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/tests/cluster/netns"
)

// killLimit is how long killed processes may take to be gone.
const killLimit = 10 * time.Second

// Places that containerd and the kubelet use whatever they are told.
const (
	netnsMounts   = "/run/netns"
	shimSockets   = "/run/containerd/s"
	devicePlugins = "/var/lib/kubelet/device-plugins"
	cniCache      = "/var/lib/cni/results"
	containerLogs = "/var/log/containers"
)

// Down ends every process of the node, Pods' as well, and removes all that it
// left. It does the same to a node that a crash cut in two: nothing is asked of
// the node's own programs.
func (n *Node) Down(ctx context.Context, progress func(string)) error {
	if err := errors.Join(n.stopAll(ctx), n.killLeft()); err != nil {
		return err
	}
	progress("processes")
	err := n.unmount()
	if netns.Exists(n.Namespace()) {
		err = errors.Join(err, netns.Delete(n.Namespace()))
	}
	err = errors.Join(err, n.removeCgroups())
	n.removeShared()
	if err != nil {
		return err
	}
	for _, dir := range []string{n.etcd, n.run, n.state} {
		err = errors.Join(err, os.RemoveAll(dir))
		// The folder of all nodes goes with the last one.
		_ = os.Remove(filepath.Dir(dir))
	}
	progress("files, mounts, control groups and network")
	return err
}

// stopAll ends all programs at once. What they hold is thrown away, so that
// nobody has to wait for their goodbyes to each other.
func (n *Node) stopAll(ctx context.Context) error {
	errs := make(chan error, len(programs))
	for _, name := range programs {
		go func() { errs <- n.daemon(name).stop(ctx, hurry) }()
	}
	var all error
	for range programs {
		all = errors.Join(all, <-errs)
	}
	return all
}

// killLeft kills what is left in the node's control groups, and the shims.
func (n *Node) killLeft() error {
	dirs, err := n.hierarchies()
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(killLimit); ; time.Sleep(20 * time.Millisecond) {
		pids, err := n.shims()
		if err != nil {
			return err
		}
		for _, dir := range dirs {
			pids = append(pids, members(dir)...)
		}
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes of the node do not end: %v", pids)
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	}
}

// members are the processes in a control group and those below it.
func members(dir string) []int {
	var pids []int
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "cgroup.procs" {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		for field := range strings.FieldsSeq(string(data)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	return pids
}

// shims are the processes of containerd's shims that belong to this node: they
// carry its address.
func (n *Node) shims() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		args, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil {
			continue
		}
		words := strings.Split(string(args), "\x00")
		if strings.Contains(words[0], "containerd-shim") && slices.Contains(words, n.socket()) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// unmount ends every mount below the node's folders, the last made first.
func (n *Node) unmount() error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	var errs []error
	for _, line := range slices.Backward(strings.Split(string(mounts), "\n")) {
		f := strings.Fields(line)
		if len(f) < 2 || !n.owns(f[1]) {
			continue
		}
		if err := unix.Unmount(f[1], unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
			errs = append(errs, fmt.Errorf("unmount %s: %w", f[1], err))
		}
	}
	return errors.Join(errs...)
}

func (n *Node) owns(path string) bool {
	return strings.HasPrefix(path, n.state+"/") || strings.HasPrefix(path, n.run+"/")
}

// removeShared removes what the node left in places that it shares. Folders go
// when they are empty, so an error only says that others use them.
func (n *Node) removeShared() {
	links, _ := filepath.Glob(filepath.Join(containerLogs, "*.log"))
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && n.owns(target) {
			_ = os.Remove(link)
		}
	}
	results, _ := filepath.Glob(filepath.Join(cniCache, n.Namespace()+"-*"))
	for _, file := range results {
		_ = os.Remove(file)
	}
	sockets, _ := filepath.Glob(filepath.Join(shimSockets, "*"))
	for _, socket := range append(sockets, filepath.Join(devicePlugins, "kubelet.sock")) {
		// Another node's has somebody who listens.
		if conn, err := net.Dial("unix", socket); err == nil {
			_ = conn.Close()
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.Remove(socket)
		}
	}
	if entries, err := os.ReadDir(netnsMounts); err == nil && len(entries) == 0 {
		_ = unix.Unmount(netnsMounts, unix.MNT_DETACH)
	}
	for _, dir := range []string{
		netnsMounts, shimSockets, filepath.Dir(shimSockets), devicePlugins, filepath.Dir(devicePlugins),
		cniCache, filepath.Dir(cniCache), containerLogs,
	} {
		_ = os.Remove(dir)
	}
}
