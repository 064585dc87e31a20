// Package controlplane runs a real etcd and kube-apiserver for tests: on a
// loopback address of its own, with RBAC on, in a data directory of its own
// that goes when it stops. Nothing schedules or runs Pods; see fakenode.
package controlplane

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/preheat-dev/preheat/tests/cluster/binaries"
	"github.com/preheat-dev/preheat/tests/cluster/pki"
)

const (
	apiPort    = "6443"
	clientPort = "2379"
	peerPort   = "2380"
	startLimit = 90 * time.Second
)

// Options tunes a control plane.
type Options struct {
	// Args are added to the API server's.
	Args []string
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	dir   string
	host  string
	ca    *pki.Authority
	admin pki.Pair
	procs []*process
}

// Start starts a control plane and waits until it is ready.
func Start(ctx context.Context, opts Options) (_ *ControlPlane, err error) {
	etcd, err := binaries.Etcd.Dir()
	if err != nil {
		return nil, err
	}
	kube, err := binaries.Kube.Dir()
	if err != nil {
		return nil, err
	}
	cp := &ControlPlane{}
	defer func() {
		if err != nil {
			err = errors.Join(err, cp.Stop())
		}
	}()
	if err := cp.prepare(); err != nil {
		return nil, fmt.Errorf("prepare a control plane: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := cp.run("etcd", filepath.Join(etcd, "etcd"), cp.etcdArgs()); err != nil {
		return nil, err
	}
	if err := cp.run("kube-apiserver", filepath.Join(kube, "kube-apiserver"), append(cp.apiArgs(), opts.Args...)); err != nil {
		return nil, err
	}
	return cp, cp.ready(ctx)
}

// prepare makes the data directory, picks an address and issues certificates.
func (cp *ControlPlane) prepare() (err error) {
	// In memory, where there is such a place: nothing here has to last.
	base := "/dev/shm"
	if _, err := os.Stat(base); err != nil {
		base = ""
	}
	if cp.dir, err = os.MkdirTemp(base, "preheat-controlplane-"); err != nil {
		return err
	}
	if cp.host, err = freeHost(); err != nil {
		return err
	}
	if cp.ca, err = pki.NewAuthority(24 * time.Hour); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(cp.dir, "ca.crt"), cp.ca.PEM, 0o600); err != nil {
		return err
	}
	server, err := cp.ca.Server(pkix.Name{CommonName: "kube-apiserver"}, cp.host, "localhost", "kubernetes.default.svc")
	if err != nil {
		return err
	}
	if err := server.Write(cp.dir, "apiserver"); err != nil {
		return err
	}
	if cp.admin, err = cp.ca.Client("admin", "system:masters"); err != nil {
		return err
	}
	return cp.writeKubeconfig()
}

// freeHost finds a loopback address that no other control plane uses: with an
// address of its own, every port of it can be a fixed one.
func freeHost() (string, error) {
	for range 100 {
		host := fmt.Sprintf("127.77.%d.%d", rand.IntN(256), 1+rand.IntN(254))
		l, err := net.Listen("tcp", net.JoinHostPort(host, apiPort))
		if err == nil {
			return host, l.Close()
		}
	}
	return "", errors.New("no loopback address is free")
}

func (cp *ControlPlane) run(name, program string, args []string) error {
	p, err := start(cp.dir, name, program, args...)
	if err != nil {
		return err
	}
	cp.procs = append(cp.procs, p)
	return nil
}

func (cp *ControlPlane) etcdURL(port string) string {
	return "http://" + net.JoinHostPort(cp.host, port)
}

func (cp *ControlPlane) etcdArgs() []string {
	client, peer := cp.etcdURL(clientPort), cp.etcdURL(peerPort)
	return []string{
		"--data-dir", filepath.Join(cp.dir, "etcd"), "--unsafe-no-fsync", "--log-level", "warn",
		"--quota-backend-bytes", "8589934592",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default=" + peer,
	}
}

func (cp *ControlPlane) apiArgs() []string {
	file := func(name string) string { return filepath.Join(cp.dir, name) }
	return []string{
		"--etcd-servers", cp.etcdURL(clientPort), "--etcd-compaction-interval", "60s",
		"--bind-address", cp.host, "--secure-port", apiPort, "--endpoint-reconciler-type", "none",
		"--tls-cert-file", file("apiserver.crt"), "--tls-private-key-file", file("apiserver.key"),
		"--client-ca-file", file("ca.crt"), "--authorization-mode", "RBAC",
		"--service-cluster-ip-range", "10.96.0.0/16",
		"--service-account-issuer", "https://kubernetes.default.svc",
		"--service-account-key-file", file("apiserver.key"), "--service-account-signing-key-file", file("apiserver.key"),
		// Nobody makes service accounts here: there is no controller manager.
		"--disable-admission-plugins", "ServiceAccount",
		"--profiling=false",
	}
}

// ready waits until the API server serves.
func (cp *ControlPlane) ready(ctx context.Context) error {
	client, err := rest.HTTPClientFor(cp.Config())
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	api := cp.procs[len(cp.procs)-1]
	for {
		if cp.readyNow(ctx, client) {
			return nil
		}
		select {
		case <-ctx.Done():
			return api.failure(errors.New("the API server is not ready in time"))
		case <-api.done:
			return api.failure(errors.New("the API server did not start"))
		case <-cp.procs[0].done:
			return cp.procs[0].failure(errors.New("etcd did not start"))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (cp *ControlPlane) readyNow(ctx context.Context, client *http.Client) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, cp.url()+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func (cp *ControlPlane) url() string { return "https://" + net.JoinHostPort(cp.host, apiPort) }

// Config returns a new configuration of an administrator's client, which is
// not limited in its rate.
func (cp *ControlPlane) Config() *rest.Config {
	return &rest.Config{
		Host: cp.url(), QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: cp.ca.PEM, CertData: cp.admin.Cert, KeyData: cp.admin.Key},
	}
}

// Kubeconfig is the path of an administrator's kubeconfig file.
func (cp *ControlPlane) Kubeconfig() string { return filepath.Join(cp.dir, "kubeconfig") }

func (cp *ControlPlane) writeKubeconfig() error {
	const name = "preheat"
	c := clientcmdapi.NewConfig()
	c.Clusters[name] = &clientcmdapi.Cluster{Server: cp.url(), CertificateAuthorityData: cp.ca.PEM}
	c.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: cp.admin.Cert, ClientKeyData: cp.admin.Key}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	c.CurrentContext = name
	return clientcmd.WriteToFile(*c, cp.Kubeconfig())
}

// Stop ends everything, the last started first, and removes its data.
func (cp *ControlPlane) Stop() error {
	var errs []error
	for i := len(cp.procs) - 1; i >= 0; i-- {
		errs = append(errs, cp.procs[i].stop())
	}
	cp.procs = nil
	if cp.dir != "" {
		errs = append(errs, os.RemoveAll(cp.dir))
	}
	return errors.Join(errs...)
}
