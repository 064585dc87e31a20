package runner

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/runner/wire"
)

// yield is what a run yields.
type yield struct {
	output    [2]string
	skipped   [2]int64
	artifacts []execution.Artifact
	// on is called for each piece of output.
	on func()
}

func (y *yield) Started() {}
func (y *yield) Output(s execution.Stream, data []byte, skipped int64) {
	y.output[s] += string(data)
	y.skipped[s] += skipped
	if y.on != nil {
		y.on()
	}
}
func (y *yield) Result(execution.RichResult)   {}
func (y *yield) Artifact(a execution.Artifact) { y.artifacts = append(y.artifacts, a) }
func (y *yield) artifact(path string) (s string) {
	i := slices.IndexFunc(y.artifacts, func(a execution.Artifact) bool { return a.Path == path })
	if i < 0 {
		return "none"
	}
	return y.artifacts[i].Content
}

// limits are more than the programs of tests need.
var limits = wire.Limits{
	Timeout: time.Minute, Output: 1 << 20, TotalOutput: 1 << 26, Artifacts: 10, ArtifactBytes: 1 << 20, Results: 10, ResultBytes: 1 << 20,
}

func shell(code string) wire.Run {
	return wire.Run{Language: "bash", Code: []byte(code), Limits: limits}
}

// sandbox is a runner, as process 1, in an empty folder.
func sandbox(t *testing.T) *Runner {
	t.Helper()
	r, err := New(Config{WorkDir: t.TempDir(), Env: map[string]string{"PATH": os.Getenv("PATH"), "OWN": "1"}, CgroupRoot: "testdata/v2-none"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// socketPair is what a server on the same machine makes for its sandbox.
func socketPair() (ours, theirs net.Conn, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		if ends[i], err = net.FileConn(f); err != nil {
			return nil, nil, err
		}
		if err := f.Close(); err != nil {
			return nil, nil, err
		}
	}
	return ends[0], ends[1], nil
}

// execute runs one program in r.
func execute(ctx context.Context, r *Runner, run wire.Run, y *yield) (wire.Outcome, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return wire.Outcome{}, err
	}
	served := make(chan error, 1)
	go func() {
		served <- r.Serve(theirs)
		_ = theirs.Close()
	}()
	outcome, err := wire.NewClient(ours, "").Execute(ctx, run, y)
	_ = ours.Close()
	<-served
	return outcome, err
}

// TestOutcomes: how a program ended, and what it wrote, of real programs.
func TestOutcomes(t *testing.T) {
	const long = "for i in {1..3000}; do echo 0123456789; done; "
	with := func(r wire.Run, change func(*wire.Run)) wire.Run { change(&r); return r }
	asInit(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			run      wire.Run
			status   execution.Status
			exitCode int
			signal   string
			stdout   string
			stderr   string
		}{
			"success":                {shell("echo out; echo err >&2"), execution.StatusSucceeded, 0, "", "out\n", "err\n"},
			"exit code":              {shell("exit 3"), execution.StatusFailed, 3, "", "", ""},
			"signal":                 {shell("kill -SEGV $$"), execution.StatusFailed, 139, "SIGSEGV", "", ""},
			"args, stdin":            {with(shell(`cat; echo "$# $2"`), func(r *wire.Run) { r.Stdin, r.Args = []byte("in\n"), []string{"", "a b"} }), execution.StatusSucceeded, 0, "", "in\n2 a b\n", ""},
			"env":                    {with(shell(`echo $OWN $A`), func(r *wire.Run) { r.Env = map[string]string{"A": "x=y"} }), execution.StatusSucceeded, 0, "", "1 x=y\n", ""},
			"stdin that is not read": {with(shell("exit 0"), func(r *wire.Run) { r.Stdin = make([]byte, 1<<20) }), execution.StatusSucceeded, 0, "", "", ""},
			"files":                  {with(shell("cat d/f main.sh | head -c 9"), func(r *wire.Run) { r.Files = []wire.File{{Path: "d/f", Content: []byte("f: ")}} }), execution.StatusSucceeded, 0, "", "f: cat d/", ""},
			"timeout":                {with(shell("echo out; while :; do :; done"), func(r *wire.Run) { r.Limits.Timeout = 300 * time.Millisecond }), execution.StatusTimedOut, 137, "SIGKILL", "out\n", ""},
			"background children":    {shell("echo out; sleep 60 & (setsid sleep 60 &); exit 4"), execution.StatusFailed, 4, "", "out\n", ""},
			"its own group":          {shell("echo out; kill -KILL 0"), execution.StatusFailed, 137, "SIGKILL", "out\n", ""},
			"everybody else":         {shell("sleep 60 & echo out; kill -KILL -1; exit 5"), execution.StatusFailed, 5, "", "out\n", ""},
			"closed streams":         {shell("echo out; exec 0<&- 1>&- 2>&-; exit 6"), execution.StatusFailed, 6, "", "out\n", ""},
			"total output":           {with(shell("while :; do echo 0123456789; done"), func(r *wire.Run) { r.Limits.Output, r.Limits.TotalOutput = 1<<10, 1<<16 }), execution.StatusOutputLimit, 137, "SIGKILL", "", ""},
			"output beyond what is kept": {
				with(shell(long+"echo end"), func(r *wire.Run) { r.Limits.Output = 110 }),
				execution.StatusSucceeded, 0, "", strings.Repeat("0123456789\n", 5) + strings.Repeat("0123456789\n", 20)[169:] + "end\n", "",
			},
		} {
			t.Run(name, func(t *testing.T) {
				y := &yield{}
				o, err := execute(t.Context(), sandbox(t), test.run, y)
				if err != nil {
					t.Fatal(err)
				}
				if o.Status != test.status || o.ExitCode != test.exitCode || o.Signal != test.signal {
					t.Errorf("%s, %d, %q", o.Status, o.ExitCode, o.Signal)
				}
				if name != "total output" && (y.output != [2]string{test.stdout, test.stderr}) {
					t.Errorf("it wrote %q", y.output)
				}
				if err := alone(); err != nil {
					t.Error(err)
				}
			})
		}
	})
}

