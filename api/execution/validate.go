package execution

import (
	"encoding/base64"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/preheat-dev/preheat/internal/language"
)

const (
	maxArgs = 1000
	maxEnv  = 1000
	// maxString is the kernel's bound on one argument or environment entry
	// (MAX_ARG_STRLEN, 128 KiB with the closing NUL).
	maxString = 128<<10 - 1
	// maxStrings bounds all of them together; the kernel takes a quarter of
	// the stack limit, 2 MiB, for both (execve(2)).
	maxStrings = 1 << 20
	maxPath    = 1024
	maxName    = 255
	maxFolders = 32 // above a file; the runner goes no deeper
)

// Program is a valid Request with everything filled in and decoded.
type Program struct {
	Language string
	Code     []byte
	Stdin    []byte
	Args     []string
	Env      map[string]string
	Files    []ProgramFile
	Limits   Limits
	Pool     string
}

// ProgramFile is an input file.
type ProgramFile struct {
	// Path is relative, clean and stays inside the working directory.
	Path    string
	Content []byte
}

// Validate checks r against what the server offers and returns it ready to
// run, or a problem that names the first field that is wrong.
func (r *Request) Validate(languages []Language, limits ServerLimits) (*Program, *Problem) {
	p := &Program{Code: []byte(r.Code), Args: r.Args, Env: r.Env, Pool: r.Pool}
	if strings.TrimSpace(r.Code) == "" {
		return nil, Invalid("code", "The program is empty.")
	}
	var problem *Problem
	if p.Language, problem = findLanguage(r.Language, languages); problem != nil {
		return nil, problem
	}
	if problem = checkPool(r.Pool, p.Language, languages); problem != nil {
		return nil, problem
	}
	if p.Stdin, problem = decodeStdin(r); problem != nil {
		return nil, problem
	}
	if problem = checkStrings(r.Args, r.Env); problem != nil {
		return nil, problem
	}
	if p.Files, problem = decodeFiles(r.Files, limits); problem != nil {
		return nil, problem
	}
	if p.Limits, problem = limits.resolve(r.Limits); problem != nil {
		return nil, problem
	}
	return p, nil
}

func findLanguage(name string, languages []Language) (string, *Problem) {
	if name == "" {
		return "", Invalid("language", "The language is missing.")
	}
	lower := strings.ToLower(name) // as all names and aliases are
	var names []string
	for _, l := range languages {
		if l.Name == lower || slices.Contains(l.Aliases, lower) {
			return l.Name, nil
		}
		names = append(names, l.Name)
	}
	p := NewProblem(ProblemNotFound, "There is no language %q; there are: %s.", clip(name), strings.Join(names, ", "))
	p.Field = "language"
	return "", p
}

func checkPool(name, lang string, languages []Language) *Problem {
	if name == "" {
		return nil
	}
	p := NewProblem(ProblemNotFound, "There is no pool %q.", clip(name))
	p.Field = "pool"
	for _, l := range languages {
		switch {
		case !slices.Contains(l.Pools, name):
		case l.Name == lang:
			return nil
		default:
			p = NewProblem(ProblemNotFound, "The pool %q does not offer the language %q.", name, lang)
			p.Field = "language"
		}
	}
	return p
}

func checkStrings(args []string, env map[string]string) *Problem {
	if len(args) > maxArgs {
		return Invalid("args", "There may be %d arguments at most.", maxArgs)
	}
	if len(env) > maxEnv {
		return Invalid("env", "There may be %d variables at most.", maxEnv)
	}
	argBytes, envBytes := 0, 0
	for i, a := range args {
		if strings.ContainsRune(a, 0) || len(a) > maxString {
			return Invalid(fmt.Sprintf("args[%d]", i), "An argument has no NUL and at most %d bytes.", maxString)
		}
		argBytes += len(a) + 1
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		field := "env." + clip(name)
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			return Invalid(field, "A variable's name is not empty and has neither '=' nor NUL.")
		case strings.HasPrefix(name, "_PREHEAT") || strings.HasPrefix(name, "PREHEAT_"):
			return Invalid(field, "Names that begin with PREHEAT_ or _PREHEAT are reserved.")
		case strings.ContainsRune(env[name], 0) || len(name)+len(env[name]) >= maxString:
			return Invalid(field, "A variable's value has no NUL and at most %d bytes.", maxString)
		}
		envBytes += len(name) + len(env[name]) + 2
	}
	if argBytes+envBytes > maxStrings {
		field := "args"
		if envBytes > argBytes {
			field = "env"
		}
		return Invalid(field, "Arguments and variables have more than %d bytes together.", maxStrings)
	}
	return nil
}

