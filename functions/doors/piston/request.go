package piston

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"mime"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/preheat-dev/preheat/api/execution"
)

// badRequest is what is wrong with a request, in Piston's words.
type badRequest struct{ message string }

func (b *badRequest) Error() string { return b.message }

func bad(format string, args ...any) error { return &badRequest{fmt.Sprintf(format, args...)} }

func isPlain(contentType string) bool {
	media, _, _ := mime.ParseMediaType(contentType)
	return media == "text/plain"
}

// job is a request to run a program.
type job struct {
	language, version string
	// program is the first file that is text, others lie beside it.
	program string
	others  []execution.File
	stdin   string
	args    []string
	// timeout is in milliseconds, memory in bytes; 0 is the server's default.
	timeout, memory float64
}

// wire is a request as it comes. Members that are not here have no effect.
type wire struct {
	Language jsontext.Value `json:"language"`
	Version  jsontext.Value `json:"version"`
	Files    jsontext.Value `json:"files"`
	Stdin    jsontext.Value `json:"stdin"`
	Args     jsontext.Value `json:"args"`
	Timeout  jsontext.Value `json:"run_timeout"`
	Memory   jsontext.Value `json:"run_memory_limit"`
}

type wireFile struct {
	Name     jsontext.Value `json:"name"`
	Content  jsontext.Value `json:"content"`
	Encoding jsontext.Value `json:"encoding"`
}

func decode(body []byte) (*job, error) {
	var w wire
	if jsontext.Value(body).Kind() != '{' {
		return nil, bad("the request is not a JSON object")
	}
	if err := json.Unmarshal(body, &w); err != nil {
		return nil, bad("the request is not valid JSON")
	}
	j := new(job)
	switch {
	case !required(w.Language, &j.language):
		return nil, bad("language is required as a string")
	case !required(w.Version, &j.version):
		return nil, bad("version is required as a string")
	case !optional(w.Stdin, '"', &j.stdin):
		return nil, bad("if specified, stdin must be a string")
	case !optional(w.Args, '[', &j.args):
		return nil, bad("if specified, args must be an array of strings")
	case !optional(w.Timeout, '0', &j.timeout):
		return nil, bad("if specified, run_timeout must be a number")
	case !optional(w.Memory, '0', &j.memory):
		return nil, bad("if specified, run_memory_limit must be a number")
	case j.timeout < 0:
		return nil, bad("run_timeout must not be negative")
	}
	if j.memory < 0 {
		j.memory = 0 // none: the server's own
	}
	return j, j.files(w.Files)
}

func required(v jsontext.Value, to *string) bool {
	return v.Kind() == '"' && json.Unmarshal(v, to) == nil && *to != ""
}

// optional takes over a value that is there. null stands for none.
func optional(v jsontext.Value, kind jsontext.Kind, to any) bool {
	return len(v) == 0 || v.Kind() == 'n' || v.Kind() == kind && json.Unmarshal(v, to) == nil
}

// files takes over the files: the program, and those beside it.
func (j *job) files(v jsontext.Value) error {
	var files []wireFile
	if v.Kind() != '[' || json.Unmarshal(v, &files) != nil || len(files) == 0 {
		return bad("files is required as an array")
	}
	program := -1
	for i, w := range files {
		var name, content, encoding string
		switch {
		case w.Content.Kind() != '"' || json.Unmarshal(w.Content, &content) != nil:
			return bad("files[%d].content is required as a string", i)
		case !optional(w.Name, '"', &name):
			return bad("files[%d].name must be a string", i)
		case !optional(w.Encoding, '"', &encoding):
			return bad("files[%d].encoding must be utf8, base64 or hex", i)
		}
		text := encoding == "" || encoding == "utf8"
		if text && program < 0 {
			program, j.program = i, content
			continue
		}
		f := execution.File{Path: name, Content: content, Encoding: execution.EncodingBase64}
		switch encoding {
		case "", "utf8":
			f.Encoding = execution.EncodingUTF8
		case "base64":
		case "hex":
			data, err := hex.DecodeString(content)
			if err != nil {
				return bad("files[%d].content is not hex", i)
			}
			f.Content = base64.StdEncoding.EncodeToString(data)
		default:
			return bad("files[%d].encoding must be utf8, base64 or hex", i)
		}
		if f.Path == "" {
			f.Path = fmt.Sprintf("file%d.code", i)
		}
		j.others = append(j.others, f)
	}
	if program < 0 {
		return bad("files must include at least one utf8 encoded file")
	}
	return nil
}

func (j *job) request(r runtime) execution.Request {
	return execution.Request{
		Language: r.Language, Code: j.program, Stdin: j.stdin, Args: j.args, Files: j.others,
		Limits: execution.Limits{TimeoutSeconds: j.timeout / 1000, MemoryBytes: int64(j.memory)},
	}
}

// renamed is what a problem says, with the names that Piston's clients know and
// when to come again, which they do not read elsewhere.
func renamed(p *execution.Problem) string {
	text := p.Error()
	field, rest, _ := strings.Cut(p.Field, "[")
	name, ok := map[string]string{"limits.timeout_seconds": "run_timeout", "limits.memory_bytes": "run_memory_limit", "code": "the program"}[field]
	switch {
	case ok:
		text = name + ": " + p.Detail
	case field == "files" && rest != "":
		text = "a file beside the program: " + p.Detail
	}
	if p.RetryAfterSeconds > 0 {
		text += fmt.Sprintf(" Try again in %d seconds.", p.RetryAfterSeconds)
	}
	return text
}
