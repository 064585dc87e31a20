package runner

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/runner/wire"
	"github.com/preheat-dev/preheat/internal/language"
)

// TestInterpreter is no test: a session's interpreter is this program, started
// once more. Each line of its cells is a command.
func TestInterpreter(*testing.T) {
	if os.Getenv(sessionEntry) == "" {
		return
	}
	interrupts := make(chan os.Signal, 10)
	signal.Notify(interrupts, unix.SIGINT)
	control, ends := os.NewFile(3, "control"), os.NewFile(4, "ends")
	variables := map[string]string{}
	for {
		var length [4]byte
		if _, err := io.ReadFull(control, length[:]); err != nil {
			os.Exit(0)
		}
		message := make([]byte, binary.BigEndian.Uint32(length[:]))
		if _, err := io.ReadFull(control, message); err != nil {
			os.Exit(1)
		}
		fields := bytes.Split(message, []byte{0})
		next := func() string { f := string(fields[0]); fields = fields[1:]; return f }
		sequence, stdin := next(), next()
		args, _ := strconv.Atoi(next())
		fields = fields[args:]
		entries, _ := strconv.Atoi(next())
		fields = fields[entries:]
		code := 0
		for line := range strings.Lines(string(bytes.Join(fields, []byte{0}))) {
			words := strings.Fields(line)
			switch words[0] {
			case "print":
				fmt.Println(strings.Join(words[1:], " "))
			case "set":
				variables[words[1]] = words[2]
			case "get":
				fmt.Println(variables[words[1]])
			case "cat":
				text, _ := os.ReadFile(stdin)
				fmt.Print(string(text))
			case "write":
				_ = os.WriteFile(words[1], []byte(words[2]), 0o644)
			case "later":
				time.AfterFunc(10*time.Millisecond, func() { fmt.Println("later") })
			case "exit":
				code, _ = strconv.Atoi(words[1])
			case "die":
				own, _ := strconv.Atoi(words[1])
				os.Exit(own)
			case "wait":
				fmt.Println("waiting")
				<-interrupts
				code = 130
			case "hang":
				fmt.Println("hanging")
				select {}
			case "flood":
				for range 1 << 14 {
					fmt.Println(strings.Repeat("x", 1023))
				}
			}
		}
		head := fmt.Sprintf(`{"cell":{"sequence":%s,"exit_code":%d}}`, sequence, code)
		_, _ = ends.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(head))), head...))
	}
}

// testSession is an open session, whose operations go over one connection.
type testSession struct {
	t    *testing.T
	r    *Runner
	mux  *yamux.Session
	dir  string
	over chan error
}

const sessionID = "abcdefghijklmnopqrstuvwxyz"

// opening is what opens a session that nothing ends in time.
func opening() wire.Operation {
	return wire.Operation{Session: sessionID, Idle: time.Hour, Lifetime: time.Hour}
}

// openTest opens a session in a sandbox.
func openTest(t *testing.T, op wire.Operation, files ...wire.File) *testSession {
	t.Helper()
	r := sandbox(t)
	r.language = func(name string) (language.Language, bool) {
		return language.Language{Name: name, Interpreter: "/proc/self/exe", Session: []string{"interpreter", "-test.run=^TestInterpreter$"}}, true
	}
	ours, theirs, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	s := &testSession{t: t, r: r, dir: r.config.WorkDir, over: make(chan error, 1)}
	go func() {
		s.over <- r.Serve(theirs)
		_ = theirs.Close()
	}()
	if err := wire.NewClient(ours, "").Open(t.Context(), op, wire.Run{Language: "test", Files: files}); err != nil {
		t.Fatal(err)
	}
	if s.mux, err = yamux.Client(ours, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.mux.Close()
		_ = r.SessionEnd()
	})
	return s
}

// client returns the client of a new connection.
func (s *testSession) client() *wire.Client {
	s.t.Helper()
	conn, err := s.mux.Open()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	return wire.NewClient(conn, "")
}

