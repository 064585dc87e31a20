package walkthrough

import (
	"bufio"
	"context"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// forward makes a Service reachable on loopback until the test ends, as
// `kubectl port-forward` does, and returns its address.
func (s *shell) forward(namespace, service string) string {
	t := s.t
	t.Helper()
	const command = "kubectl port-forward"
	args := " -n " + namespace + " service/" + service + " :80"
	t.Logf("$ %s%s", command, args)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, "bash", "-c", "exec "+command+args)
	cmd.Env, cmd.Dir = s.env, s.dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it is ended by a signal
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%s%s: %v", command, args, err)
	}
	m := regexp.MustCompile(`from (127\.0\.0\.1:\d+)`).FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("%s%s: %s", command, args, line)
	}
	return "http://" + m[1]
}

// The page stands in a namespace of its own and passes all else on to chat.
func TestChatUI(t *testing.T) {
	s := newShell(t)
	s.env = append(s.env, "URL="+s.forward("web-ui", "chat-ui"))
	if page := s.quiet("curl -s $URL/"); !strings.Contains(page, "<title>") {
		t.Errorf("the page is %q", page)
	}
	if text := s.answer("Write Python code that generates a random excuse for being late to a meeting"); !strings.Contains(text, "```python") {
		t.Errorf("no program in %q", text)
	}
	if r := parse(t, s.run(executeCommand(`print("Hello from a sandbox!")`))); r.Stdout != "Hello from a sandbox!\n" || r.ExitCode != 0 {
		t.Errorf("%+v", r)
	}
	if pools := s.run("curl -s $URL/v1/pools"); !strings.Contains(pools, poolName) {
		t.Errorf("the pools are %s", pools)
	}
	for _, document := range []string{"openapi: 3.1", "asyncapi: 3.0"} {
		kind, _, _ := strings.Cut(document, ":")
		if text := s.quiet("curl -s $URL/" + kind + ".yaml"); !strings.Contains(text, document) {
			t.Errorf("/%s.yaml is %.200s", kind, text)
		}
	}
	// Which model answers is for the chat behind it to say.
	if status := s.run("curl -s $URL/v1/chat/status"); !strings.Contains(status, `"demo":true`) {
		t.Errorf("the status is %s", status)
	}
	if services := s.run("curl -s $URL/v1/services"); strings.Count(services, `"ready":true`) != 2 {
		t.Errorf("the services are %s", services)
	}
}

// The same in a browser: a run shows its output while the pool changes, and the
// Knative Services are shown.
func TestThePage(t *testing.T) {
	s := newShell(t)
	s.full(2)
	s.env = append(s.env, "PREHEAT_URL="+s.forward("web-ui", "chat-ui"))
	s.run("cd tests/browser && { test -d node_modules || npm ci --no-audit --no-fund; } && node --test --test-concurrency=1 cluster.js")
	s.full(2)
}
