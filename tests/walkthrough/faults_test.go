package walkthrough

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// withCode adds the HTTP status to what curl prints.
func withCode(command string) string { return command + ` -w '\n%{http_code}'` }

// split takes the HTTP status off.
func split(t *testing.T, out string) (body string, code int) {
	t.Helper()
	body, code, ok := cutCode(out)
	if !ok {
		t.Fatalf("no status in %q", out)
	}
	return body, code
}

func cutCode(out string) (body string, code int, ok bool) {
	i := strings.LastIndexByte(out, '\n')
	code, err := strconv.Atoi(out[i+1:])
	return strings.TrimSpace(out[:max(i, 0)]), code, err == nil
}

// I12: without a controller, what is warm is used up, and nothing else fails.
func TestTheControllerIsDown(t *testing.T) {
	s := newShell(t)
	s.full(2)
	const scale = "kubectl scale deployment preheat-controller -n " + system + " --replicas="
	t.Cleanup(func() {
		_, _ = s.tryCleanup(scale + "2 && kubectl rollout status deployment/preheat-controller -n " + system)
	})
	s.run(scale + "0")
	s.quiet("kubectl wait --for=delete pod -l app.kubernetes.io/name=preheat-controller -n " + system + " --timeout=60s")
	for range 2 {
		if r := parse(t, s.run(executeCommand(`print("warm")`))); r.Stdout != "warm\n" || r.ExitCode != 0 {
			t.Errorf("with a warm sandbox left: %+v", r)
		}
	}
	body, code := split(t, s.run(withCode(executeCommand(`print("cold")`))))
	if code != 429 {
		t.Errorf("with an empty pool: status %d, %s", code, body)
	}
	s.run(scale + "2")
	s.eventually("executions go on", func() bool {
		_, code := split(t, s.quiet(withCode(executeCommand(`print("again")`))))
		return code == 200
	})
	s.full(2)
}

// I6: a sandbox that is killed is not a program that ended.
func TestTheSandboxIsKilled(t *testing.T) {
	s := newShell(t)
	names := s.full(2)
	type answer struct {
		out string
		err error
	}
	done := make(chan answer, 1)
	go func() {
		out, err := s.try(withCode(executeCommand("import time; print('begun', flush=True); time.sleep(60)")))
		done <- answer{out, err}
	}()
	var claimed string
	s.eventually("a sandbox is claimed", func() bool {
		claimed = s.quiet("kubectl get pods -n " + sandboxes + " -l sandbox.preheat.dev/state=claimed -o jsonpath='{.items[?(@.status.phase==\"Running\")].metadata.name}'")
		return claimed == names[0] || claimed == names[1]
	})
	began := time.Now()
	s.run("kubectl delete pod " + claimed + " -n " + sandboxes + " --grace-period=0 --force")
	a := <-done
	if a.err != nil {
		t.Fatal(a.err)
	}
	t.Logf("answered %s after the kill: %s", time.Since(began).Round(time.Millisecond), a.out)
	body, code := split(t, a.out)
	var problem struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal([]byte(body), &problem); err != nil {
		t.Fatalf("the answer is not JSON: %v: %s", err, body)
	}
	if code < 500 || problem.Type == "" {
		t.Errorf("status %d: %s", code, body)
	}
}

func TestTheSandboxRunsOutOfMemory(t *testing.T) {
	s := newShell(t)
	s.full(2)
	body, code := split(t, s.quiet(withCode(executeCommand("print('begun', flush=True)\nx = []\nwhile True: x.append(bytearray(16 << 20))"))))
	if code != 200 {
		t.Fatalf("status %d: %s", code, body)
	}
	if r := parse(t, body); r.Status != "out_of_memory" || r.ExitCode == 0 || r.Stdout != "begun\n" {
		t.Errorf("%+v", r)
	}
}

