package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/preheat-dev/preheat/tests/cluster/netns"
)

// startLimit bounds the start of one program.
const startLimit = 90 * time.Second

// Up starts whatever does not run yet, and returns when the node takes Pods.
// It calls load, which imports images, as soon as that is possible, and tells
// progress what it has done.
func (n *Node) Up(ctx context.Context, load func(context.Context) error, progress func(string)) error {
	if err := errors.Join(n.find(), n.check()); err != nil {
		return err
	}
	if err := n.prepare(ctx); err != nil {
		return fmt.Errorf("prepare the node: %w", err)
	}
	progress("network, certificates and configuration")
	if err := errors.Join(n.startEtcd(), n.startContainerd()); err != nil {
		return err
	}
	if err := n.await(ctx, containerd, n.containerdReady); err != nil {
		return err
	}
	loaded := make(chan error, 1)
	go func() { loaded <- load(ctx) }()
	err := n.control(ctx, progress)
	if err = errors.Join(err, <-loaded); err != nil {
		return err
	}
	progress("images")
	if err := errors.Join(n.startKubelet(), n.startProxy(), n.startRouter()); err != nil {
		return err
	}
	if err := n.await(ctx, kubelet, n.nodeReady); err != nil {
		return err
	}
	for _, name := range []string{proxy, router} {
		if d := n.daemon(name); !d.alive() {
			return fmt.Errorf("%s ended: %w", name, d.failure())
		}
	}
	progress("node")
	return nil
}

// control starts the control plane.
func (n *Node) control(ctx context.Context, progress func(string)) error {
	if err := n.startAPIServer(); err != nil {
		return err
	}
	if err := n.await(ctx, apiServer, func(ctx context.Context) error {
		_, err := n.kubectl(ctx, "get", "--raw=/readyz")
		return err
	}); err != nil {
		return err
	}
	progress("control plane")
	return errors.Join(n.startManager(), n.startScheduler())
}

// prepare makes what has to exist before the first program starts.
func (n *Node) prepare(ctx context.Context) error {
	for _, dir := range []string{n.conf(""), filepath.Join(n.state, "logs"), n.temp(), n.run} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := n.issue(); err != nil {
		return err
	}
	if err := n.configure(); err != nil {
		return err
	}
	if err := n.makeCgroups(); err != nil {
		return err
	}
	return n.makeNetwork(ctx)
}

// makeNetwork makes the network namespace, in which the node's programs run.
func (n *Node) makeNetwork(ctx context.Context) error {
	ns := n.Namespace()
	if netns.Exists(ns) {
		return nil
	}
	if err := netns.Add(ns); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"link", "set", "lo", "up"},
		// An empty bridge carries the node's address: not every kernel has
		// dummy interfaces.
		{"link", "add", nodeBridge, "type", "bridge"},
		{"addr", "add", nodeIP + "/32", "dev", nodeBridge},
		{"link", "set", nodeBridge, "up"},
		// The node itself reaches Services once there is some route.
		{"route", "add", serviceRange, "dev", nodeBridge},
	} {
		if err := netns.IP(ctx, ns, args...); err != nil {
			return err
		}
	}
	return netns.Do(ns, func() error {
		return errors.Join(os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644),
			os.WriteFile("/proc/sys/net/bridge/bridge-nf-call-iptables", []byte("1"), 0o644))
	})
}

// await waits until a daemon does what ready asks, or has ended.
func (n *Node) await(ctx context.Context, name string, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	d := n.daemon(name)
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		if !d.alive() {
			return fmt.Errorf("%s ended: %w", name, d.failure())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready in time: %w; %w", name, err, d.failure())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (n *Node) containerdReady(ctx context.Context) error {
	cmd, err := n.Ctr(ctx, "version")
	if err != nil {
		return err
	}
	return n.Run(cmd)
}

func (n *Node) nodeReady(ctx context.Context) error {
	out, err := n.kubectl(ctx, "get", "node", nodeName, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
	if err != nil {
		return err
	}
	if out != "True" {
		return errors.New("the node is not Ready")
	}
	// Pods need it, and the controller manager takes its time.
	_, err = n.kubectl(ctx, "get", "serviceaccount", "default", "-n", "default", "-o", "name")
	return err
}

func (n *Node) kubectl(ctx context.Context, args ...string) (string, error) {
	cmd, err := n.Kubectl(ctx, args...)
	if err != nil {
		return "", err
	}
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := n.Run(cmd); err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// Import reads an archive of images into the node.
func (n *Node) Import(ctx context.Context, archive io.Reader) error {
	cmd, err := n.Ctr(ctx, "images", "import", "-")
	if err != nil {
		return err
	}
	var out strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = archive, &out, &out
	if err := n.Run(cmd); err != nil {
		return fmt.Errorf("import images: %w: %s", err, out.String())
	}
	return nil
}

// Images lists the names of the images that the node has.
func (n *Node) Images(ctx context.Context) (map[string]bool, error) {
	cmd, err := n.Ctr(ctx, "images", "list", "-q")
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	cmd.Stdout = &out
	if err := n.Run(cmd); err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	names := map[string]bool{}
	for line := range strings.Lines(out.String()) {
		names[strings.TrimSpace(line)] = true
	}
	return names, nil
}
