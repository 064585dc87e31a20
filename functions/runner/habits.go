package runner

import (
	"bytes"

	"github.com/preheat-dev/preheat/internal/language"
)

// habits are notes on what is in a program by habit, and no part of it. It runs as
// it is: where bash takes the CR of its lines as text, bash main.sh does so, too.
func habits(lang language.Language, code []byte) []string {
	var notes []string
	if bytes.HasPrefix(bytes.TrimSpace(code), []byte("```")) {
		notes = append(notes, "the program begins with ```, as a code block in Markdown does: that is no part of it")
	}
	first, _, _ := bytes.Cut(code, []byte("\n"))
	if lang.Name == "bash" && bytes.HasSuffix(first, []byte("\r")) {
		notes = append(notes, "the program's lines end in CR LF, as on Windows: bash takes each CR as part of its line; with LF alone it runs as it was meant")
	}
	return notes
}
