package execution_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
)

func languages() []execution.Language {
	return []execution.Language{
		{Name: "python", Aliases: []string{"py", "python3"}, Pools: []string{"main", "big"}},
		{Name: "bash", Aliases: []string{"sh", "shell"}, Pools: []string{"main"}},
	}
}

// program is a request that is valid but for what change does to it.
func program(change func(*execution.Request)) *execution.Request {
	r := &execution.Request{Language: "python", Code: "print(1)"}
	change(r)
	return r
}

func TestValidateFillsIn(t *testing.T) {
	limits := execution.DefaultLimits()
	p, problem := (&execution.Request{
		Language: "PY", Code: "x\x00", Stdin: "a\nb", Args: []string{""}, Env: map[string]string{"A": "=' \n"}, Pool: "big",
		Files:  []execution.File{{Path: "a/b", Content: "/w==", Encoding: "base64"}, {Path: "a/c", Content: "/w==", Encoding: "utf-8"}, {Path: "...", Content: "é"}},
		Limits: execution.Limits{TimeoutSeconds: 300, OutputBytes: 1},
	}).Validate(languages(), limits)
	if problem != nil {
		t.Fatal(problem)
	}
	want := &execution.Program{
		Language: "python", Code: []byte("x\x00"), Stdin: []byte("a\nb"), Args: []string{""}, Env: map[string]string{"A": "=' \n"}, Pool: "big",
		Files: []execution.ProgramFile{{Path: "a/b", Content: []byte{0xff}}, {Path: "a/c", Content: []byte("/w==")}, {Path: "...", Content: []byte("é")}},
		Limits: execution.Limits{
			TimeoutSeconds: 300, OutputBytes: 1, TotalOutputBytes: limits.Default.TotalOutputBytes, MemoryBytes: limits.Default.MemoryBytes,
		},
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("got %+v", p)
	}
}

func TestValidateLanguageAndPool(t *testing.T) {
	for name, test := range map[string]struct {
		language, pool string
		status         int
		field          string
	}{
		"missing":           {"", "", 422, "language"},
		"unknown":           {"cobol", "", 404, "language"},
		"unknown, long":     {strings.Repeat("é", 1<<20), "", 404, "language"},
		"alias":             {"py", "", 0, ""},
		"alias, mixed case": {"Python3", "", 0, ""},
		"shell":             {"sh", "", 0, ""},
		"not offered":       {"javascript", "", 404, "language"},
		"pool":              {"python", "big", 0, ""},
		"unknown pool":      {"python", "huge", 404, "pool"},
		"long pool":         {"python", strings.Repeat("é", 1<<20), 404, "pool"},
		"other pool":        {"bash", "big", 404, "language"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &execution.Request{Language: test.language, Code: "1", Pool: test.pool}
			_, problem := r.Validate(languages(), execution.DefaultLimits())
			check(t, problem, test.status, test.field)
		})
	}
}

func check(t *testing.T, problem *execution.Problem, status int, field string) {
	t.Helper()
	switch {
	case problem == nil && status != 0:
		t.Fatal("accepted")
	case problem != nil && (problem.Status != status || problem.Field != field):
		t.Fatalf("%d, field %q: %s", problem.Status, problem.Field, problem.Detail)
	case problem != nil && len(problem.Detail) > 1000:
		t.Fatalf("a detail of %d bytes", len(problem.Detail))
	}
}

func TestValidateCode(t *testing.T) {
	for code, status := range map[string]int{
		"": 422, " \t\r\n": 422, "\u00a0": 422, "#": 0, "\ufeffprint(1)": 0, "print(1)\r\n": 0, "\x00": 0, strings.Repeat("#\n", 1<<20): 0,
	} {
		_, problem := program(func(r *execution.Request) { r.Code = code }).Validate(languages(), execution.DefaultLimits())
		check(t, problem, status, "code")
	}
}

