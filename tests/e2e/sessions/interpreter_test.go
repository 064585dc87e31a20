package sessions

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

const sandboxUser = 1000

// interpreter is a warm Python that waits for the cells of a session.
type interpreter struct {
	process        *os.Process
	reaped         bool
	control        *os.File
	records        *bufio.Reader
	stdout, stderr *output
	inputs         string // folder of the cells' standard inputs
	sequence       int
}

// startPython starts an interpreter and hands it over to a session.
func startPython(t *testing.T) *interpreter {
	t.Helper()
	root := os.Getenv(rootVariable)
	inputs, err := os.MkdirTemp(root+"/tmp", "inputs-")
	check(t, err)
	check(t, os.Chown(inputs, sandboxUser, sandboxUser))
	work, err := os.MkdirTemp(root+"/work", "")
	check(t, err)
	check(t, os.Chmod(work, 0o777))

	var theirs, ours [5]*os.File
	for fd := range theirs {
		r, w, err := os.Pipe()
		check(t, err)
		theirs[fd], ours[fd] = r, w
		if fd == 1 || fd == 2 || fd == 4 {
			theirs[fd], ours[fd] = w, r
		}
	}
	process, err := os.StartProcess("/usr/bin/python3", []string{"python3", "main.py"}, &os.ProcAttr{
		Dir: strings.TrimPrefix(work, root), Files: theirs[:],
		Env: []string{"PATH=/usr/bin:/bin", "HOME=/home/sandbox", "LANG=C.UTF-8", "MPLBACKEND=module://_preheat_matplotlib", "_PREHEAT=warm"},
		Sys: &syscall.SysProcAttr{
			Chroot: root, Setsid: true, Credential: &syscall.Credential{Uid: sandboxUser, Gid: sandboxUser},
		},
	})
	check(t, err)
	for _, f := range theirs {
		check(t, f.Close())
	}
	in := &interpreter{
		process: process, control: ours[3], records: bufio.NewReader(ours[4]), inputs: inputs,
		stdout: follow(ours[1]), stderr: follow(ours[2]),
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-process.Pid, syscall.SIGKILL)
		if !in.reaped {
			if _, err := process.Wait(); err != nil {
				t.Error(err)
			}
		}
		for _, fd := range []int{0, 3, 4} {
			_ = ours[fd].Close()
		}
		<-in.stdout.ended
		<-in.stderr.ended
	})
	if ready, err := in.records.ReadByte(); err != nil || ready != 'R' {
		t.Fatalf("the interpreter does not become warm: %q, %v: %s", ready, err, in.stderr)
	}
	in.send(t, fields(nil, map[string]string{"HOME": "/home/sandbox", "MPLBACKEND": "module://_preheat_matplotlib", "_PREHEAT_SESSION": "1"}))
	return in
}

// end is how a cell ended.
type end struct {
	exitCode int
	lost     bool     // with the interpreter
	shown    []string // the first media type of each result, and notes
}

// run runs a cell and returns when its end has been said. Once its standard output
// holds interruptAt, if that is not empty, it is interrupted.
func (in *interpreter) run(t *testing.T, c cell) end {
	t.Helper()
	in.sequence++
	stdin := ""
	if c.stdin != "" {
		path := filepath.Join(in.inputs, strconv.Itoa(in.sequence))
		check(t, os.WriteFile(path, []byte(c.stdin), 0o644))
		stdin = strings.TrimPrefix(path, os.Getenv(rootVariable))
	}
	message := append([]byte(fmt.Sprintf("%d\x00%s\x00", in.sequence, stdin)), fields(c.args, c.env)...)
	in.send(t, append(message, c.source...))
	if c.interruptAt != "" {
		if !in.stdout.await(c.interruptAt) {
			t.Fatalf("cell %d ended before it wrote %q: %s", in.sequence, c.interruptAt, in.stderr)
		}
		check(t, syscall.Kill(-in.process.Pid, syscall.SIGINT))
	}
	var e end
	for {
		head, err := in.record()
		if errors.Is(err, io.EOF) {
			state, err := in.process.Wait()
			check(t, err)
			in.reaped = true
			return end{exitCode: state.ExitCode(), lost: true, shown: e.shown}
		}
		check(t, err)
		switch {
		case head.Cell != nil:
			if head.Cell.Sequence != in.sequence {
				t.Errorf("cell %d ended while cell %d ran", head.Cell.Sequence, in.sequence)
			}
			e.exitCode = head.Cell.ExitCode
			return e
		case head.Note != "":
			e.shown = append(e.shown, "note: "+head.Note)
		default:
			e.shown = append(e.shown, head.Parts[0].MIME+head.text)
		}
	}
}

type record struct {
	Note  string
	Parts []struct {
		MIME string
		Size int64
	}
	Cell *struct {
		Sequence int
		ExitCode int `json:"exit_code"`
	}
	text string // of a result that is nothing but plain text
}

func (in *interpreter) record() (record, error) {
	var size uint32
	if err := binary.Read(in.records, binary.BigEndian, &size); err != nil {
		return record{}, err
	}
	head := make([]byte, size)
	if _, err := io.ReadFull(in.records, head); err != nil {
		return record{}, err
	}
	var r record
	if err := json.Unmarshal(head, &r); err != nil {
		return record{}, fmt.Errorf("reading the head of a record, %q: %w", head, err)
	}
	for _, p := range r.Parts {
		content := make([]byte, p.Size)
		if _, err := io.ReadFull(in.records, content); err != nil {
			return record{}, err
		}
		if len(r.Parts) == 1 && p.MIME == "text/plain" {
			r.text = " " + string(content)
		}
	}
	return r, nil
}

func (in *interpreter) send(t *testing.T, message []byte) {
	t.Helper()
	_, err := in.control.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...))
	check(t, err)
}

// fields are the parts of a message that hold arguments and environment.
func fields(args []string, env map[string]string) []byte {
	message := fmt.Appendf(nil, "%d\x00", len(args))
	for _, a := range args {
		message = fmt.Appendf(message, "%s\x00", a)
	}
	message = fmt.Appendf(message, "%d\x00", len(env))
	for name, value := range env {
		message = fmt.Appendf(message, "%s=%s\x00", name, value)
	}
	return message
}

// output collects what an interpreter writes to a stream.
type output struct {
	mu    sync.Mutex
	more  sync.Cond
	text  []byte
	over  bool
	ended chan struct{}
}

func follow(f *os.File) *output {
	o := &output{ended: make(chan struct{})}
	o.more.L = &o.mu
	go func() {
		defer close(o.ended)
		defer func() { _ = f.Close() }()
		for buffer := make([]byte, 64<<10); ; {
			n, err := f.Read(buffer)
			o.mu.Lock()
			o.text = append(o.text, buffer[:n]...)
			o.over = err != nil
			o.more.Broadcast()
			o.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return o
}

// await waits until the stream has had text since it was last taken.
func (o *output) await(text string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !strings.Contains(string(o.text), text) && !o.over {
		o.more.Wait()
	}
	return strings.Contains(string(o.text), text)
}

// upTo returns what came up to and including the mark, and forgets it.
func (o *output) upTo(mark string) string {
	o.await(mark)
	o.mu.Lock()
	defer o.mu.Unlock()
	text, rest, _ := strings.Cut(string(o.text), mark)
	o.text = []byte(rest)
	return text
}

// String returns what came and was not taken.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
