package api_test

import (
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
)

// TestCellsOfOtherLanguages: JavaScript and bash keep what Python keeps, each as its
// own console does.
func TestCellsOfOtherLanguages(t *testing.T) {
	type step struct {
		code, stdout string
		exit         int
		state        execution.SessionState
	}
	for language, steps := range map[string][]step{
		"javascript": {
			{"const a = 1; let b = 2;", "", 0, execution.SessionFresh},
			{"const a = 5; console.log(a + b);", "7\n", 0, execution.SessionKept},
			{"await new Promise((r) => setTimeout(r, 20)); console.log(require('path').join('x', 'y'));", "x/y\n", 0, execution.SessionKept},
			{"function f() { throw new Error('boom'); }\nf();", "", 1, execution.SessionKept},
			{"process.exit(3);", "", 3, execution.SessionKept},
			{"let x = ;", "", 1, execution.SessionKept},
			{"console.log(a);", "5\n", 0, execution.SessionKept},
			{"process.kill(process.pid, 'SIGKILL');", "", 137, execution.SessionLost},
			{"console.log(typeof a);", "undefined\n", 0, execution.SessionFresh},
		},
		"bash": {
			{"x=1; f() { echo f $1; }; cd /tmp", "", 0, execution.SessionFresh},
			{"echo $x; f 2; pwd", "1\nf 2\n/tmp\n", 0, execution.SessionKept},
			{"exit 3", "", 3, execution.SessionKept},
			{"set -e; false; echo no", "", 1, execution.SessionKept},
			{"if then", "", 2, execution.SessionKept},
			{"echo still $x", "still 1\n", 0, execution.SessionKept},
			{"kill -9 $$", "", 137, execution.SessionLost},
			{"echo [$x]", "[]\n", 0, execution.SessionFresh},
		},
	} {
		t.Run(language, func(t *testing.T) {
			s := open(t, shared, `{"language":"`+language+`"}`)
			for _, step := range steps {
				r := s.run(step.code)
				if r.Stdout != step.stdout || r.ExitCode != step.exit || r.State != step.state {
					t.Errorf("%s: %q, exit code %d, %s\n%s", step.code, r.Stdout, r.ExitCode, r.State, r.Stderr)
				}
			}
		})
	}
}
