package walkthrough

import (
	"strings"
	"testing"
)

const gvisorPool = "gvisor-pool"

// inPool is executeCommand for a pool.
func inPool(pool, code string) string {
	return strings.Replace(executeCommand(code), `{"language"`, `{"pool":"`+pool+`","language"`, 1)
}

// TestAPoolOfGVisor: a pool whose sandboxes have a kernel of their own stands beside
// the pool of runc, and a request chooses by its name.
func TestAPoolOfGVisor(t *testing.T) {
	s := newShell(t)
	s.run("kubectl get runtimeclass gvisor")
	image := s.quiet("kubectl get sandboxtemplate code-sandbox -n " + sandboxes + " -o jsonpath={.spec.podTemplate.spec.containers[0].image}")
	t.Cleanup(func() { _, _ = s.tryCleanup("kubectl delete -f config/examples/gvisor.yaml") })
	s.run("sed 's|image: preheat/sandbox$|image: " + image + "|' config/examples/gvisor.yaml | kubectl apply -f -")
	s.run("kubectl wait sandboxwarmpool/" + gvisorPool + " -n " + sandboxes + " --for=jsonpath={.status.readyReplicas}=2 --timeout=60s")

	const kernel = "import platform; print(platform.release())"
	r := parse(t, s.run(inPool(gvisorPool, kernel)))
	if r.Status != "succeeded" || !strings.Contains(r.Stdout, "gvisor") || !strings.HasPrefix(r.SandboxName, gvisorPool+"-") {
		t.Errorf("in the pool of gVisor: %+v", r)
	}
	r = parse(t, s.run(inPool(poolName, kernel)))
	if r.Status != "succeeded" || strings.Contains(r.Stdout, "gvisor") {
		t.Errorf("in the usual pool: %+v", r)
	}
	// The network's rules hold for its Pods, too.
	r = parse(t, s.run(inPool(gvisorPool, "import socket\nfor a in (('10.96.0.1', 443), ('10.96.0.10', 53)):\n    try: socket.create_connection(a, 2); print(a)\n    except OSError: pass")))
	if r.Status != "succeeded" || r.Stdout != "" {
		t.Errorf("a sandbox of gVisor reaches something: %+v", r)
	}
	hardened := s.run("kubectl get sandboxtemplate gvisor-sandbox -n " + sandboxes + ` -o jsonpath='{.status.conditions[?(@.type=="Hardened")].message}'`)
	if !strings.Contains(hardened, "HostUsers") {
		t.Errorf("the template does not say what it sets aside: %s", hardened)
	}
}
