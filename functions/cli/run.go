package cli

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/client"
	"github.com/preheat-dev/preheat/functions/doors/capture"
)

// languages are those of file names that end so.
var languages = map[string]string{".py": "python", ".js": "javascript", ".mjs": "javascript", ".sh": "bash", ".bash": "bash"}

// figureExtensions are of the files in which figures are kept.
var figureExtensions = map[string]string{"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/svg+xml": ".svg"}

// figure is a displayed image as a file.
func figure(name string, r execution.RichResult) execution.Artifact {
	a := execution.Artifact{Path: name, MIME: r.MIME, Content: r.Data, Encoding: execution.EncodingBase64}
	if execution.IsTextMIME(r.MIME) {
		a.Encoding = execution.EncodingUTF8
	}
	return a
}

// program is what preheat run is asked to run.
type program struct {
	language, pool string
	timeout        time.Duration
	stdin          bool
	files, env     []string
	output         string
}

func (o *options) runCommand(code *int) *cobra.Command {
	var p program
	c := o.jsonFlag(&cobra.Command{
		Use: "run FILE|- [ARGUMENT...]", Short: "Run a program in a fresh sandbox, and exit with its code",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			*code, err = o.run(cmd.Context(), &p, args[0], args[1:])
			return err
		},
	})
	f := c.Flags()
	f.SetInterspersed(false) // what follows FILE is the program's
	f.StringVarP(&p.language, "language", "l", "", "the language; by default by the file's name, and python for -")
	f.StringVar(&p.pool, "pool", "", "a warm pool by name")
	f.DurationVar(&p.timeout, "timeout", 0, "the program's time; the server's default without")
	f.BoolVar(&p.stdin, "stdin", false, "give the program this command's standard input")
	f.StringArrayVarP(&p.files, "file", "f", nil, "a file for the program's working directory; NAME=FILE renames it")
	f.StringArrayVarP(&p.env, "env", "e", nil, "an environment variable of the program, as NAME=VALUE")
	f.StringVarP(&p.output, "output", "o", "", "a folder for the files that the program writes and the figures that it shows; none are kept without")
	return c
}

// run runs a program and returns its exit code.
func (o *options) run(ctx context.Context, p *program, file string, args []string) (int, error) {
	c, err := o.client()
	if err != nil {
		return 0, err
	}
	r, err := p.request(o.In, file, args)
	if err != nil {
		return 0, err
	}
	keep := func(execution.Artifact) error { return nil }
	if p.output != "" {
		if err := os.MkdirAll(p.output, 0o755); err != nil {
			return 0, err
		}
		folder, err := os.OpenRoot(p.output)
		if err != nil {
			return 0, err
		}
		defer func() { _ = folder.Close() }()
		keep = func(a execution.Artifact) error { return o.keep(folder, a) }
	}
	if o.json {
		result, err := c.Execute(ctx, *r, "")
		if err != nil {
			return 0, err
		}
		for _, a := range result.Artifacts {
			if err := keep(a); err != nil {
				return 0, err
			}
		}
		return result.ExitCode, o.print(result)
	}
	figures := 0
	exit, err := c.Stream(ctx, *r, client.Handler{Output: o.write, Artifact: keep, Result: func(r execution.RichResult) error {
		extension, ok := figureExtensions[r.MIME]
		if !ok {
			return nil
		}
		figures++
		return keep(figure(fmt.Sprintf("figure-%d%s", figures, extension), r))
	}})
	if err != nil {
		return 0, err
	}
	if figures > 0 && p.output == "" {
		_, _ = fmt.Fprintln(o.Err, "preheat: The program showed figures; --output keeps them.")
	}
	o.explain(exit)
	if exit.ExitCode == nil {
		return 0, errors.New("the program's exit code is not known")
	}
	return *exit.ExitCode, nil
}

// request is what the server is asked for.
func (p *program) request(stdin io.Reader, file string, args []string) (*execution.Request, error) {
	r := &execution.Request{Language: p.language, Pool: p.pool, Args: args, Limits: execution.Limits{TimeoutSeconds: p.timeout.Seconds()}}
	var code []byte
	var err error
	if file == "-" {
		if p.stdin {
			return nil, errStdinTwice
		}
		code, err = io.ReadAll(stdin)
	} else {
		code, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, err
	}
	r.Code = string(code)
	if r.Language == "" {
		r.Language = languages[strings.ToLower(filepath.Ext(file))]
		if file == "-" {
			r.Language = "python"
		}
		if r.Language == "" {
			return nil, fmt.Errorf("the name %s says nothing of a language: use --language", file)
		}
	}
	if p.stdin {
		input, err := io.ReadAll(stdin)
		if err != nil {
			return nil, err
		}
		r.StdinBase64 = base64.StdEncoding.EncodeToString(input)
	}
	for _, e := range p.env {
		name, value, ok := strings.Cut(e, "=")
		if !ok {
			return nil, fmt.Errorf("--env %s is not of the form NAME=VALUE", name)
		}
		if r.Env == nil {
			r.Env = map[string]string{}
		}
		r.Env[name] = value
	}
	for _, f := range p.files {
		name, path, renamed := strings.Cut(f, "=")
		if !renamed {
			name, path = filepath.Base(f), f
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		r.Files = append(r.Files, execution.File{Path: name, Content: base64.StdEncoding.EncodeToString(content), Encoding: execution.EncodingBase64})
	}
	return r, nil
}

func (o *options) write(stream execution.Stream, data []byte, skipped int64) error {
	to := o.Out
	if stream == execution.Stderr {
		to = o.Err
	}
	if skipped > 0 {
		_, _ = fmt.Fprintf(o.Err, "\npreheat: %d bytes are left out here\n", skipped)
	}
	_, err := to.Write(data)
	return err
}

// keep writes an artifact into a folder, and nowhere else.
func (o *options) keep(folder *os.Root, a execution.Artifact) error {
	if a.Omitted != "" {
		_, _ = fmt.Fprintf(o.Err, "preheat: %s is left out: %s\n", a.Path, a.Omitted)
		return nil
	}
	content := []byte(a.Content)
	if a.Encoding == execution.EncodingBase64 {
		var err error
		if content, err = base64.StdEncoding.DecodeString(a.Content); err != nil {
			return fmt.Errorf("artifact %s: %w", a.Path, err)
		}
	}
	if err := folder.MkdirAll(filepath.Dir(filepath.FromSlash(a.Path)), 0o755); err != nil {
		return err
	}
	return folder.WriteFile(filepath.FromSlash(a.Path), content, 0o644)
}

// explain says on standard error what an exit code does not.
func (o *options) explain(exit *execution.Exit) {
	if exit.Status == execution.StatusFailed && exit.Signal == nil {
		exit.Status = execution.StatusSucceeded // to be said by the exit code alone
	}
	outcome := capture.Outcome{Exit: *exit}
	for _, sentence := range outcome.Explain() {
		_, _ = fmt.Fprintf(o.Err, "preheat: %s\n", sentence)
	}
}
