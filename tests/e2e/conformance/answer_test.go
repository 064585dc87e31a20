package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/cloudevents/sdk-go/v2/binding"
	cloudevent "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/cloudevent/ceheader"
)

// answered describes the answer to a message, with the attributes of the reply
// that show names. What is wrong with a reply whatever the message was fails
// the test.
func (s *suite) answered(t *testing.T, res *http.Response, got []byte, wantID string, show []string) string {
	t.Helper()
	if err := s.responses.CheckResponse(res.Request.Method, "/", res, got); err != nil {
		t.Error(err)
	}
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	text := fmt.Sprint(res.StatusCode)
	switch {
	case res.Header.Get("Ce-Type") != "":
		s.checkReply(t, "CompletedBinary", res, got, wantID)
		text += ", completed, binary"
		for _, name := range show {
			text += fmt.Sprintf(", `%s: %s`", name, res.Header.Get(name))
		}
	case media == execution.MediaCloudEvent:
		s.checkReply(t, "CompletedStructured", res, got, wantID)
		var members map[string]json.RawMessage
		if err := json.Unmarshal(got, &members); err != nil {
			t.Error(err)
		}
		text += ", completed, structured"
		for _, name := range show {
			value := string(members[name])
			if value == "" {
				text += fmt.Sprintf(", no `%s`", name)
				continue
			}
			text += fmt.Sprintf(", `\"%s\": %s`", name, value)
		}
	case media == execution.MediaProblem:
		var p execution.Problem
		if err := json.Unmarshal(got, &p); err != nil {
			t.Error(err)
		}
		if p.Field != "" {
			text += fmt.Sprintf(", names `%s`", p.Field)
		}
		if allow := res.Header.Get("Allow"); allow != "" {
			text += fmt.Sprintf(", `Allow: %s`", allow)
		}
		for _, name := range show {
			if res.Header.Get(name) == "" {
				text += fmt.Sprintf(", no `%s`", name)
			}
		}
	case media == execution.MediaJSON:
		checkHello(t, got)
		text += ", a result, no event"
	case len(got) == 0:
		text += ", no body"
	default:
		t.Errorf("answered with %v %q", res.Header, got)
	}
	return text
}

// checkReply checks what holds for every reply: it is an event by the SDK's
// judgement and by the AsyncAPI document, whose id no other has, whose data is
// the result and whose cause is the request.
func (s *suite) checkReply(t *testing.T, message string, res *http.Response, got []byte, wantID string) {
	t.Helper()
	if err := s.events.CheckMessage(message, res.Header, got); err != nil {
		t.Error(err)
	}
	e, err := sdk.ToEvent(t.Context(), cehttp.NewMessage(res.Header, io.NopCloser(bytes.NewReader(got))))
	if err == nil {
		err = e.Validate()
	}
	if err != nil {
		t.Errorf("by the SDK: %v", err)
		return
	}
	if e.SpecVersion() != cloudevent.CloudEventsVersionV1 || e.Type() != execution.TypeCompleted {
		t.Errorf("version %s, type %s", e.SpecVersion(), e.Type())
	}
	s.replies[e.Source()+" "+e.ID()]++
	cause, _ := e.Extensions()[execution.ExtensionCausationID].(string)
	if message == "CompletedBinary" {
		if cause, _ = ceheader.Decode(cause); res.Header.Get("Ce-Datacontenttype") != "" {
			t.Error("the content type is there twice")
		}
	} else {
		for name := range res.Header {
			if strings.HasPrefix(strings.ToLower(name), "ce-") {
				t.Errorf("structured mode with the header %s", name)
			}
		}
	}
	if cause != wantID {
		t.Errorf("causationid %q instead of %q", cause, wantID)
	}
	checkHello(t, e.Data())
}

func checkHello(t *testing.T, data []byte) {
	t.Helper()
	var r execution.Result
	if err := json.Unmarshal(data, &r); err != nil || r.Stdout != "hello\n" || r.Status != execution.StatusSucceeded {
		t.Errorf("%s, %v", data, err)
	}
}
