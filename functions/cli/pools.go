package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func (o *options) poolsCommand() *cobra.Command {
	return o.jsonFlag(&cobra.Command{
		Use: "pools", Short: "Show the warm pools", Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			pools, err := c.Pools(cmd.Context())
			if err != nil {
				return err
			}
			if o.json {
				return o.print(pools)
			}
			table := tabwriter.NewWriter(o.Out, 0, 0, 2, ' ', 0)
			_, _ = fmt.Fprintln(table, "NAME\tLANGUAGES\tDESIRED\tWARM\tWARMING\tCLAIMED\tWAITING\tPROBLEM")
			for _, p := range pools {
				_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\n",
					p.Name, strings.Join(p.Languages, ","), p.Desired, p.Warm, p.Warming, p.Claimed, p.Waiting, p.Problem)
			}
			return table.Flush()
		},
	})
}
