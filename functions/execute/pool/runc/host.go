package runc

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	gorunc "github.com/containerd/go-runc"
	ocispec "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/mod/semver"
	"golang.org/x/sys/unix"
)

// Host is what this machine lets the pool do.
type Host struct {
	// Root says that the process is root: everything works then.
	Root bool
	// Cgroups says that cgroups can be made, and Unified that they are v2.
	Cgroups, Unified bool
	// SwapLimit says that the kernel bounds the swap of cgroups.
	SwapLimit bool
	// Memory is the machine's, in bytes.
	Memory int64
	// Resource says that this process has CAP_SYS_RESOURCE.
	Resource bool
	// disks are those that sandboxes read and whose use is bounded.
	disks []disk
	// cgroups is cgroupMount, or a folder like it in a test.
	cgroups string
	// subUIDs and subGIDs are the caller's own id and its subordinate ids,
	// for use without root.
	subUIDs, subGIDs []ocispec.LinuxIDMapping
}

// cgroupMount is where the hierarchies of cgroups are mounted.
const cgroupMount = "/sys/fs/cgroup"

func (h Host) cgroupRoot() string { return cmp.Or(h.cgroups, cgroupMount) }

// DetectHost looks at this machine.
func DetectHost() (Host, error) {
	h := Host{Root: os.Geteuid() == 0}
	var fs unix.Statfs_t
	if err := unix.Statfs(cgroupMount, &fs); err == nil {
		h.Unified = fs.Type == unix.CGROUP2_SUPER_MAGIC
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return Host{}, fmt.Errorf("looking up the machine's memory: %w", err)
	}
	h.Memory = int64(info.Totalram) * int64(info.Unit)
	if h.Root {
		var err error
		if h.Resource, err = hasCapability(unix.CAP_SYS_RESOURCE); err != nil {
			return Host{}, err
		}
		h.Cgroups = h.Unified || isDir(filepath.Join(cgroupMount, "memory"))
		h.SwapLimit = h.Unified || exists(filepath.Join(cgroupMount, "memory", memorySwap))
		return h, nil
	}
	me, err := user.Current()
	if err != nil {
		return Host{}, fmt.Errorf("looking up the user: %w", err)
	}
	h.subUIDs = ownIDs("/etc/subuid", me.Username, os.Getuid())
	h.subGIDs = ownIDs("/etc/subgid", me.Username, os.Getgid())
	return h, nil
}

// hasCapability reports whether this process has a capability now.
func hasCapability(number int) (bool, error) {
	var sets [2]unix.CapUserData
	if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &sets[0]); err != nil {
		return false, fmt.Errorf("looking up capabilities: %w", err)
	}
	return sets[number/32].Effective&(1<<(number%32)) != 0, nil
}

// Weaker lists, a sentence each, in what a sandbox on this machine is weaker
// than it should be.
func (h Host) Weaker() []string {
	var list []string
	if !h.Root {
		list = append(list, "Without root all sandboxes share one range of host ids.")
	}
	if len(h.subUIDs) == 1 || len(h.subGIDs) == 1 {
		list = append(list, "Without subordinate ids (/etc/subuid, /etc/subgid and the uidmap package) programs run as root of a user namespace, without capabilities, which is the user of this process outside.")
	}
	if !h.Cgroups {
		list = append(list, "Without cgroups nothing limits a sandbox's memory, processors and processes, and memory kills cannot be told from others.")
	}
	if h.Root && !h.Resource {
		list = append(list, "Without CAP_SYS_RESOURCE a program may give itself the server's place in the order in which the kernel kills when memory is used up.")
	}
	if h.Cgroups && !h.SwapLimit {
		list = append(list, "Without swap accounting (swapaccount=1) a sandbox that is at its memory limit may go on in the host's swap.")
	}
	return list
}

func (h Host) uids(number int) []ocispec.LinuxIDMapping { return h.ids(number, h.subUIDs) }
func (h Host) gids(number int) []ocispec.LinuxIDMapping { return h.ids(number, h.subGIDs) }

func (h Host) ids(number int, own []ocispec.LinuxIDMapping) []ocispec.LinuxIDMapping {
	if h.Root {
		return idRange(number)
	}
	return own
}

// user is the user and group of programs in a sandbox.
func (h Host) user() uint32 {
	if !h.Root && (len(h.subUIDs) == 1 || len(h.subGIDs) == 1) {
		return 0 // the only one there is
	}
	return sandboxUser
}

// oomScore is the runner's, and the least that a program may give itself where
// this process has CAP_SYS_RESOURCE (proc_pid_oom_score_adj(5)).
func (h Host) oomScore() *int {
	if !h.Root {
		return nil
	}
	score := runnerOOMScore
	return &score
}

// ownIDs maps the sandbox's root to the caller and the ids from 1 on to its
// first subordinate range, if it has one.
func ownIDs(file, name string, id int) []ocispec.LinuxIDMapping {
	f, err := os.Open(file)
	if err == nil {
		defer func() { _ = f.Close() }()
		for s := bufio.NewScanner(f); s.Scan(); {
			part := strings.Split(s.Text(), ":")
			if len(part) != 3 || (part[0] != name && part[0] != strconv.Itoa(id)) {
				continue
			}
			first, err1 := strconv.ParseUint(part[1], 10, 32)
			size, err2 := strconv.ParseUint(part[2], 10, 32)
			if err1 == nil && err2 == nil && size > sandboxUser {
				return []ocispec.LinuxIDMapping{
					{ContainerID: 0, HostID: uint32(id), Size: 1}, {ContainerID: 1, HostID: uint32(first), Size: uint32(size)},
				}
			}
		}
	}
	return []ocispec.LinuxIDMapping{{ContainerID: 0, HostID: uint32(id), Size: 1}}
}

// ErrRunc says that the runc binary cannot be used.
var ErrRunc = errors.New("unusable runc")

// CheckRunc returns an error that wraps ErrRunc unless the binary is a runc
// without the container escapes of November 2025 (CVE-2025-31133,
// CVE-2025-52565, CVE-2025-52881), which 1.2.8, 1.3.3 and 1.4.0 ended.
func CheckRunc(ctx context.Context, binary string) error {
	v, err := (&gorunc.Runc{Command: binary}).Version(ctx)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrRunc, binary, err)
	}
	if !isSafe(v.Runc) {
		return fmt.Errorf("%w: %s has version %q; 1.2.8, 1.3.3, 1.4.0 or a newer one is needed", ErrRunc, binary, v.Runc)
	}
	return nil
}

// isSafe reports whether a version of runc has no known escape. What came before
// a release, such as 1.4.0-rc.1, is older than it.
func isSafe(version string) bool {
	v := "v" + version
	first := map[string]string{"v1.2": "v1.2.8", "v1.3": "v1.3.3"}[semver.MajorMinor(v)]
	return semver.IsValid(v) && semver.Compare(v, cmp.Or(first, "v1.4.0")) >= 0
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
