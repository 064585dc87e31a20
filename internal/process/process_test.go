package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

const childVariable = "PREHEAT_TEST_PROCESS"

// TestMain is the program under test where a test has started it.
func TestMain(m *testing.M) {
	switch os.Getenv(childVariable) {
	case "fails":
		Main("program", func(context.Context) error { return errors.New("no listener") })
		return
	case "hangs":
		Main("program", func(ctx context.Context) error {
			_, _ = os.Stdout.WriteString("r")
			<-ctx.Done()
			_, _ = os.Stdout.WriteString("s")
			select {}
		})
		return
	}
	os.Exit(m.Run())
}

func child(t *testing.T, what string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), childVariable+"="+what)
	return c
}

func TestFailureIsSaidAndExitsWithOne(t *testing.T) {
	out, err := child(t, "fails").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || string(out) != "program: no listener\n" {
		t.Errorf("%v: %q", err, out)
	}
}

func TestSecondSignalEndsTheProcess(t *testing.T) {
	c := child(t, "hangs")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"r", "s"} {
		mark := make([]byte, 1)
		if _, err := out.Read(mark); err != nil || string(mark) != want {
			t.Fatalf("the program wrote %q, not %q: %v", mark, want, err)
		}
		if want == "r" {
			_ = c.Process.Signal(syscall.SIGTERM)
		}
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if s := c.ProcessState.Sys().(syscall.WaitStatus); !s.Signaled() || s.Signal() != syscall.SIGTERM {
		t.Errorf("the process ended by %v", c.ProcessState)
	}
}
