package piston

import (
	"context"
	"errors"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
)

// What is wrong with a request is said in Piston's words.
func TestDecodeNamesWhatIsWrong(t *testing.T) {
	for body, want := range map[string]string{
		`[]`:                                  "the request is not a JSON object",
		`{"language":"python"`:                "the request is not valid JSON",
		`{}`:                                  "language is required as a string",
		`{"language":3}`:                      "language is required as a string",
		`{"language":"python"}`:               "version is required as a string",
		`{"language":"python","version":"*"}`: "files is required as an array",
		`{"language":"python","version":"*","files":[]}`:                                                   "files is required as an array",
		`{"language":"python","version":"*","files":[{"name":"x"}]}`:                                       "files[0].content is required as a string",
		`{"language":"python","version":"*","files":[{"content":"","encoding":"base64"}]}`:                 "files must include at least one utf8 encoded file",
		`{"language":"python","version":"*","files":[{"content":""},{"content":"zz","encoding":"hex"}]}`:   "files[1].content is not hex",
		`{"language":"python","version":"*","files":[{"content":""},{"content":"zz","encoding":"rot13"}]}`: "files[1].encoding must be utf8, base64 or hex",
		`{"language":"python","version":"*","stdin":3,"files":[{"content":""}]}`:                           "if specified, stdin must be a string",
		`{"language":"python","version":"*","args":["a",3],"files":[{"content":""}]}`:                      "if specified, args must be an array of strings",
		`{"language":"python","version":"*","run_timeout":"3s","files":[{"content":""}]}`:                  "if specified, run_timeout must be a number",
		`{"language":"python","version":"*","run_timeout":-1,"files":[{"content":""}]}`:                    "run_timeout must not be negative",
		`{"language":"python","version":"*","run_memory_limit":"all","files":[{"content":""}]}`:            "if specified, run_memory_limit must be a number",
	} {
		_, err := decode([]byte(body))
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// The first file that is text is the program, limits of nothing are the server's.
func TestDecode(t *testing.T) {
	j, err := decode([]byte(`{"language":"py","version":"*","unknown":1,"stdin":null,"args":null,"run_timeout":1500,"run_memory_limit":-1,"compile_timeout":1,
		"files":[{"name":"data.bin","content":"00ff","encoding":"hex"},{"name":"main.py","content":"print(1)"},{"content":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r := j.request(runtime{Language: "python"})
	if r.Language != "python" || r.Code != "print(1)" || r.Limits != (execution.Limits{TimeoutSeconds: 1.5}) || len(r.Files) != 2 {
		t.Errorf("%+v", r)
	}
	if f := r.Files[0]; f != (execution.File{Path: "data.bin", Content: "AP8=", Encoding: execution.EncodingBase64}) {
		t.Errorf("%+v", f)
	}
	if f := r.Files[1]; f.Path != "file2.code" || f.Content != "x" {
		t.Errorf("%+v", f)
	}
}

func TestRuntimesAreFoundByRange(t *testing.T) {
	reads := 0
	r := newRuntimes(func(context.Context) ([]execution.Language, error) {
		reads++
		return []execution.Language{{Name: "python", Version: "3.13.5", Aliases: []string{"py"}}, {Name: "odd", Version: "next"}}, nil
	})
	for _, test := range []struct {
		name, version, want string
	}{
		{"python", "*", "python"}, {"py", "x", "python"}, {"python", "3.13.5", "python"}, {"python", "3.x", "python"}, {"python", "^3.10.0", "python"},
		{"python", ">=3", "python"}, {"odd", "*", "odd"}, {"python", "2.x", ""}, {"python", "latest", ""}, {"cobol", "*", ""},
	} {
		got, err := r.find(t.Context(), test.name, test.version)
		var unknown *badRequest
		if got.Language != test.want || (test.want == "") != errors.As(err, &unknown) {
			t.Errorf("%s %s: %+v, %v", test.name, test.version, got, err)
		}
	}
	if reads != 1 {
		t.Errorf("the languages were read %d times", reads)
	}
}
