// Package binaries builds the programs of a Kubernetes cluster from their Go
// modules and says where they are. They live in a cache outside the source
// tree, under a key of everything that they are built from, so that a build is
// done once and a changed pin never meets an old program.
package binaries

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

// Tool is a program that a module under tests/cluster/tools builds, or several.
type Tool struct {
	name string
	// module is the folder of its module, if that is not its name.
	module string
	// programs are what the module builds; without any it is one program, of
	// the tool's name, from the module's own package.
	programs []program
	// tags are build tags.
	tags string
	// versioned names the module whose version the program reports.
	versioned string
	// links are names by which the program is started as well.
	links []string
}

// program is one of several of a tool.
type program struct{ name, pkg string }

// The tools.
var (
	Etcd = Tool{name: "etcd"}
	Kube = Tool{name: "kube", versioned: "k8s.io/kubernetes", links: []string{
		"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl",
	}}
	// Node is what a node needs beside Kubernetes' own programs and runc.
	Node = Tool{name: "node", tags: "no_btrfs no_zfs no_devmapper", programs: []program{
		{"containerd", "github.com/containerd/containerd/v2/cmd/containerd"},
		{"containerd-shim-runc-v2", "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"},
		{"ctr", "github.com/containerd/containerd/v2/cmd/ctr"},
		{"bridge", "github.com/containernetworking/plugins/plugins/main/bridge"},
		{"loopback", "github.com/containernetworking/plugins/plugins/main/loopback"},
		{"host-local", "github.com/containernetworking/plugins/plugins/ipam/host-local"},
		{"portmap", "github.com/containernetworking/plugins/plugins/meta/portmap"},
	}}
	// Pause is what a Pod's sandbox runs.
	Pause   = Tool{name: "pause"}
	CoreDNS = Tool{name: "coredns"}
	// KubeRouter enforces NetworkPolicies.
	KubeRouter = Tool{name: "kube-router", programs: []program{
		{"kube-router", "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"},
	}}
	// Knative is the control plane of Knative Serving.
	Knative = Tool{name: "knative", programs: []program{
		{"activator", "knative.dev/serving/cmd/activator"},
		{"autoscaler", "knative.dev/serving/cmd/autoscaler"},
		{"controller", "knative.dev/serving/cmd/controller"},
		{"webhook", "knative.dev/serving/cmd/webhook"},
		{"queue", "knative.dev/serving/cmd/queue"},
	}}
	// Eventing is Knative Eventing with the broker that keeps its events in
	// memory, and a consumer that prints what it gets.
	Eventing = Tool{name: "eventing", module: "knative", programs: []program{
		{"controller", "knative.dev/eventing/cmd/controller"},
		{"webhook", "knative.dev/eventing/cmd/webhook"},
		{"broker-ingress", "knative.dev/eventing/cmd/broker/ingress"},
		{"broker-filter", "knative.dev/eventing/cmd/broker/filter"},
		{"mtchannel-broker", "knative.dev/eventing/cmd/mtchannel_broker"},
		{"in-memory-channel-controller", "knative.dev/eventing/cmd/in_memory/channel_controller"},
		{"in-memory-channel-dispatcher", "knative.dev/eventing/cmd/in_memory/channel_dispatcher"},
		{"mtping", "knative.dev/eventing/cmd/mtping"},
		{"event-display", "knative.dev/eventing/cmd/event_display"},
	}}
	// Traefik is Knative's ingress.
	Traefik = Tool{name: "traefik", programs: []program{
		{"traefik", "github.com/traefik/traefik/v3/cmd/traefik"},
	}}
)

// All are the tools of a whole cluster, in the order of their use.
func All() []Tool {
	return []Tool{Etcd, Kube, Node, Pause, CoreDNS, KubeRouter, Knative, Eventing, Traefik}
}

// Name is the tool's name.
func (t Tool) Name() string { return t.name }

func (t Tool) all() []program {
	if len(t.programs) == 0 {
		return []program{{t.name, "."}}
	}
	return t.programs
}

// ErrNotBuilt says that Dir did not find a program.
var ErrNotBuilt = errors.New("not built yet")

// Dir returns the folder that holds the built program and its links.
func (t Tool) Dir() (string, error) {
	dir, err := t.dir()
	if err != nil {
		return "", err
	}
	for _, p := range t.all() {
		if _, err := os.Stat(filepath.Join(dir, p.name)); err != nil {
			return "", fmt.Errorf("find %s: %w: run `go run ./tests/cluster/cmd/cluster build %s` first", p.name, ErrNotBuilt, t.name)
		}
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
	for _, link := range t.links {
		if err := os.Symlink(t.name, filepath.Join(dir, link)); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	for _, p := range t.all() {
		if _, err := os.Stat(filepath.Join(dir, p.name)); err == nil {
			continue
		}
		if err := t.compile(ctx, out, p, filepath.Join(dir, p.name)); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// compile builds one program. Only a whole one appears at target.
func (t Tool) compile(ctx context.Context, out io.Writer, p program, target string) error {
	src, err := t.source()
	if err != nil {
		return err
	}
	flags, err := t.ldflags(src)
	if err != nil {
		return err
	}
	temp := target + ".part"
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", t.tags, "-ldflags", flags, "-o", temp, p.pkg)
	cmd.Dir, cmd.Stdout, cmd.Stderr = src, out, out
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	stop := progress(ctx, out, p.name)
	err = cmd.Run()
	stop()
	if err != nil {
		return err
	}
	return os.Rename(temp, target)
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
		if errors.Is(err, os.ErrNotExist) && name != "go.mod" {
			continue
		}
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(data), data)
	}
	if len(t.programs) > 0 {
		fmt.Fprintln(sum, t.tags, t.programs)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "preheat", "tools", t.name+"-"+hex.EncodeToString(sum.Sum(nil))[:16]), nil
}

func (t Tool) source() (string, error) {
	root, err := ModuleRoot()
	return filepath.Join(root, "tests", "cluster", "tools", cmp.Or(t.module, t.name)), err
}

// ModuleDir returns the folder of a module's files that the tool is built
// from, and fetches them if need be.
func (t Tool) ModuleDir(ctx context.Context, module string) (string, error) {
	src, err := t.source()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	cmd.Dir = src
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("fetch the module %s: %w", module, err)
	}
	var m struct{ Dir string }
	if err := json.Unmarshal(out, &m); err != nil {
		return "", fmt.Errorf("find the module %s: %w", module, err)
	}
	return m.Dir, nil
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
