package demo_test

import (
	"bytes"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/functions/chat/demo"
)

var block = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

func TestReply(t *testing.T) {
	user := func(texts ...string) (m []demo.Message) {
		for i, text := range texts {
			if i > 0 {
				m = append(m, demo.Message{Role: "assistant", Text: "Here is a plot in bash."})
			}
			m = append(m, demo.Message{Role: "user", Text: text})
		}
		return m
	}
	for _, tt := range []struct {
		name         string
		conversation []demo.Message
		language     string // of the one block
		contains     string
	}{
		{"walkthrough: greeting", user("Hi, how are you?"), "", "demo model"},
		{"walkthrough: excuse", user("Write Python code that generates a random excuse for being late to a meeting"), "python", "random.choice"},
		{"excuse, no language", user("I need an excuse!"), "python", "random.choice"},
		{"plot", user("Draw a sine curve, please."), "python", "plt.show()"},
		{"bash", user("show me a bash one-liner"), "bash", "uniq"},
		{"javascript", user("A JavaScript snippet"), "javascript", "console"},
		{"python", user("something in Python"), "python", "print"},
		{"primes", user("print the first prime numbers"), "python", "sieve"},
		{"follow-up in bash", user("Write an excuse generator", "now as a bash one-liner"), "bash", "Sorry I'm late"},
		{"follow-up in node", user("hi", "excuse please", "thanks", "and in Node.js?"), "javascript", "Sorry I'm late"},
		{"follow-up after a plot", user("plot something", "now as a bash one-liner"), "bash", "uniq"},
		{"thanks", user("excuse", "thanks!"), "", "welcome"},
		{"help", user("What can you do?"), "", "PREHEAT_LLM_URL"},
		{"anything else", user("Explain the French revolution"), "text", "PREHEAT_LLM_URL"},
		{"whisper is no greeting", user("this which ship"), "text", "PREHEAT_LLM_URL"},
		{"nobody spoke", nil, "text", "PREHEAT_LLM_URL"},
		{"system prompt only", []demo.Message{{Role: "system", Text: "write python"}}, "text", "PREHEAT_LLM_URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := demo.Reply(tt.conversation)
			blocks := block.FindAllStringSubmatch(got, -1)
			switch {
			case tt.language == "" && strings.Contains(got, "```"):
				t.Error("code in", got)
			case tt.language != "" && (len(blocks) != 1 || blocks[0][1] != tt.language || strings.HasPrefix(got, "```")):
				t.Error("not one explained block of", tt.language, "in", got)
			}
			if !strings.Contains(got, tt.contains) {
				t.Errorf("no %q in %s", tt.contains, got)
			}
			if pieces := demo.Pieces(got); strings.Join(pieces, "") != got || len(pieces) < 15 {
				t.Errorf("pieces %q", pieces)
			}
		})
	}
}

// Every program that the demo model shows must run.
func TestAnswersRun(t *testing.T) {
	interpreters := map[string]string{"python": "python3", "bash": "bash", "javascript": "node"}
	for _, subject := range []string{"excuse", "prime numbers", "something"} {
		for language, interpreter := range interpreters {
			t.Run(subject+" in "+language, func(t *testing.T) {
				if _, err := exec.LookPath(interpreter); err != nil {
					t.Skip(interpreter, "is not installed on this machine")
				}
				reply := demo.Reply([]demo.Message{{Role: "user", Text: subject + " in " + language}})
				blocks := block.FindAllStringSubmatch(reply, -1)
				if len(blocks) != 1 || blocks[0][1] != language {
					t.Fatalf("blocks of %s", reply)
				}
				cmd := exec.Command(interpreter)
				cmd.Stdin = strings.NewReader(blocks[0][2])
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				out, err := cmd.Output()
				if err != nil || len(out) < 10 || stderr.Len() > 0 {
					t.Errorf("%v: %q, %q", err, out, &stderr)
				}
			})
		}
	}
}
