// Package cli_test runs the command line against a running server.
package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/cli"
	"github.com/preheat-dev/preheat/tests/product"
)

const patience = time.Minute

var shared *product.Product

func TestMain(m *testing.M) { os.Exit(product.Main(m, &shared)) }

// ran is what a command left.
type ran struct {
	code     int
	out, err string
}

func run(t *testing.T, stdin string, args ...string) ran {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, err bytes.Buffer
	code := cli.Run(ctx, args, cli.Streams{In: strings.NewReader(stdin), Out: &out, Err: &err}, shared.URL)
	return ran{code, out.String(), err.String()}
}

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRun(t *testing.T) {
	py := func(code string) string { return file(t, "program.py", code) }
	for name, test := range map[string]struct {
		stdin string
		args  []string
		want  ran
		// says is a part of what stands on standard error, if it is not want's.
		says string
	}{
		"streams and code":   {args: []string{"run", py("import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.exit(3)")}, want: ran{3, "out\n", "err\n"}},
		"bytes":              {args: []string{"run", py("import os\nos.write(1, b'\\xff\\x00')")}, want: ran{0, "\xff\x00", ""}},
		"from stdin":         {stdin: "print(6 * 7)", args: []string{"run", "-"}, want: ran{0, "42\n", ""}},
		"by extension":       {args: []string{"run", file(t, "p.sh", "echo $BASH_VERSION | cut -c1-1; echo $0 | wc -l")}, want: ran{0, "5\n1\n", ""}},
		"named language":     {stdin: "console.log(1)", args: []string{"run", "--language", "javascript", "-"}, want: ran{0, "1\n", ""}},
		"arguments and env":  {args: []string{"run", "-e", "A=b=c", py("import sys, os\nprint(sys.argv[1:], os.environ['A'])"), "--json", "x y"}, want: ran{0, "['--json', 'x y'] b=c\n", ""}},
		"input":              {stdin: "in", args: []string{"run", "--stdin", py("print(input())")}, want: ran{0, "in\n", ""}},
		"files":              {args: []string{"run", "-f", "d/x=" + file(t, "x", "one"), py("print(open('d/x').read())")}, want: ran{0, "one\n", ""}},
		"time limit":         {args: []string{"run", "--timeout", "1s", py("import time\ntime.sleep(60)")}, want: ran{code: 137}, says: "time limit"},
		"memory":             {args: []string{"run", py("x = []\nwhile True: x.append(bytearray(1 << 20))")}, want: ran{code: 137}, says: "memory"},
		"signal":             {args: []string{"run", py("import os\nos.abort()")}, want: ran{code: 134}, says: "SIGABRT"},
		"unknown extension":  {args: []string{"run", file(t, "p.cob", "x")}, want: ran{code: 125}, says: "--language"},
		"no such file":       {args: []string{"run", "/nonexistent.py"}, want: ran{code: 125}, says: "nonexistent"},
		"what server says":   {stdin: " ", args: []string{"run", "-"}, want: ran{code: 125}, says: "code: The program is empty."},
		"server that is not": {stdin: "1", args: []string{"run", "--server", "http://127.0.0.1:1", "-"}, want: ran{code: 125}, says: "refused"},
		"no URL":             {stdin: "1", args: []string{"run", "--server", "here", "-"}, want: ran{code: 125}, says: "--server"},
		"unknown command":    {args: []string{"rum"}, want: ran{code: 125}, says: "unknown command"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, test.stdin, test.args...)
			if test.says != "" {
				if !strings.Contains(got.err, test.says) {
					t.Errorf("it says %q", got.err)
				}
				got.err = ""
			}
			if got != test.want {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestRunKeepsFilesAndFigures(t *testing.T) {
	program := file(t, "p.py", "import os, matplotlib.pyplot as plt\nos.mkdir('d')\nf = open('d/a.bin', 'wb')\nn = f.write(b'\\xff')\nf.close()\nplt.plot([1, 2])\nplt.show()")
	folder := filepath.Join(t.TempDir(), "kept")
	if got := run(t, "", "run", "--output", folder, program); got != (ran{}) {
		t.Errorf("got %+v", got)
	}
	if content, err := os.ReadFile(filepath.Join(folder, "d/a.bin")); string(content) != "\xff" {
		t.Errorf("%q, %v", content, err)
	}
	if content, err := os.ReadFile(filepath.Join(folder, "figure-1.png")); !bytes.HasPrefix(content, []byte("\x89PNG")) {
		t.Errorf("%d bytes, %v", len(content), err)
	}
	if got := run(t, "", "run", program); got.code != 0 || !strings.Contains(got.err, "showed figures") {
		t.Errorf("got %+v", got)
	}
}

func TestRunPrintsJSON(t *testing.T) {
	got := run(t, "print(1)\nraise SystemExit(4)", "run", "--json", "-")
	var result execution.Result
	if err := json.Unmarshal([]byte(got.out), &result); err != nil || got.code != 4 || result.ExitCode != 4 || result.Stdout != "1\n" {
		t.Errorf("%v: %+v", err, got)
	}
}

func TestPools(t *testing.T) {
	got := run(t, "", "pools")
	if lines := strings.Split(got.out, "\n"); got.code != 0 || !strings.HasPrefix(lines[0], "NAME") || !strings.Contains(got.out, "python,bash") {
		t.Errorf("got %+v", got)
	}
	var pools []execution.PoolStatus
	if got := run(t, "", "pools", "--json"); json.Unmarshal([]byte(got.out), &pools) != nil || len(pools) != 2 {
		t.Errorf("got %+v", got)
	}
}

func claimed(t *testing.T) (n int) {
	var list struct{ Pools []execution.PoolStatus }
	shared.Get(t, "/v1/pools", &list)
	for _, p := range list.Pools {
		n += p.Claimed
	}
	return n
}

// preheat is the built program with a command.
func preheat(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(product.Root(t), "build/bin/preheat"), args...)
	cmd.Env = append(os.Environ(), "PREHEAT_URL="+shared.URL)
	return cmd
}

// The built program runs programs as well as it serves, and an interrupt ends
// what it runs.
func TestInterrupt(t *testing.T) {
	cmd := preheat(t, "run", "--timeout", "300s", file(t, "p.py", "import time\nprint('runs', flush=True)\ntime.sleep(300)"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if n, err := out.Read(make([]byte, 5)); n == 0 {
		t.Error(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d", code)
	}
	product.Eventually(t, patience, "the program ended", func() bool { return claimed(t) == 0 })
}

// preheat mcp speaks the protocol on stdin and stdout, with progress and
// cancellation, and ends with its input.
func TestMCPOnStdio(t *testing.T) {
	runs := make(chan struct{}, 16)
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			if strings.Contains(r.Params.Message, "runs\n") {
				runs <- struct{}{}
			}
		},
	})
	cmd := preheat(t, "mcp")
	session, err := c.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_code", Arguments: execution.Request{Language: "python", Code: "print(6 * 7)"}})
	if err != nil || result.IsError || result.Content[0].(*mcp.TextContent).Text != "42\n" {
		t.Errorf("%v: %+v", err, result)
	}
	ctx, cancel := context.WithCancel(t.Context())
	params := &mcp.CallToolParams{Name: "run_code", Arguments: execution.Request{
		Language: "bash", Code: "echo runs; sleep 300", Limits: execution.Limits{TimeoutSeconds: 300},
	}}
	params.SetProgressToken("1")
	ended := make(chan error, 1)
	go func() {
		_, err := session.CallTool(ctx, params)
		ended <- err
	}()
	<-runs
	cancel()
	if err := <-ended; err == nil {
		t.Error("a cancelled call has a result")
	}
	product.Eventually(t, patience, "the program ended", func() bool { return claimed(t) == 0 })
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
