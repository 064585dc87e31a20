package node

import (
	"path/filepath"
	"strconv"
	"time"
)

// The programs, in the order of their start.
const (
	etcd       = "etcd"
	containerd = "containerd"
	apiServer  = "kube-apiserver"
	manager    = "kube-controller-manager"
	scheduler  = "kube-scheduler"
	kubelet    = "kubelet"
	proxy      = "kube-proxy"
	router     = "kube-router"
	gateway    = "gateway"
)

var programs = []string{etcd, containerd, apiServer, manager, scheduler, kubelet, proxy, router, gateway}

// hurry is how long a program may take to end: nothing of it lasts.
const hurry = time.Second

func (n *Node) startEtcd() error {
	client, peer := "http://127.0.0.1:2379", "http://127.0.0.1:2380"
	return n.start(etcd, filepath.Join(n.bin.etcd, "etcd"),
		"--data-dir", n.etcd, "--unsafe-no-fsync", "--log-level", "warn",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
}

func (n *Node) startContainerd() error {
	return n.start(containerd, filepath.Join(n.bin.node, "containerd"), "-c", n.conf("containerd.toml"), "-l", "info")
}

func (n *Node) startAPIServer() error {
	return n.start(apiServer, filepath.Join(n.bin.kube, apiServer),
		"--etcd-servers=http://127.0.0.1:2379", "--bind-address=0.0.0.0", "--advertise-address="+nodeIP,
		"--secure-port="+strconv.Itoa(n.config.APIPort),
		"--tls-cert-file="+n.pki("apiserver.crt"), "--tls-private-key-file="+n.pki("apiserver.key"),
		"--client-ca-file="+n.pki("ca.crt"), "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--service-cluster-ip-range="+serviceRange,
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file="+n.pki("apiserver.key"), "--service-account-signing-key-file="+n.pki("apiserver.key"),
		"--kubelet-client-certificate="+n.pki("apiserver-kubelet.crt"), "--kubelet-client-key="+n.pki("apiserver-kubelet.key"),
		"--kubelet-certificate-authority="+n.pki("ca.crt"), "--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file="+n.pki("front-ca.crt"), "--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+n.pki("front-proxy.crt"), "--proxy-client-key-file="+n.pki("front-proxy.key"),
		"--profiling=false")
}

func (n *Node) startManager() error {
	config := n.conf("controller-manager.kubeconfig")
	return n.start(manager, filepath.Join(n.bin.kube, manager),
		"--kubeconfig="+config, "--authentication-kubeconfig="+config, "--authorization-kubeconfig="+config,
		"--bind-address=127.0.0.1", "--leader-elect=false", "--use-service-account-credentials",
		"--root-ca-file="+n.pki("ca.crt"), "--service-account-private-key-file="+n.pki("apiserver.key"),
		"--allocate-node-cidrs", "--cluster-cidr="+podRange, "--service-cluster-ip-range="+serviceRange, "--profiling=false")
}

func (n *Node) startScheduler() error {
	config := n.conf("scheduler.kubeconfig")
	return n.start(scheduler, filepath.Join(n.bin.kube, scheduler),
		"--kubeconfig="+config, "--authentication-kubeconfig="+config, "--authorization-kubeconfig="+config,
		"--bind-address=127.0.0.1", "--leader-elect=false", "--profiling=false")
}

func (n *Node) startKubelet() error {
	return n.start(kubelet, filepath.Join(n.bin.kube, kubelet),
		"--config="+n.conf("kubelet.yaml"), "--kubeconfig="+n.conf("kubelet.kubeconfig"),
		"--hostname-override="+nodeName, "--node-ip="+nodeIP,
		"--root-dir="+filepath.Join(n.state, "kubelet"), "--cert-dir="+filepath.Join(n.state, "kubelet-pki"), "-v=2")
}

func (n *Node) startProxy() error {
	return n.start(proxy, filepath.Join(n.bin.kube, proxy), "--config="+n.conf("proxy.yaml"))
}

func (n *Node) startRouter() error {
	// It writes all rules anew whenever a Pod changes. Sandboxes have them long
	// before they run anything, so that it may leave the processors to others.
	return n.start(router, "nice", "-n", "5", filepath.Join(n.bin.router, router),
		"--kubeconfig="+n.conf("router.kubeconfig"), "--hostname-override="+nodeName,
		"--run-firewall=true", "--run-router=false", "--run-service-proxy=false", "--run-loadbalancer=false",
		"--service-cluster-ip-range="+serviceRange, "--iptables-sync-period=10m", "--health-port=0")
}
