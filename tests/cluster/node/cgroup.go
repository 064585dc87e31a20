package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const cgroupFS = "/sys/fs/cgroup"

// hierarchies are the folders of the node's control group: one, or with
// version 1 one for each controller and one that may count processes alone.
func (n *Node) hierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(cgroupFS, "cgroup.controllers")); err == nil {
		return []string{filepath.Join(cgroupFS, n.cgroup)}, nil
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 2 && strings.HasPrefix(f[2], "cgroup") && strings.HasPrefix(f[1], cgroupFS+"/") {
			out = append(out, filepath.Join(f[1], n.cgroup))
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no control groups are mounted below %s", cgroupFS)
	}
	return out, nil
}

func (n *Node) makeCgroups() error {
	dirs, err := n.hierarchies()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		// Version 1 does not pass these on, and takes no process without.
		for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
			value, err := os.ReadFile(filepath.Join(filepath.Dir(dir), name))
			if err != nil || filepath.Base(filepath.Dir(dir)) != "cpuset" {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, name), value, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeCgroups removes the node's control groups, the deepest first.
func (n *Node) removeCgroups() error {
	dirs, err := n.hierarchies()
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		var all []string
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				all = append(all, path)
			}
			return nil
		})
		errs = append(errs, err)
		for _, path := range slices.Backward(all) {
			errs = append(errs, removeCgroup(path))
		}
	}
	return errors.Join(errs...)
}

// removeCgroup waits a moment for a group that has just lost its last process.
func removeCgroup(path string) error {
	var err error
	for range 50 {
		if err = os.Remove(path); err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}
