// Package stage sets up what tests of the warm pools share: a real API server
// with the resource definitions and the admission policies, the controller as a
// program of its own that can be killed, fake nodes, and pools of execute. Tests
// get a namespace each.
package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/preheat-dev/preheat/api/client/clientset/versioned"
	"github.com/preheat-dev/preheat/tests/cluster/binaries"
	"github.com/preheat-dev/preheat/tests/cluster/controlplane"
)

// Stage is an API server with Preheat's resources.
type Stage struct {
	*controlplane.ControlPlane
	Kube    kubernetes.Interface
	Preheat versioned.Interface
	// controller is the built program.
	controller string
	dir        string
	spaces     atomic.Int32
}

// Main runs the tests of a package on one stage. It is the body of TestMain.
func Main(m *testing.M, set func(*Stage)) {
	code, err := run(m, set)
	if err != nil {
		fmt.Fprintln(os.Stderr, "stage:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M, set func(*Stage)) (code int, err error) {
	// The clients tell of every fault that a test injects.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	s, err := New(context.Background(), controlplane.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	set(s)
	return m.Run(), nil
}

// New sets a stage up.
func New(ctx context.Context, opts controlplane.Options) (_ *Stage, err error) {
	s := &Stage{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.ControlPlane, err = controlplane.Start(ctx, opts); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "preheat-stage-"); err != nil {
		return nil, err
	}
	if s.Kube, err = kubernetes.NewForConfig(s.Config()); err != nil {
		return nil, err
	}
	if s.Preheat, err = versioned.NewForConfig(s.Config()); err != nil {
		return nil, err
	}
	root, err := binaries.ModuleRoot()
	if err != nil {
		return nil, err
	}
	if err := s.build(ctx, root); err != nil {
		return nil, err
	}
	if err := s.applyPolicies(ctx, filepath.Join(root, "config", "base", "admission.yaml")); err != nil {
		return nil, err
	}
	return s, s.applyCRDs(ctx, filepath.Join(root, "config", "crds"))
}

// Close takes the stage down.
func (s *Stage) Close() error {
	var errs []error
	if s.ControlPlane != nil {
		errs = append(errs, s.Stop())
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

func (s *Stage) build(ctx context.Context, root string) error {
	s.controller = filepath.Join(s.dir, "controller")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", s.controller, "./controller/cmd")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the controller: %w\n%s", err, out)
	}
	return nil
}

// applyCRDs creates the resource definitions and waits until they are served.
func (s *Stage) applyCRDs(ctx context.Context, dir string) error {
	client, err := apiextensions.NewForConfig(s.Config())
	if err != nil {
		return err
	}
	crds := client.ApiextensionsV1().CustomResourceDefinitions()
	files, err := filepath.Glob(filepath.Join(dir, "sandbox*.yaml"))
	if err != nil {
		return err
	}
	var names []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, crd); err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		if _, err := crds.Create(ctx, crd, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create the CRD %s: %w", crd.Name, err)
		}
		names = append(names, crd.Name)
	}
	return eventually(ctx, time.Minute, "the CRDs are served", func() (bool, error) {
		for _, name := range names {
			crd, err := crds.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			if !established(crd) {
				return false, nil
			}
		}
		_, err := s.Preheat.SandboxV1alpha1().SandboxClaims("").List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

// eventually waits until something holds.
func eventually(ctx context.Context, limit time.Duration, what string, holds func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		ok, err := holds()
		if ok && err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for: %s: %w", what, errors.Join(ctx.Err(), err))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// namespace makes a namespace of its own for a test.
func (s *Stage) namespace(ctx context.Context) (string, error) {
	name := fmt.Sprintf("test-%d", s.spaces.Add(1))
	_, err := s.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return name, err
}
