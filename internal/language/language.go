// Package language is the one list of the languages of Preheat's sandbox image.
// What validates requests, sets pools up and runs programs reads it here. It is
// data without behaviour beyond lookups.
package language

import (
	"slices"
	"strings"
)

// Language is how programs of one language are named and run.
type Language struct {
	// Name is what a request asks for, in lower case.
	Name string `json:"name"`
	// Aliases are other names for it, in lower case.
	Aliases []string `json:"aliases,omitempty"`
	// Script is the program's file in the working directory.
	Script string `json:"script"`
	// Reserved are further names in the working directory that the harness
	// uses: no input file may have them.
	Reserved []string `json:"reserved,omitempty"`
	// Interpreter is the path of the binary.
	Interpreter string `json:"interpreter"`
	// Cold starts a program that is there, Warm an interpreter that waits for
	// one; Warm is empty where there is nothing to start ahead.
	Cold []string `json:"cold"`
	Warm []string `json:"warm,omitempty"`
	// Session starts an interpreter that serves the cells of a session, where
	// none is warm; it is empty for a language that keeps no sessions.
	Session []string `json:"session,omitempty"`
	// Rich says that the interpreter's harness collects rich results.
	Rich bool `json:"rich,omitempty"`
	// Startup are prefixes of environment names that an interpreter or the
	// loader looks at before the harness could set them.
	Startup []string `json:"startup,omitempty"`
}

// Names lists the languages.
func Names() []string {
	var names []string
	for _, l := range All() {
		names = append(names, l.Name)
	}
	return names
}

// Find returns the language of a name. It does not look at aliases: pools
// decide what they mean.
func Find(name string) (Language, bool) {
	all := All()
	i := slices.IndexFunc(all, func(l Language) bool { return l.Name == name })
	if i < 0 {
		return Language{}, false
	}
	return all[i], true
}

// IsReserved reports whether a program of some language has name as its own in
// the working directory, so that no input file can.
func IsReserved(name string) bool {
	return slices.ContainsFunc(All(), func(l Language) bool {
		return l.Script == name || slices.Contains(l.Reserved, name)
	})
}

// TakesWarm reports whether a waiting interpreter can run a program with env
// just as one that is started with env.
func (l Language) TakesWarm(env map[string]string) bool {
	for name := range env {
		if slices.ContainsFunc(l.Startup, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			return false
		}
	}
	return true
}
