package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	gorunc "github.com/containerd/go-runc"
	"golang.org/x/sys/unix"
)

// Kill kills every process of a container and returns when its first process,
// which the others don't outlive, has ended.
func Kill(ctx context.Context, runc *gorunc.Runc, container string) error {
	state, err := runc.State(ctx, container)
	if err != nil {
		return fmt.Errorf("find the processes of container %s: %w", container, err)
	}
	process, err := unix.PidfdOpen(state.Pid, 0)
	if err != nil {
		return fmt.Errorf("kill container %s: %w", container, err)
	}
	defer func() { _ = unix.Close(process) }()
	if err := unix.PidfdSendSignal(process, unix.SIGKILL, nil, 0); err != nil {
		return fmt.Errorf("kill container %s: %w", container, err)
	}
	for {
		fds := []unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(time.Second.Milliseconds()))
		switch {
		case n == 1:
			return nil
		case err != nil && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("wait for the end of container %s: %w", container, err)
		case ctx.Err() != nil:
			return fmt.Errorf("wait for the end of container %s: %w", container, context.Cause(ctx))
		}
	}
}

// Stdin implements gorunc.IO.
func (toFile) Stdin() io.WriteCloser { return nil }

// Stdout implements gorunc.IO.
func (toFile) Stdout() io.ReadCloser { return nil }

// Stderr implements gorunc.IO.
func (toFile) Stderr() io.ReadCloser { return nil }

// Set implements gorunc.IO.
func (f toFile) Set(cmd *exec.Cmd) { cmd.Stdout, cmd.Stderr = f.File, f.File }