func decodeStdin(r *Request) ([]byte, *Problem) {
	if r.StdinBase64 == "" {
		return []byte(r.Stdin), nil
	}
	if r.Stdin != "" {
		return nil, Invalid("stdin_base64", "Standard input is given as stdin, too: one of them has to go.")
	}
	stdin, err := base64.StdEncoding.Strict().DecodeString(r.StdinBase64)
	if err != nil {
		return nil, Invalid("stdin_base64", "Standard input is not base64.")
	}
	return stdin, nil
}

func decodeFiles(files []File, limits ServerLimits) ([]ProgramFile, *Problem) {
	if len(files) > limits.Files {
		return nil, Invalid("files", "There may be %d files at most (files).", limits.Files)
	}
	seen := map[string]bool{} // true: a file, false: a folder
	decoded := make([]ProgramFile, 0, len(files))
	left := limits.FileBytes
	for i, f := range files {
		field := fmt.Sprintf("files[%d]", i)
		if wrong := checkPath(f.Path, seen); wrong != "" {
			return nil, Invalid(field+".path", "%s", wrong)
		}
		content := []byte(f.Content)
		switch strings.ToLower(f.Encoding) {
		case "", EncodingUTF8, "utf8":
		case EncodingBase64:
			var err error
			if content, err = base64.StdEncoding.Strict().DecodeString(f.Content); err != nil {
				return nil, Invalid(field+".content", "The content is not base64.")
			}
		default:
			return nil, Invalid(field+".encoding", "The encoding is %q or %q.", EncodingUTF8, EncodingBase64)
		}
		if left -= int64(len(content)); left < 0 {
			p := NewProblem(ProblemTooLarge, "The files have more than %d bytes together (file_bytes).", limits.FileBytes)
			p.Field = field + ".content"
			return nil, p
		}
		decoded = append(decoded, ProgramFile{Path: f.Path, Content: content})
	}
	return decoded, nil
}

// checkLocation says what is wrong with a path below the working directory.
func checkLocation(p string) string {
	switch {
	case p == "":
		return "The path is empty."
	case len(p) > maxPath:
		return fmt.Sprintf("The path has more than %d bytes.", maxPath)
	case strings.Count(p, "/") > maxFolders:
		return fmt.Sprintf("The file is more than %d folders deep.", maxFolders)
	case strings.ContainsRune(p, 0) || !utf8.ValidString(p):
		return "The path has NUL or is not UTF-8."
	case path.IsAbs(p):
		return "The path must be relative."
	case path.Clean(p) != p || p == "." || p == ".." || strings.HasPrefix(p, "../"):
		return "The path must stay inside the working directory, without '.', '..' and empty parts."
	case slices.ContainsFunc(strings.Split(p, "/"), func(part string) bool { return len(part) > maxName }):
		return fmt.Sprintf("A part of the path has more than %d bytes.", maxName)
	}
	return ""
}

// checkPath says what is wrong with a file's path, and notes it in seen.
func checkPath(p string, seen map[string]bool) string {
	if wrong := checkLocation(p); wrong != "" {
		return wrong
	}
	if isScript(p) {
		return "This is the name of the program itself."
	}
	if _, taken := seen[p]; taken {
		return "Another entry has this path, or needs it as a folder."
	}
	seen[p] = true
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if seen[dir] {
			return fmt.Sprintf("Another entry has %q as a file.", clip(dir))
		}
		seen[dir] = false
	}
	return ""
}

// isScript reports whether a path is one that the runner writes a program to,
// or lies below such a one.
func isScript(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	return language.IsReserved(first)
}

// clip shortens what a problem quotes from a request.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
