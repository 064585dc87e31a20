// Package walkthrough tries Preheat on the cluster of kubectl's current context
// as a user does: with the commands that the README prints, through Knative's
// route. `make walkthrough` runs the walkthrough alone; the other tests ask for
// what goes wrong on clusters. They change only what they put back.
package walkthrough
