package runc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/profiles/seccomp"
	ocispec "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/preheat-dev/preheat/functions/execute/pool/local"
)

const (
	// sandboxUser is the user and group of programs, from the image.
	sandboxUser = 1000
	cpuPeriod   = 100_000 // microseconds
	// maxPending bounds signals that are queued, and timers.
	maxPending = 256
	// maxTerminals bounds pseudo-terminals, of which a machine has 4,096.
	maxTerminals = 32
	// runnerOOMScore makes the kernel, when the machine's memory is used up,
	// kill sandboxes before the server and before the machine's own programs.
	runnerOOMScore = 500
	// The processors go to programs that have just begun, then to sandboxes
	// that are being made, and last to programs that run for long: a hostile
	// one cannot keep others from starting.
	sharesWarm, sharesWarming, sharesLong = 1024, 512, 128
)

// Spec returns the OCI configuration of one sandbox, which has the range of host
// ids with a number.
func (c *Config) Spec(h Host, im Image, p local.PoolConfig, name string, ids int) (*ocispec.Spec, error) {
	s := &ocispec.Spec{
		Version:  ocispec.Version,
		Hostname: "sandbox",
		Root:     &ocispec.Root{Path: im.Rootfs, Readonly: true},
		Process: &ocispec.Process{
			Args:            []string{"/opt/preheat/runner"},
			Cwd:             "/work",
			User:            ocispec.User{UID: h.user(), GID: h.user()},
			Env:             c.environment(im, p),
			NoNewPrivileges: true,
			Capabilities:    &ocispec.LinuxCapabilities{},
			Rlimits: []ocispec.POSIXRlimit{
				{Type: "RLIMIT_CORE"},
				{Type: "RLIMIT_NOFILE", Soft: c.Limits.OpenFiles, Hard: c.Limits.OpenFiles},
				// Both are counted for the user who made the sandbox, too: for root.
				{Type: "RLIMIT_SIGPENDING", Soft: maxPending, Hard: maxPending},
				{Type: "RLIMIT_MSGQUEUE"},
			},
			OOMScoreAdj: h.oomScore(),
		},
		Mounts: c.mounts(h),
		Linux: &ocispec.Linux{
			Namespaces: []ocispec.LinuxNamespace{
				{Type: ocispec.UserNamespace}, {Type: ocispec.PIDNamespace}, {Type: ocispec.MountNamespace},
				{Type: ocispec.NetworkNamespace}, {Type: ocispec.IPCNamespace}, {Type: ocispec.UTSNamespace},
				{Type: ocispec.CgroupNamespace},
			},
			UIDMappings: h.uids(ids), GIDMappings: h.gids(ids),
			MaskedPaths: []string{
				"/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
				"/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap",
				// What the machine is and does.
				"/proc/cmdline", "/proc/config.gz", "/proc/interrupts", "/proc/diskstats", "/proc/pressure",
			},
			ReadonlyPaths: []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
		},
	}
	if h.Cgroups {
		s.Linux.CgroupsPath = cgroupPath(c.StateDir, name)
		s.Linux.Resources = c.resources(h)
	}
	filter, err := seccomp.GetDefaultProfile(s)
	if err != nil {
		return nil, fmt.Errorf("making the seccomp filter: %w", err)
	}
	s.Linux.Seccomp = tighten(filter)
	c.Runtime.runtime().adapt(s, c.Limits)
	return s, nil
}

func (c *Config) resources(h Host) *ocispec.LinuxResources {
	quota, period, shares := int64(c.Limits.CPUs*cpuPeriod), uint64(cpuPeriod), uint64(sharesWarming)
	limit := c.Limits.Memory + c.Runtime.runtime().overhead()
	memory := &ocispec.LinuxMemory{Limit: &limit}
	if h.SwapLimit {
		// It counts memory and swap together, so that no swap is left.
		memory.Swap = &limit
	}
	return &ocispec.LinuxResources{
		Memory:  memory,
		CPU:     &ocispec.LinuxCPU{Quota: &quota, Period: &period, Shares: &shares},
		Pids:    &ocispec.LinuxPids{Limit: &c.Limits.Processes},
		BlockIO: diskLimits(h.disks),
		Devices: []ocispec.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}},
	}
}

// environment is what the runner starts with: the image's environment and the
// runner's settings.
func (c *Config) environment(im Image, p local.PoolConfig) []string {
	return append(slices.Clone(im.Env),
		"USER=sandbox", "LOGNAME=sandbox",
		"PREHEAT_RUNNER_WARM="+strings.Join(p.Warm, ","),
		"PREHEAT_RUNNER_IMPORTS="+strings.Join(p.Imports, ","),
		"PREHEAT_RUNNER_FD="+strconv.Itoa(c.Runtime.runtime().connection()),
	)
}

func (c *Config) mounts(h Host) []ocispec.Mount {
	safe := []string{"nosuid", "noexec", "nodev"}
	folder := func(path string, mode string, uid uint32, size int64, more ...string) ocispec.Mount {
		options := append([]string{
			"nosuid", "nodev", "mode=" + mode, fmt.Sprintf("uid=%d", uid), fmt.Sprintf("gid=%d", uid), fmt.Sprintf("size=%d", size), "nr_inodes=16384",
		}, more...)
		return ocispec.Mount{Destination: path, Type: "tmpfs", Source: "tmpfs", Options: options}
	}
	mounts := []ocispec.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: safe},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "noexec", "mode=755", "size=65536"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", fmt.Sprintf("max=%d", maxTerminals)}},
		folder("/dev/shm", "1777", 0, c.Limits.Tmpfs, "noexec"),
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: append([]string{"ro"}, safe...)},
		folder("/tmp", "1777", 0, c.Limits.Tmpfs),
		folder("/work", "0755", h.user(), c.Limits.Tmpfs),
		folder("/home/sandbox", "0755", h.user(), c.Limits.Tmpfs),
		{Destination: "/opt/preheat", Type: "bind", Source: c.RunnerDir, Options: []string{"bind", "ro", "nosuid", "nodev"}},
	}
	if h.Cgroups {
		mounts = append(mounts, ocispec.Mount{
			Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: append([]string{"ro"}, safe...),
		})
	}
	return mounts
}
