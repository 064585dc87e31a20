// Package rootless runs the product as a user without rights.
package rootless

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

// nobody has no subordinate ids.
const nobody = 65534

// asNobody makes the product under test run as nobody, with its parts in a
// folder that nobody can read, and returns a folder for its state.
func asNobody(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("only root can start the product as another user")
	}
	root := product.Root(t)
	dir, err := os.MkdirTemp("", "preheat-rootless")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"bin/preheat", "bin/runc", "runner"} {
		if out, err := exec.Command("cp", "-rL", filepath.Join(root, "build", part), filepath.Join(dir, filepath.Base(part))).CombinedOutput(); err != nil {
			t.Fatalf("copying %s: %v: %s", part, err, out)
		}
	}
	image, err := filepath.EvalSymlinks(filepath.Join(root, "build", "sandbox"))
	if err != nil {
		t.Fatal(err)
	}
	wrapper := filepath.Join(dir, "wrapper")
	script := fmt.Sprintf("#!/bin/sh\nPREHEAT_RUNC=%[1]s/runc PREHEAT_RUNNER_DIR=%[1]s/runner PREHEAT_SANDBOX_IMAGE=%[2]s exec setpriv --reuid=%[3]d --regid=%[3]d --clear-groups %[1]s/preheat\n", dir, image, nobody)
	if err := os.WriteFile(wrapper, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PREHEAT_BINARY", wrapper)
	state := filepath.Join(dir, "state")
	if err := os.Mkdir(state, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(state, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	return state
}

func TestWithoutRoot(t *testing.T) {
	p := product.StartIn(t, asNobody(t))
	defer p.Stop(t)
	for _, weaker := range []string{"one range of host ids", "Without subordinate ids", "Without cgroups"} {
		if !strings.Contains(p.Log(), weaker) {
			t.Errorf("the program does not say at its start: %s", weaker)
		}
	}
	r := p.Python(t, "import os, tempfile\nprint(os.getuid(), open('/proc/self/uid_map').read().split())\nopen('a.txt', 'w').write('x')\ntempfile.mkdtemp(); open('/opt/preheat/x', 'w')")
	if want := fmt.Sprintf("0 ['0', '%d', '1']\n", nobody); r.Stdout != want {
		t.Errorf("stdout %q, want %q", r.Stdout, want)
	}
	if r.Status != execution.StatusFailed || !strings.Contains(r.Stderr, "Read-only file system") {
		t.Errorf("a program could write to the image: %s, %s", r.Status, r.Stderr)
	}
	if len(r.Artifacts) != 1 || r.Artifacts[0].Content != "x" {
		t.Errorf("artifacts %+v", r.Artifacts)
	}
	r = p.Python(t, "import socket; socket.create_connection(('127.0.0.2', 8080), 1)")
	if !strings.Contains(r.Stderr, "ConnectionRefusedError") {
		t.Errorf("a connection out of the sandbox: %s", r.Stderr)
	}
	if r := p.Execute(t, execution.Request{Language: "javascript", Code: "console.log(6 * 7)"}); r.Stdout != "42\n" {
		t.Errorf("result %+v", r)
	}
	if r := p.Execute(t, execution.Request{Language: "python", Code: "while True: pass", Limits: execution.Limits{TimeoutSeconds: 0.5}}); r.Status != execution.StatusTimedOut {
		t.Errorf("result %+v", r)
	}
}
