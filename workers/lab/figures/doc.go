// Package figures keeps the measured numbers of README.md and docs as records: a line of
// docs/figures.jsonl a number, with the command that prints it, the commit and the numerics that were
// measured, the machine and the date.
//
// A page marks the place of a number:
//
//	an update takes <!--figure updates/kept-->0.26<!--/figure--> of the time
//
// Fill writes the recorded values between the marks, and Check says what is missing: a row of a mark, or a
// mark of a sentence that says it has been measured. Table lists all rows. Refresh measures rows again.
//
// Rows of an older numerics than the build's were measured on other bits. Their numbers are marked by
// Dagger, and Fill explains it at the end of the page.
package figures
