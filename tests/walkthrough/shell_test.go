package walkthrough

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/tests/cluster/binaries"
)

// patience is how long a test waits for what has to happen.
const patience = 90 * time.Second

// The names of the walkthrough.
const (
	functions = "llm-sandbox-demo"
	sandboxes = "runc-warmpool"
	system    = "preheat-system"
	poolName  = "code-sandbox-pool"
)

// shell runs commands as a user types them.
type shell struct {
	t   *testing.T
	env []string
	dir string
}

// newShell finds kubectl and the address of chat's route.
func newShell(t *testing.T) *shell {
	t.Helper()
	root, err := binaries.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(root, "build", "bin")
	s := &shell{t: t, dir: root, env: append(os.Environ(), "PATH="+os.Getenv("PATH")+":"+bin)}
	url := os.Getenv("PREHEAT_URL")
	if url == "" {
		url = s.quiet("kubectl get ksvc chat -n " + functions + " -o jsonpath={.status.url}")
		if context := s.quiet("kubectl config current-context"); strings.HasPrefix(context, "preheat-") {
			url += ":" + s.quiet("cluster -name "+strings.TrimPrefix(context, "preheat-")+" http-port")
		}
	}
	s.env = append(s.env, "URL="+url)
	return s
}

// run prints a command, runs it, prints what it prints, and returns that.
func (s *shell) run(command string) string {
	s.t.Helper()
	s.t.Logf("$ %s", command)
	out := s.quiet(command)
	s.t.Logf("%s", out)
	return out
}

// quiet runs a command that no user types, or types again and again.
func (s *shell) quiet(command string) string {
	s.t.Helper()
	out, err := s.try(command)
	if err != nil {
		s.t.Fatalf("%s: %v", command, err)
	}
	return out
}

func (s *shell) try(command string) (string, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", command)
	cmd.Env, cmd.Dir = s.env, s.dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), &commandError{err, errs.String()}
	}
	return strings.TrimSpace(out.String()), nil
}

type commandError struct {
	error
	stderr string
}

func (e *commandError) Error() string { return e.error.Error() + ": " + e.stderr }

// eventually waits until something holds.
func (s *shell) eventually(what string, holds func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			out, _ := s.try("kubectl get pods -A -o wide")
			s.t.Fatalf("waited in vain for: %s\n%s", what, out)
		}
	}
}

// warm lists the pool's sandboxes that can be claimed.
func (s *shell) warm() []string {
	s.t.Helper()
	return strings.Fields(s.quiet("kubectl get pods -n " + sandboxes + ` -l sandbox.preheat.dev/state=warm -o jsonpath='{range .items[?(@.status.containerStatuses[0].ready==true)]}{.metadata.name} {end}'`))
}

// full waits until as many sandboxes are warm as should be, and no others are.
func (s *shell) full(n int) []string {
	s.t.Helper()
	var names []string
	s.eventually("the pool is full", func() bool { names = s.warm(); return len(names) == n })
	return names
}

// tryCleanup runs a command at a test's end, when its context is over.
func (s *shell) tryCleanup(command string) (string, error) {
	cmd := exec.Command("bash", "-c", command)
	cmd.Env, cmd.Dir = s.env, s.dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}
