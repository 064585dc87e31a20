package attacks

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

// TestS13NoNetwork: every way out ends in an ordinary error, at once. The
// program itself measures the time, and the bound is generous.
func TestS13NoNetwork(t *testing.T) {
	t.Parallel()
	var attempts []attempt
	for name, address := range map[string]string{
		"internet": "1.1.1.1", "metadata": "169.254.169.254", "metadata of containers": "169.254.170.2", "private": "10.0.0.1",
		"usual gateway": "172.17.0.1", "usual cluster service": "10.96.0.1", "broadcast": "255.255.255.255", "multicast": "224.0.0.1",
	} {
		for _, port := range []int{53, 80, 443} {
			attempts = append(attempts, attempt{
				fmt.Sprintf("%s, port %d", name, port),
				fmt.Sprintf("for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM): reach(socket.AF_INET, kind, ('%s', %d))", address, port),
				"ENETUNREACH|EHOSTUNREACH|EACCES|EPERM",
			})
		}
	}
	for _, address := range []string{"2606:4700:4700::1111", "fd00:ec2::254", "fe80::1"} {
		attempts = append(attempts, attempt{address, fmt.Sprintf("reach(socket.AF_INET6, socket.SOCK_STREAM, ('%s', 80))", address), "ENETUNREACH|EADDRNOTAVAIL|EINVAL|EAFNOSUPPORT|EHOSTUNREACH"})
	}
	for _, address := range machineAddresses(t) {
		attempts = append(attempts, attempt{"this machine, " + address, fmt.Sprintf("reach(socket.AF_INET, socket.SOCK_STREAM, ('%s', 22))", address), "ENETUNREACH|EHOSTUNREACH"})
	}
	refused(t, attempts)
}

// machineAddresses are the addresses that this machine has outside loopback.
func machineAddresses(t *testing.T) []string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() && len(list) < 4 {
			list = append(list, ip.IP.String())
		}
	}
	return list
}

// TestS13TheServerItself listens on this machine's loopback, not on that of a
// sandbox.
func TestS13TheServerItself(t *testing.T) {
	t.Parallel()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(shared.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	refused(t, []attempt{{"connect", "s = socket.socket(); attempt(s.connect, ('127.0.0.1', " + port + "))", "ECONNREFUSED"}})
}

func TestS13NamesAreNotFound(t *testing.T) {
	t.Parallel()
	r := shared.Execute(t, execution.Request{Language: "python", Limits: execution.Limits{TimeoutSeconds: 60}, Code: `import socket, time, urllib.request
began = time.time()
for name in ("example.com", "metadata.google.internal", "kubernetes.default.svc", "host.docker.internal"):
    try: print(socket.getaddrinfo(name, 80))
    except socket.gaierror as e: print("gaierror")
try: urllib.request.urlopen("http://example.com")
except OSError as e: print(type(e).__name__)
print(time.time() - began < 20)`})
	outcome(t, "names of the internet, of clouds, of clusters", r)
	product.Ended(t, r, execution.StatusSucceeded, 0, "")
	product.Wrote(t, r, strings.Repeat("gaierror\n", 4)+"URLError\nTrue\n", "")
}

func TestS13OnlyLoopback(t *testing.T) {
	t.Parallel()
	r := shared.Python(t, `import socket
print([n for _, n in socket.if_nameindex() if n not in ("tunl0", "sit0", "ip6tnl0")])
print(len(open("/proc/net/route").readlines()), len(open("/proc/net/arp").readlines()), len(open("/proc/net/unix").readlines()))`)
	outcome(t, "interfaces, routes, neighbours, Unix sockets", r)
	product.Wrote(t, r, "['lo']\n1 1 1\n", "")
}
