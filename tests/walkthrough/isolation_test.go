package walkthrough

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// reach is a program that says whether it can connect to addresses.
const reach = `
import socket, sys
for target in %q.split():
    host, port, kind = target.split("/")
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM)
    s.settimeout(2)
    try:
        s.connect((host, int(port)))
        if kind == "udp":
            # A question for the name . of type NS.
            s.send(b"\0\1\1\0\0\1\0\0\0\0\0\0\0\0\2\0\1")
            s.recv(512)
        print(target, "reached")
    except OSError as e:
        print(target, "no:", e)
`

// targets are what no sandbox may reach: the API server, DNS, the kubelet, chat,
// and other sandboxes.
func targets(s *shell, others ...string) string {
	service := func(name string) string {
		return s.quiet("kubectl get service " + name + " -o jsonpath={.spec.clusterIP}")
	}
	dns := service("-n kube-system kube-dns")
	node := s.quiet("kubectl get nodes -o jsonpath='{.items[0].status.addresses[?(@.type==\"InternalIP\")].address}'")
	list := []string{service("kubernetes -n default") + "/443/tcp", dns + "/53/udp", dns + "/53/tcp", node + "/10250/tcp", service("chat-ui -n web-ui") + "/80/tcp"}
	for _, ip := range others {
		list = append(list, ip+"/7070/tcp")
	}
	return strings.Join(list, " ")
}

// addresses are the sandboxes' addresses by their names.
func addresses(s *shell, names []string) map[string]string {
	ips := map[string]string{}
	for _, name := range names {
		ips[name] = s.quiet("kubectl get pod -n " + sandboxes + " " + name + " -o jsonpath={.status.podIP}")
	}
	return ips
}

func TestASandboxReachesNothing(t *testing.T) {
	s := newShell(t)
	ips := addresses(s, s.full(2))
	list := targets(s, slices.Collect(maps.Values(ips))...)
	r := parse(t, s.quiet(executeCommand(fmt.Sprintf(reach, list))))
	if r.ExitCode != 0 || strings.Count(r.Stdout, "\n") != len(strings.Fields(list)) {
		t.Fatalf("%+v", r)
	}
	for line := range strings.Lines(r.Stdout) {
		// It may reach itself.
		if strings.Contains(line, "reached") && !strings.HasPrefix(line, ips[r.SandboxName]+"/") {
			t.Errorf("a sandbox reached: %s", line)
		}
	}
}

// TestOnlyClaimantsReachASandbox: the program of the test above gets everywhere
// from another Pod, which has a claimant's label, but to a sandbox only where
// its namespace has that label too.
func TestOnlyClaimantsReachASandbox(t *testing.T) {
	const label = "sandbox.preheat.dev/claimant"
	s := newShell(t)
	list := targets(s, slices.Collect(maps.Values(addresses(s, s.full(2))))...)
	try := s.stranger("reach", label+"=true", fmt.Sprintf(reach, list))

	out := s.quiet(try)
	for _, kind := range []string{"/443/tcp reached", "/53/udp reached", "/10250/tcp reached", "/80/tcp reached"} {
		if !strings.Contains(out, kind) {
			t.Errorf("a Pod without the policy did not get to %s:\n%s", kind, out)
		}
	}
	if strings.Contains(out, "/7070/tcp reached") || strings.Count(out, "/7070/tcp no:") != 2 {
		t.Errorf("a Pod in a namespace of no claimants reached a sandbox:\n%s", out)
	}
	s.quiet("kubectl label namespace reach " + label + "=true")
	s.eventually("a Pod in a namespace of claimants reaches both sandboxes", func() bool {
		return strings.Count(s.quiet(try), "/7070/tcp reached") == 2
	})
	// By now the agent that enforces policies knows the Pod.
	s.quiet("kubectl label namespace reach " + label + "-")
	s.eventually("it reaches neither without the namespace's label", func() bool {
		return strings.Count(s.quiet(try), "/7070/tcp no:") == 2
	})
}

