package runc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	ocispec "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/internal/pause"
)

// Every sandbox has a range of host ids of its own, also among the sandboxes of
// other servers on the machine: the kernel counts some resources by user, and
// lets a user signal its own processes. So each server writes down which ranges
// it has, in a register that all of them know.

const (
	// Neither useradd nor systemd hand out ids from 0x70000000 on (systemd,
	// UIDS-GIDS.md), so that nothing on the host belongs to them.
	firstID, idsPerRange = 0x70000000, 1 << 16
	// maxRanges is how many ranges there are below 1<<31.
	maxRanges = 4096
	// registerDir is the folder of the register. Its content means nothing
	// after a restart of the machine.
	registerDir = "/run/preheat-ids"
)

// idRange maps the ids in a sandbox to a range of host ids.
func idRange(number int) []ocispec.LinuxIDMapping {
	return []ocispec.LinuxIDMapping{{ContainerID: 0, HostID: uint32(firstID + number*idsPerRange), Size: idsPerRange}}
}

// tenure is the ranges that belong to the server of a state folder.
type tenure struct {
	StateDir string `json:"stateDir"`
	// First is the number of the first range.
	First int `json:"first"`
	Count int `json:"count"`
}

// gap finds count ranges that nobody has and returns the number of the first.
func gap(taken []tenure, count int) (int, error) {
	taken = slices.SortedFunc(slices.Values(taken), func(a, b tenure) int { return cmp.Compare(a.First, b.First) })
	first := 0
	for _, t := range taken {
		if t.First-first >= count {
			break
		}
		first = max(first, t.First+t.Count)
	}
	if first+count > maxRanges {
		return 0, fmt.Errorf("%d ranges of host ids are wanted, of %d, and %d other servers on this machine have ranges: lower PREHEAT_MAX_SANDBOXES, or stop one of them", count, maxRanges, len(taken))
	}
	return first, nil
}

// register says which servers have which ranges of host ids.
type register struct{ dir string }

// locked does something while no other server reads or writes the register, or
// locks its state folder.
func (r register) locked(ctx context.Context, do func() error) error {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return fmt.Errorf("making the register of host ids: %w", err)
	}
	if err := checkOwner(r.dir, os.Geteuid()); err != nil {
		return fmt.Errorf("the register of host ids: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(r.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("locking the register of host ids: %w", err)
	}
	defer func() { _ = f.Close() }()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return do()
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("locking the register of host ids: %w", err)
		}
		if !pause.For(ctx, 5*time.Millisecond) {
			return fmt.Errorf("locking the register of host ids: %w", context.Cause(ctx))
		}
	}
}

// take registers count ranges for the server of a state folder, in place of those
// that it had, and returns the number of the first. The caller has swept the
// folder and holds its lock.
func (r register) take(ctx context.Context, stateDir string, count int) (first int, err error) {
	err = r.locked(ctx, func() error {
		others, err := r.others(stateDir)
		if err != nil {
			return err
		}
		if first, err = gap(others, count); err != nil {
			return err
		}
		return r.write(append(others, tenure{StateDir: stateDir, First: first, Count: count}))
	})
	return first, err
}

// release gives back the ranges of a server that has no sandboxes.
func (r register) release(ctx context.Context, stateDir string) error {
	return r.locked(ctx, func() error {
		others, err := r.others(stateDir)
		if err != nil {
			return err
		}
		return r.write(others)
	})
}

// others are the tenures of other servers: of those that run, and of those that
// were killed and have left sandboxes.
func (r register) others(stateDir string) ([]tenure, error) {
	text, err := os.ReadFile(r.file())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the register of host ids: %w", err)
	}
	var all []tenure
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("reading the register of host ids, %s: %w", r.file(), err)
	}
	return slices.DeleteFunc(all, func(t tenure) bool { return t.StateDir == stateDir || abandoned(t.StateDir) }), nil
}

func (r register) file() string { return filepath.Join(r.dir, "ranges.json") }

func (r register) write(all []tenure) error {
	text, err := json.MarshalIndent(all, "", "\t")
	if err == nil {
		err = os.WriteFile(r.file()+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(r.file()+".new", r.file())
	}
	if err != nil {
		return fmt.Errorf("writing the register of host ids: %w", err)
	}
	return nil
}

// abandoned reports whether no server uses a state folder and no sandboxes are
// left in it.
func abandoned(stateDir string) bool {
	left, err := os.ReadDir(bundleRoot(stateDir))
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil || len(left) > 0 {
		return false
	}
	f, err := os.Open(lockFile(stateDir))
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil
}
