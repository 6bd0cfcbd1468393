// Package cli is the command line of snapcli: one file a command, each of them
// flags, one call of a library and a few printed lines (SPEC 4.4 and 4.5).
//
// How the program speaks, everywhere:
//
//   - Results go to standard output, everything else to standard error, so
//     that a pipe holds nothing but the result.
//   - A person on a terminal gets tables that fit it, colour, progress and
//     questions. A pipe gets the same words, plain. --json gives stable JSON on
//     every command that lists or shows something.
//   - --quiet leaves out notes and progress and shortens a result to the one
//     word a script wants: a name or an ID. Warnings and errors stay.
//   - No question is asked without a flag that answers it, and none is asked
//     when there is no terminal.
//   - An error is one sentence and a hint, written by the one function
//     [app.report], and the exit code is that of the error table of package
//     snap.
//   - Text that came from elsewhere, such as names and messages of the
//     service, never steers the terminal: see clean.
//   - --debug tells what happens and never a secret: see redact.
//
// To add a command, write a file named after it with a method of app that
// returns the *cobra.Command, add it to its parent (root.go or cloud.go), and
// a script below testdata/script. The reference pages are made from the
// commands themselves.
package cli
