// Package runc makes sandboxes that are containers on this machine, of runc or of
// a runtime that is used as runc is. It implements local.Backend.
//
// Every sandbox is a container of its own over a read-only overlay of one image:
// user, pid, mount, network, ipc, uts and cgroup namespaces, a range
// of host ids that no other sandbox has, no capabilities, a seccomp filter, a
// network with nothing but loopback, small tmpfs mounts, and cgroup limits.
// PID 1 is functions/runner, reached by a socket pair that this process made:
// nothing else can connect to it, and it ends when this process does.
package runc

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Config is how sandboxes are made.
type Config struct {
	// Runtime makes the containers, and Binary is where it is.
	Runtime Runtime
	Binary  string
	// StateDir holds bundles and the runtime's own state; one process at a time
	// uses it. It should be on a tmpfs.
	StateDir string
	// Image is the folder of the root file system; see Image.
	Image string
	// RunnerDir is mounted at /opt/preheat: the runner and its harness.
	RunnerDir string
	// Sandboxes is how many there may be at once.
	Sandboxes int
	Limits    SandboxLimits
}

// SandboxLimits are what each sandbox may use.
type SandboxLimits struct {
	// Memory and Tmpfs are in bytes; Tmpfs is the size of each writable
	// folder, and what is in it counts as memory.
	Memory, Tmpfs int64
	CPUs          float64
	// Processes bounds processes and threads, the runner's included.
	Processes int64
	// OpenFiles bounds the descriptors of a process.
	OpenFiles uint64
}

// Image is a root file system that config/images has built: a folder with
// rootfs/, config.json (the image's OCI configuration) and versions (a
// language and its version on each line).
type Image struct {
	Rootfs   string
	Env      []string
	Versions map[string]string
}

// LoadImage reads the description of the image in dir.
func LoadImage(dir string) (Image, error) {
	im := Image{Rootfs: filepath.Join(dir, "rootfs"), Versions: map[string]string{}}
	text, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		return Image{}, fmt.Errorf("the sandbox image is not built: %w", err)
	}
	var config struct {
		Env []string `json:"Env"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return Image{}, fmt.Errorf("reading the sandbox image's configuration: %w", err)
	}
	im.Env = config.Env
	versions, err := os.ReadFile(filepath.Join(dir, "versions"))
	if err != nil {
		return Image{}, fmt.Errorf("the sandbox image is incomplete: %w", err)
	}
	for line := range strings.Lines(string(versions)) {
		name, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		im.Versions[name] = version
	}
	return im, nil
}