func (s *testSession) op(kind wire.OperationKind) wire.Operation {
	return wire.Operation{Session: sessionID, Kind: kind, Length: -1}
}

func (s *testSession) ask(op wire.Operation) (wire.Reply, error) {
	return s.client().Ask(s.t.Context(), op, func(wire.SessionFile) {})
}

// runIn runs a cell.
func (s *testSession) runIn(ctx context.Context, code string, y *yield, change func(*wire.Run)) (wire.SessionOutcome, error) {
	run := wire.Run{Language: "test", Code: []byte(code), Limits: limits}
	if change != nil {
		change(&run)
	}
	op := s.op(wire.OperationRun)
	op.Execution = "execution"
	return s.client().RunIn(ctx, op, run, y)
}

// cell runs a cell that must end with this state.
func (s *testSession) cell(code string, want execution.SessionState) (wire.SessionOutcome, *yield) {
	s.t.Helper()
	y := &yield{}
	o, err := s.runIn(s.t.Context(), code, y, nil)
	if err != nil || o.State != want {
		s.t.Fatalf("%q: %+v, %v", code, o, err)
	}
	return o, y
}

func (s *testSession) ended() execution.SessionEnd {
	if err := <-s.over; err != nil {
		s.t.Error(err)
	}
	return s.r.SessionEnd()
}

// TestCells: what a session keeps, loses and says.
func TestCells(t *testing.T) {
	asInit(t, func(t *testing.T) {
		s := openTest(t, opening(), wire.File{Path: "data/in", Content: []byte("x")})
		if o, y := s.cell("set a 1\nprint first\nwrite out 1", execution.SessionFresh); o.Sequence != 1 || y.output[0] != "first\n" || y.artifact("out") != "1" || len(y.artifacts) != 1 {
			t.Errorf("%+v, %+v", o, y)
		}
		o, y := s.cell("get a\nexit 3\nlater", execution.SessionKept)
		if o.Sequence != 2 || y.output[0] != "1\n" || o.ExitCode != 3 || o.Status != execution.StatusFailed || len(y.artifacts) != 0 {
			t.Errorf("%+v, %+v", o, y)
		}
		for s.r.session.Load().cells.output.waiting() == 0 {
			time.Sleep(time.Millisecond) // what is written between two cells
		}
		run := func(r *wire.Run) { r.Stdin = []byte("input") }
		y = &yield{}
		if o, err := s.runIn(t.Context(), "cat", y, run); err != nil || o.State != execution.SessionKept || y.output[0] != "later\ninput" {
			t.Errorf("%+v, %+v, %v", o, y, err)
		}
		if o, _ := s.cell("die 7", execution.SessionLost); o.ExitCode != 7 || o.Status != execution.StatusFailed {
			t.Errorf("%+v", o)
		}
		if _, y := s.cell("get a", execution.SessionFresh); y.output[0] != "\n" {
			t.Errorf("a fresh interpreter knows %q", y.output[0])
		}
		if reply, err := s.ask(s.op(wire.OperationStatus)); err != nil || reply.Sequence != 5 || reply.Running != "" || reply.IdleLeft < 50*time.Minute {
			t.Errorf("%+v, %v", reply, err)
		}
		if _, err := s.ask(s.op(wire.OperationEnd)); err != nil {
			t.Error(err)
		}
		if why := s.ended(); why != execution.SessionClosed {
			t.Errorf("it ended: %s", why)
		}
		if err := alone(); err != nil {
			t.Error(err)
		}
	})
}

// TestManyCells: each is handed over, however soon the one before has ended.
func TestManyCells(t *testing.T) {
	asInit(t, func(t *testing.T) {
		s := openTest(t, opening())
		s.cell("set a 0", execution.SessionFresh)
		for n := range 2000 {
			code := fmt.Sprintf("print %d", n)
			if _, y := s.cell(code, execution.SessionKept); y.output[0] != fmt.Sprintln(n) {
				t.Fatalf("%s: %q", code, y.output[0])
			}
		}
	})
}

