package walkthrough

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// executeCommand is the command by which a user runs a program.
func executeCommand(code string) string {
	var body strings.Builder
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	if err := e.Encode(struct {
		Language string `json:"language"`
		Code     string `json:"code"`
	}{"python", code}); err != nil {
		panic(err) // strings can be encoded
	}
	return `curl -s $URL/v1/sandbox/execute -H 'Content-Type: application/json' -d '` + strings.ReplaceAll(strings.TrimSpace(body.String()), "'", `'\''`) + `'`
}

// ask is the command by which a user asks the model.
func ask(question string) string {
	return `curl -sN $URL/v1/chat/completions -H 'Content-Type: application/json' -d '{"stream":true,"messages":[{"role":"user","content":"` + question + `"}]}'`
}

// answer asks the model, joins the pieces of its streamed answer, checks that it
// is complete, and prints it.
func (s *shell) answer(question string) string {
	t := s.t
	t.Helper()
	t.Logf("$ %s", ask(question))
	stream := s.quiet(ask(question))
	var text strings.Builder
	chunks := 0
	for line := range strings.Lines(stream) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			t.Fatalf("a chunk is not JSON: %v: %s", err, data)
		}
		for _, c := range chunk.Choices {
			text.WriteString(c.Delta.Content)
		}
		chunks++
	}
	if !strings.Contains(stream, "data: [DONE]") {
		t.Fatalf("the answer has no end: %.2000s", stream)
	}
	if chunks < 3 {
		t.Fatalf("the answer came in %d pieces: it did not stream", chunks)
	}
	t.Logf("%s", text.String())
	return text.String()
}

// result are the fields of a result that existing users read.
type result struct {
	Stdout      string  `json:"stdout"`
	Stderr      string  `json:"stderr"`
	ExitCode    int     `json:"exit_code"`
	SandboxName string  `json:"sandbox_name"`
	Status      string  `json:"status"`
	Signal      *string `json:"signal"`
}

func parse(t *testing.T, out string) result {
	t.Helper()
	var r result
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("the answer is not JSON: %v: %s", err, out)
	}
	return r
}

func TestWalkthrough(t *testing.T) {
	s := newShell(t)
	t.Logf("URL=%s", s.quiet("echo $URL"))

	// Two sandboxes are warm, and their names say where they belong.
	before := s.full(2)
	s.run("kubectl get pods -n " + sandboxes)
	for _, name := range before {
		if !regexp.MustCompile(`^` + poolName + `-[a-z0-9]+$`).MatchString(name) {
			t.Errorf("a sandbox is named %s", name)
		}
	}
	// The pool's counts follow its sandboxes within a second.
	s.quiet("kubectl wait sandboxwarmpool/" + poolName + " -n " + sandboxes + " --for=jsonpath={.status.readyReplicas}=2 --timeout=30s")
	lines := strings.Split(s.run("kubectl get sandboxwarmpool -n "+sandboxes), "\n")
	if got := strings.Fields(lines[0]); !slices.Equal(got, []string{"NAME", "READY", "AGE"}) {
		t.Errorf("the columns are %v", got)
	}
	if got := strings.Fields(lines[1]); got[0] != poolName || got[1] != "2" {
		t.Errorf("the pool's line is %v", got)
	}

	// Talk touches no sandbox.
	if text := s.answer("Hi, how are you?"); strings.Contains(text, "```") || text == "" {
		t.Errorf("small talk was answered with %q", text)
	}
	if after := s.warm(); !slices.Equal(before, after) {
		t.Errorf("talk changed the pool from %v to %v", before, after)
	}

	// The answer to a wish for code carries a program, which runs.
	text := s.answer("Write Python code that generates a random excuse for being late to a meeting")
	block := regexp.MustCompile("(?s)```python\n(.*?)```").FindStringSubmatch(text)
	if block == nil {
		t.Fatalf("no Python block in %q", text)
	}
	if r := parse(t, s.run(executeCommand(block[1]))); r.ExitCode != 0 || r.Stdout == "" {
		t.Errorf("the excuse: %+v", r)
	}

	before = s.full(2)
	r := parse(t, s.run(executeCommand(`print("Hello from a sandbox!")`)))
	after := s.run("kubectl get pods -n " + sandboxes)
	if r.Stdout != "Hello from a sandbox!\n" || r.Stderr != "" || r.ExitCode != 0 || r.Status != "succeeded" {
		t.Errorf("the result is %+v", r)
	}
	if !slices.Contains(before, r.SandboxName) {
		t.Errorf("the sandbox %s was not one of the warm %v", r.SandboxName, before)
	}
	if strings.Contains(after, r.SandboxName+" ") && !regexp.MustCompile(regexp.QuoteMeta(r.SandboxName)+` .*(Terminating|Completed)`).MatchString(after) {
		t.Errorf("the used sandbox is still there:\n%s", after)
	}
	// A new one comes, and the used one never returns.
	if now := s.full(2); slices.Contains(now, r.SandboxName) {
		t.Errorf("the used sandbox %s is warm again", r.SandboxName)
	}

	// Nothing carries over.
	parse(t, s.run(executeCommand(`open("/tmp/left", "w").write("x"); open("left", "w").write("x")`)))
	left := parse(t, s.run(executeCommand(`import os; print(os.path.exists("/tmp/left"), os.path.exists("left"))`)))
	if left.Stdout != "False False\n" {
		t.Errorf("files of another run: %s", left.Stdout)
	}
}
