package contract

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
)

// TestFilesUpToTheirLimit: what file_bytes allows passes body_bytes.
func TestFilesUpToTheirLimit(t *testing.T) {
	var limits execution.ServerLimits
	shared.Get(t, "/v1/limits", &limits)
	file := func(n int64) execution.Request {
		return execution.Request{Language: "bash", Code: "wc -c < f", Files: []execution.File{
			{Path: "f", Encoding: execution.EncodingBase64, Content: base64.StdEncoding.EncodeToString(make([]byte, n))},
		}}
	}
	if r := shared.Execute(t, file(limits.FileBytes)); r.Stdout != fmt.Sprintln(limits.FileBytes) {
		t.Errorf("%s, %q, %q", r.Status, r.Stdout, r.Stderr)
	}
	p := shared.Problem(t, http.StatusRequestEntityTooLarge, file(limits.FileBytes+1))
	if want := fmt.Sprintf("%d bytes together (file_bytes)", limits.FileBytes); !strings.Contains(p.Detail, want) || p.Field != "files[0].content" {
		t.Errorf("%+v does not say %q", p, want)
	}
}

// TestOneBodyLimit: whatever size a body has beyond the limit, and by whatever way
// it comes, the error names the limit that GET /v1/limits shows.
func TestOneBodyLimit(t *testing.T) {
	var limits execution.ServerLimits
	shared.Get(t, "/v1/limits", &limits)
	want := fmt.Sprintf("%d bytes (body_bytes)", limits.BodyBytes)
	for _, path := range []string{pathExecute, "/"} {
		for _, size := range []int64{limits.BodyBytes + 1, limits.BodyBytes + 1<<20, 3 * limits.BodyBytes} {
			body := `{"language":"bash","code":"echo ran"` + strings.Repeat(" ", int(size-37)) + "}"
			_, text := post(t, shared, http.StatusRequestEntityTooLarge, path, body)
			var p execution.Problem
			if err := json.Unmarshal(text, &p); err != nil || !strings.Contains(p.Detail, want) {
				t.Errorf("POST %s of %d bytes: %q does not say %q", path, len(body), p.Detail, want)
			}
		}
	}
	event := `{"specversion":"1.0","id":"limit","source":"/s","type":"t","data":` + strings.Repeat(" ", int(2*limits.BodyBytes)+1<<20) + `{}}`
	_, text := post(t, shared, http.StatusRequestEntityTooLarge, "/", event, contentType, execution.MediaCloudEvent)
	if want := fmt.Sprintf("%d (body_bytes)", limits.BodyBytes); !strings.Contains(string(text), want) {
		t.Errorf("an event: %.300s does not say %q", text, want)
	}
}
