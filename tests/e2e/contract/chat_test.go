package contract

import (
	"net/http"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/openapi"
	"github.com/preheat-dev/preheat/tests/product"
)

const pathChat = "/v1/chat/completions"

func TestChat(t *testing.T) {
	for name, test := range map[string]struct {
		body, media string
		status      int
	}{
		"answer":         {`{"messages": [{"role": "user", "content": "hi"}]}`, execution.MediaJSON, 200},
		"with parts":     {`{"model": null, "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]}`, execution.MediaJSON, 200},
		"not JSON":       {`{`, execution.MediaJSON, 400},
		"no messages":    {`{}`, execution.MediaJSON, 400},
		"unknown model":  {`{"model": "x", "messages": [{"role": "user", "content": "hi"}]}`, execution.MediaJSON, 404},
		"declared as is": {`x`, "text/plain", 415},
	} {
		t.Run(name, func(t *testing.T) {
			post(t, shared, test.status, pathChat, test.body, contentType, test.media)
		})
	}
	_, body := post(t, shared, 200, pathChat, `{"stream": true, "stream_options": {"include_usage": true}, "messages": [{"role": "user", "content": "hi"}]}`)
	events, err := openapi.ParseEvents(body)
	if err != nil || len(events) < 3 || events[len(events)-1].Data != "[DONE]" {
		t.Errorf("%d events, %v", len(events), err)
	}
}

func TestChatWithoutItsServer(t *testing.T) {
	t.Parallel()
	p := product.Start(t, "PREHEAT_LLM_URL=http://127.0.0.1:1", "PREHEAT_LLM_MODEL=m", "PREHEAT_JAVASCRIPT_POOL_SIZE=0", "PREHEAT_POOL_SIZE=1")
	_, body := post(t, p, http.StatusBadGateway, pathChat, `{"messages": []}`)
	if !strings.Contains(string(body), "upstream_unreachable") {
		t.Errorf("%s", body)
	}
	if res, body := do(t, p, http.MethodGet, "/v1/models", nil); res.StatusCode != http.StatusBadGateway {
		t.Errorf("%d: %s", res.StatusCode, body)
	}
	if res, body := do(t, p, http.MethodGet, "/v1/chat/status", nil); res.StatusCode != http.StatusOK || !strings.Contains(string(body), "configured") {
		t.Errorf("%d: %s", res.StatusCode, body)
	}
}
