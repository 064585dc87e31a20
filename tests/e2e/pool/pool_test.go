// Package pool_test holds the pool of this machine to the contract of all
// pools, on real runc containers.
package pool_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	gorunc "github.com/containerd/go-runc"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/preheat-dev/preheat/functions/execute/pool/local"
	"github.com/preheat-dev/preheat/functions/execute/pool/pooltest"
	"github.com/preheat-dev/preheat/functions/execute/pool/runc"
	"github.com/preheat-dev/preheat/tests/cluster/sandboxes"
	"github.com/preheat-dev/preheat/tests/product"
)

func TestContract(t *testing.T) { pooltest.Run(t, start) }

func start(t *testing.T, s pooltest.Sizes) pooltest.Subject {
	build, state := filepath.Join(product.Root(t), "build"), product.StateDir(t)
	image, err := filepath.EvalSymlinks(filepath.Join(build, "sandbox"))
	if err != nil {
		t.Fatalf("find the sandbox image (make build makes it): %v", err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	backend, err := runc.New(t.Context(), runc.Config{
		Binary: filepath.Join(build, "bin", "runc"), Sandboxes: s.Max, StateDir: state, Image: image, RunnerDir: filepath.Join(build, "runner"),
		Limits: runc.SandboxLimits{Memory: 512 << 20, Tmpfs: 128 << 20, CPUs: 1, Processes: 128, OpenFiles: 1024},
	}, log)
	if err != nil {
		t.Fatal(err)
	}
	p, err := local.New(local.Config{
		Pools:        []local.PoolConfig{{Name: "code", Size: s.Warm, Languages: []string{"python", "bash"}, Warm: []string{"python"}}},
		MaxSandboxes: s.Max, MaxCreating: 2, WarmTimeout: 30 * time.Second, MaxSessions: s.Sessions, MaxPoolSessions: s.Sessions,
	}, backend, local.NewMetrics(prometheus.NewRegistry()), log)
	if err != nil {
		t.Fatal(errors.Join(err, backend.Close()))
	}
	end := sync.OnceValue(func() error { return errors.Join(p.Close(), backend.Close()) })
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	containers := &gorunc.Runc{Command: filepath.Join(build, "bin", "runc"), Root: filepath.Join(state, "runc")}
	return pooltest.Subject{
		Pool: p, Close: end,
		Kill: func(tb testing.TB, name string) {
			tb.Helper()
			if err := sandboxes.Kill(tb.Context(), containers, name); err != nil {
				tb.Fatal(err)
			}
		},
		Exists: func(tb testing.TB, name string) bool {
			tb.Helper()
			_, err := os.Stat(filepath.Join(state, "bundles", name))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				tb.Error(err)
			}
			return err == nil
		},
	}
}
