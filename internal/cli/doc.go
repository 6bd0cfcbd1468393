// Package cli is the command line of snapcli. Each command has its own file, which holds its flags,
// one library call and a few printed lines (SPEC 4.4 and 4.5).
//
// These rules hold for all output:
//
//   - Results go to standard output, everything else to standard error, so that a pipe holds only
//     the result.
//   - On a terminal, output has colors, progress, questions, and tables that fit the width. In a
//     pipe, output has the same words without decoration. --json gives stable JSON on every command
//     that lists or shows something.
//   - --quiet omits notes and progress, and shortens a result to the one word that a script needs: a
//     name or an ID. Warnings and errors remain.
//   - Every confirmation has a flag, except the one to load the programs of an untrusted author
//     (functions, triggers, views and so on). Without a terminal, no question is asked.
//   - An error is one sentence and a hint: see [app.report]. The exit code comes from the error
//     table of package snap.
//   - Text from elsewhere, such as names and messages of the service, never controls the terminal:
//     see cleanArgs.
//   - --debug logs what happens and never a secret: see redact.
//
// CONTRIBUTING.md says how to add a command.
package cli
