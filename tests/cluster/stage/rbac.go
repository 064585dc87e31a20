package stage

import (
	"bytes"
	"os"
	"path/filepath"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/preheat-dev/preheat/tests/cluster/binaries"
)

// Namespaces of config/rbac, all of which a space plays.
const (
	controllerUser = "system:serviceaccount:preheat-system:preheat-controller"
	executeUser    = "system:serviceaccount:llm-sandbox-demo:execute"
)

// As returns a change of a client's configuration to the rights of a user.
func as(user string) func(*rest.Config) {
	return func(c *rest.Config) { c.Impersonate = rest.ImpersonationConfig{UserName: user} }
}

// AsExecute gives a client the rights of execute, and no others.
func AsExecute(c *rest.Config) { as(executeUser)(c) }

// AsController gives a client the rights of the controller, and no others.
func AsController(c *rest.Config) { as(controllerUser)(c) }

// grant applies the Roles and RoleBindings of config/rbac to the space.
func (sp *Space) grant() {
	sp.TB.Helper()
	root, err := binaries.ModuleRoot()
	if err != nil {
		sp.TB.Fatal(err)
	}
	for _, name := range []string{"controller.yaml", "execute.yaml"} {
		data, err := os.ReadFile(filepath.Join(root, "config", "rbac", name))
		if err != nil {
			sp.TB.Fatal(err)
		}
		for _, doc := range bytes.Split(data, []byte("\n---\n")) {
			if err := sp.grantOne(doc); err != nil {
				sp.TB.Fatalf("apply %s: %v", name, err)
			}
		}
	}
}

func (sp *Space) grantOne(doc []byte) error {
	var meta struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
	}
	if err := yaml.Unmarshal(doc, &meta); err != nil {
		return err
	}
	// Objects of several namespaces meet in this one.
	suffix := "-" + meta.Namespace
	ctx, api := sp.TB.Context(), sp.Kube.RbacV1()
	switch meta.Kind {
	case "Role":
		r := &rbacv1.Role{}
		if err := yaml.UnmarshalStrict(doc, r); err != nil {
			return err
		}
		r.Namespace, r.Name = sp.Namespace, r.Name+suffix
		_, err := api.Roles(sp.Namespace).Create(ctx, r, metav1.CreateOptions{})
		return err
	case "RoleBinding":
		b := &rbacv1.RoleBinding{}
		if err := yaml.UnmarshalStrict(doc, b); err != nil {
			return err
		}
		b.Namespace, b.Name, b.RoleRef.Name = sp.Namespace, b.Name+suffix, b.RoleRef.Name+suffix
		_, err := api.RoleBindings(sp.Namespace).Create(ctx, b, metav1.CreateOptions{})
		return err
	}
	return nil
}
