package contract

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"

	"github.com/preheat-dev/preheat/api/execution"
)

// binaryEvent is the header of an event in binary mode.
func binaryEvent(id string, more ...string) []string {
	return append([]string{
		"Ce-Specversion", "1.0", "Ce-Id", id, "Ce-Source", "/test", "Ce-Type", execution.TypeRequested, contentType, execution.MediaJSON,
	}, more...)
}

const echo = `{"language": "bash", "code": "echo hello"}`

// CASES.md W4 and W5: an event is answered in kind, whatever it looks like.
func TestEvents(t *testing.T) {
	quoted, err := json.Marshal(echo)
	if err != nil {
		t.Fatal(err)
	}
	structured := func(members string) string {
		return `{"specversion": "1.0", "id": "7", "source": "/test", "type": "` + execution.TypeRequested + `", "mine": "x", ` + members + `}`
	}
	for name, test := range map[string]struct {
		body   string
		header []string
	}{
		"binary":                   {echo, binaryEvent("7", "Ce-Mine", "x")},
		"binary, other type":       {echo, binaryEvent("7", "Ce-Mine", "x", "Ce-Type", "my.type")},
		"type and source swapped":  {echo, binaryEvent("7", "Ce-Mine", "x", "Ce-Type", "/test", "Ce-Source", execution.TypeRequested)},
		"binary, encoded twice":    {string(quoted), binaryEvent("7", "Ce-Mine", "x")},
		"binary, text":             {echo, binaryEvent("7", "Ce-Mine", "x", contentType, "text/plain")},
		"structured":               {structured(`"data": ` + echo), []string{contentType, execution.MediaCloudEvent}},
		"structured, string":       {structured(`"data": ` + string(quoted)), []string{contentType, execution.MediaCloudEvent}},
		"structured, text":         {structured(`"datacontenttype": "text/plain", "data": ` + string(quoted)), []string{contentType, execution.MediaCloudEvent}},
		"structured, base64":       {structured(`"data_base64": "` + base64.StdEncoding.EncodeToString([]byte(echo)) + `"`), []string{contentType, execution.MediaCloudEvent}},
		"structured, with headers": {structured(`"data": ` + echo), binaryEvent("8", contentType, execution.MediaCloudEvent)},
	} {
		t.Run(name, func(t *testing.T) {
			res, body := post(t, shared, 200, "/", test.body, test.header...)
			attributes := map[string]string{}
			data := body
			if res.Header.Get(contentType) == execution.MediaCloudEvent {
				var e map[string]json.RawMessage
				if err := json.Unmarshal(body, &e); err != nil {
					t.Fatal(err)
				}
				for _, name := range []string{"type", "causationid", "mine"} {
					var text string
					if err := json.Unmarshal(e[name], &text); err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					attributes[name] = text
				}
				data = e["data"]
			} else {
				for _, name := range []string{"type", "causationid", "mine"} {
					attributes[name] = res.Header.Get("Ce-" + name)
				}
			}
			wantStructured := test.header[len(test.header)-1] == execution.MediaCloudEvent
			if (res.Header.Get(contentType) == execution.MediaCloudEvent) != wantStructured {
				t.Errorf("answered as %s", res.Header.Get(contentType))
			}
			if attributes["type"] != execution.TypeCompleted || attributes["causationid"] != "7" || attributes["mine"] != "x" {
				t.Errorf("attributes %v", attributes)
			}
			checkHello(t, data)
		})
	}
}

func checkHello(t *testing.T, data []byte) {
	t.Helper()
	var r execution.Result
	if err := json.Unmarshal(data, &r); err != nil || r.Stdout != "hello\n" || r.Status != execution.StatusSucceeded {
		t.Errorf("%s, %v", data, err)
	}
}

