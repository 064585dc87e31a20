package output

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

// randomPrograms is how many programs of random writes are tried; `make orders`
// tries 10,000.
func randomPrograms(t *testing.T) int {
	if n := os.Getenv("ORDERS"); n != "" {
		count, err := strconv.Atoi(n)
		if err != nil {
			t.Fatalf("ORDERS: %v", err)
		}
		return count
	}
	return 120
}

// wayToWrite is a statement that writes %s to a stream, or displays it, and
// is done when the next one begins.
type wayToWrite struct{ event, code string }

func waysToWrite() map[string][]wayToWrite {
	const out, err, result = execution.EventStdout, execution.EventStderr, execution.EventResult
	return map[string][]wayToWrite{
		"python": {
			{out, `print("%s")`}, {out, `print("%s", end="")`}, {out, `print("%s", end=" ", flush=True)`},
			{out, `sys.stdout.write("%s\n")`}, {out, `os.write(1, b"%s")`}, {out, `sys.stdout.buffer.write(b"%s\n")`},
			{err, `print("%s", file=sys.stderr)`}, {err, `sys.stderr.write("%s\n")`}, {err, `os.write(2, b"%s\n")`},
			{result, `display("%s")`}, {result, `display("%s"); sys.stdout.flush()`},
			{out, `subprocess.run(["echo", "%s"])`}, {err, `os.system("echo '%s' >&2")`},
			{out, `child(lambda: print("%s"))`}, {err, `child(lambda: os.write(2, b"%s"))`}, {result, `child(lambda: display("%s"))`},
			{out, `thread(lambda: print("%s"))`}, {result, `thread(lambda: display("%s"))`},
			{out, "for _ in range(300): print('.' * 10)\nprint('%s')"},
		},
		"bash": {
			{out, "echo '%s'"}, {out, "printf '%s'"}, {out, "/bin/echo '%s'"}, {out, "(echo '%s') | cat"},
			{err, "echo '%s' >&2"}, {err, "/bin/echo '%s' >&2"}, {err, "(printf '%s' & wait) >&2"},
		},
		"javascript": {
			{out, "console.log('%s');"}, {out, "process.stdout.write('%s');"}, {out, "fs.writeSync(1, '%s');"},
			{err, "console.error('%s');"}, {err, "process.stderr.write('%s');"}, {err, "fs.writeSync(2, '%s');"},
			{out, "cp.execFileSync('echo', ['%s'], {stdio: 'inherit'});"},
		},
	}
}

func prologue(language string) string {
	switch language {
	case "python":
		return `import os, subprocess, sys, threading
def child(call):
    pid = os.fork()
    if pid == 0:
        call(); sys.stdout.flush(); os._exit(0)
    os.waitpid(pid, 0)
def thread(call):
    t = threading.Thread(target=call); t.start(); t.join()
`
	case "javascript":
		return "const fs = require('fs'), cp = require('child_process');\n"
	}
	return ""
}

// TestO7RandomWrites: what programs write, display and have written by children
// arrives in the order in which they did it, whichever way they took.
func TestO7RandomWrites(t *testing.T) {
	ways := waysToWrite()
	count, workers := randomPrograms(t), 3
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for seed := w; seed < count && !t.Failed(); seed += workers {
				rng := rand.New(rand.NewPCG(uint64(seed), 7))
				language := []string{"python", "python", "python", "bash", "javascript"}[rng.IntN(5)]
				checkOrder(t, rng, seed, language, ways[language])
			}
		})
	}
	wg.Wait()
}

