package wire

import (
	"bytes"

	"github.com/preheat-dev/preheat/api/execution"
)

// WarmUp reads a run and writes an outcome in memory. A process that calls it
// once needs less time for its run: the code is in memory then, and encoding/json
// knows the types.
func WarmUp() error {
	var b bytes.Buffer
	run := Run{Code: []byte("1"), Env: map[string]string{"NAME": "value"}}
	if err := writeJSON(&b, frameHello, Hello{Version: Version, Token: "token", Role: RoleRun}); err != nil {
		return err
	}
	if err := writeJSON(&b, frameRun, run); err != nil {
		return err
	}
	s := NewServer(&b)
	if _, err := s.Hello(); err != nil {
		return err
	}
	if _, err := s.ReadRun(); err != nil {
		return err
	}
	if err := s.Output(execution.Stdout, []byte("1"), 0); err != nil {
		return err
	}
	return s.Exit(Outcome{Status: "succeeded"})
}
