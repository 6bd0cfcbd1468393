package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"snap"
)

// typeFlag adds the flag --type to a command.
func typeFlag(cmd *cobra.Command, typ *snap.Type, usage string) {
	cmd.Flags().Var((*typeValue)(typ), "type", usage+": sanitized (masked) or snapshot (unmasked)")
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(
		[]cobra.Completion{string(snap.TypeSnapshot), string(snap.TypeSanitized)}, cobra.ShellCompDirectiveNoFileComp))
}

// typeValue is the flag value of a snapshot type. The empty value means every type.
type typeValue snap.Type

func (v *typeValue) Type() string   { return "string" }
func (v *typeValue) String() string { return string(*v) }

func (v *typeValue) Set(typed string) error {
	if typed != "" && !snap.Type(typed).Valid() {
		return snap.Usage(fmt.Sprintf("%q is not a snapshot type", typed), "use --type snapshot or --type sanitized")
	}
	*v = typeValue(typed)
	return nil
}

// jobsFlag adds the flag --jobs to a command. The default is 0; usage says what 0 means.
func jobsFlag(cmd *cobra.Command, jobs *int, usage string) {
	cmd.Flags().Var((*jobsValue)(jobs), "jobs", usage)
}

// jobsValue is the flag value of a number of jobs.
type jobsValue int

func (v *jobsValue) Type() string   { return "int" }
func (v *jobsValue) String() string { return strconv.Itoa(int(*v)) }

func (v *jobsValue) Set(typed string) error {
	n, err := strconv.Atoi(typed)
	if err == nil && n < 0 {
		return snap.Usage(fmt.Sprintf("--jobs %d is less than zero", n),
			"use a number like 4, or omit it to use the default")
	}
	*v = jobsValue(n)
	return err
}

// percentValue is the flag value of a percentage of the rows. The default, 0, means all rows.
type percentValue float64

func (v *percentValue) Type() string   { return "float64" }
func (v *percentValue) String() string { return strconv.FormatFloat(float64(*v), 'g', -1, 64) }

func (v *percentValue) Set(typed string) error {
	p, err := strconv.ParseFloat(typed, 64)
	if err != nil {
		return err
	}
	if !(p > 0 && p <= 100) { // NaN fails both comparisons
		return snap.Usage(fmt.Sprintf("a subset cannot have %v percent of the rows", p),
			"give a number above 0 and up to 100")
	}
	*v = percentValue(p)
	return nil
}

// placeFlags select the other end of a push or pull: the cloud service, or one of the user's own
// storage profiles.
type placeFlags struct {
	cloud   bool
	profile string
}

func (a *app) placeFlags(cmd *cobra.Command, f *placeFlags, cloud string) {
	cmd.Flags().BoolVar(&f.cloud, "cloud", false, cloud)
	cmd.Flags().StringVar(&f.profile, "profile", "",
		"without --cloud: name of the storage profile (default: the only one)")
	cmd.MarkFlagsMutuallyExclusive("cloud", "profile")
	_ = cmd.RegisterFlagCompletionFunc("profile", a.completeProfiles)
}
