package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
)

// duplex is a connection whose peer has said what is in r; w gets the answers.
type duplex struct {
	r io.Reader
	w bytes.Buffer
}

func (d *duplex) Read(p []byte) (int, error)  { return d.r.Read(p) }
func (d *duplex) Write(p []byte) (int, error) { return d.w.Write(p) }

func TestHello(t *testing.T) {
	good := `{"version":2,"token":"t","role":"run"}`
	long := strings.Repeat("x", 1<<20)
	for name, test := range map[string]struct {
		sent string
		want Hello
		code FailureCode // of a failure
	}{
		"a hello":                 {sent: string(raw(frameHello, good)), want: Hello{Version: 2, Token: "t", Role: RoleRun}},
		"fields of later":         {sent: string(raw(frameHello, `{"more":1,`+good[1:])), want: Hello{Version: 2, Token: "t", Role: RoleRun}},
		"no token":                {sent: string(raw(frameHello, `{"version":2,"role":"run"}`)), want: Hello{Version: 2, Role: RoleRun}},
		"a later version":         {sent: string(raw(frameHello, `{"version":4,"token":"t","role":"run"}`)), code: FailureVersion},
		"a session":               {sent: string(raw(frameHello, `{"version":3,"token":"t","role":"session"}`)), want: Hello{Version: 3, Token: "t", Role: RoleSession}},
		"a session of version 2":  {sent: string(raw(frameHello, `{"version":2,"token":"t","role":"session"}`)), code: FailureVersion},
		"no version":              {sent: string(raw(frameHello, `{"token":"t","role":"run"}`)), code: FailureVersion},
		"version 1 has no hello":  {sent: string(raw(frameHello, `{"version":1,"token":"t","role":"run"}`)), code: FailureVersion},
		"another role":            {sent: string(raw(frameHello, `{"version":2,"token":"t","role":"attach"}`)), code: FailureVersion},
		"too long":                {sent: string(raw(frameHello, `{"token":"`+long+`"}`))},
		"not JSON":                {sent: string(raw(frameHello, "t"))},
		"cut off":                 {sent: string(raw(frameHello, good))[:20]},
		"another frame":           {sent: string(raw(frameCancel, ""))},
		"nothing":                 {},
		"a run of version 1":      {sent: string(raw(frameRun, `{"token":"t","language":"python"}`)), want: Hello{Version: 1, Token: "t", Role: RoleRun}},
		"its start":               {sent: string(raw(frameRun, `{"token":"t","code":"`+long+`"}`)[:maxHello+headerLen]), want: Hello{Version: 1, Token: "t", Role: RoleRun}},
		"its head":                {sent: string(raw(frameRun, `{"token":"t","code":""}`)[:headerLen])},
		"it has no token":         {sent: string(raw(frameRun, `{"language":"python","token":"t"}`)), want: Hello{Version: 1, Role: RoleRun}},
		"its token is none":       {sent: string(raw(frameRun, `{"token":{"token":"t"}}`)), want: Hello{Version: 1, Role: RoleRun}},
		"its token does not end":  {sent: string(raw(frameRun, `{"token":"`+long+`"}`)), want: Hello{Version: 1, Role: RoleRun}},
		"a run that is no object": {sent: string(raw(frameRun, `"token"`)), want: Hello{Version: 1, Role: RoleRun}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := NewServer(&duplex{r: strings.NewReader(test.sent)}).Hello()
			var failure *Failure
			switch errors.As(err, &failure); {
			case test.want != (Hello{}) && (err != nil || got != test.want):
				t.Errorf("the hello is %+v, %v", got, err)
			case test.want == (Hello{}) && err == nil:
				t.Errorf("no error, but the hello %+v", got)
			case test.code != "" && (failure == nil || failure.Code != test.code):
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestVersions: two ends of different versions speak the older one.
func TestVersions(t *testing.T) {
	run := Run{Language: "python", Code: []byte("1"), Limits: generous}
	for name, test := range map[string]struct {
		ready string
		token string // of the run
		hello bool
		// version is that of the hello.
		version int
	}{
		"a runner of version 1": {ready: "", token: "t"},
		"without sessions":      {ready: `{"version":2}`, hello: true, version: 2},
		"of this version":       {ready: `{"version":3}`, hello: true, version: 3},
		"of a later version":    {ready: `{"version":9,"more":[]}`, hello: true, version: 3},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := net.Pipe()
			done := make(chan struct{})
			go func() {
				defer close(done)
				check(t, writeFrame(theirs, frameReady, []byte(test.ready)))
				r := frameReader{r: theirs, max: maxRunFrame}
				kind, payload, err := r.next()
				if test.hello {
					var h Hello
					check(t, err, json.Unmarshal(payload, &h))
					if kind != frameHello || h != (Hello{Version: test.version, Token: "t", Role: RoleRun}) {
						t.Errorf("a frame %q: %s", kind, payload)
					}
					kind, payload, err = r.next()
				}
				var got Run
				check(t, err, json.Unmarshal(payload, &got))
				want := run
				want.Token = test.token
				if kind != frameRun || !reflect.DeepEqual(got, want) {
					t.Errorf("a frame %q: %s", kind, payload)
				}
				check(t, writeJSON(theirs, frameExit, Outcome{Status: execution.StatusSucceeded}))
			}()
			outcome, err := NewClient(ours, "t").Execute(t.Context(), run, &recorder{})
			_ = ours.Close()
			<-done
			if err != nil || outcome.Status != execution.StatusSucceeded {
				t.Errorf("%+v, %v", outcome, err)
			}
		})
	}
}

// TestReadinessThatIsNone: what is no version is no runner.
func TestReadinessThatIsNone(t *testing.T) {
	for _, ready := range []string{"{}", `{"version":0}`, `{"version":"2"}`, "2"} {
		c := NewClient(&script{r: bytes.NewReader(raw(frameReady, ready))}, "t")
		if err := c.Ready(t.Context()); !errors.Is(err, errFrame) {
			t.Errorf("%s: %v", ready, err)
		}
	}
}
