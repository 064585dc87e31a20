package walkthrough

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// Streams come to their end through every proxy on the way, however soon they
// begin.
func TestStreamsReachTheirEnd(t *testing.T) {
	s := newShell(t)
	const clients, each = 6, 40
	var all sync.WaitGroup
	var mu sync.Mutex
	cut := 0
	for range clients {
		all.Go(func() {
			out, err := s.try(fmt.Sprintf("for i in $(seq %d); do %s -w '\n%%{http_code} end\n' || echo cut; done", each, ask("Hi, how are you?")))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			complete := strings.Count(out, "data: [DONE]\n\n\n200 end")
			if complete != each && cut == 0 {
				t.Logf("the first that is not complete is among\n%.4000s", out)
			}
			cut += each - complete
		})
	}
	all.Wait()
	if cut > 0 {
		t.Errorf("%d of %d streams were cut", cut, clients*each)
	}
}
