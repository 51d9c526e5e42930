package command

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// variablePrefix begins the variable of a flag.
const variablePrefix = "REPRISE_"

// Annotations of flags.
const (
	writtenOnly  = "written only"  // see WrittenOnly
	fromVariable = "from variable" // the variable that has set it
)

// WrittenOnly says that no variable sets these flags: those that somebody has to write each time, as one that deletes, and
// those whose name means something else in another command.
func WrittenOnly(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		cobra.CheckErr(flags.SetAnnotation(name, writtenOnly, nil))
	}
}

// ownVariable finds the variable that a flag's help names: the flag's package reads it, with a precedence of its own.
var ownVariable = regexp.MustCompile(`\[([A-Z][A-Z0-9_]*)\]`)

// environmentHelp is what --help says of variables.
const environmentHelp = `{{if .HasAvailableLocalFlags}}
A flag that is not given is read from the environment: REPRISE_ and its name in capitals, as REPRISE_LOG_FORMAT for
--log-format, or the variable that its text names in brackets. A flag that may be repeated takes a line for each.{{end}}
`

// Variable is the name of the variable that sets a flag where the command line does not; "" for none.
func Variable(f *pflag.Flag) string {
	if own := ownVariable.FindStringSubmatch(f.Usage); own != nil {
		return own[1]
	}
	if _, only := f.Annotations[writtenOnly]; only || f.Hidden || f.Name == "help" {
		return ""
	}
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}

// fromEnvironment sets the flags that were not given from their variables. A process that this one starts with its flags as
// arguments has the same ones: none is read twice.
func fromEnvironment(cmd *cobra.Command, _ []string) error {
	var wrong error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		variable := Variable(f)
		if f.Changed || variable == "" || ownVariable.MatchString(f.Usage) {
			return
		}
		text := os.Getenv(variable)
		if text == "" {
			return
		}
		if err := setFlag(cmd.Flags(), f, text); err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("%s: %w (%s --help has the flags)", variable, err, cmd.CommandPath()))
			return
		}
		cobra.CheckErr(cmd.Flags().SetAnnotation(f.Name, fromVariable, []string{variable}))
	})
	return wrong
}

// setFlag sets a flag from a variable's text. One that may be repeated takes a line for each.
func setFlag(flags *pflag.FlagSet, f *pflag.Flag, text string) error {
	values := []string{text}
	if _, list := f.Value.(pflag.SliceValue); list {
		values = slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
	}
	for _, value := range values {
		if err := flags.Set(f.Name, value); err != nil {
			return err
		}
	}
	return nil
}

// origin says of the flags that an error names which variables have set them.
func origin(root *cobra.Command, arguments []string, text string) string {
	cmd, _, err := root.Find(arguments)
	if err != nil {
		return text
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		named := regexp.MustCompile(`--` + regexp.QuoteMeta(f.Name) + `([^a-z0-9-]|$)`)
		if variable := f.Annotations[fromVariable]; len(variable) == 1 && named.MatchString(text) && !strings.Contains(text, variable[0]) {
			text += fmt.Sprintf(" (--%s is from %s)", f.Name, variable[0])
		}
	})
	return text
}