// CASES.md W5: plain JSON is answered with plain JSON, at the root, too.
func TestPlainJSONAtTheRoot(t *testing.T) {
	quoted, err := json.Marshal(echo)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{echo, string(quoted)} {
		res, got := post(t, shared, 200, "/", body)
		if res.Header.Get("Ce-Id") != "" {
			t.Error("an event answers what was none")
		}
		checkHello(t, got)
	}
	_, got := post(t, shared, 200, "/", echo, accept, execution.MediaSSE)
	checkStream(t, ran{status: execution.StatusSucceeded, events: "start stdout exit"}, got)
}

// The SDK's own client understands the answer.
func TestEventClient(t *testing.T) {
	client, err := cloudevents.NewClientHTTP(cloudevents.WithTarget(shared.URL))
	if err != nil {
		t.Fatal(err)
	}
	e := cloudevents.NewEvent()
	// The SDK's client takes and gives headers as they are, so that a value
	// with a space, say, would come back to it with percent encoding.
	e.SetID("a/b?c=d&e#f")
	e.SetSource("/test")
	e.SetType(execution.TypeRequested)
	if err := e.SetData(execution.MediaJSON, json.RawMessage(echo)); err != nil {
		t.Fatal(err)
	}
	answer, result := client.Request(t.Context(), e)
	if !cloudevents.IsACK(result) || answer == nil {
		t.Fatal(result)
	}
	if answer.Type() != execution.TypeCompleted || answer.Extensions()[execution.ExtensionCausationID] != e.ID() || answer.ID() == e.ID() {
		t.Errorf("%v", answer)
	}
	checkHello(t, answer.Data())
}

// An event may ask for a stream.
func TestEventAsStream(t *testing.T) {
	_, body := post(t, shared, 200, "/", echo, binaryEvent("1", accept, execution.MediaSSE)...)
	checkStream(t, ran{status: execution.StatusSucceeded, events: "start stdout exit"}, body)
}

// CASES.md W7: a program that fails is a completed event, a request that is no
// request a problem that Knative does not send again.
func TestEventsThatFail(t *testing.T) {
	for body, want := range map[string]execution.Status{
		`{"language": "python", "code": "1/0"}`:                                                        execution.StatusFailed,
		`{"language": "python", "code": "if"}`:                                                         execution.StatusFailed,
		`{"language": "bash", "code": "sleep 9", "limits": {"timeout_seconds": 0.1}}`:                  execution.StatusTimedOut,
		`{"language": "bash", "code": "yes", "limits": {"total_output_bytes": 10, "output_bytes": 5}}`: execution.StatusOutputLimit,
	} {
		res, got := post(t, shared, 200, "/", body, binaryEvent("1")...)
		var r execution.Result
		if err := json.Unmarshal(got, &r); err != nil || r.Status != want || res.Header.Get("Ce-Type") != execution.TypeCompleted {
			t.Errorf("%s: %s", body, got)
		}
	}
	for body, status := range map[string]int{`{"code": `: 400, ``: 400, `"x"`: 400, `[]`: 400, `{"language": "python", "code": ""}`: 422, `{"languag": "python"}`: 422} {
		post(t, shared, status, "/", body, binaryEvent("1")...)
	}
	post(t, shared, 400, "/", `{"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "data_base64": 1}`, contentType, execution.MediaCloudEvent)
	post(t, shared, 415, "/", `[{"specversion": "1.0"}]`, contentType, "application/cloudevents-batch+json")
	post(t, shared, 415, "/", `x`, contentType, "application/cloudevents+avro")
	post(t, shared, 415, "/", echo, binaryEvent("1", "Content-Encoding", "gzip")...)
}

