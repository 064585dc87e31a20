package runc

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// What a sandbox may read of a disk in a second: enough to load large modules that
// no one has read before, and far less than what a disk gives.
const (
	diskBytes    = 128 << 20
	diskRequests = 4096
)

// disk is a block device.
type disk struct{ major, minor int64 }

// diskOf is the disk that a file is on, and false where there is none that the
// kernel can limit: a tmpfs, a network's, or several at once.
func diskOf(sys, path string) (disk, bool) {
	var info unix.Stat_t
	if err := unix.Stat(path, &info); err != nil {
		return disk{}, false
	}
	return wholeDisk(sys, disk{int64(unix.Major(info.Dev)), int64(unix.Minor(info.Dev))})
}

// wholeDisk is the disk that a partition is of, or the disk itself. sys is the
// folder of sysfs.
func wholeDisk(sys string, d disk) (disk, bool) {
	dir, err := filepath.EvalSymlinks(fmt.Sprintf("%s/dev/block/%d:%d", sys, d.major, d.minor))
	if err != nil {
		return disk{}, false
	}
	if exists(filepath.Join(dir, "partition")) {
		dir = filepath.Dir(dir)
	}
	text, err := os.ReadFile(filepath.Join(dir, "dev"))
	if err != nil {
		return disk{}, false
	}
	var whole disk
	if _, err := fmt.Sscanf(string(text), "%d:%d", &whole.major, &whole.minor); err != nil {
		return disk{}, false
	}
	return whole, true
}

// limitsDisks reports whether cgroups bound what is read of disks.
func (h Host) limitsDisks() bool {
	if !h.Cgroups {
		return false
	}
	if !h.Unified {
		return exists(filepath.Join(h.cgroupRoot(), "blkio", "blkio.throttle.read_bps_device"))
	}
	text, err := os.ReadFile(filepath.Join(h.cgroupRoot(), "cgroup.controllers"))
	return err == nil && slices.Contains(strings.Fields(string(text)), "io")
}

// diskLimits bounds what is read of disks, or is nil where there are none.
func diskLimits(disks []disk) *ocispec.LinuxBlockIO {
	var limits *ocispec.LinuxBlockIO
	for _, d := range disks {
		if limits == nil {
			limits = &ocispec.LinuxBlockIO{}
		}
		bytes, requests := ocispec.LinuxThrottleDevice{Rate: diskBytes}, ocispec.LinuxThrottleDevice{Rate: diskRequests}
		bytes.Major, bytes.Minor = d.major, d.minor
		requests.Major, requests.Minor = d.major, d.minor
		limits.ThrottleReadBpsDevice = append(limits.ThrottleReadBpsDevice, bytes)
		limits.ThrottleReadIOPSDevice = append(limits.ThrottleReadIOPSDevice, requests)
	}
	return limits
}
