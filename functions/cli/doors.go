package cli

import (
	"log/slog"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/preheat-dev/preheat/functions/doors"
)

// doorCommands are a command for each protocol that is spoken on stdin and
// stdout.
func (o *options) doorCommands() []*cobra.Command {
	all := doors.All()
	var commands []*cobra.Command
	for _, name := range slices.Sorted(maps.Keys(all)) {
		kind := all[name]
		if kind.Stdio == nil {
			continue
		}
		commands = append(commands, &cobra.Command{
			Use: name, Short: "Speak " + kind.Title + " on stdin and stdout", Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
			RunE: func(cmd *cobra.Command, _ []string) error {
				c, err := o.client()
				if err != nil {
					return err
				}
				return kind.Stdio(cmd.Context(), c, o.In, o.Out, slog.New(slog.NewTextHandler(o.Err, nil)))
			},
		})
	}
	return commands
}
