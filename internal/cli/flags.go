package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"snap"
)

// typeFlag gives a command the flag --type.
func typeFlag(cmd *cobra.Command, typ *snap.Type, usage string) {
	cmd.Flags().Var((*typeValue)(typ), "type", usage+": snapshot or sanitized")
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(
		[]cobra.Completion{string(snap.TypeSnapshot), string(snap.TypeSanitized)}, cobra.ShellCompDirectiveNoFileComp))
}

// typeValue is a snapshot type as a flag takes it. Empty is every type.
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

// jobsFlag gives a command the flag --jobs. 0, the default, has it chosen.
func jobsFlag(cmd *cobra.Command, jobs *int, usage string) {
	cmd.Flags().Var((*jobsValue)(jobs), "jobs", usage)
}

// jobsValue is a number of jobs as a flag takes it.
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

// percentValue is a share of the rows as a flag takes it; 0, the default, is all.
type percentValue float64

func (v *percentValue) Type() string   { return "float64" }
func (v *percentValue) String() string { return strconv.FormatFloat(float64(*v), 'g', -1, 64) }

func (v *percentValue) Set(typed string) error {
	p, err := strconv.ParseFloat(typed, 64)
	if err != nil {
		return err
	}
	if !(p > 0 && p <= 100) { // NaN is neither
		return snap.Usage(fmt.Sprintf("a subset cannot have %v percent of the rows", p),
			"give a number above 0 and up to 100")
	}
	*v = percentValue(p)
	return nil
}

// placeFlags choose where push and pull go: the cloud service, or a storage
// profile of one's own.
type placeFlags struct {
	cloud   bool
	profile string
}

func (a *app) placeFlags(cmd *cobra.Command, f *placeFlags, cloud string) {
	cmd.Flags().BoolVar(&f.cloud, "cloud", false, cloud)
	cmd.Flags().StringVar(&f.profile, "profile", "",
		"without --cloud: name of the storage profile (default the only one)")
	cmd.MarkFlagsMutuallyExclusive("cloud", "profile")
	_ = cmd.RegisterFlagCompletionFunc("profile", a.completeProfiles)
}