// TestCancelEndsTheProgram: the caller's end is the program's.
func TestCancelEndsTheProgram(t *testing.T) {
	asInit(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o, err := execute(ctx, sandbox(t), shell("trap '' TERM; echo go; while :; do sleep 60; done"), &yield{on: cancel})
		if err != nil || o.Status != execution.StatusCancelled {
			t.Errorf("%+v, %v", o, err)
		}
		if err := alone(); err != nil {
			t.Error(err)
		}
	})
}

// TestArtifactsAreNewFiles: what the program wrote comes back, what it was given
// does not.
func TestArtifactsAreNewFiles(t *testing.T) {
	asInit(t, func(t *testing.T) {
		run := shell("echo new >new; echo more >>given; cat same; rm -f main.sh; ln -s /etc/passwd link")
		run.Files = []wire.File{{Path: "given", Content: []byte("x\n")}, {Path: "same", Content: []byte("y\n")}}
		y := &yield{}
		if _, err := execute(t.Context(), sandbox(t), run, y); err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]string{"new": "new\n", "given": "x\nmore\n", "same": "none", "main.sh": "none", "link": ""} {
			if got := y.artifact(path); got != want {
				t.Errorf("%s: %q, not %q", path, got, want)
			}
		}
	})
}

// TestRunsThatAreRefused: what cannot be carried out is a failure that says why.
func TestRunsThatAreRefused(t *testing.T) {
	asInit(t, func(t *testing.T) {
		for name, change := range map[string]func(*wire.Run){
			"unknown language":   func(r *wire.Run) { r.Language = "cobol" },
			"a file twice":       func(r *wire.Run) { r.Files = []wire.File{{Path: "a"}, {Path: "a"}} },
			"a file as a folder": func(r *wire.Run) { r.Files = []wire.File{{Path: "a"}, {Path: "a/b"}} },
			"the script":         func(r *wire.Run) { r.Files = []wire.File{{Path: "main.sh"}} },
			"a way out":          func(r *wire.Run) { r.Files = []wire.File{{Path: "../x"}} },
			"an absolute path":   func(r *wire.Run) { r.Files = []wire.File{{Path: "/tmp/x"}} },
			"a long argument":    func(r *wire.Run) { r.Args = []string{strings.Repeat("x", 1<<20)} },
		} {
			t.Run(name, func(t *testing.T) {
				run := shell("exit 0")
				change(&run)
				r := sandbox(t)
				o, err := execute(t.Context(), r, run, &yield{})
				if code(err) != wire.FailureInvalid {
					t.Errorf("%+v, %v", o, err)
				}
				if _, err := os.Stat(filepath.Join(r.config.WorkDir, "..", "x")); err == nil {
					t.Error("it wrote a file outside")
				}
			})
		}
	})
}

// TestOneRunPerSandbox: a second run is refused, whatever the first has come to.
func TestOneRunPerSandbox(t *testing.T) {
	asInit(t, func(t *testing.T) {
		r := sandbox(t)
		for i, want := range []wire.FailureCode{"", wire.FailureUsed, wire.FailureUsed} {
			if _, err := execute(t.Context(), r, shell("exit 0"), &yield{}); code(err) != want || want == "" && err != nil {
				t.Errorf("run %d: %v", i+1, err)
			}
		}
	})
}

// TestStreamsPassLargeOutputOn: both streams at once, byte for byte.
func TestStreamsPassLargeOutputOn(t *testing.T) {
	asInit(t, func(t *testing.T) {
		var want strings.Builder
		for i := 1; i <= 20_000; i++ {
			_, _ = fmt.Fprintln(&want, i)
		}
		y := &yield{}
		o, err := execute(t.Context(), sandbox(t), shell("seq 20000 & seq 20000 >&2; wait"), y)
		if err != nil || o.Status != execution.StatusSucceeded {
			t.Fatalf("%+v, %v", o, err)
		}
		for stream, got := range y.output {
			if got != want.String() {
				t.Errorf("stream %d has %d bytes, not %d", stream, len(got), want.Len())
			}
		}
		if y.skipped != [2]int64{} || o.Truncated.Stdout.TotalBytes != int64(want.Len()) {
			t.Errorf("skipped %d, %+v", y.skipped, o.Truncated)
		}
	})
}

// TestHandOver: what a waiting interpreter gets is what package harness reads.
func TestHandOver(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	in := &interpreter{control: w}
	if err := in.handOver([]string{"a", ""}, map[string]string{"B": "2", "A": "x=y"}); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	got, err := io.ReadAll(r)
	if want := "\x00\x00\x00\x11" + "2\x00a\x00\x002\x00A=x=y\x00B=2\x00"; err != nil || string(got) != want {
		t.Errorf("%q, %v, not %q", got, err, want)
	}
}
