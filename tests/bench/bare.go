package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"

	gorunc "github.com/containerd/go-runc"

	"github.com/preheat-dev/preheat/functions/execute/pool/local"
	"github.com/preheat-dev/preheat/functions/execute/pool/runc"
)

// bare does with processes and containers alone what an execution does: it
// runs print(1) in the image's Python. Its containers have the isolation of a
// sandbox.
type bare struct {
	dir    string
	image  runc.Image
	config runc.Config
	host   runc.Host
	runc   *gorunc.Runc
	next   atomic.Int64
}

func newBare(dir string) (*bare, error) {
	folder, err := filepath.EvalSymlinks("build/sandbox")
	if err != nil {
		return nil, err
	}
	runner, err := filepath.Abs("build/runner")
	if err != nil {
		return nil, err
	}
	image, err := runc.LoadImage(folder)
	if err != nil {
		return nil, err
	}
	host, err := runc.DetectHost()
	if err != nil {
		return nil, err
	}
	b := &bare{dir: dir, image: image, host: host, runc: &gorunc.Runc{Command: "build/bin/runc", Root: filepath.Join(dir, "runc")}}
	b.config = runc.Config{
		StateDir: dir, RunnerDir: runner,
		Limits: runc.SandboxLimits{Memory: 512 << 20, Tmpfs: 128 << 20, CPUs: 1, Processes: 128, OpenFiles: 1024},
	}
	return b, nil
}

// python is one plain process.
func (b *bare) python(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "python3", "-c", "print(1)")
	cmd.Path = "/usr/bin/python3"
	cmd.Err = nil
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: b.image.Rootfs}
	cmd.Env = b.image.Env
	return check(cmd.Output())
}

func check(out []byte, err error) error {
	if err == nil && string(out) != "1\n" {
		err = fmt.Errorf("the output is %q", out)
	}
	return err
}

// bundle makes the folder of a container and returns its id.
func (b *bare) bundle() (string, string, error) {
	n := b.next.Add(1)
	id := fmt.Sprintf("bare-%d", n)
	dir := filepath.Join(b.dir, id)
	spec, err := b.config.Spec(b.host, b.image, local.PoolConfig{}, id, 1000+int(n)%64)
	if err != nil {
		return "", "", err
	}
	spec.Process.Args = []string{"python3", "-c", "print(1)"}
	text, err := json.Marshal(spec)
	if err != nil {
		return "", "", err
	}
	if err := os.Mkdir(dir, 0o711); err != nil {
		return "", "", err
	}
	return id, dir, os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600)
}

// run is one `runc run`.
func (b *bare) run(ctx context.Context) error {
	id, dir, err := b.bundle()
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	cmd := exec.CommandContext(ctx, b.runc.Command, "--root", b.runc.Root, "run", "--bundle", dir, id)
	return check(cmd.Output())
}

// cycle is one create, start and delete.
func (b *bare) cycle(ctx context.Context) error {
	id, dir, err := b.bundle()
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	log, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	create := exec.CommandContext(ctx, b.runc.Command, "--root", b.runc.Root, "create", "--bundle", dir, "--pid-file", filepath.Join(dir, "pid"), id)
	create.Stdout, create.Stderr = log, log
	if err := create.Run(); err != nil {
		return fmt.Errorf("runc create: %w", err)
	}
	if err := b.runc.Start(ctx, id); err != nil {
		return err
	}
	if err := awaitEnd(ctx, filepath.Join(dir, "pid")); err != nil {
		return err
	}
	if err := b.runc.Delete(ctx, id, nil); err != nil {
		return err
	}
	return check(os.ReadFile(log.Name()))
}

func (b *bare) close() error { return nil }
