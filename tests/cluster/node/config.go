package node

import (
	"bytes"
	"crypto/x509/pkix"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/preheat-dev/preheat/tests/cluster/pki"
)

//go:embed files
var files embed.FS

var templates = template.Must(template.New("").Option("missingkey=error").ParseFS(files, "files/*"))

// validity is how long a node's certificates last.
const validity = 365 * 24 * time.Hour

// resolver is not there: Pods that do not use the cluster's DNS find none.
const resolver = "nameserver 127.0.0.1\n"

// configure writes the configuration of every program.
func (n *Node) configure() error {
	values := map[string]string{
		"Name": n.Namespace(), "State": n.state, "Run": n.run, "Conf": n.conf(""), "PKI": n.pki(""), "Logs": filepath.Join(n.state, "logs"),
		"Runsc": n.config.Runsc, "RunscShim": filepath.Join(filepath.Dir(n.config.Runsc), "containerd-shim-runsc-v1"),
		"NodeBin": n.bin.node, "Runc": n.config.Runc, "Pause": Pause, "Cgroup": n.cgroup, "DNS": DNS,
		"NodeIP": nodeIP, "NodeName": nodeName, "PodBridge": podBridge, "NodePods": nodePodRange, "Pods": podRange,
	}
	for k, v := range values {
		values[k] = filepath.Clean(v)
	}
	if !n.GVisor() {
		values["Runsc"] = ""
	}
	for source, target := range map[string]string{
		"containerd.toml": "containerd.toml", "cni.conflist": "cni/10-preheat.conflist",
		"runsc.toml": "runsc.toml", "kubelet.yaml": "kubelet.yaml", "proxy.yaml": "proxy.yaml",
	} {
		var text bytes.Buffer
		if err := templates.ExecuteTemplate(&text, source, values); err != nil {
			return err
		}
		if err := write(n.conf(target), text.Bytes()); err != nil {
			return err
		}
	}
	return write(n.conf("resolv.conf"), []byte(resolver))
}

// write writes a file unless it is so already: kube-proxy ends when its
// configuration changes.
func write(path string, data []byte) error {
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, data) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// issue makes all certificates and kubeconfigs, once for the node's life.
func (n *Node) issue() error {
	if _, err := os.Stat(n.Kubeconfig()); err == nil {
		return nil
	}
	if err := os.MkdirAll(n.pki(""), 0o700); err != nil {
		return err
	}
	ca, err := pki.NewAuthority(validity)
	if err != nil {
		return err
	}
	front, err := pki.NewAuthority(validity)
	if err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(n.pki("ca.crt"), ca.PEM, 0o600), os.WriteFile(n.pki("front-ca.crt"), front.PEM, 0o600)); err != nil {
		return err
	}
	if err := n.servers(ca); err != nil {
		return err
	}
	if err := n.clients(ca, front); err != nil {
		return err
	}
	admin, err := ca.Client("admin", "system:masters")
	if err != nil {
		return err
	}
	return n.kubeconfig(n.Kubeconfig(), ca, admin)
}

func (n *Node) servers(ca *pki.Authority) error {
	api, err := ca.Server(pkix.Name{CommonName: "kube-apiserver"}, "127.0.0.1", nodeIP, apiService,
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
	if err != nil {
		return err
	}
	kubelet, err := ca.Server(pkix.Name{CommonName: "system:node:" + nodeName, Organization: []string{"system:nodes"}}, nodeIP, "127.0.0.1", nodeName)
	if err != nil {
		return err
	}
	return errors.Join(api.Write(n.pki(""), "apiserver"), kubelet.Write(n.pki(""), "kubelet-server"))
}

func (n *Node) clients(ca, front *pki.Authority) error {
	for file, user := range map[string][]string{
		"kubelet": {"system:node:" + nodeName, "system:nodes"}, "controller-manager": {"system:kube-controller-manager"},
		"scheduler": {"system:kube-scheduler"}, "proxy": {"system:kube-proxy"}, "router": {"system:kube-router"},
	} {
		pair, err := ca.Client(user[0], user[1:]...)
		if err != nil {
			return err
		}
		if err := n.kubeconfig(n.conf(file+".kubeconfig"), ca, pair); err != nil {
			return err
		}
	}
	kubelets, err := ca.Client("apiserver-kubelet", "system:masters")
	if err != nil {
		return err
	}
	proxied, err := front.Client("front-proxy")
	if err != nil {
		return err
	}
	return errors.Join(kubelets.Write(n.pki(""), "apiserver-kubelet"), proxied.Write(n.pki(""), "front-proxy"))
}

func (n *Node) kubeconfig(path string, ca *pki.Authority, user pki.Pair) error {
	c := clientcmdapi.NewConfig()
	c.Clusters[nodeName] = &clientcmdapi.Cluster{Server: n.api(), CertificateAuthorityData: ca.PEM}
	c.AuthInfos[nodeName] = &clientcmdapi.AuthInfo{ClientCertificateData: user.Cert, ClientKeyData: user.Key}
	name := n.Namespace()
	c.Contexts[name] = &clientcmdapi.Context{Cluster: nodeName, AuthInfo: nodeName}
	c.CurrentContext = name
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
