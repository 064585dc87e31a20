// Package binaries builds the programs of a Kubernetes cluster from their Go
// modules and says where they are. They live in a cache outside the source
// tree, under a key of everything that they are built from, so that a build is
// done once and a changed pin never meets an old program.
package binaries

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const modulePath = "github.com/preheat-dev/preheat"

// Tool is a program that a module under tests/cluster/tools builds.
type Tool struct {
	name string
	// versioned names the module whose version the program reports.
	versioned string
	// links are names by which the program is started as well.
	links []string
}

// The tools.
var (
	Etcd = Tool{name: "etcd"}
	Kube = Tool{name: "kube", versioned: "k8s.io/kubernetes", links: []string{
		"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl",
	}}
)

// ErrNotBuilt tells how to get a program that Dir did not find.
var ErrNotBuilt = errors.New("not built yet: run `go run ./tests/cluster/cmd/cluster build` first")

// Dir returns the folder that holds the built program and its links.
func (t Tool) Dir() (string, error) {
	dir, err := t.dir()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, t.name)); err != nil {
		return "", fmt.Errorf("find %s: %w", t.name, ErrNotBuilt)
	}
	return dir, nil
}

// Build builds the program unless that has been done, and tells out about it.
// An interrupted build goes on where it stopped, by way of Go's build cache.
func (t Tool) Build(ctx context.Context, out io.Writer) error {
	dir, err := t.dir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	unlock, err := lock(filepath.Join(dir, ".lock"))
	if err != nil {
		return fmt.Errorf("lock %s: %w", dir, err)
	}
	defer unlock()
	if _, err := t.Dir(); err == nil {
		fmt.Fprintf(out, "%s is built: %s\n", t.name, dir)
		return nil
	}
	fmt.Fprintf(out, "building %s, which takes minutes the first time\n", t.name)
	start := time.Now()
	if err := t.build(ctx, out, dir); err != nil {
		return fmt.Errorf("build %s: %w", t.name, err)
	}
	fmt.Fprintf(out, "built %s in %s: %s\n", t.name, time.Since(start).Round(time.Second), dir)
	return nil
}

func (t Tool) build(ctx context.Context, out io.Writer, dir string) error {
	src, err := t.source()
	if err != nil {
		return err
	}
	flags, err := t.ldflags(src)
	if err != nil {
		return err
	}
	temp := filepath.Join(dir, t.name+".part")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", flags, "-o", temp, ".")
	cmd.Dir, cmd.Stdout, cmd.Stderr = src, out, out
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	stop := progress(ctx, out, t.name)
	err = cmd.Run()
	stop()
	if err != nil {
		return err
	}
	for _, link := range t.links {
		if err := os.Symlink(t.name, filepath.Join(dir, link)); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return os.Rename(temp, filepath.Join(dir, t.name))
}

// progress tells out every half minute that a build goes on, until stopped.
func progress(ctx context.Context, out io.Writer, name string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	start := time.Now()
	go func() {
		defer close(done)
		tick := time.NewTicker(30 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				fmt.Fprintf(out, "building %s: %s\n", name, time.Since(start).Round(time.Second))
			}
		}
	}()
	return func() { cancel(); <-done }
}

func (t Tool) ldflags(src string) (string, error) {
	flags := "-s -w"
	if t.versioned == "" {
		return flags, nil
	}
	mod, err := os.ReadFile(filepath.Join(src, "go.mod"))
	if err != nil {
		return "", err
	}
	m := regexp.MustCompile(regexp.QuoteMeta(t.versioned) + ` v(\d+)\.(\d+)\.(\S+)`).FindSubmatch(mod)
	if m == nil {
		return "", fmt.Errorf("go.mod does not require %s", t.versioned)
	}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags += fmt.Sprintf(" -X %[1]s.gitVersion=v%[2]s.%[3]s.%[4]s -X %[1]s.gitMajor=%[2]s -X %[1]s.gitMinor=%[3]s -X %[1]s.gitTreeState=clean", pkg, m[1], m[2], m[3])
	}
	return flags, nil
}

func (t Tool) dir() (string, error) {
	src, err := t.source()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), runtime.GOARCH)
	for _, name := range []string{"go.mod", "go.sum", "main.go"} {
		data, err := os.ReadFile(filepath.Join(src, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(data), data)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "preheat", "tools", t.name+"-"+hex.EncodeToString(sum.Sum(nil))[:16]), nil
}

func (t Tool) source() (string, error) {
	root, err := ModuleRoot()
	return filepath.Join(root, "tests", "cluster", "tools", t.name), err
}

// ModuleRoot finds the source tree above the working directory.
func ModuleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(mod), "module "+modulePath+"\n") {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("no source tree of %s above the working directory", modulePath)
		}
		dir = up
	}
}

// lock waits for the lock on a file, which ends with this process at the latest.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { f.Close() }, nil
}
