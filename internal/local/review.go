package local

import (
	"fmt"
	"os"

	"snap/internal/disk"
	"snap/internal/sanitize"
)

// RulesReview is a review of a rules file. It saves every decision.
type RulesReview struct {
	*sanitize.Review
	path string
}

// ReviewGroup is the columns that are decided together.
type ReviewGroup = sanitize.Group

// Undecided is the mask of columns that a person must decide on.
const Undecided = sanitize.Undecided

// ReviewRules begins a review of a rules file.
func ReviewRules(path string) (RulesReview, error) {
	v, err := sanitize.ReadReview(path)
	return RulesReview{v, path}, err
}

// Save decides on a group and writes the file at once.
func (v RulesReview) Save(g ReviewGroup, rule string) error {
	v.Decide(g, rule)
	text, err := v.Text()
	if err != nil {
		return err
	}
	info, err := os.Stat(v.path)
	if err != nil {
		return fmt.Errorf("write the rules file: %w", err)
	}
	return diskError(disk.Replace(v.path, text, info.Mode().Perm()), "write "+v.path)
}
