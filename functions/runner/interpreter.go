package runner

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// language is how programs of one language are run.
type language struct {
	name string
	// script is the program's file in the working directory.
	script string
	path   string
	// cold starts a program that is there, warm an interpreter that waits
	// for one; warm is nil where there is nothing to start ahead.
	cold, warm []string
	// rich says that the interpreter's harness collects rich results.
	rich bool
	// startup are prefixes of environment names that an interpreter or the
	// loader looks at before the harness could set them.
	startup []string
}

// languages are the languages of the sandbox image.
func languages() []language {
	loader := []string{"LD_", "GLIBC_", "MALLOC_", "LC_", "LANG", "TZ"}
	// What modules that were imported ahead have read.
	imports := []string{"MPL", "NPY_", "NUMPY_", "OMP_", "OPENBLAS_"}
	node := []string{"node", "--require", "/opt/preheat/node/warm.cjs", "main.js"}
	return []language{
		{
			name: "python", script: "main.py", path: "/usr/bin/python3", rich: true,
			cold: []string{"python3", "main.py"}, warm: []string{"python3", "main.py"},
			startup: slices.Concat([]string{"PYTHON", "_PREHEAT", "HOME"}, loader, imports),
		},
		{
			name: "javascript", script: "main.js", path: "/usr/bin/node",
			cold: node, warm: node,
			startup: slices.Concat([]string{"NODE_", "UV_", "OPENSSL_", "SSL_", "ICU_"}, loader),
		},
		{name: "bash", script: "main.sh", path: "/bin/bash", cold: []string{"bash", "main.sh"}},
	}
}

func findLanguage(name string) (language, bool) {
	all := languages()
	i := slices.IndexFunc(all, func(l language) bool { return l.name == name })
	if i < 0 {
		return language{}, false
	}
	return all[i], true
}

// takesWarm reports whether a waiting interpreter can run a program with env
// just as one that is started with env.
func (l language) takesWarm(env map[string]string) bool {
	for name := range env {
		for _, prefix := range l.startup {
			if strings.HasPrefix(name, prefix) {
				return false
			}
		}
	}
	return true
}

// interpreter is a process that runs or will run the program.
type interpreter struct {
	lang language
	pid  int
	end  <-chan exit
	// Our ends of its pipes. control and results are nil without a harness.
	stdin, stdout, stderr, control, results *os.File
	// before is the processor time that it took until it was handed over.
	before time.Duration
}

// startWarm starts an interpreter ahead and waits until it waits.
func startWarm(p *processes, l language, env []string, dir string) (*interpreter, error) {
	in, err := start(p, l, l.warm, append(env, "_PREHEAT=warm"), dir)
	if err != nil {
		return nil, err
	}
	var ready [1]byte
	if _, err := io.ReadFull(in.results, ready[:]); err != nil {
		in.close()
		return nil, fmt.Errorf("warming %s: it ended early: %w", l.name, err)
	}
	return in, nil
}

// startCold starts the program that is in dir.
func startCold(p *processes, l language, args, env []string, dir string) (*interpreter, error) {
	if l.warm != nil {
		env = append(env, "_PREHEAT=cold")
	}
	return start(p, l, slices.Concat(l.cold, args), env, dir)
}

// start starts a process with five pipes: 0 to 2, 3 from the runner and 4 to
// the runner.
func start(p *processes, l language, argv, env []string, dir string) (*interpreter, error) {
	in := &interpreter{lang: l}
	harness := l.warm != nil
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
	if in.pid, in.end, err = p.Start(l.path, argv, env, dir, theirs); err != nil {
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
		return fmt.Errorf("handing over to %s: %w", in.lang.name, err)
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