// CASES.md S10: values arrive as they are, and what cannot is refused by name.
func TestValidateEnvAndArgs(t *testing.T) {
	const most = 128<<10 - 1 // bytes that execve takes of one string
	many := map[string]string{}
	for i := range 1001 {
		many[strings.Repeat("v", i+1)] = ""
	}
	for name, test := range map[string]struct {
		args   []string
		env    map[string]string
		status int
		field  string
	}{
		"exact":             {[]string{"", "-c", "a b", "$(x)", "\n"}, map[string]string{"A": "x'; import os #", "B": "", "PATH": "/x", "LD_PRELOAD": "y"}, 0, ""},
		"odd names":         {nil, map[string]string{"a b": "1", "0": "", "é": "", "-x": ""}, 0, ""},
		"no name":           {nil, map[string]string{"": "1"}, 422, "env."},
		"= in a name":       {nil, map[string]string{"A=B": "1"}, 422, "env.A=B"},
		"NUL in a name":     {nil, map[string]string{"A\x00": "1"}, 422, "env.A\x00"},
		"NUL in a value":    {nil, map[string]string{"A": "1\x00"}, 422, "env.A"},
		"reserved":          {nil, map[string]string{"PREHEAT_X": "1"}, 422, "env.PREHEAT_X"},
		"reserved, harness": {nil, map[string]string{"_PREHEAT": "cold"}, 422, "env._PREHEAT"},
		"first by name":     {nil, map[string]string{"Z\x00": "", "A\x00": "", "B": ""}, 422, "env.A\x00"},
		"longest value":     {nil, map[string]string{"A": strings.Repeat("x", most-2)}, 0, ""},
		"too long a value":  {nil, map[string]string{"A": strings.Repeat("x", most-1)}, 422, "env.A"},
		"long name":         {nil, map[string]string{strings.Repeat("N", most): ""}, 422, "env." + strings.Repeat("N", 64) + "…"},
		"too many":          {nil, many, 422, "env"},
		"longest argument":  {[]string{strings.Repeat("x", most)}, nil, 0, ""},
		"long argument":     {[]string{"", strings.Repeat("x", most+1)}, nil, 422, "args[1]"},
		"NUL in argument":   {[]string{"a", "b", "\x00"}, nil, 422, "args[2]"},
		"many arguments":    {make([]string, 1000), nil, 0, ""},
		"too many args":     {make([]string, 1001), nil, 422, "args"},
		"too much in args":  {repeat(strings.Repeat("x", 1<<16), 16), nil, 422, "args"},
		"too much in env": {[]string{"x"}, map[string]string{
			"A": strings.Repeat("x", 120<<10), "B": strings.Repeat("x", 120<<10), "C": strings.Repeat("x", 120<<10), "D": strings.Repeat("x", 120<<10),
			"E": strings.Repeat("x", 120<<10), "F": strings.Repeat("x", 120<<10), "G": strings.Repeat("x", 120<<10), "H": strings.Repeat("x", 120<<10),
			"I": strings.Repeat("x", 120<<10),
		}, 422, "env"},
	} {
		t.Run(name, func(t *testing.T) {
			p, problem := program(func(r *execution.Request) { r.Args, r.Env = test.args, test.env }).Validate(languages(), execution.DefaultLimits())
			check(t, problem, test.status, test.field)
			if problem == nil && (!reflect.DeepEqual(p.Args, test.args) || !reflect.DeepEqual(p.Env, test.env)) {
				t.Errorf("changed to %.200q, %.200q", p.Args, p.Env)
			}
		})
	}
}

func repeat(s string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = s
	}
	return list
}

