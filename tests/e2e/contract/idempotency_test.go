package contract

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
)

const unique = `{"language": "python", "code": "import uuid; print(uuid.uuid4())"}`

// I10: a request with a key runs once, however often it comes and at once.
func TestI10IdempotencyKey(t *testing.T) {
	for _, path := range []string{pathExecute, "/"} {
		var once sync.WaitGroup
		var mu sync.Mutex
		answers := map[string]int{}
		for range 4 {
			once.Go(func() {
				_, body := do(t, shared, http.MethodPost, path, strings.NewReader(unique), contentType, execution.MediaJSON, execution.HeaderIdempotencyKey, "key of "+path)
				mu.Lock()
				defer mu.Unlock()
				answers[string(body)]++
			})
		}
		once.Wait()
		if len(answers) != 1 {
			t.Errorf("%s: %v", path, answers)
		}
		for answer := range answers {
			if !strings.Contains(answer, `"status":"succeeded"`) {
				t.Errorf("%s: %s", path, answer)
			}
		}
		_, body := post(t, shared, 422, path, `{"language": "bash", "code": "echo other"}`, execution.HeaderIdempotencyKey, "key of "+path)
		if !strings.Contains(string(body), `"field":"Idempotency-Key"`) {
			t.Errorf("%s: %s", path, body)
		}
	}
	_, one := post(t, shared, 200, pathExecute, unique, execution.HeaderIdempotencyKey, "a")
	_, two := post(t, shared, 200, pathExecute, unique, execution.HeaderIdempotencyKey, "b")
	_, none := post(t, shared, 200, pathExecute, unique)
	if string(one) == string(two) || string(two) == string(none) {
		t.Errorf("another key, or none, got the same answer: %s", two)
	}
}

func TestIdempotencyKeyThatIsRefused(t *testing.T) {
	for name, header := range map[string][]string{
		"long": {execution.HeaderIdempotencyKey, strings.Repeat("k", 256)}, "not ASCII": {execution.HeaderIdempotencyKey, "ö"},
		"stream": {execution.HeaderIdempotencyKey, "k", accept, execution.MediaSSE},
	} {
		if _, body := post(t, shared, 422, pathExecute, unique, header...); !strings.Contains(string(body), `"field":"Idempotency-Key"`) {
			t.Errorf("%s: %s", name, body)
		}
	}
}

// A client that comes again by itself for the rest of a stream runs nothing.
func TestStreamsAreNotResumed(t *testing.T) {
	for _, path := range []string{pathExecute, "/"} {
		_, body := post(t, shared, 200, path, unique, accept, execution.MediaSSE)
		for i, event := range []string{"start", "stdout", "exit"} {
			if !strings.Contains(string(body), fmt.Sprintf("id: %d\nevent: %s\n", i+1, event)) {
				t.Errorf("%s: no %s with its id in %s", path, event, body)
			}
		}
		post(t, shared, 204, path, unique, accept, execution.MediaSSE, execution.HeaderLastEventID, "3")
		post(t, shared, 200, path, unique, execution.HeaderLastEventID, "3")
	}
}