// stranger starts a Pod in a namespace of its own that has nothing to do with
// Preheat, and returns the command by which it runs a program.
func (s *shell) stranger(namespace, labels, program string) string {
	s.t.Helper()
	image := s.quiet("kubectl get sandboxtemplate code-sandbox -n " + sandboxes + " -o jsonpath={.spec.podTemplate.spec.containers[0].image}")
	s.t.Cleanup(func() {
		_, _ = s.tryCleanup("kubectl delete namespace " + namespace + " --ignore-not-found --wait=false")
	})
	s.quiet("kubectl create namespace " + namespace)
	s.quiet("kubectl run reach -n " + namespace + " --labels=" + labels + " --restart=Never --image-pull-policy=IfNotPresent --image=" + image + " --command -- sleep 300")
	s.quiet("kubectl wait pod/reach -n " + namespace + " --for=condition=Ready --timeout=60s")
	return "kubectl exec -n " + namespace + " reach -- python3 -I -c '" + strings.ReplaceAll(program, "'", `'\''`) + "'"
}

// TestStrangersReachNoFunction: a Pod of another namespace gets to none of the
// ports of chat and execute, nor to the gateway's port for what is
// cluster-local, by which execute is called.
func TestStrangersReachNoFunction(t *testing.T) {
	s := newShell(t)
	if r := parse(t, s.quiet(executeCommand("print(1)"))); r.Stdout != "1\n" {
		t.Fatalf("%+v", r)
	}
	var closed []string
	for _, name := range []string{"chat", "execute"} {
		ips := strings.Fields(s.quiet("kubectl get pods -n " + functions + " -l serving.knative.dev/service=" + name + " -o jsonpath='{.items[*].status.podIP}'"))
		if len(ips) == 0 {
			t.Fatalf("%s has no Pod", name)
		}
		for _, port := range []string{"8012", "8022", "8080", "9090", "9091"} {
			closed = append(closed, ips[0]+"/"+port+"/tcp")
		}
	}
	open := []string{s.quiet("kubectl get service chat-ui -n web-ui -o jsonpath={.spec.clusterIP}") + "/80/tcp"}
	if strings.HasPrefix(s.quiet("kubectl config current-context"), "preheat-") {
		gateway := s.quiet("kubectl get pods -n traefik -l app=traefik -o jsonpath={.items[0].status.podIP}")
		open, closed = append(open, gateway+"/8000/tcp"), append(closed, gateway+"/8001/tcp")
	}
	try := s.stranger("strangers", "app=stranger", fmt.Sprintf(reach, strings.Join(append(open, closed...), " ")))
	s.eventually("the agent that enforces policies knows the Pod", func() bool {
		return strings.Count(s.quiet(try), " reached") == len(open)
	})
	out := s.quiet(try)
	for _, target := range open {
		if !strings.Contains(out, target+" reached") {
			t.Errorf("a stranger did not get to what is open to all:\n%s", out)
		}
	}
	for _, target := range closed {
		if !strings.Contains(out, target+" no:") {
			t.Errorf("a stranger got to %s:\n%s", target, out)
		}
	}
	// Who may call them still does.
	if r := parse(t, s.quiet(executeCommand("print(2)"))); r.Stdout != "2\n" {
		t.Errorf("%+v", r)
	}
}

// TestTheNetworkIsKnownToBeIsolated: the controller has tried it.
func TestTheNetworkIsKnownToBeIsolated(t *testing.T) {
	s := newShell(t)
	s.full(2)
	s.quiet("kubectl wait -n " + sandboxes + " --timeout=80s --for=condition=NetworkIsolated sandboxtemplate/code-sandbox")
}

func TestASandboxHasNoCredentials(t *testing.T) {
	s := newShell(t)
	s.full(2)
	r := parse(t, s.quiet(executeCommand(`
import os
print(os.path.exists("/var/run/secrets"), os.path.exists("/run/secrets"))
print([k for k in os.environ if "KUBERNETES" in k or "TOKEN" in k or "PREHEAT" in k])`)))
	if r.Stdout != "False False\n[]\n" {
		t.Errorf("%+v", r)
	}
}

func TestASandboxHasItsOwnUsers(t *testing.T) {
	s := newShell(t)
	names := s.full(2)
	if got := s.quiet("kubectl get pod -n " + sandboxes + " " + names[0] + " -o jsonpath={.spec.hostUsers}"); got != "false" {
		t.Fatalf("hostUsers is %q", got)
	}
	r := parse(t, s.quiet(executeCommand(`print(open("/proc/self/uid_map").read().split()[:2])`)))
	var first, outside string
	if _, err := fmt.Sscanf(strings.NewReplacer("[", "", "]", "", ",", "", "'", "").Replace(r.Stdout), "%s %s", &first, &outside); err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	if first != "0" || outside == "0" {
		t.Errorf("the user map begins with %s %s", first, outside)
	}
}
