// Package sandboxes gives the Pods of a played node real sandboxes: runc
// containers with the runner and the image that `make build` makes. Each has a
// loopback address of its own, and shares the machine's network.
package sandboxes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	gorunc "github.com/containerd/go-runc"
	ocispec "github.com/opencontainers/runtime-spec/specs-go"
	corev1 "k8s.io/api/core/v1"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool/local"
	"github.com/preheat-dev/preheat/functions/execute/pool/runc"
	"github.com/preheat-dev/preheat/internal/pause"
)

// startTimeout bounds the start of a sandbox.
const startTimeout = 30 * time.Second

// Node makes the sandboxes of a node's Pods.
type Node struct {
	config     runc.Config
	image      runc.Image
	containers *gorunc.Runc

	mu sync.Mutex
	// made counts the sandboxes; existing are the ids of their containers.
	made     int
	existing map[string]bool
}

// New returns a node that keeps its state in dir. build is the folder that
// `make build` fills.
func New(build, dir string) (*Node, error) {
	image, err := filepath.EvalSymlinks(filepath.Join(build, "sandbox"))
	if err != nil {
		return nil, fmt.Errorf("find the sandbox image (make build makes it): %w", err)
	}
	n := &Node{
		config: runc.Config{
			StateDir: dir, Image: image, RunnerDir: filepath.Join(build, "runner"),
			Limits: runc.SandboxLimits{Tmpfs: 64 << 20, Processes: 128, OpenFiles: 1024},
		},
		containers: &gorunc.Runc{Command: filepath.Join(build, "bin", "runc"), Root: filepath.Join(dir, "runc")},
		existing:   map[string]bool{},
	}
	n.image, err = runc.LoadImage(image)
	return n, err
}

// id names a Pod's container.
func id(pod *corev1.Pod) string { return pod.Name + "-" + string(pod.UID) }

// Start makes the sandbox of a Pod, and returns the address at which its
// runner listens once its interpreters are warm.
func (n *Node) Start(ctx context.Context, pod *corev1.Pod) (ip string, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	n.mu.Lock()
	n.made++
	slot := n.made
	n.existing[id(pod)] = true
	n.mu.Unlock()
	ip = net.IPv4(127, 77, byte(slot>>8), byte(slot)).String()
	bundle := filepath.Join(n.config.StateDir, id(pod))
	address, err := n.writeBundle(bundle, pod, ip, slot)
	if err != nil {
		return "", fmt.Errorf("prepare the sandbox of Pod %s: %w", pod.Name, err)
	}
	log, err := os.Create(filepath.Join(bundle, "log"))
	if err != nil {
		return "", err
	}
	defer func() { _ = log.Close() }()
	if _, err := n.containers.Run(ctx, id(pod), bundle, &gorunc.CreateOpts{Detach: true, IO: toFile{log}}); err != nil {
		text, _ := os.ReadFile(log.Name())
		return "", fmt.Errorf("start the sandbox of Pod %s: %w: %s", pod.Name, err, text)
	}
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			return ip, conn.Close()
		}
		if !pause.For(ctx, 5*time.Millisecond) {
			return "", fmt.Errorf("reach the sandbox of Pod %s: %w", pod.Name, err)
		}
	}
}

// writeBundle writes the container's configuration: the one of the pool of this
// machine, but for the network and the runner's settings, which are the Pod's.
func (n *Node) writeBundle(bundle string, pod *corev1.Pod, ip string, slot int) (address string, err error) {
	spec, err := n.config.Spec(runc.Host{Root: true}, n.image, local.PoolConfig{Warm: []string{"python"}}, "sandbox", slot)
	if err != nil {
		return "", err
	}
	spec.Process.Env = slices.DeleteFunc(spec.Process.Env, func(e string) bool { return strings.HasPrefix(e, "PREHEAT_RUNNER_FD=") })
	for _, e := range pod.Spec.Containers[0].Env {
		switch e.Name {
		case v1alpha1.EnvProbe:
			continue
		case v1alpha1.EnvListen:
			e.Value = ip + e.Value
			address = e.Value
		}
		spec.Process.Env = append(spec.Process.Env, e.Name+"="+e.Value)
	}
	spec.Linux.Namespaces = slices.DeleteFunc(spec.Linux.Namespaces, func(ns ocispec.LinuxNamespace) bool { return ns.Type == ocispec.NetworkNamespace })
	// The kernel shows a sysfs only to who owns the network.
	spec.Mounts = slices.DeleteFunc(spec.Mounts, func(m ocispec.Mount) bool { return m.Type == "sysfs" })
	spec.Mounts = append(spec.Mounts, ocispec.Mount{
		Destination: "/dev/" + terminationLog, Type: "bind", Source: filepath.Join(bundle, terminationLog), Options: []string{"bind", "rw"},
	})
	text, err := json.Marshal(spec)
	if err != nil {
		return "", err
	}
	if err := os.Mkdir(bundle, 0o711); err != nil {
		return "", err
	}
	if err := writable(filepath.Join(bundle, terminationLog)); err != nil {
		return "", err
	}
	return address, os.WriteFile(filepath.Join(bundle, "config.json"), text, 0o600)
}

// terminationLog is the file in which a container may say why it ends.
const terminationLog = "termination-log"

// writable makes an empty file that everybody may write to.
func writable(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o666), f.Close())
}

// Ended waits until nothing runs in the sandbox of a Pod any more, and returns what
// it has left as its termination message.
func (n *Node) Ended(ctx context.Context, pod *corev1.Pod) (message string, err error) {
	for {
		if state, err := n.containers.State(ctx, id(pod)); err != nil || state.Status == "stopped" {
			text, err := os.ReadFile(filepath.Join(n.config.StateDir, id(pod), terminationLog))
			if errors.Is(err, os.ErrNotExist) {
				err = nil // it has been destroyed
			}
			return string(text), err
		}
		if !pause.For(ctx, 100*time.Millisecond) {
			return "", context.Cause(ctx)
		}
	}
}

// End destroys the sandbox of a Pod.
func (n *Node) End(pod *corev1.Pod) error { return n.end(id(pod)) }

func (n *Node) end(container string) error {
	err := n.containers.Delete(context.Background(), container, &gorunc.DeleteOpts{Force: true})
	if err != nil {
		return fmt.Errorf("destroy sandbox %s: %w", container, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.existing, container)
	return os.RemoveAll(filepath.Join(n.config.StateDir, container))
}

// Close destroys all sandboxes.
func (n *Node) Close() error {
	var errs []error
	for _, container := range n.list("") {
		errs = append(errs, n.end(container))
	}
	return errors.Join(errs...)
}

// list returns the containers of the Pods of a name, of which there may have
// been several, or all.
func (n *Node) list(pod string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []string
	for container := range n.existing {
		if pod == "" || strings.HasPrefix(container, pod+"-") {
			list = append(list, container)
		}
	}
	return list
}

// Exists reports whether there is a sandbox of a Pod of that name.
func (n *Node) Exists(pod string) bool { return len(n.list(pod)) > 0 }

// Kill kills every process of a Pod's sandbox, which stays.
func (n *Node) Kill(ctx context.Context, pod string) error {
	for _, container := range n.list(pod) {
		if err := Kill(ctx, n.containers, container); err != nil {
			return err
		}
	}
	return nil
}

// toFile sends the output of runc, and so of the runner, to a file.
type toFile struct{ *os.File }
