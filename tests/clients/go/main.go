// Command go calls a server by the client that oapi-codegen generates.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	"github.com/preheat-dev/preheat/tests/clients/go/preheat"
)

func main() {
	log.SetFlags(0)
	if err := run(context.Background(), os.Getenv("PREHEAT_URL")); err != nil {
		log.Fatal(err)
	}
	fmt.Println("oapi-codegen: passed")
}

func run(ctx context.Context, url string) error {
	client, err := preheat.NewClientWithResponses(url)
	if err != nil {
		return err
	}
	least, err := client.ExecuteWithResponse(ctx, nil, preheat.Request{Language: "python", Code: "print(6 * 7)"})
	if err != nil {
		return err
	}
	if r := least.JSON200; r == nil || r.Stdout != "42\n" || r.Status != "succeeded" {
		return fmt.Errorf("%s: %s", least.Status(), least.Body)
	}
	stdin := []byte{0xff, 0}
	bytes, err := client.ExecuteWithResponse(ctx, nil, preheat.Request{Language: "bash", Code: "cat", StdinBase64: &stdin})
	if err != nil {
		return err
	}
	if r := bytes.JSON200; r == nil || r.StdoutBase64 == nil || string(*r.StdoutBase64) != string(stdin) {
		return fmt.Errorf("%s: %s", bytes.Status(), bytes.Body)
	}
	refused, err := client.ExecuteWithResponse(ctx, nil, preheat.Request{Language: "cobol", Code: "1"})
	if err != nil {
		return err
	}
	if p := refused.ApplicationproblemJSON404; refused.StatusCode() != http.StatusNotFound || p == nil || p.Field == nil || *p.Field != "language" {
		return fmt.Errorf("%s: %s", refused.Status(), refused.Body)
	}
	return nil
}