// client runs a program again and again until it gets a sandbox, and says which,
// and how often it was refused.
func (s *shell) client(i int) (sandbox string, refusals int, err error) {
	for {
		out, err := s.try(withCode(executeCommand(fmt.Sprintf("print(%d)", i))))
		if err != nil {
			return "", refusals, err
		}
		body, code, ok := cutCode(out)
		if ok && code == 429 {
			refusals++
			continue
		}
		var r result
		if err := json.Unmarshal([]byte(body), &r); err != nil || code != 200 || r.Stdout != fmt.Sprintln(i) {
			return "", refusals, fmt.Errorf("client %d: status %d: %s", i, code, body)
		}
		return r.SandboxName, refusals, nil
	}
}

func TestFiftyClientsDrainThePool(t *testing.T) {
	s := newShell(t)
	s.full(2)
	const clients = 50
	var all sync.WaitGroup
	var mu sync.Mutex
	used, refused := map[string]int{}, 0
	for i := range clients {
		all.Go(func() {
			sandbox, refusals, err := s.client(i)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			used[sandbox]++
			refused += refusals
		})
	}
	all.Wait()
	t.Logf("%d sandboxes for %d clients, %d refusals on the way", len(used), clients, refused)
	if len(used) != clients {
		t.Errorf("%d sandboxes for %d clients", len(used), clients)
	}
	s.full(2)
}

// zero makes execute scale down at once, until the test ends, and waits until it
// has. Pods that end take their time, for what may still come to them.
func (s *shell) zero() {
	s.t.Helper()
	patch := func(retention, window string) string {
		return `kubectl patch ksvc execute -n ` + functions + ` --type=merge -p '{"spec":{"template":{"metadata":{"annotations":{"autoscaling.knative.dev/scale-to-zero-pod-retention-period":"` + retention + `","autoscaling.knative.dev/window":` + window + `}}}}}'`
	}
	s.t.Cleanup(func() { _, _ = s.tryCleanup(patch("5m", "null") + " && " + executeIsReady) })
	s.run(patch("0s", `"6s"`))
	s.quiet(executeIsReady)
	s.eventually("execute is at zero", s.atZero)
}

const executeIsReady = "kubectl wait ksvc/execute -n " + functions + " --for=condition=Ready --timeout=80s"

func (s *shell) atZero() bool {
	replicas := s.quiet("kubectl get deployments -n " + functions + " -l serving.knative.dev/service=execute -o jsonpath='{.items[*].spec.replicas}'")
	return strings.Trim(replicas, "0 ") == ""
}

// setEnv sets a variable of execute until the test ends.
func (s *shell) setEnv(name, value string) {
	s.t.Helper()
	const patch = "kubectl patch ksvc execute -n " + functions + " --type=json -p "
	const env = "/spec/template/spec/containers/0/env/"
	at := len(strings.Fields(s.quiet("kubectl get ksvc execute -n " + functions + " -o jsonpath='{.spec.template.spec.containers[0].env[*].name}'")))
	s.t.Cleanup(func() {
		_, _ = s.tryCleanup(fmt.Sprintf(`%s'[{"op":"test","path":"%s%d/name","value":"%s"},{"op":"remove","path":"%s%d"}]' && %s`, patch, env, at, name, env, at, executeIsReady))
	})
	s.run(fmt.Sprintf(`%s'[{"op":"add","path":"%s-","value":{"name":"%s","value":"%s"}}]'`, patch, env, name, value))
	s.quiet(executeIsReady)
}

func TestExecuteScalesToZeroAndBack(t *testing.T) {
	s := newShell(t)
	s.zero()
	s.full(2)
	began := time.Now()
	if r := parse(t, s.run(executeCommand(`print("from zero")`))); r.Stdout != "from zero\n" {
		t.Errorf("%+v", r)
	}
	t.Logf("from zero to the output in %s", time.Since(began).Round(time.Millisecond))
	s.eventually("execute is at zero again", s.atZero)
}