// CASES.md S8, and what else a path can be.
func TestValidateFiles(t *testing.T) {
	paths := func(list ...string) (files []execution.File) {
		for _, p := range list {
			files = append(files, execution.File{Path: p, Content: "x"})
		}
		return files
	}
	limits := execution.DefaultLimits()
	limits.Files, limits.FileBytes = 5, 10
	for name, test := range map[string]struct {
		files  []execution.File
		status int
		field  string
	}{
		"upwards":             {paths("a", "../x"), 422, "files[1].path"},
		"absolute":            {paths("/etc/x"), 422, "files[0].path"},
		"upwards inside":      {paths("a/../../x"), 422, "files[0].path"},
		"upwards and back":    {paths("a/../x"), 422, "files[0].path"},
		"empty":               {paths(""), 422, "files[0].path"},
		"NUL":                 {paths("a\x00b"), 422, "files[0].path"},
		"not UTF-8":           {paths("a\xff"), 422, "files[0].path"},
		"twice":               {paths("a", "b", "a"), 422, "files[2].path"},
		"twice, otherwise":    {paths("a", "./a"), 422, "files[1].path"},
		"file, then folder":   {paths("a", "a/b"), 422, "files[1].path"},
		"folder, then file":   {paths("a/b", "a"), 422, "files[1].path"},
		"folder from afar":    {paths("a/b/c/d", "a/b"), 422, "files[1].path"},
		"dot":                 {paths("."), 422, "files[0].path"},
		"two dots":            {paths(".."), 422, "files[0].path"},
		"folder's name":       {paths("a/"), 422, "files[0].path"},
		"empty part":          {paths("a//b"), 422, "files[0].path"},
		"the program":         {paths("main.py"), 422, "files[0].path"},
		"below the program":   {paths("main.py/x"), 422, "files[0].path"},
		"the program's other": {paths("main.js"), 422, "files[0].path"},
		"long part":           {paths(strings.Repeat("x", 256)), 422, "files[0].path"},
		"long path":           {paths(strings.Repeat("x", 250) + "/" + strings.Repeat(strings.Repeat("y", 250)+"/", 4) + "z"), 422, "files[0].path"},
		"too deep":            {paths("a", strings.Repeat("x/", 33)+"y"), 422, "files[1].path"},
		"as deep as allowed":  {paths(strings.Repeat("x/", 32) + "y"), 0, ""},
		"many":                {paths("a", "b", "c", "d", "e", "f"), 422, "files"},
		"as many as allowed":  {paths("a", "b", "c", "d/e", "d/f"), 0, ""},
		"odd but good":        {paths("...", "-", `a\b`, "a b\n", "x/main.py"), 0, ""},
		"longest part":        {paths(strings.Repeat("x", 255)), 0, ""},
		"encoding":            {[]execution.File{{Path: "a", Encoding: "hex"}}, 422, "files[0].encoding"},
		"encoding by others":  {[]execution.File{{Path: "a", Encoding: "UTF-8"}, {Path: "b", Encoding: "utf8"}, {Path: "c", Encoding: "BASE64"}}, 0, ""},
		"not base64":          {[]execution.File{{Path: "a"}, {Path: "b", Content: "a", Encoding: "base64"}}, 422, "files[1].content"},
		"base64 for URLs":     {[]execution.File{{Path: "b", Content: "__8=", Encoding: "base64"}}, 422, "files[0].content"},
		"base64, stray bits":  {[]execution.File{{Path: "b", Content: "AB==", Encoding: "base64"}}, 422, "files[0].content"},
		"too large":           {[]execution.File{{Path: "a", Content: "123456"}, {Path: "b", Content: "12345"}}, 413, "files[1].content"},
		"just right, decoded": {[]execution.File{{Path: "a", Content: "MTIzNDU2Nzg5MA==", Encoding: "base64"}}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, problem := program(func(r *execution.Request) { r.Files = test.files }).Validate(languages(), limits)
			check(t, problem, test.status, test.field)
			if problem == nil && len(p.Files) != len(test.files) {
				t.Errorf("%d files of %d", len(p.Files), len(test.files))
			}
		})
	}
}

func TestValidateStdin(t *testing.T) {
	for name, test := range map[string]struct {
		stdin, base64, want, field string
	}{
		"text":           {"é\n", "", "é\n", ""},
		"bytes":          {"", "/wA=", "\xff\x00", ""},
		"both":           {"a", "/wA=", "", "stdin_base64"},
		"not base64":     {"", "/wA", "", "stdin_base64"},
		"base64 for URL": {"", "__8=", "", "stdin_base64"},
	} {
		t.Run(name, func(t *testing.T) {
			status := 0
			if test.field != "" {
				status = 422
			}
			p, problem := program(func(r *execution.Request) { r.Stdin, r.StdinBase64 = test.stdin, test.base64 }).Validate(languages(), execution.DefaultLimits())
			check(t, problem, status, test.field)
			if problem == nil && string(p.Stdin) != test.want {
				t.Errorf("standard input is %q", p.Stdin)
			}
		})
	}
}

