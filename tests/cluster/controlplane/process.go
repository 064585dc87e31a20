package controlplane

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// stopGrace is how long a program may take to end before it is killed.
const stopGrace = 10 * time.Second

// process is a program of the control plane. It ends with this process, even
// if that is killed.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	// done is closed when the program has ended, with err.
	done chan struct{}
	err  error
}

func start(dir, name, program string, args ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(program, args...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go func() {
		// The signal at the parent's death is tied to the thread that started
		// the program, so this one stays with it to its end.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		defer log.Close()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// stop ends the program and waits for its end.
func (p *process) stop() error {
	signal := func(s syscall.Signal) error {
		if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("stop %s: %w", p.name, err)
		}
		return nil
	}
	if err := signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(stopGrace):
	}
	err := signal(syscall.SIGKILL)
	<-p.done
	return err
}

// failure describes a program that ended or does not answer, with the end of
// its log.
func (p *process) failure(err error) error {
	select {
	case <-p.done:
		err = errors.Join(err, fmt.Errorf("%s ended: %w", p.name, p.err))
	default:
	}
	log, readErr := os.ReadFile(p.log)
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	return fmt.Errorf("%w; the end of its log:\n%s", err, log[max(0, len(log)-4000):])
}