// checkOrder runs one program whose n-th statement writes <n>.
func checkOrder(t *testing.T, rng *rand.Rand, seed int, language string, ways []wayToWrite) {
	var code strings.Builder
	code.WriteString(prologue(language))
	var want []string
	for n := range 4 + rng.IntN(24) {
		way := ways[rng.IntN(len(ways))]
		mark := fmt.Sprintf("<%d>", n)
		fmt.Fprintf(&code, way.code+"\n", mark)
		want = append(want, way.event+mark)
	}
	if language == "python" {
		code.WriteString("None\n") // no value is displayed
	}
	events := shared.Stream(t, execution.Request{Language: language, Code: code.String()})
	var got []string
	for _, e := range events {
		for _, mark := range marks(t, e) {
			got = append(got, e.Name+mark)
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("program %d in %s:\n%s\narrived as\n%q, not as\n%q", seed, language, code.String(), got, want)
	}
}

// marks are the marks in an event's data.
func marks(t *testing.T, e product.Event) (all []string) {
	var text string
	switch e.Name {
	case execution.EventStdout, execution.EventStderr:
		text = product.Decode[execution.Output](t, e).Data
	case execution.EventResult:
		text = product.Decode[execution.RichResult](t, e).Data
	}
	for {
		_, after, ok := strings.Cut(text, "<")
		if !ok {
			return all
		}
		mark, rest, _ := strings.Cut(after, ">")
		all, text = append(all, "<"+mark+">"), rest
	}
}

// TestO7PositionOfResults: in a result, too, one sees where a value was shown.
func TestO7PositionOfResults(t *testing.T) {
	t.Parallel()
	r := shared.Execute(t, python("print('é')\ndisplay(1)\nprint('b', end='')\ndisplay(2)\nprint('c')\n3"))
	product.Equal(t, "stdout", r.Stdout, "é\nbc\n")
	if len(r.Results) != 3 {
		t.Fatalf("the results are %+v", r.Results)
	}
	for i, at := range []int64{3, 4, 6} {
		product.Equal(t, fmt.Sprintf("position %d", i), r.Results[i].Position, at)
	}
}

// TestO11WholeLines: the lines of threads that print at the same time stay whole.
func TestO11WholeLines(t *testing.T) {
	t.Parallel()
	r := shared.Execute(t, python(`import threading, time
def work(n):
    for i in range(200):
        print("thread", n, "line", i)
        time.sleep(0.0005)
threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
[t.start() for t in threads]; [t.join() for t in threads]`))
	lines := strings.Split(strings.TrimSuffix(r.Stdout, "\n"), "\n")
	product.Equal(t, "lines", len(lines), 1200)
	for _, line := range lines {
		var n, i int
		if _, err := fmt.Sscanf(line, "thread %d line %d", &n, &i); err != nil || line != fmt.Sprintf("thread %d line %d", n, i) {
			t.Errorf("a line is %q", line)
		}
	}
}

// TestO11LineThatGrows: an unfinished line comes while the program goes on.
func TestO11LineThatGrows(t *testing.T) {
	t.Parallel()
	events := shared.Stream(t, python("import time\nfor _ in range(5):\n    print('.', end='')\n    time.sleep(0.05)"))
	pieces := 0
	for _, e := range events {
		if e.Name == execution.EventStdout {
			pieces++
		}
	}
	if pieces < 3 {
		t.Errorf("five dots came in %d piece(s)", pieces)
	}
}

// TestO11WrittenBeforeTheEnd: what was printed is there however the program ends,
// also when it printed a lot.
func TestO11WrittenBeforeTheEnd(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"os.kill(os.getpid(), 9)", "os._exit(3)", "os.abort()", "os.execvp('true', ['true'])", "signal.pthread_kill(threading.get_ident(), 9)"} {
		for _, lines := range []int{1, 5000} {
			t.Run(fmt.Sprintf("%s after %d lines", end, lines), func(t *testing.T) {
				t.Parallel()
				r := shared.Execute(t, python(fmt.Sprintf("import os, signal, threading\nfor i in range(%d): print(i)\nprint('last')\n%s", lines, end)))
				product.Equal(t, "lines", strings.Count(r.Stdout, "\n"), lines+1)
				if !strings.HasSuffix(r.Stdout, "last\n") {
					t.Errorf("stdout ends in %q", r.Stdout[max(0, len(r.Stdout)-20):])
				}
			})
		}
	}
}

// TestO11UnbufferedByRequest: PYTHONUNBUFFERED does what it does to Python.
func TestO11UnbufferedByRequest(t *testing.T) {
	t.Parallel()
	r := shared.Execute(t, execution.Request{Language: "python", Code: "import sys; print(sys.stdout.write_through, type(sys.stdout.buffer).__name__)", Env: map[string]string{"PYTHONUNBUFFERED": "1"}})
	product.Equal(t, "stdout", r.Stdout, "True FileIO\n")
}
