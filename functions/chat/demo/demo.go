// Package demo is the scripted model that answers when no language model is
// connected. It has a handful of prepared answers, enough to try the product
// out, and says in every other case how to connect a real model. It is a pure
// function of the conversation, random in nothing.
package demo

import (
	"strings"
	"unicode"
)

// Model is the name under which it answers.
const Model = "preheat-demo"

// Message is one message of a conversation.
type Message struct {
	Role string
	Text string
}

// Reply returns the answer to the last message of the user. What that message
// leaves open, such as the subject of "now as a bash one-liner", is taken from
// the messages before it.
func Reply(conversation []Message) string {
	var said []words
	for _, m := range conversation {
		if m.Role == "user" {
			said = append(said, split(m.Text))
		}
	}
	if len(said) == 0 {
		return connect
	}
	last := said[len(said)-1]
	if s := subjectOf(last); s != none {
		return answer(s, languageOf(last))
	}
	if language := languageOf(last); language != "" {
		for i := len(said) - 2; i >= 0; i-- {
			if s := subjectOf(said[i]); s == excuse || s == numbers {
				return answer(s, language)
			}
		}
		return answer(snippet, language)
	}
	switch {
	case last.any("thanks", "thank", "thx", "merci", "cheers"):
		return thanks
	case last.any("hi", "hello", "hey", "hallo", "howdy", "greetings") || last.phrase("how are you") || last.phrase("good morning"):
		return greeting
	case last.any("help", "who", "demo") || last.phrase("what can you do") || last.phrase("what are you"):
		return abilities
	}
	return connect
}

type subject int

const (
	none subject = iota
	excuse
	plot
	numbers
	snippet
)

func subjectOf(w words) subject {
	switch {
	case w.any("excuse", "excuses"):
		return excuse
	case w.any("plot", "chart", "graph", "figure", "matplotlib", "draw", "sine", "curve"):
		return plot
	case w.any("primes", "prime", "fibonacci", "numbers"):
		return numbers
	}
	return none
}

func languageOf(w words) string {
	switch {
	case w.any("bash", "shell", "sh", "one-liner", "oneliner"):
		return "bash"
	case w.any("javascript", "js", "node", "node.js", "nodejs"):
		return "javascript"
	case w.any("python", "py", "python3"):
		return "python"
	}
	return ""
}

func answer(s subject, language string) string {
	switch s {
	case plot:
		return plotPython
	case excuse:
		switch language {
		case "bash":
			return excuseBash
		case "javascript":
			return excuseJavaScript
		}
		return excusePython
	case numbers:
		switch language {
		case "bash":
			return numbersBash
		case "javascript":
			return numbersJavaScript
		}
		return numbersPython
	}
	switch language {
	case "bash":
		return snippetBash
	case "javascript":
		return snippetJavaScript
	}
	return snippetPython
}

// words is a text in lower case, cut into its words.
type words []string

const maxWords = 2000

func split(text string) words {
	w := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '.'
	})
	if len(w) > maxWords {
		w = w[:maxWords]
	}
	for i := range w {
		w[i] = strings.Trim(w[i], ".-")
	}
	return w
}

func (w words) any(of ...string) bool {
	for _, word := range w {
		for _, o := range of {
			if word == o {
				return true
			}
		}
	}
	return false
}

func (w words) phrase(p string) bool {
	return strings.Contains(" "+strings.Join(w, " ")+" ", " "+p+" ")
}

// Pieces cuts text into the small deltas in which a model would stream it.
func Pieces(text string) []string {
	var pieces []string
	start := 0
	for i, r := range text {
		// A piece is a word with the white space before it.
		if unicode.IsSpace(r) && i > start && strings.TrimSpace(text[start:i]) != "" {
			pieces = append(pieces, text[start:i])
			start = i
		}
	}
	if start < len(text) {
		pieces = append(pieces, text[start:])
	}
	return pieces
}