// waiting is how much of stdout waits for the next cell.
func (o *cellOutput) waiting() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.between[execution.Stdout])
}

// TestCellsAreInterrupted: by a time limit, a caller's word and its end, by too much
// output; and killed when that is not enough.
func TestCellsAreInterrupted(t *testing.T) {
	asInit(t, func(t *testing.T) {
		s := openTest(t, opening())
		short := func(r *wire.Run) { r.Limits.Timeout = 300 * time.Millisecond }
		for _, test := range []struct {
			name, code string
			change     func(*wire.Run)
			// interrupt is called at the first output.
			interrupt func(cancel func())
			status    execution.Status
			signal    string
			state     execution.SessionState
		}{
			{"time", "wait", short, nil, execution.StatusTimedOut, "SIGINT", execution.SessionFresh},
			{"word", "wait", nil, func(func()) {
				if _, err := s.ask(s.op(wire.OperationInterrupt)); err != nil {
					t.Error(err)
				}
			}, execution.StatusCancelled, "SIGINT", execution.SessionKept},
			{"its caller went away", "wait", nil, func(cancel func()) { cancel() }, execution.StatusCancelled, "SIGINT", execution.SessionKept},
			{"output", "flood\nwait", func(r *wire.Run) { r.Limits.TotalOutput = 1 << 20 }, nil, execution.StatusOutputLimit, "SIGINT", execution.SessionKept},
			{"time, and it does not end", "hang", short, nil, execution.StatusTimedOut, "SIGKILL", execution.SessionLost},
			{"nothing", "print 1", nil, nil, execution.StatusSucceeded, "", execution.SessionFresh},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			y := &yield{}
			if test.interrupt != nil {
				y.on = func() { test.interrupt(cancel); y.on = nil }
			}
			o, err := s.runIn(ctx, test.code, y, test.change)
			cancel()
			if err != nil || o.Status != test.status || o.Signal != test.signal || o.State != test.state {
				t.Errorf("%s: %+v, %v", test.name, o, err)
			}
		}
	})
}

// TestOneCellAtATime: another one is told which one runs.
func TestOneCellAtATime(t *testing.T) {
	asInit(t, func(t *testing.T) {
		s := openTest(t, opening())
		ctx, cancel := context.WithCancel(t.Context())
		y := &yield{}
		y.on = func() {
			y.on = nil
			_, err := s.runIn(t.Context(), "print 2", &yield{}, nil)
			expect(t, err, wire.FailureBusy, "execution")
			if reply, err := s.ask(s.op(wire.OperationStatus)); err != nil || reply.Running != "execution" {
				t.Errorf("%+v, %v", reply, err)
			}
			cancel()
		}
		if o, err := s.runIn(ctx, "wait", y, nil); err != nil || o.Status != execution.StatusCancelled {
			t.Errorf("%+v, %v", o, err)
		}
		_, err := s.ask(s.op(wire.OperationInterrupt))
		expect(t, err, wire.FailureNothingRuns, "")
	})
}

// expect checks that err is a failure of this kind.
func expect(t *testing.T, err error, code wire.FailureCode, detail string) {
	t.Helper()
	var failure *wire.Failure
	if !errors.As(err, &failure) || failure.Code != code || detail != "" && failure.Detail != detail {
		t.Errorf("the error is %v, and not %s: %s", err, code, detail)
	}
}