func TestValidateLimits(t *testing.T) {
	l := execution.DefaultLimits()
	for name, test := range map[string]struct {
		limits execution.Limits
		field  string
	}{
		"none":               {execution.Limits{}, ""},
		"the least":          {execution.Limits{TimeoutSeconds: 0.001, OutputBytes: 1, TotalOutputBytes: 1, MemoryBytes: 32 << 20}, ""},
		"the most":           {l.Maximum, ""},
		"no time":            {execution.Limits{TimeoutSeconds: 0.0001}, "limits.timeout_seconds"},
		"too much time":      {execution.Limits{TimeoutSeconds: 300.001}, "limits.timeout_seconds"},
		"negative time":      {execution.Limits{TimeoutSeconds: -1}, "limits.timeout_seconds"},
		"endless":            {execution.Limits{TimeoutSeconds: math.Inf(1)}, "limits.timeout_seconds"},
		"not a number":       {execution.Limits{TimeoutSeconds: math.NaN()}, "limits.timeout_seconds"},
		"too much output":    {execution.Limits{OutputBytes: 16<<20 + 1}, "limits.output_bytes"},
		"negative output":    {execution.Limits{OutputBytes: -1}, "limits.output_bytes"},
		"too much in total":  {execution.Limits{TotalOutputBytes: 1<<30 + 1}, "limits.total_output_bytes"},
		"negative total":     {execution.Limits{TotalOutputBytes: math.MinInt64}, "limits.total_output_bytes"},
		"too much memory":    {execution.Limits{MemoryBytes: 512<<20 + 1}, "limits.memory_bytes"},
		"too little memory":  {execution.Limits{MemoryBytes: 32<<20 - 1}, "limits.memory_bytes"},
		"the first is named": {execution.Limits{OutputBytes: -1, MemoryBytes: -1}, "limits.output_bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			p, problem := program(func(r *execution.Request) { r.Limits = test.limits }).Validate(languages(), l)
			if test.field != "" {
				check(t, problem, 422, test.field)
				return
			}
			if problem != nil {
				t.Fatal(problem)
			}
			want := test.limits
			if want == (execution.Limits{}) {
				want = l.Default
			}
			if p.Limits != want {
				t.Errorf("got %+v", p.Limits)
			}
		})
	}
}

// The server's own defaults must be among what it allows.
func TestDefaultLimitsAreConsistent(t *testing.T) {
	l := execution.DefaultLimits()
	_, problem := program(func(r *execution.Request) { r.Limits = l.Default }).Validate(languages(), l)
	if problem != nil {
		t.Error(problem)
	}
}

func TestProblemKinds(t *testing.T) {
	for kind, status := range map[execution.ProblemType]int{
		execution.ProblemMalformed: 400, execution.ProblemForbidden: 403, execution.ProblemNotFound: 404, execution.ProblemMethodNotAllowed: 405,
		execution.ProblemTooLarge: 413, execution.ProblemUnsupportedMedia: 415, execution.ProblemInvalidValue: 422, execution.ProblemNoSandbox: 429,
		execution.ProblemOverQuota: 429, execution.ProblemInternal: 500, execution.ProblemUpstream: 502, execution.ProblemSandboxLost: 502,
		execution.ProblemNotReady: 503, execution.ProblemDeadline: 504,
	} {
		p := execution.NewProblem(kind, "%d%%", 5)
		if p.Status != status || p.Title == "" || p.Detail != "5%" || p.Type != "urn:preheat:problem:"+string(kind) || !p.IsKind(kind) {
			t.Errorf("%+v", p)
		}
		if kind != execution.ProblemInternal && p.IsKind(execution.ProblemInternal) {
			t.Errorf("%s is internal, too", kind)
		}
	}
	err := error(execution.Invalid("a.b", "wrong"))
	var p *execution.Problem
	if !errors.As(err, &p) || err.Error() != "a.b: wrong" {
		t.Error(err)
	}
}
