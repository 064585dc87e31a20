package runc

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/runtime-spec/specs-go"
)

// fakeRunc is a program that writes down how it was called and does what the
// test's shell script says. It makes no containers.
func fakeRunc(t *testing.T, dir, script string) string {
	t.Helper()
	path := filepath.Join(dir, "fake-runc")
	text := fmt.Sprintf(`#!/bin/sh
case "$*" in *--version*) echo "runc version 1.4.0"; exit 0;; esac
shift 6 # --root, --log and --log-format
echo "$*" >>%s/calls
%s
`, dir, script)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// calls are the arguments of each call of the fake, without the state folder.
func calls(t *testing.T, dir string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(strings.ReplaceAll(string(text), dir, "")), "\n")
}

// testBackend is a backend over a fake runc, without cgroups.
func testBackend(t *testing.T, script string) *Backend {
	t.Helper()
	dir := t.TempDir()
	image := filepath.Join(dir, "image")
	if err := os.MkdirAll(image, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"config.json": `{"Env":["PATH=/usr/bin"]}`, "versions": "python 3.13.5\nbash 5.2\n"} {
		if err := os.WriteFile(filepath.Join(image, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := New(t.Context(), Config{
		Binary: fakeRunc(t, dir, script), StateDir: filepath.Join(dir, "state"), Image: image, RunnerDir: dir, Sandboxes: 8,
		Limits: SandboxLimits{Memory: 64 << 20, Tmpfs: 16 << 20, CPUs: 1, Processes: 32, OpenFiles: 64},
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	host := b.host
	t.Cleanup(func() {
		b.host = host
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	b.host.Cgroups = false
	return b
}

// written is the configuration in a sandbox's bundle.
func written(t *testing.T, b *Backend, name string) ocispec.Spec {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(b.bundle(name), "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s ocispec.Spec
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// over is a context that has ended.
func over() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