// CASES.md W8: a completed event that comes back is taken, without an answer
// that could come back once more.
func TestCompletedEventComesBack(t *testing.T) {
	res, body := post(t, shared, 200, "/", echo, binaryEvent("1")...)
	var back []string
	for _, name := range []string{"Ce-Specversion", "Ce-Id", "Ce-Source", "Ce-Type", "Ce-Subject", "Ce-Time", "Ce-Causationid", contentType} {
		back = append(back, name, res.Header.Get(name))
	}
	before := claimsOf(t)
	res, body = post(t, shared, http.StatusAccepted, "/", string(body), back...)
	if len(body) > 0 || res.Header.Get("Ce-Type") != "" || res.Header.Get(contentType) != "" {
		t.Errorf("answered with %v %q", res.Header, body)
	}
	_, body = post(t, shared, 200, "/", `{"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "data": `+echo+`}`, contentType, execution.MediaCloudEvent)
	post(t, shared, http.StatusAccepted, "/", string(body), contentType, execution.MediaCloudEvent)
	if after := claimsOf(t); after != before+1 {
		t.Errorf("%d executions instead of 1", after-before)
	}
}

// claimsOf counts the executions that the shared program has begun.
func claimsOf(t *testing.T) int {
	t.Helper()
	_, body := do(t, shared, http.MethodGet, "/metrics", nil)
	total := 0
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "preheat_claim_seconds_count") {
			n, err := strconv.Atoi(strings.TrimSpace(line[strings.LastIndex(line, " "):]))
			if err != nil {
				t.Fatal(err)
			}
			total += n
		}
	}
	return total
}

// I10, CASES.md W6: an event that is delivered again does not run its code
// again, neither while it runs nor after the end.
func TestI10ARedeliveredEventRunsOnce(t *testing.T) {
	slow := `{"language": "bash", "code": "sleep 0.5; echo hello"}`
	header := binaryEvent("again", "Ce-Source", "/redelivery")
	type answer struct{ id, sandbox string }
	answers := make([]answer, 6)
	deliver := func(i int) {
		res, body, err := shared.Do(t.Context(), "/", slow, header...)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("delivery %d: %v, %s", i, err, body)
			return
		}
		answers[i] = answer{res.Header.Get("Ce-Id"), res.Header.Get("Ce-Subject")}
	}
	var wg sync.WaitGroup
	for i := range len(answers) - 1 {
		wg.Go(func() { deliver(i) })
	}
	wg.Wait()
	deliver(len(answers) - 1)
	for i, a := range answers {
		if a != answers[0] || a.sandbox == "" {
			t.Errorf("delivery %d was answered by %v, the first by %v", i, a, answers[0])
		}
	}
	_, body := post(t, shared, 200, "/", echo, header...)
	checkHello(t, body)
	res, _ := post(t, shared, 200, "/", slow, binaryEvent("another", "Ce-Source", "/redelivery")...)
	if res.Header.Get("Ce-Subject") == answers[0].sandbox {
		t.Error("another event has the same answer")
	}
}

// TestI10DirectDelivery: an event whose sender waits for it is answered once and
// runs once; only a header says so, and no attribute does.
func TestI10DirectDelivery(t *testing.T) {
	direct := func(id string, more ...string) []string {
		return binaryEvent(id, append([]string{execution.HeaderDelivery, execution.DeliveryDirect}, more...)...)
	}
	res, _ := post(t, shared, http.StatusOK, "/", echo, direct("direct-1", "Ce-Mine", "x")...)
	if res.Header.Get("Ce-Causationid") != "direct-1" || res.Header.Get("Ce-Mine") != "x" {
		t.Errorf("the answer has %v", res.Header)
	}
	post(t, shared, http.StatusGone, "/", echo, direct("direct-1")...)
	chats := binaryEvent("direct-2", "Ce-Source", "/preheat/chat")
	first, _ := post(t, shared, http.StatusOK, "/", echo, chats...)
	second, _ := post(t, shared, http.StatusOK, "/", echo, append(chats, "Ce-Yours", "y")...)
	if first.Header.Get("Ce-Id") != second.Header.Get("Ce-Id") || second.Header.Get("Ce-Yours") != "y" {
		t.Errorf("two deliveries of an event with chat's source: %v and %v", first.Header, second.Header)
	}
}
