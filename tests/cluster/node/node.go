// Package node runs a whole Kubernetes node on this machine: etcd, the control
// plane, containerd, the kubelet, kube-proxy and a NetworkPolicy agent, in a
// network namespace of its own from which nothing leads out. What belongs to a
// node is found by its name alone, so that another process can take it down.
package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/preheat-dev/preheat/tests/cluster/binaries"
	"github.com/preheat-dev/preheat/tests/cluster/netns"
)

// Addresses inside the network namespace. No two nodes share one.
const (
	nodeIP       = "10.200.0.1"
	nodeBridge   = "preheat0"
	podBridge    = "preheat1"
	podRange     = "10.244.0.0/16"
	nodePodRange = "10.244.0.0/24"
	serviceRange = "10.96.0.0/16"
	// apiService is the first address of serviceRange.
	apiService = "10.96.0.1"
	// DNS is the address of the cluster's DNS service.
	DNS = "10.96.0.10"

	nodeName = "preheat"
)

// Pause is the image of Pods' sandboxes.
const Pause = "dev.local/cluster/pause:1"

// Config says which node, and how it is reached.
type Config struct {
	// Name tells nodes on a machine apart.
	Name string
	// APIPort is the API server's port on 127.0.0.1, inside the namespace
	// and, by way of a gateway, outside.
	APIPort int
	// Runc is the path of the runc to use.
	Runc string
	// Runsc is the path of gVisor's runsc, beside which its shim is. Without it,
	// or where there is no such file, the node has no gVisor.
	Runsc string
}

// Node is a node, which may run or not.
type Node struct {
	config Config
	// state is on a disk, run and etcd in memory.
	state, run, etcd string
	cgroup           string
	bin              bin
}

// bin are the folders of the programs.
type bin struct{ etcd, kube, node, router string }

// New returns the node with a configuration.
func New(c Config) *Node {
	id := "preheat-" + c.Name
	return &Node{
		config: c, state: filepath.Join("/var/lib/preheat-cluster", c.Name), run: filepath.Join("/run/preheat-cluster", c.Name),
		etcd: filepath.Join("/dev/shm", id+"-etcd"), cgroup: "/" + id,
	}
}

// find looks the programs up.
func (n *Node) find() error {
	var errs []error
	for dir, tool := range map[*string]binaries.Tool{
		&n.bin.etcd: binaries.Etcd, &n.bin.kube: binaries.Kube, &n.bin.node: binaries.Node, &n.bin.router: binaries.KubeRouter,
	} {
		var err error
		*dir, err = tool.Dir()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// GVisor reports whether Pods may have the runtime class gvisor.
func (n *Node) GVisor() bool {
	_, err := os.Stat(n.config.Runsc)
	return err == nil
}

// Namespace is the name of the node's network namespace.
func (n *Node) Namespace() string { return "preheat-" + n.config.Name }

// State is the folder of the node's files.
func (n *Node) State() string { return n.state }

// Kubeconfig is the administrator's kubeconfig file.
func (n *Node) Kubeconfig() string { return filepath.Join(n.state, "kubeconfig") }

func (n *Node) conf(name string) string { return filepath.Join(n.state, "conf", name) }
func (n *Node) pki(name string) string  { return filepath.Join(n.state, "pki", name) }

// Log is the log file of one of the node's programs.
func (n *Node) Log(name string) string { return filepath.Join(n.state, "logs", name+".log") }

func (n *Node) temp() string { return filepath.Join(n.state, "tmp") }

func (n *Node) socket() string { return filepath.Join(n.run, "containerd.sock") }

func (n *Node) api() string {
	return "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(n.config.APIPort))
}

// Kubectl returns a command of kubectl as administrator, inside the namespace.
func (n *Node) Kubectl(ctx context.Context, args ...string) (*exec.Cmd, error) {
	dir, err := binaries.Kube.Dir()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+n.Kubeconfig())
	return cmd, nil
}

// Run starts a command inside the network namespace and waits for it.
func (n *Node) Run(cmd *exec.Cmd) error {
	if err := netns.Do(n.Namespace(), cmd.Start); err != nil {
		return fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return cmd.Wait()
}

// Ctr returns a command of containerd's client in the kubelet's namespace.
func (n *Node) Ctr(ctx context.Context, args ...string) (*exec.Cmd, error) {
	dir, err := binaries.Node.Dir()
	if err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, filepath.Join(dir, "ctr"), append([]string{"-a", n.socket(), "-n", "k8s.io"}, args...)...), nil
}
