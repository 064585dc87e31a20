package contract

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/openapi"
)

// ran is a program and how it ends.
type ran struct {
	request execution.Request
	status  execution.Status
	code    int
	// events are the names of a stream's events, without repetitions.
	events string
	// holds looks at what is special in the result.
	holds func(execution.Result) bool
}

func python(code string) execution.Request { return execution.Request{Language: "python", Code: code} }

func limited(r execution.Request, l execution.Limits) execution.Request {
	r.Limits = l
	return r
}

func programs() map[string]ran {
	const binary = `import os; n = os.write(1, bytes(range(256)))`
	return map[string]ran{
		"nothing":   {python("pass"), execution.StatusSucceeded, 0, "start exit", func(r execution.Result) bool { return r.Stdout+r.Stderr == "" }},
		"both":      {python("import sys, time; print(1, flush=True); time.sleep(.1); print(2, file=sys.stderr)"), execution.StatusSucceeded, 0, "start stdout stderr exit", func(r execution.Result) bool { return r.Stdout == "1\n" && r.Stderr == "2\n" }},
		"exit code": {python("exit(3)"), execution.StatusFailed, 3, "start exit", nil},
		"exception": {python("1/0"), execution.StatusFailed, 1, "start stderr exit", func(r execution.Result) bool { return strings.Contains(r.Stderr, "ZeroDivisionError") }},
		"signal":    {python("import os; os.kill(os.getpid(), 11)"), execution.StatusFailed, 139, "start exit", func(r execution.Result) bool { return r.Signal != nil && *r.Signal == "SIGSEGV" }},
		"timeout": {
			limited(python("print(1, flush=True)\nwhile True: pass"), execution.Limits{TimeoutSeconds: 0.5}),
			execution.StatusTimedOut, 137, "start stdout exit", func(r execution.Result) bool { return r.Stdout == "1\n" },
		},
		"truncated": {
			limited(python("print('a' * 100000 + 'END')"), execution.Limits{OutputBytes: 1000}),
			execution.StatusSucceeded, 0, "start stdout exit", func(r execution.Result) bool {
				return r.Truncated.Stdout.Truncated && r.Truncated.Stdout.TotalBytes == 100004 && strings.HasSuffix(r.Stdout, "END\n")
			},
		},
		"output limit": {
			limited(python("while True: print(1)"), execution.Limits{OutputBytes: 1000, TotalOutputBytes: 2000}),
			execution.StatusOutputLimit, 137, "start stdout exit", nil,
		},
		"memory": {
			limited(python("x = []\nwhile True: x.append(bytearray(1 << 20))"), execution.Limits{MemoryBytes: 96 << 20}),
			execution.StatusOutOfMemory, 137, "start exit", func(r execution.Result) bool { return r.Usage.OOMKills > 0 },
		},
		"bytes": {python(binary), execution.StatusSucceeded, 0, "start stdout exit", func(r execution.Result) bool { return r.StdoutBase64 != nil && r.StderrBase64 == nil }},
		"figure": {
			python("import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()"), execution.StatusSucceeded, 0, "start result exit",
			func(r execution.Result) bool { return len(r.Results) == 1 && r.Results[0].MIME == "image/png" },
		},
		"artifacts": {
			python("import os\nos.mkdir('out'); open('out/a.csv', 'w').write('a,b'); open('b.png', 'wb').write(b'\\x89PNG'); os.symlink('/etc/passwd', 'x')"),
			execution.StatusSucceeded, 0, "start artifact exit", func(r execution.Result) bool { return len(r.Artifacts) == 3 && r.Artifacts[2].Omitted != "" },
		},
		"everything in": {
			execution.Request{
				Language: "bash", Code: `cat in/a.txt -; echo "$A" "$@"`, Stdin: "stdin ", Args: []string{"x y", ""}, Env: map[string]string{"A": "é'"},
				Files: []execution.File{{Path: "in/a.txt", Content: "ZmlsZSA=", Encoding: "base64"}}, Limits: execution.Limits{TimeoutSeconds: 9}, Pool: "python",
			},
			execution.StatusSucceeded, 0, "start stdout exit", func(r execution.Result) bool { return r.Stdout == "file stdin é' x y \n" },
		},
		"javascript": {execution.Request{Language: "js", Code: "console.error(1); process.exit(4)"}, execution.StatusFailed, 4, "start stderr exit", nil},
	}
}

func TestResults(t *testing.T) {
	t.Parallel()
	for name, run := range programs() {
		t.Run(name, func(t *testing.T) {
			body, err := json.Marshal(run.request)
			if err != nil {
				t.Fatal(err)
			}
			_, got := post(t, shared, 200, pathExecute, string(body))
			var r execution.Result
			if err := json.Unmarshal(got, &r); err != nil {
				t.Fatal(err)
			}
			if r.Status != run.status || r.ExitCode != run.code || run.holds != nil && !run.holds(r) {
				t.Errorf("%.2000s", got)
			}
			_, got = post(t, shared, 200, pathExecute, string(body), accept, execution.MediaSSE)
			checkStream(t, run, got)
		})
	}
}

// checkStream checks what the schemas of single events cannot say.
func checkStream(t *testing.T, run ran, body []byte) {
	t.Helper()
	events, err := openapi.ParseEvents(body)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range events {
		if e.Name != execution.EventPing && (len(names) == 0 || names[len(names)-1] != e.Name) {
			names = append(names, e.Name)
		}
	}
	if got := strings.Join(names, " "); got != run.events {
		t.Errorf("events %s instead of %s", got, run.events)
	}
	last := events[len(events)-1]
	var exit execution.Exit
	if err := json.Unmarshal([]byte(last.Data), &exit); err != nil {
		t.Fatal(err)
	}
	if exit.Status != run.status || exit.ExitCode == nil || *exit.ExitCode != run.code {
		t.Errorf("exit %s", last.Data)
	}
}
