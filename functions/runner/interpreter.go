package runner

import (
	"encoding/binary"
	"errors"
	"fmt"
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
	lang     language.Language
	pid      int
	end      <-chan exit
	arrivals *arrivals
	// Our ends of its pipes; control is nil without a harness.
	stdin, control          *os.File
	stdout, stderr, results int
	// before is the processor time that it took until it was handed over.
	before time.Duration
}

// startWarm starts an interpreter ahead and waits until it waits.
func startWarm(p *processes, a *arrivals, l language.Language, env []string, dir string) (*interpreter, error) {
	in, err := start(p, a, l, l.Warm, append(env, "_PREHEAT=warm"), dir, true)
	if err != nil {
		return nil, err
	}
	if err := in.awaitReady(); err != nil {
		in.close()
		return nil, fmt.Errorf("warming %s: %w", l.Name, err)
	}
	return in, nil
}

// awaitReady waits for the byte that says that the interpreter waits.
func (in *interpreter) awaitReady() error {
	fds := []unix.PollFd{{Fd: int32(in.results), Events: unix.POLLIN}}
	var ready [1]byte
	for {
		switch n, err := unix.Read(in.results, ready[:]); {
		case n == 1:
			return nil
		case errors.Is(err, unix.EAGAIN):
			if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
				return fmt.Errorf("waiting for it: %w", err)
			}
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("waiting for it: %w", err)
		default:
			return errors.New("it ended early")
		}
	}
}

// startCold starts the program that is in dir.
func startCold(p *processes, a *arrivals, l language.Language, args, env []string, dir string) (*interpreter, error) {
	if len(l.Warm) > 0 {
		env = append(env, "_PREHEAT=cold")
	}
	return start(p, a, l, slices.Concat(l.Cold, args), env, dir, len(l.Warm) > 0)
}

// start starts a process with four or five pipes: 0 to 2, 3 from the runner, if it
// has a harness that waits, and 4 to the runner.
func start(p *processes, a *arrivals, l language.Language, argv, env []string, dir string, waits bool) (*interpreter, error) {
	in := &interpreter{lang: l, arrivals: a, stdout: -1, stderr: -1, results: -1}
	theirs := make([]int, 0, 5)
	defer func() {
		for _, fd := range theirs {
			_ = unix.Close(fd)
		}
	}()
	output := func(ours *int) func() (int, error) {
		return func() (theirs int, err error) {
			*ours, theirs, err = a.pipe()
			return theirs, err
		}
	}
	input := func(ours **os.File) func() (int, error) {
		return func() (int, error) { return inputPipe(ours) }
	}
	pipes := []func() (int, error){input(&in.stdin), output(&in.stdout), output(&in.stderr), nil, output(&in.results)}
	if waits {
		pipes[3] = input(&in.control)
	}
	var files []uintptr
	for _, pipe := range pipes {
		if pipe == nil {
			files = append(files, ^uintptr(0)) // closed
			continue
		}
		fd, err := pipe()
		if err != nil {
			in.close()
			return nil, err
		}
		theirs = append(theirs, fd)
		files = append(files, uintptr(fd))
	}
	var err error
	if in.pid, in.end, err = p.Start(l.Interpreter, argv, env, dir, files); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

// inputPipe makes a pipe to the program, sets ours to its end, which does not
// block a thread, and returns the program's, which is as programs expect it.
func inputPipe(ours **os.File) (int, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return 0, fmt.Errorf("making a pipe: %w", err)
	}
	if err := unix.SetNonblock(fds[1], true); err != nil {
		return 0, errors.Join(fmt.Errorf("making a pipe: %w", err), unix.Close(fds[0]), unix.Close(fds[1]))
	}
	*ours = os.NewFile(uintptr(fds[1]), "pipe")
	return fds[0], nil
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
	for _, f := range []*os.File{in.stdin, in.control} {
		if f != nil {
			_ = f.Close()
		}
	}
	for _, fd := range []*int{&in.stdout, &in.stderr, &in.results} {
		if *fd >= 0 {
			_ = unix.Close(*fd)
			*fd = -1
		}
	}
}
