package runc

import (
	"context"
	"os"

	gorunc "github.com/containerd/go-runc"
	ocispec "github.com/opencontainers/runtime-spec/specs-go"
)

// Runtime is an OCI runtime that can make the sandboxes. The zero value is Runc.
type Runtime string

// The runtimes.
const (
	// Runc makes processes of the machine's kernel.
	Runc Runtime = "runc"
	// Runsc is gVisor's: each sandbox has a kernel of its own, a process that
	// answers the system calls of its programs.
	Runsc Runtime = "runsc"
)

// runtime is what differs between runtimes.
type runtime interface {
	name() Runtime
	// check returns an error if a binary cannot be used on this machine.
	check(ctx context.Context, binary string, h Host) error
	// flags come before each command.
	flags() []string
	// adapt changes the configuration of a sandbox that runc would get.
	adapt(s *ocispec.Spec, l SandboxLimits)
	// overhead is what the runtime itself takes of a sandbox's memory, in bytes.
	overhead() int64
	// connection is the descriptor at which the runner finds its end of the
	// socket pair.
	connection() int
	// create are the options of a command that starts a container, which gets
	// conn as that descriptor.
	create(pidFile string, log, conn *os.File) *gorunc.CreateOpts
	// containers finds the names of containers in the runtime's state folder.
	containers(root string) ([]string, error)
	// tellsApart says that the runner and its program are processes of the host.
	tellsApart() bool
}

func (r Runtime) runtime() runtime {
	if r == Runsc {
		return runsc{}
	}
	return plain{}
}

// plain is runc.
type plain struct{}

func (plain) name() Runtime { return Runc }

func (plain) check(ctx context.Context, binary string, _ Host) error {
	return CheckRunc(ctx, binary)
}

func (plain) flags() []string                    { return nil }
func (plain) adapt(*ocispec.Spec, SandboxLimits) {}
func (plain) overhead() int64                    { return 0 }
func (plain) tellsApart() bool                   { return true }

// connection is the first descriptor after the standard ones.
func (plain) connection() int { return 3 }

func (plain) create(pidFile string, log, conn *os.File) *gorunc.CreateOpts {
	return &gorunc.CreateOpts{Detach: true, PidFile: pidFile, ExtraFiles: []*os.File{conn}, IO: toFile{log: log}, NoNewKeyring: true}
}

// containers are the folders of the state folder.
func (plain) containers(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}
