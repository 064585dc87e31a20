package runner

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/internal/language"
)

// interpreter is a process that runs or will run the program.
type interpreter struct {
	lang language.Language
	pid  int
	end  <-chan exit
	// Our ends of its pipes. control and results are nil without a harness.
	stdin, stdout, stderr, control, results *os.File
	// before is the processor time that it took until it was handed over.
	before time.Duration
}

// startWarm starts an interpreter ahead and waits until it waits.
func startWarm(p *processes, l language.Language, env []string, dir string) (*interpreter, error) {
	in, err := start(p, l, l.Warm, append(env, "_PREHEAT=warm"), dir)
	if err != nil {
		return nil, err
	}
	var ready [1]byte
	if _, err := io.ReadFull(in.results, ready[:]); err != nil {
		in.close()
		return nil, fmt.Errorf("warming %s: it ended early: %w", l.Name, err)
	}
	return in, nil
}

// startCold starts the program that is in dir.
func startCold(p *processes, l language.Language, args, env []string, dir string) (*interpreter, error) {
	if len(l.Warm) > 0 {
		env = append(env, "_PREHEAT=cold")
	}
	return start(p, l, slices.Concat(l.Cold, args), env, dir)
}

// start starts a process with five pipes: 0 to 2, 3 from the runner and 4 to
// the runner.
func start(p *processes, l language.Language, argv, env []string, dir string) (*interpreter, error) {
	in := &interpreter{lang: l}
	harness := len(l.Warm) > 0
	ends := []struct {
		ours  **os.File
		write bool // ours is the writing end
		use   bool
	}{{&in.stdin, true, true}, {&in.stdout, false, true}, {&in.stderr, false, true}, {&in.control, true, harness}, {&in.results, false, harness}}
	var theirs []uintptr
	defer func() {
		for _, fd := range theirs {
			_ = unix.Close(int(fd))
		}
	}()
	for _, e := range ends {
		if !e.use {
			continue
		}
		fd, err := pipe(e.ours, e.write)
		if err != nil {
			in.close()
			return nil, err
		}
		theirs = append(theirs, uintptr(fd))
	}
	var err error
	if in.pid, in.end, err = p.Start(l.Interpreter, argv, env, dir, theirs); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

// pipe makes a pipe, sets ours to one end, which does not block a thread, and
// returns the other, which is as programs expect it.
func pipe(ours **os.File, write bool) (int, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return 0, fmt.Errorf("making a pipe: %w", err)
	}
	mine, other := fds[0], fds[1]
	if write {
		mine, other = other, mine
	}
	if err := unix.SetNonblock(mine, true); err != nil {
		return 0, fmt.Errorf("making a pipe: %w", err)
	}
	*ours = os.NewFile(uintptr(mine), "pipe")
	return other, nil
}

// handOver gives a waiting interpreter its program, which is in its working
// directory by now.
func (in *interpreter) handOver(args []string, env map[string]string) error {
	in.before = cpuTime(in.pid)
	message := binary.BigEndian.AppendUint32(nil, 0)
	field := func(s string) { message = append(append(message, s...), 0) }
	field(strconv.Itoa(len(args)))
	for _, a := range args {
		field(a)
	}
	field(strconv.Itoa(len(env)))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		field(name + "=" + env[name])
	}
	binary.BigEndian.PutUint32(message, uint32(len(message)-4))
	_, err := in.control.Write(message)
	if err != nil {
		return fmt.Errorf("handing over to %s: %w", in.lang.Name, err)
	}
	return nil
}

func (in *interpreter) close() {
	for _, f := range []*os.File{in.stdin, in.stdout, in.stderr, in.control, in.results} {
		if f != nil {
			_ = f.Close()
		}
	}
}