// TestSessionFiles: what can be done with files, and what can't.
func TestSessionFiles(t *testing.T) {
	asInit(t, func(t *testing.T) {
		s := openTest(t, opening(), wire.File{Path: "a", Content: []byte("0123456789")})
		if err := errors.Join(os.Symlink("/etc/hostname", filepath.Join(s.dir, "out")), os.Symlink("a", filepath.Join(s.dir, "in")), unix.Mkfifo(filepath.Join(s.dir, "fifo"), 0o600)); err != nil {
			t.Fatal(err)
		}
		path := func(kind wire.OperationKind, path string) wire.Operation {
			op := s.op(kind)
			op.Path = path
			return op
		}
		write := func(name, content string) (bool, error) {
			_, created, err := s.client().Write(t.Context(), path("", name), strings.NewReader(content))
			return created, err
		}
		read := func(op wire.Operation) string {
			f, r, err := s.client().Read(t.Context(), op)
			if err != nil {
				return err.Error()
			}
			text, err := io.ReadAll(r)
			if err != nil || f.ETag == "" {
				t.Errorf("%+v, %v", f, err)
			}
			return string(text)
		}
		if created, err := write("dir/ü b", "new"); err != nil || !created {
			t.Errorf("%v, %v", created, err)
		}
		if created, err := write("dir/ü b", "newer"); err != nil || created {
			t.Errorf("%v, %v", created, err)
		}
		part := path("", "in")
		part.Offset, part.Length = 2, 3
		for want, op := range map[string]wire.Operation{"newer": path("", "dir/ü b"), "234": part, "0123456789": path("", "a")} {
			if got := read(op); got != want {
				t.Errorf("%s: %q", op.Path, got)
			}
		}
		var listed []string
		reply, err := s.client().Ask(t.Context(), wire.Operation{Session: sessionID, Kind: wire.OperationList, Max: 9}, func(f wire.SessionFile) {
			listed = append(listed, fmt.Sprint(f.Path, " ", f.Size))
		})
		if err != nil || reply.More || !slices.Equal(listed, []string{"a 10", "dir/ü b 5"}) {
			t.Errorf("%q, %+v, %v", listed, reply, err)
		}
		if got := entries(t, s, path("", "")); got != "a=0123456789 dir/ dir/ü b=newer " {
			t.Errorf("the archive has %q", got)
		}
		for name, err := range map[string]error{
			"read nothing":          second(s.client().Read(t.Context(), path("", "none"))),
			"read a link out":       second(s.client().Read(t.Context(), path("", "out"))),
			"read what never ends":  second(s.client().Read(t.Context(), path("", "fifo"))),
			"read out":              second(s.client().Read(t.Context(), path("", "../x"))),
			"write out":             second(write("../x", "")),
			"write over a folder":   second(write("dir", "")),
			"write below a file":    second(write("a/b", "")),
			"write through a link":  second(write("out/b", "")),
			"remove all":            second(s.ask(path(wire.OperationRemove, ""))),
			"remove nothing":        second(s.ask(path(wire.OperationRemove, "none"))),
			"archive a file":        second(s.client().Archive(t.Context(), path("", "a"))),
			"archive nothing":       second(s.client().Archive(t.Context(), path("", "none"))),
			"an unknown operation":  second(s.ask(path("copy", "a"))),
			"another session's":     second(s.ask(wire.Operation{Session: "other", Kind: wire.OperationStatus})),
			"opening it once again": s.client().Open(t.Context(), opening(), wire.Run{Language: "test"}),
		} {
			var failure *wire.Failure
			if !errors.As(err, &failure) || failure.Code == wire.FailureInternal {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := s.ask(path(wire.OperationRemove, "dir")); err != nil {
			t.Error(err)
		}
		left, err := os.ReadDir(s.dir)
		if err != nil || len(left) != 4 {
			t.Errorf("%v, %v", left, err)
		}
	})
}

// second is the last result of a call.
func second(all ...any) error {
	err, _ := all[len(all)-1].(error)
	return err
}

// entries lists an archive.
func entries(t *testing.T, s *testSession, op wire.Operation) (list string) {
	t.Helper()
	r, err := s.client().Archive(t.Context(), op)
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(r)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list += h.Name
		if text, _ := io.ReadAll(archive); h.Typeflag == tar.TypeReg {
			list += "=" + string(text)
		}
		list += " "
	}
}

// TestUploadsThatBreakLeaveNothing: a file is there whole or not at all.
func TestUploadsThatBreakLeaveNothing(t *testing.T) {
	asInit(t, func(t *testing.T) {
		s := openTest(t, opening())
		conn, err := s.mux.Open()
		if err != nil {
			t.Fatal(err)
		}
		op := s.op("")
		op.Path = "f"
		broken := errors.New("broken")
		if _, _, err := wire.NewClient(conn, "").Write(t.Context(), op, io.MultiReader(strings.NewReader("part"), iotestErr{broken})); !errors.Is(err, broken) {
			t.Error(err)
		}
		_ = conn.Close()
		for {
			names, err := os.ReadDir(s.dir)
			if err != nil {
				t.Fatal(err)
			}
			if reply, _ := s.ask(s.op(wire.OperationStatus)); len(names) == 0 && reply.Sequence == 0 {
				break
			}
		}
	})
}

type iotestErr struct{ err error }

func (e iotestErr) Read([]byte) (int, error) { return 0, e.err }

// TestSessionsEnd: by themselves, with their server, and at their runner's end,
// whatever runs.
func TestSessionsEnd(t *testing.T) {
	for name, test := range map[string]struct {
		op   wire.Operation
		do   func(s *testSession)
		want execution.SessionEnd
	}{
		"idle":     {wire.Operation{Session: sessionID, Idle: 50 * time.Millisecond, Lifetime: time.Hour}, func(*testSession) {}, execution.SessionIdle},
		"lifetime": {wire.Operation{Session: sessionID, Idle: time.Hour, Lifetime: 500 * time.Millisecond}, func(s *testSession) { _, _ = s.runIn(s.t.Context(), "hang", &yield{}, nil) }, execution.SessionExpired},
		"shutdown": {opening(), func(s *testSession) {
			_, _ = s.runIn(s.t.Context(), "hang", &yield{on: func() { go s.r.Shutdown() }}, nil)
		}, execution.SessionShutdown},
		"its server ends": {opening(), func(s *testSession) { _ = s.mux.Close() }, execution.SessionShutdown},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			asInit(t, func(t *testing.T) {
				s := openTest(t, test.op)
				test.do(s)
				if why := s.ended(); why != test.want {
					t.Errorf("it ended: %s", why)
				}
				if err := alone(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestSessionOverNetwork: every operation has a connection of its own, with the
// token, and a single run is refused.
func TestSessionOverNetwork(t *testing.T) {
	asInit(t, func(t *testing.T) {
		r := sandbox(t)
		r.language = func(name string) (language.Language, bool) {
			return language.Language{Name: name, Interpreter: "/proc/self/exe", Session: []string{"interpreter", "-test.run=^TestInterpreter$"}}, true
		}
		sum := sha256.Sum256([]byte("t"))
		r.admission.tokenHash = sum[:]
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		over := make(chan error, 1)
		go func() { over <- r.ServeListener(l) }()
		client := func(token string) *wire.Client {
			conn, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			return wire.NewClient(conn, token)
		}
		status := wire.Operation{Session: sessionID, Kind: wire.OperationStatus}
		_, err = client("t").Ask(t.Context(), status, nil)
		expect(t, err, wire.FailureSession, "")
		if err := client("t").Open(t.Context(), opening(), wire.Run{Language: "test"}); err != nil {
			t.Fatal(err)
		}
		_, err = client("wrong").Ask(t.Context(), status, nil)
		expect(t, err, wire.FailureToken, "")
		_, err = client("t").Execute(t.Context(), shell("true"), &yield{})
		expect(t, err, wire.FailureUsed, "")
		if _, err = client("t").Ask(t.Context(), status, nil); err != nil {
			t.Error(err)
		}
		if _, err = client("t").Ask(t.Context(), wire.Operation{Session: sessionID, Kind: wire.OperationEnd}, nil); err != nil {
			t.Error(err)
		}
		if err := <-over; err != nil || r.SessionEnd() != execution.SessionClosed {
			t.Errorf("%v, %s", err, r.SessionEnd())
		}
	})
}

// TestConcludeCell: how cells end.
func TestConcludeCell(t *testing.T) {
	killed := cellEnd{lost: true, status: 9}
	for name, test := range map[string]struct {
		why    cause
		end    cellEnd
		kills  int64
		status execution.Status
		code   int
		signal string
	}{
		"well":                         {causeExit, cellEnd{}, 0, execution.StatusSucceeded, 0, ""},
		"with a code":                  {causeExit, cellEnd{code: 3}, 0, execution.StatusFailed, 3, ""},
		"with 130 of its own":          {causeExit, cellEnd{code: 130}, 0, execution.StatusFailed, 130, ""},
		"interrupted":                  {causeCancel, cellEnd{code: 130}, 0, execution.StatusCancelled, 130, "SIGINT"},
		"well in spite of it":          {causeCancel, cellEnd{}, 0, execution.StatusSucceeded, 0, ""},
		"too late":                     {causeTimeout, cellEnd{code: 130}, 0, execution.StatusTimedOut, 130, "SIGINT"},
		"too late, but well":           {causeTimeout, cellEnd{}, 0, execution.StatusTimedOut, 0, ""},
		"too late and killed":          {causeTimeout, killed, 0, execution.StatusTimedOut, 137, "SIGKILL"},
		"too much and killed":          {causeOutput, killed, 0, execution.StatusOutputLimit, 137, "SIGKILL"},
		"killed":                       {causeExit, killed, 0, execution.StatusFailed, 137, "SIGKILL"},
		"out of memory":                {causeExit, killed, 1, execution.StatusOutOfMemory, 137, "SIGKILL"},
		"a child out of memory":        {causeExit, cellEnd{code: 1}, 1, execution.StatusFailed, 1, ""},
		"the last child out of memory": {causeExit, cellEnd{code: 137}, 1, execution.StatusOutOfMemory, 137, ""},
		"the interpreter exits":        {causeExit, cellEnd{lost: true, status: 5 << 8}, 0, execution.StatusFailed, 5, ""},
		"exits with the interrupt":     {causeCancel, cellEnd{lost: true, status: 2}, 0, execution.StatusCancelled, 130, "SIGINT"},
	} {
		o := concludeCell(test.why, test.end, test.kills)
		if o.Status != test.status || o.ExitCode != test.code || o.Signal != test.signal {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// TestCellMessage: what a harness reads.
func TestCellMessage(t *testing.T) {
	m := cellMessage(7, "/in", wire.Run{Code: []byte("a\x00b"), Args: []string{"x", ""}, Env: map[string]string{"B": "2", "A": "1"}})
	if want := "7\x00/in\x002\x00x\x00\x002\x00A=1\x00B=2\x00a\x00b"; string(m[4:]) != want || int(binary.BigEndian.Uint32(m)) != len(want) {
		t.Errorf("%q", m)
	}
}

// TestResultsOfCells: a record of a cell's end is one in a session alone.
func TestResultsOfCells(t *testing.T) {
	var got []cellRecord
	record := func(v any) []byte {
		head, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(head))), head...)
	}
	end := record(map[string]any{"cell": cellRecord{3, 4}})
	r := &results{cell: func(c cellRecord) { got = append(got, c) }}
	r.write(append(record(map[string]any{"parts": []wire.Part{{MIME: "text/plain", Size: 2}}}), "ab"...), 0)
	r.write(end, 0)
	if notes := r.close(); len(notes) != 0 || !slices.Equal(got, []cellRecord{{3, 4}}) {
		t.Errorf("%v, notes %q", got, notes)
	}
	single := newResults(wire.NewServer(&bytes.Buffer{}), wire.Run{})
	single.write(end, 0)
	if notes := single.close(); len(notes) != 1 {
		t.Errorf("a single run's notes are %q", notes)
	}
}
